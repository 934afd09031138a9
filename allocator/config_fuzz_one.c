// See config_fuzz_one.h.
#include "allocator/config_fuzz_one.h"

#include "allocator/config.h"
#include "allocator/lint.h"
#include "base/check.h"

#include <string.h>

struct told {
    size_t refused;
};

static void on_finding(void *context, const struct cca_lint_finding *finding) {
    struct told *const told = context;
    BASE_CHECK(strchr(finding->sentence, '\n') == NULL);
    if (finding->kind == CCA_LINT_REFUSED) ++told->refused;
}

// Two configurations hold the same.
static bool equal(const struct cca__config *a, const struct cca__config *b) {
    struct cca__config x = *a, y = *b;
    if (strcmp(x.last, y.last) != 0 || x.reserve_class_count != y.reserve_class_count) return false;
    for (size_t index = 0; index < x.reserve_class_count; ++index)
        if (strcmp(x.reserve_classes[index].name, y.reserve_classes[index].name) != 0 ||
            x.reserve_classes[index].reserve.amount != y.reserve_classes[index].reserve.amount)
            return false;
    return x.sizes.max_split_size == y.sizes.max_split_size &&
           x.sizes.large_segment == y.sizes.large_segment &&
           x.sizes.max_non_split_rounding == y.sizes.max_non_split_rounding &&
           memcmp(x.sizes.divisions, y.sizes.divisions, sizeof x.sizes.divisions) == 0 &&
           x.garbage_collection_threshold == y.garbage_collection_threshold &&
           x.per_process_memory_fraction == y.per_process_memory_fraction &&
           x.expandable_segments == y.expandable_segments && x.reserve.amount == y.reserve.amount &&
           x.torch_minor == y.torch_minor && memcmp(&x.own, &y.own, sizeof x.own) == 0;
}

static void check_bounds(const struct cca__config *config) {
    const double threshold = config->garbage_collection_threshold;
    const double fraction = config->per_process_memory_fraction;
    BASE_CHECK(threshold >= 0.0 && threshold < 1.0);
    BASE_CHECK(fraction >= 0.0 && fraction <= 1.0);
    BASE_CHECK(config->sizes.large_segment > (size_t)10 << 20);
    BASE_CHECK(config->sizes.max_split_size >= config->sizes.large_segment);
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry) {
        const uint64_t division = config->sizes.divisions[entry];
        BASE_CHECK_EQ(division & (division - 1), 0);
    }
}

bool config_fuzz_one(const char *text) {
    struct cca__config first, second;
    cca__config_init(&first);
    const enum base_status status = cca__config_apply(&first, text, NULL);
    BASE_CHECK(status == BASE_OK || status == BASE_INVALID_CONFIG);
    if (status != BASE_OK) BASE_CHECK(strchr(base_status_message(), '\n') == NULL);
    const bool backend =
        status != BASE_OK && strstr(base_status_message(), "cudaMallocAsync != native") != NULL;
    check_bounds(&first);
    BASE_CHECK(strcmp(first.last, text) == 0);
    // Again over itself: what a string resets and what it sets is all there is.
    BASE_CHECK_EQ(cca__config_copy(&second, &first), BASE_OK);
    BASE_CHECK_EQ(cca__config_apply(&second, text, NULL), status);
    if (status == BASE_OK) BASE_CHECK(equal(&first, &second));
    cca__config_deinit(&first);
    cca__config_deinit(&second);

    struct told told = {0};
    const struct cca_lint_options options = {.found = on_finding, .context = &told};
    BASE_CHECK_EQ(cca_config_lint(text, &options, NULL), BASE_OK);
    // Which back end there is is no matter of the string.
    if (!backend) BASE_CHECK_EQ(told.refused > 0, status != BASE_OK);
    return status == BASE_OK;
}
