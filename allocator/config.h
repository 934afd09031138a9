// The configuration string: PyTorch 2.15's PYTORCH_CUDA_ALLOC_CONF, plus keys of our own that
// start with `x_`.
//
//     max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]
//
// Parsed as PyTorch 2.15 does, with its quirks: two passes over the whole string (keys that every
// back end knows, then CUDA's), separators that are not enforced, numbers read up to the first
// character that is none. An error leaves what was applied before it in force. `x_torch:VERSION`
// anywhere in the string takes the rules of an older release: the keys it knew, its bounds, and up
// to 2.8 one pass and separators that are enforced.
//
//     config_text     the text cut into tokens, and values read off them
//     config_keys     one function a key
//     config_table    the table of all keys, with what docs/configuration.md says of them
//     config_reserve  how much address space an expandable segment reserves
//     config          the walks over the string; what a second string resets
#ifndef TIDEMARK_ALLOCATOR_CONFIG_H
#define TIDEMARK_ALLOCATOR_CONFIG_H

#include "allocator/size_class.h"
#include "base/status.h"

struct cca_warning_observer;

// An amount of address space: a share of the device's memory, or so many GiB.
struct cca__reserve {
    double amount; // 0: not set
    bool in_gib;
};

struct cca__reserve_class {
    char *name;
    struct cca__reserve reserve;
};

// Settings of PyTorch's allocator for page-locked host memory. Nothing here acts on them.
struct cca__pinned_config {
    bool use_cuda_host_register, use_background_threads, free_catch_all;
    uint64_t num_register_threads;     // a power of two
    uint64_t reserve_segment_mib;      // 0: no segment is reserved
    size_t max_round, max_cached_size; // CCA_UNLIMITED
};

// x_capture_reuse: the form of reuse inside a capture (capture_reuse.h, capture_markers.h).
enum cca__capture_reuse_form {
    CCA__CAPTURE_REUSE_TORCH, // as graph_capture_record_stream_reuse and the release have it
    CCA__CAPTURE_REUSE_TERMINALS,
    CCA__CAPTURE_REUSE_MARKERS,
    CCA__CAPTURE_REUSE_MARKERS_GRAPH, // by the graph-wide rule
};

// Keys of our own, each off by default (docs/configuration.md).
struct cca__own_config {
    bool retry_search; // x_retry_search
    bool wait_enough;  // x_wait:enough
    bool skip_stuck;   // x_skip_stuck
    bool bound_growth; // x_bound_growth
    bool reclaim_idle; // x_reclaim_idle
    bool poll_own;     // x_poll:own
    bool torch_faults; // x_torch_faults
    enum cca__capture_reuse_form capture_reuse;
};

#define CCA__TORCH_MINOR_LATEST 15

struct cca__config {
    struct cca__size_rules sizes;        // first: the hit path reads it
    double garbage_collection_threshold; // 0: off
    double per_process_memory_fraction;  // the start value of a device's fraction; 1: no limit
    bool release_lock_on_cudamalloc;
    bool throw_on_cudamalloc_oom;
    bool graph_capture_record_stream_reuse;
    bool expandable_segments;
    struct cca__reserve reserve;                // expandable_segments_reserve
    struct cca__reserve_class *reserve_classes; // expandable_segments_reserve_by_class, by name
    size_t reserve_class_count;
    struct cca__pinned_config pinned;
    int torch_minor;     // x_torch: the rules of PyTorch 2.this
    bool tie_by_address; // up to 2.11: equal sizes by address, not by age of the segment
    struct cca__own_config own;
    char *last; // the string that was applied last, right or wrong; NULL before the first
};

// Every setting at its default.
void cca__config_init(struct cca__config *config);
void cca__config_deinit(struct cca__config *config);

// *COPY owns its texts. BASE_HOST_MEMORY.
enum base_status cca__config_copy(struct cca__config *copy,
                                  const struct cca__config *config) BASE_MUST_USE;

// Applies TEXT (NULL: "") to *config: max_split_size, rounding table, gc threshold and
// max_non_split_rounding fall back to their defaults first, other keys keep their value.
// BASE_INVALID_CONFIG: *config holds the resets and what came before the error. The sentence is
// PyTorch's own, or ours followed by "(PyTorch: CLASS SENTENCE)". Values that PyTorch ignores with
// a warning are told to WARNINGS, which may be NULL.
enum base_status cca__config_apply(struct cca__config *config, const char *text,
                                   const struct cca_warning_observer *warnings) BASE_MUST_USE;

// How much address space an expandable segment reserves on a device of TOTAL bytes for a stream of
// CLASS (NULL: of none): by the entry of the class, else by the setting for all, 0 if neither is
// set. Not capped: what does not fit is SIZE_MAX. *OWN (may be NULL): the class has an entry.
size_t cca__config_reserve(const struct cca__config *config, const char *class, size_t total,
                           bool *own);

#endif
