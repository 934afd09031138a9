// The settings string against PyTorch 2.15's own parser: testdata/table-config.log has 241
// strings, each given to a fresh process, with what it said and what every setting was
// afterwards.
#include "allocator/config.h"

#include "allocator/cca.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE      "allocator/testdata/table-config.log"
#define LINE_BYTES 4096

static char warnings[LINE_BYTES]; // each as the table has it, "w TEXT\n"

static void add_warning(void *context, const char *text) {
    (void)context;
    const size_t length = strlen(warnings);
    snprintf(warnings + length, sizeof warnings - length, "w %s\n", text);
}

static const struct cca_warning_observer observer = {.warning = add_warning};

static enum base_status apply(struct cca__config *config, const char *text) {
    warnings[0] = '\0';
    return cca__config_apply(config, text, &observer);
}

static void put_size(FILE *output, const char *name, size_t size) {
    if (size == CCA_UNLIMITED)
        fprintf(output, "%s=- ", name);
    else
        fprintf(output, "%s=%zu ", name, size);
}

static void put_reserve(FILE *output, const struct cca__config *config, const char *class) {
    bool own;
    const size_t bytes = cca__config_reserve(config, class, (size_t)80 << 30, &own);
    if (bytes == 0)
        fprintf(output, "-");
    else
        fprintf(output, "%zu%s", bytes, own ? "k" : "");
}

// All settings as the table's `v` line has them, but for the text at its end.
static void put_settings(FILE *output, const struct cca__config *config) {
    const struct cca__pinned_config *const pinned = &config->pinned;
    put_size(output, "v large", config->sizes.large_segment);
    put_size(output, "split", config->sizes.max_split_size);
    put_size(output, "rounding", config->sizes.max_non_split_rounding);
    fprintf(output, "gc=%g expandable=%d div=", config->garbage_collection_threshold,
            config->expandable_segments);
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
        fprintf(output, "%s%llu", entry == 0 ? "" : ",",
                (unsigned long long)config->sizes.divisions[entry]);
    fprintf(output, " unlock=%d reuse=%d fraction=%g throw=%d reserve=",
            config->release_lock_on_cudamalloc, config->graph_capture_record_stream_reuse,
            config->per_process_memory_fraction, config->throw_on_cudamalloc_oom);
    put_reserve(output, config, NULL);
    putc(',', output);
    put_reserve(output, config, "a");
    putc(',', output);
    put_reserve(output, config, "b");
    fprintf(output, " host_register=%d threads=%llu background=%d pinned_reserve=%llu catch=%d ",
            pinned->use_cuda_host_register, (unsigned long long)pinned->num_register_threads,
            pinned->use_background_threads, (unsigned long long)pinned->reserve_segment_mib,
            pinned->free_catch_all);
    put_size(output, "round", pinned->max_round);
    put_size(output, "cached", pinned->max_cached_size);
}

// \n \t \r \v \f \\ stand for the characters.
static void unescape(char *text) {
    static const char codes[] = "ntrvf\\", characters[] = "\n\t\r\v\f\\";
    char *out = text;
    for (const char *in = text; *in != '\0'; ++in) {
        const char *const code = *in == '\\' ? strchr(codes, in[1]) : NULL;
        if (code == NULL) {
            *out++ = *in;
        } else {
            *out++ = characters[code - codes];
            ++in;
        }
    }
    *out = '\0';
}

// PyTorch's sentence: without the class, and of an internal assert without its file and line.
static const char *sentence_of(const char *outcome) {
    const char *sentence = strchr(outcome + strlen("error "), ' ') + 1;
    const char *const assertion = strstr(sentence, "please report a bug to PyTorch. ");
    return assertion != NULL ? assertion + strlen("please report a bug to PyTorch. ") : sentence;
}

// One string of the table, with the warnings and the settings recorded after it.
static void check_row(const char *text, const char *outcome, const char *recorded_warnings,
                      const char *recorded_settings) {
    struct cca__config config;
    cca__config_init(&config);
    const enum base_status status = apply(&config, text);
    if (strncmp(outcome, "ok", 2) == 0) {
        BASE_CHECK_EQ(status, BASE_OK);
    } else {
        BASE_CHECK_EQ(status, BASE_INVALID_CONFIG);
        base_check_context("'%s': PyTorch says '%s', this build '%s'", text, sentence_of(outcome),
                           base_status_message());
        BASE_CHECK(strstr(base_status_message(), sentence_of(outcome)) != NULL);
    }
    BASE_CHECK(strcmp(warnings, recorded_warnings) == 0);
    BASE_CHECK(strcmp(config.last, text) == 0);
    char settings[LINE_BYTES] = "";
    FILE *const output = fmemopen(settings, sizeof settings, "w");
    put_settings(output, &config);
    fclose(output);
    base_check_context("'%s': PyTorch has '%s', this build '%s'", text, recorded_settings, settings);
    BASE_CHECK(strncmp(settings, recorded_settings, strlen(settings)) == 0);
    BASE_CHECK(strncmp(recorded_settings + strlen(settings), "last=", 5) == 0);
    cca__config_deinit(&config);
}

static void every_recorded_string_gets_pytorchs_answer(void) {
    FILE *const table = fopen(TABLE, "r");
    BASE_CHECK(table != NULL);
    char line[LINE_BYTES], text[LINE_BYTES] = "", outcome[LINE_BYTES] = "";
    char told[LINE_BYTES] = "";
    int rows = 0, warned = 0;
    while (fgets(line, sizeof line, table) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "cfg ", 4) == 0) {
            char *separator = strstr(line, " = ok");
            if (separator == NULL) separator = strstr(line, " = error ");
            BASE_CHECK(separator != NULL);
            *separator = '\0';
            snprintf(outcome, sizeof outcome, "%s", separator + 3);
            snprintf(text, sizeof text, "%s", separator > line + 4 ? line + 4 : "");
            unescape(text);
            told[0] = '\0';
        } else if (strncmp(line, "w ", 2) == 0) {
            snprintf(told + strlen(told), sizeof told - strlen(told), "%.2000s\n", line);
            ++warned;
        } else if (strncmp(line, "v ", 2) == 0) {
            check_row(text, outcome, told, line);
            ++rows;
        }
    }
    fclose(table);
    base_check_context(NULL);
    BASE_CHECK_EQ(rows, 241);
    BASE_CHECK_EQ(warned, 16);
}

static void a_setting_that_is_not_built_is_named(void) {
    static const char *const rows[][2] = {
        {"expandable_segments:True", "expandable_segments:True"},
        {"max_split_size_mb:64,throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom:True"},
        {"expandable_segments:True,expandable_segments:False", NULL},
        {"graph_capture_record_stream_reuse:True", NULL}, // there are no captures to act in
        {"pinned_num_register_threads:8", NULL},          // nor host memory
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        BASE_CHECK_EQ(apply(&config, rows[row][0]), BASE_OK);
        const char *const unbuilt = cca__config_unbuilt(&config);
        BASE_CHECK_EQ(unbuilt == NULL, rows[row][1] == NULL);
        if (unbuilt != NULL) BASE_CHECK(strcmp(unbuilt, rows[row][1]) == 0);
        cca__config_deinit(&config);
    }
}

static void a_second_string_resets_four_settings_and_keeps_the_others(void) {
    struct cca__config config;
    cca__config_init(&config);
    BASE_CHECK_EQ(
        apply(&config, "large_segment_size_mb:40,max_split_size_mb:64,max_non_split_rounding_mb:50,"
                       "garbage_collection_threshold:0.7,roundup_power2_divisions:8,"
                       "release_lock_on_cudamalloc:True,"
                       "expandable_segments_reserve_by_class:[a:1G]"),
        BASE_OK);
    BASE_CHECK(config.sizes.divided);
    BASE_CHECK_EQ(apply(&config, ""), BASE_OK);
    BASE_CHECK_EQ(config.sizes.large_segment, 40 << 20);
    BASE_CHECK_EQ(config.sizes.max_split_size, CCA_UNLIMITED);
    BASE_CHECK_EQ(config.sizes.max_non_split_rounding, 40 << 20);
    BASE_CHECK(config.garbage_collection_threshold == 0.0);
    BASE_CHECK(!config.sizes.divided);
    BASE_CHECK(config.release_lock_on_cudamalloc);
    BASE_CHECK_EQ(config.reserve_class_count, 1);
    cca__config_deinit(&config);
}

static void a_copy_owns_its_texts(void) {
    struct cca__config config, copy;
    cca__config_init(&config);
    BASE_CHECK_EQ(cca__config_copy(&copy, &config), BASE_OK);
    BASE_CHECK(copy.last == NULL && copy.reserve_classes == NULL);
    cca__config_deinit(&copy);
    const char *const text = "expandable_segments_reserve_by_class:[b:2G,a:0.5]";
    BASE_CHECK_EQ(apply(&config, text), BASE_OK);
    BASE_CHECK_EQ(cca__config_copy(&copy, &config), BASE_OK);
    BASE_CHECK_EQ(apply(&config, "expandable_segments_reserve_by_class:[]"), BASE_OK);
    bool own;
    BASE_CHECK_EQ(cca__config_reserve(&config, "a", 100, &own), 0);
    BASE_CHECK(!own);
    cca__config_deinit(&config);
    BASE_CHECK(strcmp(copy.last, text) == 0);
    BASE_CHECK_EQ(cca__config_reserve(&copy, "a", 100, &own), 50);
    BASE_CHECK(own);
    BASE_CHECK_EQ(cca__config_reserve(&copy, "b", 100, NULL), (size_t)2 << 30);
    BASE_CHECK_EQ(cca__config_reserve(&copy, "c", 100, NULL), 0);
    cca__config_deinit(&copy);
}

static void a_version_chooses_the_tie_order(void) {
    static const struct {
        const char *text;
        enum base_status status;
        bool by_address;
    } rows[] = {
        {"x_torch:2.5", BASE_OK, true},
        {"x_torch:2.11.0", BASE_OK, true},
        {"x_torch:2.12", BASE_OK, false},
        {"x_torch:2.15.0+cu130", BASE_OK, false},
        {"max_split_size_mb:64,x_torch:2.0", BASE_OK, true},
        {"x_torch:2.16", BASE_INVALID_CONFIG, false},
        {"x_torch:1.13", BASE_INVALID_CONFIG, false},
        {"x_torch:2", BASE_INVALID_CONFIG, false},
        {"x_torch:", BASE_INVALID_CONFIG, false},
        {"x_tourch:2.5", BASE_INVALID_CONFIG, false},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        base_check_context("'%s'", rows[row].text);
        BASE_CHECK_EQ(apply(&config, rows[row].text), rows[row].status);
        BASE_CHECK_EQ(config.tie_by_address, rows[row].by_address);
        cca__config_deinit(&config);
    }
    base_check_context(NULL);
}

int main(void) {
    every_recorded_string_gets_pytorchs_answer();
    a_setting_that_is_not_built_is_named();
    a_second_string_resets_four_settings_and_keeps_the_others();
    a_copy_owns_its_texts();
    a_version_chooses_the_tie_order();
    return 0;
}
