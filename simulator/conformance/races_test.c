// The cases under the race checker: what they leave unordered would be answered by chance on a GPU.
// Those that are about it are named.
#include "base/check.h"
#include "base/child.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "simulator/conformance/conformance"

static const char *const meant[] = {
    "device_fault",              // after it nothing is waited for any more
    "callback_runs_after_error", // the same
    "random_orders",             // looks for both orders
};

static void run_program(void *context) {
    char *argv[] = {PROGRAM, NULL};
    (void)context;
    BASE_CHECK_EQ(setenv("TIDEMARK_SIM_RACES", "on", 1), 0);
    execv(PROGRAM, argv);
    _exit(127);
}

static bool is_meant(const char *line) {
    for (size_t index = 0; index < sizeof meant / sizeof meant[0]; ++index)
        if (strstr(line, meant[index]) != NULL) return true;
    return false;
}

int main(void) {
    static const char start[] = "tidemark race ";
    struct base_child child = base_child_run(run_program, NULL);
    size_t met = 0;
    BASE_CHECK_EQ(child.exit_code, 0);
    for (char *line = strtok(child.error_text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, start, strlen(start)) != 0) continue;
        base_check_context("%s", line);
        BASE_CHECK(is_meant(line));
        ++met;
    }
    base_check_context(NULL);
    BASE_CHECK_GT(met, 0); // the checker was on
    base_child_deinit(&child);
    return 0;
}
