// What the model's files share: its whole state is here.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_MODEL_INTERNAL_H
#define TIDEMARK_ALLOCATOR_GOLDEN_MODEL_INTERNAL_H

#include "allocator/golden/model.h"

// A piece of a segment. Blocks of one segment lie side by side in the array, so neighbours need no
// links.
struct model_block {
    uint64_t address;
    size_t size;
    size_t requested_size; // of its last use
    unsigned stream;
    unsigned segment; // number, in order of cudaMalloc
    bool small;
    bool expandable; // of a range that memory is mapped into
    bool unmapped;   // addresses without memory
    bool allocated;
    unsigned event_count; // not zero: freed, waiting for events
    unsigned stream_uses; // bit S: stream S was recorded
    uint64_t gc_base;
    size_t gone_bytes; // not 0: the segment went with so many, see model_faults.c
};

// The addresses of an expandable segment.
struct model_range {
    unsigned segment;
    uint64_t address;
    size_t size, page;
};

// What is known of a reserve class besides the settings.
#define MODEL_CLASS_MAX 64
struct model_class {
    char name[MODEL_CLASS_NAME];
    double fraction; // the program's default, of the device; 0: none
    bool warned;
};

struct model_pending {
    struct model_event event;
    uint64_t address; // of the block that waits
};

struct model {
    struct allocator base;
    struct model_settings settings;
    int64_t max_split_size_at_start; // as statistics show it
    struct model_device device;

    struct model_block *blocks; // by address
    size_t block_count, block_capacity;
    struct model_pending *pending; // in order of record
    size_t pending_count, pending_capacity;
    unsigned waits_for[MODEL_STREAM_MAX]; // bit S: a block of this stream has waited for stream S
    unsigned segment_count; // made so far
    struct model_range *ranges;
    size_t range_count;
    struct model_class classes[MODEL_CLASS_MAX];
    size_t class_count;
    char stream_classes[MODEL_STREAM_MAX][MODEL_CLASS_NAME];
    uint64_t exceeded_reserve; // of the request under way, which no range can hold; 0

    uint64_t total_allocated; // bytes in segments
    bool limited;             // a fraction is set
    uint64_t allowed;
    uint64_t free_block_calls[2]; // of the large pool, of the small pool
    struct allocator_stats stats;

    struct allocator_observer observer;
    struct cca_out_of_memory_observer out_of_memory_observer;
    struct cca_warning_observer warnings;
    void (*rejected)(void *context, size_t size, size_t reserved, size_t total);
    void *rejected_context;
    bool (*free_memory)(void *context, int device);
    void *free_memory_context;

    bool no_caching;
    struct model_plain {
        uint64_t address;
        size_t size;
    } * plain; // without a cache: what the device gave
    size_t plain_count, plain_capacity;
};

static inline struct model *model_of(struct allocator *allocator) {
    return (struct model *)allocator;
}

// What a walk over free blocks asks for; a zero field asks for nothing.
struct model_filter {
    bool small;      // which pool
    bool any_stream; // else only this stream
    unsigned stream;
    size_t size_min;
    double age_min;     // turns of the pool since the block became free
    bool whole_segment; // not split
    bool plain;         // not expandable
};

#define MODEL_NONE SIZE_MAX // no block

// model_blocks.c: indices are into the array of blocks; they move with every insertion and removal.
void model__stat_change(struct allocator_stat *stat, int64_t by);
void model__family_change(struct allocator_stat family[ALLOCATOR_STAT_KIND_COUNT], bool small,
                          int64_t by);
bool model__is_oversize(const struct model *model, size_t size);
void model__block_insert(struct model *model, size_t index, const struct model_block *block);
void model__block_remove(struct model *model, size_t index);
size_t model__block_find(const struct model *model, uint64_t address);
bool model__is_split(const struct model *model, size_t index);
bool model__matches(const struct model *model, size_t index, const struct model_filter *filter);
size_t model__first_match(const struct model *model, const struct model_filter *filter);
size_t model__last_match(const struct model *model, const struct model_filter *filter);
size_t model__next_match(const struct model *model, const struct model_filter *filter,
                         size_t index); // the first one after the one at INDEX
size_t model__merge(struct model *model, size_t index, size_t other);
void model__free_block(struct model *model, size_t index);
void *model__array_grow(void *items, size_t count, size_t *capacity, size_t item_size);
void model__insert_events(struct model *model, size_t index);
// For a request on STREAM.
void model__process_events(struct model *model, unsigned stream);
void model__finish_pending(struct model *model, size_t index);
void model__synchronize_and_free_events(struct model *model);

// model.c
// The best fit, unless the oversize rules refuse it.
size_t model__search(struct model *model, size_t rounded, unsigned stream, bool small);
bool model__refuses(const struct model *model, const struct model_block *block, size_t rounded);
bool model__should_split(const struct model *model, size_t index, size_t rounded);
// How much of an oversize block a request may waste, less one byte.
size_t model__surplus_max(const struct model_settings *settings);
// Gives the block at INDEX to the program, split if it is much larger than needed; returns its
// address.
uint64_t model__hand_out(struct model *model, size_t index, size_t rounded, size_t requested);

// model_own.c: whether a segment of another stream came; the block that waiting for enough made.
bool model__reclaim_idle(struct model *model, size_t rounded, size_t segment_size, unsigned stream,
                         bool small);
size_t model__wait_for_enough(struct model *model, size_t rounded, unsigned stream, bool small);

// model_other.c: malloc and free without a cache.
enum base_status model__plain_malloc(struct model *model, size_t size, void **pointer);
enum base_status model__plain_free(struct model *model, void *pointer);

// model_segments.c: the ladder after a miss gives the index of a new segment's block.
bool model__collects_garbage(const struct model *model);
void model__release_cached_blocks(struct model *model);
enum base_status model__grow(struct model *model, size_t requested, size_t rounded, unsigned stream,
                             bool small, size_t *index) BASE_MUST_USE;

size_t model__segment_insert(struct model *model, const struct model_block *block);
void model__release_block(struct model *model, size_t index);
// All statistics of a segment that went but that of the call.
void model__count_release(struct model *model, const struct model_block *block);

// model_faults.c: releases a block that nobody has looked at; takes off what is gone and unused.
enum base_status model__release_unseen(struct model *model, size_t index) BASE_MUST_USE;
void model__settle_gone(struct model *model);

// model_expandable.c
bool model__expands(const struct model *model);
size_t model__candidate(const struct model *model, const struct model_filter *filter);
enum base_status model__expandable_allocate(struct model *model, size_t rounded, unsigned stream,
                                            bool small, size_t *index) BASE_MUST_USE;
void model__release_expandable(struct model *model, bool small);

// model_config.c: applies CONFIG to the settings; on an error what was applied before it stays.
void model__settings_init(struct model_settings *settings);
enum base_status model__settings_apply(struct model_settings *settings, const char *config,
                                       const struct cca_warning_observer *warnings) BASE_MUST_USE;

void model__warn(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// model_query.c: what changes nothing but statistics.
enum base_status model__reject(struct model *model, size_t segment_size, size_t requested);
size_t model__round_size(const struct model_settings *settings, size_t size);
size_t model__segment_size(const struct model_settings *settings, size_t rounded);
void model__event(struct model *model, enum allocator_action action,
                  const struct model_block *block, size_t size);
enum base_status model__out_of_memory(struct model *model, size_t rounded, size_t segment_size,
                                      unsigned stream);
void model__query_operations(struct allocator_operations *operations);

#endif
