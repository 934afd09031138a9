// Settings that do not do what they say.
#include "allocator/lint.h"
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"
#include "base/random.h"

static int64_t rounded_mib(const char *config, size_t mib) {
    struct allocator *const allocator = case_begin(config, GIB);
    size_t rounded, segment;
    BASE_CHECK_EQ(cca_round_size(allocator, mib * MIB, &rounded, &segment), BASE_OK);
    case_end(allocator);
    return (int64_t)(rounded / MIB);
}

// 514 MiB up to the next of N steps between 512 and 1024.
static void divisions_in_a_list(const struct public_fault_teller *teller) {
    static const char *const configs[] = {
        "roundup_power2_divisions:[>:1]", "roundup_power2_divisions:[>:2]",
        "roundup_power2_divisions:[>:4]", "roundup_power2_divisions:[>:8]",
        "roundup_power2_divisions:[256:0,>:0]"};
    static const int64_t divisions[] = {1, 2, 4, 8, 1};
    for (int index = 0; index < 5; ++index) {
        const int64_t step = 512 / divisions[index];
        tell(teller, configs[index], "514 MiB become MiB",
             divisions[index] == 1 ? 514 : (514 + step - 1) / step * step,
             rounded_mib(configs[index], 514));
    }
}

static void sizes_stay_aligned(const struct public_fault_teller *teller) {
    static const char *const configs[] = {
        "roundup_power2_divisions:1", "roundup_power2_divisions:2", "roundup_power2_divisions:64",
        "roundup_power2_divisions:[1:0,2:1,4:8,>:16]"};
    for (int index = 0; index < 4; ++index) {
        struct allocator *const allocator = case_begin(configs[index], GIB);
        struct base_random random = base_random_init(92109, "sizes");
        int64_t wrong = 0;
        for (int count = 0; count < 20000; ++count) {
            const size_t size = base_random_log_between(&random, 1, (uint64_t)1 << 40);
            size_t rounded, segment;
            BASE_CHECK_EQ(cca_round_size(allocator, size, &rounded, &segment), BASE_OK);
            wrong += rounded % 512 != 0 || rounded < size;
        }
        tell(teller, configs[index], "sizes that are no multiple of 512", 0, wrong);
        case_end(allocator);
    }
}

// 4 MiB and up by halves of a power of two, 16 and up by quarters; what the list leaves out.
static void skipped_intervals(const struct public_fault_teller *teller) {
    static const char config[] = "roundup_power2_divisions:[1:1,4:2,16:4]";
    tell(teller, config, "5 MiB become MiB", 6, rounded_mib(config, 5));
    tell(teller, config, "17 MiB become MiB", 20, rounded_mib(config, 17));
    // PyTorch 2.15 leaves what is not listed between two entries unrounded.
    tell(teller, config, "9 MiB, not listed, become MiB", 9, rounded_mib(config, 9));
    tell(teller, config, "3 MiB, not listed, become MiB", 3, rounded_mib(config, 3));
}

// Given when the allocator is made, or later: the same table.
static void both_ways_in(const struct public_fault_teller *teller) {
    static const char config[] = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]";
    struct allocator *const early = case_begin(config, GIB);
    struct allocator *late = NULL;
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = ""}, &late), BASE_OK);
    BASE_CHECK_EQ(cca_set_config(late, config), BASE_OK);
    int64_t different = 0;
    for (size_t mib = 1; mib < 5000; mib += 7) {
        size_t a, b, segment;
        BASE_CHECK_EQ(cca_round_size(early, mib * MIB + 1, &a, &segment), BASE_OK);
        BASE_CHECK_EQ(cca_round_size(late, mib * MIB + 1, &b, &segment), BASE_OK);
        different += a != b;
    }
    tell(teller, config, "sizes that differ", 0, different);
    allocator_destroy(late);
    case_end(early);
}

static void variable_batch(const struct public_fault_teller *teller) {
    static const char config[] = "roundup_power2_divisions:4";
    static const size_t sizes[] = {1001, 1021, 1023};
    for (int index = 0; index < 3; ++index)
        tell(teller, config, "1001, 1021, 1023 MiB become MiB", 1024,
             rounded_mib(config, sizes[index]));
    tell(teller, config, "1200 MiB become MiB", 1280, rounded_mib(config, 1200));
    struct allocator *const allocator = case_begin(config, GIB);
    size_t rounded, segment;
    BASE_CHECK_EQ(cca_round_size(allocator, 1200, &rounded, &segment), BASE_OK);
    tell(teller, config, "1200 bytes, at most 512 x 4, become bytes", 1536, (int64_t)rounded);
    case_end(allocator);
}

static void on_rule(void *context, const struct cca_lint_finding *finding) {
    *(bool *)context |= strcmp(finding->rule, "gc-without-fraction") == 0;
}

// Without a memory fraction garbage is never collected, and the lint says so.
static void threshold_without_fraction(const struct public_fault_teller *teller) {
    static const char config[] = "garbage_collection_threshold:0.1";
    struct allocator *const allocator = case_begin(config, 80 * GIB);
    for (size_t index = 1; index < 60; ++index)
        testing_free(allocator, testing_malloc(allocator, 100 * MIB + index * 2 * MIB, NULL));
    tell(teller, config, "segments collected", 0, testing_stats(allocator).num_device_free);
    bool is_told = false;
    BASE_CHECK_EQ(cca_config_lint(config,
                                  &(struct cca_lint_options){.found = on_rule, .context = &is_told},
                                  NULL),
                  BASE_OK);
    tell(teller, config, "the lint says so", 1, is_told);
    case_end(allocator);
}

static void refused_by_name(const struct public_fault_teller *teller, const char *const (*texts)[2],
                            size_t count) {
    for (size_t index = 0; index < count; ++index) {
        tell(teller, texts[index][0], "refused", 1,
             cca_config_check(texts[index][0]) == BASE_INVALID_CONFIG);
        tell(teller, texts[index][0], "the message names what is wrong", 1,
             testing_message_has(texts[index][1]));
    }
}

static void half_written(const struct public_fault_teller *teller) {
    static const char *const texts[][2] = {{"expandable_segments", "expandable_segments"},
                                           {"a:", "a"},
                                           {",", ","},
                                           {"[", "["},
                                           {"roundup_power2_divisions:[1:1,4:2", "roundup_power2"}};
    refused_by_name(teller, texts, sizeof texts / sizeof texts[0]);
}

static void other_text(const struct public_fault_teller *teller) {
    static const char *const texts[][2] = {{"C:\\Users\\me\\torch", "C"}, {"cudart", "cudart"}};
    refused_by_name(teller, texts, sizeof texts / sizeof texts[0]);
}

static void later_key(const struct public_fault_teller *teller) {
    static const char *const texts[][2] = {
        {"x_torch:2.0,expandable_segments:True", "came with PyTorch 2.1"}};
    refused_by_name(teller, texts, 1);
}

static void names_of_one_back_end(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"release_lock_on_cudamalloc:True",
                                          "release_lock_on_hipmalloc:True"};
    for (int index = 0; index < 2; ++index)
        tell(teller, configs[index], "taken", 1, cca_config_check(configs[index]) == BASE_OK);
}

static void ignored_back_end(const struct public_fault_teller *teller) {
    static const char *const texts[][2] = {{"backend:cudaMallocAsync", "cudaMallocAsync"},
                                           {"backend:platform", "backend"}};
    refused_by_name(teller, texts, 2);
}

// 2 and 3 GiB in turn on 4 GiB, 200 requests: what max_split_size costs.
static void price_of_not_splitting(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "max_split_size_mb:256"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 4 * GIB);
        for (int count = 0; count < 200; ++count)
            testing_free(allocator, testing_malloc(allocator, (size_t)(2 + count % 2) * GIB, NULL));
        const struct allocator_stats stats = testing_stats(allocator);
        tell(teller, configs[index], "segments taken", index == 0 ? 2 : 200,
             stats.num_device_alloc);
        tell(teller, configs[index], "segments given back", index == 0 ? 1 : 199,
             stats.num_device_free);
        case_end(allocator);
    }
}

const struct public_fault_case public_faults_settings[PUBLIC_FAULTS_SETTINGS_COUNT] = {
    {.names = "pt#161139 pt#164036 pt#166399",
     .pattern = "roundup_power2_divisions:[>:1] does nothing",
     .run = divisions_in_a_list},
    {.names = "pt#92109 pt#126830 pt#126833",
     .pattern = "rounded sizes that are no multiple of 512",
     .run = sizes_stay_aligned},
    {.names = "pt#93942 pt#87290",
     .pattern = "intervals that a list of divisions leaves out",
     .run = skipped_intervals},
    {.names = "pt#165304 pt#160666",
     .pattern = "two ways to give settings, two results",
     .run = both_ways_in},
    {.names = "pt#74213",
     .pattern = "1001, 1021 and 1023 do not share blocks",
     .run = variable_batch},
    {.names = "pt#76648 pt#106660 pt#150917",
     .pattern = "garbage_collection_threshold without a memory fraction",
     .run = threshold_without_fraction},
    {.names = "pt#186453", .pattern = "half-written settings abort", .run = half_written},
    {.names = "pt#101158 LoRA_Easy_Training_Scripts#133",
     .pattern = "something else stands in the variable",
     .run = other_text},
    {.names = "pt#123505 DeepSeek-VL2#103 BiRefNet#179 wild-gaussians#16",
     .pattern = "a key that an older release does not know",
     .run = later_key},
    {.names = "ROCm/pytorch#1304",
     .pattern = "a key of one back end only",
     .run = names_of_one_back_end},
    {.names = "pt#80835",
     .pattern = "documents and code disagree",
     .elsewhere = "docs/examples: tests compare each page with its program"},
    {.names = "tf#38120 xla#42627 jax#39145",
     .pattern = "a setting is silently ignored",
     .run = ignored_back_end},
    {.names = "algorithmic-efficiency#522",
     .pattern = "max_split_size cures out of memory and makes a job slow",
     .run = price_of_not_splitting},
};
