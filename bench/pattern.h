// What a host cost is measured with: the access patterns, as loops over any struct allocator, and
// the checks of their result.
//
//     struct bench_pattern pattern;
//     bench_pattern_init(&pattern, BENCH_PATTERN_WINDOW, 64 * BASE_KIB, seed);
//     struct bench_user user;
//     status = bench_user_init(&user, &pattern, allocator, stream, 0);    fills the live set
//     failed = bench_user_run(&user, iterations);                         the timed loop
//     status = bench_users_check(&user, 1);                               right result?
//     status = bench_user_deinit(&user);                                  gives everything back
//     bench_pattern_deinit(&pattern);
//
// An iteration is one allocation and one free. Everything random is drawn beforehand into a table,
// so that the loop holds the allocator's calls, one load of the table and one store of the slot.
//
// A pattern is read-only after init and may be shared by threads; a user belongs to one thread.
#ifndef TIDEMARK_BENCH_PATTERN_H
#define TIDEMARK_BENCH_PATTERN_H

#include "allocator/allocator.h"
#include "base/histogram.h"

enum bench_pattern_kind {
    BENCH_PATTERN_PAIR,   // allocate, free at once
    BENCH_PATTERN_WINDOW, // 64 live, the oldest replaced
    BENCH_PATTERN_MIXED,  // 1,024 live, a random one replaced; sizes log-uniform, 512 B to 64 MiB
};
const char *bench_pattern_name(enum bench_pattern_kind kind);

#define BENCH_PATTERN_WINDOW_LIVE_COUNT 64
#define BENCH_PATTERN_MIXED_LIVE_COUNT 1024

struct bench_pattern_step {
    uint32_t slot, bytes;
};

struct bench_pattern {
    enum bench_pattern_kind kind;
    size_t bytes; // of each block; 0 for MIXED
    uint32_t live_count;
    struct bench_pattern_step *steps; // MIXED: replacements in order, repeated for ever; else NULL
};

// BYTES is ignored for MIXED. Aborts when the host has no memory for a table of 128 KiB.
void bench_pattern_init(struct bench_pattern *pattern, enum bench_pattern_kind kind, size_t bytes,
                        uint64_t seed);
void bench_pattern_deinit(struct bench_pattern *pattern);

struct bench_slot {
    void *pointer; // NULL: empty
    size_t bytes;  // requested
};
struct bench_user {
    const struct bench_pattern *pattern;
    struct allocator *allocator;
    cudaStream_t stream;
    struct bench_slot *slots; // live_count of them
    uint64_t position;        // of the next step
    uint64_t checked_count;   // blocks looked at by bench_user_run_checked
};

// Fills the live set. START shifts where in the table this user begins: two users then do different
// things at the same time. The allocator's status if a request fails; bench_user_deinit is due then
// too.
enum base_status bench_user_init(struct bench_user *user, const struct bench_pattern *pattern,
                                 struct allocator *allocator, cudaStream_t stream,
                                 uint64_t start) BASE_MUST_USE;
// Frees what is live; the first status that is not BASE_OK.
enum base_status bench_user_deinit(struct bench_user *user) BASE_MUST_USE;

// COUNT iterations. False if any call failed (base_status_message() tells the last failure).
bool bench_user_run(struct bench_user *user, uint64_t count) BASE_MUST_USE;

// The same, each iteration timed alone into HISTOGRAM, in ns, the clock's own cost included.
bool bench_user_run_timed(struct bench_user *user, uint64_t count,
                          struct base_histogram *histogram) BASE_MUST_USE;

// The same, slowly: each new block is compared with every live one. BASE_CHECK_FAILED names the
// first overlap.
enum base_status bench_user_run_checked(struct bench_user *user, uint64_t count) BASE_MUST_USE;

// The live blocks of all users overlap nowhere, none is NULL, and the allocator's statistics count
// exactly them.
enum base_status bench_users_check(const struct bench_user *users, size_t user_count) BASE_MUST_USE;

// Blocks and bytes that the allocator still counts as allocated: 0 after every user is gone.
enum base_status bench_leaked_blocks(struct allocator *allocator,
                                     int64_t *block_count) BASE_MUST_USE;

#endif
