// What a host cost is measured with: the access patterns, as loops over any struct allocator, and
// the checks of their result.
//
//     struct bench_pattern pattern;
//     bench_pattern_init(&pattern, BENCH_PATTERN_WINDOW, 64 * BASE_KIB, seed);
//     struct bench_user user;
//     status = bench_user_init(&user, &pattern, allocator, streams, 0);   fills the live set
//     failed = bench_user_run(&user, iterations);                         the timed loop
//     status = bench_users_check(&user, 1);                               right result?
//     status = bench_user_deinit(&user);                                  gives everything back
//     bench_pattern_deinit(&pattern);
//
// An iteration is one allocation and one free, of a script a whole cycle. Everything random is
// drawn beforehand into a table, so that the loop holds the allocator's calls, one load of the
// table and one store of the slot.
//
// A pattern is read-only after init and may be shared by threads; a user belongs to one thread.
#ifndef TIDEMARK_BENCH_PATTERN_H
#define TIDEMARK_BENCH_PATTERN_H

#include "allocator/allocator.h"
#include "base/histogram.h"
#include "bench/script.h"

enum bench_pattern_kind {
    BENCH_PATTERN_PAIR,   // allocate, free at once
    BENCH_PATTERN_WINDOW, // 64 live, the oldest replaced
    BENCH_PATTERN_MIXED,  // many live, a random one replaced; sizes log-uniform
    BENCH_PATTERN_RECORD, // allocate, record_stream for a second stream, free: a pair whose event
                          // completes before the next one asks
    BENCH_PATTERN_SCRIPT, // a cycle of a script
};
const char *bench_pattern_name(enum bench_pattern_kind kind);

#define BENCH_PATTERN_WINDOW_LIVE_COUNT 64
#define BENCH_PATTERN_MIXED_LIVE_COUNT 1024
#define BENCH_PATTERN_MIXED_BYTES_MIN ((uint64_t)512)
#define BENCH_PATTERN_MIXED_BYTES_MAX ((uint64_t)64 << 20)

struct bench_pattern_step {
    uint32_t slot, bytes;
};

struct bench_pattern {
    enum bench_pattern_kind kind;
    size_t bytes; // of each block; 0 for MIXED and SCRIPT
    uint32_t live_count;
    uint32_t stream_count;             // that a user needs
    uint64_t pair_count;               // allocations of an iteration: 1, of SCRIPT those of a cycle
    struct bench_pattern_step *steps;  // MIXED: replacements in order, repeated for ever; else NULL
    uint64_t step_mask;                // MIXED: number of steps, a power of two, less one
    const struct bench_script *script; // SCRIPT
};

// Not for SCRIPT. BYTES is ignored for MIXED, which has 1,024 live of 512 B to 64 MiB. Aborts when
// the host has no memory for a table of 128 KiB.
void bench_pattern_init(struct bench_pattern *pattern, enum bench_pattern_kind kind, size_t bytes,
                        uint64_t seed);
// MIXED with LIVE_COUNT blocks of BYTES_MIN to BYTES_MAX (both within 32 bits). The table has two
// steps a live block at least, so that all of them come to be replaced.
void bench_pattern_init_mixed(struct bench_pattern *pattern, uint32_t live_count,
                              uint64_t bytes_min, uint64_t bytes_max, uint64_t seed);
// SCRIPT must outlive the pattern.
void bench_pattern_init_script(struct bench_pattern *pattern, const struct bench_script *script);
void bench_pattern_deinit(struct bench_pattern *pattern);

struct bench_slot {
    void *pointer; // NULL: empty
    size_t bytes;  // requested
};
struct bench_user {
    const struct bench_pattern *pattern;
    struct allocator *allocator;
    const cudaStream_t *streams; // the caller's, stream_count of the pattern
    struct bench_slot *slots;    // live_count of them
    uint64_t position;           // of the next step
    uint64_t checked_count;      // blocks looked at by bench_user_run_checked
};

// Fills the live set; of a script, plays what comes before its cycle. START shifts where in the
// table this user begins: two users then do different things at the same time (a script always
// begins with its cycle). STREAMS has as many as the pattern needs and outlives the user. The
// allocator's status if a request fails; bench_user_deinit is due then too.
enum base_status bench_user_init(struct bench_user *user, const struct bench_pattern *pattern,
                                 struct allocator *allocator, const cudaStream_t *streams,
                                 uint64_t start) BASE_MUST_USE;
// Frees what is live; the first status that is not BASE_OK.
enum base_status bench_user_deinit(struct bench_user *user) BASE_MUST_USE;

// COUNT iterations. False if any call failed (base_status_message() tells the last failure).
bool bench_user_run(struct bench_user *user, uint64_t count) BASE_MUST_USE;

// The same, each pair timed alone into HISTOGRAM, in ns, the clock's own cost included. Not for
// RECORD and SCRIPT.
bool bench_user_run_timed(struct bench_user *user, uint64_t count,
                          struct base_histogram *histogram) BASE_MUST_USE;

// The same, slowly: each new block is compared with every live one. BASE_CHECK_FAILED names the
// first overlap.
enum base_status bench_user_run_checked(struct bench_user *user, uint64_t count) BASE_MUST_USE;

// The live blocks of all users overlap nowhere, none is missing (of a script, those that its cycle
// leaves), and the allocator's statistics count exactly them.
enum base_status bench_users_check(const struct bench_user *users, size_t user_count) BASE_MUST_USE;

// Blocks and bytes that the allocator still counts as allocated: 0 after every user is gone.
enum base_status bench_leaked_blocks(struct allocator *allocator,
                                     int64_t *block_count) BASE_MUST_USE;

#endif
