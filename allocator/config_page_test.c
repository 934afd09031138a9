// docs/configuration.md is what the tables make of it.
#include "allocator/config_page.h"
#include "allocator/testing_page.h"

int main(void) {
    testing_page_is_current("docs/configuration.md", "bazel run //allocator:configuration",
                            config_page_print);
}
