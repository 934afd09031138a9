// trace:make: a trace of any length, made up by a seed (generate.h). As .tmt, or as a PyTorch
// snapshot with stacks whose size is given: what readers are measured on. The snapshot is streamed:
// memory does not grow with it.
#include "trace/build.h"
#include "trace/generate.h"
#include "trace/snapshot_write.h"

#include "base/options.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Frames of the made program, and how deep its stacks are: what real recordings with Python stacks
// show.
enum {
    FRAME_COUNT = 3000,
    DEPTH_MIN = 12,
    DEPTH_MAX = 48,
    LIST_BATCH = 1000,
    EVENT_COUNT_DEFAULT = 1000000
};

#define NOT_GIVEN UINT64_MAX

static uint64_t event_count = NOT_GIVEN, size_bytes, stream_count = 1;
static const char *profile_name = "training", *format_name;
static bool uncompressed;

static const struct base_option options[] = {
    {"events", "N", BASE_OPTION_COUNT, &event_count,
     "allocations and frees to make (default 1000000)"},
    {"size", "SIZE", BASE_OPTION_SIZE, &size_bytes,
     "of a snapshot instead: make events until the file is this large"},
    {"profile", "NAME", BASE_OPTION_TEXT, &profile_name, "training (default), varlen or serving"},
    {"streams", "N", BASE_OPTION_COUNT, &stream_count, "streams in use, 1 to 64 (default 1)"},
    {"format", "NAME", BASE_OPTION_TEXT, &format_name,
     "tmt or pickle (default: by OUT's suffix, else tmt)"},
    {"uncompressed", NULL, BASE_OPTION_FLAG, &uncompressed, "leave the .tmt uncompressed"},
    {0}};

static const struct base_program program = {
    .name = "make",
    .arguments = "OUT",
    .summary = "Makes a trace of any length by a seed: requests only, no placement.",
    .details = "An event is one allocation or free; a free is two entries of the file, as in a "
               "recording (requested, "
               "completed). The same seed and options give the same bytes.",
    .common = BASE_COMMON_SEED,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = 1,
};

static bool is_request(const struct trace_event *event) {
    return event->action == TRACE_ALLOC || event->action == TRACE_FREE_REQUESTED;
}

//------------------------------------------------------------------------------------------------
// As .tmt.

static enum base_status add_events(struct trace_builder *builder,
                                   struct trace_generator *generator) {
    struct base_progress progress;
    base_progress_begin(&progress, "make", event_count);
    enum base_status status = BASE_OK;
    uint16_t index;
    for (uint32_t i = 1; status == BASE_OK && i < stream_count; i++)
        status = trace_add_stream(builder, trace__generator_stream(i), &index);
    // The entries of one request stay together: the loop ends where the next request would begin.
    for (uint64_t done = 0; status == BASE_OK;) {
        struct trace_event event;
        uint32_t site;
        status = trace__generator_next(generator, &event, &site);
        if (status != BASE_OK || (is_request(&event) && done == event_count)) break;
        if (base_interrupted())
            status = base_status_set(BASE_INTERRUPTED, "interrupted; nothing was written");
        done += is_request(&event);
        if (status == BASE_OK) status = trace_add_event(builder, &event);
        base_progress_update(&progress, done);
    }
    base_progress_end(&progress);
    return status;
}

static enum base_status make_tmt(const char *path, const char *source,
                                 struct trace_generator *generator) {
    struct trace_builder builder;
    struct trace *trace = NULL;
    enum base_status status = trace_builder_init(&builder, "made", 0);
    if (status != BASE_OK) return status;
    status = trace_set_text(&builder.trace->source, source);
    if (status == BASE_OK) status = trace_add_devices(&builder, 1);
    if (status == BASE_OK) status = add_events(&builder, generator);
    if (status != BASE_OK) {
        trace_builder_abandon(&builder);
        return status;
    }
    builder.trace->has_pool_ids = true;
    builder.trace->settings.known = true;
    status = trace_builder_finish(&builder, &trace);
    if (status == BASE_OK) status = trace_write(trace, path, !uncompressed);
    trace_destroy(trace);
    return status;
}

//------------------------------------------------------------------------------------------------
// As a snapshot.

struct snapshot {
    struct trace_pickler pickle;
    uint64_t seed;
    uint32_t frame_memo[FRAME_COUNT];
    uint32_t last_free_memo, pool_memo;
    uint64_t last_free_address;
};

static void write_frame(struct snapshot *snapshot, uint32_t frame) {
    if (snapshot->frame_memo[frame] != TRACE_PICKLE_UNKNOWN) {
        trace__pickler_refer(&snapshot->pickle, snapshot->frame_memo[frame]);
        return;
    }
    char text[64];
    trace__pickler_dict_begin(&snapshot->pickle);
    snapshot->frame_memo[frame] = trace__pickler_last_memo(&snapshot->pickle);
    trace__pickler_word(&snapshot->pickle, TRACE_PICKLE_NAME);
    snprintf(text, sizeof text, "function_%u", frame);
    trace__pickler_text(&snapshot->pickle, text, NULL);
    trace__pickler_word(&snapshot->pickle, TRACE_PICKLE_FILENAME);
    snprintf(text, sizeof text, "program/module_%u.py", frame / 20);
    trace__pickler_text(&snapshot->pickle, text, NULL);
    trace__pickler_word(&snapshot->pickle, TRACE_PICKLE_LINE);
    trace__pickler_integer(&snapshot->pickle, 10 + frame % 20 * 17);
    trace__pickler_dict_end(&snapshot->pickle);
}

// PyTorch writes a list of its own for each allocation and each free; the frames in it are shared.
// A free that completes at once has the list of its request; the stack of a late completion is
// empty, as if nobody stood there.
static void write_frames(struct snapshot *snapshot, const struct trace_event *event,
                         uint32_t site) {
    struct trace_pickler *pickle = &snapshot->pickle;
    trace__pickler_word(pickle, TRACE_PICKLE_FRAMES);
    const bool is_completion = event->action == TRACE_FREE_COMPLETED;
    if (is_completion && event->address == snapshot->last_free_address) {
        trace__pickler_refer(pickle, snapshot->last_free_memo);
        return;
    }
    trace__pickler_list_begin(pickle);
    if (event->action == TRACE_FREE_REQUESTED) {
        snapshot->last_free_address = event->address;
        snapshot->last_free_memo = trace__pickler_last_memo(pickle);
    }
    struct base_random frames =
        base_random_init(snapshot->seed ^ (uint64_t)site << 20 ^ event->action, "stack");
    for (uint64_t depth = is_completion ? 0 : base_random_between(&frames, DEPTH_MIN, DEPTH_MAX);
         depth > 0; depth--)
        write_frame(snapshot, (uint32_t)base_random_below(&frames, FRAME_COUNT));
    trace__pickler_list_end(pickle);
}

static bool snapshot_is_done(struct snapshot *snapshot, uint64_t done) {
    return size_bytes > 0 ? trace__pickler_size(&snapshot->pickle) >= size_bytes
                          : done == event_count;
}

static enum base_status write_entries(struct snapshot *snapshot,
                                      struct trace_generator *generator) {
    struct trace_pickler *pickle = &snapshot->pickle;
    struct base_progress progress;
    base_progress_begin(&progress, "make", size_bytes > 0 ? size_bytes : event_count);
    enum base_status status = BASE_OK;
    for (uint64_t done = 0, written = 0;; written++) {
        struct trace_event event;
        uint32_t site;
        status = trace__generator_next(generator, &event, &site);
        if (status != BASE_OK || (is_request(&event) && snapshot_is_done(snapshot, done))) break;
        if (base_interrupted() || pickle->error != 0) break;
        done += is_request(&event);
        if (written > 0 && written % LIST_BATCH == 0) trace__pickler_list_break(pickle);
        trace__pickler_dict_begin(pickle);
        trace__pickler_event(pickle, &event, trace__generator_stream(event.stream));
        trace__pickler_word(pickle, TRACE_PICKLE_POOL_ID);
        trace__pickler_pair(pickle, 0, 0, &snapshot->pool_memo);
        write_frames(snapshot, &event, site);
        trace__pickler_dict_end(pickle);
        base_progress_update(&progress, size_bytes > 0 ? trace__pickler_size(pickle) : done);
    }
    base_progress_end(&progress);
    if (status == BASE_OK && base_interrupted())
        status = base_status_set(BASE_INTERRUPTED, "interrupted; nothing was written");
    return status;
}

static enum base_status write_snapshot(struct snapshot *snapshot,
                                       struct trace_generator *generator) {
    const struct trace_settings settings = {.known = true, .config = "", .max_split_size = -1};
    struct trace_pickler *pickle = &snapshot->pickle;
    trace__pickler_dict_begin(pickle);
    trace__pickler_word(pickle, TRACE_PICKLE_SEGMENTS);
    trace__pickler_list_begin(pickle);
    trace__pickler_list_end(pickle);
    trace__pickler_word(pickle, TRACE_PICKLE_DEVICE_TRACES);
    trace__pickler_list_begin(pickle);
    trace__pickler_list_begin(pickle);
    enum base_status status = write_entries(snapshot, generator);
    trace__pickler_list_end(pickle);
    trace__pickler_list_end(pickle);
    trace__pickler_settings(pickle, &settings);
    trace__pickler_dict_end(pickle);
    if (status != BASE_OK) {
        trace__pickler_abandon(pickle);
        return status;
    }
    return trace__pickler_finish(pickle);
}

static enum base_status make_snapshot(const char *path, uint64_t seed,
                                      struct trace_generator *generator) {
    static struct snapshot snapshot; // its memo table is too large for a stack frame
    snapshot = (struct snapshot){.seed = seed, .pool_memo = TRACE_PICKLE_UNKNOWN};
    memset(snapshot.frame_memo, 0xff, sizeof snapshot.frame_memo); // TRACE_PICKLE_UNKNOWN
    enum base_status status = trace__pickler_create(&snapshot.pickle, path);
    return status == BASE_OK ? write_snapshot(&snapshot, generator) : status;
}

//------------------------------------------------------------------------------------------------
// The command line.

static enum trace_profile profile_parse(void) {
    for (int i = 0; trace__profile_name(i) != NULL; i++)
        if (strcmp(trace__profile_name(i), profile_name) == 0) return (enum trace_profile)i;
    base_options_usage_error(&program, "--profile %s: it must be training, varlen or serving",
                             profile_name);
}

static bool has_suffix(const char *path, const char *suffix) {
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

static bool is_pickle(const char *path) {
    if (format_name == NULL) return has_suffix(path, ".pickle") || has_suffix(path, ".pkl");
    if (strcmp(format_name, "pickle") == 0) return true;
    if (strcmp(format_name, "tmt") == 0) return false;
    base_options_usage_error(&program, "--format %s: it must be tmt or pickle", format_name);
}

// A .tmt is made in memory. Twice its entries: the table grows by half, and two of three events are
// two entries.
static void check_memory(void) {
    const uint64_t event_bytes = 2 * sizeof(struct trace_event);
    const uint64_t memory_bytes =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char memory[BASE_SIZE_TEXT];
    if (event_count > memory_bytes / event_bytes)
        base_options_usage_error(
            &program,
            "--events %" PRIu64 ": at most %" PRIu64 " fit the %s of memory of this machine",
            event_count, memory_bytes / event_bytes, base_size_format(memory_bytes, memory));
}

static void choose_event_count(bool pickle) {
    if (size_bytes > 0 && event_count != NOT_GIVEN)
        base_options_usage_error(&program, "--size and --events exclude each other");
    if (event_count == NOT_GIVEN) event_count = EVENT_COUNT_DEFAULT;
    if (event_count == 0) base_options_usage_error(&program, "--events 0: it must be 1 or more");
    if (!pickle) check_memory();
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const char *path = common.arguments[0];
    const bool pickle = is_pickle(path);
    if (stream_count < 1 || stream_count > TRACE_GENERATOR_STREAMS_MAX)
        base_options_usage_error(&program, "--streams %" PRIu64 ": it must be 1 to %d",
                                 stream_count, TRACE_GENERATOR_STREAMS_MAX);
    if (size_bytes > 0 && !pickle)
        base_options_usage_error(&program, "--size is for --format pickle; a .tmt takes --events");
    choose_event_count(pickle);
    const struct trace_generator_options generator_options = {
        .seed = common.seed, .profile = profile_parse(), .stream_count = (uint32_t)stream_count};
    base_interrupt_install();
    struct trace_generator *generator;
    enum base_status status = trace__generator_create(&generator_options, &generator);
    if (status == BASE_OK) {
        char source[160];
        snprintf(source, sizeof source,
                 "made by trace:make: profile %s, seed %" PRIu64 ", %" PRIu64 " stream%s, %" PRIu64
                 " events",
                 profile_name, common.seed, stream_count, stream_count == 1 ? "" : "s",
                 event_count);
        status = pickle ? make_snapshot(path, common.seed, generator)
                        : make_tmt(path, source, generator);
        trace__generator_destroy(generator);
    }
    return base_program_end(&program, status);
}
