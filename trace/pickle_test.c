// The pickle machine: what it reads, what it refuses, and that nothing a file claims costs
// anything.
#include "trace/pickle_testing.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

#define PAYLOAD(literal) literal, sizeof(literal) - 1

static void every_data_opcode_is_read(void) {
    static const struct {
        const char *bytes;
        size_t size;
    } payloads[] = {
        {PAYLOAD("N")},
        {PAYLOAD("\x88")},
        {PAYLOAD("\x89")},
        {PAYLOAD("K\xff")},
        {PAYLOAD("M\xff\xff")},
        {PAYLOAD("J\xff\xff\xff\xff")},
        {PAYLOAD("I01\n")},
        {PAYLOAD("I-17\n")},
        {PAYLOAD("L123456789012345678901234567890L\n")},
        {PAYLOAD("\x8a\x00")},
        {PAYLOAD("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00")},
        {PAYLOAD("\x8a\x0c"
                 "abcdefghijkl")},
        {PAYLOAD("\x8b\x03\x00\x00\x00"
                 "abc")},
        {PAYLOAD("F-1.5e300\n")},
        {PAYLOAD("G?\xf0\x00\x00\x00\x00\x00\x00")},
        {PAYLOAD("S'text'\n")},
        {PAYLOAD("T\x03\x00\x00\x00"
                 "abc")},
        {PAYLOAD("U\x03"
                 "abc")},
        {PAYLOAD("Vtext \\u00e9 \\U0001f600 \xe9\n")},
        {PAYLOAD("X\x03\x00\x00\x00"
                 "abc")},
        {PAYLOAD("\x8c\x03"
                 "abc")},
        {PAYLOAD("\x8d\x03\x00\x00\x00\x00\x00\x00\x00"
                 "abc")},
        {PAYLOAD("B\x03\x00\x00\x00"
                 "abc")},
        {PAYLOAD("C\x03"
                 "abc")},
        {PAYLOAD("\x8e\x03\x00\x00\x00\x00\x00\x00\x00"
                 "abc")},
        {PAYLOAD("\x96\x03\x00\x00\x00\x00\x00\x00\x00"
                 "abc")},
        {PAYLOAD("]")},
        {PAYLOAD("](K\1e")},
        {PAYLOAD("]K\1a")},
        {PAYLOAD("(l")},
        {PAYLOAD("(lK\1aK\2a")},
        {PAYLOAD("(K\1K\2l")},
        {PAYLOAD("}")},
        {PAYLOAD("}(K\1K\2u")},
        {PAYLOAD("}K\1K\2s")},
        {PAYLOAD("(d")},
        {PAYLOAD("(dK\1K\2sK\3K\4s")},
        {PAYLOAD("(K\1K\2d")},
        {PAYLOAD(")")},
        {PAYLOAD("(t")},
        {PAYLOAD("(K\1K\2t")},
        {PAYLOAD("K\1\x85")},
        {PAYLOAD("K\1K\1\x86")},
        {PAYLOAD("K\1K\1K\1\x87")},
        {PAYLOAD("\x8f")},
        {PAYLOAD("\x8f(K\1K\2\x90")},
        {PAYLOAD("(K\1K\2\x91")},
        {PAYLOAD("K\1K\2"
                 "0")},
        {PAYLOAD("K\1((0"
                 "0")},
        {PAYLOAD("K\1(K\2K\3"
                 "1")},
        {PAYLOAD("K\1"
                 "2\x86")},
        {PAYLOAD("]\x94"
                 "0h\0")},
        {PAYLOAD("]q\5"
                 "0h\5")},
        {PAYLOAD("]r\5\0\0\0"
                 "0j\5\0\0\0")},
        {PAYLOAD("(lp5\n0g5\n")},
        {PAYLOAD("\x95\x00\x00\x00\x00\x00\x00\x00\x00N")},
        {PAYLOAD("\x80\x05N")},
    };
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct pickle_test test = {0};
        struct trace *trace;
        pickle_test_begin(&test);
        pickle_test_add(&test, payloads[i].bytes, payloads[i].size);
        pickle_test_end(&test);
        base_check_context("payload %zu: %s", i, base_status_message());
        BASE_CHECK_EQ(pickle_test_read(&test, 0, &trace), BASE_OK);
        trace_destroy(trace);
        BASE_CHECK_EQ(pickle_test_read_gzip(&test, &trace), BASE_OK);
        trace_destroy(trace);
        pickle_test_free(&test);
    }
    base_check_context(NULL);
}

static void every_code_opcode_is_refused_by_name_and_offset(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *name;
    } cases[] = {
        {PAYLOAD("cos\nsystem\n"), "GLOBAL"},
        {PAYLOAD("\x93"), "STACK_GLOBAL"},
        {PAYLOAD("R"), "REDUCE"},
        {PAYLOAD("b"), "BUILD"},
        {PAYLOAD("ios\nsystem\n"), "INST"},
        {PAYLOAD("o"), "OBJ"},
        {PAYLOAD("\x81"), "NEWOBJ"},
        {PAYLOAD("\x92"), "NEWOBJ_EX"},
        {PAYLOAD("\x82\1"), "EXT1"},
        {PAYLOAD("\x83\1\0"), "EXT2"},
        {PAYLOAD("\x84\1\0\0\0"), "EXT4"},
        {PAYLOAD("Pname\n"), "PERSID"},
        {PAYLOAD("Q"), "BINPERSID"},
        {PAYLOAD("\x97"), "NEXT_BUFFER"},
        {PAYLOAD("\x98"), "READONLY_BUFFER"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pickle_test test = {0};
        pickle_test_begin(&test);
        char name[64], place[64];
        snprintf(name, sizeof name, "opcode %s at", cases[i].name);
        snprintf(place, sizeof place, " byte %zu:", test.size);
        pickle_test_add(&test, cases[i].bytes, cases[i].size);
        pickle_test_end(&test);
        pickle_test_check_refused(&test, BASE_FORMAT, name, place);
        pickle_test_free(&test);
    }
}

static void bytes_that_are_no_opcode_are_refused_by_offset(void) {
    static const char data[] =
        "().012FIJKLMNSTUVXadeghjlpqrstuGBC}]\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
        "\x90\x91\x94\x95\x96";
    static const char code[] = "PQRbcio\x81\x82\x83\x84\x92\x93\x97\x98";
    size_t unknown = 0;
    for (int byte = 0; byte < 256; byte++) {
        if (memchr(data, byte, sizeof data - 1) != NULL ||
            memchr(code, byte, sizeof code - 1) != NULL)
            continue;
        struct pickle_test test = {0};
        pickle_test_begin(&test);
        char place[64];
        snprintf(place, sizeof place, "byte %zu (0x%02x)", test.size, byte);
        unsigned char opcode = (unsigned char)byte;
        pickle_test_add(&test, &opcode, 1);
        pickle_test_end(&test);
        pickle_test_check_refused(&test, BASE_FORMAT, place, "no pickle opcode");
        pickle_test_free(&test);
        unknown++;
    }
    BASE_CHECK_EQ(unknown, 256 - 68); // protocols 0 to 5 have 68 opcodes
}

// Every opcode with a length: 10 GB are claimed where a few bytes are.
static void claimed_lengths_of_ten_gigabytes_cost_nothing(void) {
    static const struct {
        const char *bytes;
        size_t size;
    } claims[] = {
        {PAYLOAD("T\xff\xff\xff\x7f"
                 "abc")},
        {PAYLOAD("X\xff\xff\xff\xff"
                 "abc")},
        {PAYLOAD("B\xff\xff\xff\xff"
                 "abc")},
        {PAYLOAD("\x8b\xff\xff\xff\x7f"
                 "abc")},
        {PAYLOAD("\x8b\xff\xff\xff\xff"
                 "abc")},
        {PAYLOAD("\x8d\x00\xe4\x0b\x54\x02\x00\x00\x00"
                 "abc")},
        {PAYLOAD("\x8e\x00\xe4\x0b\x54\x02\x00\x00\x00"
                 "abc")},
        {PAYLOAD("\x96\x00\xe4\x0b\x54\x02\x00\x00\x00"
                 "abc")},
        {PAYLOAD("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                 "abc")},
        {PAYLOAD("\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"
                 "abc")},
        {PAYLOAD("\x95\x00\xe4\x0b\x54\x02\x00\x00\x00N")},
        {PAYLOAD("\x8c\xff"
                 "abc")},
        {PAYLOAD("U\xff"
                 "abc")},
        {PAYLOAD("C\xff"
                 "abc")},
        {PAYLOAD("\x8a\xff"
                 "abc")},
    };
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct pickle_test test = {0};
        struct trace *trace;
        pickle_test_begin(&test);
        pickle_test_add(&test, claims[i].bytes, claims[i].size);
        pickle_test_end(&test);
        base_check_context("claim %zu", i);
        BASE_CHECK_EQ(pickle_test_read(&test, BASE_MIB, &trace), BASE_FORMAT);
        // A gzipped file's size is not known; a frame's length is then not looked at.
        bool is_frame = claims[i].bytes[0] == '\x95';
        BASE_CHECK_EQ(pickle_test_read_gzip(&test, &trace), is_frame ? BASE_OK : BASE_FORMAT);
        trace_destroy(trace);
        pickle_test_free(&test);
    }
    base_check_context(NULL);
}

static void refused(const char *bytes, size_t size, const char *part) {
    struct pickle_test test = {0};
    pickle_test_begin(&test);
    pickle_test_add(&test, bytes, size);
    pickle_test_end(&test);
    pickle_test_check_refused(&test, BASE_FORMAT, part, "byte ");
    pickle_test_free(&test);
}

static void cycles_are_refused(void) {
    refused(PAYLOAD("]\x94h\0a"), "cycle");
    refused(PAYLOAD("]\x94(h\0e"), "cycle");
    refused(PAYLOAD("}\x94K\1h\0s"), "cycle");
    refused(PAYLOAD("}\x94(K\1h\0u"), "cycle");
    refused(PAYLOAD("]\x94]\x94h\0aa"), "cycle");
    refused(PAYLOAD("]\x94K\1ah\0a"), "cycle");
    refused(PAYLOAD("\x8f\x94(h\0\x90"), "cycle");
    refused(PAYLOAD("]2(K\1e"), "cycle");        // filled through a copy of the reference
    refused(PAYLOAD("]\x94\x94(K\1e"), "cycle"); // known under two numbers
}

static void what_no_pickler_writes_is_refused(void) {
    refused(PAYLOAD("h\7"), "memo index 7 was never set");
    refused(PAYLOAD("]r\xfe\xff\xff\xff"), "memo index 4294967294 is beyond");
    refused(PAYLOAD("]r\xff\xff\xff\xff"), "memo index 4294967295 is beyond");
    refused(PAYLOAD("]p99999999999999999999\n"), "no memo index");
    refused(PAYLOAD("Nq\0Nq\0"), "second time");
    refused(PAYLOAD("]q\1]\x94"), "second time"); // MEMOIZE counts what is set
    refused(PAYLOAD("e"), "what it would fill is a dict");
    refused(PAYLOAD("(e"), "what it would fill is a string");
    refused(PAYLOAD("K\1(K\1e"), "what it would fill is an integer");
    refused(PAYLOAD("](K\1K\2u"), "what it would fill is a list");
    refused(PAYLOAD("}(K\1e"), "what it would fill is a dict");
    refused(PAYLOAD("}(K\1u"), "a key has no value");
    refused(PAYLOAD("}(]K\1u"), "used as a key");
    refused(PAYLOAD("}}K\1s"), "used as a key");
    refused(PAYLOAD("(K\1"), "what it would fill is a string");
    refused(PAYLOAD("000000"), "no value for it");
    refused(PAYLOAD("Iseven\n"), "no decimal integer");
    refused(PAYLOAD("I\n"), "no decimal integer");
    refused(PAYLOAD("F1.0.0\n"), "no number");
    refused(PAYLOAD("Sunquoted\n"), "not in quotes");
    refused(PAYLOAD("V\\u12\n"), "broken \\u escape");
    refused(PAYLOAD("\x80\x06N"), "protocol 6");
    refused(PAYLOAD("N."), "more than one value");
}

// A file of COUNT times OPEN, INNER, COUNT times CLOSE; too deep for any recursion.
static enum base_status read_nested(const char *open, const char *inner, const char *close,
                                    size_t count) {
    struct pickle_test test = {0};
    struct trace *trace;
    pickle_test_begin(&test);
    pickle_test_repeat(&test, open, count);
    pickle_test_repeat(&test, inner, 1);
    pickle_test_repeat(&test, close, count);
    pickle_test_end(&test);
    enum base_status status = pickle_test_read(&test, 0, &trace);
    trace_destroy(trace);
    pickle_test_free(&test);
    return status;
}

static void deep_nesting_takes_no_stack(void) {
    enum { DEPTH = 1000000, ENOUGH = 200000 }; // a stack of 8 MiB ends at 40 bytes a level
    BASE_CHECK_EQ(read_nested("](", "N", "e", DEPTH), BASE_OK);
    BASE_CHECK_EQ(read_nested("(", "N", "", DEPTH), BASE_FORMAT);
    BASE_CHECK_EQ(read_nested("]", "N", "a", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("}(K\1", "N", "u", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("}K\1", "N", "s", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("(", "N", "t", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("(", "N", "l", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("", "N", "\x85", ENOUGH), BASE_OK);
    BASE_CHECK_EQ(read_nested("N(", "", "10", ENOUGH), BASE_FORMAT);
}

static void memory_stays_within_the_limit(void) {
    static const char *const greedy[] = {"N", "(", "]", "]\x94", "}K\1K\1s"};
    for (size_t i = 0; i < sizeof greedy / sizeof *greedy; i++) {
        struct pickle_test test = {0};
        struct trace *trace;
        pickle_test_begin(&test);
        pickle_test_repeat(&test, greedy[i], 1200000 / strlen(greedy[i]));
        base_check_context("greedy %zu", i);
        BASE_CHECK_EQ(pickle_test_read(&test, 8 * BASE_MIB, &trace), BASE_LIMIT);
        BASE_CHECK(strstr(base_status_message(), "limit of 8 MiB") != NULL);
        pickle_test_free(&test);
    }
    base_check_context(NULL);
}

static void damaged_ends_are_refused(void) {
    struct pickle_test test = {0};
    pickle_test_check_refused(&test, BASE_FORMAT, "the file is empty", "");
    pickle_test_begin(&test);
    PICKLE_TEST_ADD(&test, "N");
    pickle_test_end(&test);
    PICKLE_TEST_ADD(&test, "more");
    pickle_test_check_refused(&test, BASE_FORMAT, "something follows", "byte");
    pickle_test_free(&test);
    pickle_test_repeat(&test, "{\"a\": 1}", 1);
    pickle_test_check_refused(&test, BASE_FORMAT, "begins with the byte 0x7b", "");
    pickle_test_free(&test);
    pickle_test_repeat(&test, "PK\3\4", 1);
    pickle_test_check_refused(&test, BASE_FORMAT, "zip", "");
    pickle_test_free(&test);
}

static void strings_beyond_the_window_are_passed_over(void) {
    struct pickle_test test = {0};
    struct trace *trace;
    pickle_test_begin(&test);
    PICKLE_TEST_ADD(&test, "X\x90\x5f\x01\x00");
    pickle_test_repeat(&test, "0123456789", 9000);
    pickle_test_end(&test);
    BASE_CHECK_EQ(pickle_test_read(&test, BASE_MIB, &trace), BASE_OK);
    trace_destroy(trace);
    pickle_test_free(&test);
}

int main(void) {
    every_data_opcode_is_read();
    every_code_opcode_is_refused_by_name_and_offset();
    bytes_that_are_no_opcode_are_refused_by_offset();
    claimed_lengths_of_ten_gigabytes_cost_nothing();
    cycles_are_refused();
    what_no_pickler_writes_is_refused();
    deep_nesting_takes_no_stack();
    memory_stays_within_the_limit();
    damaged_ends_are_refused();
    strings_beyond_the_window_are_passed_over();
    return 0;
}
