// See create.h.
#include "allocator/create.h"

#include "allocator/async.h"
#include "allocator/cca.h"
#include "allocator/direct.h"

#include "base/size.h"

#include <stdbool.h>
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

enum base_status allocator_create(const char *text, double fraction, struct allocator **allocator) {
    const char *const whole = text != NULL ? text : "";
    const char *const direct = after(whole, "x_allocator:direct");
    if (direct != NULL && direct[0] != '\0')
        return refuse_settings(whole, direct, "the direct allocator has no settings");
    if (direct != NULL) return direct_allocator_create(allocator);
    const char *const async = after(whole, "x_allocator:async");
    if (async != NULL) return create_async(whole, async, fraction, allocator);

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
