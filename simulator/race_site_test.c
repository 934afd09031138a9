// Where reports say that calls come from: by the macros of SIM_CALL_SITES, by return addresses, by
// what a wrapper says; labels and threads.
#define SIM_CALL_SITES
#include "simulator/sim.h"

#include "base/check.h"
#include "base/size.h"
#include "base/thread.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 64

static cudaStream_t a, b;
static char *memory;

static void body(const void *argument) { (void)argument; }

static struct sim_access access_of_all(void) {
    return (struct sim_access){.mode = SIM_ACCESS_WRITE, .pointer = memory, .size = SIZE};
}

static void begin(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * BASE_MIB}), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc((void **)&memory, SIZE), cudaSuccess);
}

// The only report.
static const struct sim_race_report *end(void) {
    sim_race_stop();
    base_check_context("%s", sim_race_report_at(0) == NULL ? "" : sim_race_report_at(0)->text);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    return sim_race_report_at(0);
}

static void site_is(const char *site, int line) {
    char expected[256];
    snprintf(expected, sizeof expected, "%s:%d", __FILE__, line);
    base_check_context("\"%s\", not \"%s\"", site, expected);
    BASE_CHECK(strcmp(site, expected) == 0);
    base_check_context(NULL);
}

// --- Macros ---

static void a_call_has_its_line(void) {
    begin();
    const struct sim_access access = access_of_all();
    const struct sim_kernel kernel = {
        .name = "k", .body = body, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(a, &kernel), cudaSuccess);
    const int first = __LINE__ - 1;
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, b), cudaSuccess);
    const int second = __LINE__ - 1;
    const struct sim_race_report *report = end();
    site_is(report->first.site, first);
    site_is(report->second.site, second);
}

static cudaStream_t stream_if(cudaError_t error, cudaStream_t stream) {
    return error == cudaSuccess ? stream : NULL;
}

// The inner call is over when the outer one begins, which must still know its own line.
static void a_call_within_the_arguments_of_another_takes_nothing_away(void) {
    begin();
    const int first = __LINE__ + 1;
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, stream_if(cudaStreamQuery(a), a)), cudaSuccess);
    const int second = __LINE__ + 1;
    const cudaError_t error =
        cudaMemsetAsync(memory, 1, SIZE, stream_if(cudaMemsetAsync(memory + SIZE / 2, 2, 0, b), b));
    BASE_CHECK_EQ(error, cudaSuccess);
    const struct sim_race_report *report = end();
    site_is(report->first.site, first);
    // Compilers take the line of the name or that of the end.
    const bool is_name = atoi(strrchr(report->second.site, ':') + 1) == second;
    site_is(report->second.site, is_name ? second : second + 1);
}

static void a_call_stays_an_expression_and_a_function(void) {
    cudaError_t (*const by_pointer)(void **, size_t) = cudaMalloc;
    void *pointer = NULL;
    begin();
    BASE_CHECK_EQ(by_pointer(&pointer, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ((cudaFree)(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize() == cudaSuccess ? 7 : 8, 7);
    cudaFree(cudaMalloc(&pointer, 100) == cudaSuccess ? pointer : NULL);
    BASE_CHECK_EQ(sim_used_bytes(0), SIM_PAGE_BYTES);
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
}

static void blocks_and_accesses_of_the_host_have_their_lines(void) {
    begin();
    const uint64_t block = sim_block_take(memory, SIZE, a, NULL);
    const int taken = __LINE__ - 1;
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, b), cudaSuccess);
    sim_block_give(block);
    const int given = __LINE__ - 1;
    (void)sim_block_take(memory, SIZE, a, NULL);
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, a), cudaSuccess);
    const struct sim_race_report *report = end();
    char expected[256];
    snprintf(expected, sizeof expected, "taken for stream 2 at %s:%d, given back at %s:%d\n",
             __FILE__, taken, __FILE__, given);
    BASE_CHECK(strstr(report->text, expected) != NULL);
}

// --- Addresses ---

static int helper_line;

static __attribute__((noinline)) void helper(cudaStream_t stream) {
    helper_line = __LINE__ + 1;
    BASE_CHECK_EQ((cudaMemsetAsync)(memory, 0, SIZE, stream), cudaSuccess);
}

static __attribute__((noinline)) int helper_caller(cudaStream_t stream) {
    helper(stream);
    const int line = __LINE__ - 1;
    return line;
}

static void without_macros_there_are_function_file_and_line(void) {
    begin();
    const int caller_line = helper_caller(a);
    helper_caller(b);
    const struct sim_race_report *report = end();
    char behind[256];
    snprintf(behind, sizeof behind,
             "), called by helper_caller (%s:%d), called by %s (%s:", __FILE__, caller_line,
             __func__, __FILE__);
    char site[512];
    snprintf(site, sizeof site, "helper (%s:%d%s", __FILE__, helper_line, behind);
    BASE_CHECK(strncmp(report->first.site, site, strlen(site)) == 0);
    BASE_CHECK(strncmp(report->second.site, site, strlen(site)) == 0);
}

// A place that a macro told is over with its call.
static void a_place_does_not_stick(void) {
    begin();
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, a), cudaSuccess);
    helper_caller(b);
    const struct sim_race_report *report = end();
    BASE_CHECK(strncmp(report->second.site, "helper (", 8) == 0);
}

static __attribute__((noinline)) void wrapper(cudaStream_t stream) {
    sim_call_address(__builtin_return_address(0));
    BASE_CHECK_EQ((cudaMemsetAsync)(memory, 0, SIZE, stream), cudaSuccess);
    sim_call_address(NULL);
}

static void a_wrapper_can_say_who_called_it(void) {
    begin();
    wrapper(a);
    const int first = __LINE__ - 1;
    wrapper(b);
    const int second = __LINE__ - 1;
    const struct sim_race_report *report = end();
    char before[128];
    snprintf(before, sizeof before, "%s (%s:%d)", __func__, __FILE__, first);
    BASE_CHECK(strncmp(report->first.site, before, strlen(before)) == 0);
    snprintf(before, sizeof before, "%s (%s:%d)", __func__, __FILE__, second);
    BASE_CHECK(strncmp(report->second.site, before, strlen(before)) == 0);
}

// --- Labels, threads, pairs ---

static void a_label_goes_with_what_is_submitted(void) {
    char changing[16] = "one";
    begin();
    sim_race_label(changing);
    strcpy(changing, "changed"); // it was copied
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, a), cudaSuccess);
    sim_race_label(NULL);
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, b), cudaSuccess);
    const struct sim_race_report *report = end();
    BASE_CHECK(strcmp(report->first.label, "one") == 0);
    BASE_CHECK(strcmp(report->second.label, "") == 0);
}

static void memset_in_thread(void *unused) {
    (void)unused;
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, b), cudaSuccess);
}

static void threads_have_numbers_and_labels_of_their_own(void) {
    struct base_thread thread;
    begin();
    sim_race_label("main");
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, SIZE, a), cudaSuccess);
    base_thread_start(&thread, memset_in_thread, NULL);
    base_thread_join(&thread);
    sim_race_label(NULL);
    const struct sim_race_report *report = end();
    BASE_CHECK_EQ(report->first.thread, 1);
    BASE_CHECK_EQ(report->second.thread, 2);
    BASE_CHECK(strcmp(report->second.label, "") == 0);
    BASE_CHECK(strstr(report->text, ", by thread 2\n") != NULL);
}

static void a_pair_of_places_is_told_once_and_counted(void) {
    begin();
    for (int i = 1; i <= 5; ++i) {
        BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, (size_t)i, a), cudaSuccess);
        BASE_CHECK_EQ(cudaMemsetAsync(memory, 0, (size_t)i, b), cudaSuccess);
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    BASE_CHECK_EQ(end()->count, 5);
}

int main(void) {
    a_call_has_its_line();
    a_call_within_the_arguments_of_another_takes_nothing_away();
    a_call_stays_an_expression_and_a_function();
    blocks_and_accesses_of_the_host_have_their_lines();
    without_macros_there_are_function_file_and_line();
    a_place_does_not_stick();
    a_wrapper_can_say_who_called_it();
    a_label_goes_with_what_is_submitted();
    threads_have_numbers_and_labels_of_their_own();
    a_pair_of_places_is_told_once_and_counted();
    return 0;
}
