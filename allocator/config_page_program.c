// bazel run //allocator:configuration > docs/configuration.md
#include "allocator/config_page.h"

int main(void) {
    config_page_print(stdout);
    return fflush(stdout) == 0 ? 0 : 2;
}
