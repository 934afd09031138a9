// What the session's files share.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_SESSION_INTERNAL_H
#define TIDEMARK_ALLOCATOR_GOLDEN_SESSION_INTERNAL_H

#include "allocator/golden/session.h"
#include "allocator/golden/text.h"

// Ids of allocations are small numbers, given out one after the other.
#define GOLDEN_ID_MAX ((uint64_t)10 << 20)

struct golden_held {
    void *pointer;
    bool held; // an allocation that gave NULL is held too
};

#define GOLDEN_WORD_COUNT_MAX 8

struct golden_segment {
    uint64_t address, size;
    size_t number;             // in order of the device's calls
    uint64_t recorded_address; // on the device of the recordings
};

struct golden_session {
    const struct golden_subject *subject;
    struct golden_options options; // without its text
    bool is_fresh;                 // before the first operation
    struct allocator *allocator;
    cudaStream_t streams[GOLDEN_STREAM_COUNT];

    struct golden_held *held; // by id
    size_t held_capacity;

    struct golden_segment *segments; // every one ever made, by address, scattered ones by number
    size_t segment_count, segment_capacity;
    size_t range_count, range_bytes; // of addresses that expandable segments reserve now
    bool has_ranges; // there are, or were
    uint64_t next_address; // of the device, behind everything so far
    bool is_scattered; // addresses do not ascend
    uint64_t next_recorded_address;

    struct allocator_event *trace; // since the last `trace`
    size_t trace_count, trace_capacity;

    size_t freed_on_miss[GOLDEN_WORD_COUNT_MAX]; // ids, by the next free-memory callback
    size_t freed_on_miss_count;
    bool is_torn;            // a part of a segment went back to the device (x_torch_faults)
    uint64_t callback_count; // runs of it that freed something

    size_t block_size; // of the last alloc event
    struct golden_text outcome_text, details_text;
    FILE *details; // of the operation that is being performed
    uint64_t foreign_bytes;   // on the device
    uint64_t page_rest_bytes; // of segments: what their last pages have beyond them
    size_t out_of_memory_count;
    bool out_of_memory_seen;
    struct cca_out_of_memory out_of_memory;
    char last_error[BASE_STATUS_MESSAGE_SIZE];
};

// An operation's words and where its outcome goes. Details are lines after it, written separately:
// the calls stand between.
struct golden_request {
    struct golden_session *session;
    const char *text;                   // the whole operation
    const char *rest;                   // what follows the name and one blank, "" if nothing does
    char *words[GOLDEN_WORD_COUNT_MAX]; // the name first
    size_t word_count;
    FILE *outcome, *details;
    bool is_list; // the outcome brings a blank before each of its words
};

// session.c
// Starts again, in a process that has CONFIG in its environment.
enum base_status golden__session_restart(struct golden_session *session,
                                         const char *config) BASE_MUST_USE;
// Where the N-th segment goes when addresses are scattered.
uint64_t golden__scattered_address(size_t number);
// The segment that an address lies in, or the last one before it; NULL for none.
const struct golden_segment *golden__segment_find(const struct golden_session *session,
                                                  uint64_t address);
// A segment or range that the device gave.
void golden__segment_add(struct golden_session *session, uint64_t address, size_t size);
// Room for one more item; aborts without host memory.
void *golden__array_grow(void *items, size_t count, size_t *capacity, size_t item_size);

// session_relations.c
void golden__relations_count(struct golden_session *session, const struct allocator_event *event);
// Aborts where the numbers do not add up.
void golden__relations_check(struct golden_session *session,
                             const struct cca_out_of_memory *numbers);

// session_words.c: the statuses of golden_session_perform.
enum base_status golden__malformed(const struct golden_request *request, const char *what);
enum base_status golden__word_number(const struct golden_request *request, size_t word,
                                     const char *what, uint64_t limit,
                                     uint64_t *number) BASE_MUST_USE;
enum base_status golden__word_stream(const struct golden_request *request, size_t word,
                                     uint64_t *stream) BASE_MUST_USE;
enum base_status golden__word_id(const struct golden_request *request, size_t word,
                                 struct golden_held **held) BASE_MUST_USE;
// Prints "ok" or the error. What is not built yet is no outcome.
enum base_status golden__print_status(const struct golden_request *request,
                                      enum base_status status) BASE_MUST_USE;
// Puts where an address lay in the recordings into a sentence that says where it lies now.
void golden__record_address(const struct golden_session *session, enum base_status status,
                            uint64_t address);

// session_pools.c: private pools.
enum base_status golden__perform_pool(struct golden_request *request) BASE_MUST_USE;
enum base_status golden__pool_snapshot(const struct golden_request *request,
                                       struct allocator_snapshot *snapshot) BASE_MUST_USE;
// None where the subject has no pools.
enum base_status golden__pool_stats(const struct golden_session *session,
                                    struct cca_pool_stats **pools, size_t *count) BASE_MUST_USE;

// session_operations.c: the statuses of golden_session_perform.
enum base_status golden__operation_run(struct golden_request *request) BASE_MUST_USE;

// session_print.c
// "SEG OFF" of an address; "- 0" for NULL.
void golden__print_address(const struct golden_session *session, const void *address, FILE *output);
int golden__stream_number(const struct golden_session *session, cudaStream_t stream); // -1: none
void golden__print_escaped(const char *text, FILE *output);
void golden__print_out_of_memory(const struct golden_session *session, const char *message,
                                 FILE *output);
void golden__print_statistics(const struct allocator_stats *stats,
                              const struct cca_pool_stats *pools, size_t pool_count, FILE *output);
void golden__print_settings(const struct golden_settings *settings, FILE *output);
void golden__print_layout(const struct golden_session *session,
                          const struct allocator_snapshot *snapshot, FILE *output);
void golden__print_trace(const struct golden_session *session, FILE *output);
// " | M1 F2", nothing if no device was called.
void golden__print_calls(const struct golden_counts *before, const struct golden_counts *after,
                         FILE *output);

#endif
