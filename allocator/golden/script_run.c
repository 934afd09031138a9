// Running random programs over two subjects, and making those that differ short. See script.h.
#include "allocator/golden/compare.h"
#include "allocator/golden/script.h"
#include "allocator/golden/session.h"
#include "allocator/golden/text.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_INTERVAL 64
// How many operations shrinking performs, about: some ten seconds.
#define SHRINK_OPERATIONS_MAX ((size_t)5 * 1000 * 1000)

// A subject that runs a program, and what it printed last.
struct side {
    struct golden_session *session;
    struct golden_text text;
};

// What the session prints for the operation, or the error's sentence; valid until the next one.
static char *perform(struct side *side, const char *operation) {
    FILE *const output = golden_text_begin(&side->text);
    if (golden_session_perform(side->session, operation, output) != BASE_OK)
        fprintf(output, "%s\n", base_status_message());
    return golden_text_end(&side->text);
}

// With the freedoms of the format, which details do not have. Cuts the texts for that.
static bool texts_agree(char *first, char *second) {
    if (strcmp(first, second) == 0) return true;
    char *const first_end = strchr(first, '\n'), *const second_end = strchr(second, '\n');
    if (strcmp(first_end, second_end) != 0) return false;
    *first_end = *second_end = '\0';
    const bool agree = golden_lines_agree(first, second);
    *first_end = *second_end = '\n';
    return agree;
}

static void side_init(struct side *side, const struct golden_script *script,
                      const struct golden_subject *subject) {
    const enum base_status status =
        golden_session_create(subject,
                              &(struct golden_options){.config = script->config,
                                                       .capacity_bytes = script->capacity_bytes,
                                                       .no_caching = script->no_caching},
                              &side->session);
    if (status != BASE_OK)
        fprintf(stderr, "seed %" PRIu64 ": %s refuses \"%s\": %s\n", script->seed, subject->name,
                script->config, base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    golden_text_init(&side->text);
}

static void side_deinit(struct side *side) {
    golden_session_destroy(side->session);
    golden_text_deinit(&side->text);
}

bool golden_script_compare(const struct golden_script *script, const struct golden_subject *first,
                           const struct golden_subject *second,
                           struct golden_difference *difference) {
    struct side sides[2];
    side_init(&sides[0], script, first);
    side_init(&sides[1], script, second);
    bool differs = false;
    for (size_t step = 0; step < script->operation_count && !differs; step++) {
        base_check_context("seed %" PRIu64 ", step %zu, \"%.80s\"", script->seed, step,
                           script->operations[step]);
        char *texts[2];
        for (int side = 0; side < 2; side++)
            texts[side] = perform(&sides[side], script->operations[step]);
        differs = !texts_agree(texts[0], texts[1]);
        if (differs) {
            *difference = (struct golden_difference){
                .step = step, .first = strdup(texts[0]), .second = strdup(texts[1])};
            BASE_CHECK(difference->first != NULL && difference->second != NULL);
            break;
        }
        if (step % CHECK_INTERVAL == 0 || step + 1 == script->operation_count)
            for (int side = 0; side < 2; side++)
                golden_session_check(sides[side].session);
    }
    base_check_context(NULL);
    for (int side = 0; side < 2; side++)
        side_deinit(&sides[side]);
    return differs;
}

void golden_difference_deinit(struct golden_difference *difference) {
    free(difference->first);
    free(difference->second);
    *difference = (struct golden_difference){0};
}

// A view of SCRIPT without COUNT operations from FIRST on; it shares the texts.
static struct golden_script script_without(const struct golden_script *script, size_t first,
                                           size_t count) {
    struct golden_script view = *script;
    view.operations = malloc(script->operation_count * sizeof *view.operations);
    BASE_CHECK(view.operations != NULL);
    view.operation_count = script->operation_count - count;
    memcpy(view.operations, script->operations, first * sizeof *view.operations);
    memcpy(view.operations + first, script->operations + first + count,
           (view.operation_count - first) * sizeof *view.operations);
    return view;
}

static void script_remove(struct golden_script *script, size_t first, size_t count) {
    for (size_t index = first; index < first + count; index++) free(script->operations[index]);
    script->operation_count -= count;
    memmove(script->operations + first, script->operations + first + count,
            (script->operation_count - first) * sizeof *script->operations);
}

// Removes COUNT operations from FIRST on if what is left still differs, and all behind that
// difference.
static bool try_remove(struct golden_script *script, size_t first, size_t count,
                       const struct golden_subject *left, const struct golden_subject *right) {
    struct golden_script view = script_without(script, first, count);
    struct golden_difference difference;
    const bool differs = golden_script_compare(&view, left, right, &difference);
    free(view.operations);
    if (!differs) return false;
    script_remove(script, first, count);
    script_remove(script, difference.step + 1, script->operation_count - difference.step - 1);
    golden_difference_deinit(&difference);
    return true;
}

// One pass over pieces of a size, from the end: an operation behind is often pointless without the
// one before it, seldom the other way round.
static void shrink_by(struct golden_script *script, size_t piece, size_t *left,
                      const struct golden_subject *first, const struct golden_subject *second) {
    for (size_t end = script->operation_count; end >= piece && *left > 0;) {
        const size_t count = script->operation_count;
        *left -= *left < count ? *left : count;
        try_remove(script, end - piece, piece, first, second);
        end = end - piece < script->operation_count ? end - piece : script->operation_count;
    }
}

void golden_script_shrink(struct golden_script *script, const struct golden_subject *first,
                          const struct golden_subject *second) {
    size_t left = SHRINK_OPERATIONS_MAX;
    if (script->operation_count == 0 || !try_remove(script, 0, 0, first, second)) return;
    for (size_t piece = script->operation_count / 2; piece > 1; piece /= 2)
        shrink_by(script, piece, &left, first, second);
    for (size_t before = SIZE_MAX; script->operation_count < before && left > 0;) {
        before = script->operation_count;
        shrink_by(script, 2, &left, first, second);
        shrink_by(script, 1, &left, first, second);
    }
}

void golden_script_print(const struct golden_script *script, const struct golden_subject *subject,
                         FILE *output) {
    fprintf(output, "# seed %" PRIu64 ", outcomes of %s\n", script->seed, subject->name);
    if (script->config[0] != '\0') fprintf(output, "config %s\n", script->config);
    if (script->no_caching) fputs("env PYTORCH_NO_CUDA_MEMORY_CACHING 1\n", output);
    fprintf(output, "capacity %" PRIu64 "\n", script->capacity_bytes);
    struct side side;
    side_init(&side, script, subject);
    for (size_t step = 0; step < script->operation_count; step++)
        fputs(perform(&side, script->operations[step]), output);
    side_deinit(&side);
}
