// The operations of a decision log, one function each, and the table that names them.
#include "allocator/golden/log.h"
#include "allocator/golden/session_internal.h"
#include "base/check.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// Requests.

// An operation of our own, the first of its program: from here on segments do not ascend, which
// shows how ties between equal blocks are broken.
static enum base_status perform_scatter(struct golden_request *request) {
    if (request->session->segment_count > 0)
        return golden__malformed(request, "it must come before the first segment");
    request->session->is_scattered = true;
    return golden__print_status(request, BASE_OK);
}

// How many segments one operation makes at most: each rung of the ladder may reserve a range.
#define ADDRESSES_QUEUED 4

// cudaMalloc and reserved ranges ascend together, as on the device of the recordings.
static void queue_addresses(struct golden_session *session) {
    uint64_t addresses[ADDRESSES_QUEUED];
    if (!session->is_scattered && !session->has_ranges) return;
    const uint64_t stride = base_round_up(2 * session->options.capacity_bytes, BASE_GIB);
    for (size_t index = 0; index < ADDRESSES_QUEUED; index++)
        addresses[index] = session->is_scattered
                               ? golden__scattered_address(session->segment_count + index)
                               : session->next_address + index * stride;
    session->subject->queue_addresses(session->allocator, addresses, ADDRESSES_QUEUED);
}

// The outcome of a request that was granted. Without a cache there are neither events nor block
// sizes.
static void print_block(struct golden_request *request, struct golden_held *held, void *pointer,
                        size_t size) {
    struct golden_session *session = request->session;
    *held = (struct golden_held){.pointer = pointer, .held = true};
    if (session->options.no_caching && pointer != NULL)
        golden__segment_add(session, (uintptr_t)pointer, size);
    golden__print_address(session, pointer, request->outcome);
    fprintf(request->outcome, " %zu", session->block_size);
}

static enum base_status perform_alloc(struct golden_request *request) {
    struct golden_session *session = request->session;
    struct golden_held *held;
    uint64_t size, stream;
    enum base_status status = golden__word_id(request, 1, &held);
    if (status == BASE_OK) status = golden__word_number(request, 2, "size", UINT64_MAX, &size);
    if (status == BASE_OK) status = golden__word_stream(request, 3, &stream);
    if (status != BASE_OK) return status;
    if (held->held) return golden__malformed(request, "this id is in use, free it first");

    void *pointer = NULL;
    session->block_size = 0;
    session->out_of_memory_seen = false;
    queue_addresses(session);
    status = allocator_malloc(session->allocator, 0, size, session->streams[stream], &pointer);
    if (status != BASE_OK) return golden__print_status(request, status);
    print_block(request, held, pointer, size);
    return BASE_OK;
}

static const struct golden_segment *segment_of(const struct golden_session *session,
                                               size_t number) {
    for (size_t index = 0; index < session->segment_count; index++)
        if (session->segments[index].number == number) return &session->segments[index];
    return NULL;
}

// SEGMENT OFFSET, or @ID OFFSET: from where the allocation of this id lies, or last lay.
static enum base_status word_address(struct golden_request *request, size_t word,
                                     uint64_t *address) {
    struct golden_session *session = request->session;
    uint64_t offset;
    enum base_status status = golden__word_number(request, word + 1, "offset", INT64_MAX, &offset);
    if (status != BASE_OK) return status;
    if (request->words[word][0] == '@') {
        struct golden_held *other;
        request->words[word]++;
        status = golden__word_id(request, word, &other);
        if (status != BASE_OK) return status;
        if (other->pointer == NULL)
            return golden__malformed(request, "nothing has been allocated under this id");
        *address = (uintptr_t)other->pointer + offset;
    } else {
        uint64_t number;
        status = golden__word_number(request, word, "segment", SIZE_MAX, &number);
        if (status != BASE_OK) return status;
        const struct golden_segment *segment = segment_of(session, number);
        if (segment == NULL) return golden__malformed(request, "no segment has this number");
        *address = segment->address + offset;
    }
    return BASE_OK;
}

static enum base_status perform_alloc_at(struct golden_request *request) {
    struct golden_session *session = request->session;
    struct golden_held *held;
    uint64_t size, stream, address = 0;
    enum base_status status = word_address(request, 4, &address);
    if (status == BASE_OK) status = golden__word_number(request, 2, "size", UINT64_MAX, &size);
    if (status == BASE_OK) status = golden__word_stream(request, 3, &stream);
    if (status == BASE_OK) status = golden__word_id(request, 1, &held);
    if (status != BASE_OK) return status;
    if (held->held) return golden__malformed(request, "this id is in use, free it first");

    void *pointer = NULL;
    session->block_size = 0;
    session->out_of_memory_seen = false;
    status = session->subject->malloc_at(session->allocator, size, session->streams[stream],
                                         address, &pointer);
    if (status != BASE_OK) {
        golden__record_address(session, status, address);
        return golden__print_status(request, status);
    }
    print_block(request, held, pointer, size);
    return BASE_OK;
}

static enum base_status perform_on_miss(struct golden_request *request) {
    struct golden_session *session = request->session;
    size_t count = 0;
    for (size_t word = 1; word < request->word_count; word++) {
        struct golden_held *held;
        const enum base_status status = golden__word_id(request, word, &held);
        if (status != BASE_OK) return status;
        session->freed_on_miss[count++] = (size_t)(held - session->held);
    }
    session->freed_on_miss_count = count;
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_free(struct golden_request *request) {
    struct golden_held *held;
    const enum base_status status = golden__word_id(request, 1, &held);
    if (status != BASE_OK) return status;
    if (!held->held) {
        fputs("none", request->outcome);
        return BASE_OK;
    }
    held->held = false;
    return golden__print_status(request,
                                allocator_free(request->session->allocator, held->pointer));
}

static enum base_status perform_record(struct golden_request *request) {
    struct golden_session *session = request->session;
    struct golden_held *held;
    uint64_t stream;
    enum base_status status = golden__word_id(request, 1, &held);
    if (status == BASE_OK) status = golden__word_stream(request, 2, &stream);
    if (status != BASE_OK) return status;
    if (!held->held) {
        fputs("none", request->outcome);
        return BASE_OK;
    }
    return golden__print_status(request, allocator_record_stream(session->allocator, held->pointer,
                                                                 session->streams[stream]));
}

static enum base_status perform_empty_cache(struct golden_request *request) {
    return golden__print_status(request, allocator_empty_cache(request->session->allocator));
}

//--------------------------------------------------------------------------------------------------
// The device's side.

static enum base_status perform_complete(struct golden_request *request) {
    struct golden_session *session = request->session;
    uint64_t first = 0, last = GOLDEN_STREAM_COUNT - 1;
    if (strcmp(request->words[1], "all") != 0) {
        const enum base_status status = golden__word_stream(request, 1, &first);
        if (status != BASE_OK) return status;
        last = first;
    }
    for (uint64_t stream = first; stream <= last; stream++)
        session->subject->complete(session->allocator, (unsigned)stream);
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_auto(struct golden_request *request) {
    if (strcmp(request->words[1], "1") != 0)
        return golden__malformed(request, "only \"auto 1\" is defined");
    request->session->subject->complete_at_once(request->session->allocator);
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_foreign(struct golden_request *request) {
    uint64_t bytes;
    const enum base_status status =
        golden__word_number(request, 1, "number of bytes", UINT64_MAX, &bytes);
    if (status != BASE_OK) return status;
    request->session->foreign_bytes = bytes;
    request->session->subject->set_foreign_bytes(request->session->allocator, bytes);
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_fault(struct golden_request *request) {
    uint64_t n, code;
    enum base_status status = golden__word_number(request, 2, "number of the call", UINT64_MAX, &n);
    if (status == BASE_OK) status = golden__word_number(request, 3, "error code", INT32_MAX, &code);
    if (status != BASE_OK) return status;
    const struct golden_subject *subject = request->session->subject;
    if (strcmp(request->words[1], "malloc") == 0)
        subject->fail_malloc(request->session->allocator, n, (int)code);
    else if (strcmp(request->words[1], "create") == 0)
        subject->fail_create(request->session->allocator, n, (int)code);
    else
        return golden__malformed(request, "only calls of malloc and create can fail");
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_nvml(struct golden_request *request) {
    const struct golden_subject *subject = request->session->subject;
    uint64_t on;
    const enum base_status status = golden__word_number(request, 1, "switch", 1, &on);
    if (status != BASE_OK) return status;
    subject->list_processes(request->session->allocator, on != 0);
    return golden__print_status(request, BASE_OK);
}

static enum base_status perform_counts(struct golden_request *request) {
    struct golden_counts counts;
    request->session->subject->counts(request->session->allocator, &counts);
    fprintf(request->outcome,
            "query=%" PRIu64 " record=%" PRIu64 " event_sync=%" PRIu64 " event_create=%" PRIu64
            " used=%" PRIu64 " va=%zu",
            counts.event_query, counts.event_record, counts.event_synchronize, counts.event_create,
            counts.used_bytes, request->session->range_bytes);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Settings.

static enum base_status perform_fraction(struct golden_request *request) {
    struct golden_session *session = request->session;
    char *end;
    const double fraction = strtod(request->words[1], &end);
    if (*end != '\0') return golden__malformed(request, "the fraction must be a number");
    return golden__print_status(request,
                                session->subject->set_fraction(session->allocator, fraction));
}

static enum base_status perform_get_fraction(struct golden_request *request) {
    double fraction;
    const enum base_status status =
        request->session->subject->fraction(request->session->allocator, &fraction);
    if (status != BASE_OK) return golden__print_status(request, status);
    fprintf(request->outcome, "%.17g", fraction);
    return BASE_OK;
}

// \n \t \r \v \f \\ in TEXT stand for the characters.
static enum base_status unescape(const struct golden_request *request, const char *text,
                                 char output[GOLDEN_CONFIG_LENGTH_MAX + 1]) {
    static const char special[] = "\n\t\r\v\f\\", letters[] = "ntrvf\\";
    if (strlen(text) > GOLDEN_CONFIG_LENGTH_MAX)
        return golden__malformed(request, "too long a text");
    for (; *text != '\0'; text++) {
        const char *letter = *text == '\\' && text[1] != '\0' ? strchr(letters, text[1]) : NULL;
        *output++ = letter != NULL ? special[letter - letters] : *text;
        if (letter != NULL) text++;
    }
    *output = '\0';
    return BASE_OK;
}

static bool is_valid(const struct golden_session *session, const char *config) {
    struct golden_settings settings;
    return session->subject->read_settings(config, NULL, &settings) == BASE_OK;
}

// The process of the recordings made its allocator at the first operation but `set`: what was set
// before is what it started with.
static enum base_status perform_set(struct golden_request *request) {
    struct golden_session *session = request->session;
    char text[GOLDEN_CONFIG_LENGTH_MAX + 1];
    enum base_status status = unescape(request, request->rest, text);
    if (status != BASE_OK) return status;
    status = session->subject->set_config(session->allocator, text);
    if (status == BASE_OK && session->is_fresh && is_valid(session, text))
        BASE_CHECK_EQ(golden__session_restart(session, text), BASE_OK);
    return golden__print_status(request, status);
}

static enum base_status perform_get(struct golden_request *request) {
    const struct golden_session *session = request->session;
    struct golden_settings settings;
    const enum base_status status = session->subject->settings(session->allocator, &settings);
    if (status != BASE_OK) return golden__print_status(request, status);
    golden__print_settings(&settings, request->outcome);
    return BASE_OK;
}

static void detail_warning(void *context, const char *text) {
    const struct golden_request *request = context;
    fputs("w ", request->details);
    golden__print_escaped(text, request->details);
    fputc('\n', request->details);
}

// In a fresh process.
static enum base_status perform_cfg(struct golden_request *request) {
    char text[GOLDEN_CONFIG_LENGTH_MAX + 1];
    enum base_status status = unescape(request, request->rest, text);
    if (status != BASE_OK) return status;
    struct golden_settings settings;
    status = request->session->subject->read_settings(
        text, &(struct cca_warning_observer){.warning = detail_warning, .context = request},
        &settings);
    const bool is_read = status == BASE_OK || status == BASE_INVALID_CONFIG;
    status = golden__print_status(request, status);
    if (status == BASE_OK && is_read) {
        fputs("v ", request->details);
        golden__print_settings(&settings, request->details);
        fputc('\n', request->details);
    }
    return status;
}

// The recordings learned the sizes from a request that a fraction of 0 refused, hence the fraction
// afterwards.
static enum base_status perform_rounded(struct golden_request *request) {
    struct golden_session *session = request->session;
    uint64_t size;
    enum base_status status = golden__word_number(request, 1, "size", UINT64_MAX, &size);
    if (status != BASE_OK) return status;
    size_t rounded = 0, segment = 0;
    status = session->subject->round_size(session->allocator, size, &rounded, &segment);
    if (status == BASE_OK) status = session->subject->set_fraction(session->allocator, 0);
    if (status != BASE_OK) return golden__print_status(request, status);
    fprintf(request->outcome, "%zu %zu", rounded, segment);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Queries.

static enum base_status perform_stat(struct golden_request *request) {
    struct allocator_stats stats;
    enum base_status status = allocator_stats(request->session->allocator, 0, &stats);
    struct cca_pool_stats *pools = NULL;
    size_t pool_count = 0;
    if (status == BASE_OK) status = golden__pool_stats(request->session, &pools, &pool_count);
    if (status == BASE_OK) golden__print_statistics(&stats, pools, pool_count, request->details);
    free(pools);
    return golden__print_status(request, status);
}

static enum base_status perform_layout(struct golden_request *request) {
    struct allocator_snapshot snapshot;
    const enum base_status status =
        request->word_count > 1 ? golden__pool_snapshot(request, &snapshot)
                                : allocator_snapshot(request->session->allocator, &snapshot);
    if (status != BASE_OK) return golden__print_status(request, status);
    fprintf(request->outcome, "%zu", snapshot.segment_count);
    golden__print_layout(request->session, &snapshot, request->details);
    allocator_snapshot_deinit(&snapshot);
    return BASE_OK;
}

static enum base_status perform_trace(struct golden_request *request) {
    const bool is_clear = request->word_count > 1;
    if (is_clear && strcmp(request->words[1], "clear") != 0)
        return golden__malformed(request, "only \"trace\" and \"trace clear\" are defined");
    fprintf(request->outcome, "%zu", request->session->trace_count);
    if (!is_clear) golden__print_trace(request->session, request->details);
    request->session->trace_count = 0;
    return BASE_OK;
}

static enum base_status perform_reset_peak(struct golden_request *request) {
    return golden__print_status(request,
                                allocator_reset_peak_stats(request->session->allocator, 0));
}

static enum base_status perform_reset_accumulated(struct golden_request *request) {
    return golden__print_status(request,
                                allocator_reset_accumulated_stats(request->session->allocator, 0));
}

static enum base_status perform_base(struct golden_request *request) {
    struct golden_held *held;
    enum base_status status = golden__word_id(request, 1, &held);
    if (status != BASE_OK) return status;
    if (!held->held || held->pointer == NULL)
        return golden__malformed(request, "this id holds nothing");
    void *base;
    size_t size;
    status = allocator_base_allocation(request->session->allocator, held->pointer, &base, &size);
    if (status != BASE_OK) {
        golden__record_address(request->session, status, (uintptr_t)held->pointer);
        return golden__print_status(request, status);
    }
    golden__print_address(request->session, base, request->outcome);
    fprintf(request->outcome, " %zu", size);
    return BASE_OK;
}

static enum base_status perform_largest(struct golden_request *request) {
    size_t size;
    const enum base_status status = allocator_largest_block(request->session->allocator, 0, &size);
    if (status != BASE_OK) return golden__print_status(request, status);
    fprintf(request->outcome, "%zu", size);
    return BASE_OK;
}

static enum base_status perform_error(struct golden_request *request) {
    golden__print_escaped(request->session->last_error, request->outcome);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Expandable segments.

static enum base_status perform_va(struct golden_request *request) {
    fprintf(request->outcome, "%zu %zu", request->session->range_count,
            request->session->range_bytes);
    return BASE_OK;
}

static enum base_status perform_class(struct golden_request *request) {
    struct golden_session *session = request->session;
    uint64_t stream;
    const enum base_status status = golden__word_stream(request, 1, &stream);
    if (status != BASE_OK) return status;
    return golden__print_status(request, session->subject->set_stream_class(
                                             session->allocator, session->streams[stream],
                                             request->word_count > 2 ? request->words[2] : ""));
}

static enum base_status perform_class_default(struct golden_request *request) {
    struct golden_session *session = request->session;
    char *end;
    const double fraction = strtod(request->words[2], &end);
    if (*end != '\0') return golden__malformed(request, "the fraction must be a number");
    return golden__print_status(request, session->subject->set_class_default(
                                             session->allocator, request->words[1], fraction));
}

// By stream; of one stream the small pool first.
static int compare_mapped(const void *a, const void *b) {
    const struct cca_expandable_segment *const x = a, *const y = b;
    if (x->stream != y->stream) return (uintptr_t)x->stream < (uintptr_t)y->stream ? -1 : 1;
    if (x->is_large != y->is_large) return x->is_large ? 1 : -1;
    return (x->mapped_bytes > y->mapped_bytes) - (x->mapped_bytes < y->mapped_bytes);
}

static enum base_status perform_segment_sizes(struct golden_request *request) {
    struct golden_session *session = request->session;
    struct cca_expandable_segment *segments;
    size_t count;
    const enum base_status status =
        session->subject->expandable_segments(session->allocator, &segments, &count);
    if (status != BASE_OK) return golden__print_status(request, status);
    if (count > 0) qsort(segments, count, sizeof *segments, compare_mapped);
    request->is_list = true;
    for (size_t index = 0; index < count; index++)
        fprintf(request->outcome, " %d:%s:%zu",
                golden__stream_number(session, segments[index].stream),
                segments[index].is_large ? "large" : "small", segments[index].mapped_bytes);
    free(segments);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// The table.

#define ANY_WORDS GOLDEN_WORD_COUNT_MAX

static const struct operation {
    const char *name;
    enum base_status (*perform)(struct golden_request *request); // NULL: in the format, not built
    size_t word_count_min, word_count_max;                       // the name included
    const char *usage;                                           // or what it needs
} operations[] = {
    {"alloc", perform_alloc, 4, 4, "alloc ID BYTES STREAM"},
    {"free", perform_free, 2, 2, "free ID"},
    {"record", perform_record, 3, 3, "record ID STREAM"},
    {"complete", perform_complete, 2, 2, "complete STREAM|all"},
    {"auto", perform_auto, 2, 2, "auto 1"},
    {"foreign", perform_foreign, 2, 2, "foreign BYTES"},
    {"fault", perform_fault, 4, 4, "fault malloc|create N CODE"},
    {"empty_cache", perform_empty_cache, 1, 1, "empty_cache"},
    {"fraction", perform_fraction, 2, 2, "fraction F"},
    {"get_fraction", perform_get_fraction, 1, 1, "get_fraction"},
    {"get", perform_get, 1, 1, "get"},
    {"cfg", perform_cfg, 1, ANY_WORDS, "cfg TEXT"},
    {"set", perform_set, 1, ANY_WORDS, "set TEXT"},
    {"rounded", perform_rounded, 2, 2, "rounded BYTES"},
    {"stat", perform_stat, 1, 1, "stat"},
    {"layout", perform_layout, 1, 2, "layout"},
    {"trace", perform_trace, 1, 2, "trace [clear]"},
    {"reset_peak", perform_reset_peak, 1, 1, "reset_peak"},
    {"reset_accumulated", perform_reset_accumulated, 1, 1, "reset_accumulated"},
    {"base", perform_base, 2, 2, "base ID"},
    {"largest", perform_largest, 1, 1, "largest"},
    {"counts", perform_counts, 1, 1, "counts"},
    {"error", perform_error, 1, 1, "error"},
    {"scatter", perform_scatter, 1, 1, "scatter"},
    {"alloc_at", perform_alloc_at, 6, 6, "alloc_at ID BYTES STREAM SEGMENT|@ID OFFSET"},
    {"on_miss", perform_on_miss, 1, GOLDEN_WORD_COUNT_MAX, "on_miss ID..."},
    {"pool", golden__perform_pool, 3, 6, "pool ACTION P ..."},
    {"segment_sizes", perform_segment_sizes, 1, 1, "segment_sizes"},
    {"va", perform_va, 1, 1, "va"},
    {"class", perform_class, 2, 3, "class STREAM [NAME]"},
    {"class_default", perform_class_default, 3, 3, "class_default NAME F"},
    {"nvml", perform_nvml, 2, 2, "nvml 0|1"},
};

static const struct operation *operation_find(const char *name) {
    for (size_t index = 0; index < sizeof operations / sizeof operations[0]; index++)
        if (strcmp(operations[index].name, name) == 0) return &operations[index];
    return NULL;
}

enum base_status golden__operation_run(struct golden_request *request) {
    const struct operation *operation =
        request->word_count == 0 ? NULL : operation_find(request->words[0]);
    if (operation == NULL) return golden__malformed(request, "no operation has this name");
    if (operation->perform == NULL)
        return base_status_set(BASE_UNSUPPORTED, "needs %s", operation->usage);
    const bool is_too_long =
        operation->word_count_max != ANY_WORDS && request->word_count > operation->word_count_max;
    if (request->word_count < operation->word_count_min || is_too_long)
        return base_status_set(BASE_FORMAT, "\"%.80s\": the operation reads \"%s\"", request->text,
                               operation->usage);
    return operation->perform(request);
}
