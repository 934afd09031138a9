#include "bench/race_load.h"

#include "base/check.h"
#include "simulator/sim_race.h"

#define BLOCK_BYTES 4096
#define BLOCK_COUNT 64 // in each stream's piece
#define PIECE_BYTES ((size_t)BLOCK_BYTES * BLOCK_COUNT)
#define ROWS 16
#define PITCH (BLOCK_BYTES / ROWS)

static void no_kernel(const void *argument) { (void)argument; }

static void must(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }

void race_load_begin(struct race_load *load) {
    void *arena;
    *load = (struct race_load){0};
    must(cudaMalloc(&arena, PIECE_BYTES * (RACE_LOAD_STREAMS + 1)));
    load->arena = arena;
    must(cudaMemset(arena, 0, PIECE_BYTES * (RACE_LOAD_STREAMS + 1)));
    must(cudaDeviceSynchronize());
    for (int i = 0; i < RACE_LOAD_STREAMS; i++) {
        must(cudaStreamCreateWithFlags(&load->streams[i], cudaStreamNonBlocking));
        must(cudaEventCreateWithFlags(&load->written[i], cudaEventDisableTiming));
        must(cudaEventCreateWithFlags(&load->read[i], cudaEventDisableTiming));
    }
}

static char *block(const struct race_load *load, int piece, uint64_t index) {
    return load->arena + (size_t)piece * PIECE_BYTES + index % BLOCK_COUNT * BLOCK_BYTES;
}

static void launch(const struct race_load *load, int stream, const struct sim_access *accesses,
                   size_t count) {
    must(sim_launch_kernel(load->streams[stream], &(struct sim_kernel){.name = "load",
                                                                       .body = no_kernel,
                                                                       .accesses = accesses,
                                                                       .access_count = count}));
}

// The allocator's part: the block in the middle changes hands, for the same stream.
static void reuse(struct race_load *load, int stream) {
    char *middle = block(load, stream, BLOCK_COUNT / 2);
    sim_block_give(load->owned[stream]);
    load->owned[stream] =
        sim_block_take(middle, BLOCK_BYTES, load->streams[stream], "middle");
    launch(load, stream, &(struct sim_access){SIM_ACCESS_WRITE, middle, .size = BLOCK_BYTES}, 1);
}

// A round is one step of each stream after the other; what crosses streams is two rounds apart.
static void step(struct race_load *load, int stream, uint64_t round) {
    const int next = (stream + 1) % RACE_LOAD_STREAMS;
    const int former = (stream + RACE_LOAD_STREAMS - 1) % RACE_LOAD_STREAMS;
    const uint64_t turn = round / 9;
    switch (round % 9) {
    case 0: {
        const struct sim_access accesses[] = {
            {SIM_ACCESS_READ, block(load, stream, turn + 1), .size = BLOCK_BYTES},
            {SIM_ACCESS_WRITE, block(load, stream, turn), .size = BLOCK_BYTES}};
        launch(load, stream, accesses, 2);
        break;
    }
    case 1: must(cudaEventRecord(load->written[stream], load->streams[stream])); break;
    case 2: must(cudaStreamWaitEvent(load->streams[stream], load->written[next], 0)); break;
    case 3: {
        const struct sim_access accesses[] = {
            {SIM_ACCESS_READ, block(load, next, turn), .size = BLOCK_BYTES},
            {SIM_ACCESS_WRITE, block(load, stream, turn + 2), .size = BLOCK_BYTES}};
        launch(load, stream, accesses, 2);
        break;
    }
    case 4: must(cudaEventRecord(load->read[stream], load->streams[stream])); break;
    case 5: must(cudaStreamWaitEvent(load->streams[stream], load->read[former], 0)); break;
    case 6: // a column that is this stream's
        must(cudaMemset2DAsync(block(load, RACE_LOAD_STREAMS, 0) +
                                   (size_t)stream * (PITCH / RACE_LOAD_STREAMS),
                               PITCH, 1, PITCH / RACE_LOAD_STREAMS, ROWS, load->streams[stream]));
        break;
    case 7:
        launch(load, stream,
               &(struct sim_access){
                   SIM_ACCESS_ATOMIC, block(load, RACE_LOAD_STREAMS, 1), .size = 8},
               1);
        break;
    default: reuse(load, stream);
    }
}

void race_load_run(struct race_load *load, uint64_t count) {
    for (uint64_t i = 0; i < count; i++, load->at++)
        step(load, (int)(load->at % RACE_LOAD_STREAMS), load->at / RACE_LOAD_STREAMS);
}

void race_load_end(struct race_load *load) {
    must(cudaDeviceSynchronize());
    for (int i = 0; i < RACE_LOAD_STREAMS; i++) {
        sim_block_give(load->owned[i]);
        must(cudaEventDestroy(load->written[i]));
        must(cudaEventDestroy(load->read[i]));
        must(cudaStreamDestroy(load->streams[i]));
    }
    must(cudaFree(load->arena));
}
