// See create.h.
#include "allocator/create.h"

#include "allocator/cca.h"
#include "allocator/direct.h"

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

enum base_status allocator_create(const char *text, double fraction, struct allocator **allocator) {
    const char *const whole = text != NULL ? text : "";
    const char *config = after(whole, "x_allocator:direct");
    if (config != NULL) {
        if (config[0] != '\0')
            return base_status_set(BASE_INVALID_CONFIG,
                                   "'%s': the direct allocator has no settings, but '%s' follows",
                                   whole, config);
        return direct_allocator_create(allocator);
    }
    config = after(whole, "x_allocator:caching");
    const size_t key_length = strcspn(whole, ":, ");
    if (config == NULL && is_key(whole, key_length, "x_allocator"))
        return base_status_set(BASE_INVALID_CONFIG, "'%s': x_allocator is caching or direct",
                               whole);
    return cca_allocator_create(
        &(struct cca_options){
            .config = config != NULL ? config : whole,
            .fraction = fraction,
            .fraction_set = fraction >= 0.0 && fraction < 1.0,
        },
        allocator);
}
