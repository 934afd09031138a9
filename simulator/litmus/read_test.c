// Reading litmus files: what the words mean, and what a mistake gets. Expected values are counted
// and computed by hand from the texts below, and from the files by grep.
#include "base/check.h"
#include "simulator/litmus/case.h"

#include <stdio.h>
#include <string.h>

#define HEAD          \
    "# litmus 1\n\n"  \
    "case one\n"      \
    "kind stream\n"   \
    "why a sentence of any length, however many words it may have, one, two, three, four, five, " \
    "six, seven, eight, nine, ten, eleven, twelve\n" \
    "stream s nonblocking 0\n" \
    "stream L legacy 1\n"      \
    "event e 1\n"              \
    "timeline T\n"             \
    "device a 8 1 3\n"         \
    "pinned h 4 ?\n"
#define TAIL "verdict ok\noutcome a=3\nend\n"

static struct litmus_file read_text(const char *text) {
    struct litmus_file file;
    const enum base_status status = litmus_text_read("x.litmus", text, &file);
    if (status != BASE_OK)
        fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return file;
}

static void declarations_are_read(void) {
    struct litmus_file file = read_text(HEAD "do 0 A kernel s nothing\n" TAIL);
    BASE_CHECK_EQ(file.case_count, 1);
    const struct litmus_case *one = &file.cases[0];
    BASE_CHECK(strcmp(one->name, "one") == 0 && strcmp(one->kind, "stream") == 0);
    BASE_CHECK_EQ(one->stream_count, 2);
    BASE_CHECK_EQ(one->streams[0].kind, LITMUS_STREAM_NONBLOCKING);
    BASE_CHECK_EQ(one->streams[1].kind, LITMUS_STREAM_LEGACY);
    BASE_CHECK_EQ(one->streams[1].device, 1);
    BASE_CHECK_EQ(one->event_count, 1);
    BASE_CHECK_EQ(one->events[0].device, 1);
    BASE_CHECK_EQ(one->timeline_count, 1);
    BASE_CHECK_EQ(one->buffer_count, 2);
    BASE_CHECK_EQ(one->buffers[0].memory, LITMUS_MEMORY_DEVICE);
    BASE_CHECK_EQ(one->buffers[0].size, 8);
    BASE_CHECK_EQ(one->buffers[0].device, 1);
    BASE_CHECK_EQ(one->buffers[0].initial, 3);
    BASE_CHECK_EQ(one->buffers[1].memory, LITMUS_MEMORY_PINNED);
    BASE_CHECK_EQ(one->buffers[1].initial, LITMUS_UNDEFINED);
    litmus_file_deinit(&file);
}

static void strided_bytes_lie_where_the_format_says(void) {
    struct litmus_file file =
        read_text(HEAD "do 1 A kernel s copy a:1:2:3:2 h + set a:7:1 9 + nothing\n" TAIL);
    const struct litmus_operation *operation = &file.cases[0].operations[0];
    BASE_CHECK_EQ(operation->thread, 1);
    BASE_CHECK_EQ(operation->verb, LITMUS_VERB_KERNEL);
    BASE_CHECK_EQ(operation->effect.step_count, 2);
    const struct litmus_step *step = &operation->effect.steps[0];
    BASE_CHECK_EQ(step->kind, LITMUS_STEP_ADD);
    BASE_CHECK_EQ(step->value, 0);
    BASE_CHECK_EQ(litmus_bytes_count(&step->to), 4);
    static const int places[4] = {1, 2, 4, 5};
    for (int i = 0; i < 4; ++i)
        BASE_CHECK_EQ(litmus_bytes_at(&step->to, i), places[i]);
    BASE_CHECK_EQ(step->from[0].buffer, 1);
    BASE_CHECK_EQ(operation->effect.steps[1].value, 9);
    litmus_file_deinit(&file);
}

static void block_names_the_bytes_that_it_was_taken_over(void) {
    struct litmus_file file = read_text(HEAD "do 0 A take p a:4:4 s\n"
                                             "do 0 B kernel s set p:1:2 5\n"
                                             "do 0 C give p\n"
                                             "do 0 D take p a:0:2 s\n"
                                             "do 0 E kernel s set p 6\n" TAIL);
    const struct litmus_operation *operations = file.cases[0].operations;
    BASE_CHECK_EQ(operations[1].effect.steps[0].to.buffer, 0);
    BASE_CHECK_EQ(litmus_bytes_at(&operations[1].effect.steps[0].to, 0), 5);
    BASE_CHECK_EQ(litmus_bytes_at(&operations[1].effect.steps[0].to, 1), 6);
    BASE_CHECK_EQ(litmus_bytes_at(&operations[4].effect.steps[0].to, 0), 0);
    BASE_CHECK_EQ(litmus_bytes_count(&operations[4].effect.steps[0].to), 2);
    litmus_file_deinit(&file);
}

static void guards_returns_and_outcomes_are_read(void) {
    struct litmus_file file = read_text(HEAD "do 0 Q eventquery e\n"
                                             "do 0 R hostread h if Q\n"
                                             "do 0 W hostread h ifnot Q\n"
                                             "verdict race\n"
                                             "race read-write Q R h\n"
                                             "return W 400\n"
                                             "outcome a=1*3,?*5 h=2 Q=600\n"
                                             "outcome -\nend\n");
    const struct litmus_case *one = &file.cases[0];
    BASE_CHECK_EQ(one->operations[0].guard, -1);
    BASE_CHECK_EQ(one->operations[1].guard, 0);
    BASE_CHECK(one->operations[1].guard_success && !one->operations[2].guard_success);
    BASE_CHECK_EQ(one->expectation_count, 1);
    const struct litmus_expectation *expectation = &one->expectations[0];
    BASE_CHECK(expectation->race && !expectation->outside_life);
    BASE_CHECK_EQ(expectation->return_count, 1);
    BASE_CHECK_EQ(expectation->returns[0].operation, 2);
    BASE_CHECK_EQ(expectation->returns[0].code, 400);
    BASE_CHECK_EQ(expectation->outcome_count, 2);
    BASE_CHECK(strcmp(expectation->outcomes[0].text, "a=1*3,?*5 h=2 Q=600") == 0);
    const struct litmus_content *contents = expectation->outcomes[0].contents;
    BASE_CHECK_EQ(expectation->outcomes[0].content_count, 3);
    BASE_CHECK_EQ(contents[0].count, 8);
    BASE_CHECK_EQ(contents[0].values[2], 1);
    BASE_CHECK_EQ(contents[0].values[3], LITMUS_UNDEFINED);
    BASE_CHECK_EQ(contents[1].count, 1);
    BASE_CHECK_EQ(contents[2].operation, 0);
    BASE_CHECK_EQ(contents[2].values[0], 600);
    BASE_CHECK_EQ(expectation->outcomes[1].content_count, 0);
    litmus_file_deinit(&file);
}

static void readings_each_have_their_expectation(void) {
    struct litmus_file file = read_text(HEAD "do 0 A free h\n"
                                             "reading free=wait\nverdict ok\noutcome -\n"
                                             "reading free=strict\nverdict race\n"
                                             "race use-after-free A A h\noutcome -\nend\n");
    const struct litmus_case *one = &file.cases[0];
    BASE_CHECK_EQ(one->expectation_count, 2);
    BASE_CHECK(strcmp(one->expectations[1].reading, "free") == 0);
    BASE_CHECK(strcmp(one->expectations[1].reading_value, "strict") == 0);
    BASE_CHECK(!one->expectations[0].outside_life && one->expectations[1].outside_life);
    litmus_file_deinit(&file);
}

static void capture_and_graphs_are_read(void) {
    struct litmus_file file = read_text(HEAD "do 0 A begin s thread\n"
                                             "do 0 B exchange relaxed\n"
                                             "do 0 C status s\n"
                                             "do 0 D end s g\n"
                                             "do 0 E graphcreate k\n"
                                             "do 0 F addkernel k - set a 1\n"
                                             "do 0 G addkernel k - nothing\n"
                                             "do 0 H addkernel k F,G set a:0:2 2\n"
                                             "do 0 I instantiate x g\n"
                                             "do 0 J instantiate y k\n"
                                             "do 0 K launch s y\n"
                                             "do 0 M execdestroy x\n"
                                             "do 0 N graphdestroy k\n" TAIL);
    const struct litmus_case *one = &file.cases[0];
    const struct litmus_operation *operations = one->operations;
    BASE_CHECK_EQ(operations[0].mode, LITMUS_MODE_THREAD);
    BASE_CHECK_EQ(operations[1].mode, LITMUS_MODE_RELAXED);
    BASE_CHECK_EQ(operations[2].verb, LITMUS_VERB_STATUS);
    BASE_CHECK_EQ(one->graph_count, 2);
    BASE_CHECK_EQ(one->exec_count, 2);
    BASE_CHECK_EQ(operations[3].graph, 0);
    BASE_CHECK_EQ(operations[5].graph, 1);
    BASE_CHECK_EQ(operations[5].dependency_count, 0);
    BASE_CHECK_EQ(operations[7].dependency_count, 2);
    BASE_CHECK_EQ(operations[7].dependencies[0], 5);
    BASE_CHECK_EQ(operations[7].dependencies[1], 6);
    BASE_CHECK_EQ(operations[7].effect.steps[0].value, 2);
    BASE_CHECK_EQ(operations[9].graph, 1);
    BASE_CHECK_EQ(operations[10].exec, 1);
    BASE_CHECK_EQ(operations[11].exec, 0);
    BASE_CHECK_EQ(operations[12].graph, 1);
    litmus_file_deinit(&file);
}

static void races_name_operations_nodes_buffers_and_blocks(void) {
    struct litmus_file file = read_text(HEAD "do 0 A begin s global\n"
                                             "do 0 B kernel s set a 1\n"
                                             "do 0 C end s g\n"
                                             "do 0 D instantiate x g\n"
                                             "do 0 E launch s x\n"
                                             "do 0 F take p a:0:4 s\n"
                                             "do 0 G give p\n"
                                             "verdict race\n"
                                             "race use-after-free E/B F p\n"
                                             "race uninitialised B - a\n"
                                             "outcome -\nend\n");
    const struct litmus_expectation *expectation = &file.cases[0].expectations[0];
    BASE_CHECK_EQ(file.cases[0].operations[6].block, 0);
    BASE_CHECK_EQ(expectation->race_count, 2);
    const struct litmus_race *races = expectation->races;
    BASE_CHECK_EQ(races[0].kind, LITMUS_RACE_USE_AFTER_FREE);
    BASE_CHECK_EQ(races[0].sides[0].operation, 1);
    BASE_CHECK_EQ(races[0].sides[0].launch, 4);
    BASE_CHECK_EQ(races[0].sides[1].operation, 5);
    BASE_CHECK_EQ(races[0].sides[1].launch, -1);
    BASE_CHECK_EQ(races[0].buffer, -1);
    BASE_CHECK_EQ(races[0].block, 0);
    BASE_CHECK_EQ(races[1].kind, LITMUS_RACE_UNINITIALISED);
    BASE_CHECK_EQ(races[1].sides[1].operation, -1);
    BASE_CHECK_EQ(races[1].buffer, 0);
    BASE_CHECK_EQ(races[1].block, -1);
    litmus_file_deinit(&file);
}

static void mistake_is_named_with_its_line(void) {
    static const struct {
        const char *text, *sentence;
    } mistakes[] = {
        {"kind stream\n", "x.litmus:1: \"kind\" outside a case: want \"case NAME\""},
        {"case a\nkind stream\n", "x.litmus:3: the case \"a\" of line 1 has no \"end\""},
        {HEAD "do 0 A kernel t nothing\n" TAIL, "x.litmus:12: \"t\": no stream of this name"},
        {HEAD "do 0 A kernel s sit a 1\n" TAIL,
         "x.litmus:12: effect \"sit\": want set, copy, add, sum, atomic, read or nothing"},
        {HEAD "do 0 A kernel s set a:7:2 1\n" TAIL, "x.litmus:12: \"a:7:2\": ends at byte 9 of 8"},
        {HEAD "do 0 A kernel s set a 256\n" TAIL,
         "x.litmus:12: \"256\": want a byte, a number from 0 to 255"},
        {HEAD "do 2 A kernel s nothing\n" TAIL,
         "x.litmus:12: \"2\": want a thread, a number from 0 to 1"},
        {HEAD "do 0 A jump s\n" TAIL, "x.litmus:12: unknown verb \"jump\""},
        {HEAD "do 0 A record e\n" TAIL, "x.litmus:12: \"record\" wants 2 words behind it"},
        {HEAD "do 0 A hostread a\n" TAIL, "x.litmus:12: the host cannot touch device memory"},
        {HEAD "do 0 A hostread h if B\n" TAIL,
         "x.litmus:12: \"if B\": no earlier operation has this label"},
        {HEAD "do 0 A memcpyasync s a h\n" TAIL, "x.litmus:12: a copy of 4 bytes to 8"},
        {HEAD "do 0 A begin s eager\n" TAIL,
         "x.litmus:12: mode \"eager\": want global, thread, relaxed or bad"},
        {HEAD "do 0 A instantiate x g\n" TAIL, "x.litmus:12: \"g\": no graph of this name"},
        {HEAD "do 0 A launch s x\n" TAIL, "x.litmus:12: \"x\": no executable of this name"},
        {HEAD "do 0 A graphcreate g\ndo 0 B addkernel g A nothing\n" TAIL,
         "x.litmus:13: \"A\": no node of this graph has this label"},
        {HEAD "do 0 A kernel s nothing\nverdict race\nrace write-write A B a\n",
         "x.litmus:14: race \"B\": no operation has this label"},
        {HEAD "do 0 A kernel s nothing\nverdict race\nrace write-write A/C A a\n",
         "x.litmus:14: race \"A/C\": no operation has this label"},
        {HEAD "do 0 A kernel s nothing\nverdict race\nrace write-write A A c\n",
         "x.litmus:14: race in \"c\": no buffer or block of this name"},
        {HEAD "do 0 A kernel s nothing\nverdict ok\nrace write-write A A a\n",
         "x.litmus:14: a race behind the verdict ok"},
        {HEAD "do 0 A kernel s nothing\ndo 0 A kernel s nothing\n" TAIL,
         "x.litmus:13: the label \"A\" occurs twice"},
        {HEAD "device a 2 0 0\n", "x.litmus:12: \"a\" is declared twice"},
        {HEAD "device b 17 0 0\n",
         "x.litmus:12: \"17\": want a size in bytes, a number from 1 to 16"},
        {HEAD "do 0 A kernel s nothing\nverdict maybe\n",
         "x.litmus:13: verdict \"maybe\": want ok or race"},
        {HEAD "do 0 A kernel s nothing\nverdict ok\noutcome b=1\n",
         "x.litmus:14: outcome \"b=1\": no buffer or operation of this name"},
        {HEAD "do 0 A kernel s nothing\nverdict ok\noutcome a=1*3\n",
         "x.litmus:14: outcome \"a=1*3\": 3 bytes, the buffer has 8"},
        {HEAD "do 0 A kernel s nothing\nverdict ok\nend\n",
         "x.litmus:14: the case \"one\" ends without a line \"outcome\""},
        {HEAD "do 0 A kernel s nothing\n" TAIL "case one\n",
         "x.litmus:16: a second case \"one\"; the first is in line 3"},
        {HEAD "surprise\n", "x.litmus:12: unknown keyword \"surprise\""},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
        struct litmus_file file;
        BASE_CHECK_EQ(litmus_text_read("x.litmus", mistakes[i].text, &file), BASE_FORMAT);
        if (strcmp(base_status_message(), mistakes[i].sentence) != 0)
            fprintf(stderr, "said:   %s\nwanted: %s\n", base_status_message(),
                    mistakes[i].sentence);
        BASE_CHECK(strcmp(base_status_message(), mistakes[i].sentence) == 0);
    }
}

static void missing_file_is_an_error_of_its_own(void) {
    struct litmus_file file;
    BASE_CHECK_EQ(litmus_file_read("no/such.litmus", &file), BASE_IO);
}

// Any text either reads or is refused: none may crash. Each byte of a good case in turn becomes
// another one, and the text is cut at each place.
static void damaged_text_is_read_or_refused(void) {
    static const char good[] = HEAD "do 0 A take p a:4:4 s\n"
                                    "do 0 B kernel s set p:1:2 5 + sum a a a\n"
                                    "do 0 Q eventquery e\n"
                                    "do 0 C malloc q 2 0 if Q\n"
                                    "do 0 D graphcreate g\n"
                                    "do 0 E addkernel g - nothing\n"
                                    "do 0 F addkernel g E set p 1\n"
                                    "do 0 G instantiate x g\n"
                                    "do 0 H launch s x\n"
                                    "verdict race\nrace read-write H/F B p\n"
                                    "outcome a=1*3,?*5 Q=0\nend\n";
    static const char replacements[] = " \n:=*9?x";
    char text[sizeof good];
    struct litmus_file file;
    for (size_t i = 0; i + 1 < sizeof good; ++i) {
        for (size_t k = 0; k + 1 < sizeof replacements; ++k) {
            memcpy(text, good, sizeof good);
            text[i] = replacements[k];
            if (litmus_text_read("x.litmus", text, &file) == BASE_OK)
                litmus_file_deinit(&file);
        }
        memcpy(text, good, sizeof good);
        text[i] = '\0';
        if (litmus_text_read("x.litmus", text, &file) == BASE_OK)
            litmus_file_deinit(&file);
    }
}

int main(void) {
    declarations_are_read();
    strided_bytes_lie_where_the_format_says();
    block_names_the_bytes_that_it_was_taken_over();
    guards_returns_and_outcomes_are_read();
    readings_each_have_their_expectation();
    capture_and_graphs_are_read();
    races_name_operations_nodes_buffers_and_blocks();
    mistake_is_named_with_its_line();
    missing_file_is_an_error_of_its_own();
    damaged_text_is_read_or_refused();
    return 0;
}
