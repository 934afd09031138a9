// What replays a decision log: an allocator together with the device below it, opened anew for each
// log.
//
// The allocator is driven through allocator/allocator.h; a subject adds what that interface does
// not have: settings, the memory fraction, and the device's side of the story (streams, events,
// foreign memory, faults, counts).
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_SUBJECT_H
#define TIDEMARK_ALLOCATOR_GOLDEN_SUBJECT_H

#include "allocator/cca.h"
#include "allocator/pools.h"
#include "allocator/settings.h"

// Streams of the logs: 0 is the default stream.
#define GOLDEN_STREAM_COUNT 8

#define GOLDEN_CONFIG_LENGTH_MAX 4095

// Device calls since the subject was opened. `malloc` counts successes only.
struct golden_counts {
    uint64_t malloc, malloc_failed, free;
    uint64_t address_reserve, address_free, create, create_failed; // create: successes only
    uint64_t release, map, unmap, set_access;
    uint64_t stream_synchronize, device_synchronize;
    uint64_t event_record, event_synchronize, event_query, event_create;
    uint64_t used_bytes; // of the device, in whole pages
    uint64_t callback;   // runs of the free-memory callbacks that freed something: the session's
};

// What a subject is opened with.
struct golden_options {
    const char *config;
    uint64_t capacity_bytes; // of the device
    bool no_caching;         // PYTORCH_NO_CUDA_MEMORY_CACHING
};

// All settings as a log prints them; reserves are those for 80 GiB.
struct golden_settings {
    size_t large, split, rounding; // SIZE_MAX: unlimited
    double gc, fraction;
    bool expandable, unlock, reuse, throws;
    uint64_t divisions[CCA_SETTINGS_DIVISION_COUNT];
    struct golden_reserve {
        size_t bytes; // 0: not set
        bool own;     // by an entry of the class
    } reserve[3];     // for no class, class a, class b
    bool host_register, background, catches;
    uint64_t threads, pinned_reserve;
    size_t round, cached; // SIZE_MAX: unlimited
    char last[GOLDEN_CONFIG_LENGTH_MAX + 1];
};

// Private pools: the calls of allocator/pools.h on the one device.
struct golden_pools {
    // RAW: with an allocator of its own, which calls cudaMalloc and cudaFree.
    enum base_status (*create)(struct allocator *allocator, struct allocator_pool_id id, bool raw);
    enum base_status (*begin)(struct allocator *allocator, struct allocator_pool_id id,
                              const struct cca_pool_filter *filter);
    enum base_status (*end)(struct allocator *allocator, struct allocator_pool_id id);
    enum base_status (*release)(struct allocator *allocator, struct allocator_pool_id id);
    enum base_status (*empty)(struct allocator *allocator, struct allocator_pool_id id);
    enum base_status (*destroy)(struct allocator *allocator, struct allocator_pool_id id);
    enum base_status (*count)(struct allocator *allocator, struct allocator_pool_id id,
                              int64_t *count);
    enum base_status (*set_use_on_oom)(struct allocator *allocator, struct allocator_pool_id id,
                                       bool on);
    enum base_status (*set_no_split)(struct allocator *allocator, struct allocator_pool_id id);
    enum base_status (*stats)(struct allocator *allocator, struct cca_pool_stats **pools,
                              size_t *count);
    enum base_status (*snapshot)(struct allocator *allocator, struct allocator_pool_id id,
                                 struct allocator_snapshot *snapshot);
};

struct golden_subject {
    const char *name;
    const struct golden_pools *pools; // NULL: it has none

    // A fresh device and an allocator on it. The statuses of cca_allocator_create.
    enum base_status (*open)(const struct golden_options *options, struct allocator **allocator);
    void (*close)(struct allocator *allocator);

    enum base_status (*set_config)(struct allocator *allocator, const char *config);
    enum base_status (*settings)(struct allocator *allocator, struct golden_settings *settings);
    // What CONFIG would come to in a fresh process; *settings is set in any case.
    enum base_status (*read_settings)(const char *config,
                                      const struct cca_warning_observer *warnings,
                                      struct golden_settings *settings);
    void (*observe_warnings)(struct allocator *allocator,
                             const struct cca_warning_observer *observer);
    enum base_status (*set_fraction)(struct allocator *allocator, double fraction);
    enum base_status (*fraction)(struct allocator *allocator, double *fraction);
    enum base_status (*round_size)(struct allocator *allocator, size_t size, size_t *rounded,
                                   size_t *segment);
    enum base_status (*observe_out_of_memory)(struct allocator *allocator,
                                              const struct cca_out_of_memory_observer *observer);
    // REJECTED is told of each segment that was refused before the device was asked: bytes wanted,
    // reserved, and of the device.
    void (*observe_rejections)(struct allocator *allocator,
                               void (*rejected)(void *context, size_t size, size_t reserved,
                                                size_t total),
                               void *context);
    // FREE_MEMORY returns whether it freed something, with allocator_free.
    enum base_status (*add_free_memory_callback)(struct allocator *allocator,
                                                 bool (*free_memory)(void *context, int device),
                                                 void *context);
    enum base_status (*malloc_at)(struct allocator *allocator, size_t size, cudaStream_t stream,
                                  uint64_t address, void **pointer);
    // Whether the device tells its processes: this one, and 4242, which holds what is foreign.
    void (*list_processes)(struct allocator *allocator, bool on);

    cudaStream_t (*stream)(unsigned number); // valid until close
    void (*complete)(struct allocator *allocator,
                     unsigned stream); // all work recorded on it so far is done
    void (*complete_at_once)(
        struct allocator *allocator); // from here on events complete when recorded
    // Of the next segments and ranges, in order, in place of what was queued before.
    void (*queue_addresses)(struct allocator *allocator, const uint64_t *addresses, size_t count);
    void (*set_foreign_bytes)(struct allocator *allocator, uint64_t bytes);
    void (*fail_malloc)(struct allocator *allocator, uint64_t n,
                        int code); // the N-th next cudaMalloc
    void (*fail_create)(struct allocator *allocator, uint64_t n,
                        int code); // the N-th next cuMemCreate
    enum base_status (*set_stream_class)(struct allocator *allocator, cudaStream_t stream,
                                         const char *name); // "": none
    enum base_status (*set_class_default)(struct allocator *allocator, const char *name,
                                          double fraction);
    enum base_status (*expandable_segments)(struct allocator *allocator,
                                            struct cca_expandable_segment **segments,
                                            size_t *count);
    void (*counts)(struct allocator *allocator, struct golden_counts *counts);
    void (*check)(struct allocator *allocator); // aborts on a broken invariant
};

extern const struct golden_subject golden_subject_caching; // the caching allocator on the simulator
extern const struct golden_subject golden_subject_model;   // the naive model on its own device

// "caching" or "model"; NULL for another name.
const struct golden_subject *golden_subject_find(const char *name);

#endif
