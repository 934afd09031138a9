// See host_cost_report.h.
#include "bench/host_cost_report.h"

#include "base/check.h"
#include "base/size.h"
#include "bench/rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_SIZE 32

// A benchmark's name, taken apart.
struct parts {
    bool two_threads;
    char subject[PART_SIZE], pattern[PART_SIZE], bytes[PART_SIZE];
    char streams[PART_SIZE]; // "" for one thread
};

void bench_host_cost_name(char name[BENCH_HOST_COST_NAME_SIZE], int thread_count, bool own_streams,
                          const char *subject, const struct bench_pattern *pattern) {
    char bytes[PART_SIZE] = "mixed";
    if (pattern->bytes > 0) snprintf(bytes, sizeof bytes, "%zu", pattern->bytes);
    const char *streams = thread_count == 1 ? "" : own_streams ? "/own_streams" : "/one_stream";
    snprintf(name, BENCH_HOST_COST_NAME_SIZE, "%s%s/%s/%s%s",
             thread_count == 1 ? BENCH_HOST_COST_ONE_THREAD : BENCH_HOST_COST_TWO_THREADS, subject,
             bench_pattern_name(pattern->kind), bytes, streams);
}

static struct parts parts_of(const char *name) {
    struct parts parts = {.two_threads = strncmp(name, BENCH_HOST_COST_TWO_THREADS,
                                                 strlen(BENCH_HOST_COST_TWO_THREADS)) == 0};
    const int found = sscanf(name, "%*[^/]/%31[^/]/%31[^/]/%31[^/]/%31[^/]", parts.subject,
                             parts.pattern, parts.bytes, parts.streams);
    BASE_CHECK_EQ(found, parts.two_threads ? 4 : 3);
    return parts;
}

static size_t find(const struct bench_results *results, const char *subject,
                   const struct parts *like, const char *streams) {
    char name[BENCH_HOST_COST_NAME_SIZE + 4 * PART_SIZE];
    snprintf(name, sizeof name, "%s%s/%s/%s%s%s",
             streams[0] ? BENCH_HOST_COST_TWO_THREADS : BENCH_HOST_COST_ONE_THREAD, subject,
             like->pattern, like->bytes, streams[0] ? "/" : "", streams);
    return bench_results_find(results, name);
}

static double quotient_within_rounds(const struct bench_results *results, size_t above,
                                     size_t below, double factor) {
    const struct bench_result a = bench_results_get(results, above),
                              b = bench_results_get(results, below);
    const bool alone = !parts_of(a.name).two_threads && !parts_of(b.name).two_threads;
    return bench_quotient_within_rounds(&a, &b, alone ? BENCH_CLOCK_CPU : BENCH_CLOCK_REAL,
                                        factor);
}

void bench_host_cost_derive(struct bench_results *results) {
    for (size_t i = 0; i < bench_results_count(results); i++) {
        const struct parts parts = parts_of(bench_results_get(results, i).name);
        const size_t limit =
            find(results, "mutex_list", &parts, parts.two_threads ? "one_stream" : "");
        if (limit != SIZE_MAX)
            bench_results_counter(results, i, "x_mutex_list",
                                  quotient_within_rounds(results, i, limit, 1));
        const size_t alone = find(results, parts.subject, &parts, "");
        if (parts.two_threads && alone != SIZE_MAX)
            bench_results_counter(results, i, "x_one_thread",
                                  quotient_within_rounds(results, alone, i, 2));
    }
}

static double counter(const struct bench_results *results, size_t index, const char *name) {
    double value = NAN;
    return bench_results_counter_get(results, index, name, &value) ? value : NAN;
}

static void print_row_start(const struct parts *parts) {
    char size[BASE_SIZE_TEXT] = "512 B-64 MiB";
    if (strcmp(parts->bytes, "mixed") != 0)
        base_size_format(strtoull(parts->bytes, NULL, 10), size);
    printf("%-7s %-12s ", parts->pattern, size);
}

static void print_cell(const struct bench_results *results, size_t index) {
    if (index == SIZE_MAX) {
        printf(" %9s %6s", "-", "");
        return;
    }
    printf(" %9.1f %5.2fx", bench_results_get(results, index).real_ns_minimum,
           counter(results, index, "x_mutex_list"));
}

static bool is_subject(const struct parts *parts, const char *subject, bool two_threads) {
    return parts->two_threads == two_threads && strcmp(parts->subject, subject) == 0;
}

static void print_one_thread(const struct bench_results *results, int round_count) {
    static const char *const subjects[] = {"ideal_list", "mutex_list", "caching", "direct",
                                           "async"};
    printf("\nOne thread: ns of an allocation and its free (least of %d rounds), and times that of "
           "mutex_list\n(median of the rounds' quotients)\n",
           round_count);
    printf("%-7s %-12s ", "pattern", "block");
    for (size_t j = 0; j < 5; j++) printf(" %16s", subjects[j]);
    printf("\n");
    for (size_t i = 0; i < bench_results_count(results); i++) {
        const struct parts parts = parts_of(bench_results_get(results, i).name);
        if (!is_subject(&parts, "mutex_list", false)) continue;
        print_row_start(&parts);
        for (size_t j = 0; j < 5; j++) print_cell(results, find(results, subjects[j], &parts, ""));
        printf("\n");
    }
}

static void print_percentiles(const struct bench_results *results) {
    static const char *const percentiles[] = {"p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"};
    bool headed = false;
    for (size_t i = 0; i < bench_results_count(results); i++) {
        const struct parts parts = parts_of(bench_results_get(results, i).name);
        if (parts.two_threads || isnan(counter(results, i, "p50_ns"))) continue;
        if (!headed) {
            printf("\nOne thread, each pair timed alone: ns, of which %.0f are the clock\n",
                   counter(results, i, "clock_ns"));
            printf("%-7s %-12s  %-10s %8s %8s %8s %8s %9s\n", "pattern", "block", "", "50 %",
                   "90 %", "99 %", "99.9 %", "most");
            headed = true;
        }
        print_row_start(&parts);
        printf(" %-10s", parts.subject);
        for (size_t j = 0; j < 5; j++)
            printf(" %*.0f", j == 4 ? 9 : 8, counter(results, i, percentiles[j]));
        printf("\n");
    }
}

static void print_two_threads(const struct bench_results *results) {
    bool headed = false;
    for (size_t i = 0; i < bench_results_count(results); i++) {
        const struct parts parts = parts_of(bench_results_get(results, i).name);
        if (!parts.two_threads) continue;
        if (!headed) {
            printf("\nTwo threads: ns of a pair in each, times that of mutex_list under the same "
                   "contention,\nand the throughput of both against one thread alone\n");
            headed = true;
        }
        print_row_start(&parts);
        printf(" %-10s %-11s", parts.subject, parts.streams);
        print_cell(results, i);
        printf("  total %4.2fx\n", counter(results, i, "x_one_thread"));
    }
}

void bench_host_cost_print(const struct bench_results *results,
                           const struct bench_context *context) {
    bench_context_print(context);
    if (bench_results_count(results) == 0) return;
    print_one_thread(results, bench_results_get(results, 0).round_count);
    print_two_threads(results);
    print_percentiles(results);
}
