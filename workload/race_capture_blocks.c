// Blocks of the random programs that capture, and the work that no graph captures. The program
// knows of each block the stream that touched it last; who touches it next comes behind that.
#include "workload/race_capture_program.h"

static _Thread_local bool is_taking;

bool workload__race_is_taking(void) { return is_taking; }

void workload__race_behind(struct workload__race_actor *actor, int stream, int other) {
    if (stream == other) return;
    const cudaStream_t *const streams = actor->program->streams;
    CHECK_CUDA(cudaEventRecord(actor->event, streams[other]));
    CHECK_CUDA(cudaStreamWaitEvent(streams[stream], actor->event, 0));
}

static void write_block(struct workload__race_actor *actor, struct workload__race_block *block,
                        int stream) {
    workload_race_write(&block->bytes, (unsigned char)workload__race_below(actor, 256),
                        actor->program->streams[stream]);
}

static bool is_of_capture(const struct workload__race_program *program, int stream) {
    return program->is_capturing && (stream < CAPTURE_STREAMS || stream >= EAGER_STREAMS);
}

bool workload__race_take_sized(struct workload__race_actor *actor,
                               struct workload__race_block *block, int owner, size_t size) {
    struct workload__race_program *const program = actor->program;
    void *pointer = NULL;
    is_taking = is_of_capture(program, owner);
    const enum base_status status =
        allocator_malloc(program->allocator, 0, size, program->streams[owner], &pointer);
    is_taking = false;
    if (status == BASE_OUT_OF_MEMORY) return false;
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    *block =
        (struct workload__race_block){.bytes = {pointer, size, 0}, .owner = owner, .last = owner};
    write_block(actor, block, owner);
    return true;
}

void workload__race_take(struct workload__race_actor *actor, struct workload__race_block *block,
                         int owner) {
    (void)workload__race_take_sized(actor, block, owner,
                                    base_random_log_between(&actor->random, 1, 24 * BASE_MIB));
}

void workload__race_give(struct workload__race_actor *actor, struct workload__race_block *block) {
    struct workload__race_program *const program = actor->program;
    if (program->is_capturing && block->is_shared && block->owner < CAPTURE_STREAMS)
        program->deferred[block->owner]++;
    BASE_CHECK_EQ(allocator_free(program->allocator, block->bytes.pointer), BASE_OK);
    block->bytes.pointer = NULL;
}

void workload__race_record(struct workload__race_actor *actor, struct workload__race_block *block,
                           int stream) {
    const struct workload__race_program *const program = actor->program;
    const enum workload_race_plant plant = program->options->plant;
    if (stream == block->owner) return;
    block->is_shared = true;
    if (plant == WORKLOAD_RACE_FORGETS_USES ||
        (plant == WORKLOAD_RACE_MISSES_STREAM && stream == MISSED_STREAM))
        return;
    BASE_CHECK_EQ(
        allocator_record_stream(program->allocator, block->bytes.pointer, program->streams[stream]),
        BASE_OK);
}

void workload__race_touch(struct workload__race_actor *actor, struct workload__race_block *block,
                          int stream) {
    if (workload__race_chance(actor, 0.5))
        workload_race_read(&block->bytes, actor->program->streams[stream]);
    else
        write_block(actor, block, stream);
    workload__race_record(actor, block, stream);
}

void workload__race_use(struct workload__race_actor *actor, struct workload__race_block *block,
                        int stream) {
    workload__race_behind(actor, stream, block->last);
    block->last = stream;
    workload__race_touch(actor, block, stream);
}

//--------------------------------------------------------------------------------------------------
// Work that no graph captures.

int workload__race_eager_stream(struct workload__race_actor *actor) {
    return actor->program->is_capturing
               ? CAPTURE_STREAMS + workload__race_below(actor, EAGER_STREAMS - CAPTURE_STREAMS)
               : workload__race_below(actor, EAGER_STREAMS);
}

// When no other threads are about, their blocks are everybody's.
static struct workload__race_block *any_block(struct workload__race_actor *actor) {
    struct workload__race_program *const program = actor->program;
    struct workload__race_actor *const whose =
        program->is_capturing
            ? actor
            : &program->actors[workload__race_below(actor, 1 + program->options->threads)];
    return &whose->eager[workload__race_below(actor, BLOCKS)];
}

// While streams capture, what they touched before can be freed and nothing else.
void workload__race_eager_step(struct workload__race_actor *actor) {
    const struct workload__race_program *const program = actor->program;
    struct workload__race_block *const block = any_block(actor);
    if (program->options->nests && workload__race_chance(actor, 0.1)) {
        workload__race_scope_flip(actor, &actor->user);
    } else if (block->bytes.pointer == NULL) {
        workload__race_take(actor, block, workload__race_eager_stream(actor));
        actor->beside += program->shared && block->bytes.pointer != NULL;
    } else if (workload__race_chance(actor, 0.4)) {
        workload__race_give(actor, block);
    } else if (!program->is_capturing || block->last >= CAPTURE_STREAMS) {
        workload__race_use(actor, block, workload__race_eager_stream(actor));
    }
    if (!program->is_capturing && workload__race_chance(actor, 0.03))
        BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
}
