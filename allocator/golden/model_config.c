// The configuration string for the model: well-formed `key:value` pairs, joined by commas, of the
// modelled keys. Lenient corners of PyTorch's tokenizer are not here; table logs hold the
// allocator's own parser to them.
#include "allocator/golden/model_internal.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_LENGTH_MAX   64
#define VALUE_LENGTH_MAX 256

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

static unsigned log2_floor(uint64_t value) {
    unsigned result = 0;
    while (value >>= 1) result++;
    return result;
}

static enum base_status invalid(const char *message) {
    return base_status_set(BASE_INVALID_CONFIG, "%s", message);
}

static enum base_status parse_megabytes(const char *key, const char *value, uint64_t minimum,
                                        unsigned minor, size_t *bytes) {
    const uint64_t megabytes = strtoull(value, NULL, 10);
    const bool is_old = minor < 11; // 20 itself was refused
    if (megabytes < minimum || (is_old && megabytes == minimum))
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option %s too small, must be %s %llu", key,
                               is_old ? ">" : ">=", (unsigned long long)minimum);
    *bytes = megabytes * BASE_MIB;
    return BASE_OK;
}

static enum base_status parse_large_segment(const char *value, size_t *bytes) {
    const uint64_t megabytes = strtoull(value, NULL, 10);
    if (megabytes <= 10)
        return invalid("CachingAllocator option large_segment_size_mb must be > 10 MB");
    *bytes = megabytes * BASE_MIB;
    return BASE_OK;
}

static enum base_status parse_threshold(const char *value, double *threshold) {
    const double number = strtod(value, NULL);
    if (number <= 0 || number >= 1)
        return invalid("garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    *threshold = number;
    return BASE_OK;
}

static enum base_status parse_start_fraction(const char *value, double *fraction) {
    const double number = strtod(value, NULL);
    if (number < 0 || number > 1)
        return invalid("per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    *fraction = number;
    return BASE_OK;
}

static enum base_status parse_version(const char *value, struct model_settings *settings) {
    if (sscanf(value, "2.%u", &settings->minor) != 1)
        return invalid("x_torch must be a version, such as 2.15");
    settings->ties_by_address = settings->minor <= 11;
    return BASE_OK;
}

// The release that first read a key.
static unsigned first_minor_of(const char *key) {
    if (strcmp(key, "max_non_split_rounding_mb") == 0) return 6;
    if (strcmp(key, "per_process_memory_fraction") == 0) return 9;
    if (strcmp(key, "large_segment_size_mb") == 0) return 11;
    if (strcmp(key, "expandable_segments") == 0) return 1;
    if (strncmp(key, "expandable_segments_reserve", 27) == 0) return 14;
    return 0;
}

static bool is_one_pass(const struct model_settings *settings) { return settings->minor <= 8; }

static enum base_status unknown_key(const struct model_settings *settings, const char *key) {
    if (is_one_pass(settings))
        return base_status_set(BASE_INVALID_CONFIG,
                               "unknown (PyTorch: c10::Error Unrecognized CachingAllocator option: "
                               "%s)",
                               key);
    return base_status_set(BASE_INVALID_CONFIG,
                           "Unrecognized key '%s' in Accelerator allocator config.", key);
}

// One pair of a division list. LAST is the entry of the pair before, -1 for the first pair.
static enum base_status apply_division_pair(size_t divisions[MODEL_DIVISION_COUNT], unsigned minor,
                                            const char *key, uint64_t division, int *last) {
    if (division != 0 && !is_power_of_two(division))
        return invalid("For roundups, the divisions has to be power of 2 or 0 to disable roundup ");
    if (strcmp(key, ">") == 0) {
        // Up to 2.8 the last interval was overwritten.
        const int first = (*last < 0 ? 0 : *last) + (minor <= 8 ? 0 : 1);
        for (int entry = first; entry < MODEL_DIVISION_COUNT; entry++) divisions[entry] = division;
        return BASE_OK;
    }
    const uint64_t megabytes = strtoull(key, NULL, 10);
    if (!is_power_of_two(megabytes))
        return invalid("For roundups, the intervals have to be power of 2 ");
    unsigned entry = log2_floor(megabytes);
    if (entry >= MODEL_DIVISION_COUNT) entry = MODEL_DIVISION_COUNT - 1;
    if (*last < 0)
        for (unsigned lower = 0; lower < entry; lower++) divisions[lower] = division;
    divisions[entry] = division;
    *last = (int)entry;
    return BASE_OK;
}

static enum base_status parse_divisions(const char *value, unsigned minor,
                                        size_t divisions[MODEL_DIVISION_COUNT]) {
    if (value[0] != '[') {
        const uint64_t division = strtoull(value, NULL, 10);
        if (!is_power_of_two(division))
            return invalid("For roundups, the divisions has to be power of 2 ");
        for (int entry = 0; entry < MODEL_DIVISION_COUNT; entry++) divisions[entry] = division;
        return BASE_OK;
    }
    int last = -1;
    for (const char *text = value + 1; *text != '\0' && *text != ']';) {
        char key[KEY_LENGTH_MAX];
        unsigned long long division;
        int used = 0;
        if (sscanf(text, "%63[^:]:%llu%n", key, &division, &used) != 2)
            return invalid("malformed division list");
        const enum base_status status = apply_division_pair(divisions, minor, key, division, &last);
        if (status != BASE_OK) return status;
        text += used;
        if (*text == ',') text++;
    }
    return BASE_OK;
}

// Well-formed: "0.5" or "40G".
static enum base_status parse_reserve(const char *value, struct model_reserve *reserve) {
    char unit = '\0';
    if (sscanf(value, "%lf%c", &reserve->amount, &unit) < 1 || reserve->amount <= 0)
        return invalid("malformed reserve");
    reserve->in_gib = unit != '\0';
    return BASE_OK;
}

// [NAME:VALUE,...]
static enum base_status parse_reserve_classes(const char *value, struct model_settings *settings) {
    settings->reserve_class_count = 0;
    for (const char *text = value + 1; *text != '\0' && *text != ']';) {
        char name[MODEL_CLASS_NAME], amount[32];
        int used = 0;
        if (sscanf(text, "%63[^:]:%31[^],]%n", name, amount, &used) != 2 ||
            settings->reserve_class_count == 16)
            return invalid("malformed list of reserves");
        struct model_reserve_class *class = NULL;
        for (size_t index = 0; index < settings->reserve_class_count; index++)
            if (strcmp(settings->reserve_classes[index].name, name) == 0)
                class = &settings->reserve_classes[index];
        if (class == NULL) class = &settings->reserve_classes[settings->reserve_class_count++];
        snprintf(class->name, sizeof class->name, "%s", name);
        const enum base_status status = parse_reserve(amount, &class->reserve);
        if (status != BASE_OK) return status;
        text += used;
        if (*text == ',') text++;
    }
    return BASE_OK;
}

// Keys are applied in this order, whatever the order of the string.
enum turn { TURN_VERSION, TURN_FIRST, TURN_GENERIC, TURN_CUDA, TURN_OWN, TURN_COUNT };

static enum turn turn_of(const char *key) {
    if (strcmp(key, "large_segment_size_mb") == 0) return TURN_FIRST;
    if (strcmp(key, "per_process_memory_fraction") == 0) return TURN_CUDA;
    if (strcmp(key, "release_lock_on_cudamalloc") == 0) return TURN_CUDA;
    if (strcmp(key, "throw_on_cudamalloc_oom") == 0) return TURN_CUDA;
    if (strncmp(key, "expandable_segments_reserve", 27) == 0) return TURN_CUDA;
    if (strcmp(key, "x_torch") == 0) return TURN_VERSION;
    return strncmp(key, "x_", 2) == 0 ? TURN_OWN : TURN_GENERIC;
}

static enum base_status apply_pair(struct model_settings *settings, const char *key,
                                   const char *value) {
    const uint64_t minimum = settings->large_segment_size / BASE_MIB;
    if (strcmp(key, "large_segment_size_mb") == 0)
        return parse_large_segment(value, &settings->large_segment_size);
    if (strcmp(key, "max_split_size_mb") == 0)
        return parse_megabytes(key, value, minimum, settings->minor, &settings->max_split_size);
    if (strcmp(key, "max_non_split_rounding_mb") == 0)
        return parse_megabytes(key, value, minimum, settings->minor,
                               &settings->max_non_split_rounding);
    if (strcmp(key, "garbage_collection_threshold") == 0)
        return parse_threshold(value, &settings->gc_threshold);
    if (strcmp(key, "roundup_power2_divisions") == 0)
        return parse_divisions(value, settings->minor, settings->divisions);
    if (strcmp(key, "per_process_memory_fraction") == 0)
        return parse_start_fraction(value, &settings->start_fraction);
    if (strcmp(key, "x_torch") == 0) return parse_version(value, settings);
    if (strcmp(key, "release_lock_on_cudamalloc") == 0) {
        settings->releases_lock = strcmp(value, "True") == 0;
        return BASE_OK;
    }
    if (strcmp(key, "throw_on_cudamalloc_oom") == 0) {
        settings->throws = strcmp(value, "True") == 0;
        return BASE_OK;
    }
    if (strcmp(key, "x_bound_growth") == 0) {
        settings->bound_growth = strcmp(value, "True") == 0;
        return BASE_OK;
    }
    if (strcmp(key, "expandable_segments") == 0) {
        settings->expandable = strcmp(value, "True") == 0;
        return BASE_OK;
    }
    if (strcmp(key, "expandable_segments_reserve") == 0)
        return parse_reserve(value, &settings->reserve);
    if (strcmp(key, "expandable_segments_reserve_by_class") == 0)
        return parse_reserve_classes(value, settings);
    return base_status_set(BASE_UNSUPPORTED, "%s is not modelled", key);
}

// Splits off the next pair; brackets protect commas. False at the end.
static bool next_pair(const char **text, char key[KEY_LENGTH_MAX], char value[VALUE_LENGTH_MAX]) {
    if (**text == '\0') return false;
    const size_t key_length = strcspn(*text, ":");
    snprintf(key, KEY_LENGTH_MAX, "%.*s", (int)key_length, *text);
    *text += key_length;
    if (**text == ':') ++*text;
    size_t length = strcspn(*text, ",");
    if (**text == '[') length = strcspn(*text, "]") + 1;
    if (length > strlen(*text)) length = strlen(*text);
    snprintf(value, VALUE_LENGTH_MAX, "%.*s", (int)length, *text);
    *text += length;
    if (**text == ',') ++*text;
    return true;
}

void model__settings_init(struct model_settings *settings) {
    *settings = (struct model_settings){.minor = 15,
                                        .max_split_size = MODEL_UNLIMITED,
                                        .large_segment_size = 20 * BASE_MIB,
                                        .start_fraction = 1};
}

enum base_status model__settings_apply(struct model_settings *settings, const char *config) {
    const struct model_settings before = *settings;
    model__settings_init(settings);
    settings->large_segment_size = before.large_segment_size; // a new string does not reset these
    settings->start_fraction = before.start_fraction;
    settings->minor = before.minor;
    settings->ties_by_address = before.ties_by_address;
    settings->releases_lock = before.releases_lock;
    settings->throws = before.throws;
    settings->expandable = before.expandable;
    settings->bound_growth = before.bound_growth;
    settings->reserve = before.reserve;
    memcpy(settings->reserve_classes, before.reserve_classes, sizeof before.reserve_classes);
    settings->reserve_class_count = before.reserve_class_count;
    snprintf(settings->last, sizeof settings->last, "%s", config);

    char key[KEY_LENGTH_MAX], value[VALUE_LENGTH_MAX];
    for (enum turn turn = TURN_VERSION; turn < TURN_COUNT; turn++)
        for (const char *text = config; next_pair(&text, key, value);) {
            const bool is_unknown = settings->minor < first_minor_of(key);
            if (is_unknown && turn >= TURN_GENERIC) return unknown_key(settings, key);
            enum turn its_turn = turn_of(key);
            if (its_turn == TURN_CUDA && is_one_pass(settings)) its_turn = TURN_GENERIC;
            if (its_turn != turn || is_unknown) continue;
            const enum base_status status = apply_pair(settings, key, value);
            if (status != BASE_OK) return status;
        }
    return BASE_OK;
}
