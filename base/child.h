// For tests of what ends a process: runs a function in a forked child and tells how it ended and
// what it printed. The tests of every room may use it; programs do not.
//
//     struct base_child child = base_child_run(body, &input);
//     BASE_CHECK_EQ(child.exit_code, 2);
//     BASE_CHECK(strcmp(child.error_text, "...") == 0);
//     base_child_deinit(&child);
//
// The caller must be single-threaded, as forks want it.
#ifndef TIDEMARK_BASE_CHILD_H
#define TIDEMARK_BASE_CHILD_H

struct base_child {
    int exit_code;     // -1 if a signal ended the child
    int signal_number; // 0 if it exited
    char *output_text; // what it wrote to stdout and to stderr, each ending with a 0
    char *error_text;
};

// The child exits with 0 when BODY returns.
struct base_child base_child_run(void (*body)(void *argument), void *argument);
void base_child_deinit(struct base_child *child);

#endif
