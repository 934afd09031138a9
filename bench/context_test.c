// The context of a result file holds every key of docs/results.md, and binding a thread is told
// truthfully.
#include "bench/context.h"

#include "base/check.h"
#include "bench/pin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void every_key_of_the_schema_has_a_value(void) {
    static const char *const keys[] = {
        "tidemark_schema", "tidemark_version", "tidemark_commit", "compiler",  "cuda", "device",
        "capacity_bytes",  "topology",         "pinned_cpu",      "load_1min", "seed"};
    struct bench_context context;
    bench_context_collect(&(struct bench_context_options){.seed = 17, .pinned_cpu = -1}, &context);
    BASE_CHECK_EQ((size_t)context.count, sizeof keys / sizeof keys[0]);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = bench_context_value(&context, keys[i]);
        BASE_CHECK(value != NULL && value[0] != '\0');
    }
    BASE_CHECK(strcmp(bench_context_value(&context, "seed"), "17") == 0);
    BASE_CHECK(strcmp(bench_context_value(&context, "pinned_cpu"), "none") == 0);
    BASE_CHECK(strtoull(bench_context_value(&context, "capacity_bytes"), NULL, 10) > 0);
    BASE_CHECK(bench_context_value(&context, "absent") == NULL);
}

static void a_capacity_of_each_run_is_said_instead_of_the_devices(void) {
    struct bench_context context;
    bench_context_collect(&(struct bench_context_options){.capacity = "as recorded"}, &context);
    BASE_CHECK(strcmp(bench_context_value(&context, "capacity_bytes"), "as recorded") == 0);
}

static void the_commit_is_unknown_outside_a_checkout(void) {
    struct bench_context context;
    BASE_CHECK_EQ(setenv("BUILD_WORKSPACE_DIRECTORY", "/", 1), 0);
    bench_context_collect(&(struct bench_context_options){.pinned_cpu = 3}, &context);
    BASE_CHECK(strcmp(bench_context_value(&context, "tidemark_commit"), "unknown") == 0);
    BASE_CHECK(strcmp(bench_context_value(&context, "pinned_cpu"), "3") == 0);
    BASE_CHECK_EQ(unsetenv("BUILD_WORKSPACE_DIRECTORY"), 0);
}

static void a_bound_thread_runs_on_the_cpu_that_was_named(void) {
    const int cores = bench_core_count();
    BASE_CHECK_GE(cores, 1);
    BASE_CHECK_LE(cores, sysconf(_SC_NPROCESSORS_CONF));
    int cpu = -1;
    if (bench_pin_thread(0, &cpu) != BASE_OK) {
        BASE_CHECK_EQ(cpu, -1);
        BASE_CHECK(strstr(base_status_message(), "not bound") != NULL);
        printf("not bound here: %s\n", base_status_message());
        return;
    }
    BASE_CHECK_EQ(sched_getcpu(), cpu);
    int again = -1, other = -1;
    BASE_CHECK_EQ(bench_pin_thread(cores, &again), BASE_OK); // one beyond the last: the first again
    BASE_CHECK_EQ(again, cpu);
    BASE_CHECK_EQ(bench_pin_thread(cores - 1, &other), BASE_OK);
    BASE_CHECK_EQ(sched_getcpu(), other);
    BASE_CHECK((cores == 1) == (other == cpu));
    BASE_CHECK_EQ(bench_core_count(), cores); // being bound does not shrink the machine
}

static void the_topology_line_is_cut_to_its_buffer(void) {
    char line[256], cut[8];
    bench_topology_line(line, sizeof line);
    bench_topology_line(cut, sizeof cut);
    BASE_CHECK_EQ(strlen(cut), strlen(line) < 7 ? strlen(line) : 7);
    BASE_CHECK(strncmp(cut, line, strlen(cut)) == 0);
    printf("%s\n", line);
}

int main(void) {
    every_key_of_the_schema_has_a_value();
    a_capacity_of_each_run_is_said_instead_of_the_devices();
    the_commit_is_unknown_outside_a_checkout();
    a_bound_thread_runs_on_the_cpu_that_was_named();
    the_topology_line_is_cut_to_its_buffer();
    return 0;
}
