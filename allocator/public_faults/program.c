// Runs the cases and prints each value. See public_faults.h.
#include "allocator/public_faults/public_faults.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct base_program program = {
    .name = "public_faults",
    .arguments = "[THEME or NAME]...",
    .summary = "Runs faults that users of GPU caching allocators reported in public, by name: what "
               "is to be expected under each setting, and what comes.",
    .details = "Themes: fragmentation, streams, expandable, settings, numbers, graphs. A name is one of "
               "those printed, such as pt#189504. Without: all. Exit status: 0 every value is as "
               "expected, 1 one differs, 2 there is no such theme or name.",
    .argument_count_minimum = 0,
    .argument_count_maximum = -1};

static size_t different, lines;

static void print_line(void *context, const struct public_fault_line *line) {
    (void)context;
    static const char *const relations[] = {"", "below ", "above "};
    const bool agrees = public_fault_line_agrees(line);
    ++lines;
    different += !agrees;
    printf("    %-50s %-58s %s%" PRId64 "%s%" PRId64 "%s\n",
           line->config[0] == '\0' ? "default" : line->config, line->what,
           relations[line->relation], line->expected, agrees ? ", got " : ", BUT GOT ", line->got,
           agrees ? "" : "  <---");
    fflush(stdout);
}

// Whether WORD is one of the blank-separated NAMES.
static bool has_word(const char *names, const char *word) {
    const size_t length = strlen(word);
    if (length == 0) return false;
    for (const char *at = strstr(names, word); at != NULL; at = strstr(at + 1, word))
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void run_case(const struct public_fault_case *one) {
    printf("  %s: %s\n", one->names, one->pattern);
    if (one->run == NULL) {
        printf("    not run here: %s\n", one->elsewhere);
        return;
    }
    one->run(&(struct public_fault_teller){print_line, NULL});
    if (one->better != NULL) printf("    better: %s\n", one->better);
}

// NULL: all.
static bool is_named(const struct public_fault_theme *theme, const struct public_fault_case *one,
                     const char *word) {
    return word == NULL || strcmp(word, theme->name) == 0 || has_word(one->names, word);
}

static bool names_something(const char *word) {
    for (size_t theme = 0; theme < PUBLIC_FAULT_THEME_COUNT; ++theme)
        for (size_t index = 0; index < public_fault_themes[theme].count; ++index)
            if (is_named(&public_fault_themes[theme], &public_fault_themes[theme].cases[index],
                         word))
                return true;
    return false;
}

static void run(const char *word) {
    for (size_t theme = 0; theme < PUBLIC_FAULT_THEME_COUNT; ++theme) {
        const struct public_fault_theme *const cases = &public_fault_themes[theme];
        bool named = false;
        for (size_t index = 0; index < cases->count; ++index) {
            if (!is_named(cases, &cases->cases[index], word)) continue;
            if (!named) printf("%s\n", cases->name);
            named = true;
            run_case(&cases->cases[index]);
        }
    }
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    for (int index = 0; index < common.argument_count; ++index)
        if (!names_something(common.arguments[index]))
            base_options_usage_error(&program, "there is no theme or report \"%s\"",
                                     common.arguments[index]);
    if (common.argument_count == 0) run(NULL);
    for (int index = 0; index < common.argument_count; ++index)
        run(common.arguments[index]);
    printf("%zu values, %zu differ\n", lines, different);
    return different > 0 ? 1 : 0;
}
