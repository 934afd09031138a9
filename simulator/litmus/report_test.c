// The checker's reports in the words of a case, over reports made by hand.
#include "base/check.h"
#include "simulator/litmus/player.h"

#include <stdio.h>
#include <string.h>

static const char text[] = "case one\nkind lifetime\n"
                           "stream s nonblocking 0\nstream t nonblocking 0\n"
                           "device a 8 0 0\n"
                           "do 0 A take b a:0:4 s\n"
                           "do 0 B kernel s set b 1\n"
                           "do 0 C give b\n"
                           "do 0 D mallocasync p 4 s\n"
                           "do 0 E freeasync p s\n"
                           "do 0 F mallocasync q 4 s\n"
                           "do 0 G kernel t set q 1\n"
                           "do 0 H kernel t read p\n"
                           "do 0 I graphcreate g\n"
                           "do 0 J addkernel g - set a 1\n"
                           "do 0 K instantiate x g\n"
                           "do 0 L launch s x\n"
                           "verdict ok\noutcome -\nend\n";
enum { BUFFER_A, BUFFER_P, BUFFER_Q };

static struct litmus_file file;
static struct litmus_player player;
static unsigned char memory[24]; // a, and behind it what p and q both were

static struct sim_race_report report_make(const char *kind, const char *first, const char *second,
                                          size_t place) {
    return (struct sim_race_report){
        .kind = kind,
        .first = {.what = "", .label = first, .node = ""},
        .second = {.what = "", .label = second, .node = ""},
        .start = (uint64_t)(uintptr_t)(memory + place),
        .size = 1,
    };
}

static void kinds_and_labels_are_the_case_s(void) {
    static const char *const kinds[LITMUS_RACE_KIND_COUNT] = {
        "write-write",    "read-write",       "reuse",
        "use-after-free", "use-before-alloc", "uninitialised"};
    for (int i = 0; i < LITMUS_RACE_KIND_COUNT; ++i) {
        const struct sim_race_report report = report_make(kinds[i], "B", "", 7);
        const struct litmus_race race = litmus__race(&player, &report);
        BASE_CHECK_EQ(race.kind, i);
        BASE_CHECK_EQ(race.sides[0].operation, 1);
        BASE_CHECK_EQ(race.sides[0].launch, -1);
        BASE_CHECK_EQ(race.sides[1].operation, -1);
        BASE_CHECK_EQ(race.buffer, BUFFER_A);
        BASE_CHECK_EQ(race.block, -1);
    }
    const struct sim_race_report strange = report_make("tearing", "B", "", 7);
    BASE_CHECK_EQ(litmus__race(&player, &strange).kind, LITMUS_RACE_KIND_COUNT);
}

static void node_is_named_with_its_launch(void) {
    struct sim_race_report report = report_make("write-write", "L", "B", 0);
    report.first.node = "J";
    const struct litmus_race race = litmus__race(&player, &report);
    BASE_CHECK_EQ(race.sides[0].operation, 9);
    BASE_CHECK_EQ(race.sides[0].launch, 11);
    BASE_CHECK_EQ(race.sides[1].operation, 1);
}

static void block_is_where_its_life_or_contents_are_at_fault(void) {
    struct sim_race_report report = report_make("use-after-free", "B", "C", 0);
    report.block = 17;
    BASE_CHECK_EQ(litmus__race(&player, &report).block, 0);
    BASE_CHECK_EQ(litmus__race(&player, &report).buffer, -1);
    report.kind = "reuse";
    BASE_CHECK_EQ(litmus__race(&player, &report).block, -1);
    BASE_CHECK_EQ(litmus__race(&player, &report).buffer, BUFFER_A);
    report.kind = "uninitialised";
    report.block = 18; // another one
    BASE_CHECK_EQ(litmus__race(&player, &report).buffer, BUFFER_A);
}

static void address_that_was_reused_belongs_to_the_buffer_that_is_named(void) {
    const struct sim_race_report of_p = report_make("use-after-free", "H", "E", 16);
    const struct sim_race_report of_q = report_make("use-before-alloc", "F", "G", 16);
    BASE_CHECK_EQ(litmus__race(&player, &of_p).buffer, BUFFER_P);
    BASE_CHECK_EQ(litmus__race(&player, &of_q).buffer, BUFFER_Q);
    const struct sim_race_report outside = report_make("use-after-free", "H", "E", 12);
    BASE_CHECK_EQ(litmus__race(&player, &outside).buffer, -1);
}

int main(void) {
    if (litmus_text_read("one.litmus", text, &file) != BASE_OK)
        fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(file.case_count, 1);
    player.current = &file.cases[0];
    player.blocks[0] = 17;
    player.addresses[BUFFER_A] = memory;
    player.addresses[BUFFER_P] = player.addresses[BUFFER_Q] = memory + 16;
    kinds_and_labels_are_the_case_s();
    node_is_named_with_its_launch();
    block_is_where_its_life_or_contents_are_at_fault();
    address_that_was_reused_belongs_to_the_buffer_that_is_named();
    litmus_file_deinit(&file);
    return 0;
}
