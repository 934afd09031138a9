// Planted faults: with each of them the simulator does one thing wrong, and a case must notice.
// Else the cases prove nothing. A fault may also make a case crash or wait for ever: each runs in
// a process of its own.
#include "base/check.h"
#include "base/child.h"
#include "simulator/conformance/conformance.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLANT_COUNT_MIN 75
#define PATIENCE_S      20
#define STATUS_NOTICED  7

// Ends with STATUS_NOTICED at the first case whose answer is wrong; its name is on standard output.
static void run_cases(void *name) {
    static struct conformance c;
    alarm(PATIENCE_S);
    BASE_CHECK_EQ(sim_plant(name), BASE_OK);
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one) {
            conformance_run(one, &c);
            if (strcmp(c.answer, one->expected) == 0)
                continue;
            printf("%s", one->name);
            fflush(stdout);
            _exit(STATUS_NOTICED);
        }
}

static void without_a_fault_all_cases_pass(void) {
    struct base_child child = base_child_run(run_cases, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
}

static void each_fault_is_noticed_by_a_case(void) {
    int count = 0;
    for (; sim_plant_name(count) != NULL; ++count) {
        const char *name = sim_plant_name(count);
        struct base_child child = base_child_run(run_cases, (void *)(uintptr_t)name);
        printf("%s (%s): %s\n", name, sim_plant_text(count), child.output_text);
        if (child.exit_code != STATUS_NOTICED)
            fprintf(stderr, "%s: exit %d, signal %d: %s\n", name, child.exit_code,
                    child.signal_number, child.error_text);
        BASE_CHECK_EQ(child.exit_code, STATUS_NOTICED);
        base_child_deinit(&child);
    }
    BASE_CHECK_GE(count, PLANT_COUNT_MIN);
}

static void unknown_fault_is_refused(void) {
    BASE_CHECK_EQ(sim_plant("no-such-fault"), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "no planted fault \"no-such-fault\"") != NULL);
    BASE_CHECK(sim_plant_name(-1) == NULL && sim_plant_text(1000) == NULL);
}

int main(void) {
    without_a_fault_all_cases_pass();
    each_fault_is_noticed_by_a_case();
    unknown_fault_is_refused();
    return 0;
}
