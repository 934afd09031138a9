// Reading a snapshot: the pickle machine runs, snapshot_dict.c and snapshot_list.c make records of
// what passes, snapshot_attach.c makes the trace of those that the outermost dict holds.
#include "trace/snapshot_reader.h"

#include "trace/sidecar.h"
#include "trace/snapshot.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

// What the trace's builder holds for a string beside its bytes.
#define STRING_OVERHEAD_BYTES 24

bool trace__is_pickle(const unsigned char *bytes, size_t size) {
    if (size == 0) return false;
    // Protocol 2 and up says so; 0 and 1 begin with a container.
    return bytes[0] == 0x80 || bytes[0] == '(' || bytes[0] == '}' || bytes[0] == ']';
}

// Replaces what is no UTF-8 by '?', and zeros, which end a string here. Python writes lone
// surrogates where a file name was no UTF-8; reports need text.
static void clean_utf8(char *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        const size_t step = bytes[i] == 0 ? 0 : base_utf8_length(bytes + i, length - i);
        if (step == 0) bytes[i] = '?';
        i += step == 0 ? 1 : step;
    }
}

enum base_status trace__snapshot_map_string(struct snapshot *snapshot, uint32_t id,
                                            uint32_t *index) {
    while (snapshot->string_map.count <= id) {
        enum base_status status = SNAPSHOT_RESERVE(snapshot->string_map);
        if (status != BASE_OK) return status;
        snapshot->string_map.entries[snapshot->string_map.count++] = 0;
    }
    if (snapshot->string_map.entries[id] != 0) {
        *index = snapshot->string_map.entries[id] - 1;
        return BASE_OK;
    }
    size_t length;
    const char *bytes = trace__pickle_string(snapshot->machine, id, &length);
    char *clean = malloc(length + 1);
    if (clean == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a string of %zu bytes", length);
    memcpy(clean, bytes, length);
    clean_utf8(clean, length);
    enum base_status status = trace_add_string(&snapshot->builder, clean, length, index);
    free(clean);
    if (status != BASE_OK) return status;
    snapshot->string_map.entries[id] = *index + 1;
    snapshot->string_bytes += length + STRING_OVERHEAD_BYTES;
    return BASE_OK;
}

// The known strings get the ids that snapshot.h counts on.
static enum base_status intern_known(struct trace__pickle *machine) {
    static const char *const known[] = {
#define KNOWN_TEXT(name, text) text,
#define KNOWN_ACTION(name, value, text) text,
        SNAPSHOT_KEYS(KNOWN_TEXT) TRACE_ACTION_LIST(KNOWN_ACTION) SNAPSHOT_TEXTS(KNOWN_TEXT)
#undef KNOWN_TEXT
#undef KNOWN_ACTION
    };
    _Static_assert(sizeof known / sizeof *known == TEXT_END,
                   "the numbers of keys, actions and texts are their places here");
    for (uint32_t i = 0; i < TEXT_END; i++) {
        uint32_t id;
        enum base_status status = trace__pickle_intern(machine, known[i], strlen(known[i]), &id);
        if (status != BASE_OK) return status;
        BASE_CHECK_EQ(id, i);
    }
    return BASE_OK;
}

static void tables_free(struct snapshot *snapshot) {
    free(snapshot->frames.entries);
    free(snapshot->blocks.entries);
    free(snapshot->segments.entries);
    free(snapshot->histories.entries);
    free(snapshot->settings.entries);
    free(snapshot->divisions.entries);
    free(snapshot->tops.entries);
    free(snapshot->device_lists.entries);
    free(snapshot->ranges.entries);
    free(snapshot->faults.entries);
    free(snapshot->string_map.entries);
    free(snapshot->frame_numbers.entries);
    free(snapshot->frame_lists.entries);
    free(snapshot->frame_index.slots);
}

static enum base_status run(struct snapshot *snapshot) {
    const struct trace__pickle_shapes shapes = {
        .context = snapshot,
        .run_types = 1u << SNAPSHOT_EVENT | 1u << SNAPSHOT_BLOCK | 1u << SNAPSHOT_SEGMENT,
        .set_items = trace__snapshot_set_items,
        .add_items = trace__snapshot_add_items,
        .check_memory = trace__snapshot_check_memory,
    };
    struct trace__pickle_value root;
    enum base_status status = trace__pickle_create(snapshot->input, &shapes, &snapshot->machine);
    if (status == BASE_OK) status = intern_known(snapshot->machine);
    if (status == BASE_OK) status = trace__pickle_run(snapshot->machine, &root);
    if (status == BASE_OK) status = trace__snapshot_attach(snapshot, &root);
    trace__pickle_destroy(snapshot->machine);
    return status;
}

enum base_status trace__read_snapshot(struct trace_input *input,
                                      const struct trace_read_options *options,
                                      struct trace **trace) {
    struct snapshot snapshot = {.input = input};
    if (options != NULL) {
        snapshot.memory_limit_bytes = options->memory_limit_bytes;
        snapshot.no_stacks = options->no_stacks;
    }
    char *name = trace__base_name(input->name);
    if (name == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a name");
    // The builder counts room, not use, and the budget is about use: it is watched here.
    enum base_status status = trace_builder_init(&snapshot.builder, name, 0);
    free(name);
    if (status != BASE_OK) return status;
    status = run(&snapshot);
    tables_free(&snapshot);
    if (status == BASE_OK) return trace_builder_finish(&snapshot.builder, trace);
    trace_builder_abandon(&snapshot.builder);
    return status;
}
