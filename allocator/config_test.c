// The settings string against PyTorch 2.15's own parser: testdata/table-config.log has 241
// strings, each given to a fresh process, with what it said and what every setting was
// afterwards. Settings whose behaviour is not built are refused here instead.
#include "allocator/config.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE      "allocator/testdata/table-config.log"
#define LINE_BYTES 4096

// What the table's `v` line says of settings that this build has.
struct expected {
    size_t large, split, rounding;
    double gc, fraction;
    bool unlock;
    uint64_t divisions[CCA_DIVISION_COUNT];
    bool unbuilt; // some other setting is not at its default
};

// The value of " NAME=" in LINE, up to the next blank.
static const char *field(const char *line, const char *name) {
    static char value[LINE_BYTES];
    char key[64];
    snprintf(key, sizeof key, " %s=", name);
    const char *const at = strstr(line, key);
    BASE_CHECK(at != NULL);
    const char *const begin = at + strlen(key);
    const size_t length = strcspn(begin, " \n");
    memcpy(value, begin, length);
    value[length] = '\0';
    return value;
}

static size_t size_field(const char *line, const char *name) {
    const char *const value = field(line, name);
    return strcmp(value, "-") == 0 ? CCA_UNLIMITED : strtoull(value, NULL, 10);
}

static struct expected parse_values(const char *line) {
    static const char *const unbuilt[][2] = {
        {"expandable", "0"},    {"reuse", "0"},   {"throw", "0"},      {"reserve", "-,-,-"},
        {"host_register", "0"}, {"threads", "1"}, {"background", "0"}, {"pinned_reserve", "0"},
        {"catch", "0"},         {"round", "-"},   {"cached", "-"},
    };
    struct expected expected = {
        .large = size_field(line, "large"),
        .split = size_field(line, "split"),
        .rounding = size_field(line, "rounding"),
        .gc = strtod(field(line, "gc"), NULL),
        .fraction = strtod(field(line, "fraction"), NULL),
        .unlock = strcmp(field(line, "unlock"), "1") == 0,
    };
    const char *divisions = field(line, "div");
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry) {
        char *end;
        expected.divisions[entry] = strtoull(divisions, &end, 10);
        divisions = end + 1;
    }
    for (size_t index = 0; index < sizeof unbuilt / sizeof unbuilt[0]; ++index)
        if (strcmp(field(line, unbuilt[index][0]), unbuilt[index][1]) != 0) expected.unbuilt = true;
    return expected;
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

static void check_values(const struct cca__config *config, const struct expected *expected) {
    BASE_CHECK_EQ(config->sizes.large_segment, expected->large);
    BASE_CHECK_EQ(config->sizes.max_split_size, expected->split);
    BASE_CHECK_EQ(config->sizes.max_non_split_rounding, expected->rounding);
    BASE_CHECK(config->garbage_collection_threshold == expected->gc);
    BASE_CHECK(config->per_process_memory_fraction == expected->fraction);
    BASE_CHECK_EQ(config->release_lock_on_cudamalloc, expected->unlock);
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
        BASE_CHECK_EQ(config->sizes.divisions[entry], expected->divisions[entry]);
}

// One string of the table; true if it was refused as not built.
static bool check_row(const char *text, const char *outcome, const struct expected *expected) {
    struct cca__config config;
    cca__config_init(&config);
    base_check_context("'%s'", text);
    const enum base_status status = cca__config_apply(&config, text);
    if (strncmp(outcome, "ok", 2) == 0 && !expected->unbuilt && status == BASE_UNSUPPORTED) {
        // Set, but to no effect: a reserve that PyTorch ignores with a warning, or a value taken
        // back later in the string.
        BASE_CHECK(strstr(text, "reserve") != NULL ||
                   strstr(text, "True,expandable_segments:False") != NULL ||
                   strstr(text, "pinned_reserve") != NULL);
        return true;
    }
    if (strstr(outcome, "backend parsed at runtime") != NULL ||
        (strncmp(outcome, "ok", 2) == 0 && expected->unbuilt)) {
        BASE_CHECK_EQ(status, BASE_UNSUPPORTED);
        return true;
    }
    if (strncmp(outcome, "ok", 2) == 0) {
        BASE_CHECK_EQ(status, BASE_OK);
    } else {
        BASE_CHECK_EQ(status, BASE_INVALID_CONFIG);
        base_check_context("'%s': PyTorch says '%s', this build '%s'", text, sentence_of(outcome),
                           base_status_message());
        BASE_CHECK(strstr(base_status_message(), sentence_of(outcome)) != NULL);
    }
    check_values(&config, expected);
    return false;
}

static void every_recorded_string_gets_pytorchs_answer(void) {
    FILE *const table = fopen(TABLE, "r");
    BASE_CHECK(table != NULL);
    char line[LINE_BYTES], text[LINE_BYTES] = "", outcome[LINE_BYTES] = "";
    int rows = 0, refused = 0;
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
        } else if (strncmp(line, "v ", 2) == 0) {
            const struct expected expected = parse_values(line + 1);
            refused += check_row(text, outcome, &expected);
            ++rows;
        }
    }
    fclose(table);
    base_check_context(NULL);
    BASE_CHECK_EQ(rows, 241);
    BASE_CHECK_EQ(refused, 52);
}

static void a_setting_that_is_not_built_is_named(void) {
    static const char *const rows[][2] = {
        {"expandable_segments:True", "expandable_segments"},
        {"max_split_size_mb:64,throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom"},
        {"graph_capture_record_stream_reuse:True", "graph_capture_record_stream_reuse"},
        {"backend:cudaMallocAsync", "backend:cudaMallocAsync"},
        {"pinned_num_register_threads:8", "pinned_num_register_threads"},
        {"pinned_use_cuda_host_register:True", "pinned_use_cuda_host_register"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        BASE_CHECK_EQ(cca__config_apply(&config, rows[row][0]), BASE_UNSUPPORTED);
        BASE_CHECK(strstr(base_status_message(), rows[row][1]) != NULL);
        BASE_CHECK_EQ(config.sizes.max_split_size,
                      CCA_UNLIMITED); // nothing of the string was applied
    }
}

static void a_second_string_resets_four_settings_and_keeps_the_others(void) {
    struct cca__config config;
    cca__config_init(&config);
    BASE_CHECK_EQ(cca__config_apply(
                      &config,
                      "large_segment_size_mb:40,max_split_size_mb:64,max_non_split_rounding_mb:50,"
                      "garbage_collection_threshold:0.7,roundup_power2_divisions:8,"
                      "release_lock_on_cudamalloc:True"),
                  BASE_OK);
    BASE_CHECK(config.sizes.divided);
    BASE_CHECK_EQ(cca__config_apply(&config, ""), BASE_OK);
    BASE_CHECK_EQ(config.sizes.large_segment, 40 << 20);
    BASE_CHECK_EQ(config.sizes.max_split_size, CCA_UNLIMITED);
    BASE_CHECK_EQ(config.sizes.max_non_split_rounding, 40 << 20);
    BASE_CHECK(config.garbage_collection_threshold == 0.0);
    BASE_CHECK(!config.sizes.divided);
    BASE_CHECK(config.release_lock_on_cudamalloc);
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
        BASE_CHECK_EQ(cca__config_apply(&config, rows[row].text), rows[row].status);
        BASE_CHECK_EQ(config.tie_by_address, rows[row].by_address);
    }
    base_check_context(NULL);
}

int main(void) {
    every_recorded_string_gets_pytorchs_answer();
    a_setting_that_is_not_built_is_named();
    a_second_string_resets_four_settings_and_keeps_the_others();
    a_version_chooses_the_tie_order();
    return 0;
}
