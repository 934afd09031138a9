// Reading device profiles: profile.h says how they are written.
#include "simulator/profile.h"

#include "base/size.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 6 // figure, three values, unit; one more is a mistake

// --- The figures ---

enum unit {
    UNIT_NAME,
    UNIT_CAPABILITY,
    UNIT_SIZE,
    UNIT_NUMBER,
    UNIT_TIME,
    UNIT_BANDWIDTH,
    UNIT_FLOPS,
};

struct figure {
    const char *name;
    enum unit unit;
    bool costs;    // OFFSET is in struct sim__costs, else in struct sim__profile
    size_t offset; // of a uint64_t, a double for rates, a uint32_t for numbers of the costs
};

#define DEVICE(name, unit, field) {name, unit, false, offsetof(struct sim__profile, field)}
#define COST(name, unit, field) {name, unit, true, offsetof(struct sim__costs, field)}

static const struct figure figures[] = {
    DEVICE("name", UNIT_NAME, name),
    DEVICE("capability", UNIT_CAPABILITY, capability_major),
    DEVICE("capacity", UNIT_SIZE, capacity_bytes),
    DEVICE("multiprocessors", UNIT_NUMBER, multiprocessors),
    DEVICE("memory_bus_bits", UNIT_NUMBER, memory_bus_bits),
    DEVICE("l2_cache", UNIT_SIZE, l2_cache_bytes),
    DEVICE("shared_memory_multiprocessor", UNIT_SIZE, shared_memory_multiprocessor_bytes),
    DEVICE("shared_memory_block", UNIT_SIZE, shared_memory_block_bytes),
    DEVICE("blocks_multiprocessor", UNIT_NUMBER, blocks_multiprocessor),
    COST("concurrent_kernels", UNIT_NUMBER, concurrent_kernels),
    COST("copy_engines", UNIT_NUMBER, copy_engines),
    COST("launch_latency", UNIT_TIME, launch_latency_ns),
    COST("operation_gap", UNIT_TIME, operation_gap_ns),
    COST("graph_node_gap", UNIT_TIME, graph_node_gap_ns),
    COST("kernel", UNIT_TIME, kernel_ns),
    COST("copy", UNIT_TIME, copy_ns),
    COST("fill", UNIT_TIME, fill_ns),
    COST("record", UNIT_TIME, record_ns),
    COST("wait", UNIT_TIME, wait_ns),
    COST("host_function", UNIT_TIME, host_function_ns),
    COST("value", UNIT_TIME, value_ns),
    COST("device_bandwidth", UNIT_BANDWIDTH, device_bandwidth),
    COST("fp32_rate", UNIT_FLOPS, fp32_rate),
    COST("tensor_rate", UNIT_FLOPS, tensor_rate),
    COST("host_to_device_bandwidth", UNIT_BANDWIDTH, host_to_device_bandwidth),
    COST("device_to_host_bandwidth", UNIT_BANDWIDTH, device_to_host_bandwidth),
    COST("pageable_bandwidth", UNIT_BANDWIDTH, pageable_bandwidth),
    COST("peer_bandwidth", UNIT_BANDWIDTH, peer_bandwidth),
};
#define FIGURE_COUNT (sizeof figures / sizeof figures[0])
#define CALL_COUNT (SIM_CALL_KIND_COUNT + 1) // the last: other

static const struct {
    const char *name;
    enum unit unit;
    double factor; // to ns, bytes a ns, flops a ns
} units[] = {
    {"ns", UNIT_TIME, 1},           {"us", UNIT_TIME, 1e3},      {"ms", UNIT_TIME, 1e6},
    {"s", UNIT_TIME, 1e9},          {"GB/s", UNIT_BANDWIDTH, 1}, {"TB/s", UNIT_BANDWIDTH, 1e3},
    {"GFLOP/s", UNIT_FLOPS, 1},     {"TFLOP/s", UNIT_FLOPS, 1e3},
};

// What of a call a line is about.
enum part { PART_CALL, PART_PAGE, PART_NODE, PART_COUNT };
static const struct {
    const char *prefix;
    size_t offset; // in struct sim__costs
} parts[PART_COUNT] = {
    [PART_CALL] = {"call.", offsetof(struct sim__costs, call_ns)},
    [PART_PAGE] = {"page.", offsetof(struct sim__costs, page_ns)},
    [PART_NODE] = {"node.", offsetof(struct sim__costs, node_ns)},
};

// --- Reading ---

struct reader {
    const char *path;
    int line;
    struct sim__profile *profile;
    // 1 + the line that gave each figure, 0: none did.
    int figure_lines[FIGURE_COUNT];
    int call_lines[PART_COUNT][CALL_COUNT];
};

static enum base_status mistake(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum base_status mistake(const struct reader *reader, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return base_status_set(BASE_FORMAT, "%s:%d: %s", reader->path, reader->line, text);
}

static const char *unit_words(enum unit unit) {
    return unit == UNIT_TIME        ? "a time in ns, us, ms or s"
           : unit == UNIT_BANDWIDTH ? "a rate in GB/s or TB/s"
                                    : "a rate in GFLOP/s or TFLOP/s";
}

static bool number_parse(const char *text, double *number) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *number = strtod(text, &end);
    return *end == '\0' && *number < 1e15;
}

// WORDS: one value or three, and a unit.
static enum base_status range_parse(const struct reader *reader, char **words, int count,
                                    enum unit unit, double range[SIM__LEVEL_COUNT]) {
    double factor = 0;
    for (size_t i = 0; count > 0 && i < sizeof units / sizeof units[0]; ++i)
        if (units[i].unit == unit && strcmp(units[i].name, words[count - 1]) == 0)
            factor = units[i].factor;
    if (factor <= 0 || (count != 2 && count != 4))
        return mistake(reader, "%s: want one value, or low, typical and high, and then %s",
                       words[-1], unit_words(unit));
    for (int i = 0; i < count - 1; ++i) {
        if (!number_parse(words[i], &range[i]))
            return mistake(reader, "%s: \"%s\" is no number", words[-1], words[i]);
        range[i] *= factor;
    }
    if (count == 2)
        range[SIM__TYPICAL] = range[SIM__HIGH] = range[SIM__LOW];
    if (range[SIM__LOW] > range[SIM__TYPICAL] || range[SIM__TYPICAL] > range[SIM__HIGH])
        return mistake(reader, "%s: want low, typical and high in ascending order", words[-1]);
    if (unit != UNIT_TIME && range[SIM__LOW] <= 0)
        return mistake(reader, "%s: want a rate above 0", words[-1]);
    return BASE_OK;
}

static void *cost_at(struct sim__profile *profile, int level, size_t offset) {
    return (char *)&profile->costs[level] + offset;
}

static enum base_status time_read(const struct reader *reader, char **words, int count,
                                  size_t offset) {
    double range[SIM__LEVEL_COUNT];
    const enum base_status status = range_parse(reader, words, count, UNIT_TIME, range);
    for (int level = 0; status == BASE_OK && level < SIM__LEVEL_COUNT; ++level)
        *(uint64_t *)cost_at(reader->profile, level, offset) = (uint64_t)(range[level] + 0.5);
    return status;
}

// The highest rate makes the lowest time.
static enum base_status rate_read(const struct reader *reader, char **words, int count,
                                  const struct figure *figure) {
    double range[SIM__LEVEL_COUNT];
    const enum base_status status = range_parse(reader, words, count, figure->unit, range);
    for (int level = 0; status == BASE_OK && level < SIM__LEVEL_COUNT; ++level)
        *(double *)cost_at(reader->profile, level, figure->offset) =
            range[SIM__LEVEL_COUNT - 1 - level];
    return status;
}

static enum base_status number_read(const struct reader *reader, char **words, int count,
                                    const struct figure *figure) {
    double number;
    if (count != 1 || !number_parse(words[0], &number) || number < 1 || number > 1e6 ||
        number > (double)(uint32_t)number)
        return mistake(reader, "%s: want a whole number from 1 to 1000000", figure->name);
    if (!figure->costs)
        *(uint64_t *)((char *)reader->profile + figure->offset) = (uint64_t)number;
    for (int level = 0; figure->costs && level < SIM__LEVEL_COUNT; ++level)
        *(uint32_t *)cost_at(reader->profile, level, figure->offset) = (uint32_t)number;
    return BASE_OK;
}

static enum base_status size_read(const struct reader *reader, char **words, int count,
                                  const struct figure *figure) {
    uint64_t *size = (uint64_t *)((char *)reader->profile + figure->offset);
    if (count != 1)
        return mistake(reader, "%s: want one size, as 80GiB", figure->name);
    if (base_size_parse(words[0], size) != BASE_OK)
        return mistake(reader, "%s: %s", figure->name, base_status_message());
    if (size != &reader->profile->capacity_bytes && *size > BASE_GIB)
        return mistake(reader, "%s: want at most 1GiB", figure->name);
    return BASE_OK;
}

static enum base_status capability_read(const struct reader *reader, char **words, int count) {
    struct sim__profile *profile = reader->profile;
    char rest;
    if (count != 1 ||
        sscanf(words[0], "%2d.%1d%c", &profile->capability_major, &profile->capability_minor,
               &rest) != 2 ||
        profile->capability_major < 1)
        return mistake(reader, "capability: want two numbers, as 9.0");
    return BASE_OK;
}

static enum base_status name_read(const struct reader *reader, char **words, int count) {
    char *name = reader->profile->name;
    name[0] = '\0';
    for (int i = 0; i < count; ++i) {
        if (strlen(name) + strlen(words[i]) + 2 > SIM__PROFILE_NAME_SIZE)
            return mistake(reader, "name: want at most %d bytes", SIM__PROFILE_NAME_SIZE - 1);
        if (i > 0)
            strcat(name, " ");
        strcat(name, words[i]);
    }
    return count > 0 ? BASE_OK : mistake(reader, "name: want the name of the device");
}

static enum base_status once(const struct reader *reader, const char *name, int *line) {
    if (*line > 0)
        return mistake(reader, "%s: line %d gave it already", name, *line);
    *line = reader->line;
    return BASE_OK;
}

static enum base_status figure_read(struct reader *reader, char **words, int count, size_t index) {
    const struct figure *figure = &figures[index];
    const enum base_status status = once(reader, figure->name, &reader->figure_lines[index]);
    if (status != BASE_OK)
        return status;
    switch (figure->unit) {
    case UNIT_NAME: return name_read(reader, words, count);
    case UNIT_CAPABILITY: return capability_read(reader, words, count);
    case UNIT_SIZE: return size_read(reader, words, count, figure);
    case UNIT_NUMBER: return number_read(reader, words, count, figure);
    case UNIT_TIME: return time_read(reader, words, count, figure->offset);
    case UNIT_BANDWIDTH:
    case UNIT_FLOPS: return rate_read(reader, words, count, figure);
    }
    return BASE_OK;
}

static const char *call_name(int call) {
    return call == SIM_CALL_KIND_COUNT ? "other" : sim_call_name((enum sim_call)call);
}

// NAME: the figure without the part's prefix.
static enum base_status call_read(struct reader *reader, const char *name, char **words, int count,
                                  enum part part) {
    int call = 0;
    while (call < CALL_COUNT && strcmp(call_name(call), name) != 0)
        ++call;
    if (call == CALL_COUNT)
        return mistake(reader, "\"%s\" is no kind of call; want one of sim_call_name, or other",
                       name);
    const enum base_status status = once(reader, words[-1], &reader->call_lines[part][call]);
    if (status != BASE_OK)
        return status;
    return time_read(reader, words, count, parts[part].offset + (size_t)call * sizeof(uint64_t));
}

static enum base_status words_read(struct reader *reader, char **words, int count) {
    for (size_t i = 0; i < FIGURE_COUNT; ++i)
        if (strcmp(words[0], figures[i].name) == 0)
            return figure_read(reader, words + 1, count - 1, i);
    for (int part = 0; part < PART_COUNT; ++part) {
        const size_t length = strlen(parts[part].prefix);
        if (strncmp(words[0], parts[part].prefix, length) == 0)
            return call_read(reader, words[0] + length, words + 1, count - 1, (enum part)part);
    }
    return mistake(reader,
                   "there is no figure \"%s\"; want one of those that profiles/h200.profile has",
                   words[0]);
}

static enum base_status line_read(struct reader *reader, char *line) {
    char *words[WORDS_MAX + 1];
    int count = 0;
    char *bar = strchr(line, '|');
    char *source = bar == NULL ? NULL : bar + 1 + strspn(bar + 1, " \t");
    if (bar != NULL)
        *bar = '\0';
    char *rest = line, *word;
    while (count <= WORDS_MAX && (word = strsep(&rest, " \t\r")) != NULL)
        if (*word != '\0')
            words[count++] = word;
    if (count == 0 && bar == NULL)
        return BASE_OK;
    if (count == 0 || source == NULL || *source == '\0' || *source == '\r')
        return mistake(reader, "want FIGURE VALUE [UNIT] | SOURCE");
    if (count > WORDS_MAX)
        return mistake(reader, "%s: too many words before the bar", words[0]);
    return words_read(reader, words, count);
}

// What no line gave.
static enum base_status complete(struct reader *reader) {
    for (size_t i = 0; i < FIGURE_COUNT; ++i)
        if (reader->figure_lines[i] == 0)
            return base_status_set(BASE_FORMAT, "%s: no line gives %s", reader->path,
                                   figures[i].name);
    if (reader->call_lines[PART_CALL][SIM_CALL_KIND_COUNT] == 0)
        return base_status_set(BASE_FORMAT, "%s: no line gives call.other", reader->path);
    for (int call = 0; call < SIM_CALL_KIND_COUNT; ++call)
        for (int level = 0;
             reader->call_lines[PART_CALL][call] == 0 && level < SIM__LEVEL_COUNT; ++level)
            reader->profile->costs[level].call_ns[call] =
                reader->profile->costs[level].call_ns[SIM_CALL_KIND_COUNT];
    return BASE_OK;
}

enum base_status sim__profile_parse(const char *path, const char *text,
                                    struct sim__profile *profile) {
    struct reader reader = {.path = path, .profile = profile};
    enum base_status status = BASE_OK;
    *profile = (struct sim__profile){.name = ""};
    char *copy = strdup(text), *rest = copy, *line;
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "%s: out of host memory", path);
    while (status == BASE_OK && (line = strsep(&rest, "\n")) != NULL) {
        ++reader.line;
        if (*line != '#')
            status = line_read(&reader, line);
    }
    free(copy);
    return status == BASE_OK ? complete(&reader) : status;
}
