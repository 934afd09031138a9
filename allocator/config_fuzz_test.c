// Any text at all: the parser of settings and the lint end with an answer, the same each time, and
// agree on what is refused. The strings recorded from PyTorch are the seeds; the lint is held to
// what PyTorch said of them.
//
//     bazel run //allocator:config_fuzz_test -- --seed 7 --count 1000000
//     bazel run --config=fuzz //allocator:config_fuzz
#include "allocator/config_fuzz_one.h"

#include "base/check.h"
#include "base/options.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE      "allocator/golden/testdata/table-config.log"
#define TEXT_BYTES 4096
#define SEED_MAX   300

static uint64_t count = 20000;
static char *seeds[SEED_MAX];
static bool seed_accepted[SEED_MAX];
static size_t seed_count;

// \n \t \r \v \f \\ stand for the characters.
static void unescape(char *text) {
    static const char codes[] = "ntrvf\\", characters[] = "\n\t\r\v\f\\";
    char *out = text;
    for (const char *in = text; *in != '\0'; ++in) {
        const char *const code = *in == '\\' && in[1] != '\0' ? strchr(codes, in[1]) : NULL;
        *out++ = code != NULL ? characters[code - codes] : *in;
        if (code != NULL) ++in;
    }
    *out = '\0';
}

static void read_seeds(void) {
    FILE *const table = fopen(TABLE, "r");
    BASE_CHECK(table != NULL);
    char line[TEXT_BYTES];
    while (fgets(line, sizeof line, table) != NULL) {
        if (strncmp(line, "cfg ", 4) != 0) continue;
        char *separator = strstr(line, " = ok");
        const bool accepted = separator != NULL;
        if (!accepted) separator = strstr(line, " = error ");
        BASE_CHECK(separator != NULL && seed_count < SEED_MAX);
        *separator = '\0';
        seed_accepted[seed_count] = accepted;
        seeds[seed_count] = strdup(separator > line + 4 ? line + 4 : "");
        unescape(seeds[seed_count++]);
    }
    fclose(table);
    BASE_CHECK_EQ(seed_count, 241);
}

static void lint_refuses_what_pytorch_refuses(void) {
    for (size_t index = 0; index < seed_count; ++index) {
        base_check_context("'%s'", seeds[index]);
        BASE_CHECK_EQ(config_fuzz_one(seeds[index]), seed_accepted[index]);
    }
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Many texts.

static const char *const pieces[] = {
    ":",
    ",",
    "[",
    "]",
    " ",
    "\t",
    "64",
    "0",
    "-1",
    "1e9",
    ">",
    "True",
    "False",
    "0.5",
    "40G",
    "20",
    "x_",
    "x_torch:",
    "2.5",
    "2.8,",
    "x_torch:2.9,",
    "\n",
    "=",
    ";",
    "\"",
    "\xff\xfe",
    "max_split_size_mb:",
    "roundup_power2_divisions:[",
    "256:2,",
    "expandable_segments:",
    "large_segment_size_mb:",
    "expandable_segments_reserve_by_class:[a:",
    "x_poll:own,",
    "pinned_num_register_threads:",
};

static void change(struct base_random *random, char *text) {
    const size_t length = strlen(text);
    const size_t at = base_random_below(random, length + 1);
    const char *const piece = pieces[base_random_below(random, sizeof pieces / sizeof pieces[0])];
    const size_t size = strlen(piece);
    switch (base_random_below(random, 5)) {
    case 0: // a byte
        if (length > 0) text[at % length] = (char)(1 + base_random_below(random, 255));
        break;
    case 1: // away with some
        if (at < length) {
            const size_t most = length - at;
            const size_t gone = 1 + base_random_below(random, most < 6 ? most : 6);
            memmove(text + at, text + at + gone, most - gone + 1);
        }
        break;
    case 2: text[at] = '\0'; break;
    case 3: { // another seed behind it
        const char *const other = seeds[base_random_below(random, seed_count)];
        if (length + strlen(other) + 2 < TEXT_BYTES) {
            strcat(text, ",");
            strcat(text, other);
        }
        break;
    }
    default: // a piece in between
        if (length + size + 1 < TEXT_BYTES) {
            memmove(text + at + size, text + at, length - at + 1);
            memcpy(text + at, piece, size);
        }
    }
}

static void any_text_gets_an_answer(uint64_t seed) {
    struct base_random random = base_random_init(seed, "settings");
    uint64_t accepted = 0;
    for (uint64_t text_number = 0; text_number < count; ++text_number) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s", seeds[base_random_below(&random, seed_count)]);
        for (uint64_t changes = 1 + base_random_below(&random, 6); changes > 0; --changes)
            change(&random, text);
        base_check_context("seed %llu, text %llu: '%s'", (unsigned long long)seed,
                           (unsigned long long)text_number, text);
        accepted += config_fuzz_one(text);
    }
    base_check_context(NULL);
    printf("seed %llu: %llu texts, %llu accepted\n", (unsigned long long)seed,
           (unsigned long long)count, (unsigned long long)accepted);
    BASE_CHECK(accepted > count / 50); // else only refusals are tried
}

static const struct base_option options[] = {
    {"count", "N", BASE_OPTION_COUNT, &count, "how many texts"}, {0}};

static const struct base_program program = {
    .name = "config_fuzz_test",
    .summary = "Random settings strings through the parser and the lint.",
    .common = BASE_COMMON_SEED,
    .options = options};

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    read_seeds(); // from where the test stands
    base_options_parse(&program, argc, argv, &common);
    lint_refuses_what_pytorch_refuses();
    any_text_gets_an_answer(common.seed);
    for (size_t index = 0; index < seed_count; ++index) free(seeds[index]);
    return 0;
}
