// The race checker reports nothing of random legal programs, and of each that was made wrong (an
// edge removed, a write left out) at least one of the pairs that are wrong then, and no other.
//
//     race_property_test [PROGRAMS [FIRST [SCHEDULE]]]      default: 2,000 programs from seed 1
//     race_property_test --every-edge ...       not one edge of each program, but all
//     race_property_test --late ...             behind much that the checker has seen already
//
// What is unordered says closure.h from the program alone. A failure is printed with its seed as a
// litmus case, made smaller.
#include "simulator/race_property/closure.h"
#include "simulator/race_property/draw.h"
#include "simulator/race_property/features.h"
#include "simulator/race_property/perform.h"
#include "simulator/race_property/removal.h"
#include "simulator/race_property/verdict.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES_MAX 8
#define QUERY_SEEDS  64
// Sanitizers look at each step, not at how many programs there are.
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define PROGRAMS_DEFAULT 300
#else
#define PROGRAMS_DEFAULT 2000
#endif

static struct {
    uint64_t programs, operations, runs, failures;
    uint64_t features[FEATURE_COUNT];
    uint64_t unreached; // what mattered for answers that queries did not give in 64 seeds
    uint64_t removed[REMOVAL_KIND_COUNT]; // what mattered, of each program one
    uint64_t pairs, named;
} totals;

static const char *only_schedule; // NULL: all
static bool every_edge, all_late;

static struct performance performance_make(const struct program *program, uint64_t seed) {
    static const int cells[] = {1, 3, 64, 1000, 1, 4, 96, 512, 1, 2, 48, 8192};
    return (struct performance){.cell_bytes = cells[seed % (sizeof cells / sizeof cells[0])],
                                .name_blocks = seed % 2,
                                // Where little memory is touched much, it shows what was given up.
                                .late =
                                    all_late || (program->buffers[0].size < CELLS / 2 && seed % 2),
                                .without_bytes = seed % 4 >= 2};
}

static void fail(const struct program *program, struct performance performance,
                 enum verdict verdict, uint64_t seed, const char *removed) {
    char name[32];
    static struct program small;
    ++totals.failures;
    printf("seed %" PRIu64 ", schedule %s, cells of %d bytes%s, removed: %s: %s\n", seed,
           performance.schedule, performance.cell_bytes, performance.late ? ", late" : "", removed,
           verdict_text(verdict));
    if (verdict == VERDICT_ILLEGAL)
        printf("%s\n", verdict_judgement()->why);
    small = *program;
    program_shrink(&small, &performance, verdict);
    snprintf(name, sizeof name, "seed-%" PRIu64, seed);
    verdict_print(stdout, &small, name);
    if (totals.failures >= FAILURES_MAX) {
        printf("%d failures: enough\n", FAILURES_MAX);
        exit(1);
    }
}

static bool has_queries(const struct program *program) {
    for (int i = 0; i < program->count; ++i)
        if (!program->operations[i].dropped && verb_queries(program->operations[i].verb))
            return true;
    return false;
}

static void schedule_name(char text[32], uint64_t seed, int index) {
    if (only_schedule != NULL)
        snprintf(text, 32, "%s", only_schedule);
    else if (index < 2)
        snprintf(text, 32, "%s", index == 0 ? "eager" : "lazy");
    else
        snprintf(text, 32, "random:%" PRIu64, seed * QUERY_SEEDS + (uint64_t)index);
}

// --- No false report ---

static void check_legal(const struct program *program, uint64_t seed) {
    struct performance performance = performance_make(program, seed);
    for (int i = 0; i < 3; ++i) {
        char schedule[32];
        schedule_name(schedule, seed, i);
        performance.schedule = schedule;
        const enum verdict verdict = verdict_of(program, &performance);
        ++totals.runs;
        // The generator and the judge agree, whatever the checker says.
        if (verdict != VERDICT_ILLEGAL)
            BASE_CHECK_EQ(verdict_judgement()->pair_count, 0);
        if (verdict != VERDICT_RIGHT) {
            fail(program, performance, verdict, seed, "nothing");
            return;
        }
    }
    const uint32_t features = features_of(program, verdict_judgement());
    for (int i = 0; i < FEATURE_COUNT; ++i)
        totals.features[i] += features >> i & 1;
}

// --- No miss ---

static int count_kind(const struct judgement *judgement, enum pair_kind kind) {
    int count = 0;
    for (int i = 0; i < judgement->pair_count; ++i)
        count += judgement->pairs[i].kind == kind;
    return count;
}

static bool has_unordered_atomics(const struct program *program,
                                  const struct judgement *judgement) {
    return features_of(program, judgement) >> FEATURE_ATOMICS & 1;
}

// What the checker does not say of bytes that nobody wrote: it does not follow them through
// pageable memory, and takes an atomic that may come before for a write.
static bool is_beyond_checker(const struct program *program, const struct judgement *judgement) {
    return judgement->spoils_pageable || has_unordered_atomics(program, judgement);
}

// Whether it matters, for some answers of the queries. What nobody wrote the judge knows of
// programs without a race only; so either all pairs are of that kind (WRITES), or none is.
static bool matters(const struct program *program, bool writes) {
    static struct judgement judgement;
    static int results[OPERATIONS_MAX];
    bool found = false;
    for (int choice = 0; choice < 4; ++choice) {
        int query = 0;
        for (int i = 0; i < program->count; ++i) {
            results[i] = 0;
            if (!program->operations[i].dropped && verb_queries(program->operations[i].verb))
                results[i] = choice >> query++ & 1 ? 600 : 0;
        }
        closure_judge(program, results, &judgement);
        const int unwritten = count_kind(&judgement, PAIR_UNINITIALISED);
        if (judgement.valid && writes && is_beyond_checker(program, &judgement))
            return false;
        if (judgement.valid && unwritten != (writes ? judgement.pair_count : 0))
            return false;
        found = found || (judgement.valid && judgement.pair_count > 0);
        if (query == 0)
            break;
    }
    return found;
}

// How many pairs of places, however they conflict.
static uint64_t places_count(const struct pair *pairs, int count) {
    uint64_t places = 0;
    for (int i = 0; i < count; ++i) {
        bool again = false;
        for (int k = 0; k < i; ++k) {
            struct pair other = pairs[k];
            other.kind = pairs[i].kind;
            again = again || pair_equal(&pairs[i], &other);
        }
        places += !again;
    }
    return places;
}

static void count_named(void) {
    const struct performed *performed = verdict_performed();
    const struct judgement *judgement = verdict_judgement();
    totals.pairs += places_count(judgement->pairs, judgement->pair_count);
    totals.named += places_count(performed->pairs, performed->pair_count);
}

// False if what matters depends on answers of queries that no run got.
static bool check_removed(const struct program *program, uint64_t seed,
                          struct performance performance, const char *removed) {
    const bool queries = has_queries(program);
    bool reported = false;
    for (int i = 0; i < (queries ? 2 + QUERY_SEEDS : 3); ++i) {
        char schedule[32];
        schedule_name(schedule, seed, i);
        performance.schedule = schedule;
        const enum verdict verdict = verdict_of(program, &performance);
        ++totals.runs;
        if (verdict != VERDICT_RIGHT) {
            fail(program, performance, verdict, seed, removed);
            return true;
        }
        if (verdict_performed()->pair_count > 0 && !reported)
            count_named();
        reported = reported || verdict_performed()->pair_count > 0;
        if (queries && reported && i >= 4)
            break;
    }
    totals.unreached += !reported;
    return reported;
}

// One of those that are left: of calls, or of any kind alike, however many there are.
static int removal_choose(struct base_random *random, const struct removal *removals, int count) {
    const enum removal_kind wanted =
        base_random_chance(random, 0.5)
            ? REMOVAL_CALL
            : (enum removal_kind)base_random_below(random, REMOVAL_KIND_COUNT);
    int chosen = NONE;
    for (int i = 0, alike = 0; i < count; ++i)
        if (removals[i].kind == wanted && base_random_below(random, (uint64_t)++alike) == 0)
            chosen = i;
    return chosen != NONE ? chosen : (int)base_random_below(random, (uint64_t)count);
}

// Makes something wrong that matters, and checks what is left.
static void check_removals(const struct program *program, uint64_t seed, bool writes) {
    static struct removal removals[REMOVALS_MAX];
    static struct program less;
    struct base_random random = base_random_init(seed, "race property removal");
    for (int count = removals_list(program, writes, removals); count > 0; --count) {
        struct performance performance = performance_make(program, seed);
        const int chosen = removal_choose(&random, removals, count);
        const struct removal removal = removals[chosen];
        removals[chosen] = removals[count - 1];
        less = *program;
        removal_apply(&less, &removal);
        if (!matters(&less, writes))
            continue;
        if (removal.kind == REMOVAL_EARLY_GIVE)
            performance.name_blocks = 2; // else nobody says that the block is meant
        if (!check_removed(&less, seed, performance, removal_text(program, &removal)))
            continue;
        ++totals.removed[removal.kind];
        if (!every_edge)
            return;
    }
}

int main(int argc, char **argv) {
    for (; argc > 1 && argv[1][0] == '-'; --argc, ++argv) {
        every_edge = every_edge || strcmp(argv[1], "--every-edge") == 0;
        all_late = all_late || strcmp(argv[1], "--late") == 0;
    }
    const uint64_t programs = argc > 1 ? strtoull(argv[1], NULL, 10) : PROGRAMS_DEFAULT;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static struct program program;
    only_schedule = argc > 3 ? argv[3] : NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (uint64_t seed = first; seed < first + programs; ++seed) {
        base_check_context("seed %" PRIu64, seed);
        struct base_random random = base_random_init(seed, "race property");
        program_draw(&random, &program);
        ++totals.programs;
        totals.operations += (uint64_t)program.count;
        check_legal(&program, seed);
        check_removals(&program, seed, false);
        check_removals(&program, seed, true);
    }
    printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " legal programs, %" PRIu64
           " operations, %" PRIu64 " runs, %" PRIu64 " failures\n",
           first, first + programs - 1, totals.programs, totals.operations, totals.runs,
           totals.failures);
    for (enum feature i = 0; i < FEATURE_COUNT; ++i)
        printf("%5.1f %% with %s\n", 100 * (double)totals.features[i] / (double)programs,
               feature_text(i));
    printf("made wrong, where it matters: %" PRIu64 " of %" PRIu64 " pairs named\n", totals.named,
           totals.pairs);
    uint64_t edges = 0;
    for (enum removal_kind i = 0; i < REMOVAL_KIND_COUNT; ++i) {
        printf("%7" PRIu64 " %s\n", totals.removed[i], removal_kind_text(i));
        edges += i == REMOVAL_WRITE ? 0 : totals.removed[i];
    }
    printf("%7" PRIu64 " more matter for answers of queries that %d seeds did not give\n",
           totals.unreached, QUERY_SEEDS);
    if (programs >= 1000 && totals.failures == 0 && !every_edge) {
        for (enum feature i = 0; i < FEATURE_COUNT; ++i)
            BASE_CHECK_GE(20 * totals.features[i], programs);
        BASE_CHECK_GE(10 * edges, 8 * programs);
        BASE_CHECK_GE(10 * totals.removed[REMOVAL_WRITE], 2 * programs);
        BASE_CHECK_LE(100 * totals.unreached, totals.features[FEATURE_QUERIES]);
    }
    return totals.failures > 0;
}
