// bazel run //allocator:configuration > docs/configuration.md
#include "allocator/config_page.h"
#include "base/options.h"

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "configuration", .summary = "Prints docs/configuration.md: all settings."};
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    config_page_print(stdout);
    return 0;
}
