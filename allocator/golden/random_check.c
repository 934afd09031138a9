// See random_check.h.
#include "allocator/golden/random_check.h"

#include <inttypes.h>

static void print_difference(struct golden_script *script, const struct golden_subject *oracle,
                             const struct golden_subject *subject,
                             const struct golden_difference *difference, FILE *output) {
    fprintf(output, "seed %" PRIu64 ", step %zu: \"%s\" under \"%s\", capacity %" PRIu64 "\n",
            script->seed, difference->step, script->operations[difference->step], script->config,
            script->capacity_bytes);
    fprintf(output, "%s:\n%s%s:\n%s", oracle->name, difference->first, subject->name,
            difference->second);
    golden_script_shrink(script, oracle, subject);
    fprintf(output, "shrunk to %zu operations:\n", script->operation_count);
    golden_script_print(script, oracle, output);
    struct golden_difference last;
    if (golden_script_compare(script, oracle, subject, &last)) {
        fprintf(output, "%s prints instead, at the end:\n%s", subject->name, last.second);
        golden_difference_deinit(&last);
    }
}

bool golden_random_check(const struct golden_subject *oracle, const struct golden_subject *subject,
                         uint64_t seed, uint64_t count, size_t operation_count, unsigned flags,
                         FILE *output) {
    for (uint64_t program = 0; program < count; program++) {
        struct golden_script script;
        struct golden_difference difference;
        golden_script_make(&script, seed + program, operation_count, flags);
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
