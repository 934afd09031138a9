// See compare.h.
#include "tensor/golden/compare.h"

#include "tensor/golden/log.h"
#include "tensor/golden/session.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN_OPERATION_LINES_MAX 4096

bool golden_lines_agree(const char *recorded, const char *replayed) {
    if (strcmp(recorded, replayed) == 0)
        return true;
    static const char refusal[] = "= error RuntimeError ";
    return strstr(recorded, "alloc_cpu") != NULL &&
           strncmp(recorded, refusal, sizeof refusal - 1) == 0 &&
           strncmp(replayed, refusal, sizeof refusal - 1) == 0;
}

static void text_set(char text[GOLDEN_TEXT_MAX], const char *from) {
    snprintf(text, GOLDEN_TEXT_MAX, "%s", from);
}

static void fail(struct golden_result *result, enum golden_verdict verdict, size_t number) {
    result->verdict = verdict;
    result->line_number = number;
    snprintf(result->reason, sizeof result->reason, "%s", base_status_message());
}

// What a storage's line said last.
struct storage_state {
    long number;
    size_t bytes;
    int is_resizable;
    unsigned uses;
    bool is_touched; // by the operation at hand
};

#define STORAGE_MAX 4096

struct storages {
    struct storage_state states[STORAGE_MAX];
    size_t count;
};

static struct storage_state *state_of(struct storages *storages, long number) {
    for (size_t index = storages->count; index-- > 0;)
        if (storages->states[index].number == number)
            return &storages->states[index];
    if (storages->count == STORAGE_MAX)
        return NULL;
    storages->states[storages->count] = (struct storage_state){.number = number};
    return &storages->states[storages->count++];
}

// Takes in a storage's line; false if it is another line.
static bool state_read(struct storages *storages, const char *line) {
    struct storage_state read = {0};
    int length = 0;
    if (sscanf(line, "s s%ld %zu %d %u%n", &read.number, &read.bytes, &read.is_resizable,
               &read.uses, &length) != 4 ||
        line[length] != '\0')
        return false;
    struct storage_state *state = state_of(storages, read.number);
    if (state == NULL)
        return false;
    *state = read;
    state->is_touched = true;
    return true;
}

struct replay {
    struct golden_session *session;
    const struct golden_log *log;
    struct storages recorded, replayed;
};

// Lines but those of storages, a warning once, one by one; NULL at the end.
static const char *next_line(char *const *texts, size_t count, size_t *place,
                             struct storages *storages, size_t *storage_lines) {
    for (; *place < count; ++*place) {
        const char *text = texts[*place];
        if (state_read(storages, text)) {
            ++*storage_lines;
            continue;
        }
        const bool is_repeated =
            strncmp(text, "w ", 2) == 0 && *place > 0 && strcmp(text, texts[*place - 1]) == 0;
        if (!is_repeated)
            return texts[(*place)++];
    }
    return NULL;
}

static void differ(struct golden_result *result, size_t number, const char *recorded,
                   const char *replayed) {
    result->verdict = GOLDEN_DIFFERS;
    result->line_number = number;
    text_set(result->recorded, recorded == NULL ? "(no more lines)" : recorded);
    text_set(result->replayed, replayed == NULL ? "(no more lines)" : replayed);
}

// Storages that either side spoke of now.
static bool storages_compare(struct replay *replay, struct golden_result *result, size_t number) {
    for (size_t index = 0; index < replay->recorded.count + replay->replayed.count; index++) {
        const bool is_recorded = index < replay->recorded.count;
        struct storages *own = is_recorded ? &replay->recorded : &replay->replayed,
                        *other = is_recorded ? &replay->replayed : &replay->recorded;
        struct storage_state *state =
            &own->states[is_recorded ? index : index - replay->recorded.count];
        if (!state->is_touched)
            continue;
        state->is_touched = false;
        const struct storage_state *against = state_of(other, state->number);
        const bool is_free = golden_session_storage_is_held(replay->session, state->number);
        if (against != NULL && against->bytes == state->bytes &&
            against->is_resizable == state->is_resizable &&
            (is_free || against->uses == state->uses))
            continue;
        char texts[2][80];
        snprintf(texts[0], sizeof texts[0], "s s%ld %zu %d %u", state->number, state->bytes,
                 state->is_resizable, state->uses);
        snprintf(texts[1], sizeof texts[1], "s s%ld %zu %d %u", state->number,
                 against == NULL ? 0 : against->bytes, against == NULL ? 0 : against->is_resizable,
                 against == NULL ? 0 : against->uses);
        differ(result, number, texts[is_recorded ? 0 : 1], texts[is_recorded ? 1 : 0]);
        return false;
    }
    return true;
}

// A tensor's line that would be right if the result had started at version 1, where it may have.
static bool starts_at_one(struct replay *replay, const char *recorded, const char *replayed) {
    const char *version = strstr(recorded, " v1 "), *own = strstr(replayed, " v0 ");
    char name[32];
    if (version == NULL || own == NULL || version - recorded != own - replayed ||
        strncmp(recorded, replayed, (size_t)(version - recorded)) != 0 ||
        strcmp(version + strlen(" v1 "), own + strlen(" v0 ")) != 0 ||
        sscanf(recorded, "t %31s", name) != 1)
        return false;
    return golden_session_start_at_one(replay->session, name);
}

static bool lines_compare(struct replay *replay, const struct golden_operation *operation,
                          const struct golden_lines *lines, struct golden_result *result) {
    char *recorded_texts[GOLDEN_OPERATION_LINES_MAX];
    if (operation->count > GOLDEN_OPERATION_LINES_MAX) {
        base_status_set(BASE_LIMIT, "an operation has %zu lines", operation->count);
        fail(result, GOLDEN_UNREADABLE, operation->line.number);
        return false;
    }
    const struct golden_line *first = &replay->log->lines[operation->first];
    for (size_t index = 0; index < operation->count; index++)
        recorded_texts[index] = (char *)(uintptr_t)first[index].text;
    size_t recorded_place = 0, replayed_place = 0, storage_lines = 0, own_storage_lines = 0;
    for (;;) {
        const char *recorded = next_line(recorded_texts, operation->count, &recorded_place,
                                         &replay->recorded, &storage_lines);
        const char *replayed = next_line(lines->texts, lines->count, &replayed_place,
                                         &replay->replayed, &own_storage_lines);
        const size_t at = recorded == NULL ? operation->count - 1 : recorded_place - 1;
        if (recorded == NULL && replayed == NULL) {
            if (!storages_compare(replay, result, first[at].number))
                return false;
            result->line_count += storage_lines;
            return true;
        }
        if (recorded == NULL || replayed == NULL ||
            (!golden_lines_agree(recorded, replayed) &&
             !starts_at_one(replay, recorded, replayed))) {
            differ(result, first[at].number, recorded, replayed);
            return false;
        }
        result->line_count++;
    }
}

// True if all its lines agree.
static bool operation_compare(struct replay *replay, const struct golden_operation *operation,
                              struct golden_result *result) {
    struct golden_lines lines = {0};
    const enum base_status status =
        golden_session_perform(replay->session, operation->line.text, &lines);
    text_set(result->operation, operation->line.text);
    bool agrees = false;
    if (status != BASE_OK)
        fail(result, status == BASE_UNSUPPORTED ? GOLDEN_NOT_BUILT : GOLDEN_UNREADABLE,
             operation->line.number);
    else
        agrees = lines_compare(replay, operation, &lines, result);
    result->operation_count += agrees;
    golden_lines_deinit(&lines);
    return agrees;
}

void golden_compare(const char *path, struct golden_result *result) {
    struct golden_log log;
    struct replay *replay = calloc(1, sizeof *replay);
    memset(result, 0, sizeof *result);
    result->path = path;
    if (replay == NULL || golden_log_read(path, &log) != BASE_OK) {
        fail(result, GOLDEN_UNREADABLE, 0);
        free(replay);
        return;
    }
    replay->log = &log;
    if (golden_session_create(&replay->session) != BASE_OK) {
        free(replay);
        fail(result, GOLDEN_UNREADABLE, 0);
        golden_log_deinit(&log);
        return;
    }
    result->verdict = GOLDEN_AGREES;
    for (size_t index = 0; index < log.operation_count; index++)
        if (!operation_compare(replay, &log.operations[index], result))
            break;
    golden_session_destroy(replay->session, &result->leaked_blocks);
    free(replay);
    if (result->verdict == GOLDEN_AGREES && result->leaked_blocks != 0) {
        result->verdict = GOLDEN_DIFFERS;
        text_set(result->operation, "(end of the log)");
        text_set(result->recorded, "no memory is held");
        snprintf(result->replayed, sizeof result->replayed, "%lld blocks are",
                 (long long)result->leaked_blocks);
    }
    golden_log_deinit(&log);
}

enum base_status golden_write(const char *path, FILE *output) {
    struct golden_log log;
    struct golden_session *session;
    enum base_status status = golden_log_read(path, &log);
    if (status != BASE_OK)
        return status;
    status = golden_session_create(&session);
    if (status != BASE_OK) {
        golden_log_deinit(&log);
        return status;
    }
    for (size_t index = 0; index < log.operation_count && status == BASE_OK; index++) {
        struct golden_lines lines = {0};
        const struct golden_line *line = &log.operations[index].line;
        status = golden_session_perform(session, line->text, &lines);
        if (status == BASE_OK)
            fprintf(output, "%s\n", line->text);
        for (size_t place = 0; place < lines.count && status == BASE_OK; place++)
            fprintf(output, "%s\n", lines.texts[place]);
        if (status != BASE_OK)
            status = base_status_prefix(status, "%s:%zu", path, line->number);
        golden_lines_deinit(&lines);
    }
    int64_t live_blocks;
    golden_session_destroy(session, &live_blocks);
    golden_log_deinit(&log);
    return status;
}

void golden_result_print(const struct golden_result *result, FILE *output) {
    const char *slash = strrchr(result->path, '/'),
               *name = slash == NULL ? result->path : slash + 1;
    switch (result->verdict) {
    case GOLDEN_AGREES:
        fprintf(output, "%s: %zu operations, %zu lines agree\n", name, result->operation_count,
                result->line_count);
        break;
    case GOLDEN_DIFFERS:
        fprintf(output,
                "%s: differs at line %zu, after %zu operations\n  operation %s\n  recorded  "
                "%s\n  replayed  %s\n",
                name, result->line_number, result->operation_count, result->operation,
                result->recorded, result->replayed);
        break;
    case GOLDEN_NOT_BUILT:
        fprintf(output, "%s: line %zu: %s\n", name, result->line_number, result->reason);
        break;
    case GOLDEN_UNREADABLE:
    case GOLDEN_VERDICT_COUNT:
        fprintf(output, "%s: line %zu: %s\n", name, result->line_number, result->reason);
        break;
    }
}
