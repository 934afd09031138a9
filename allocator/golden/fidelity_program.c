// Prints docs/fidelity.md.
#include "allocator/golden/fidelity.h"

#include "base/options.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "fidelity",
        .summary = "Prints docs/fidelity.md: how far the allocator decides as PyTorch's does."};
    struct base_common common = BASE_COMMON_DEFAULTS;
    // The recordings lie where bazel starts the program, not where its user stands.
    const int start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    base_options_parse(&program, argc, argv, &common);
    if (start < 0 || fchdir(start) != 0 || access(FIDELITY_LOGS, R_OK) != 0) {
        fprintf(stderr, "fidelity: there is no folder " FIDELITY_LOGS
                        " here; start it by `bazel run //allocator:fidelity`\n");
        return 3;
    }
    fidelity_print(stdout);
    return 0;
}
