// Made traces: equal for equal seeds, replayable, program-like.
#include "trace/build.h"
#include "trace/generate.h"

#include "base/address_map.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

static struct trace *made(uint64_t seed, enum trace_profile profile, uint32_t streams,
                          size_t count) {
    const struct trace_generator_options options = {
        .seed = seed, .profile = profile, .stream_count = streams};
    struct trace_generator *generator = NULL;
    struct trace_builder builder;
    struct trace *trace = NULL;
    uint16_t index;
    BASE_CHECK_EQ(trace__generator_create(&options, &generator), BASE_OK);
    BASE_CHECK_EQ(trace_builder_init(&builder, "made", 0), BASE_OK);
    for (uint32_t i = 1; i < streams; i++)
        BASE_CHECK_EQ(trace_add_stream(&builder, trace__generator_stream(i), &index), BASE_OK);
    for (size_t i = 0; i < count; i++) {
        struct trace_event event;
        uint32_t site;
        BASE_CHECK_EQ(trace__generator_next(generator, &event, &site), BASE_OK);
        BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    }
    trace__generator_destroy(generator);
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    return trace;
}

static bool same(const struct trace *a, const struct trace *b) {
    return a->event_count == b->event_count &&
           memcmp(a->events, b->events, a->event_count * sizeof *a->events) == 0;
}

static void a_seed_gives_the_same_trace_and_another_seed_another(void) {
    for (int profile = 0; profile < TRACE_PROFILE_COUNT; profile++) {
        struct trace *first = made(7, (enum trace_profile)profile, 3, 20000);
        struct trace *second = made(7, (enum trace_profile)profile, 3, 20000);
        struct trace *other = made(8, (enum trace_profile)profile, 3, 20000);
        BASE_CHECK(same(first, second));
        BASE_CHECK(!same(first, other));
        trace_destroy(first);
        trace_destroy(second);
        trace_destroy(other);
    }
}

static void every_profile_can_be_replayed_and_keeps_its_addresses_apart(void) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (int profile = 0; profile < TRACE_PROFILE_COUNT; profile++) {
            for (uint32_t streams = 1; streams <= 4; streams += 3) {
                base_check_context("seed %llu, profile %s, %u streams", (unsigned long long)seed,
                                   trace__profile_name(profile), streams);
                struct trace *trace = made(seed, (enum trace_profile)profile, streams, 30000);
                BASE_CHECK_EQ(trace_check_replayable(trace, 0), BASE_OK);
                BASE_CHECK(!trace_has_placement(trace, 0));
                uint64_t end = 0; // of the newest block: no address comes twice
                for (size_t i = 0; i < trace->event_count; i++) {
                    if (trace->events[i].action != TRACE_ALLOC) continue;
                    BASE_CHECK_GE(trace->events[i].address, end);
                    BASE_CHECK_GT(trace->events[i].size, 0);
                    end = trace->events[i].address + trace->events[i].size;
                }
                trace_destroy(trace);
            }
        }
    }
    base_check_context(NULL);
}

// What a replay must cope with: live memory that stays bounded, sizes that come again, streams,
// late completions.
static void made_programs_look_like_programs(void) {
    struct trace *trace = made(3, TRACE_PROFILE_TRAINING, 4, 300000);
    struct base_address_map pending = {0};
    uint64_t live = 0, peak = 0, late = 0, side = 0, value;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->action == TRACE_ALLOC) live += event->size;
        if (event->action == TRACE_FREE_REQUESTED) {
            live -= event->size;
            BASE_CHECK_EQ(base_address_map_set(&pending, event->address, i), BASE_OK);
        }
        if (event->action == TRACE_FREE_COMPLETED) {
            BASE_CHECK(base_address_map_remove(&pending, event->address, &value));
            late += i - value > 1;
        }
        side += event->stream != 0;
        if (live > peak) peak = live;
    }
    BASE_CHECK_GT(peak, (uint64_t)1 << 28);
    BASE_CHECK_LT(peak, (uint64_t)80 << 30);
    BASE_CHECK_GT(late, 1000);
    BASE_CHECK_GT(side, 10000);
    base_address_map_deinit(&pending);
    trace_destroy(trace);
}

int main(void) {
    a_seed_gives_the_same_trace_and_another_seed_another();
    every_profile_can_be_replayed_and_keeps_its_addresses_apart();
    made_programs_look_like_programs();
    return 0;
}
