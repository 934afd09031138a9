// The naive model: PyTorch's caching allocator over one plain array that every question walks from
// end to end. Slow, and short enough to be read against the contract line by line. It is the oracle
// of the property tests, and it was written from the contract alone; it shares no code with the
// caching allocator.
//
//     struct allocator *model;
//     status = model_create("max_split_size_mb:64", 4 * BASE_GIB, &model);
//     status = allocator_malloc(model, 0, 1000, stream, &pointer);     like any other allocator
//     allocator_destroy(model);
//
// Modelled: rounding, both pools, best fit, split and merge, oversize rules, fraction and garbage
// collection, the release ladder, record_stream and events, every statistic, trace entries (through
// the observer), snapshot, out of memory with PyTorch's text, pre-emptive rejection, free-memory
// callbacks, allocation at an address, no cache at all, settings changed at run time. Not modelled:
// private pools, captures, several devices.
//
// A stream's handle is its number, 0 to MODEL_STREAM_MAX - 1. Not thread-safe.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_MODEL_H
#define TIDEMARK_ALLOCATOR_GOLDEN_MODEL_H

#include "allocator/cca.h"
#include "allocator/golden/model_device.h"

#define MODEL_DIVISION_COUNT    16
#define MODEL_UNLIMITED         SIZE_MAX
#define MODEL_CONFIG_LENGTH_MAX 4095

#define MODEL_CLASS_NAME        64
#define MODEL_RESERVE_CLASS_MAX 16
struct model_reserve {
    double amount; // 0: not set
    bool in_gib;   // else a part of the device
};
struct model_reserve_class {
    char name[MODEL_CLASS_NAME];
    struct model_reserve reserve;
};

struct model_settings {
    size_t max_split_size;         // MODEL_UNLIMITED if not set
    size_t max_non_split_rounding; // 0: as the large segment
    size_t large_segment_size;
    double gc_threshold;   // 0: off
    double start_fraction; // what the memory fraction starts with, 1: no limit; not reset
    size_t divisions[MODEL_DIVISION_COUNT];
    unsigned minor;       // the rules of PyTorch 2.minor
    bool ties_by_address; // PyTorch up to 2.11; later by age of the segment
    bool releases_lock;   // only said: it decides nothing in one thread
    bool throws;          // throw_on_cudamalloc_oom
    bool expandable;
    bool reuses; // graph_capture_record_stream_reuse; only said
    struct model_reserve reserve;
    struct model_reserve_class reserve_classes[MODEL_RESERVE_CLASS_MAX];
    size_t reserve_class_count;
    struct {
        bool host_register, background, catches;
        uint64_t threads, reserve_mib;
        size_t max_round, max_cached;
    } pinned; // only said
    struct {
        bool torch_faults, retry_search, wait_enough, skip_stuck, reclaim_idle, poll_own;
        bool bound_growth; // oversize rules leave expandable blocks alone
    } own;
    char last[MODEL_CONFIG_LENGTH_MAX + 1]; // the text given last
};

// BASE_INVALID_CONFIG says what is wrong with the text.
enum base_status model_create(const char *config, uint64_t capacity_bytes,
                              struct allocator **allocator) BASE_MUST_USE;

// These answer as the functions of allocator/cca.h that they are named after.
enum base_status model_set_config(struct allocator *allocator, const char *config) BASE_MUST_USE;
// What CONFIG comes to in a fresh process; *SETTINGS is set in any case.
enum base_status model_read_settings(const char *config,
                                     const struct cca_warning_observer *warnings,
                                     struct model_settings *settings) BASE_MUST_USE;
enum base_status model_set_memory_fraction(struct allocator *allocator,
                                           double fraction) BASE_MUST_USE;
const struct model_settings *model_settings(struct allocator *allocator);
double model_memory_fraction(struct allocator *allocator);
void model_round_size(struct allocator *allocator, size_t size, size_t *rounded, size_t *segment);
void model_set_out_of_memory_observer(struct allocator *allocator,
                                      const struct cca_out_of_memory_observer *observer);

void model_set_rejection_observer(struct allocator *allocator,
                                  void (*rejected)(void *context, size_t size, size_t reserved,
                                                   size_t total),
                                  void *context);
void model_add_free_memory_callback(struct allocator *allocator,
                                    bool (*free_memory)(void *context, int device), void *context);
enum base_status model_malloc_at(struct allocator *allocator, size_t size, cudaStream_t stream,
                                 uint64_t address, void **pointer) BASE_MUST_USE;
// From here on each request is the device's, and nothing is counted.
void model_stop_caching(struct allocator *allocator);

// The bytes that settings reserve for a class ("": none); 0 if they say nothing. *own: by an entry
// of the class.
uint64_t model_reserve(const struct model_settings *settings, const char *class, uint64_t total,
                       bool *own);
void model_set_warning_observer(struct allocator *allocator,
                                const struct cca_warning_observer *observer);
void model_set_stream_class(struct allocator *allocator, unsigned stream, const char *name);
void model_set_class_default(struct allocator *allocator, const char *name, double fraction);
enum base_status model_expandable_segments(struct allocator *allocator,
                                           struct cca_expandable_segment **segments,
                                           size_t *count) BASE_MUST_USE;

// The device below, to arrange what no request can and to read its counts.
struct model_device *model_device(struct allocator *allocator);

#endif
