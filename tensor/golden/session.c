// Names, arguments and outcomes of a session. See session.h.
#include "tensor/golden/operations.h"
#include "tensor/host_allocator.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 16

//------------------------------------------------------------------------------------------------
// Names

struct golden_name *golden_name_find(struct golden_session *session, const char *text) {
    for (size_t index = 0; index < session->name_count; index++)
        if (strcmp(session->names[index]->text, text) == 0)
            return session->names[index];
    return NULL;
}

static void name_unbind(struct golden_name *name) {
    tensor_release(&name->tensor);
    if (name->storage != NULL)
        tensor_storage_release(&name->storage);
    tensor_weak_release(&name->weak);
    tensor_storage_weak_release(&name->weak_storage);
    tensor_saved_free(&name->saved);
    name->saved_tensor.impl = NULL;
    for (int line = 0; line < 3; line++) {
        free(name->printed[line]);
        name->printed[line] = NULL;
    }
}

void golden_name_remove(struct golden_session *session, struct golden_name *name) {
    size_t place = 0;
    while (session->names[place] != name)
        place++;
    memmove(&session->names[place], &session->names[place + 1],
            (session->name_count - place - 1) * sizeof(struct golden_name *));
    session->name_count--;
    name_unbind(name);
    free(name);
}

enum base_status golden_name_bind(struct golden_session *session, const char *text,
                                  enum golden_kind kind, struct golden_name **result) {
    if (strlen(text) >= GOLDEN_NAME_SIZE || !islower((unsigned char)text[0]) ||
        !isdigit((unsigned char)text[1]))
        return base_status_set(BASE_FORMAT, "\"%.40s\" is no name: a letter and a number", text);
    struct golden_name *name = golden_name_find(session, text);
    if (name != NULL) {
        name_unbind(name);
        name->kind = kind;
        *result = name;
        return BASE_OK;
    }
    if (session->name_count == session->name_capacity) {
        const size_t capacity = session->name_capacity == 0 ? 32 : 2 * session->name_capacity;
        struct golden_name **names =
            realloc(session->names, capacity * sizeof(struct golden_name *));
        if (names == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for a name");
        session->names = names;
        session->name_capacity = capacity;
    }
    name = calloc(1, sizeof *name);
    if (name == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a name");
    snprintf(name->text, sizeof name->text, "%s", text);
    name->number = strtol(text + 1, NULL, 10);
    name->kind = kind;
    size_t place = session->name_count++;
    for (; place > 0 && session->names[place - 1]->number > name->number; place--)
        session->names[place] = session->names[place - 1];
    session->names[place] = name;
    *result = name;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Performing

static void warning_print(void *context, const char *text) {
    struct golden_session *session = context;
    char line[GOLDEN_LINE_SIZE];
    snprintf(line, sizeof line, "w %s", text);
    if (golden_line_add(session->lines, line) != BASE_OK)
        abort(); // a test program without memory
}

// The results under the names that were asked for; the others go. Names in MADE.
static enum base_status results_bind(struct golden_call *call, char *text,
                                     struct golden_name **made, int *made_count) {
    char *parts[GOLDEN_LIST_MAX];
    int count = 0;
    enum base_status status = BASE_OK;
    if (text != NULL && !golden__parts_cut(text, parts, &count))
        return golden__bad(text, "list: too long");
    for (int index = 0; index < call->result_count; index++) {
        if (index >= count || status != BASE_OK) {
            tensor_release(&call->results[index]);
            continue;
        }
        status = golden_name_bind(call->session, parts[index], GOLDEN_TENSOR, &made[index]);
        if (status != BASE_OK) {
            tensor_release(&call->results[index]);
            continue;
        }
        made[index]->tensor = call->results[index];
        *made_count = index + 1;
    }
    return status;
}

struct golden_operation_row {
    const char *name, *form;
    bool writes; // its first tensor is printed
    enum base_status (*run)(struct golden_call *call);
};

static const struct golden_operation_row golden_operation_rows[] = {
#define GOLDEN_OPERATION_ROW(name, form, writes, run) {#name, form, writes, golden__##run},
    GOLDEN_OPERATION_LIST(GOLDEN_OPERATION_ROW)
#undef GOLDEN_OPERATION_ROW
        {NULL, NULL, false, NULL}};

static const struct golden_operation_row *row_find(const char *name) {
    for (const struct golden_operation_row *row = golden_operation_rows; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static enum base_status names_delete(struct golden_session *session, char *word) {
    char *parts[GOLDEN_LIST_MAX];
    int count, found = 0;
    if (!golden__parts_cut(word, parts, &count))
        return golden__bad(word, "list: too long");
    for (int index = 0; index < count; index++) {
        struct golden_name *name = golden_name_find(session, parts[index]);
        if (name == NULL)
            continue;
        golden_name_remove(session, name);
        found++;
    }
    enum base_status status = golden_line_add(session->lines, found > 0 ? "= ok" : "= none");
    return status != BASE_OK ? status : golden_print(session, NULL, 0);
}

static enum base_status outcome_print(struct golden_session *session,
                                      const struct golden_call *call, enum base_status status,
                                      size_t place) {
    char line[GOLDEN_LINE_SIZE];
    if (call->is_none)
        snprintf(line, sizeof line, "= none");
    else if (status != BASE_OK)
        snprintf(line, sizeof line, "= error %s %s", tensor_error_class(), base_status_message());
    else
        snprintf(line, sizeof line, "= %s", call->answer[0] == '\0' ? "ok" : call->answer);
    const enum base_status added = golden_line_add(session->lines, line);
    if (added != BASE_OK)
        return added;
    // Warnings were printed while it ran: the outcome goes before them.
    char **texts = session->lines->texts;
    for (size_t index = session->lines->count - 1; index > place; index--) {
        char *moved = texts[index];
        texts[index] = texts[index - 1];
        texts[index - 1] = moved;
    }
    return BASE_OK;
}

static enum base_status row_perform(struct golden_session *session,
                                    const struct golden_operation_row *row, char **words,
                                    int word_count) {
    struct golden_call call = {.session = session};
    struct golden_name *made[GOLDEN_RESULT_MAX];
    int made_count = 0;
    char *made_text = NULL;
    const char *first_word = word_count > 1 ? words[1] : "";
    char target[GOLDEN_NAME_SIZE];
    snprintf(target, sizeof target, "%s", first_word);
    enum base_status status =
        golden__arguments_take(&call, row->form, words + 1, word_count - 1, &made_text);
    if (status != BASE_OK)
        return status;
    const size_t place = session->lines->count;
    session->came_of_inference = false;
    for (int index = 0; index < call.tensor_count && !call.is_none; index++)
        session->came_of_inference |= call.tensors[index].impl != NULL &&
                                      tensor_is_inference(call.tensors[index]) &&
                                      !tensor_inference_mode();
    if (!call.is_none) {
        tensor_on_warning(warning_print, session);
        status = row->run(&call);
        tensor_on_warning(NULL, NULL);
        if (status == BASE_FORMAT || status == BASE_HOST_MEMORY)
            return status;
    }
    enum base_status printed = outcome_print(session, &call, status, place);
    if (printed == BASE_OK)
        printed = results_bind(&call, made_text, made, &made_count);
    if (printed == BASE_OK && row->writes && status == BASE_OK && !call.is_none) {
        made[0] = golden_name_find(session, target);
        made_count = made[0] != NULL;
    }
    return printed != BASE_OK ? printed : golden_print(session, made, made_count);
}

enum base_status golden_session_perform(struct golden_session *session, const char *operation,
                                        struct golden_lines *lines) {
    char *copy = strdup(operation), *words[WORD_MAX], *rest = copy;
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for an operation");
    int count = 0;
    for (char *word; (word = strsep(&rest, " ")) != NULL && count < WORD_MAX;)
        words[count++] = word;
    enum base_status status;
    session->lines = lines;
    const struct golden_operation_row *row = row_find(words[0]);
    if (rest != NULL)
        status = base_status_set(BASE_FORMAT, "too many arguments");
    else if (strcmp(words[0], "del") == 0 && count == 2)
        status = names_delete(session, words[1]);
    else if (row == NULL)
        status =
            base_status_set(BASE_UNSUPPORTED, "the operation \"%.60s\" is not built", words[0]);
    else
        status = row_perform(session, row, words, count);
    free(copy);
    return status;
}

enum base_status golden_session_create(struct golden_session **result) {
    struct golden_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a session");
    const enum base_status status = tensor_host_allocator_create(true, &session->allocator);
    if (status != BASE_OK) {
        free(session);
        return status;
    }
    session->place = (struct tensor_place){session->allocator, TENSOR_CPU, 0};
    session->modes[0] = (struct golden_mode){.gradients = true};
    tensor_set_grad_mode(true);
    tensor_set_inference_mode(false);
    *result = session;
    return BASE_OK;
}

void golden_session_destroy(struct golden_session *session, int64_t *live_blocks) {
    while (session->name_count > 0)
        golden_name_remove(session, session->names[session->name_count - 1]);
    struct allocator_stats stats;
    if (allocator_stats(session->allocator, 0, &stats) != BASE_OK)
        abort(); // it cannot fail
    *live_blocks = stats.allocation[ALLOCATOR_STAT_ALL].current;
    for (size_t index = 0; index < session->storages.count; index++)
        free(session->storages.items[index].printed);
    free(session->impls.items);
    free(session->storages.items);
    free(session->names);
    allocator_destroy(session->allocator);
    tensor_set_grad_mode(true);
    tensor_set_inference_mode(false);
    free(session);
}
