// Any text at all: the parser of settings and the lint end with an answer, the same each time, and
// agree on what is refused. The strings recorded from PyTorch are the seeds; the lint is held to
// what PyTorch said of them.
//
//     bazel run //allocator:config_fuzz_test -- --seed 7 --count 1000000
#include "allocator/config.h"
#include "allocator/lint.h"
#include "base/check.h"
#include "base/options.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE      "allocator/golden/testdata/table-config.log"
#define TEXT_BYTES 4096
#define SEED_MAX   300

static uint64_t count = 20000;
static char *seeds[SEED_MAX];
static bool seed_accepted[SEED_MAX];
static size_t seed_count;

// \n \t \r \v \f \\ stand for the characters.
static void unescape(char *text) {
    static const char codes[] = "ntrvf\\", characters[] = "\n\t\r\v\f\\";
    char *out = text;
    for (const char *in = text; *in != '\0'; ++in) {
        const char *const code = *in == '\\' && in[1] != '\0' ? strchr(codes, in[1]) : NULL;
        *out++ = code != NULL ? characters[code - codes] : *in;
        if (code != NULL) ++in;
    }
    *out = '\0';
}

static void read_seeds(void) {
    FILE *const table = fopen(TABLE, "r");
    BASE_CHECK(table != NULL);
    char line[TEXT_BYTES];
    while (fgets(line, sizeof line, table) != NULL) {
        if (strncmp(line, "cfg ", 4) != 0) continue;
        char *separator = strstr(line, " = ok");
        const bool accepted = separator != NULL;
        if (!accepted) separator = strstr(line, " = error ");
        BASE_CHECK(separator != NULL && seed_count < SEED_MAX);
        *separator = '\0';
        seed_accepted[seed_count] = accepted;
        seeds[seed_count] = strdup(separator > line + 4 ? line + 4 : "");
        unescape(seeds[seed_count++]);
    }
    fclose(table);
    BASE_CHECK_EQ(seed_count, 241);
}

//------------------------------------------------------------------------------------------------
// One text.

struct told {
    size_t refused, unbuilt;
};

static void on_finding(void *context, const struct cca_lint_finding *finding) {
    struct told *const told = context;
    BASE_CHECK(strchr(finding->sentence, '\n') == NULL);
    if (strcmp(finding->rule, "not-built") == 0)
        ++told->unbuilt;
    else if (finding->kind == CCA_LINT_REFUSED)
        ++told->refused;
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

// Whether the text is accepted.
static bool check_text(const char *text) {
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

static void lint_refuses_what_pytorch_refuses(void) {
    for (size_t index = 0; index < seed_count; ++index) {
        base_check_context("'%s'", seeds[index]);
        BASE_CHECK_EQ(check_text(seeds[index]), seed_accepted[index]);
    }
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Many texts.

static const char *const pieces[] = {
    ":",
    ",",
    "[",
    "]",
    " ",
    "\t",
    "64",
    "0",
    "-1",
    "1e9",
    ">",
    "True",
    "False",
    "0.5",
    "40G",
    "20",
    "x_",
    "x_torch:",
    "2.5",
    "2.8,",
    "x_torch:2.9,",
    "\n",
    "=",
    ";",
    "\"",
    "\xff\xfe",
    "max_split_size_mb:",
    "roundup_power2_divisions:[",
    "256:2,",
    "expandable_segments:",
    "large_segment_size_mb:",
    "expandable_segments_reserve_by_class:[a:",
    "x_poll:own,",
    "pinned_num_register_threads:",
};

static void change(struct base_random *random, char *text) {
    const size_t length = strlen(text);
    const size_t at = base_random_below(random, length + 1);
    const char *const piece = pieces[base_random_below(random, sizeof pieces / sizeof pieces[0])];
    const size_t size = strlen(piece);
    switch (base_random_below(random, 5)) {
    case 0: // a byte
        if (length > 0) text[at % length] = (char)(1 + base_random_below(random, 255));
        break;
    case 1: // away with some
        if (at < length) {
            const size_t most = length - at;
            const size_t gone = 1 + base_random_below(random, most < 6 ? most : 6);
            memmove(text + at, text + at + gone, most - gone + 1);
        }
        break;
    case 2: text[at] = '\0'; break;
    case 3: { // another seed behind it
        const char *const other = seeds[base_random_below(random, seed_count)];
        if (length + strlen(other) + 2 < TEXT_BYTES) {
            strcat(text, ",");
            strcat(text, other);
        }
        break;
    }
    default: // a piece in between
        if (length + size + 1 < TEXT_BYTES) {
            memmove(text + at + size, text + at, length - at + 1);
            memcpy(text + at, piece, size);
        }
    }
}

static void any_text_gets_an_answer(uint64_t seed) {
    struct base_random random = base_random_init(seed, "settings");
    uint64_t accepted = 0;
    for (uint64_t text_number = 0; text_number < count; ++text_number) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s", seeds[base_random_below(&random, seed_count)]);
        for (uint64_t changes = 1 + base_random_below(&random, 6); changes > 0; --changes)
            change(&random, text);
        base_check_context("seed %llu, text %llu: '%s'", (unsigned long long)seed,
                           (unsigned long long)text_number, text);
        accepted += check_text(text);
    }
    base_check_context(NULL);
    printf("seed %llu: %llu texts, %llu accepted\n", (unsigned long long)seed,
           (unsigned long long)count, (unsigned long long)accepted);
    BASE_CHECK(accepted > count / 50); // else only refusals are tried
}

static const struct base_option options[] = {
    {"count", "N", BASE_OPTION_COUNT, &count, "how many texts"}, {0}};

static const struct base_program program = {
    .name = "config_fuzz_test",
    .summary = "Random settings strings through the parser and the lint.",
    .common = BASE_COMMON_SEED,
    .options = options};

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    read_seeds(); // from where the test stands
    base_options_parse(&program, argc, argv, &common);
    lint_refuses_what_pytorch_refuses();
    any_text_gets_an_answer(common.seed);
    for (size_t index = 0; index < seed_count; ++index) free(seeds[index]);
    return 0;
}
