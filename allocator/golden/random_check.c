// See random_check.h.
#include "allocator/golden/random_check.h"

#include <inttypes.h>
#include <string.h>

// Prints the first line in which the answers differ, of an answer that may have hundreds.
static void print_answers(const struct golden_subject *oracle, const struct golden_subject *subject,
                          const struct golden_difference *difference, FILE *output) {
    const char *first = difference->first, *second = difference->second;
    size_t first_length = strcspn(first, "\n"), second_length = strcspn(second, "\n");
    while (first[first_length] != '\0' && second[second_length] != '\0' &&
           first_length == second_length && strncmp(first, second, first_length) == 0) {
        first += first_length + 1;
        second += second_length + 1;
        first_length = strcspn(first, "\n");
        second_length = strcspn(second, "\n");
    }
    fprintf(output, "  %-8s  %.*s\n  %-8s  %.*s\n", oracle->name, (int)first_length, first,
            subject->name, (int)second_length, second);
}

static void print_difference(struct golden_script *script, const struct golden_subject *oracle,
                             const struct golden_subject *subject,
                             const struct golden_difference *difference, FILE *output) {
    fprintf(output, "seed %" PRIu64 ", step %zu: \"%s\" under \"%s\", capacity %" PRIu64 "\n",
            script->seed, difference->step, script->operations[difference->step], script->config,
            script->capacity_bytes);
    print_answers(oracle, subject, difference, output);
    fflush(output); // shrinking takes a while
    golden_script_shrink(script, oracle, subject);
    fprintf(output, "shrunk to %zu operations:\n", script->operation_count);
    golden_script_print(script, oracle, output);
    struct golden_difference last;
    if (golden_script_compare(script, oracle, subject, &last)) {
        fputs("where they differ:\n", output);
        print_answers(oracle, subject, &last, output);
        golden_difference_deinit(&last);
    }
    fflush(output);
}

bool golden_random_check(const struct golden_subject *oracle, const struct golden_subject *subject,
                         uint64_t seed, uint64_t count, size_t operation_count, FILE *output) {
    for (uint64_t program = 0; program < count; program++) {
        struct golden_script script;
        struct golden_difference difference;
        golden_script_make(&script, seed + program, operation_count);
        const bool differs = golden_script_compare(&script, oracle, subject, &difference);
        if (differs) {
            print_difference(&script, oracle, subject, &difference, output);
            golden_difference_deinit(&difference);
        }
        golden_script_deinit(&script);
        if (differs) return false;
    }
    return true;
}
