// Says of a settings string what cannot work as its user thinks.
//
//     bazel run //allocator:lint -- "max_split_size_mb:128,expandable_segments:True"
//
// Without a string it reads the environment as PyTorch does. Exit 0: nothing to say, 1: something,
// 2: wrong usage.
#include "allocator/lint.h"

#include "allocator/settings.h"
#include "base/check.h"
#include "base/options.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *version_option;
static bool fraction_set;

static const struct base_option options[] = {
    {"torch", "VERSION", BASE_OPTION_TEXT, &version_option,
     "the release of PyTorch that reads the string, 2.0 to 2.15 (default)"},
    {"fraction", NULL, BASE_OPTION_FLAG, &fraction_set,
     "the program sets a memory fraction below 1"},
    {0}};

static const struct base_program program = {
    .name = "lint",
    .arguments = "[SETTINGS...]",
    .summary = "Says of PyTorch allocator settings what cannot work as their user thinks.",
    .details = "SETTINGS is the value of PYTORCH_CUDA_ALLOC_CONF; without it the environment is "
               "read as PyTorch does. Exit status: 0 nothing to say, 1 something, 2 wrong usage.",
    .common = BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_maximum = -1};

struct output {
    bool json;
    size_t count; // findings of this string
};

// TEXT fit to be shown; the caller frees it.
static char *cleaned(const char *text) {
    char *const copy = strdup(text);
    BASE_CHECK(copy != NULL);
    base_text_clean(copy);
    return copy;
}

static void print_json_text(const char *original) {
    char *const copy = cleaned(original);
    putchar('"');
    for (const char *text = copy; *text != '\0'; ++text) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
    free(copy);
}

static void print_member(const char *name, const char *value) {
    printf(", \"%s\": ", name);
    print_json_text(value);
}

static void print_json(const struct cca_lint_finding *finding, bool first) {
    printf("%s\n    {\"rule\": ", first ? "" : ",");
    print_json_text(finding->rule);
    print_member("kind", cca_lint_kind_name(finding->kind));
    print_member("key", finding->key);
    print_member("sentence", finding->sentence);
    print_member("instead", finding->instead);
    printf(", \"since\": \"2.%d\", \"until\": \"2.%d\"}", finding->since, finding->until);
}

static void print_text(const struct cca_lint_finding *finding) {
    char *const key = cleaned(finding->key);
    char *const instead = cleaned(finding->instead);
    printf("%s%s%s [%s, PyTorch 2.%d", key, key[0] != '\0' ? ": " : "", finding->sentence,
           cca_lint_kind_name(finding->kind), finding->since);
    if (finding->until != finding->since) printf(" to 2.%d", finding->until);
    printf("]\n    %s\n", instead);
    free(key);
    free(instead);
}

static void on_finding(void *context, const struct cca_lint_finding *finding) {
    struct output *const output = context;
    if (output->json)
        print_json(finding, output->count == 0);
    else
        print_text(finding);
    ++output->count;
}

// The unified name came with 2.9, whose CUDA side did not read all keys from it
// (pytorch#183387).
static void check_variable(struct output *output, const char *name, int minor) {
    if (name == NULL || strcmp(name, "PYTORCH_ALLOC_CONF") != 0 || minor > 9) return;
    on_finding(output,
               &(struct cca_lint_finding){
                   .kind = CCA_LINT_NO_EFFECT,
                   .rule = "variable",
                   .key = name,
                   .sentence = minor < 9 ? "this variable is not read: it came with PyTorch 2.9"
                                         : "expandable_segments was not read from this variable "
                                           "(pytorch#183387)",
                   .instead = "set PYTORCH_CUDA_ALLOC_CONF",
                   .since = minor < 9 ? 0 : 9,
                   .until = minor < 9 ? 8 : 9});
}

static int minor_of(const char *version) {
    int minor = 15;
    if (version != NULL && sscanf(version, "2.%d", &minor) != 1) minor = 15;
    return minor;
}

static size_t lint(const char *text, const char *variable, bool json, bool first) {
    struct output output = {.json = json};
    if (json) {
        printf("%s\n  {\"settings\": ", first ? "" : ",");
        print_json_text(text);
        print_member("torch", version_option != NULL ? version_option : "2.15");
        printf(", \"findings\": [");
    }
    check_variable(&output, variable, minor_of(version_option));
    const enum base_status status =
        cca_config_lint(text,
                        &(struct cca_lint_options){.version = version_option,
                                                   .fraction_set = fraction_set,
                                                   .found = on_finding,
                                                   .context = &output},
                        NULL);
    if (status != BASE_OK) {
        fprintf(stderr, "lint: %s\n", base_status_message());
        exit(base_status_exit_code(status));
    }
    if (json)
        printf("%s]}", output.count > 0 ? "\n  " : "");
    else if (output.count == 0)
        printf("nothing to say about \"%.200s\"\n", text);
    return output.count;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    // Before anything is printed.
    if (cca_config_lint("", &(struct cca_lint_options){.version = version_option}, NULL) != BASE_OK)
        base_options_usage_error(&program, "%s", base_status_message());
    size_t count = 0;
    if (common.format_json) printf("[");
    for (int index = 0; index < common.argument_count; ++index)
        count += lint(common.arguments[index], NULL, common.format_json, index == 0);
    if (common.argument_count == 0) {
        const char *name;
        const char *const text = cca_settings_environment(&name);
        count += lint(text != NULL ? text : "", name, common.format_json, true);
    }
    if (common.format_json) printf("\n]\n");
    return count > 0 ? 1 : 0;
}
