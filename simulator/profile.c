// Which device profile is in force.
#include "simulator/profile.h"

#include "base/file.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define DEFAULT_COSTS "a100-80gb"
#define DEFAULT_NAME "Tidemark simulated device"
#define DEFAULT_CAPACITY (80 * BASE_GIB)

static struct sim__profile in_force;
static bool is_loaded; // in_force is one
static bool is_chosen; // by the program or the environment, which counts once

static const struct sim__profile_text *text_named(const char *name) {
    for (size_t i = 0; i < sim__profile_text_count; ++i)
        if (strcmp(sim__profile_texts[i].name, name) == 0)
            return &sim__profile_texts[i];
    return NULL;
}

static enum base_status no_such_profile(const char *name) {
    char names[256] = "";
    for (size_t i = 0; i < sim__profile_text_count; ++i) {
        strncat(names, sim__profile_texts[i].name, sizeof names - strlen(names) - 3);
        strcat(names, ", ");
    }
    return base_status_set(BASE_INVALID_VALUE,
                           "there is no device profile \"%s\": want %sor the path of a file", name,
                           names);
}

// A name has no slash and no dot.
static enum base_status profile_load(const char *name_or_path, struct sim__profile *profile) {
    const struct sim__profile_text *embedded = text_named(name_or_path);
    if (embedded != NULL)
        return sim__profile_parse(embedded->name, embedded->text, profile);
    if (strpbrk(name_or_path, "/.") == NULL)
        return no_such_profile(name_or_path);
    char *text;
    size_t size;
    enum base_status status = base_file_read(name_or_path, FILE_BYTES_MAX, &text, &size);
    if (status != BASE_OK)
        return status;
    if (strlen(text) != size)
        status = base_status_set(BASE_FORMAT, "%s: want a text file", name_or_path);
    else
        status = sim__profile_parse(name_or_path, text, profile);
    free(text);
    return status;
}

static void take(const struct sim__profile *profile) {
    in_force = *profile;
    is_loaded = true;
    memcpy(sim__costs, in_force.costs, sizeof sim__costs);
}

static void take_default(void) {
    struct sim__profile profile;
    BASE_CHECK_EQ(profile_load(DEFAULT_COSTS, &profile), BASE_OK);
    strcpy(profile.name, DEFAULT_NAME);
    profile.capacity_bytes = DEFAULT_CAPACITY;
    take(&profile);
}

const struct sim__profile *sim__profile(void) {
    if (!is_loaded)
        take_default();
    return &in_force;
}

static enum base_status choose(const char *name_or_path) {
    struct sim__profile profile;
    const enum base_status status = profile_load(name_or_path, &profile);
    if (status == BASE_OK)
        take(&profile);
    return status;
}

enum base_status sim__profile_from_environment(void) {
    const char *name = getenv("TIDEMARK_SIM_PROFILE");
    if (name == NULL || is_chosen)
        return BASE_OK;
    const enum base_status status = choose(name);
    is_chosen = status == BASE_OK;
    return status == BASE_OK ? status : base_status_prefix(status, "TIDEMARK_SIM_PROFILE");
}

enum base_status sim_profile(const char *name_or_path) {
    base_mutex_lock(&sim__state.lock);
    enum base_status status = BASE_OK;
    if (name_or_path == NULL)
        take_default();
    else
        status = choose(name_or_path);
    if (status == BASE_OK)
        is_chosen = true;
    base_mutex_unlock(&sim__state.lock);
    return status;
}
