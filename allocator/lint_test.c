// What the lint says: each rule by a text that breaks it, and what breaks none. Rules and releases
// come from public faults and from the reference, not from the code.
#include "allocator/lint.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define TOLD_MAX 16

static struct told {
    char rule[40], key[64], sentence[1024], instead[512];
    enum cca_lint_kind kind;
    int since, until;
} told[TOLD_MAX];
static size_t told_count;

static void on_finding(void *context, const struct cca_lint_finding *finding) {
    (void)context;
    BASE_CHECK(told_count < TOLD_MAX);
    struct told *const one = &told[told_count++];
    snprintf(one->rule, sizeof one->rule, "%s", finding->rule);
    snprintf(one->key, sizeof one->key, "%s", finding->key);
    snprintf(one->sentence, sizeof one->sentence, "%s", finding->sentence);
    snprintf(one->instead, sizeof one->instead, "%s", finding->instead);
    one->kind = finding->kind;
    one->since = finding->since;
    one->until = finding->until;
}

static void lint(const char *text, const char *version) {
    told_count = 0;
    size_t count;
    const struct cca_lint_options options = {.version = version, .found = on_finding};
    BASE_CHECK_EQ(cca_config_lint(text, &options, &count), BASE_OK);
    BASE_CHECK_EQ(count, told_count);
}

static const struct told *find(const char *rule) {
    for (size_t index = 0; index < told_count; ++index)
        if (strcmp(told[index].rule, rule) == 0) return &told[index];
    return NULL;
}

static void every_rule_has_an_example_that_breaks_it(void) {
    for (size_t index = 0; index < cca_lint_rule_count; ++index) {
        const struct cca_lint_rule *const rule = &cca_lint_rules[index];
        base_check_context("%s: '%s'", rule->name, rule->example);
        lint(rule->example, rule->version);
        const struct told *const one = find(rule->name);
        BASE_CHECK(one != NULL);
        BASE_CHECK_EQ(one->kind, rule->kind);
        BASE_CHECK(one->sentence[0] != '\0' && one->instead[0] != '\0');
        BASE_CHECK(one->since <= one->until && one->until <= 15);
    }
    base_check_context(NULL);
}

static void what_works_is_passed_over(void) {
    static const char *const texts[] = {
        "",
        " ",
        "max_split_size_mb:128",
        "max_split_size_mb:128,max_non_split_rounding_mb:64",
        "max_non_split_rounding_mb:64,x_reclaim_idle:True",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:2,512:2,>:2]",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9",
        "expandable_segments:True",
        "max_split_size_mb:128,expandable_segments:True,x_bound_growth:True",
        "x_retry_search:True,x_wait:enough,x_skip_stuck:True,x_poll:own,x_reclaim_idle:True",
        "expandable_segments:True,expandable_segments_reserve:40G",
        "expandable_segments_reserve_by_class:[a:1.0,b:40G],expandable_segments:True",
        "backend:native,release_lock_on_cudamalloc:True",
        "large_segment_size_mb:32,max_split_size_mb:32",
        "large_segment_size_mb:25",
        "large_segment_size_mb:26,expandable_segments:True",
        "max_split_size_mb:40,large_segment_size_mb:40",
        "pinned_use_cuda_host_register:True,pinned_num_register_threads:8",
    };
    for (size_t index = 0; index < sizeof texts / sizeof texts[0]; ++index) {
        base_check_context("'%s'", texts[index]);
        lint(texts[index], NULL);
        base_check_context("'%s': %s: %s", texts[index], told_count > 0 ? told[0].rule : "",
                           told_count > 0 ? told[0].sentence : "");
        BASE_CHECK_EQ(told_count, 0);
    }
    base_check_context(NULL);
}

// TEXT under VERSION breaks RULE, whose sentence or advice has WORDS.
static const struct row {
    const char *text, *version, *rule, *words;
} rows[] = {
    // Keys that guides and error texts name wrongly (public faults 54, 55; section 7).
    {"garbage_collect_threshold:0.8", NULL, "unknown-key", "garbage_collection_threshold"},
    {"max_split_size:64", NULL, "unknown-key", "max_split_size_mb"},
    {"MAX_SPLIT_SIZE_MB:64", NULL, "unknown-key", "write max_split_size_mb"},
    {"max_split_size_mb=8000", NULL, "unknown-key", "write max_split_size_mb:8000"},
    {"expandable_segment:True", NULL, "unknown-key", "expandable_segments"},
    {"expandable_segments_handle_type:posix_fd", NULL, "unknown-key", "no release"},
    {"C:\\Users\\me\\torch", NULL, "unknown-key", "path"},
    {"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64", NULL, "unknown-key", "variable"},
    {"'max_split_size_mb:64'", NULL, "unknown-key", "quotes"},
    {",", NULL, "unknown-key", "separator"},
    {"max_split_size_mb:64;garbage_collection_threshold:0.5", NULL, "unknown-key", "separator"},
    {"max_split_size_mb:64;garbage_collection_threshold:0.5", NULL, "text-behind-number",
     "not ';'"},
    {"backend:native,zebra:1", NULL, "unknown-key", "no release of PyTorch from 2.0 to 2.15"},
    // Releases that know a key (public faults 55, 56).
    {"expandable_segments:True", "2.0.1", "later-key", "2.1"},
    {"large_segment_size_mb:32", "2.10", "later-key", "2.11"},
    {"graph_capture_record_stream_reuse:True", "2.8", "later-key", "2.9"},
    {"x_torch:2.0,expandable_segments:True", NULL, "later-key", "2.1"},
    // Values (public fault 53; the table of settings strings).
    {"expandable_segments", NULL, "value", "expandable_segments:True or False"},
    {"max_split_size_mb:", NULL, "value", "max_split_size_mb:MIB"},
    {"roundup_power2_divisions:[1:1,4:2", NULL, "value", "roundup_power2_divisions"},
    {"expandable_segments:1", NULL, "value", "True or False"},
    {"max_split_size_mb:19", NULL, "value", ">= 20"},
    {"max_split_size_mb:20", "2.5", "value", "> 20"},
    {"max_split_size_mb:64,large_segment_size_mb:65", NULL, "value", ">= 65"},
    {"garbage_collection_threshold:80", NULL, "value", "above 0, below 1"},
    {"max_split_size_mb,64", "2.8", "value", "':' must follow"},
    {"max_split_size_mb:64:garbage_collection_threshold:0.5", "2.8", "value", "',' must follow"},
    {"max_split_size_mb:0x40", NULL, "value", "too small"},
    {"expandable_segments_reserve:[0.5]", NULL, "value", "]"},
    {"max_split_size_mb:64MB", NULL, "text-behind-number", "read as 64"},
    {"garbage_collection_threshold:0.5x,per_process_memory_fraction:0.9", NULL,
     "text-behind-number", "read as 0.5"},
    // Lists read off by one; 161139, 164036.
    {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", NULL, "division-bounds",
     "256:1 rules sizes from 256 MiB to below 512 MiB and all below, not those below 256 MiB"},
    {"roundup_power2_divisions:[256:2,512:2,>:8]", NULL, "division-bounds", "write 256:2"},
    {"roundup_power2_divisions:[>:1]", NULL, "division-of-one", "nothing"},
    {"roundup_power2_divisions:[1:1,4:2,16:4]", NULL, "division-gap", "from 2 MiB to below 4 MiB"},
    // Options that fight; 123548, 193400.
    {"max_split_size_mb:500,expandable_segments:True", "2.3", "split-with-expandable", "abort"},
    {"max_split_size_mb:500,expandable_segments:True", "2.15", "split-with-expandable",
     "without end"},
    {"garbage_collection_threshold:0.6", "2.1", "gc-without-fraction",
     "call set_per_process_memory_fraction"},
    {"expandable_segments:True,expandable_segments_reserve_by_class:[a:half,b:40G]", NULL,
     "reserve-ignored", "'half'"},
};

static void texts_that_people_wrote_are_explained(void) {
    for (size_t index = 0; index < sizeof rows / sizeof rows[0]; ++index) {
        const struct row *const row = &rows[index];
        base_check_context("'%s' in %s", row->text, row->version != NULL ? row->version : "2.15");
        lint(row->text, row->version);
        const struct told *const one = find(row->rule);
        BASE_CHECK(one != NULL);
        base_check_context("'%s': %s (%s)", row->text, one->sentence, one->instead);
        // PyTorch's own words count other tokens.
        BASE_CHECK(strstr(one->sentence, "PyTorch: ") == NULL);
        BASE_CHECK(strstr(one->sentence, row->words) != NULL ||
                   strstr(one->instead, row->words) != NULL);
    }
    base_check_context(NULL);
}

static void a_fraction_of_the_program_counts(void) {
    size_t count;
    const struct cca_lint_options options = {.fraction_set = true};
    BASE_CHECK_EQ(cca_config_lint("garbage_collection_threshold:0.8", &options, &count), BASE_OK);
    BASE_CHECK_EQ(count, 0);
}

static void a_version_that_is_none_is_refused(void) {
    static const char *const versions[] = {"2.16", "1.13", "three", ""};
    for (size_t index = 0; index < sizeof versions / sizeof versions[0]; ++index)
        BASE_CHECK_EQ(
            cca_config_lint("", &(struct cca_lint_options){.version = versions[index]}, NULL),
            BASE_INVALID_VALUE);
}

int main(void) {
    every_rule_has_an_example_that_breaks_it();
    what_works_is_passed_over();
    texts_that_people_wrote_are_explained();
    a_fraction_of_the_program_counts();
    a_version_that_is_none_is_refused();
    return 0;
}
