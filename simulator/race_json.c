// A report as one line of JSON: its fields, and of the log what a picture shows: what the streams
// concerned did around the two operations, and the edges between them.
#include "simulator/race_json.h"

#include "base/text.h"
#include "simulator/race_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tidemark-races-1"
#define STREAMS_SHOWN 8
// Entries of the excerpt: some from before the first operation, then what follows it, then what
// came last.
#define BEFORE_SHOWN 40
#define BEHIND_SHOWN 60
#define LAST_SHOWN 60

struct excerpt {
    const struct sim__race_found *found;
    uint64_t streams[STREAMS_SHOWN];
    int stream_count;
    uint64_t first_number; // of the first operation's entry, 0 if the log has it no more
    uint64_t numbers[BEFORE_SHOWN + BEHIND_SHOWN + LAST_SHOWN];
    int count;
    bool has_gap; // in the middle some are left out
};

// --- Values ---

static void string(FILE *file, const char *text) {
    char *clean = strdup(text == NULL ? "" : text);
    putc('"', file);
    for (const char *at = clean; at != NULL && *at != '\0';) {
        const size_t length = base_utf8_length(at, strlen(at));
        const unsigned char c = (unsigned char)*at;
        if (length == 0)
            putc('?', file);
        else if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(file, "\\u%04x", c);
        else
            fwrite(at, 1, length, file);
        at += length == 0 ? 1 : length;
    }
    putc('"', file);
    free(clean);
}

static void key(FILE *file, const char *name) { fprintf(file, ",\"%s\":", name); }

static void text_value(FILE *file, const char *name, const char *text) {
    key(file, name);
    string(file, text);
}

static void number_value(FILE *file, const char *name, uint64_t value) {
    fprintf(file, ",\"%s\":%" PRIu64, name, value);
}

static void truth_value(FILE *file, const char *name, bool value) {
    fprintf(file, ",\"%s\":%s", name, value ? "true" : "false");
}

// What is no zero, or no empty text: the rest is left out.
static void number_given(FILE *file, const char *name, uint64_t value) {
    if (value != 0)
        number_value(file, name, value);
}
static void text_given(FILE *file, const char *name, const char *text) {
    if (text != NULL && text[0] != '\0')
        text_value(file, name, text);
}

void sim__race_json_origin(FILE *file, uint32_t number, const char *what) {
    char text[1024];
    const struct sim__race_origin *origin = sim__race_origin_at(number);
    text_given(file, "what",
               what != NULL ? what : sim__race_origin_what(number, text, sizeof text));
    text_given(file, "site", sim__race_origin_site(number, text, sizeof text));
    text_given(file, "label", origin->label);
    number_given(file, "thread", origin->thread);
}

static void origin_value(FILE *file, uint32_t number) { sim__race_json_origin(file, number, NULL); }

// --- Which entries ---

static bool has_stream(const struct excerpt *excerpt, uint64_t stream) {
    for (int i = 0; i < excerpt->stream_count; ++i)
        if (excerpt->streams[i] == stream)
            return true;
    return false;
}

static void add_stream(struct excerpt *excerpt, uint64_t stream) {
    if (stream != 0 && excerpt->stream_count < STREAMS_SHOWN && !has_stream(excerpt, stream))
        excerpt->streams[excerpt->stream_count++] = stream;
}

static bool meets(const struct sim__race_entry *entry, const struct sim__race_found *found) {
    return entry->size > 0 && entry->start < found->start + found->size &&
           found->start < entry->start + entry->size;
}

// The streams of the two, of the blocks, and those that an edge leads to or from.
static void streams_choose(struct excerpt *excerpt) {
    const struct sim__race_found *found = excerpt->found;
    const bool inside = found->inside != NULL;
    add_stream(excerpt, inside ? found->first.node_stream : found->first.stream);
    add_stream(excerpt, inside ? found->second.node_stream : found->second.stream);
    const struct sim__race_block *block = sim__race_log_block(found->block);
    if (block != NULL)
        add_stream(excerpt, block->stream);
    const int direct = excerpt->stream_count;
    for (uint64_t number = sim__race_log_last(); number >= sim__race_log_first() && number > 0;
         --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry->kind == SIM__RACE_LOG_HOST_WAIT && found->second.stream == 0)
            add_stream(excerpt, entry->other);
        if (entry->kind != SIM__RACE_LOG_WAIT || entry->captured != inside)
            continue;
        for (int i = 0; i < direct; ++i) {
            if (excerpt->streams[i] == entry->stream)
                add_stream(excerpt, entry->other);
            else if (excerpt->streams[i] == entry->other)
                add_stream(excerpt, entry->stream);
        }
    }
}

static bool is_shown(const struct excerpt *excerpt, const struct sim__race_entry *entry) {
    const struct sim__race_found *found = excerpt->found;
    const bool inside = found->inside != NULL;
    switch ((enum sim__race_entry_kind)entry->kind) {
    case SIM__RACE_LOG_OPERATION: return !inside && has_stream(excerpt, entry->stream);
    case SIM__RACE_LOG_NODE: return inside && entry->object == found->first.graph;
    case SIM__RACE_LOG_RECORD:
    case SIM__RACE_LOG_WAIT: return entry->captured == inside && has_stream(excerpt, entry->stream);
    case SIM__RACE_LOG_HOST_WAIT:
        return !inside && (entry->other == 0 || has_stream(excerpt, entry->other));
    case SIM__RACE_LOG_HOST:
    case SIM__RACE_LOG_ALLOC:
    case SIM__RACE_LOG_FREE:
    case SIM__RACE_LOG_TAKE:
    case SIM__RACE_LOG_USE:
    case SIM__RACE_LOG_GIVE: return meets(entry, found);
    }
    return false;
}

static bool is_side_entry(const struct sim__race_entry *entry, const struct sim__race_side *side,
                          bool inside) {
    if (inside)
        return entry->kind == SIM__RACE_LOG_NODE && entry->sequence == side->node;
    switch ((enum sim__race_entry_kind)entry->kind) {
    case SIM__RACE_LOG_OPERATION:
    case SIM__RACE_LOG_ALLOC:
    case SIM__RACE_LOG_FREE:
        return entry->stream == side->stream &&
               (side->stream == 0 ? entry->origin == side->origin
                                  : entry->sequence == side->sequence);
    case SIM__RACE_LOG_HOST: return side->stream == 0 && entry->origin == side->origin;
    case SIM__RACE_LOG_TAKE:
    case SIM__RACE_LOG_GIVE: return side->origin != 0 && entry->origin == side->origin;
    default: return false;
    }
}

static uint64_t side_number(const struct excerpt *excerpt, const struct sim__race_side *side) {
    for (int i = excerpt->count - 1; i >= 0; --i)
        if (is_side_entry(sim__race_log_at(excerpt->numbers[i]), side,
                          excerpt->found->inside != NULL))
            return excerpt->numbers[i];
    return 0;
}

static uint64_t first_entry(const struct excerpt *excerpt) {
    for (uint64_t number = sim__race_log_last(); number >= sim__race_log_first() && number > 0;
         --number)
        if (is_side_entry(sim__race_log_at(number), &excerpt->found->first,
                          excerpt->found->inside != NULL))
            return number;
    return 0;
}

// Up to MOST entries that are shown, from NUMBER on in steps of STEP, while they are in [LOW,
// HIGH].
static int collect(const struct excerpt *excerpt, uint64_t number, int step, uint64_t low,
                   uint64_t high, int most, uint64_t *numbers) {
    int count = 0;
    for (; number >= low && number <= high && number > 0 && count < most;
         number += (uint64_t)(int64_t)step)
        if (is_shown(excerpt, sim__race_log_at(number)))
            numbers[count++] = number;
    return count;
}

static int compare_numbers(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void entries_choose(struct excerpt *excerpt) {
    const uint64_t low = sim__race_log_first(), high = sim__race_log_last();
    excerpt->first_number = first_entry(excerpt);
    const uint64_t middle = excerpt->first_number != 0 ? excerpt->first_number : high;
    int count = collect(excerpt, middle - 1, -1, low, high, BEFORE_SHOWN, excerpt->numbers);
    const int behind =
        collect(excerpt, middle, 1, low, high, BEHIND_SHOWN, excerpt->numbers + count);
    const uint64_t end = behind == 0 ? middle : excerpt->numbers[count + behind - 1] + 1;
    count += behind;
    const int rest = collect(excerpt, high, -1, end, high, LAST_SHOWN, excerpt->numbers + count);
    excerpt->has_gap = rest == LAST_SHOWN;
    excerpt->count = count + rest;
    qsort(excerpt->numbers, (size_t)excerpt->count, sizeof excerpt->numbers[0], compare_numbers);
}

// --- Parts of the line ---

static void side_write(FILE *file, const struct excerpt *excerpt, const char *name,
                       const struct sim__race_side *side,
                       const struct sim_race_operation *operation) {
    static const char *const modes[] = {
        [SIM_ACCESS_READ] = "read",
        [SIM_ACCESS_WRITE] = "write",
        [SIM_ACCESS_ATOMIC] = "atomic",
        [SIM_ACCESS_CARRY] = "read",
    };
    key(file, name);
    if (operation->what[0] == '\0') {
        fputs("null", file);
        return;
    }
    putc('{', file);
    fputs("\"what\":", file);
    string(file, operation->what);
    text_value(file, "mode", modes[side->mode]);
    text_given(file, "label", operation->label);
    text_given(file, "site", operation->site);
    number_value(file, "stream", operation->stream);
    number_value(file, "device", (uint64_t)operation->device);
    number_value(file, "thread", (uint64_t)operation->thread);
    number_value(file, "sequence", operation->sequence);
    number_given(file, "block", side->block);
    if (side->node_origin != 0) {
        text_given(file, "node", operation->node);
        text_given(file, "node_site", operation->node_site);
        number_value(file, "node_number", side->node);
        number_given(file, "node_stream", side->node_stream);
        number_value(file, "graph", side->graph);
    }
    number_given(file, "entry", side_number(excerpt, side));
    putc('}', file);
}

static void memory_write(FILE *file, const struct sim__race_found *found) {
    const struct sim__race_allocation *memory = sim__race_log_allocation(found->start);
    number_value(file, "start", found->start);
    number_value(file, "size", found->size);
    if (memory == NULL)
        return;
    fprintf(file, ",\"allocation\":{\"start\":%" PRIu64 ",\"size\":%" PRIu64, memory->start,
            memory->size);
    origin_value(file, memory->origin);
    putc('}', file);
    if (memory->freed_origin == 0)
        return;
    fputs(",\"freed\":{\"start\":", file);
    fprintf(file, "%" PRIu64, memory->start);
    origin_value(file, memory->freed_origin);
    putc('}', file);
}

static void block_write(FILE *file, const struct sim__race_block *block, bool is_first) {
    fprintf(file, "%s{\"number\":%" PRIu64, is_first ? "" : ",", block->number);
    text_given(file, "name", block->name);
    number_value(file, "start", block->start);
    number_value(file, "size", block->size);
    number_value(file, "stream", block->stream);
    fputs(",\"taken\":{\"entry\":", file);
    fprintf(file, "%" PRIu64, block->taken);
    origin_value(file, block->taken_origin);
    fputs("},\"uses\":[", file);
    for (uint32_t i = 0; i < block->use_count && i < SIM__RACE_BLOCK_USES; ++i) {
        fprintf(file, "%s{\"entry\":%" PRIu64 ",\"stream\":%" PRIu64, i > 0 ? "," : "",
                block->uses[i].number, block->uses[i].stream);
        origin_value(file, block->uses[i].origin);
        putc('}', file);
    }
    putc(']', file);
    if (block->given != 0) {
        fprintf(file, ",\"given\":{\"entry\":%" PRIu64, block->given);
        origin_value(file, block->given_origin);
        putc('}', file);
    }
    putc('}', file);
}

static void blocks_write(FILE *file, const struct sim__race_found *found) {
    const uint64_t numbers[3] = {found->block, found->first.block, found->second.block};
    bool is_first = true;
    fputs(",\"blocks\":[", file);
    for (int i = 0; i < 3; ++i) {
        const struct sim__race_block *block = sim__race_log_block(numbers[i]);
        const bool is_repeated =
            (i > 0 && numbers[i] == numbers[0]) || (i > 1 && numbers[i] == numbers[1]);
        if (block == NULL || is_repeated)
            continue;
        block_write(file, block, is_first);
        is_first = false;
    }
    putc(']', file);
}

static void streams_write(FILE *file, const struct excerpt *excerpt) {
    fputs(",\"streams\":[", file);
    for (int i = 0; i < excerpt->stream_count; ++i) {
        const struct sim__race_stream stream = sim__race_log_stream(excerpt->streams[i]);
        fprintf(file, "%s{\"number\":%" PRIu64 ",\"device\":%d", i > 0 ? "," : "",
                excerpt->streams[i], stream.device);
        truth_value(file, "legacy", stream.legacy);
        truth_value(file, "nonblocking", stream.nonblocking);
        putc('}', file);
    }
    putc(']', file);
}

static void entry_write(FILE *file, const struct sim__race_entry *entry, bool is_first) {
    static const char *const kinds[] = {
        [SIM__RACE_LOG_OPERATION] = "operation", [SIM__RACE_LOG_NODE] = "node",
        [SIM__RACE_LOG_RECORD] = "record",       [SIM__RACE_LOG_WAIT] = "wait",
        [SIM__RACE_LOG_HOST_WAIT] = "host-wait", [SIM__RACE_LOG_HOST] = "host",
        [SIM__RACE_LOG_ALLOC] = "alloc",         [SIM__RACE_LOG_FREE] = "free",
        [SIM__RACE_LOG_TAKE] = "take",           [SIM__RACE_LOG_USE] = "use",
        [SIM__RACE_LOG_GIVE] = "give",
    };
    fprintf(file, "%s{\"entry\":%" PRIu64, is_first ? "" : ",", entry->number);
    text_value(file, "kind", kinds[entry->kind]);
    number_value(file, "stream", entry->stream);
    number_given(file, "sequence", entry->sequence);
    number_given(file, "other", entry->other);
    number_given(file, "other_sequence", entry->other_sequence);
    number_given(file, "object", entry->object);
    if (entry->size != 0) {
        number_value(file, "start", entry->start);
        number_value(file, "size", entry->size);
    }
    origin_value(file, entry->origin);
    putc('}', file);
}

static void log_write(FILE *file, const struct excerpt *excerpt) {
    truth_value(file, "gap", excerpt->has_gap);
    fputs(",\"log\":[", file);
    for (int i = 0; i < excerpt->count; ++i)
        entry_write(file, sim__race_log_at(excerpt->numbers[i]), i == 0);
    putc(']', file);
}

// --- The file ---

void sim__race_json_head(FILE *file) { fprintf(file, "{\"schema\":\"%s\"}\n", SCHEMA); }

void sim__race_json_report(FILE *file, const struct sim__race_found *found,
                           const struct sim_race_report *report, uint64_t number) {
    struct sim__text missing = {NULL, 0, 0}, mend = {NULL, 0, 0};
    struct excerpt excerpt = {.found = found};
    streams_choose(&excerpt);
    entries_choose(&excerpt);
    fprintf(file, "{\"number\":%" PRIu64, number);
    text_value(file, "rule", sim_race_rule_name(found->rule));
    text_value(file, "kind", report->kind);
    side_write(file, &excerpt, "first", &found->first, &report->first);
    side_write(file, &excerpt, "second", &found->second, &report->second);
    memory_write(file, found);
    blocks_write(file, found);
    number_given(file, "known", found->known);
    truth_value(file, "inside_graph", found->inside != NULL);
    sim__race_words_missing(&missing, &mend, found);
    text_value(file, "missing", missing.bytes);
    text_value(file, "mend", mend.bytes);
    text_value(file, "text", report->text);
    streams_write(file, &excerpt);
    log_write(file, &excerpt);
    sim__race_json_nodes(file, found);
    fputs("}\n", file);
    sim__text_deinit(&missing);
    sim__text_deinit(&mend);
}
