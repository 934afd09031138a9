// The judge against what it must agree with: programs judged by hand, and all orders of small
// programs, one by one. The generator against the judge.
#include "simulator/race_property/closure.h"
#include "simulator/race_property/draw.h"
#include "simulator/race_property/features.h"
#include "simulator/race_property/removal.h"

#include "base/check.h"

#include <inttypes.h>
#include <string.h>

static struct judgement judgement;
static struct program program;
static int results[OPERATIONS_MAX]; // of queries

// --- By hand ---

// Streams: 0 legacy, 1 and 2 NonBlocking, 3 blocking; buffer 0 on the device, 1 page-locked.
static void program_begin(void) {
    memset(&program, 0, sizeof program);
    memset(results, 0, sizeof results);
    program.device_count = 1;
    const enum stream_kind kinds[] = {LEGACY, NON_BLOCKING, NON_BLOCKING, BLOCKING};
    for (int i = 0; i < 4; ++i)
        program.streams[program.stream_count++] = (struct stream){kinds[i], 0, 0};
    program.event_count = 2;
    program.buffers[program.buffer_count++] = (struct buffer){ON_DEVICE, 0, CELLS, true, false};
    program.buffers[program.buffer_count++] = (struct buffer){PINNED, 0, CELLS, true, false};
}

static struct operation *add(enum verb verb, int stream) {
    struct operation *operation = &program.operations[program.count++];
    *operation = operation_make(verb, 0);
    operation->stream = stream;
    return operation;
}

static int add_step(enum verb verb, int stream, enum step_verb step, struct span to) {
    struct operation *operation = add(verb, stream);
    operation->step_count = 1;
    operation->steps[0] = (struct step){step, to, {to, to}};
    return program.count - 1;
}

static int add_event(enum verb verb, int stream, int event) {
    add(verb, stream)->event = event;
    return program.count - 1;
}

static struct span cells(int buffer, int start, int length) {
    return (struct span){buffer, NONE, start, length, length, 1};
}

static void expect_pairs(int count) {
    closure_judge(&program, results, &judgement);
    BASE_CHECK(judgement.valid);
    BASE_CHECK_EQ(judgement.pair_count, count);
}

static void expect_pair(enum pair_kind kind, int first, int second) {
    const struct pair pair = {kind, {first, NONE}, {second, NONE}, false};
    for (int i = 0; i < judgement.pair_count; ++i)
        if (pair_equal(&judgement.pairs[i], &pair))
            return;
    BASE_CHECK(!"the pair is listed");
}

static void streams_are_unordered_until_an_event_orders_them(void) {
    program_begin();
    const int first = add_step(KERNEL, 1, STEP_SET, cells(0, 0, 4));
    const int record = add_event(RECORD, 1, 0);
    const int wait = add_event(WAIT, 2, 0);
    const int second = add_step(KERNEL, 2, STEP_SET, cells(0, 3, 4));
    expect_pairs(0);
    program.operations[record].dropped = true;
    expect_pairs(1);
    expect_pair(PAIR_WRITE_WRITE, first, second);
    program.operations[record].dropped = false;
    program.operations[wait].dropped = true;
    expect_pairs(1);
    program.operations[second].steps[0].to.start = 4; // beside it
    expect_pairs(0);
}

static void the_legacy_stream_bars_blocking_streams_only(void) {
    program_begin();
    const int first = add_step(KERNEL, 3, STEP_SET, cells(0, 0, 4));
    add_step(KERNEL, 0, STEP_SET, cells(0, 0, 4));
    add_step(KERNEL, 3, STEP_READ, cells(0, 0, 4));
    expect_pairs(0);
    const int last = add_step(KERNEL, 1, STEP_READ, cells(0, 0, 4));
    expect_pairs(2);
    expect_pair(PAIR_READ_WRITE, first, last);
}

static void the_host_comes_behind_what_it_waited_for(void) {
    program_begin();
    const int first = add_step(KERNEL, 1, STEP_SET, cells(1, 0, 4));
    const int sync = add_event(STREAM_SYNC, 1, NONE);
    const int read = add_step(HOST_READ, NONE, STEP_READ, cells(1, 0, 4));
    expect_pairs(0);
    program.operations[sync].dropped = true;
    expect_pairs(1);
    expect_pair(PAIR_READ_WRITE, first, read);
}

static void a_query_orders_when_it_succeeds(void) {
    program_begin();
    add_step(KERNEL, 1, STEP_SET, cells(1, 0, 4));
    const int query = add_event(STREAM_QUERY, 1, NONE);
    const int read = add_step(HOST_READ, NONE, STEP_READ, cells(1, 0, 4));
    expect_pairs(0);
    results[query] = 600;
    expect_pairs(1);
    program.operations[read].guard = query;
    program.operations[read].guard_success = true;
    expect_pairs(0);
}

static void atomics_do_not_conflict(void) {
    program_begin();
    add_step(KERNEL, 1, STEP_ATOMIC, cells(0, 0, 4));
    add_step(KERNEL, 2, STEP_ATOMIC, cells(0, 0, 4));
    expect_pairs(0);
    add_step(KERNEL, 1, STEP_READ, cells(0, 0, 4));
    expect_pairs(1);
}

static void memory_has_a_life(void) {
    program_begin();
    program.buffers[program.buffer_count++] = (struct buffer){ON_DEVICE, 0, CELLS, false, true};
    const int alloc = program.count;
    add(ALLOC_ASYNC, 1)->buffer = 2;
    const int set = add_step(KERNEL, 1, STEP_SET, cells(2, 0, 4));
    const int other = add_step(KERNEL, 2, STEP_READ, cells(2, 0, 4));
    const int end = program.count;
    add(FREE_ASYNC, 1)->buffer = 2;
    expect_pairs(3);
    expect_pair(PAIR_USE_BEFORE_ALLOC, alloc, other);
    expect_pair(PAIR_USE_AFTER_FREE, other, end);
    expect_pair(PAIR_READ_WRITE, set, other);
}

static void a_block_ends_before_the_next_one_begins(void) {
    program_begin();
    for (int i = 0; i < 2; ++i)
        program.blocks[program.block_count++] = (struct block){0, 0, 8};
    struct span span = cells(0, 0, 4);
    add(TAKE, 1)->block = 0;
    span.block = 0;
    const int first = add_step(KERNEL, 1, STEP_SET, span);
    add(GIVE, NONE)->block = 0;
    add(TAKE, 2)->block = 1;
    span.block = 1;
    const int second = add_step(KERNEL, 2, STEP_SET, span);
    add_step(KERNEL, 2, STEP_READ, span);
    expect_pairs(2);
    expect_pair(PAIR_REUSE, first, second);
    span.start = 4;
    const int fresh = add_step(KERNEL, 2, STEP_READ, span); // the bytes of nobody
    expect_pairs(3);
    expect_pair(PAIR_UNINITIALISED, fresh, NONE);
}

static void a_graph_keeps_its_edges_and_runs_after_itself(void) {
    program_begin();
    add(BEGIN, 1);
    const int first = add_step(KERNEL, 1, STEP_SET, cells(0, 0, 4));
    add_event(RECORD, 1, 0);
    add_event(WAIT, 2, 0);
    const int forked = add_step(KERNEL, 2, STEP_SET, cells(0, 4, 4));
    add_event(RECORD, 2, 1);
    const int last = add_step(KERNEL, 1, STEP_SET, cells(0, 4, 4));
    add_event(WAIT, 1, 1);
    add(END, 1)->graph = 0;
    for (int i = 0; i < 2; ++i) {
        struct operation *instance = add(INSTANTIATE, NONE);
        instance->graph = 0;
        instance->exec = i;
    }
    const int launch = program.count;
    add(LAUNCH, 1)->exec = 0;
    add(LAUNCH, 2)->exec = 0;
    expect_pairs(2);
    const struct pair within = {PAIR_WRITE_WRITE, {launch, forked}, {launch, last}, false};
    BASE_CHECK(pair_equal(&judgement.pairs[0], &within));
    program.operations[last].dropped = true;
    expect_pairs(0);
    add(LAUNCH, 1)->exec = 1; // behind the first one, beside the second one
    expect_pairs(2);
    const struct pair beside = {PAIR_WRITE_WRITE, {launch + 1, first}, {launch + 2, first}, false};
    BASE_CHECK(pair_equal(&judgement.pairs[0], &beside));
}

// --- All orders, one by one ---

// Extends an order of all points by each one whose direct predecessors are in it.
static struct {
    uint64_t direct[64];
    bool seen[64][64]; // [a][b]: a stood before b in some order
    int order[64], count;
    uint64_t orders;
} walk;

static void walk_on(int depth, uint64_t done) {
    if (walk.orders > 200000)
        return;
    if (depth == walk.count) {
        ++walk.orders;
        for (int i = 0; i < walk.count; ++i)
            for (int k = i + 1; k < walk.count; ++k)
                walk.seen[walk.order[i]][walk.order[k]] = true;
        return;
    }
    for (int i = 0; i < walk.count; ++i)
        if (!(done >> i & 1) && !(walk.direct[i] & ~done)) {
            walk.order[depth] = i;
            walk_on(depth + 1, done | (uint64_t)1 << i);
        }
}

// Whether two points touch a common cell and one of them writes it.
static bool points_conflict(const struct point *a, const struct point *b) {
    for (int i = 0; i < a->access_count; ++i)
        for (int k = 0; k < b->access_count; ++k)
            for (int n = 0; n < span_size(&a->accesses[i].span); ++n)
                for (int m = 0; m < span_size(&b->accesses[k].span); ++m) {
                    const struct access *one = &a->accesses[i], *other = &b->accesses[k];
                    const bool both_read = one->mode == READS && other->mode == READS;
                    const bool both_update = one->mode == UPDATES && other->mode == UPDATES;
                    if (one->span.buffer == other->span.buffer && !both_read && !both_update &&
                        span_cell(&one->span, n) == span_cell(&other->span, m))
                        return true;
                }
    return false;
}

// False if there are too many orders to say.
static bool orders_agree(uint64_t *pairs) {
    memset(&walk, 0, sizeof walk);
    walk.count = judgement.point_count;
    if (walk.count > 24)
        return false;
    bool matched[PAIRS_MAX] = {false};
    for (int i = 0; i < walk.count; ++i)
        walk.direct[i] = judgement.points[i].direct.words[0];
    walk_on(0, 0);
    if (walk.orders > 200000)
        return false;
    for (int i = 0; i < walk.count; ++i)
        for (int k = i + 1; k < walk.count; ++k) {
            const bool both = walk.seen[i][k] && walk.seen[k][i];
            BASE_CHECK_EQ(both, closure_unordered(&judgement, i, k));
            const struct point *first = &judgement.points[i], *second = &judgement.points[k];
            if (!both || !points_conflict(first, second))
                continue;
            ++*pairs;
            bool listed = false;
            for (int n = 0; n < judgement.pair_count; ++n) {
                const struct pair *pair = &judgement.pairs[n];
                if (pair->kind <= PAIR_REUSE && pair->first.operation == first->at.operation &&
                    pair->second.operation == second->at.operation)
                    listed = matched[n] = true;
            }
            BASE_CHECK(listed);
        }
    for (int n = 0; n < judgement.pair_count; ++n) // nor is there one more
        BASE_CHECK(matched[n] || judgement.pairs[n].kind > PAIR_REUSE);
    return true;
}

static void small_programs_agree_with_all_their_orders(void) {
    struct removal removals[REMOVALS_MAX];
    static struct program drawn;
    uint64_t judged = 0, conflicts = 0, orders = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        base_check_context("seed %" PRIu64, seed);
        struct base_random random = base_random_init(seed, "closure_test");
        program_draw_small(&random, &drawn);
        const int count = removals_list(&drawn, false, removals);
        for (int i = -1; i < count; ++i) {
            program = drawn;
            if (i >= 0)
                removal_apply(&program, &removals[i]);
            closure_judge(&program, results, &judgement);
            uint64_t pairs = 0;
            if (!judgement.valid || !orders_agree(&pairs))
                continue;
            BASE_CHECK(i >= 0 || pairs == 0);
            ++judged;
            orders += walk.orders;
            conflicts += pairs;
        }
    }
    printf("%" PRIu64 " small programs, %" PRIu64 " orders, %" PRIu64 " unordered conflicts\n",
           judged, orders, conflicts);
    BASE_CHECK_GE(judged, 300);
    BASE_CHECK_GE(conflicts, 50);
    base_check_context(NULL);
}

// --- The generator ---

// Whatever the queries answer: by bits of CHOICE.
static void choose_results(uint64_t choice) {
    for (int i = 0; i < program.count; ++i) {
        results[i] = 0;
        if (verb_queries(program.operations[i].verb)) {
            results[i] = choice & 1 ? 600 : 0;
            choice >>= 1;
        }
    }
}

static void drawn_programs_are_legal_and_free_of_races(void) {
    uint64_t counts[FEATURE_COUNT] = {0};
    const uint64_t programs = 3000;
    for (uint64_t seed = 1; seed <= programs; ++seed) {
        base_check_context("seed %" PRIu64, seed);
        struct base_random random = base_random_init(seed, "closure_test drawn");
        program_draw(&random, &program);
        for (uint64_t choice = 0; choice < 4; ++choice) {
            choose_results(choice);
            closure_judge(&program, results, &judgement);
            // The host may not be told that what it knows to be complete is not.
            if (choice > 0 && !judgement.valid && strstr(judgement.why, "the host knows"))
                continue;
            if (!judgement.valid)
                printf("%s\n", judgement.why);
            BASE_CHECK(judgement.valid);
            BASE_CHECK_EQ(judgement.pair_count, 0);
        }
        choose_results(0);
        closure_judge(&program, results, &judgement);
        const uint32_t features = features_of(&program, &judgement);
        for (int i = 0; i < FEATURE_COUNT; ++i)
            counts[i] += features >> i & 1;
    }
    base_check_context(NULL);
    for (enum feature i = 0; i < FEATURE_COUNT; ++i) {
        printf("%5.1f %% have %s\n", 100 * (double)counts[i] / (double)programs, feature_text(i));
        BASE_CHECK_GE(20 * counts[i], programs);
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    streams_are_unordered_until_an_event_orders_them();
    the_legacy_stream_bars_blocking_streams_only();
    the_host_comes_behind_what_it_waited_for();
    a_query_orders_when_it_succeeds();
    atomics_do_not_conflict();
    memory_has_a_life();
    a_block_ends_before_the_next_one_begins();
    a_graph_keeps_its_edges_and_runs_after_itself();
    memset(results, 0, sizeof results);
    small_programs_agree_with_all_their_orders();
    drawn_programs_are_legal_and_free_of_races();
    return 0;
}
