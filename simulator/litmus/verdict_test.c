// Comparing what the race checker reported with the races of a case, over reports made by hand: a
// referee that never says no is worth nothing.
#include "base/check.h"
#include "simulator/litmus/verdict.h"

#include <stdio.h>
#include <string.h>

static const char text[] = "case racy\nkind graph\n"
                           "stream s nonblocking 0\nstream t nonblocking 0\n"
                           "device a 4 0 0\n"
                           "do 0 A graphcreate g\n"
                           "do 0 B addkernel g - set a 1\n"
                           "do 0 C instantiate x g\n"
                           "do 0 D launch s x\n"
                           "do 0 E take p a:0:2 t\n"
                           "do 0 F kernel t set p 2\n"
                           "verdict race\n"
                           "race write-write D/B F a\n"
                           "race use-after-free D/B E p\n"
                           "outcome a=1\nend\n"
                           "case right\nkind stream\n"
                           "stream s nonblocking 0\ndevice a 4 0 0\n"
                           "do 0 A kernel s set a 1\n"
                           "verdict ok\noutcome a=1\nend\n"
                           "case asks\nkind query\n"
                           "stream s nonblocking 0\npinned a 4 0\n"
                           "do 0 A kernel s set a 1\n"
                           "do 0 Q streamquery s\n"
                           "do 0 B hostwrite a 2\n"
                           "verdict race\nrace write-write A B a\n"
                           "outcome a=1 Q=0\nend\n";
enum { RACY, RIGHT, ASKS };
enum { OPERATION_A, OPERATION_B, OPERATION_C, OPERATION_D, OPERATION_E, OPERATION_F };

static struct litmus_file file;

static const struct litmus_race data_race = {.kind = LITMUS_RACE_WRITE_WRITE,
                                             .sides = {{OPERATION_B, OPERATION_D},
                                                       {OPERATION_F, -1}},
                                             .buffer = 0,
                                             .block = -1};
static const struct litmus_race block_race = {.kind = LITMUS_RACE_USE_AFTER_FREE,
                                              .sides = {{OPERATION_B, OPERATION_D},
                                                        {OPERATION_E, -1}},
                                              .buffer = -1,
                                              .block = 0};

static bool is_right(int index, const struct litmus_race *races, int count, int *wrong) {
    struct litmus_result result = {.races_judged = true, .race_count = count};
    for (int i = 0; i < count && i < LITMUS_RACE_COUNT_MAX; ++i)
        result.races[i] = races[i];
    return litmus_verdict_is_right(&file.cases[index], &file.cases[index].expectations[0], &result,
                                   wrong);
}

static int found(const struct litmus_race *race) {
    return litmus_race_find(&file.cases[RACY].expectations[0], race);
}

static void race_is_found_whichever_side_comes_first(void) {
    BASE_CHECK_EQ(found(&data_race), 0);
    BASE_CHECK_EQ(found(&block_race), 1);
    struct litmus_race swapped = data_race;
    swapped.sides[0] = data_race.sides[1];
    swapped.sides[1] = data_race.sides[0];
    BASE_CHECK_EQ(found(&swapped), 0);
}

static void race_that_differs_in_anything_is_none(void) {
    struct litmus_race other = data_race;
    other.kind = LITMUS_RACE_READ_WRITE;
    BASE_CHECK_EQ(found(&other), -1);
    other = data_race;
    other.buffer = -1;
    other.block = 0;
    BASE_CHECK_EQ(found(&other), -1);
    other = data_race;
    other.sides[0].launch = -1; // the captured call, not its replay
    BASE_CHECK_EQ(found(&other), -1);
    other = data_race;
    other.sides[1].operation = OPERATION_E;
    BASE_CHECK_EQ(found(&other), -1);
    other = data_race;
    other.sides[1] = other.sides[0];
    BASE_CHECK_EQ(found(&other), -1);
    other.kind = LITMUS_RACE_KIND_COUNT;
    BASE_CHECK_EQ(found(&other), -1);
}

static void one_listed_race_is_enough_and_none_else_may_be_there(void) {
    struct litmus_race races[3] = {data_race, block_race, data_race};
    int wrong;
    BASE_CHECK(is_right(RACY, races, 1, &wrong));
    BASE_CHECK(is_right(RACY, races, 3, &wrong));
    BASE_CHECK(!is_right(RACY, NULL, 0, &wrong));
    BASE_CHECK_EQ(wrong, -1);
    races[1].block = -1;
    BASE_CHECK(!is_right(RACY, races, 3, &wrong));
    BASE_CHECK_EQ(wrong, 1);
}

static void more_reports_than_were_kept_are_wrong(void) {
    struct litmus_race races[LITMUS_RACE_COUNT_MAX + 1];
    int wrong;
    for (int i = 0; i <= LITMUS_RACE_COUNT_MAX; ++i)
        races[i] = data_race;
    BASE_CHECK(is_right(RACY, races, LITMUS_RACE_COUNT_MAX, &wrong));
    BASE_CHECK(!is_right(RACY, races, LITMUS_RACE_COUNT_MAX + 1, &wrong));
}

static void any_report_about_a_right_case_is_wrong(void) {
    struct litmus_race race = {.kind = LITMUS_RACE_WRITE_WRITE,
                               .sides = {{OPERATION_A, -1}, {OPERATION_A, -1}},
                               .block = -1};
    int wrong;
    BASE_CHECK(is_right(RIGHT, NULL, 0, &wrong));
    BASE_CHECK(!is_right(RIGHT, &race, 1, &wrong));
    BASE_CHECK_EQ(wrong, 0);
}

static void case_that_asks_need_not_race_in_every_run(void) {
    struct litmus_race race = {.kind = LITMUS_RACE_WRITE_WRITE,
                               .sides = {{0, -1}, {2, -1}},
                               .block = -1};
    int wrong;
    BASE_CHECK(litmus_case_asks(&file.cases[ASKS]));
    BASE_CHECK(!litmus_case_asks(&file.cases[RACY]));
    BASE_CHECK(is_right(ASKS, NULL, 0, &wrong));
    BASE_CHECK(is_right(ASKS, &race, 1, &wrong));
    race.kind = LITMUS_RACE_READ_WRITE;
    BASE_CHECK(!is_right(ASKS, &race, 1, &wrong));
}

static void race_is_written_as_a_race_line(void) {
    char written[LITMUS_RACE_TEXT_SIZE];
    litmus_race_format(&file.cases[RACY], &data_race, written);
    BASE_CHECK(strcmp(written, "write-write D/B F a") == 0);
    litmus_race_format(&file.cases[RACY], &block_race, written);
    BASE_CHECK(strcmp(written, "use-after-free D/B E p") == 0);
    const struct litmus_race lost = {.kind = LITMUS_RACE_KIND_COUNT,
                                     .sides = {{OPERATION_F, -1}, {-1, -1}},
                                     .buffer = -1,
                                     .block = -1};
    litmus_race_format(&file.cases[RACY], &lost, written);
    BASE_CHECK(strcmp(written, "unknown F - nowhere") == 0);
}

int main(void) {
    if (litmus_text_read("races.litmus", text, &file) != BASE_OK)
        fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(file.case_count, 3);
    race_is_found_whichever_side_comes_first();
    race_that_differs_in_anything_is_none();
    one_listed_race_is_enough_and_none_else_may_be_there();
    more_reports_than_were_kept_are_wrong();
    any_report_about_a_right_case_is_wrong();
    case_that_asks_need_not_race_in_every_run();
    race_is_written_as_a_race_line();
    litmus_file_deinit(&file);
    return 0;
}
