// What text becomes that came from a stranger's file.
#include "base/text.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static void expect_clean(const char *text, const char *expected) {
    char copy[256];
    BASE_CHECK(strlen(text) < sizeof copy);
    strcpy(copy, text);
    base_text_clean(copy);
    base_check_context("'%s' became '%s'", text, copy);
    BASE_CHECK_EQ(strcmp(copy, expected), 0);
    base_check_context(NULL);
}

static void readable_text_stays(void) {
    expect_clean("", "");
    expect_clean("gpt2 (50 %), \"a\\b\" <c>", "gpt2 (50 %), \"a\\b\" <c>");
    expect_clean("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    expect_clean("\xc2\xa0", "\xc2\xa0");
}

static void control_characters_go(void) {
    expect_clean("two\nlines\r\n", "two?lines??");
    expect_clean("\x1b[31mred\x7f\t", "?[31mred??");
    expect_clean("\xc2\x9b" "31m", "??31m");
}

static void bytes_that_are_no_utf8_go(void) {
    expect_clean("a\xff" "b\x80", "a?b?");
    expect_clean("\xc3", "?");                     // cut
    expect_clean("\xe2\x82", "??");                // cut
    expect_clean("\xc0\xaf", "??");                // overlong
    expect_clean("\xed\xa0\x80", "???");           // a surrogate
    expect_clean("\xf4\x90\x80\x80", "????");      // beyond the last one
    expect_clean("\xf8\x88\x80\x80\x80", "?????"); // five bytes
}

static void length_looks_no_further_than_told(void) {
    BASE_CHECK_EQ(base_utf8_length("\xe2\x82\xac", 3), 3);
    BASE_CHECK_EQ(base_utf8_length("\xe2\x82\xac", 2), 0);
    BASE_CHECK_EQ(base_utf8_length("a", 0), 0);
    BASE_CHECK_EQ(base_utf8_length("", 1), 1);
}

int main(void) {
    readable_text_stays();
    control_characters_go();
    bytes_that_are_no_utf8_go();
    length_looks_no_further_than_told();
    return 0;
}
