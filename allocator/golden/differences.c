// See differences.h.
#include "allocator/golden/differences.h"

#include "allocator/golden/capture_compare.h"

#include <string.h>

#define TORCH_FAULTS "x_torch_faults:True"

static const struct golden_fault split_block = {
    TORCH_FAULTS,
    "a block inside a segment is given to cudaFree after `max_split_size_mb` was lowered: the "
    "request fails with the driver's error",
    "only whole segments are released; the request is an ordinary out of memory",
    "an error that is none of the program's"};

static const struct golden_fault split_head = {
    TORCH_FAULTS,
    "a segment's first block is released with the whole segment, blocks in use included",
    "memory in use stays; the request is an ordinary out of memory",
    "the program's data would be lost without a word"};

static const struct golden_fault flushes_in_flight = {
    TORCH_FAULTS,
    "a request of a thread whose current stream does not capture completes all deferred frees, those "
    "of captures in flight too: the block is used again in the same graph before the side stream is "
    "joined",
    "what a capture in flight deferred waits for its end, or for the graph to prove it",
    "two kernels of the graph would use the memory at once"};

static const struct golden_fault keeps_stale = {
    TORCH_FAULTS,
    "what a stream came behind is remembered after its dependencies were replaced: reuse without an "
    "edge",
    "what the stream comes behind now is what counts",
    "two kernels of the graph would use the memory at once"};

static const struct golden_fault drops_use = {
    TORCH_FAULTS,
    "a stream used the block before the capture and in it: the earlier use is dropped with the later "
    "one, and the block is used again without an event",
    "the earlier use keeps its event",
    "the earlier work may still run"};

static const struct golden_fault records_into_capture = {
    TORCH_FAULTS,
    "a free in a capture by a thread whose current stream is idle records events into the capturing "
    "streams; a later request or empty_cache fails (907), and the one behind it crashes",
    "the free is deferred, whoever makes it",
    "an error that is none of the program's"};

static const struct golden_fault pends_for_ever = {
    TORCH_FAULTS,
    "an assertion breaks off a free: the block is pending for ever, and its pool never goes away",
    "the free is deferred, and complete when the capture is over",
    "memory would be lost"};

static const struct golden_fault scope_stays = {
    TORCH_FAULTS,
    "the end of a user pool's scope inside a capture is an assertion where that pool was the first to "
    "be looked at, and the scope stays open",
    "the scope ends",
    "all later requests would go to the pool"};

static const struct golden_fault queries_break = {
    TORCH_FAULTS,
    "a request beside a global capture asks the events of frees that wait: that is refused (900) and "
    "breaks the capture, and the next request crashes",
    "events are asked with the thread's capture mode relaxed: request and capture go on",
    "the capture would be lost to another thread's request"};

static const struct golden_fault restores_over_event = {
    NULL,
    "a checkpoint is restored over a block that waits for an event: it counts as active twice, and the "
    "completion of the event is an assertion",
    "the restore waits for the work first; under x_torch_faults:True it forgets the event, and the "
    "counters stay right",
    "the cache could not be emptied any more"};

const struct golden_difference golden_differences[] = {
    {"rule-release-split-block", 14, &split_block},
    {"rule-release-split-head", 9, &split_head},
    {"h37_eager_malloc_flushes_deferred_two_threads.off", 46, &flushes_in_flight},
    {"h37_eager_malloc_flushes_deferred_two_threads.on", 46, &flushes_in_flight},
    {"h37b_eager_malloc_flushes_deferred_one_thread.off", 62, &flushes_in_flight},
    {"h37b_eager_malloc_flushes_deferred_one_thread.on", 62, &flushes_in_flight},
    {"r45_eager_traffic.off", 117, &flushes_in_flight},
    {"r45_eager_traffic.on", 117, &flushes_in_flight},
    {"h27c_dependency_reset_after_proof.on", 51, &keeps_stale},
    {"h10b_used_before_and_in_capture.off", 56, &drops_use},
    {"h10b_used_before_and_in_capture.on", 41, &drops_use},
    {"h13b_free_by_thread_with_default_stream.off", 53, &records_into_capture},
    {"h13b_free_by_thread_with_default_stream.on", 41, &records_into_capture},
    {"h14_current_stream_decides.off", 102, &records_into_capture},
    {"h14_current_stream_decides.on", 73, &records_into_capture},
    {"h17_two_in_flight_one_thread.on", 50, &pends_for_ever},
    {"h18_invalidated_midway.off", 43, &pends_for_ever},
    {"h18_invalidated_midway.on", 43, &pends_for_ever},
    {"h18b_invalidated_then_free_recorded.off", 35, &pends_for_ever},
    {"h18b_invalidated_then_free_recorded.on", 35, &pends_for_ever},
    {"h24_body_capture_mismatch.on", 33, &pends_for_ever},
    {"h23c_mem_pool_scope_inside_capture.on", 51, &scope_stays},
    {"h24b_body_own_scope.on", 59, &scope_stays},
    {"h30b_eager_beside_global_capture.off", 33, &queries_break},
    {"h30b_eager_beside_global_capture.on", 33, &queries_break},
    {"h30c_eager_own_thread_beside_capture.off", 39, &queries_break},
    {"h30c_eager_own_thread_beside_capture.on", 39, &queries_break},
    {"h22b_checkpoint_with_deferred.off", 92, &restores_over_event},
    {"h22b_checkpoint_with_deferred.on", 92, &restores_over_event},
};
const size_t golden_difference_count = sizeof golden_differences / sizeof golden_differences[0];

static const struct golden_difference *difference_find(const char *path) {
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    for (size_t index = 0; index < golden_difference_count; index++) {
        const size_t length = strlen(golden_differences[index].log);
        if (strncmp(name, golden_differences[index].log, length) == 0 &&
            strcmp(name + length, ".log") == 0)
            return &golden_differences[index];
    }
    return NULL;
}

static void compare(const char *path, const struct golden_subject *subject, const char *more,
                    struct golden_result *result) {
    size_t stem_length;
    if (!golden_capture_log_is(path, &stem_length))
        golden_compare(path, subject, more, result);
    else if (subject == &golden_subject_caching)
        golden_capture_compare(path, more, GOLDEN_CAPTURE_SOUND, result);
    else
        *result = (struct golden_result){.path = path,
                                         .subject_name = subject->name,
                                         .verdict = GOLDEN_UNSUPPORTED,
                                         .reason = "needs graph captures"};
}

void golden_judge(const char *path, const struct golden_subject *subject, const char *more,
                  struct golden_result *result) {
    compare(path, subject, more, result);
    const struct golden_difference *const difference = difference_find(path);
    if (result->verdict != GOLDEN_DIFFERS || difference == NULL ||
        difference->line != result->line_number)
        return;
    if (more != NULL && difference->fault->setting != NULL)
        return;
    static struct golden_result as_torch;
    if (difference->fault->setting != NULL)
        compare(path, subject, difference->fault->setting, &as_torch);
    if (difference->fault->setting == NULL || as_torch.verdict == GOLDEN_AGREES) {
        result->verdict = GOLDEN_DIFFERS_BY_DESIGN;
        result->difference = difference;
    }
}
