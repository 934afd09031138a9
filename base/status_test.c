// Statuses: sentences, prefixes, names and exit codes.
#include "base/status.h"

#include "base/check.h"
#include "base/thread.h"

#include <string.h>

static void sentence_is_formatted_and_the_status_returned(void) {
    BASE_CHECK_EQ(base_status_set(BASE_IO, "cannot read %s: %d bytes", "a.tmt", 17), BASE_IO);
    BASE_CHECK_EQ(strcmp(base_status_message(), "cannot read a.tmt: 17 bytes"), 0);
}

static void prefixes_stack_up_from_the_inside(void) {
    (void)base_status_set(BASE_FORMAT, "opcode 0x63 is refused");
    (void)base_status_prefix(BASE_FORMAT, "byte %d", 17);
    BASE_CHECK_EQ(base_status_prefix(BASE_FORMAT, "%s", "a.pickle"), BASE_FORMAT);
    BASE_CHECK_EQ(strcmp(base_status_message(), "a.pickle: byte 17: opcode 0x63 is refused"), 0);
}

static void sentence_may_quote_the_one_before(void) {
    (void)base_status_set(BASE_IO, "disk full");
    (void)base_status_set(BASE_IO, "gave up (%s)", base_status_message());
    BASE_CHECK_EQ(strcmp(base_status_message(), "gave up (disk full)"), 0);
}

static void longest_sentence_is_cut_not_overrun(void) {
    static char text[3 * BASE_STATUS_MESSAGE_SIZE];
    memset(text, 'x', sizeof text - 1);
    (void)base_status_set(BASE_IO, "%s", text);
    BASE_CHECK_EQ(strlen(base_status_message()), BASE_STATUS_MESSAGE_SIZE - 1);
    (void)base_status_prefix(BASE_IO, "file");
    BASE_CHECK_EQ(strlen(base_status_message()), BASE_STATUS_MESSAGE_SIZE - 1);
    BASE_CHECK_EQ(strncmp(base_status_message(), "file: xxx", 9), 0);
    (void)base_status_prefix(BASE_IO, "%s", text);
    BASE_CHECK_EQ(strlen(base_status_message()), BASE_STATUS_MESSAGE_SIZE - 1);
}

static void other_thread(void *argument) {
    (void)argument;
    BASE_CHECK_EQ(base_status_message()[0], 0);
    (void)base_status_set(BASE_LIMIT, "theirs");
}

static void sentence_is_one_line_whatever_it_quotes(void) {
    (void)base_status_set(BASE_IO, "cannot read %s", "a\nb\x1b[2J\xff.tmt");
    BASE_CHECK_EQ(strcmp(base_status_message(), "cannot read a?b?[2J?.tmt"), 0);
    (void)base_status_prefix(BASE_IO, "%s", "c\td");
    BASE_CHECK_EQ(strcmp(base_status_message(), "c?d: cannot read a?b?[2J?.tmt"), 0);
}

static void each_thread_has_its_own_sentence(void) {
    (void)base_status_set(BASE_IO, "ours");
    struct base_thread thread;
    base_thread_start(&thread, other_thread, NULL);
    base_thread_join(&thread);
    BASE_CHECK_EQ(strcmp(base_status_message(), "ours"), 0);
}

static void names_texts_and_exit_codes_follow_the_list(void) {
    BASE_CHECK_EQ(strcmp(base_status_name(BASE_OK), "OK"), 0);
    BASE_CHECK_EQ(base_status_exit_code(BASE_OK), 0);
    BASE_CHECK_EQ(strcmp(base_status_name(BASE_OUT_OF_MEMORY), "OUT_OF_MEMORY"), 0);
    BASE_CHECK_EQ(strcmp(base_status_text(BASE_OUT_OF_MEMORY), "out of device memory"), 0);
    BASE_CHECK_EQ(base_status_exit_code(BASE_OUT_OF_MEMORY), 1);
    BASE_CHECK_EQ(base_status_exit_code(BASE_FORMAT), 2);
    BASE_CHECK_EQ(base_status_exit_code(BASE_ENVIRONMENT), 3);
    BASE_CHECK_EQ(strcmp(base_status_name(BASE_INTERRUPTED), "INTERRUPTED"), 0);
    BASE_CHECK_EQ(base_status_exit_code(BASE_INTERRUPTED), 130);
}

static void unknown_values_are_named_as_such(void) {
    // Through an int, as a value from a library of another version would come.
    const int beyond = BASE_INTERRUPTED + 1;
    BASE_CHECK_EQ(strcmp(base_status_name((enum base_status)beyond), "UNKNOWN"), 0);
    BASE_CHECK_EQ(base_status_exit_code((enum base_status)beyond), 1);
    BASE_CHECK(base_status_text((enum base_status)beyond) != NULL);
}

int main(void) {
    BASE_CHECK_EQ(strcmp(base_status_message(), ""), 0);
    sentence_is_formatted_and_the_status_returned();
    prefixes_stack_up_from_the_inside();
    sentence_may_quote_the_one_before();
    longest_sentence_is_cut_not_overrun();
    sentence_is_one_line_whatever_it_quotes();
    each_thread_has_its_own_sentence();
    names_texts_and_exit_codes_follow_the_list();
    unknown_values_are_named_as_such();
    return 0;
}
