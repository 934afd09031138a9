// See create.h.
#include "allocator/create.h"

#include "allocator/async.h"
#include "allocator/cca.h"
#include "allocator/direct.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

// If TEXT begins with PREFIX as a whole key and value, what follows it; else NULL.
static const char *after(const char *text, const char *prefix) {
    const size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0) return NULL;
    if (text[length] == ',') return text + length + 1;
    return text[length] == '\0' ? text + length : NULL;
}

static bool is_key(const char *text, size_t length, const char *key) {
    return length == strlen(key) && strncmp(text, key, length) == 0;
}

// FOLLOWS is what stands behind the name of an allocator that has no settings in the text.
static enum base_status refuse_settings(const char *whole, const char *follows, const char *why) {
    return base_status_set(BASE_INVALID_CONFIG, "'%s': %s, but '%s' follows", whole, why, follows);
}

// SETTINGS is what stands behind the name of the async allocator.
static enum base_status create_async(const char *whole, const char *settings, double fraction,
                                     struct allocator **allocator) {
    static const char key[] = "x_release_threshold:";
    struct async_options options = {.fraction = fraction,
                                    .fraction_set = fraction >= 0.0 && fraction < 1.0};
    if (strncmp(settings, key, sizeof key - 1) == 0) {
        const enum base_status status =
            base_size_parse(settings + sizeof key - 1, &options.release_threshold);
        if (status != BASE_OK) return base_status_prefix(BASE_INVALID_CONFIG, "'%s'", whole);
        options.release_threshold_set = true;
    } else if (settings[0] != '\0') {
        return refuse_settings(whole, settings,
                               "the async allocator has one setting, x_release_threshold:SIZE");
    }
    return async_allocator_create(&options, allocator);
}

//--------------------------------------------------------------------------------------------------
// PyTorch's spelling. It is looked for as PyTorch does when the library is loaded: options between
// commas and white space, key and value between colons, the first back end that is known counts.

static const char backend_async[] = "cudaMallocAsync", backend_native[] = "native";

struct option {
    const char *key, *value; // in the text
    size_t key_length, value_length;
};

// The next option from *AT on; false: there is none.
static bool option_next(const char **at, struct option *option) {
    static const char separators[] = ", \t\n\v\f\r";
    const char *const start = *at + strspn(*at, separators);
    const char *const end = start + strcspn(start, separators);
    *option = (struct option){.key = start, .key_length = strcspn(start, ":")};
    if (start + option->key_length > end) option->key_length = (size_t)(end - start);
    option->value = start + option->key_length;
    while (option->value < end && *option->value == ':')
        ++option->value;
    while (option->value + option->value_length < end && option->value[option->value_length] != ':')
        ++option->value_length;
    *at = end;
    return end > start;
}

static bool names_backend(const struct option *option, const char *name) {
    return is_key(option->key, option->key_length, "backend") &&
           is_key(option->value, option->value_length, name);
}

static bool backend_is_async(const char *text) {
    struct option option;
    while (option_next(&text, &option))
        if (names_backend(&option, backend_async) || names_backend(&option, backend_native))
            return names_backend(&option, backend_async);
    return false;
}

// The other keys are read as the native back end reads them, and nothing comes of them.
static enum base_status check_other_keys(const char *whole) {
    char *const copy = strdup(whole);
    struct allocator *native;
    struct option option;
    if (copy == NULL) return base_status_set(BASE_HOST_MEMORY, "out of host memory for a text");
    enum base_status status = BASE_OK;
    for (const char *at = copy; status == BASE_OK && option_next(&at, &option);) {
        char *const value = copy + (option.value - copy);
        if (names_backend(&option, backend_native))
            status =
                base_status_set(BASE_INVALID_CONFIG,
                                "'%s': both back ends are named (PyTorch: c10::Error Allocator "
                                "backend parsed at runtime != allocator backend parsed at load "
                                "time, native != cudaMallocAsync)",
                                whole);
        if (!names_backend(&option, backend_async)) continue;
        // White space vanishes when it is read.
        memset(value, ' ', option.value_length);
        memcpy(value, backend_native, sizeof backend_native - 1);
    }
    if (status == BASE_OK)
        status = cca_allocator_create(&(struct cca_options){.config = copy}, &native);
    if (status == BASE_OK) allocator_destroy(native);
    free(copy);
    return status;
}

//--------------------------------------------------------------------------------------------------

bool allocator_text_is_async(const char *text) {
    const bool is_named = is_key(text, strcspn(text, ":, "), "x_allocator");
    return is_named ? after(text, "x_allocator:async") != NULL : backend_is_async(text);
}

bool allocator_text_is_caching(const char *text) {
    const bool is_named = is_key(text, strcspn(text, ":, "), "x_allocator");
    return is_named ? after(text, "x_allocator:caching") != NULL : !backend_is_async(text);
}

enum base_status allocator_create(const char *text, double fraction, struct allocator **allocator) {
    const char *const whole = text != NULL ? text : "";
    const char *const direct = after(whole, "x_allocator:direct");
    if (direct != NULL && direct[0] != '\0')
        return refuse_settings(whole, direct, "the direct allocator has no settings");
    if (direct != NULL) return direct_allocator_create(allocator);
    const char *const async = after(whole, "x_allocator:async");
    if (async != NULL) return create_async(whole, async, fraction, allocator);
    if (allocator_text_is_async(whole)) {
        const enum base_status status = check_other_keys(whole);
        return status == BASE_OK ? create_async(whole, "", fraction, allocator) : status;
    }

    struct cca_options options = {
        .config = whole, .fraction = fraction, .fraction_set = fraction >= 0.0 && fraction < 1.0};
    const char *const environment = after(whole, "x_allocator:environment");
    const char *const caching = after(whole, "x_allocator:caching");
    if (environment != NULL && environment[0] != '\0')
        return refuse_settings(whole, environment, "the environment has all settings");
    if (environment != NULL)
        cca_options_from_environment(&options);
    else if (caching != NULL)
        options.config = caching;
    else if (is_key(whole, strcspn(whole, ":, "), "x_allocator"))
        return base_status_set(BASE_INVALID_CONFIG,
                               "'%s': x_allocator is caching, direct, async or environment", whole);
    return cca_allocator_create(&options, allocator);
}
