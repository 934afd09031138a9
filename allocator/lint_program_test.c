// The lint as a program: exit status, text, JSON, and what bad input gets.
#include "base/check.h"
#include "base/child.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "allocator/lint"

static void run_program(void *context) {
    execv(PROGRAM, context);
    _exit(127);
}

// The program over the arguments up to NULL.
static struct base_child run(const char *first, const char *second, const char *third) {
    char *argv[] = {PROGRAM, (char *)(uintptr_t)first, (char *)(uintptr_t)second,
                    (char *)(uintptr_t)third, NULL};
    return base_child_run(run_program, argv);
}

static void check(struct base_child child, int exit_code, const char *output, const char *error) {
    base_check_context("'%s' and '%s'", child.output_text, child.error_text);
    BASE_CHECK_EQ(child.exit_code, exit_code);
    BASE_CHECK(strstr(child.output_text, output) != NULL);
    BASE_CHECK(strstr(child.error_text, error) != NULL);
    if (error[0] == '\0') BASE_CHECK(child.error_text[0] == '\0');
    base_check_context(NULL);
    base_child_deinit(&child);
}

static void nothing_to_say_exits_0(void) {
    check(run("max_split_size_mb:128", NULL, NULL), 0,
          "nothing to say about \"max_split_size_mb:128\"\n", "");
}

static void a_finding_exits_1_and_says_what_to_write(void) {
    check(run("max_split_size_mb:64", "expandable_segments:true", NULL), 1,
          "expandable_segments: 'true' is neither True nor False [refused, PyTorch 2.15]\n"
          "    write expandable_segments:True or False\n",
          "");
    check(run("--torch=2.0", "expandable_segments:True", NULL), 1, "came with 2.1", "");
    check(run("--fraction", "garbage_collection_threshold:0.8", NULL), 0, "nothing", "");
}

static void json_is_a_list_of_settings(void) {
    check(
        run("--format=json", "max_split_size_mb:64", NULL), 0,
        "[\n  {\"settings\": \"max_split_size_mb:64\", \"torch\": \"2.15\", \"findings\": []}\n]\n",
        "");
    check(run("--format=json", "say:\"\\\x01\xff\"", "gc_threshold:0.5"), 1,
          "\"settings\": \"say:\\\"\\\\??\\\"\"", "");
    check(run("--format=json", "gc_threshold:0.5", NULL), 1,
          "{\"rule\": \"unknown-key\", \"kind\": \"refused\", \"key\": \"gc_threshold\", ", "");
}

static void without_settings_the_environment_is_read(void) {
    BASE_CHECK_EQ(setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1), 0);
    check(run(NULL, NULL, NULL), 0, "nothing to say about \"expandable_segments:True\"", "");
    check(run("--torch=2.9", NULL, NULL), 1, "PYTORCH_ALLOC_CONF: ", "");
    BASE_CHECK_EQ(setenv("PYTORCH_CUDA_ALLOC_CONF", "", 1), 0);
    check(run("--torch=2.9", NULL, NULL), 0, "nothing to say about \"\"", "");
}

static void bad_input_gets_one_line_and_exits_2(void) {
    check(run("--torch=3", "", NULL), 2, "", "'3' is not a version of PyTorch from 2.0 to 2.15");
    check(run("--torch=", "", NULL), 2, "", "is not a version");
    check(run("--tourch=2.9", "", NULL), 2, "", "--help");
}

int main(void) {
    nothing_to_say_exits_0();
    a_finding_exits_1_and_says_what_to_write();
    json_is_a_list_of_settings();
    without_settings_the_environment_is_read();
    bad_input_gets_one_line_and_exits_2();
    return 0;
}
