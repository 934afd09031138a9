// The random schedule: any legal order, from a seed.
//
// What one order needs to come about is that some work waits long while other work runs: choosing
// evenly at each step almost never does that. So a seed first draws a *manner*, and streams get
// ranks that last (as in probabilistic concurrency testing, Burckhardt et al. 2010): of what is
// ready, the highest rank runs; at a few points the stream that ran last draws anew.
//
// A rank also says whether a stream is prompt: its work runs within the call that makes it ready.
// All other work is deferred until a wait or a query makes the schedule go on. Of two unordered
// operations A and B, submitted in this order, A comes first
//
//     always                   if A's stream is prompt
//     never                    if it is not and B's is, or the manner takes the newest work first
//     in half of the seeds     if both are deferred and the ranks decide
//
// and the manners below are mixed such that this makes one half, however many calls lie between A
// and B. In a few seeds, the wild manner, any call may run something: that reaches what lies
// between "at once" and "not before a wait". Those favour A; the first manner makes up for it.
// (48.5 to 52 % were measured over 30,000 seeds: A and B neighbours, thirty calls apart, recorded,
// polled.)
//
// Seeds 2n and 2n + 1 draw mirrored ranks: where one runs A first, so does the other B.
#include "base/random.h"
#include "simulator/engine.h"
#include "simulator/schedule.h"

#include <stdlib.h>

// A deferred stream is taken by rank, unless NEWEST: then by the age of its last operation. PROMPT
// is the chance of a stream to be prompt. The chance that A comes first is
// prompt + (1 - prompt)^2 * (1 - newest) / 2.
struct manner {
    double weight;
    double prompt;
    double newest;
    double eagerness[2]; // wild: bounds of the chance of each point that something runs
};

static const struct manner manners[] = {
    {0.18, 0.28, 1, {0, 0}},       // 0.28
    {0.22, 0, 0, {0, 0}},          // 0.5
    {0.16, 0.125, 0.0204, {0, 0}}, // 0.5
    {0.18, 0.25, 0.1111, {0, 0}},  // 0.5
    {0.16, 0.375, 0.36, {0, 0}},   // 0.5
    {0.10, 0, 0, {0.1, 0.5}},      // 0.7 at the next call, 1 long after
};
#define MANNER_COUNT (sizeof manners / sizeof manners[0])

#define DOUBT_CHANCE 0.4
#define POLL_CHANCE 0.5 // that a query that says "not ready" lets something run
#define POLLS_IDLE_MAX 8
#define EVEN_CHANCE 0.4   // that ranks count for nothing among the deferred
#define FICKLE_CHANCE 0.4 // that whether a stream is prompt is drawn with each operation
#define CHANGES_NEVER_CHANCE 0.15
#define CHANGES_ALWAYS_CHANCE 0.3
#define CHANGE_GAP_MAX 48
#define WILD_EVENNESS 0.5
#define LONG_BURST 0.8 // chance of each further step at the same point
#define WILD_CHANGE_CHANCE 0.2

#define PROMPT_BIT ((uint64_t)1 << 63)

static uint64_t chosen_seed;

static struct {
    struct base_random random;
    uint64_t base; // of two mirrored seeds
    bool mirrored, newest_first, wild, fickle;
    double prompt_chance, eagerness, burst;
    double evenness; // chance of each step that ranks do not count
    uint64_t change_gap; // steps between changes, on average; 0: none
    uint64_t change_in;
    uint64_t submission_count;
    uint32_t drawn_count; // streams
    uint32_t polls_idle;

    struct sim__stream **heap; // what is ready, by key
    uint32_t count, size;
} state;

void sim__schedule_random_seed(uint64_t seed) { chosen_seed = seed; }

static void change_plan(void) {
    if (state.change_gap > 0)
        state.change_in = base_random_between(&state.random, 1, 2 * state.change_gap - 1);
}

static void reset(void) {
    state.base = chosen_seed >> 1;
    state.mirrored = (chosen_seed & 1) != 0;
    struct base_random manner_random = base_random_init(state.base, "manner");
    double left = base_random_unit(&manner_random);
    size_t i = 0;
    while (i + 1 < MANNER_COUNT && left >= manners[i].weight)
        left -= manners[i++].weight;
    const struct manner *manner = &manners[i];
    state.prompt_chance = manner->prompt;
    state.newest_first = base_random_chance(&manner_random, manner->newest);
    state.wild = manner->eagerness[1] > 0;
    state.random = base_random_init(chosen_seed, "schedule");
    if (state.wild)
        state.eagerness = (double)base_random_log_between(&state.random,
                                                          (uint64_t)(manner->eagerness[0] * 1000),
                                                          (uint64_t)(manner->eagerness[1] * 1000)) /
                          1000;
    state.evenness = state.wild ? WILD_EVENNESS
                     : !state.newest_first && base_random_chance(&state.random, EVEN_CHANCE)
                         ? 1
                         : 0;
    state.fickle =
        !state.newest_first && !state.wild && base_random_chance(&state.random, FICKLE_CHANCE);
    if (state.fickle)
        state.prompt_chance /= 2; // most operations are followed by a record
    state.burst = base_random_chance(&state.random, 0.5) ? LONG_BURST : state.eagerness;
    const double changes = base_random_unit(&state.random);
    state.change_gap = changes < CHANGES_NEVER_CHANCE                        ? 0
                       : changes < CHANGES_NEVER_CHANCE + CHANGES_ALWAYS_CHANCE
                           ? 1
                           : base_random_log_between(&state.random, 2, CHANGE_GAP_MAX);
    change_plan();
    state.submission_count = 0;
    state.drawn_count = 0;
    state.polls_idle = 0;
    state.count = 0;
}

// --- Ranks ---

// A number that belongs to the stream and to how often it drew; mirrored seeds get its complement.
// The stream counts by its first use under this schedule, so that a seed means the same order in a
// process that has run other things before.
static uint64_t draw(const struct sim__stream *stream, uint64_t what) {
    uint64_t x = state.base * 0x9e3779b97f4a7c15u + stream->schedule.ordinal * 0xd1b54a32d192ed03u +
                 stream->schedule.draw_count * 0x8cb92ba72f3d8dd7u + what;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return state.mirrored ? ~x : x;
}

static void prompt_draw(struct sim__stream *stream) {
    ++stream->schedule.draw_count;
    stream->schedule.prompt = (double)draw(stream, 1) < state.prompt_chance * 0x1p64;
    stream->schedule.key &= ~PROMPT_BIT;
    if (stream->schedule.prompt)
        stream->schedule.key |= PROMPT_BIT;
}

static void stream_draw(struct sim__stream *stream) {
    if (stream->schedule.ordinal == 0)
        stream->schedule.ordinal = ++state.drawn_count;
    if (!state.newest_first)
        stream->schedule.key = draw(stream, 2) >> 1;
    prompt_draw(stream);
}

// --- The heap ---

static bool is_above(const struct sim__stream *a, const struct sim__stream *b) {
    return a->schedule.key > b->schedule.key ||
           (a->schedule.key == b->schedule.key && a->number < b->number);
}

static void place(uint32_t at, struct sim__stream *stream) {
    state.heap[at] = stream;
    stream->schedule.heap_place = at + 1;
}

static void sift_up(uint32_t at, struct sim__stream *stream) {
    for (; at > 0 && is_above(stream, state.heap[(at - 1) / 2]); at = (at - 1) / 2)
        place(at, state.heap[(at - 1) / 2]);
    place(at, stream);
}

static void sift_down(uint32_t at, struct sim__stream *stream) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= state.count)
            break;
        if (child + 1 < state.count && is_above(state.heap[child + 1], state.heap[child]))
            ++child;
        if (!is_above(state.heap[child], stream))
            break;
        place(at, state.heap[child]);
        at = child;
    }
    place(at, stream);
}

static void offer(struct sim__stream *stream) {
    BASE_CHECK_EQ(stream->schedule.heap_place, 0);
    if (stream->schedule.ordinal == 0)
        stream_draw(stream);
    if (state.count == state.size) {
        state.size = state.size == 0 ? 64 : 2 * state.size;
        state.heap = realloc(state.heap, state.size * sizeof(struct sim__stream *));
        if (state.heap == NULL)
            sim__host_limit("out of host memory for %u ready streams", state.size);
    }
    sift_up(state.count++, stream);
}

static void withdraw(struct sim__stream *stream) {
    if (stream->schedule.heap_place == 0)
        return;
    const uint32_t at = stream->schedule.heap_place - 1;
    struct sim__stream *last = state.heap[--state.count];
    stream->schedule.heap_place = 0;
    if (last == stream)
        return;
    if (at > 0 && is_above(last, state.heap[(at - 1) / 2]))
        sift_up(at, last);
    else
        sift_down(at, last);
}

static void submitted(struct sim__stream *stream) {
    const bool ready = stream->schedule.heap_place > 0;
    if (stream->schedule.ordinal == 0)
        stream_draw(stream);
    if (!state.newest_first && !state.fickle)
        return;
    if (ready)
        withdraw(stream);
    if (state.newest_first)
        stream->schedule.key =
            ++state.submission_count | (stream->schedule.prompt ? PROMPT_BIT : 0);
    if (state.fickle)
        prompt_draw(stream);
    if (ready)
        offer(stream);
}

// --- Steps ---

static void stream_redraw(struct sim__stream *stream) {
    const bool ready = stream->schedule.heap_place > 0;
    if (ready)
        withdraw(stream);
    stream_draw(stream);
    if (ready)
        offer(stream);
}

static void run(struct sim__stream *stream) {
    bool changes = state.wild && base_random_chance(&state.random, WILD_CHANGE_CHANCE);
    if (state.change_gap > 0 && --state.change_in == 0) {
        change_plan();
        changes = true;
    }
    if (changes)
        stream_redraw(stream);
    sim__engine_run_first(stream);
}

static bool step(void) {
    if (state.count == 0)
        return false;
    uint32_t at = 0;
    if (state.evenness > 0 && base_random_chance(&state.random, state.evenness))
        at = (uint32_t)base_random_below(&state.random, state.count);
    run(state.heap[at]);
    return true;
}

static void point(void) {
    if (!state.wild) {
        while (state.count > 0 && (state.heap[0]->schedule.key & PROMPT_BIT) != 0)
            step();
    } else if (base_random_chance(&state.random, state.eagerness)) {
        while (step() && base_random_chance(&state.random, state.burst))
            continue;
    }
}

static void force(struct sim__position position) {
    while (!sim__position_complete(position))
        if (!step())
            sim__engine_run_goal(position); // what is left is held, or runs in another thread
}

static void poll(struct sim__position position) {
    (void)position;
    if (++state.polls_idle < POLLS_IDLE_MAX && !base_random_chance(&state.random, POLL_CHANCE))
        return;
    state.polls_idle = 0;
    step();
}

static bool doubt(void) { return base_random_chance(&state.random, DOUBT_CHANCE); }

static uint32_t choose(uint32_t count) {
    return (uint32_t)base_random_below(&state.random, count);
}

const struct sim__schedule sim__schedule_random = {
    .name = "random",
    .doubts = true,
    .reset = reset,
    .offer = offer,
    .withdraw = withdraw,
    .submitted = submitted,
    .point = point,
    .force = force,
    .poll = poll,
    .doubt = doubt,
    .choose = choose,
};
