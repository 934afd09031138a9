// Writing a pickle, protocol 4, as Python's own pickler does: framed, every container and string
// memoised, a string written once and then referred to. Streaming: memory does not grow with the
// file. Inside trace/ only.
//
// The caller nests calls as the values nest; a list or dict is opened and closed:
//
//     trace__pickler_dict_begin(&pickle);
//     trace__pickler_word(&pickle, TRACE_PICKLE_ADDR);  trace__pickler_integer(&pickle, address);
//     trace__pickler_dict_end(&pickle);
//
// Write errors show in trace__pickler_finish alone.
#ifndef TIDEMARK_TRACE_PICKLE_WRITE_H
#define TIDEMARK_TRACE_PICKLE_WRITE_H

#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Words of a snapshot: keys and values that come again and again.
#define TRACE_PICKLE_WORD_LIST(X)                                                                 \
    X(SEGMENTS, "segments")                                                                       \
    X(DEVICE_TRACES, "device_traces")                                                             \
    X(ALLOCATOR_SETTINGS, "allocator_settings")                                                   \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")                                               \
    X(DEVICE, "device") X(ADDRESS, "address") X(TOTAL_SIZE, "total_size")                         \
        X(ALLOCATED_SIZE, "allocated_size") X(ACTIVE_SIZE, "active_size")                         \
            X(REQUESTED_SIZE, "requested_size") X(STREAM, "stream")                               \
                X(SEGMENT_TYPE, "segment_type") X(LARGE, "large") X(SMALL, "small")               \
                    X(SEGMENT_POOL_ID, "segment_pool_id") X(IS_EXPANDABLE, "is_expandable")       \
                        X(FRAMES, "frames") X(BLOCKS, "blocks") X(SIZE, "size") X(STATE, "state") \
                            X(INACTIVE, "inactive") X(ACTIVE_ALLOCATED, "active_allocated")       \
                                X(ACTIVE_PENDING_FREE, "active_pending_free") X(ACTION, "action") \
                                    X(ADDR, "addr") X(DEVICE_FREE, "device_free")                 \
                                        X(TIME_US, "time_us") X(USER_METADATA, "user_metadata")   \
                                            X(POOL_ID, "pool_id") X(NAME, "name")                 \
                                                X(FILENAME, "filename") X(LINE, "line")           \
                                                    X(CONFIG, "PYTORCH_CUDA_ALLOC_CONF")          \
                                                        X(MAX_SPLIT_SIZE, "max_split_size")       \
                                                            X(GARBAGE_COLLECTION_THRESHOLD,       \
                                                              "garbage_collection_threshold")     \
                                                                X(EXPANDABLE_SEGMENTS,            \
                                                                  "expandable_segments")          \
                                                                    X(ROUNDUP_POWER2_DIVISIONS,   \
                                                                      "roundup_power2_divisions")

enum trace_pickle_word {
#define TRACE_PICKLE_WORD_ENUMERATOR(name, text) TRACE_PICKLE_##name,
    TRACE_PICKLE_WORD_LIST(TRACE_PICKLE_WORD_ENUMERATOR)
#undef TRACE_PICKLE_WORD_ENUMERATOR
        TRACE_PICKLE_WORD_COUNT
};

#define TRACE_PICKLE_FRAME_BYTES ((size_t)64 * 1024)
#define TRACE_PICKLE_UNKNOWN UINT32_MAX // no memo entry yet

struct trace_pickler {
    struct base_file file;
    unsigned char *frame; // bytes of the frame under way
    size_t frame_size;
    uint64_t written_bytes; // frames that are out
    uint32_t memo_count;
    uint32_t word_memo[TRACE_PICKLE_WORD_COUNT];
    uint32_t action_memo[16];
    int error; // errno of the first failed write, 0
};

enum base_status trace__pickler_create(struct trace_pickler *pickle,
                                       const char *path) BASE_MUST_USE;
// Ends the pickle and gives the file its name; or, if anything failed or Ctrl-C came, removes it
// and says what.
enum base_status trace__pickler_finish(struct trace_pickler *pickle) BASE_MUST_USE;
void trace__pickler_abandon(struct trace_pickler *pickle);
// Bytes so far, the frame under way included.
uint64_t trace__pickler_size(const struct trace_pickler *pickle);

void trace__pickler_integer(struct trace_pickler *pickle, uint64_t value);
void trace__pickler_signed(struct trace_pickler *pickle, int64_t value);
void trace__pickler_number(struct trace_pickler *pickle, double value);
void trace__pickler_bool(struct trace_pickler *pickle, bool value);
void trace__pickler_word(struct trace_pickler *pickle, enum trace_pickle_word word);
// *memo is TRACE_PICKLE_UNKNOWN the first time; TEXT NULL is not allowed. memo NULL: written in
// full each time.
void trace__pickler_text(struct trace_pickler *pickle, const char *text, uint32_t *memo);
// A pair of numbers, a tuple.
void trace__pickler_pair(struct trace_pickler *pickle, uint64_t first, uint64_t second,
                         uint32_t *memo);

// Containers. dict: key, value, key, value ...; list: values, with trace__pickler_list_break every
// so often in a long one.
void trace__pickler_dict_begin(struct trace_pickler *pickle);
void trace__pickler_dict_end(struct trace_pickler *pickle);
void trace__pickler_list_begin(struct trace_pickler *pickle);
void trace__pickler_list_end(struct trace_pickler *pickle);
// Appends what came since the list began or broke, so that a reader's stack stays short.
void trace__pickler_list_break(struct trace_pickler *pickle);
// The memo entry of the container begun last (to be taken right after the begin call).
uint32_t trace__pickler_last_memo(const struct trace_pickler *pickle);
void trace__pickler_refer(struct trace_pickler *pickle, uint32_t memo);

#endif
