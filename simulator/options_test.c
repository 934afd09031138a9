// Options from the environment and from the program: what they mean, and one clear line for what
// they cannot. Each case is a child process, as the environment is read by the first CUDA call.
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
    int exit_status;
    char errors[512];
};

// Runs BODY in a child with VARIABLE=VALUE (unset if NULL).
static struct outcome in_child(const char *variable, const char *value, void (*body)(void)) {
    int ends[2];
    BASE_CHECK_EQ(pipe(ends), 0);
    const pid_t child = fork();
    BASE_CHECK_GE(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (variable != NULL)
            setenv(variable, value, 1);
        body();
        _exit(0);
    }
    close(ends[1]);
    struct outcome outcome = {0};
    size_t length = 0;
    ssize_t got;
    while (length < sizeof outcome.errors - 1 &&
           (got = read(ends[0], outcome.errors + length, sizeof outcome.errors - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    int status;
    BASE_CHECK_EQ(waitpid(child, &status, 0), child);
    outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

static void first_call(void) {
    int count;
    BASE_CHECK_EQ(cudaGetDeviceCount(&count), cudaSuccess);
}

static void a_bad_variable_ends_the_program(const char *variable, const char *value) {
    const struct outcome outcome = in_child(variable, value, first_call);
    base_check_context("%s=%s: exit %d, \"%s\"", variable, value, outcome.exit_status,
                       outcome.errors);
    BASE_CHECK_EQ(outcome.exit_status, 2);
    const char *line_end = strchr(outcome.errors, '\n');
    BASE_CHECK(line_end != NULL && line_end[1] == '\0');
    base_check_context(NULL);
}

static void total_is_12_gib(void) {
    size_t free_bytes, total_bytes;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(total_bytes, 12 * BASE_GIB);
    BASE_CHECK_EQ(free_bytes, 12 * BASE_GIB);
}

static void total_is_80_gib(void) {
    size_t free_bytes, total_bytes;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(total_bytes, 80 * BASE_GIB);
}

static void second_device_is_current_at_once(void) {
    int device;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 1);
    BASE_CHECK_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

static void memory_has_no_bytes(void) {
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK(sim_device_bytes(pointer) == NULL);
}

static void addresses_come_again(void) {
    void *first, *second;
    BASE_CHECK_EQ(cudaMalloc(&first, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(first), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&second, 1), cudaSuccess);
    BASE_CHECK(first == second);
}

static void addresses_run_out(void) {
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 12 * BASE_MIB), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 10 * BASE_MIB), cudaSuccess);
}

static void the_context_is_not_free(void) {
    size_t free_bytes, total_bytes;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, total_bytes - 300 * BASE_MIB);
}

static void memory_is_elsewhere(void) {
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK(sim_device_bytes(pointer) != NULL && sim_device_bytes(pointer) != pointer);
}

static void faults_planned_before_the_first_call_hold(void) {
    void *pointer;
    sim_fault_next(SIM_CALL_MALLOC, 1, cudaErrorUnknown);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorUnknown);
}

static void the_program_has_the_last_word(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 12 * BASE_GIB,
                                                      .numerics = SIM_NUMERICS_ON}),
                  BASE_OK);
    total_is_12_gib();
    second_device_is_current_at_once(); // the count was left to the environment
}

static void configure_refuses(struct sim_options options, const char *word) {
    BASE_CHECK_EQ(sim_configure(&options), BASE_INVALID_VALUE);
    base_check_context("message \"%s\"", base_status_message());
    BASE_CHECK(strstr(base_status_message(), word) != NULL);
    base_check_context(NULL);
}

static void succeeds(const char *variable, const char *value, void (*body)(void)) {
    const struct outcome outcome = in_child(variable, value, body);
    fputs(outcome.errors, stderr);
    BASE_CHECK_EQ(outcome.exit_status, 0);
}

int main(void) {
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CAPACITY", "lots");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CAPACITY", "1MiB");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CAPACITY", "100000TiB");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CAPACITY", "");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_DEVICES", "0");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_DEVICES", "17");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_DEVICES", "2x");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_NUMERICS", "maybe");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_ADDRESSES", "descending");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_ADDRESS_SPACE", "1MiB");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_ADDRESS_SPACE", "129TiB");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CONTEXT", "much");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CONTEXT", "81GiB");
    a_bad_variable_ends_the_program("TIDEMARK_SIM_CHECKED", "yes");
    succeeds("TIDEMARK_SIM_ADDRESS_SPACE", "10MiB", addresses_run_out);
    succeeds("TIDEMARK_SIM_CONTEXT", "300MiB", the_context_is_not_free);
    succeeds("TIDEMARK_SIM_CHECKED", "1", memory_is_elsewhere);
    succeeds(NULL, NULL, total_is_80_gib);
    succeeds("TIDEMARK_SIM_CAPACITY", "12GiB", total_is_12_gib);
    succeeds("TIDEMARK_SIM_DEVICES", "2", second_device_is_current_at_once);
    succeeds("TIDEMARK_SIM_NUMERICS", "off", memory_has_no_bytes);
    succeeds("TIDEMARK_SIM_ADDRESSES", "reused", addresses_come_again);
    succeeds(NULL, NULL, faults_planned_before_the_first_call_hold);
    succeeds("TIDEMARK_SIM_DEVICES", "2", the_program_has_the_last_word);
    configure_refuses((struct sim_options){.device_count = 17}, "17 simulated devices");
    configure_refuses((struct sim_options){.device_count = -1}, "-1 simulated devices");
    configure_refuses((struct sim_options){.capacity_bytes = 1}, "capacity 1 B");
    configure_refuses((struct sim_options){.capacity_bytes = BASE_GIB * BASE_GIB}, "numerics off");
    configure_refuses((struct sim_options){.address_bytes = 1}, "address space 1 B");
    configure_refuses(
        (struct sim_options){.capacity_bytes = BASE_GIB, .context_bytes = 1024 * BASE_GIB},
        "context of 1 TiB");
    configure_refuses((struct sim_options){.numerics = (enum sim_numerics)9}, "numerics 9");
    configure_refuses((struct sim_options){.addresses = (enum sim_addresses)9}, "addresses 9");
    return 0;
}
