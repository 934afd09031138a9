#include "simulator/race_property/verdict.h"

#define PAIRS_SHOWN 12

static struct judgement judgement;
static struct performed performed;

const char *verdict_text(enum verdict verdict) {
    static const char *const texts[] = {"right", "illegal", "false report", "missed", "broken"};
    return texts[verdict];
}

const struct judgement *verdict_judgement(void) { return &judgement; }
const struct performed *verdict_performed(void) { return &performed; }

// A node that reads what nobody wrote does so in each launch; whether an earlier launch left
// something there is nobody's business.
static bool is_same_node(const struct pair *a, const struct pair *b) {
    return a->kind == PAIR_UNINITIALISED && b->kind == PAIR_UNINITIALISED &&
           a->first.node != NONE && a->first.node == b->first.node;
}

static bool is_listed(const struct pair *pair) {
    for (int i = 0; i < judgement.pair_count; ++i)
        if (pair_equal(&judgement.pairs[i], pair) || is_same_node(&judgement.pairs[i], pair))
            return true;
    return false;
}

enum verdict verdict_of(const struct program *program, const struct performance *performance) {
    program_perform(program, performance, &performed);
    closure_judge(program, performed.results, &judgement);
    if (!judgement.valid)
        return VERDICT_ILLEGAL;
    if (performed.problem[0] != '\0')
        return VERDICT_BROKEN;
    for (int i = 0; i < performed.pair_count; ++i)
        if (!is_listed(&performed.pairs[i]))
            return VERDICT_FALSE;
    return judgement.pair_count > 0 && performed.pair_count == 0 ? VERDICT_MISSED : VERDICT_RIGHT;
}

// --- Shrinking ---

// What the judge says of bytes that nobody wrote it says of programs without a race.
static bool tells_of_contents(void) {
    for (int i = 0; i < judgement.pair_count; ++i)
        if (judgement.pairs[i].kind == PAIR_UNINITIALISED)
            return true;
    return false;
}

static bool still_fails(const struct program *program, const struct performance *performance,
                        enum verdict verdict) {
    // Cheaper than playing what is illegal: most candidates are.
    const int results[OPERATIONS_MAX] = {0};
    closure_judge(program, results, &judgement);
    if (!judgement.valid)
        return false;
    return verdict_of(program, performance) == verdict && !tells_of_contents();
}

static bool drop_operation(struct program *program, const struct performance *performance,
                           enum verdict verdict, int index) {
    struct operation *operation = &program->operations[index];
    if (operation->dropped)
        return false;
    operation->dropped = true;
    if (still_fails(program, performance, verdict))
        return true;
    operation->dropped = false;
    return false;
}

static bool drop_step(struct program *program, const struct performance *performance,
                      enum verdict verdict, int index) {
    struct operation *operation = &program->operations[index];
    const struct operation before = *operation;
    if (operation->dropped || operation->verb != KERNEL)
        return false;
    for (int i = 0; i < before.step_count; ++i) {
        operation->step_count = 0;
        for (int k = 0; k < before.step_count; ++k)
            if (k != i)
                operation->steps[operation->step_count++] = before.steps[k];
        if (still_fails(program, performance, verdict))
            return true;
        *operation = before;
    }
    return false;
}

void program_shrink(struct program *program, const struct performance *performance,
                    enum verdict verdict) {
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (int i = program->count - 1; i >= 0; --i)
            smaller = drop_operation(program, performance, verdict, i) || smaller;
        for (int i = program->count - 1; i >= 0; --i)
            smaller = drop_step(program, performance, verdict, i) || smaller;
    }
    (void)verdict_of(program, performance);
}

// --- In words ---

static void place_print(FILE *out, struct place_in_program at) {
    if (at.operation == NONE)
        fprintf(out, " -");
    else
        fprintf(out, " %s", operation_label(at.operation));
    if (at.node != NONE)
        fprintf(out, "/%s", operation_label(at.node));
}

static void pair_print(FILE *out, const struct pair *pair) {
    fprintf(out, "    %s", pair_kind_name(pair->kind));
    place_print(out, pair->first);
    place_print(out, pair->second);
    fprintf(out, pair->is_minor ? ", too\n" : "\n");
}

static void pairs_print(FILE *out, const char *title, const struct pair *pairs, int count) {
    fprintf(out, "%s: %d\n", title, count);
    for (int i = 0; i < count && i < PAIRS_SHOWN; ++i)
        pair_print(out, &pairs[i]);
    if (count > PAIRS_SHOWN)
        fprintf(out, "    ...\n");
}

void verdict_print(FILE *out, const struct program *program, const char *name) {
    program_print(out, program, name, "found by race_property_test");
    if (!judgement.valid)
        fprintf(out, "illegal: %s\n", judgement.why);
    for (int i = 0; i < program->count; ++i)
        if (!program->operations[i].dropped && verb_queries(program->operations[i].verb))
            fprintf(out, "%s answered %d\n", operation_label(i), performed.results[i]);
    pairs_print(out, "unordered", judgement.pairs, judgement.valid ? judgement.pair_count : 0);
    pairs_print(out, "reported", performed.pairs, performed.pair_count);
    for (int i = 0; i < performed.pair_count; ++i)
        if (!is_listed(&performed.pairs[i])) {
            fprintf(out, "reported, but in order:\n");
            pair_print(out, &performed.pairs[i]);
        }
    if (performed.problem[0] != '\0')
        fprintf(out, "problem: %s\n", performed.problem);
    if (performed.text[0] != '\0')
        fprintf(out, "first report: %s\n", performed.text);
}
