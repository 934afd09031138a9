// See outcome.h.
#include "simulator/litmus/outcome.h"

#include <stdio.h>
#include <string.h>

// --- Matching ---

static int content_size(const struct litmus_case *current, const struct litmus_content *content) {
    if (content->buffer >= 0)
        return current->buffers[content->buffer].size;
    const struct litmus_operation *operation = &current->operations[content->operation];
    return operation->verb == LITMUS_VERB_HOST_READ ? litmus_bytes_count(&operation->bytes[0]) : 1;
}

static bool content_matches(const struct litmus_case *current,
                            const struct litmus_content *content,
                            const struct litmus_result *result) {
    if (content->buffer >= 0 ? !result->live[content->buffer]
                             : !result->performed[content->operation])
        return false;
    const int size = content_size(current, content);
    if (content->count != 1 && content->count != size)
        return false;
    for (int i = 0; i < size; ++i) {
        const int wanted = content->values[content->count == 1 ? 0 : i];
        const int found = content->buffer >= 0 ? result->contents[content->buffer][i]
                                               : result->observed[content->operation][i];
        if (wanted != LITMUS_UNDEFINED && wanted != found)
            return false;
    }
    return true;
}

// A query that failed, or an asking for the capture's status, left no result, only a code.
static bool is_observed(const struct litmus_case *current, const struct litmus_result *result,
                        int operation) {
    const enum litmus_verb verb = current->operations[operation].verb;
    if (!result->performed[operation] || !litmus_verb_observes(verb))
        return false;
    return verb == LITMUS_VERB_HOST_READ || result->codes[operation] == 0 ||
           (litmus_verb_queries(verb) && result->codes[operation] == 600);
}

static bool names_operation(const struct litmus_outcome *outcome, int operation) {
    for (int i = 0; i < outcome->content_count; ++i)
        if (outcome->contents[i].operation == operation)
            return true;
    return false;
}

bool litmus_outcome_matches(const struct litmus_case *current, const struct litmus_outcome *outcome,
                            const struct litmus_result *result) {
    for (int i = 0; i < outcome->content_count; ++i)
        if (!content_matches(current, &outcome->contents[i], result))
            return false;
    for (int i = 0; i < current->operation_count; ++i)
        if (is_observed(current, result, i) && !names_operation(outcome, i))
            return false;
    return true;
}

int litmus_code_expected(const struct litmus_expectation *expectation, int operation) {
    for (int i = 0; i < expectation->return_count; ++i)
        if (expectation->returns[i].operation == operation)
            return expectation->returns[i].code;
    return 0;
}

bool litmus_codes_match(const struct litmus_case *current,
                        const struct litmus_expectation *expectation,
                        const struct litmus_result *result, int *wrong) {
    for (int i = 0; i < current->operation_count; ++i) {
        const int expected = litmus_code_expected(expectation, i);
        if (!result->performed[i] || result->codes[i] == expected)
            continue;
        if (expected == 0 && result->codes[i] == 600 &&
            litmus_verb_queries(current->operations[i].verb))
            continue;
        *wrong = i;
        return false;
    }
    return true;
}

// --- Text ---

struct text {
    char *buffer;
    size_t length;
};

static void text_add(struct text *text, const char *part) {
    const size_t length = strlen(part);
    if (text->length + length >= LITMUS_RESULT_TEXT_SIZE)
        return;
    memcpy(text->buffer + text->length, part, length + 1);
    text->length += length;
}

static void text_add_values(struct text *text, const char *name, const int *values, int count) {
    char part[64];
    text_add(text, text->length > 0 ? " " : "");
    text_add(text, name);
    text_add(text, "=");
    for (int begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && values[end] == values[begin]; ++end) {
        }
        if (begin == 0 && end == count)
            snprintf(part, sizeof part, "%d", values[begin]);
        else
            snprintf(part, sizeof part, "%s%d*%d", begin > 0 ? "," : "", values[begin],
                     end - begin);
        text_add(text, part);
    }
}

static bool names_buffer(const struct litmus_expectation *expectation, int buffer) {
    for (int i = 0; i < expectation->outcome_count; ++i)
        for (int k = 0; k < expectation->outcomes[i].content_count; ++k)
            if (expectation->outcomes[i].contents[k].buffer == buffer)
                return true;
    return false;
}

void litmus_result_format(const struct litmus_case *current,
                          const struct litmus_expectation *expectation,
                          const struct litmus_result *result, char text[LITMUS_RESULT_TEXT_SIZE]) {
    struct text out = {.buffer = text};
    int values[LITMUS_BYTE_COUNT_MAX];
    text[0] = '\0';
    for (int i = 0; i < current->buffer_count; ++i) {
        if (!result->live[i] || !names_buffer(expectation, i))
            continue;
        for (int k = 0; k < current->buffers[i].size; ++k)
            values[k] = result->contents[i][k];
        text_add_values(&out, current->buffers[i].name, values, current->buffers[i].size);
    }
    for (int i = 0; i < current->operation_count; ++i) {
        if (!is_observed(current, result, i))
            continue;
        const struct litmus_content content = {.buffer = -1, .operation = i};
        const int size = content_size(current, &content);
        for (int k = 0; k < size; ++k)
            values[k] = result->observed[i][k];
        text_add_values(&out, current->operations[i].label, values, size);
    }
    if (out.length == 0)
        text_add(&out, "-");
}
