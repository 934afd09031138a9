// What the settings string does beside what PyTorch's table of 241 strings says, which
// allocator/golden holds it to.
#include "allocator/config.h"

#include "allocator/cca.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define WARNINGS_BYTES 4096

static char warnings[WARNINGS_BYTES]; // a line each

static void add_warning(void *context, const char *text) {
    (void)context;
    const size_t length = strlen(warnings);
    snprintf(warnings + length, sizeof warnings - length, "%s\n", text);
}

static const struct cca_warning_observer observer = {.warning = add_warning};

static enum base_status apply(struct cca__config *config, const char *text) {
    warnings[0] = '\0';
    return cca__config_apply(config, text, &observer);
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

// What each release reads: from the reference, section 7.
static void a_version_chooses_how_the_string_is_read(void) {
    static const struct {
        const char *text, *sentence; // NULL: accepted
    } rows[] = {
        {"x_torch:2.5,max_split_size_mb:21", NULL},
        {"max_split_size_mb:20,x_torch:2.5", "must be > 20"},
        {"max_split_size_mb:20,x_torch:2.11", NULL},
        {"x_torch:2.8,expandable_segments:true",
         "Expected a single True/False argument for expandable_segments"},
        {"x_torch:2.9,expandable_segments:true", "Expected 'True' or 'False' at index 6 in"},
        {"x_torch:2.8,max_split_size_mb,64", "Error parsing CachingAllocator settings, expected :"},
        {"x_torch:2.8,max_split_size_mb:64:garbage_collection_threshold:0.5",
         "Error parsing CachingAllocator settings, expected ,"},
        {"x_torch:2.9,max_split_size_mb,64", NULL},
        {"x_torch:2.8,roundup_power2_divisions:[256;1]",
         "Error parsing CachingAllocator settings, expected :"},
        {"x_torch:2.8,bogus:1", "Unrecognized CachingAllocator option: bogus"},
        {"x_torch:2.0,expandable_segments:True",
         "Unrecognized CachingAllocator option: expandable_segments"},
        {"x_torch:2.10,large_segment_size_mb:32",
         "Unrecognized key 'large_segment_size_mb' in Accelerator allocator config."},
        {"x_torch:2.11,large_segment_size_mb:32", NULL},
        {"x_torch:2.8,max_split_ size_mb : 64", NULL},
        {"x_torch:2.8,max_split_\tsize_mb:64", "Unrecognized CachingAllocator option: max_split_"},
        {"x_torch:2.9,max_split_\tsize_mb:64", NULL},
        {"x_poll:own,x_wait:enough,x_retry_search:True", NULL},
        {"x_poll:mine", "neither all nor own"},
        {"x_wait:", "x_wait"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        base_check_context("'%s'", rows[row].text);
        const enum base_status status = apply(&config, rows[row].text);
        BASE_CHECK_EQ(status, rows[row].sentence == NULL ? BASE_OK : BASE_INVALID_CONFIG);
        if (status != BASE_OK) BASE_CHECK(strstr(base_status_message(), rows[row].sentence));
        cca__config_deinit(&config);
    }
    base_check_context(NULL);
}

static void an_old_list_ends_where_the_last_interval_begins(void) {
    static const struct {
        const char *text;
        uint64_t at_16_mib, at_32_mib;
    } rows[] = {
        {"x_torch:2.8,roundup_power2_divisions:[16:2,>:4]", 4, 4},
        {"roundup_power2_divisions:[16:2,>:4]", 2, 4},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        BASE_CHECK_EQ(apply(&config, rows[row].text), BASE_OK);
        BASE_CHECK_EQ(config.sizes.divisions[4], rows[row].at_16_mib);
        BASE_CHECK_EQ(config.sizes.divisions[5], rows[row].at_32_mib);
        cca__config_deinit(&config);
    }
}

// Up to 2.8 one pass; since then what CUDA alone reads waits for the others.
static void a_wrong_key_keeps_what_was_read_before_it(void) {
    static const struct {
        const char *text;
        bool unlocks, splits;
    } rows[] = {
        {"x_torch:2.8,release_lock_on_cudamalloc:True,max_split_size_mb:64,bogus:1", true, true},
        {"x_torch:2.9,release_lock_on_cudamalloc:True,max_split_size_mb:64,bogus:1", false, true},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca__config config;
        cca__config_init(&config);
        BASE_CHECK_EQ(apply(&config, rows[row].text), BASE_INVALID_CONFIG);
        BASE_CHECK_EQ(config.release_lock_on_cudamalloc, rows[row].unlocks);
        BASE_CHECK_EQ(config.sizes.max_split_size == (size_t)64 << 20, rows[row].splits);
        cca__config_deinit(&config);
    }
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
    a_second_string_resets_four_settings_and_keeps_the_others();
    a_copy_owns_its_texts();
    a_version_chooses_how_the_string_is_read();
    an_old_list_ends_where_the_last_interval_begins();
    a_wrong_key_keeps_what_was_read_before_it();
    a_version_chooses_the_tie_order();
    return 0;
}
