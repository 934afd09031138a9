// A session's life, and how one operation is performed: split into words, run, printed. The
// operations themselves are in session_operations.c.
#include "allocator/golden/session.h"

#include "allocator/golden/session_internal.h"
#include "base/check.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OPERATION_LENGTH_MAX 4096

//--------------------------------------------------------------------------------------------------
// What the allocator tells.

void *golden__array_grow(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return items;
    *capacity = *capacity == 0 ? 256 : 2 * *capacity;
    items = realloc(items, *capacity * item_size);
    BASE_CHECK(items != NULL);
    return items;
}

// Slots of 128 GiB, their numbers' bits reversed, so that addresses neither ascend nor come again.
#define SCATTERED_SLOT_BITS  18
#define SCATTERED_SLOT_SHIFT 37

static uint64_t reverse(uint64_t number) {
    uint64_t reversed = 0;
    for (int bit = 0; bit < SCATTERED_SLOT_BITS; bit++)
        reversed |= (number >> bit & 1) << (SCATTERED_SLOT_BITS - 1 - bit);
    return reversed;
}

uint64_t golden__scattered_address(size_t number) {
    BASE_CHECK_LT(number >> SCATTERED_SLOT_BITS, 1);
    return (reverse(number) + 1) << SCATTERED_SLOT_SHIFT;
}

const struct golden_segment *golden__segment_find(const struct golden_session *session,
                                                  uint64_t address) {
    if (session->is_scattered) {
        const uint64_t number = reverse((address >> SCATTERED_SLOT_SHIFT) - 1);
        return number < session->segment_count ? &session->segments[number] : NULL;
    }
    size_t low = 0, high = session->segment_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (session->segments[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &session->segments[low - 1];
}

void golden__segment_add(struct golden_session *session, uint64_t address, size_t size) {
    // One that only changed hands is known.
    const struct golden_segment *known = golden__segment_find(session, address);
    if (known != NULL && known->address == address) return;
    session->segments = golden__array_grow(session->segments, session->segment_count,
                                           &session->segment_capacity, sizeof *session->segments);
    size_t place = session->segment_count;
    for (; !session->is_scattered && place > 0 && session->segments[place - 1].address > address;
         place--)
        session->segments[place] = session->segments[place - 1];
    session->segments[place] =
        (struct golden_segment){.address = address,
                                .size = size,
                                .number = session->segment_count++,
                                .recorded_address = session->next_recorded_address};
    session->next_recorded_address += base_round_up(size, 2 * BASE_MIB) + 2 * BASE_MIB;
    const uint64_t behind = base_round_up(address + size, 2 * BASE_MIB) + 2 * BASE_MIB;
    if (behind > session->next_address) session->next_address = behind;
}

static void on_event(void *context, const struct allocator_event *event) {
    struct golden_session *session = context;
    // PyTorch's trace has no such entries.
    if (event->action == ALLOCATOR_EMPTY_CACHE) return;
    if (event->action == ALLOCATOR_SEGMENT_RESERVE ||
        event->action == ALLOCATOR_SEGMENT_UNRESERVE) {
        const bool is_new = event->action == ALLOCATOR_SEGMENT_RESERVE;
        if (is_new) golden__segment_add(session, (uintptr_t)event->address, event->size);
        session->has_ranges = true;
        session->range_count += is_new ? 1 : (size_t)-1;
        session->range_bytes += is_new ? event->size : (size_t)-event->size;
        return;
    }
    golden__relations_count(session, event);
    if (event->action == ALLOCATOR_SEGMENT_ALLOC)
        golden__segment_add(session, (uintptr_t)event->address, event->size);
    if (event->action == ALLOCATOR_ALLOC) session->block_size = event->block_size;
    session->trace = golden__array_grow(session->trace, session->trace_count,
                                        &session->trace_capacity, sizeof *session->trace);
    session->trace[session->trace_count++] = *event;
}

static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    struct golden_session *session = context;
    session->out_of_memory_seen = true;
    session->out_of_memory = *numbers;
    golden__relations_check(session, numbers);
}

// A detail of the operation that it happens in.
static void on_warning(void *context, const char *text) {
    const struct golden_session *session = context;
    if (session->details == NULL) return;
    fputs("w ", session->details);
    golden__print_escaped(text, session->details);
    fputc('\n', session->details);
}

static void on_rejection(void *context, size_t size, size_t reserved, size_t total) {
    const struct golden_session *session = context;
    if (session->details == NULL) return;
    fprintf(session->details, "r %zu %zu %zu\n", size, reserved, total);
}

// Frees what `on_miss` named.
static bool free_on_miss(void *context, int device) {
    struct golden_session *session = context;
    (void)device;
    const size_t count = session->freed_on_miss_count;
    session->freed_on_miss_count = 0;
    bool freed = false;
    for (size_t index = 0; index < count; index++) {
        struct golden_held *held = &session->held[session->freed_on_miss[index]];
        if (!held->held) continue;
        held->held = false;
        BASE_CHECK_EQ(allocator_free(session->allocator, held->pointer), BASE_OK);
        freed = true;
    }
    session->callback_count += freed;
    return freed;
}

// Splits COPY at its blanks. Words beyond the last one wanted are counted, not kept.
static void split_words(struct golden_request *request, char *copy) {
    char *position = NULL;
    for (char *word = strtok_r(copy, " ", &position); word != NULL;
         word = strtok_r(NULL, " ", &position)) {
        if (request->word_count < GOLDEN_WORD_COUNT_MAX) request->words[request->word_count] = word;
        request->word_count++;
    }
}

// Writes the pieces in the order of the format: outcome, calls, details.
static void print_result(const struct golden_request *request, const struct golden_counts *before,
                         const char *outcome, const char *details, FILE *output) {
    struct golden_counts after;
    request->session->subject->counts(request->session->allocator, &after);
    after.callback = request->session->callback_count;
    fprintf(output, "%s =%s%s", request->text, request->is_list ? "" : " ", outcome);
    golden__print_calls(before, &after, output);
    fprintf(output, "\n%s", details);
}

enum base_status golden_session_perform(struct golden_session *session, const char *text,
                                        FILE *output) {
    char copy[OPERATION_LENGTH_MAX];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return base_status_set(BASE_FORMAT, "\"%.80s...\" is longer than %d bytes", text,
                               OPERATION_LENGTH_MAX - 1);
    const char *blank = strchr(text, ' ');
    struct golden_request request = {
        .session = session, .text = text, .rest = blank == NULL ? "" : blank + 1};
    split_words(&request, copy);

    request.outcome = golden_text_begin(&session->outcome_text);
    request.details = golden_text_begin(&session->details_text);
    struct golden_counts before;
    session->subject->counts(session->allocator, &before);
    before.callback = session->callback_count;
    session->details = request.details;
    const enum base_status status = golden__operation_run(&request);
    session->is_fresh = false;
    session->details = NULL;
    const char *const outcome = golden_text_end(&session->outcome_text);
    const char *const details = golden_text_end(&session->details_text);
    if (status == BASE_OK) print_result(&request, &before, outcome, details, output);
    return status;
}

//--------------------------------------------------------------------------------------------------
// Life.

size_t golden_session_out_of_memory_count(const struct golden_session *session) {
    return session->out_of_memory_count;
}

void golden_session_check(struct golden_session *session) {
    session->subject->check(session->allocator);
}

// The observers, and the callback of on_miss.
static enum base_status listen(struct golden_session *session) {
    const struct golden_subject *const subject = session->subject;
    struct allocator *const allocator = session->allocator;
    subject->observe_warnings(
        allocator, &(struct cca_warning_observer){.warning = on_warning, .context = session});
    subject->observe_rejections(allocator, on_rejection, session);
    enum base_status status = allocator_set_observer(
        allocator, &(struct allocator_observer){.event = on_event, .context = session});
    if (status == BASE_OK)
        status = subject->observe_out_of_memory(
            allocator,
            &(struct cca_out_of_memory_observer){.event = on_out_of_memory, .context = session});
    if (status == BASE_OK)
        status = subject->add_free_memory_callback(allocator, free_on_miss, session);
    return status;
}

// Where the first segment of the recordings lies.
#define RECORDED_ADDRESS_FIRST ((uint64_t)1 << 44)

static void free_texts(struct golden_session *session) {
    golden_text_deinit(&session->outcome_text);
    golden_text_deinit(&session->details_text);
}

// On an error nothing is open.
static enum base_status open_subject(struct golden_session *session, const char *config) {
    struct golden_options options = session->options;
    options.config = config;
    enum base_status status = session->subject->open(&options, &session->allocator);
    if (status != BASE_OK) return status;
    for (unsigned number = 0; number < GOLDEN_STREAM_COUNT; number++)
        session->streams[number] = session->subject->stream(number);
    status = listen(session);
    if (status != BASE_OK) session->subject->close(session->allocator);
    return status;
}

enum base_status golden__session_restart(struct golden_session *session, const char *config) {
    session->subject->close(session->allocator);
    return open_subject(session, config);
}

enum base_status golden_session_create(const struct golden_subject *subject,
                                       const struct golden_options *options,
                                       struct golden_session **session) {
    struct golden_session *created = calloc(1, sizeof *created);
    if (created == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a session");
    created->subject = subject;
    golden_text_init(&created->outcome_text);
    golden_text_init(&created->details_text);
    created->options = *options;
    created->is_fresh = true;
    created->next_recorded_address = RECORDED_ADDRESS_FIRST;
    const enum base_status status = open_subject(created, options->config);
    created->options.config = NULL;
    if (status != BASE_OK) {
        free_texts(created);
        free(created);
        return status;
    }
    *session = created;
    return BASE_OK;
}

// Handed-out blocks go back with the allocator.
void golden_session_destroy(struct golden_session *session) {
    session->subject->close(session->allocator);
    free_texts(session);
    free(session->held);
    free(session->segments);
    free(session->trace);
    free(session);
}
