// See program.h: the list of programs, and what is around a run.
#include "workload/run.h"

#include "tensor/host_allocator.h"
#include "tensor/pinned_allocator.h"
#include "workload/programs.h"

#include <stdio.h>
#include <string.h>

static const struct workload_program *const programs[] = {
    &workload_graphs,
    &workload_moe,
    &workload_offload,
    &workload_patterns,
    &workload_serving,
    &workload_sharded,
    &workload_transformer,
};
#define PROGRAM_COUNT (sizeof programs / sizeof *programs)

static const char *const size_names[] = {"small", "medium", "true"};

const char *workload_size_name(enum workload_size size) { return size_names[size]; }

enum base_status workload_size_parse(const char *text, enum workload_size *size) {
    for (int index = 0; index < WORKLOAD_SIZE_COUNT; ++index)
        if (strcmp(text, size_names[index]) == 0) {
            *size = (enum workload_size)index;
            return BASE_OK;
        }
    return base_status_set(BASE_INVALID_VALUE, "'%s' is no size: small, medium or true", text);
}

const struct workload_program *workload_program_at(size_t index) {
    return index < PROGRAM_COUNT ? programs[index] : NULL;
}

enum base_status workload_program_find(const char *name, const struct workload_program **program) {
    char known[256] = "";
    for (size_t index = 0; index < PROGRAM_COUNT; ++index) {
        if (strcmp(programs[index]->name, name) == 0) {
            *program = programs[index];
            return BASE_OK;
        }
        const size_t length = strlen(known);
        (void)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                       programs[index]->name);
    }
    return base_status_set(BASE_INVALID_VALUE, "'%s' is no program; there are: %s", name, known);
}

//------------------------------------------------------------------------------------------------
// Options

static enum base_status variant_choose(const struct workload_program *program,
                                       const char **variant) {
    if (program->variants == NULL) {
        if (*variant == NULL) return BASE_OK;
        return base_status_set(BASE_INVALID_VALUE, "%s has no variants, so no '%s'", program->name,
                               *variant);
    }
    if (*variant == NULL) {
        *variant = program->variants[0];
        return BASE_OK;
    }
    char known[256] = "";
    for (int index = 0; program->variants[index] != NULL; ++index) {
        if (strcmp(program->variants[index], *variant) == 0) return BASE_OK;
        const size_t length = strlen(known);
        (void)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                       program->variants[index]);
    }
    return base_status_set(BASE_INVALID_VALUE, "'%s' is no variant of %s; there are: %s", *variant,
                           program->name, known);
}

static enum base_status devices_choose(const struct workload_program *program, int *count) {
    int present = 0;
    if (*count == 0) *count = program->device_count_min;
    if (*count < program->device_count_min || *count > program->device_count_max)
        return base_status_set(BASE_INVALID_VALUE, "%s runs on %d to %d devices, not on %d",
                               program->name, program->device_count_min, program->device_count_max,
                               *count);
    const enum base_status status =
        workload_cuda("cudaGetDeviceCount", cudaGetDeviceCount(&present));
    if (status != BASE_OK) return status;
    if (*count > present)
        return base_status_set(BASE_INVALID_VALUE, "%s is to run on %d devices, and there are %d",
                               program->name, *count, present);
    return BASE_OK;
}

static enum base_status options_choose(const struct workload_program *program,
                                       struct workload_options *options) {
    if (options->steps == 0) options->steps = program->steps[options->size];
    enum base_status status = variant_choose(program, &options->variant);
    if (status == BASE_OK) status = devices_choose(program, &options->device_count);
    if (status != BASE_OK || options->allocator != NULL) return status;
    return base_status_set(BASE_INVALID_VALUE, "%s needs an allocator", program->name);
}

//------------------------------------------------------------------------------------------------
// What is around a run

static enum base_status live_bytes(const struct workload_run *run, int64_t *bytes) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < run->options.device_count && status == BASE_OK; ++device) {
        struct allocator_stats stats;
        status = allocator_stats(run->options.allocator, device, &stats);
        if (status == BASE_OK) bytes[device] = stats.allocated_bytes[ALLOCATOR_STAT_ALL].current;
    }
    return status;
}

static enum base_status host_left_check(const struct workload_program *program, const char *kind,
                                        struct allocator *allocator) {
    struct allocator_stats stats;
    const enum base_status status = allocator_stats(allocator, 0, &stats);
    const int64_t count = stats.allocation[ALLOCATOR_STAT_ALL].current;
    if (status != BASE_OK || count == 0) return status;
    return base_status_set(BASE_CHECK_FAILED, "%s: %lld blocks of %s memory are left at the end",
                           program->name, (long long)count, kind);
}

static enum base_status nothing_left_check(const struct workload_run *run,
                                           const struct workload_program *program,
                                           const int64_t *before) {
    int64_t after[WORKLOAD_DEVICES_MAX];
    enum base_status status = live_bytes(run, after);
    for (int device = 0; device < run->options.device_count && status == BASE_OK; ++device)
        if (after[device] != before[device])
            status = base_status_set(BASE_CHECK_FAILED,
                                     "%s: device %d has %lld bytes allocated at the end, and %lld "
                                     "at the beginning",
                                     program->name, device, (long long)after[device],
                                     (long long)before[device]);
    if (status == BASE_OK) status = host_left_check(program, "host", run->host.allocator);
    return status == BASE_OK ? host_left_check(program, "page-locked", run->pinned.allocator)
                             : status;
}

// All devices, so that nothing runs any more when memory and streams go.
static enum base_status devices_wait(const struct workload_run *run) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < run->options.device_count && status == BASE_OK; ++device) {
        status = workload_cuda("cudaSetDevice", cudaSetDevice(device));
        if (status == BASE_OK)
            status = workload_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
    }
    return status;
}

static enum base_status run_init(struct workload_run *run, const struct workload_options *options) {
    *run = (struct workload_run){
        .options = *options, .host = {.kind = TENSOR_CPU}, .pinned = {.kind = TENSOR_CPU}};
    for (int device = 0; device < options->device_count; ++device)
        run->devices[device] = (struct tensor_place){options->allocator, TENSOR_CUDA, device};
    base_mutex_init(&run->mutex);
    const enum base_status status = tensor_host_allocator_create(false, &run->host.allocator);
    return status == BASE_OK ? tensor_pinned_allocator_create(&run->pinned.allocator) : status;
}

static void run_deinit(struct workload_run *run) {
    workload__run_streams_destroy(run);
    allocator_destroy(run->host.allocator);
    allocator_destroy(run->pinned.allocator);
    base_mutex_deinit(&run->mutex);
}

// What the program itself says counts before what comes of waiting for what it left.
static enum base_status run_and_wait(struct workload_run *run,
                                     const struct workload_program *program) {
    char message[BASE_STATUS_MESSAGE_SIZE];
    const enum base_status status = program->run(run);
    (void)snprintf(message, sizeof message, "%s", base_status_message());
    const enum base_status waited = devices_wait(run);
    return status == BASE_OK ? waited : base_status_set(status, "%s", message);
}

enum base_status workload_program_run(const struct workload_program *program,
                                      const struct workload_options *options,
                                      struct workload_result *result) {
    struct workload_options chosen = *options;
    struct workload_run run;
    cudaStream_t streams[WORKLOAD_DEVICES_MAX];
    int64_t before[WORKLOAD_DEVICES_MAX];
    int current = 0;
    enum base_status status = options_choose(program, &chosen);
    if (status == BASE_OK) status = workload_cuda("cudaGetDevice", cudaGetDevice(&current));
    if (status != BASE_OK) return status;
    for (int device = 0; device < chosen.device_count; ++device)
        streams[device] = tensor_stream(device);
    status = run_init(&run, &chosen);
    if (status == BASE_OK) status = live_bytes(&run, before);
    if (status == BASE_OK) status = run_and_wait(&run, program);
    if (status == BASE_OK) status = nothing_left_check(&run, program, before);
    for (int device = 0; device < chosen.device_count; ++device)
        tensor_set_stream(device, streams[device]);
    run_deinit(&run);
    const cudaError_t error = cudaSetDevice(current);
    if (status == BASE_OK) status = workload_cuda("cudaSetDevice", error);
    if (status == BASE_OK)
        *result = (struct workload_result){.checksum = chosen.without_values ? 0 : run.checksum,
                                           .steps = run.steps};
    return status;
}
