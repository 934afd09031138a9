// The table of all keys. docs/configuration.md is made from it.
//
// `since` is the first release that reads the key. PyTorch does not document it; where a release
// was inferred from dates of public changes, `about` says so. 0: 2.0 or before.
#include "allocator/config_keys.h"

#include <string.h>

const struct cca__config_key cca__config_keys[] = {
    // Sizes.
    {.name = "max_split_size_mb",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_SIZES,
     .resets = true,
     .value = "MIB",
     .range = "`large_segment_size_mb` and up (up to 2.10: above 20)",
     .standard = "unlimited",
     .does =
         "Blocks of this size and above are *oversize*: they are never split, a smaller request "
         "never takes one, and a request of this size or more takes one only if it wastes less "
         "than `max_non_split_rounding_mb`. When the device is full, cached oversize blocks of "
         "the same stream are released first, as few as will do.",
     .parse = cca__parse_max_split_size},
    {.name = "max_non_split_rounding_mb",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_SIZES,
     .since = 6,
     .about = true,
     .resets = true,
     .value = "MIB",
     .range = "`large_segment_size_mb` and up",
     .standard = "`large_segment_size_mb`",
     .does = "How much of an oversize block a request may waste: a cached block larger than the "
             "request by this much or more is not taken. Means something only beside "
             "`max_split_size_mb`.",
     .parse = cca__parse_max_non_split_rounding},
    {.name = "large_segment_size_mb",
     .pass = CCA__PASS_FIRST,
     .group = CCA__GROUP_SIZES,
     .since = 11,
     .about = true,
     .value = "MIB",
     .range = "above 10",
     .standard = "20",
     .does = "Size of a new segment for requests above 1 MiB and below 10 MiB, and the page of "
             "expandable segments of the large pool. Read before all other keys, wherever it "
             "stands; `max_non_split_rounding_mb` follows it.",
     .parse = cca__parse_large_segment},
    {.name = "roundup_power2_divisions",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_SIZES,
     .resets = true,
     .value = "N or [MIB:N,...,>:N]",
     .range = "N: a power of two, in a list also 0; MIB: powers of two",
     .standard = "no rounding",
     .does =
         "Rounds a request up to the next of N equal steps between two powers of two, so that "
         "sizes that differ little share blocks: with 4, 1,200 MiB become 1,280. 0 and 1 round "
         "to 512 bytes only, as do sizes up to 512 x N bytes. In a list, MIB:N rules sizes from "
         "MIB MiB up to below twice that; the first entry also all below, `>` all above the "
         "last; entries in between that are not listed round nothing.",
     .parse = cca__parse_divisions},
    // Limits.
    {.name = "garbage_collection_threshold",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_LIMITS,
     .resets = true,
     .value = "SHARE",
     .range = "above 0, below 1",
     .standard = "off",
     .does =
         "Once reserved memory exceeds this share of the memory that the process may use, a new "
         "segment first releases whole cached blocks of the large pool that lay idle longest. "
         "Only where a memory fraction below 1 is set.",
     .parse = cca__parse_gc_threshold},
    {.name = "per_process_memory_fraction",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_LIMITS,
     .since = 9,
     .about = true,
     .value = "SHARE",
     .range = "0 to 1",
     .standard = "1, no limit",
     .does =
         "Share of the device's memory that the allocator may reserve: the value that "
         "`set_per_process_memory_fraction` starts with. Given later it only moves the limit of "
         "`throw_on_cudamalloc_oom`.",
     .parse = cca__parse_fraction},
    {.name = "throw_on_cudamalloc_oom",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_LIMITS,
     .since = 12,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Refuses a request at once that would take the allocator beyond "
             "`per_process_memory_fraction` of the device, without asking the device and without "
             "releasing cached memory. Says so in words of its own, and warns at most once a "
             "minute.",
     .parse = cca__parse_throw},
    // Expandable segments.
    {.name = "expandable_segments",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_EXPANDABLE,
     .since = 1,
     .value = "True or False",
     .standard = "False",
     .does = "Segments that grow: address space is reserved once, memory is mapped page by page "
             "behind what is there, so that free neighbours can always merge.",
     .parse = cca__parse_expandable},
    {.name = "expandable_segments_reserve",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_EXPANDABLE,
     .since = 14,
     .about = true,
     .value = "SHARE or GIBG",
     .range = "above 0; at most 9/8 of the device are taken",
     .standard = "9/8 of the device",
     .does = "Address space that an expandable segment reserves: `0.5` of the device's memory, "
             "`40G` GiB. A value that is neither is ignored with a warning.",
     .parse = cca__parse_reserve},
    {.name = "expandable_segments_reserve_by_class",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_EXPANDABLE,
     .since = 14,
     .about = true,
     .value = "[NAME:RESERVE,...]",
     .range = "as `expandable_segments_reserve`",
     .standard = "no entries",
     .does =
         "The same for streams that the program put into a class of that name. A list replaces "
         "the one before; of equal names the last counts; an entry whose value is ignored is no "
         "entry.",
     .parse = cca__parse_reserve_by_class},
    // Behaviour.
    {.name = "backend",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_BEHAVIOUR,
     .value = "native or cudaMallocAsync",
     .standard = "native",
     .does =
         "Which allocator: PyTorch's own or the driver's pools. It is chosen when the library "
         "is loaded: the string of one that there is cannot name the other. Here a program's "
         "`--config` chooses by it, as by `x_allocator:async`.",
     .parse = cca__parse_backend},
    {.name = "release_lock_on_cudamalloc",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_BEHAVIOUR,
     .since = 1,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Other threads may use the allocator while one waits for cudaMalloc. Decides nothing "
             "else.",
     .parse = cca__parse_release_lock},
    {.name = "release_lock_on_hipmalloc",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_BEHAVIOUR,
     .since = 2,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Another name of `release_lock_on_cudamalloc`.",
     .parse = cca__parse_release_lock},
    {.name = "graph_capture_record_stream_reuse",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_BEHAVIOUR,
     .since = 9,
     .value = "True or False",
     .standard = "False",
     .does =
         "Inside a graph capture a block that was freed after record_stream is used again in the "
         "same capture once the graph's edges prove that this is safe; without it such a block "
         "waits until the capture is over. In 2.9 in its first form (`x_capture_reuse`).",
     .parse = cca__parse_reuse},
    // Page-locked host memory.
    {.name = "pinned_use_cuda_host_register",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 2,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Page-locked memory comes from malloc and cudaHostRegister instead of cudaHostAlloc.",
     .parse = cca__parse_host_register},
    {.name = "pinned_use_hip_host_register",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 2,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Another name of `pinned_use_cuda_host_register`.",
     .parse = cca__parse_host_register},
    {.name = "pinned_num_register_threads",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 2,
     .about = true,
     .value = "N",
     .range = "a power of two, at most 128",
     .standard = "1",
     .does =
         "Threads that touch the pages of a block before it is registered. Means something only "
         "beside `pinned_use_cuda_host_register:True`.",
     .parse = cca__parse_register_threads},
    {.name = "pinned_use_background_threads",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 5,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "A thread of its own polls the events of freed blocks.",
     .parse = cca__parse_background_threads},
    {.name = "pinned_reserve_segment_size_mb",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 10,
     .about = true,
     .value = "MIB",
     .range = "above 0",
     .standard = "none",
     .does = "One segment of this size is taken at first use and serves small requests.",
     .parse = cca__parse_pinned_reserve},
    {.name = "pinned_free_catch_all",
     .pass = CCA__PASS_CUDA,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 13,
     .about = true,
     .value = "True or False",
     .standard = "False",
     .does = "Errors while a block is freed are swallowed.",
     .parse = cca__parse_free_catch_all},
    {.name = "pinned_max_round_threshold_mb",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 13,
     .about = true,
     .value = "MIB",
     .range = "0 and up",
     .standard = "unlimited",
     .does = "Requests above it are not rounded up to a power of two.",
     .parse = cca__parse_max_round},
    {.name = "pinned_max_cached_size_mb",
     .pass = CCA__PASS_GENERIC,
     .group = CCA__GROUP_PINNED,
     .effect = CCA__IDLE,
     .since = 13,
     .about = true,
     .value = "MIB",
     .range = "0 and up",
     .standard = "unlimited",
     .does = "Blocks above it are neither rounded nor cached: they go back when freed.",
     .parse = cca__parse_max_cached},
    // Ours.
    {.name = "x_torch",
     .pass = CCA__PASS_FIRST,
     .group = CCA__GROUP_OWN,
     .value = "VERSION",
     .range = "2.0 to 2.15",
     .standard = "2.15",
     .does =
         "The rules of that release where the reference tells them: which keys exist and how the "
         "string is read; up to 2.11 equal blocks by address instead of by age of the segment; "
         "up to about 2.8 a fraction's limit is cut instead of rounded, and 1 is a limit, too. "
         "Read before all other keys, wherever it stands.",
     .parse = cca__parse_version},
    {.name = "x_capture_reuse",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "torch, terminals, markers or markers_graph",
     .standard = "torch",
     .does =
         "The form of reuse inside a capture. `torch`: as `graph_capture_record_stream_reuse` "
         "says, in the form of the release. The others are on whatever that key says: `terminals` "
         "is the present form, `markers` the first one (an empty node for each stream that used "
         "the block, to be before all that the allocating stream waits for), `markers_graph` the "
         "first one with the rule for all streams at once. The first form walks the whole graph "
         "at each request, and the driver refuses the end of a capture whose last free comes "
         "behind the last join (docs/capture-reuse.md); for comparison.",
     .parse = cca__parse_capture_reuse},
    {.name = "x_torch_faults",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "True or False",
     .standard = "False",
     .does =
         "PyTorch's decision also where it is unsound: when `max_split_size_mb` is lowered at run "
         "time, split blocks of that size are released as if each were a segment, so that a "
         "request fails with the driver's error, or memory in use goes back to the device. Blocks "
         "of a segment that went can still be freed, once each; no part of it is handed out again. "
         "And in graph captures: what a capture in flight still uses is handed out after a request "
         "outside of it, uses from before the capture are forgotten, events are recorded into "
         "captures and asked in the thread's own mode, frees in a failed capture are refused. "
         "For comparisons with PyTorch, not for use.",
     .parse = cca__parse_torch_faults},
    {.name = "x_retry_search",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "True or False",
     .standard = "False",
     .does =
         "Searches the free blocks again after the wait for all events, before cached memory is "
         "released: PyTorch reports out of memory although what it waited for would do "
         "(pt#189504). One search more for a request that would fail or release everything.",
     .parse = cca__parse_retry_search},
    {.name = "x_wait",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "all or enough",
     .standard = "all",
     .does =
         "`enough`: where nothing else helps, a request first waits only for pending frees of its "
         "own stream that lie together in enough memory for it, those with the fewest blocks; for "
         "all events of the device only if that does not do (pt#171771). At most as many waits as "
         "without it; each comes with a walk over the queued events.",
     .parse = cca__parse_wait},
    {.name = "x_skip_stuck",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "True or False",
     .standard = "False",
     .does =
         "Polls past an unfinished event of a stream to finished ones behind it: one handle can "
         "name several streams (cudaStreamPerThread, a stream destroyed and made anew), and one "
         "that is stuck holds the blocks of all (pt#71616). At most 16 queries more a queue and "
         "poll.",
     .parse = cca__parse_skip_stuck},
    {.name = "x_bound_growth",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "True or False",
     .standard = "False",
     .does =
         "The oversize rule leaves blocks of expandable segments alone, so that they cannot grow "
         "without end beside `max_split_size_mb` (pt#193400). Such a block is split whatever its "
         "size: what the rule is for costs nothing there.",
     .parse = cca__parse_bound_growth},
    {.name = "x_reclaim_idle",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "True or False",
     .standard = "False",
     .does =
         "Before the device is asked, a wholly free segment of another stream's cache is taken: an "
         "event orders the two streams on the device, the host waits for nothing "
         "(Megatron-LM#6885, pt#182222). At most one segment a request, larger than a new one by "
         "less than `max_non_split_rounding_mb`; the stream that had it may have to ask the device "
         "again, and the work of the two is ordered from there on. Segments of cudaMalloc only; "
         "never of or for cudaStreamPerThread or a stream that captures.",
     .parse = cca__parse_reclaim_idle},
    {.name = "x_poll",
     .pass = CCA__PASS_OWN,
     .group = CCA__GROUP_OWN,
     .value = "all or own",
     .standard = "all",
     .does =
         "`own`: a request polls only the streams that blocks of its own stream wait for, instead "
         "of all streams of the device: fewer queries, and threads of different streams do not "
         "meet. Pending memory of other streams is seen at their own next request, or when "
         "everything is released, at the latest.",
     .parse = cca__parse_poll},
};

const size_t cca__config_key_count = sizeof cca__config_keys / sizeof cca__config_keys[0];

const struct cca__config_key *cca__config_key_find(const char *name) {
    for (size_t index = 0; index < cca__config_key_count; ++index)
        if (strcmp(cca__config_keys[index].name, name) == 0) return &cca__config_keys[index];
    return NULL;
}

bool cca__config_key_known(const struct cca__config_key *key, int minor) {
    return minor >= key->since;
}
