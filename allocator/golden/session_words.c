// What the operations share: reading their words, and printing what a call of the allocator came
// to.
#include "allocator/golden/log.h"
#include "allocator/golden/session_internal.h"
#include "base/check.h"

#include <inttypes.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// Words.

enum base_status golden__malformed(const struct golden_request *request, const char *what) {
    return base_status_set(BASE_FORMAT, "\"%.80s\": %s", request->text, what);
}

enum base_status golden__word_number(const struct golden_request *request, size_t word,
                                     const char *what, uint64_t limit, uint64_t *number) {
    uint64_t value;
    if (!golden_parse_number(request->words[word], &value))
        return base_status_set(BASE_FORMAT,
                               "\"%.80s\": the %s must be a decimal number, not \"%.40s\"",
                               request->text, what, request->words[word]);
    if (value > limit)
        return base_status_set(BASE_FORMAT,
                               "\"%.80s\": the %s is %" PRIu64 ", at most %" PRIu64 " is possible",
                               request->text, what, value, limit);
    *number = value;
    return BASE_OK;
}

enum base_status golden__word_stream(const struct golden_request *request, size_t word,
                                     uint64_t *stream) {
    return golden__word_number(request, word, "stream", GOLDEN_STREAM_COUNT - 1, stream);
}

enum base_status golden__word_id(const struct golden_request *request, size_t word,
                                 struct golden_held **held) {
    struct golden_session *session = request->session;
    uint64_t id;
    const enum base_status status = golden__word_number(request, word, "id", GOLDEN_ID_MAX, &id);
    if (status != BASE_OK) return status;
    while (id >= session->held_capacity) {
        const size_t before = session->held_capacity;
        session->held = golden__array_grow(session->held, before, &session->held_capacity,
                                           sizeof *session->held);
        memset(&session->held[before], 0,
               (session->held_capacity - before) * sizeof *session->held);
    }
    *held = &session->held[id];
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Outcomes.

// The C++ class of an error, as the logs name it.
static const char *error_class(enum base_status status) {
    switch (status) {
    case BASE_OUT_OF_MEMORY: return "c10::OutOfMemoryError";
    case BASE_INVALID_CONFIG: return "c10::ValueError";
    case BASE_CUDA: return "c10::AcceleratorError";
    default: return "c10::Error";
    }
}

// The allocator's sentences about settings may end with PyTorch's, "(PyTorch: CLASS SENTENCE)".
// Cuts TEXT down to that; returns its class, NULL if it has none.
static const char *take_pytorchs_sentence(char *text) {
    static const char *const classes[] = {"c10::ValueError", "c10::Error", "std::invalid_argument",
                                          "std::out_of_range"};
    static const char mark[] = " (PyTorch: ";
    const size_t length = strlen(text);
    const char *sentence = strstr(text, mark);
    if (sentence == NULL || text[length - 1] != ')') return NULL;
    sentence += strlen(mark);
    for (size_t index = 0; index < sizeof classes / sizeof classes[0]; index++) {
        const size_t name = strlen(classes[index]);
        if (strncmp(sentence, classes[index], name) != 0 || sentence[name] != ' ') continue;
        sentence += name + 1;
        text[length - 1] = '\0';
        memmove(text, sentence, strlen(sentence) + 1);
        return classes[index];
    }
    return NULL;
}

// An assertion that says no more.
static const char no_such_pool[] = "it != graph_pools.end()";

// PyTorch's assertion behind a sentence, "" for none; where it stands in the source is not
// compared.
static const char *assertion_of(const char *sentence) {
    if (strcmp(sentence, "Index out of bounds in ConfigTokenizer") == 0 ||
        strstr(sentence, "in ConfigTokenizer but reached end of config") != NULL)
        return "i < config_.size()";
    if (strncmp(sentence, "Allocator backend parsed at runtime", 35) == 0)
        return "tokenizer[i] == get()->name()";
    if (strcmp(sentence, no_such_pool) == 0) return no_such_pool;
    return "";
}

// Prints "ok" or the error. What is not built yet is no outcome.
enum base_status golden__print_status(const struct golden_request *request,
                                      enum base_status status) {
    if (status == BASE_OK) {
        fputs("ok", request->outcome);
        return BASE_OK;
    }
    if (status == BASE_UNSUPPORTED) return status;
    struct golden_session *session = request->session;
    char sentence[BASE_STATUS_MESSAGE_SIZE];
    snprintf(sentence, sizeof sentence, "%s", base_status_message());
    const char *const class = take_pytorchs_sentence(sentence);
    const char *const assertion = class != NULL ? assertion_of(sentence) : "";
    snprintf(session->last_error, sizeof session->last_error, "%s%s%.1500s", assertion,
             assertion[0] != '\0'
                 ? " INTERNAL ASSERT FAILED at \"\":0, please report a bug to PyTorch. "
                 : "",
             assertion == no_such_pool ? "" : sentence);
    if (status == BASE_OUT_OF_MEMORY && session->out_of_memory_seen) {
        golden__print_out_of_memory(session, session->last_error, request->outcome);
        return BASE_OK;
    }
    fprintf(request->outcome, "error %s ", class != NULL ? class : error_class(status));
    golden__print_escaped(session->last_error, request->outcome);
    return BASE_OK;
}

// Puts where an address lay in the recordings into a sentence that says where it lies now.
void golden__record_address(const struct golden_session *session, enum base_status status,
                            uint64_t address) {
    const struct golden_segment *const segment = golden__segment_find(session, address);
    char before[BASE_STATUS_MESSAGE_SIZE], hexadecimal[32];
    snprintf(before, sizeof before, "%s", base_status_message());
    snprintf(hexadecimal, sizeof hexadecimal, "0x%" PRIx64, address);
    const char *const found = strstr(before, hexadecimal);
    if (found == NULL || segment == NULL) return;
    base_status_set(status, "%.*s0x%" PRIx64 "%s", (int)(found - before), before,
                    address - segment->address + segment->recorded_address,
                    found + strlen(hexadecimal));
}
