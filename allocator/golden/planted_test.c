// The property test proves itself: subjects with a planted fault are told from the model, and the
// program that shows it comes out short.
#include "allocator/golden/model.h"
#include "allocator/golden/random_check.h"
#include "base/check.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define SEED            1
#define PROGRAM_COUNT   40
#define OPERATION_COUNT 400

// A model whose device keeps one page too many for itself.
static enum base_status open_smaller(const struct golden_options *options,
                                     struct allocator **allocator) {
    return model_create(options->config, options->capacity_bytes - 2 * BASE_MIB, allocator);
}

// A model that never heard of its configuration.
static enum base_status open_without_config(const struct golden_options *options,
                                            struct allocator **allocator) {
    return model_create("", options->capacity_bytes, allocator);
}

// A model that follows the tie rule of another release, where its settings allow that.
static enum base_status open_older(const struct golden_options *options,
                                   struct allocator **allocator) {
    char text[512];
    snprintf(text, sizeof text, "%s%sx_torch:2.11", options->config,
             options->config[0] == '\0' ? "" : ",");
    const enum base_status status = model_create(text, options->capacity_bytes, allocator);
    // It does not know the keys that came later.
    return status == BASE_OK ? status
                             : model_create(options->config, options->capacity_bytes, allocator);
}

// A model that takes a refused setting for none at all.
static enum base_status set_config_forgiving(struct allocator *allocator, const char *config) {
    return model_set_config(allocator, config) == BASE_OK ? BASE_OK
                                                          : model_set_config(allocator, "");
}

// Events that complete although their stream was told nothing.
static enum base_status open_eager(const struct golden_options *options,
                                   struct allocator **allocator) {
    const enum base_status status =
        model_create(options->config, options->capacity_bytes, allocator);
    if (status == BASE_OK) model_device(*allocator)->completes_at_once = true;
    return status;
}

// Settings without one key.
static const char *dropped_key;

static void drop_key(const char *config, char rest[GOLDEN_CONFIG_LENGTH_MAX + 1]) {
    rest[0] = '\0';
    while (*config != '\0') {
        size_t length = strcspn(config, ",[");
        if (config[length] == '[') length += strcspn(config + length, "]");
        length += strcspn(config + length, ",");
        const bool is_dropped = strncmp(config, dropped_key, strlen(dropped_key)) == 0 &&
                                config[strlen(dropped_key)] == ':';
        if (!is_dropped)
            snprintf(rest + strlen(rest), GOLDEN_CONFIG_LENGTH_MAX + 1 - strlen(rest), "%s%.*s",
                     rest[0] == '\0' ? "" : ",", (int)length, config);
        config += length;
        if (*config == ',') config++;
    }
}

static enum base_status open_without_key(const struct golden_options *options,
                                         struct allocator **allocator) {
    char rest[GOLDEN_CONFIG_LENGTH_MAX + 1];
    drop_key(options->config, rest);
    return model_create(rest, options->capacity_bytes, allocator);
}

static enum base_status set_config_without_key(struct allocator *allocator, const char *config) {
    char rest[GOLDEN_CONFIG_LENGTH_MAX + 1];
    drop_key(config, rest);
    return model_set_config(allocator, rest);
}

// The text given last comes back whole, or any string would tell.
static enum base_status settings_with_text(struct allocator *allocator,
                                           struct golden_settings *settings) {
    const enum base_status status = golden_subject_model.settings(allocator, settings);
    settings->last[0] = '\0';
    return status;
}

static enum base_status open_caching(const struct golden_options *options,
                                     struct allocator **allocator) {
    return model_create(options->config, options->capacity_bytes, allocator);
}

static enum base_status never_call_back(struct allocator *allocator,
                                        bool (*free_memory)(void *context, int device),
                                        void *context) {
    (void)allocator, (void)free_memory, (void)context;
    return BASE_OK;
}

static enum base_status malloc_anywhere(struct allocator *allocator, size_t size,
                                        cudaStream_t stream, uint64_t address, void **pointer) {
    (void)address;
    return allocator_malloc(allocator, 0, size, stream, pointer);
}

static void list_no_processes(struct allocator *allocator, bool on) { (void)allocator, (void)on; }

static void never_fail(struct allocator *allocator, uint64_t n, int code) {
    (void)allocator, (void)n, (void)code;
}

static enum base_status forget_class(struct allocator *allocator, cudaStream_t stream,
                                     const char *name) {
    (void)allocator, (void)stream, (void)name;
    return BASE_OK;
}

static enum base_status forget_class_default(struct allocator *allocator, const char *name,
                                             double fraction) {
    (void)allocator, (void)name, (void)fraction;
    return BASE_OK;
}

static void observe_no_rejections(struct allocator *allocator,
                                  void (*rejected)(void *context, size_t size, size_t reserved,
                                                   size_t total),
                                  void *context) {
    (void)allocator, (void)rejected, (void)context;
}

// Tells ORACLE from PLANTED and returns in how many operations.
static unsigned long find(const struct golden_subject *oracle, const struct golden_subject *planted,
                          uint64_t program_count, size_t operation_count) {
    char *report;
    size_t size;
    FILE *output = open_memstream(&report, &size);
    BASE_CHECK(output != NULL);
    BASE_CHECK(!golden_random_check(oracle, planted, SEED, program_count, operation_count, output));
    fclose(output);
    const char *shrunk = strstr(report, "shrunk to ");
    BASE_CHECK(strstr(report, "seed ") == report && strstr(report, "  planted   ") != NULL &&
               shrunk != NULL);
    const unsigned long operations = strtoul(shrunk + strlen("shrunk to "), NULL, 10);
    free(report);
    return operations;
}

static void check_found(const struct golden_subject *planted) {
    BASE_CHECK_LT(find(&golden_subject_model, planted, PROGRAM_COUNT, OPERATION_COUNT), 12);
}

static void planted_faults_are_found_and_shrunk(void) {
    struct golden_subject planted = golden_subject_model;
    planted.name = "planted";
    planted.open = open_smaller;
    check_found(&planted);
    planted.open = open_without_config;
    check_found(&planted);
    planted.open = open_eager;
    check_found(&planted);
    planted.open = open_older;
    check_found(&planted);
    planted.open = golden_subject_model.open;
    planted.set_config = set_config_forgiving;
    check_found(&planted);
}

// Of the programs that CI runs; a tenth of their operations will do.
#define LONG_PROGRAM_COUNT   50
#define LONG_OPERATION_COUNT 10000

static void whoever_never_hears_of_something_is_found(void) {
    for (int fault = 0; fault < 9; fault++) {
        struct golden_subject planted = golden_subject_model;
        planted.name = "planted";
        switch (fault) {
        case 0: planted.open = open_caching; break;
        case 1: planted.add_free_memory_callback = never_call_back; break;
        case 2: planted.malloc_at = malloc_anywhere; break;
        case 3: planted.list_processes = list_no_processes; break;
        case 4: planted.fail_malloc = never_fail; break;
        case 5: planted.fail_create = never_fail; break;
        case 6: planted.set_stream_class = forget_class; break;
        case 7: planted.set_class_default = forget_class_default; break;
        default: planted.observe_rejections = observe_no_rejections;
        }
        base_check_context("fault %d", fault);
        BASE_CHECK_LT(
            find(&golden_subject_model, &planted, LONG_PROGRAM_COUNT, LONG_OPERATION_COUNT), 40);
    }
    base_check_context(NULL);
}

// These show in no answer but by what they decide.
static void a_key_that_is_not_acted_on_is_found(void) {
    static const char *const keys[] = {"x_bound_growth", "x_poll",         "x_wait",
                                       "x_retry_search", "x_reclaim_idle", "x_torch"};
    struct golden_subject oracle = golden_subject_model, planted = golden_subject_model;
    oracle.settings = planted.settings = settings_with_text;
    planted.name = "planted";
    planted.open = open_without_key;
    planted.set_config = set_config_without_key;
    for (size_t index = 0; index < sizeof keys / sizeof keys[0]; index++) {
        dropped_key = keys[index];
        base_check_context("key %s", dropped_key);
        BASE_CHECK_LT(find(&oracle, &planted, LONG_PROGRAM_COUNT, LONG_OPERATION_COUNT), 100);
    }
    base_check_context(NULL);
}

static void model_cannot_be_told_from_itself(void) {
    BASE_CHECK(golden_random_check(&golden_subject_model, &golden_subject_model, SEED,
                                   PROGRAM_COUNT, OPERATION_COUNT, stdout));
}

int main(void) {
    planted_faults_are_found_and_shrunk();
    whoever_never_hears_of_something_is_found();
    a_key_that_is_not_acted_on_is_found();
    model_cannot_be_told_from_itself();
}
