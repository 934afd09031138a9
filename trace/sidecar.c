// Reads the JSON beside a snapshot. A file that is there but says nonsense is an error, not
// nothing: a replay without the capacity that was meant would look right and be wrong.
#include "trace/sidecar.h"

#include "trace/build.h"

#include "base/file.h"
#include "base/size.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDECAR_SIZE_MAX (16 * BASE_MIB)

static bool suffix_cut(char *path, const char *suffix) {
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    if (length <= suffix_length || strcmp(path + length - suffix_length, suffix) != 0) return false;
    path[length - suffix_length] = 0;
    return true;
}

// Cuts the last suffix of the last component, if it has one ("a.b/c" has none, ".hidden" neither).
static void last_suffix_cut(char *path) {
    char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name) *dot = 0;
}

char *trace__base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash == NULL ? path : slash + 1);
    if (name == NULL) return NULL;
    suffix_cut(name, ".gz");
    last_suffix_cut(name);
    return name;
}

static enum base_status take_capacity(const json_t *value, struct trace_settings *settings) {
    if (value == NULL || json_is_null(value)) return BASE_OK;
    if (!json_is_integer(value) || json_integer_value(value) <= 0)
        return base_status_set(BASE_FORMAT,
                               "device_capacity must be a whole number of bytes above 0");
    settings->capacity_bytes = (uint64_t)json_integer_value(value);
    return BASE_OK;
}

static enum base_status take_fraction(const json_t *value, struct trace_settings *settings) {
    if (value == NULL || json_is_null(value)) return BASE_OK;
    if (!json_is_number(value) || !(json_number_value(value) > 0) || json_number_value(value) > 1)
        return base_status_set(BASE_FORMAT,
                               "memory_fraction must be a number above 0, at most 1, or null");
    settings->memory_fraction = json_number_value(value);
    return BASE_OK;
}

static enum base_status take_version(const json_t *value, struct trace_settings *settings) {
    if (value == NULL || json_is_null(value)) return BASE_OK;
    if (!json_is_string(value))
        return base_status_set(BASE_FORMAT, "torch must be a version as text, such as \"2.15.0\"");
    return trace_set_text(&settings->torch_version, json_string_value(value));
}

static enum base_status take_all(const char *text, size_t size, struct trace_settings *settings) {
    json_error_t error;
    json_t *root = json_loadb(text, size, 0, &error);
    if (root == NULL)
        return base_status_set(BASE_FORMAT, "byte %d: no JSON: %s", error.position, error.text);
    enum base_status status = BASE_OK;
    if (!json_is_object(root)) status = base_status_set(BASE_FORMAT, "an object is wanted");
    if (status == BASE_OK)
        status = take_capacity(json_object_get(root, "device_capacity"), settings);
    if (status == BASE_OK)
        status = take_fraction(json_object_get(root, "memory_fraction"), settings);
    if (status == BASE_OK) status = take_version(json_object_get(root, "torch"), settings);
    json_decref(root);
    return status;
}

enum base_status trace__read_sidecar(const char *path, struct trace_settings *settings) {
    char *json_path = malloc(strlen(path) + sizeof ".json");
    if (json_path == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a path");
    strcpy(json_path, path);
    suffix_cut(json_path, ".gz");
    last_suffix_cut(json_path);
    strcat(json_path, ".json");
    enum base_status status = BASE_OK;
    if (strcmp(json_path, path) != 0 && access(json_path, F_OK) == 0) {
        char *text = NULL;
        size_t size = 0;
        status = base_file_read(json_path, SIDECAR_SIZE_MAX, &text, &size);
        if (status == BASE_OK) {
            status = take_all(text, size, settings);
            if (status != BASE_OK)
                status = base_status_prefix(
                    status, "%s (read because it stands beside the snapshot)", json_path);
        }
        free(text);
    }
    free(json_path);
    return status;
}
