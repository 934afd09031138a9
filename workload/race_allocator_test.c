// Random programs on the caching allocator with the race checker on: several streams, blocks that
// go from stream to stream with record_stream, memory that is really written and read back, little
// of it. The programs are right, so the checker must find nothing and every byte must be there,
// whichever setting decides on reuse and whatever the schedule makes of it; and with a wrong rule
// of reuse planted between the two it must find something.
//
//     race_allocator_test [SEED [PROGRAMS]]
#include "workload/race_blocks.h"
#include "workload/race_work.h"
#include "workload/wrapper.h"

#include "allocator/cca.h"
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>

#define STREAMS    4
#define BLOCKS     24
#define STEPS      400
#define SEED       5
#define CAPACITY   (96 * BASE_MIB)

struct block {
    struct workload_race_bytes bytes; // without a pointer: free
    int owner, last;                  // streams: the one it was taken for, the last that touched it
};

struct program {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS];
    cudaEvent_t event;
    struct block blocks[BLOCKS];
    struct base_random random;
};

static void write_block(struct program *program, struct block *block, int stream) {
    workload_race_write(&block->bytes, (unsigned char)base_random_below(&program->random, 256),
                        program->streams[stream]);
}

// The stream comes behind all that was done with the block.
static void order_behind(struct program *program, struct block *block, int stream) {
    if (block->last != stream) {
        BASE_CHECK_EQ(cudaEventRecord(program->event, program->streams[block->last]), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(program->streams[stream], program->event, 0),
                      cudaSuccess);
    }
    block->last = stream;
}

//------------------------------------------------------------------------------------------------
// Steps.

static void take(struct program *program, struct block *block) {
    const int owner = (int)base_random_below(&program->random, STREAMS);
    const size_t size = base_random_log_between(&program->random, 1, 24 * BASE_MIB);
    void *pointer = NULL;
    const enum base_status status =
        allocator_malloc(program->allocator, 0, size, program->streams[owner], &pointer);
    if (status == BASE_OUT_OF_MEMORY) return;
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    *block = (struct block){.bytes = {pointer, size, 0}, .owner = owner, .last = owner};
    write_block(program, block, owner);
}

static void give(struct program *program, struct block *block) {
    // Its own stream comes behind the others' doings or not: record_stream sees to either.
    BASE_CHECK_EQ(allocator_free(program->allocator, block->bytes.pointer), BASE_OK);
    block->bytes.pointer = NULL;
}

// Through a view now and then.
static void use(struct program *program, struct block *block) {
    const int stream = (int)base_random_below(&program->random, STREAMS);
    order_behind(program, block, stream);
    if (base_random_chance(&program->random, 0.5))
        workload_race_read(&block->bytes, program->streams[stream]);
    else
        write_block(program, block, stream);
    if (stream != block->owner)
        BASE_CHECK_EQ(allocator_record_stream(program->allocator,
                                              block->bytes.pointer +
                                                  base_random_below(&program->random,
                                                                    block->bytes.size),
                                              program->streams[stream]),
                      BASE_OK);
}

static void step(struct program *program) {
    struct block *const block = &program->blocks[base_random_below(&program->random, BLOCKS)];
    if (block->bytes.pointer == NULL)
        take(program, block);
    else if (base_random_chance(&program->random, 0.4))
        give(program, block);
    else
        use(program, block);
    if (base_random_chance(&program->random, 0.01))
        BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
}

//------------------------------------------------------------------------------------------------
// A wrong rule between the checker and the allocator.

enum plant { PLANT_NONE, PLANT_FORGETS_USES, PLANT_ONE_POOL };

static enum plant planted;

// Blocks of all streams are reused as if they were of one.
static enum base_status malloc_of_one_pool(struct allocator *allocator, int device, size_t size,
                                           cudaStream_t stream, void **pointer) {
    (void)stream;
    return allocator_malloc(workload_wrapper_inner(allocator), device, size, NULL, pointer);
}
static enum base_status forget_use(struct allocator *allocator, void *pointer,
                                   cudaStream_t stream) {
    (void)allocator;
    (void)pointer;
    (void)stream;
    return BASE_OK;
}

static struct allocator *plant(struct allocator *allocator) {
    static struct allocator_operations operations;
    static struct workload_wrapper wrapper;
    if (planted == PLANT_NONE) return allocator;
    operations = workload_wrapper_operations;
    if (planted == PLANT_ONE_POOL) operations.malloc = malloc_of_one_pool;
    if (planted == PLANT_FORGETS_USES) operations.record_stream = forget_use;
    wrapper = (struct workload_wrapper){{&operations}, allocator};
    return &wrapper.allocator;
}

//------------------------------------------------------------------------------------------------
// Programs.

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

// How many races the checker found.
static uint64_t run(const char *config, const char *schedule, uint64_t seed) {
    static struct program program;
    struct allocator *caching = NULL;
    program = (struct program){.random = base_random_init(seed, "race program")};
    base_check_context("\"%s\", %s, seed %llu", config, schedule, (unsigned long long)seed);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = CAPACITY}), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true, .blocks_only = true}),
                  BASE_OK);
    for (int index = 0; index < STREAMS; ++index)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&program.streams[index], cudaStreamNonBlocking),
                      cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&program.event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(
        cca_allocator_create(
            &(struct cca_options){.config = config, .warnings = {ignore_warning, NULL}}, &caching),
        BASE_OK);
    BASE_CHECK_EQ(workload_race_blocks_create(plant(caching), &program.allocator), BASE_OK);
    (void)workload_race_wrong_bytes();
    for (int index = 0; index < STEPS; ++index)
        step(&program);
    cca_check(caching);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    sim_race_stop();
    allocator_destroy(program.allocator);
    allocator_destroy(caching);
    return sim_race_count(SIM_RACE_RULE_COUNT);
}

static const char *const configs[] = {
    "",
    "max_split_size_mb:20",
    "expandable_segments:True",
    "expandable_segments:True,max_split_size_mb:20",
    "x_skip_stuck:True",
    "x_poll:own",
    "x_wait:enough,x_retry_search:True",
    "x_reclaim_idle:True",
    "x_bound_growth:True,expandable_segments:True,x_reclaim_idle:True,x_skip_stuck:True,"
    "x_poll:own,x_wait:enough,x_retry_search:True",
};
static const char *const schedules[] = {"eager", "lazy", "random:1", "random:2"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void right_programs_have_no_race(uint64_t seed, int programs) {
    planted = PLANT_NONE;
    for (size_t config = 0; config < COUNT(configs); ++config)
        for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule)
            for (int program = 0; program < programs; ++program) {
                const uint64_t races =
                    run(configs[config], schedules[schedule], seed + (uint64_t)program);
                if (races > 0) printf("%s", sim_race_report_at(0)->text);
                BASE_CHECK_EQ(races, 0);
                BASE_CHECK_EQ(workload_race_wrong_bytes(), 0);
            }
}

static void a_wrong_rule_is_found(enum plant rule, uint64_t seed, int programs) {
    planted = rule;
    for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule)
        for (int program = 0; program < programs; ++program)
            BASE_CHECK_GT(run("", schedules[schedule], seed + (uint64_t)program), 0);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : SEED;
    const int programs = argc > 2 ? atoi(argv[2]) : 4;
    printf("seed %llu\n", (unsigned long long)seed);
    right_programs_have_no_race(seed, programs);
    a_wrong_rule_is_found(PLANT_FORGETS_USES, seed, programs);
    a_wrong_rule_is_found(PLANT_ONE_POOL, seed, programs);
    base_check_context(NULL);
    return 0;
}
