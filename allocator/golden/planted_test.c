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

// A model that follows the tie rule of another release.
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

static void check_found(const struct golden_subject *planted) {
    char *report;
    size_t size;
    FILE *output = open_memstream(&report, &size);
    BASE_CHECK(output != NULL);
    BASE_CHECK(!golden_random_check(&golden_subject_model, planted, SEED, PROGRAM_COUNT,
                                    OPERATION_COUNT, output));
    fclose(output);
    const char *shrunk = strstr(report, "shrunk to ");
    BASE_CHECK(strstr(report, "seed ") == report && strstr(report, "  planted   ") != NULL &&
               shrunk != NULL);
    BASE_CHECK_LT(strtoul(shrunk + strlen("shrunk to "), NULL, 10), 12);
    free(report);
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

static void model_cannot_be_told_from_itself(void) {
    BASE_CHECK(golden_random_check(&golden_subject_model, &golden_subject_model, SEED,
                                   PROGRAM_COUNT, OPERATION_COUNT, stdout));
}

int main(void) {
    planted_faults_are_found_and_shrunk();
    model_cannot_be_told_from_itself();
}
