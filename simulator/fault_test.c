// Fault plans: what each word of a rule does, and one clear line for what is wrong.
#include "base/check.h"
#include "base/child.h"
#include "base/file.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static char path[256]; // of the plan

static void plan_write(const char *text) {
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, path), BASE_OK);
    fputs(text, file.stream);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
}

static void start(const char *schedule) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .capacity_bytes = 64 * MIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
}

static void plan(const char *text) {
    plan_write(text);
    start("eager");
    BASE_CHECK_EQ(sim_faults_load(path), BASE_OK);
}

// The answers of COUNT calls of cudaMalloc and of as many of cudaGetLastError: a digit each.
static void mallocs_answer(const char *expected) {
    for (size_t i = 0; i < strlen(expected); ++i) {
        void *pointer;
        base_check_context("cudaMalloc number %zu of \"%s\"", i + 1, expected);
        const cudaError_t error = cudaMalloc(&pointer, 1);
        BASE_CHECK_EQ(error, expected[i] - '0');
        BASE_CHECK_EQ(cudaGetLastError(), error);
        if (error == cudaSuccess)
            BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    }
    base_check_context(NULL);
}

static void a_rule_strikes_when_it_says(void) {
    plan("cudaMalloc at 3 error cudaErrorMemoryAllocation\n");
    mallocs_answer("00200000");
    plan("cudaMalloc at 3 error 2 times 2");
    mallocs_answer("00220000");
    plan("# comment\n\n  cudaMalloc\tat 3 error 2 always # and so on\n");
    mallocs_answer("00222222");
    plan("cudaMalloc every 3 error 2\r\n");
    mallocs_answer("002002002");
    plan("cudaMalloc every 3 error 2 once");
    mallocs_answer("002000000");
    plan("cudaMalloc every 2 error 2 times 2");
    mallocs_answer("02020000");
    plan("cudaMalloc chance 0 error 2\ncudaMalloc chance 1 seed 5 error 3 times 1");
    mallocs_answer("30000");
    plan("any at 4 error 3\n"); // malloc, free, malloc, free
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInitializationError);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess); // it did nothing
}

static void the_first_error_counts_and_all_rules_go_on(void) {
    plan("cudaMalloc at 2 error 2\n"
         "cudaMalloc at 2 error 3 times 2\n"
         "cudaFree at 1 error 1\n");
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    mallocs_answer("230");
}

static void memory_in_use_makes_a_rule_strike(void) {
    plan("cudaMalloc above 8MiB error 2");
    void *pointer, *more;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 8 * MIB), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&more, 1), cudaSuccess); // 8 MiB are not above
    BASE_CHECK_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess); // another device's memory
    BASE_CHECK_EQ(cudaMalloc(&more, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&more, 1), cudaSuccess);
}

static void chances_come_from_their_seed(void) {
    char answers[2][201] = {"", ""}, other[201] = "";
    for (int run = 0; run < 3; ++run) {
        char *to = run < 2 ? answers[run] : other;
        int failed = 0;
        plan(run < 2 ? "cudaMalloc chance 0.25 error 2" : "cudaMalloc chance 0.25 seed 9 error 2");
        for (int i = 0; i < 200; ++i) {
            void *pointer;
            const cudaError_t error = cudaMalloc(&pointer, 1);
            to[i] = (char)('0' + error);
            failed += error != cudaSuccess;
            if (error == cudaSuccess)
                BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
        }
        BASE_CHECK(failed > 25 && failed < 75);
    }
    BASE_CHECK(strcmp(answers[0], answers[1]) == 0);
    BASE_CHECK(strcmp(answers[0], other) != 0);
}

static void nothing(const void *argument) { (void)argument; }

static void after_a_sticky_error_the_device_is_dead(void) {
    plan("cudaLaunchKernel at 2 sticky cudaErrorIllegalAddress");
    cudaStream_t stream;
    void *pointer;
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    static const struct sim_kernel kernel = {.name = "nothing", .body = nothing};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &kernel), cudaSuccess);
    BASE_CHECK_EQ(sim_launch_kernel(stream, &kernel), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    sim_reset();
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
}

static void delays_move_the_virtual_clock(void) {
    plan("cudaStreamSynchronize every 2 delay 3ms\ncudaMemset at 1 stall 5ms");
    start("timed"); // the plan begins anew
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    uint64_t before = sim_time_ns();
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_LT(sim_time_ns() - before, 100000);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_GE(sim_time_ns() - before, 3000000);

    void *memory;
    BASE_CHECK_EQ(cudaMalloc(&memory, 1), cudaSuccess);
    for (int i = 0; i < 2; ++i) {
        before = sim_time_ns();
        BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, 1, stream), cudaSuccess);
        BASE_CHECK_LT(sim_time_ns() - before, 100000);
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        if (i == 0)
            BASE_CHECK_GE(sim_time_ns() - before, 5000000);
        else
            BASE_CHECK_LT(sim_time_ns() - before, 1000000);
    }
}

static void without_a_plan_nothing_fails(void) {
    plan("cudaMalloc every 1 error 2");
    mallocs_answer("222");
    BASE_CHECK_EQ(sim_faults_load(NULL), BASE_OK);
    mallocs_answer("000");
}

// --- Mistakes ---

static const struct {
    const char *text, *message; // the message behind "FILE:"
} mistakes[] = {
    {"\ncudaMaloc at 1 error 2", "2: call \"cudaMaloc\": want any, cudaMalloc, cudaFree"},
    {"cudaMalloc", "1: the line ends: want at N, every N, chance P or above SIZE"},
    {"cudaMalloc on 1 error 2", "1: condition \"on\": want at N"},
    {"cudaMalloc at 0 error 2", "1: number of calls \"0\": want a number from 1"},
    {"cudaMalloc at -1 error 2", "1: number of calls \"-1\""},
    {"cudaMalloc at 1x error 2", "1: number of calls \"1x\""},
    {"cudaMalloc every", "1: the line ends: want a number from 1"},
    {"cudaMalloc chance 1.5 error 2", "1: probability \"1.5\": want a number from 0 to 1"},
    {"cudaMalloc chance nan error 2", "1: probability \"nan\""},
    {"cudaMalloc chance 0.5 seed x error 2", "1: seed \"x\": want a number"},
    {"cudaMalloc above 5XB error 2", "1: size \"5XB\": want a size such as 60GiB"},
    {"cudaMalloc at 1", "1: the line ends: want error E"},
    {"cudaMalloc at 1 fail 2", "1: effect \"fail\": want error E, sticky E, delay T or stall T"},
    {"cudaMalloc at 1 error 0", "1: error \"0\": want a CUDA error"},
    {"cudaMalloc at 1 error 99999", "1: error \"99999\""},
    {"cudaMalloc at 1 error cudaErrorNone", "1: error \"cudaErrorNone\""},
    {"cudaMalloc at 1 delay 5", "1: time \"5\": want a time such as 50us (ns, us, ms, s)"},
    {"cudaMalloc at 1 stall -5us", "1: time \"-5us\""},
    {"cudaMalloc at 1 error 2 twice", "1: word \"twice\": want once, times K, always"},
    {"cudaMalloc at 1 error 2 times 0", "1: number of times \"0\""},
    {"cudaMalloc at 1 error 2 once more", "1: word \"more\": want the end of the line"},
    {"cudaFree at 1 error 1\na b c d e f g h i j k l", "2: word \"k\": want the end of the line"},
};

static void a_mistake_says_where_and_what_would_be_right(void) {
    plan("cudaMalloc every 2 error 2");
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; ++i) {
        char expected[512];
        snprintf(expected, sizeof expected, "%s:%s", path, mistakes[i].message);
        plan_write(mistakes[i].text);
        BASE_CHECK_EQ(sim_faults_load(path), BASE_FORMAT);
        base_check_context("\"%s\", expected \"%s\"", base_status_message(), expected);
        BASE_CHECK(strncmp(base_status_message(), expected, strlen(expected)) == 0);
        base_check_context(NULL);
    }
    BASE_CHECK_EQ(sim_faults_load("/nowhere/plan"), BASE_IO);
    mallocs_answer("0202"); // the former plan is in force
}

static void first_malloc(void *unused) {
    (void)unused;
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
}

static void the_environment_can_name_a_plan(void) {
    setenv("TIDEMARK_SIM_FAULTS", path, 1);
    plan_write("cudaMalloc at 1 error 2");
    struct base_child child = base_child_run(first_malloc, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
    plan_write("cudaMalloc at one error 2");
    child = base_child_run(first_malloc, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    BASE_CHECK(strstr(child.error_text, "TIDEMARK_SIM_FAULTS: ") != NULL);
    BASE_CHECK(strstr(child.error_text, ":1: number of calls \"one\"") != NULL);
    base_child_deinit(&child);
    unsetenv("TIDEMARK_SIM_FAULTS");
}

int main(void) {
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/plan-%d", folder != NULL ? folder : "/tmp", (int)getpid());
    the_environment_can_name_a_plan(); // children of a process that made no CUDA call yet
    a_rule_strikes_when_it_says();
    the_first_error_counts_and_all_rules_go_on();
    memory_in_use_makes_a_rule_strike();
    chances_come_from_their_seed();
    after_a_sticky_error_the_device_is_dead();
    delays_move_the_virtual_clock();
    without_a_plan_nothing_fails();
    a_mistake_says_where_and_what_would_be_right();
    unlink(path);
    return 0;
}
