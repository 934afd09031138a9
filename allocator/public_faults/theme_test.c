// The cases of one theme, named on the command line: each value is as expected.
#include "allocator/public_faults/public_faults.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t lines, different;

static void on_line(void *context, const struct public_fault_line *line) {
    const struct public_fault_case *const one = context;
    const bool agrees = public_fault_line_agrees(line);
    ++lines;
    different += !agrees;
    if (!agrees)
        printf("%s, \"%s\": %s: expected %" PRId64 ", got %" PRId64 "\n", one->names, line->config,
               line->what, line->expected, line->got);
    fflush(stdout);
}

static void every_case_of_the_theme_has_the_value_expected_of_each_setting(const char *name) {
    size_t theme = 0;
    while (theme < PUBLIC_FAULT_THEME_COUNT && strcmp(public_fault_themes[theme].name, name) != 0)
        ++theme;
    BASE_CHECK_LT(theme, PUBLIC_FAULT_THEME_COUNT);
    for (size_t index = 0; index < public_fault_themes[theme].count; ++index) {
        const struct public_fault_case *const one = &public_fault_themes[theme].cases[index];
        BASE_CHECK(one->names != NULL && one->pattern != NULL);
        BASE_CHECK_EQ(one->run == NULL, one->elsewhere != NULL);
        if (one->run == NULL) continue;
        const size_t before = lines;
        one->run(&(struct public_fault_teller){on_line, (void *)(uintptr_t)one});
        BASE_CHECK_GT(lines, before);
    }
    printf("%s: %zu values, %zu differ\n", name, lines, different);
    BASE_CHECK_EQ(different, 0);
}

static void a_value_agrees_by_its_relation(void) {
    struct public_fault_line line = {.relation = PUBLIC_FAULT_EQUAL, .expected = 5, .got = 5};
    BASE_CHECK(public_fault_line_agrees(&line));
    line.got = 6;
    BASE_CHECK(!public_fault_line_agrees(&line));
    line.relation = PUBLIC_FAULT_ABOVE;
    BASE_CHECK(public_fault_line_agrees(&line));
    line.relation = PUBLIC_FAULT_BELOW;
    BASE_CHECK(!public_fault_line_agrees(&line));
}

int main(int argc, char **argv) {
    BASE_CHECK_EQ(argc, 2);
    a_value_agrees_by_its_relation();
    every_case_of_the_theme_has_the_value_expected_of_each_setting(argv[1]);
}
