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

const struct golden_difference golden_differences[] = {
    {"rule-release-split-block", 14, &split_block},
    {"rule-release-split-head", 9, &split_head},
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
    if (result->verdict != GOLDEN_DIFFERS || more != NULL)
        return;
    const struct golden_difference *const difference = difference_find(path);
    if (difference == NULL || difference->line != result->line_number)
        return;
    static struct golden_result as_torch;
    compare(path, subject, difference->fault->setting, &as_torch);
    if (as_torch.verdict == GOLDEN_AGREES) {
        result->verdict = GOLDEN_DIFFERS_BY_DESIGN;
        result->difference = difference;
    }
}
