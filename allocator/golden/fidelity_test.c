// docs/fidelity.md says what the logs and the reported faults come to now.
#include "allocator/golden/fidelity.h"
#include "allocator/testing_page.h"

int main(void) {
    testing_page_is_current("docs/fidelity.md", "bazel run //allocator:fidelity", fidelity_print);
}
