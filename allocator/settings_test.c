// Settings in force: asked for, changed, told of, taken from the environment; older releases.
#include "allocator/settings.h"

#include "allocator/testing.h"

#include <pthread.h>
#include <stdlib.h>

static struct cca_settings settings_of(struct allocator *allocator) {
    struct cca_settings settings;
    BASE_CHECK_EQ(cca_settings(allocator, &settings), BASE_OK);
    return settings;
}

static void an_allocator_tells_what_is_in_force(void) {
    struct allocator *const allocator = testing_create(
        "max_split_size_mb:64,expandable_segments_reserve_by_class:[a:0.5]", BASE_GIB);
    struct cca_settings settings = settings_of(allocator);
    BASE_CHECK_EQ(settings.max_split_size, 64 * BASE_MIB);
    BASE_CHECK_EQ(settings.max_non_split_rounding, 20 * BASE_MIB);
    BASE_CHECK_EQ(settings.pinned_max_cached_size, CCA_SETTINGS_UNLIMITED);
    bool own;
    BASE_CHECK_EQ(cca_settings_reserve(&settings, "a", BASE_GIB, &own), BASE_GIB / 2);
    BASE_CHECK(own);
    BASE_CHECK_EQ(cca_settings_reserve(&settings, "b", BASE_GIB, &own), 0);
    BASE_CHECK(!own);
    // It is a copy: what comes later does not change it.
    BASE_CHECK_EQ(cca_set_config(allocator, "large_segment_size_mb:30"), BASE_OK);
    BASE_CHECK_EQ(settings.max_split_size, 64 * BASE_MIB);
    cca_settings_deinit(&settings);
    settings = settings_of(allocator);
    BASE_CHECK_EQ(settings.max_split_size, CCA_SETTINGS_UNLIMITED);
    BASE_CHECK_EQ(settings.large_segment_size, 30 * BASE_MIB);
    BASE_CHECK(strcmp(settings.text, "large_segment_size_mb:30") == 0);
    cca_settings_deinit(&settings);
    allocator_destroy(allocator);
}

static void a_wrong_text_keeps_what_came_before_the_error(void) {
    struct allocator *const allocator = testing_create("max_split_size_mb:64", BASE_GIB);
    BASE_CHECK_EQ(cca_set_config(allocator, "roundup_power2_divisions:4,bogus:1"),
                  BASE_INVALID_CONFIG);
    struct cca_settings settings = settings_of(allocator);
    BASE_CHECK_EQ(settings.max_split_size, CCA_SETTINGS_UNLIMITED);
    BASE_CHECK_EQ(settings.roundup_power2_divisions[7], 4);
    BASE_CHECK(strcmp(settings.text, "roundup_power2_divisions:4,bogus:1") == 0);
    cca_settings_deinit(&settings);
    allocator_destroy(allocator);
}

static void add_warning(void *context, const char *text) {
    strcat(context, text);
    strcat(context, "\n");
}

static void ignored_values_are_told(void) {
    char told[4096] = "";
    const struct cca_warning_observer observer = {.warning = add_warning, .context = told};
    struct allocator *allocator;
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = "expandable_segments_reserve:40GB",
                                                   .warnings = observer},
                             &allocator),
        BASE_OK);
    BASE_CHECK(strstr(told, "'40GB'") != NULL);
    told[0] = '\0';
    cca_set_warning_observer(allocator, &observer);
    BASE_CHECK_EQ(cca_set_config(allocator, "expandable_segments_reserve:1x"), BASE_OK);
    BASE_CHECK(strstr(told, "'1x'") != NULL);
    struct cca_settings settings;
    told[0] = '\0';
    BASE_CHECK_EQ(cca_settings_read("expandable_segments_reserve:2y", &observer, &settings),
                  BASE_OK);
    BASE_CHECK(strstr(told, "'2y'") != NULL);
    cca_settings_deinit(&settings);
    allocator_destroy(allocator);
}

// Any share above 0, and any part of a GiB.
static void small_reserves_count(void) {
    static const struct {
        const char *text;
        size_t bytes; // of 1,000,000
    } rows[] = {{"expandable_segments_reserve:0.05", 50000},
                {"expandable_segments_reserve:0.000001", 1},
                {"expandable_segments_reserve:1.5", 1500000},
                {"expandable_segments_reserve:0.5G", BASE_GIB / 2},
                {"expandable_segments_reserve:0", 0},
                {"expandable_segments_reserve:-0.5", 0},
                {"", 0}};
    static const struct cca_warning_observer nobody = {.warning = NULL};
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct cca_settings settings;
        base_check_context("'%s'", rows[row].text);
        BASE_CHECK_EQ(cca_settings_read(rows[row].text, &nobody, &settings), BASE_OK);
        BASE_CHECK_EQ(cca_settings_reserve(&settings, NULL, 1000000, NULL), rows[row].bytes);
        cca_settings_deinit(&settings);
    }
    base_check_context(NULL);
}

// Section 7: the first of three that is set, if it is empty, too.
static void the_environment_is_asked_in_order(void) {
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF"};
    for (int index = 0; index < 3; ++index) unsetenv(names[index]);
    const char *name = "";
    BASE_CHECK(cca_settings_environment(&name) == NULL && name == NULL);
    for (int index = 0; index < 3; ++index) {
        BASE_CHECK_EQ(setenv(names[index], index == 2 ? "" : names[index], 1), 0);
        const char *const value = cca_settings_environment(&name);
        BASE_CHECK(strcmp(name, names[index]) == 0);
        BASE_CHECK(strcmp(value, index == 2 ? "" : names[index]) == 0);
    }
}

// 0.3 of 1,027 MiB is 323,066,265.6 bytes; up to about 2.8 that was cut, and 1 was a limit.
static void older_releases_cut_the_fraction(void) {
    static const struct {
        const char *text;
        uint64_t allowed;
        double of_one;
        const char *words;
    } rows[] = {
        {"x_torch:2.8", 323066265, 1.0, " allowed;"},
        {"x_torch:2.9", 323066266, 1.0, "GPU 0 has"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        struct allocator *const allocator = testing_create(rows[row].text, 1027 * BASE_MIB);
        double fraction;
        void *pointer;
        BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &fraction), BASE_OK);
        BASE_CHECK(fraction == 1.0);
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, 2 * BASE_GIB, NULL, &pointer),
                      BASE_OUT_OF_MEMORY);
        BASE_CHECK(!testing_message_has(" allowed;")); // none is set yet
        BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.3), BASE_OK);
        BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &fraction), BASE_OK);
        BASE_CHECK(fraction == (double)rows[row].allowed / (1027.0 * 1048576.0));
        BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 1.0), BASE_OK);
        BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &fraction), BASE_OK);
        BASE_CHECK(fraction == rows[row].of_one);
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, 2 * BASE_GIB, NULL, &pointer),
                      BASE_OUT_OF_MEMORY);
        BASE_CHECK(testing_message_has(rows[row].words));
        BASE_CHECK_EQ(testing_message_has(" allowed;"), row == 0);
        allocator_destroy(allocator);
    }
}

static void *ask_often(void *context) {
    for (int round = 0; round < 200; ++round) {
        struct cca_settings settings = settings_of(context);
        BASE_CHECK(settings.max_split_size == 64 * BASE_MIB ||
                   settings.max_split_size == CCA_SETTINGS_UNLIMITED);
        BASE_CHECK_EQ(settings.max_split_size == 64 * BASE_MIB, settings.text[0] == 'm');
        cca_settings_deinit(&settings);
    }
    return NULL;
}

static void one_thread_asks_while_another_changes(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    pthread_t thread;
    BASE_CHECK_EQ(pthread_create(&thread, NULL, ask_often, allocator), 0);
    for (int round = 0; round < 200; ++round) {
        const char *const text = round % 2 == 0 ? "max_split_size_mb:64" : "";
        BASE_CHECK_EQ(cca_set_config(allocator, text), BASE_OK);
        testing_free(allocator, testing_malloc(allocator, 1000, NULL));
    }
    BASE_CHECK_EQ(pthread_join(thread, NULL), 0);
    allocator_destroy(allocator);
}

int main(void) {
    an_allocator_tells_what_is_in_force();
    a_wrong_text_keeps_what_came_before_the_error();
    ignored_values_are_told();
    small_reserves_count();
    the_environment_is_asked_in_order();
    older_releases_cut_the_fraction();
    one_thread_asks_while_another_changes();
    return 0;
}
