// See config_page.h.
#include "allocator/config_page.h"

#include "allocator/config_keys.h"
#include "allocator/lint.h"
#include "base/check.h"

#include <string.h>

static const char introduction[] =
    "<!-- Made by `bazel run //allocator:configuration`; a test keeps it current. -->\n"
    "# Settings of the caching allocator\n"
    "\n"
    "One string, as PyTorch 2.15 reads it from the first of these variables that is set:\n"
    "`PYTORCH_CUDA_ALLOC_CONF`, `PYTORCH_HIP_ALLOC_CONF`, `PYTORCH_ALLOC_CONF` "
    "(`cca_settings_environment`). An allocator\n"
    "takes it when it is made (`cca_options.config`) and later (`cca_set_config`); `cca_settings` "
    "tells what is in force,\n"
    "`cca_settings_read` what a string would come to.\n"
    "`PYTORCH_NO_CUDA_MEMORY_CACHING=1` beside it switches the cache off "
    "(`cca_options_from_environment`).\n"
    "\n"
    "```\n"
    "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]\n"
    "```\n"
    "\n"
    "## How it is read\n"
    "\n"
    "- `KEY:VALUE` pairs with `,` between them. White space vanishes, even inside words. Since 2.9 "
    "any word passes for `:` and\n"
    "  for `,`; earlier releases refuse it.\n"
    "- Whole numbers are read up to the first character that is no digit: `64MB` is 64, `0x40` is "
    "0, `-1` wraps around.\n"
    "  Sizes that 64 bits cannot hold become the largest whole MiB, which is not \"unlimited\".\n"
    "- Truth is `True` or `False`, exactly so.\n"
    "- Since 2.9 the string is walked twice: keys that every back end of PyTorch has "
    "(`large_segment_size_mb` before all\n"
    "  others), then those of CUDA. An error ends the walk: what was applied before it stays, and "
    "after one in the first\n"
    "  walk no CUDA key was applied.\n"
    "- A later string first puts the keys that are marked *back to default* below to their "
    "defaults; all others keep their value.\n"
    "- A key given twice counts the second time.\n"
    "- `x_torch:2.5` anywhere in the string reads all of it as that release did. PyTorch itself "
    "refuses keys that begin with `x_`.\n"
    "\n"
    "*Since* is the first release that reads the key; where `~` stands before it, it was inferred "
    "from dates of public\n"
    "changes and may be off by one. *2.0* means 2.0 or before.\n";

static const char *const titles[CCA__GROUP_COUNT] = {
    [CCA__GROUP_SIZES] = "Sizes of blocks and segments", [CCA__GROUP_LIMITS] = "Limits",
    [CCA__GROUP_EXPANDABLE] = "Expandable segments",     [CCA__GROUP_BEHAVIOUR] = "Other behaviour",
    [CCA__GROUP_PINNED] = "Page-locked host memory",     [CCA__GROUP_OWN] = "Beyond PyTorch",
};

static const char *const remarks[CCA__GROUP_COUNT] = {
    [CCA__GROUP_PINNED] = "These keys are read and told as PyTorch does. They belong to its "
                          "allocator for host memory: nothing about\ndevice memory depends on "
                          "them.\n\n",
    [CCA__GROUP_OWN] = "Off unless asked for; they can be set at run time, and together. "
                       "docs/fidelity.md tells what each is for.\n\n",
};

//------------------------------------------------------------------------------------------------
// What the lint says of the rules' examples.

struct example {
    const struct cca_lint_rule *rule;
    char key[80], sentence[512], instead[256];
    int since, until;
    bool found;
};

static void on_finding(void *context, const struct cca_lint_finding *finding) {
    struct example *const example = context;
    if (example->found || strcmp(finding->rule, example->rule->name) != 0) return;
    example->found = true;
    snprintf(example->key, sizeof example->key, "%s", finding->key);
    snprintf(example->sentence, sizeof example->sentence, "%s", finding->sentence);
    snprintf(example->instead, sizeof example->instead, "%s", finding->instead);
    example->since = finding->since;
    example->until = finding->until;
}

static void run_example(const struct cca_lint_rule *rule, struct example *example) {
    *example = (struct example){.rule = rule};
    const struct cca_lint_options options = {
        .version = rule->version, .found = on_finding, .context = example};
    BASE_CHECK_EQ(cca_config_lint(rule->example, &options, NULL), BASE_OK);
    BASE_CHECK(example->found);
}

// A bar would end a table's cell.
static void print_cell(FILE *output, const char *text) {
    for (; *text != '\0'; ++text) {
        if (*text == '|') putc('\\', output);
        putc(*text, output);
    }
}

static void print_rules(FILE *output) {
    fputs("\n## What the lint says\n\n"
          "`bazel run //allocator:lint -- SETTINGS` (`cca_config_lint`) tells settings that cannot "
          "work as their user thinks. Its rules, each\nby an example:\n\n"
          "| rule | example | what it says | instead |\n|---|---|---|---|\n",
          output);
    for (size_t index = 0; index < cca_lint_rule_count; ++index) {
        const struct cca_lint_rule *const rule = &cca_lint_rules[index];
        struct example example;
        run_example(rule, &example);
        fprintf(output, "| %s (%s) | `", rule->name, cca_lint_kind_name(rule->kind));
        print_cell(output, rule->example);
        fprintf(output, "`%s%s | ", rule->version != NULL ? " in " : "",
                rule->version != NULL ? rule->version : "");
        print_cell(output, example.sentence);
        fputs(" | ", output);
        print_cell(output, example.instead);
        fputs(" |\n", output);
    }
}

//------------------------------------------------------------------------------------------------
// Keys.

static void print_lint_names(FILE *output, const struct cca__config_key *key) {
    bool first = true;
    for (size_t index = 0; index < cca_lint_rule_count; ++index) {
        struct example example;
        run_example(&cca_lint_rules[index], &example);
        if (strcmp(example.key, key->name) != 0) continue;
        fprintf(output, "%s%s", first ? " Lint: " : ", ", cca_lint_rules[index].name);
        first = false;
    }
    if (!first) putc('.', output);
}

static void print_key(FILE *output, const struct cca__config_key *key) {
    const bool own = key->group == CCA__GROUP_OWN;
    fprintf(output, "| `%s` | %s", key->name, key->value);
    if (key->range != NULL) fprintf(output, ": %s", key->range);
    fprintf(output, " | %s | ", key->standard);
    if (!own) fprintf(output, "%s2.%d | ", key->about ? "~" : "", key->since);
    fprintf(output, "%s | %s", key->resets ? "back to default" : "keeps its value", key->does);
    print_lint_names(output, key);
    fputs(" |\n", output);
}

static void print_group(FILE *output, enum cca__config_group group) {
    const bool own = group == CCA__GROUP_OWN;
    fprintf(output, "\n## %s\n\n%s", titles[group], remarks[group] != NULL ? remarks[group] : "");
    fprintf(output, "| key | value | default | %slater string without it | what it does |\n",
            own ? "" : "since | ");
    fprintf(output, "|---|---|---|---|---|%s\n", own ? "" : "---|");
    for (size_t index = 0; index < cca__config_key_count; ++index)
        if (cca__config_keys[index].group == group) print_key(output, &cca__config_keys[index]);
}

void config_page_print(FILE *output) {
    fputs(introduction, output);
    for (enum cca__config_group group = 0; group < CCA__GROUP_COUNT; ++group)
        print_group(output, group);
    print_rules(output);
}
