// See race_work.h.
#include "workload/race_work.h"

#include "base/check.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#define FILLED_MAX 65536

static uint64_t wrong_bytes;

uint64_t workload_race_wrong_bytes(void) {
    const uint64_t count = wrong_bytes;
    wrong_bytes = 0;
    return count;
}

static size_t byte_behind(const struct workload_race_bytes *bytes, size_t at) {
    const size_t next = at + bytes->size / 16 + 1;
    return at + 1 < bytes->size && next >= bytes->size ? bytes->size - 1 : next;
}

static void compare(const void *argument) {
    const struct workload_race_bytes *const expected = argument;
    const unsigned char *const bytes = sim_kernel_bytes(expected->pointer, expected->size, false);
    BASE_CHECK(bytes != NULL);
    for (size_t at = 0; at < expected->size; at = byte_behind(expected, at))
        wrong_bytes += bytes[at] != expected->value;
}

static void fill(const void *argument) {
    const struct workload_race_bytes *const wanted = argument;
    unsigned char *const bytes = sim_kernel_bytes(wanted->pointer, wanted->size, true);
    BASE_CHECK(bytes != NULL);
    for (size_t at = 0; at < wanted->size; at = byte_behind(wanted, at))
        bytes[at] = wanted->value;
}

static void launch(const struct workload_race_bytes *bytes, cudaStream_t stream, const char *name,
                   void (*body)(const void *), enum sim_access_mode mode) {
    const struct sim_access access = {.mode = mode, .pointer = bytes->pointer, .size = bytes->size};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &(struct sim_kernel){.name = name,
                                                                 .body = body,
                                                                 .argument = bytes,
                                                                 .argument_size = sizeof *bytes,
                                                                 .accesses = &access,
                                                                 .access_count = 1}),
                  cudaSuccess);
}

void workload_race_read(const struct workload_race_bytes *bytes, cudaStream_t stream) {
    launch(bytes, stream, "compare", compare, SIM_ACCESS_READ);
}

void workload_race_write(struct workload_race_bytes *bytes, unsigned char value,
                         cudaStream_t stream) {
    bytes->value = value;
    if (bytes->size > FILLED_MAX)
        launch(bytes, stream, "fill", fill, SIM_ACCESS_WRITE);
    else
        BASE_CHECK_EQ(cudaMemsetAsync(bytes->pointer, value, bytes->size, stream), cudaSuccess);
}
