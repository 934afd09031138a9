// Programs that use memory as models do, each behind one name: seeded, over tensor/tensor.h, on any
// allocator, with values that are really computed.
//
//     const struct workload_program *program;
//     struct workload_result result;
//     status = workload_program_find("patterns", &program);
//     status = workload_program_run(program, &(struct workload_options){.allocator = allocator,
//                                                                       .seed = 7}, &result);
//
// The checksum is a matter of program, variant, size, seed, steps and number of devices, and of
// nothing else: every allocator, schedule and interleaving of streams and threads gives the same,
// or the program or the allocator is wrong. Nothing is live afterwards.
//
// To add one: a file that defines a struct workload_program over workload/run.h, a line in
// program.c and in the BUILD file. Tests and benchmarks then find it here.
#ifndef TIDEMARK_WORKLOAD_PROGRAM_H
#define TIDEMARK_WORKLOAD_PROGRAM_H

#include "allocator/allocator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_DEVICES_MAX 16

// SMALL: milliseconds, for tests. MEDIUM: seconds, numbers still computed. TRUE: the sizes of real
// models, for a GPU or a simulated device with numerics off.
enum workload_size { WORKLOAD_SMALL, WORKLOAD_MEDIUM, WORKLOAD_TRUE, WORKLOAD_SIZE_COUNT };
const char *workload_size_name(enum workload_size size); // "small", "medium", "true"
// BASE_INVALID_VALUE names those there are.
enum base_status workload_size_parse(const char *text, enum workload_size *size) BASE_MUST_USE;

// What is zero or NULL here is the program's own choice.
struct workload_options {
    struct allocator *allocator; // of the devices; must be given
    const char *variant;         // one of the program's; NULL: the first
    enum workload_size size;
    uint64_t seed;
    uint64_t steps;      // 0: as many as the size has
    int device_count;    // 0: as few as the program needs
    bool without_values; // of a device with numerics off nothing can be read: checksum 0
    // After each step, on the thread that runs the program: for clocks and statistics.
    void (*on_step)(void *context, uint64_t step);
    void *context;
};

struct workload_result {
    uint64_t checksum;
    uint64_t steps; // done
};

struct workload_run;

struct workload_program {
    const char *name, *summary;
    const char *const *variants;         // ends with NULL; NULL: it has none
    uint64_t steps[WORKLOAD_SIZE_COUNT]; // of each size
    int device_count_min, device_count_max;
    enum base_status (*run)(struct workload_run *run);
};

// All of them by index, NULL beyond the last.
const struct workload_program *workload_program_at(size_t index);
// BASE_INVALID_VALUE names those there are.
enum base_status workload_program_find(const char *name,
                                       const struct workload_program **program) BASE_MUST_USE;

// Runs it to its end and waits for the devices. BASE_CHECK_FAILED: a value was not what it ought to
// be, or memory of ALLOCATOR is still allocated at the end that was not before. BASE_INVALID_VALUE:
// an option that the program does not have. BASE_INTERRUPTED. And what allocator and tensors say,
// BASE_OUT_OF_MEMORY first: all that the program held is free again then.
//
// One program at a time on an allocator. Threads: it may start some and joins them.
enum base_status workload_program_run(const struct workload_program *program,
                                      const struct workload_options *options,
                                      struct workload_result *result) BASE_MUST_USE;

#endif
