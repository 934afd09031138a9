// The child's two streams go to memory files rather than pipes: it can print any amount without
// anybody reading, and the parent reads once it has ended.
#include "base/child.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *text_read(int descriptor) {
    const off_t size = lseek(descriptor, 0, SEEK_END);
    BASE_CHECK(size >= 0);
    char *const text = malloc((size_t)size + 1);
    BASE_CHECK(text != NULL);
    BASE_CHECK_EQ(pread(descriptor, text, (size_t)size, 0), size);
    text[size] = 0;
    BASE_CHECK_EQ(close(descriptor), 0);
    return text;
}

static _Noreturn void child_main(int output, int error, void (*body)(void *), void *argument) {
    // Children that abort on purpose leave no core files.
    const struct rlimit no_core = {0, 0};
    BASE_CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
    BASE_CHECK_EQ(dup2(output, STDOUT_FILENO), STDOUT_FILENO);
    BASE_CHECK_EQ(dup2(error, STDERR_FILENO), STDERR_FILENO);
    body(argument);
    exit(0);
}

struct base_child base_child_run(void (*body)(void *argument), void *argument) {
    const int output = memfd_create("output", MFD_CLOEXEC),
              error = memfd_create("error", MFD_CLOEXEC);
    BASE_CHECK(output >= 0 && error >= 0);
    // What is still buffered would be printed by both.
    BASE_CHECK_EQ(fflush(NULL), 0);
    const pid_t pid = fork();
    BASE_CHECK_GE(pid, 0);
    if (pid == 0)
        child_main(output, error, body, argument);
    int status;
    BASE_CHECK_EQ(waitpid(pid, &status, 0), pid);
    return (struct base_child){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                               .signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                               .output_text = text_read(output),
                               .error_text = text_read(error)};
}

void base_child_deinit(struct base_child *child) {
    free(child->output_text);
    free(child->error_text);
}
