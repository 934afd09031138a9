// See pickle_write.h. One place reserves room in the frame, so an opcode never crosses a frame's
// end, as the protocol wants.
#include "trace/pickle_write.h"

#include "base/check.h"
#include "base/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The longest opcode but a text: LONG1 with nine bytes.
enum { OPCODE_SIZE_MAX = 16, FRAME_HEAD_SIZE = 9 };

static const char *const word_texts[] = {
#define WORD_TEXT(name, text) text,
    TRACE_PICKLE_WORD_LIST(WORD_TEXT)
#undef WORD_TEXT
};

static void write_bytes(struct trace_pickler *pickle, const void *bytes, size_t size) {
    if (pickle->error == 0 && fwrite(bytes, 1, size, pickle->file.stream) != size)
        pickle->error = errno;
    pickle->written_bytes += size;
}

static void write_little(unsigned char *out, uint64_t value, int width) {
    for (int i = 0; i < width; i++, value >>= 8) out[i] = (unsigned char)value;
}

static void frame_flush(struct trace_pickler *pickle) {
    if (pickle->frame_size == 0) return;
    unsigned char head[FRAME_HEAD_SIZE] = {0x95}; // FRAME
    write_little(head + 1, pickle->frame_size, 8);
    write_bytes(pickle, head, sizeof head);
    write_bytes(pickle, pickle->frame, pickle->frame_size);
    pickle->frame_size = 0;
}

static unsigned char *reserve(struct trace_pickler *pickle, size_t size) {
    if (pickle->frame_size + size > TRACE_PICKLE_FRAME_BYTES) frame_flush(pickle);
    return pickle->frame + pickle->frame_size;
}

static void opcode(struct trace_pickler *pickle, int code) {
    *reserve(pickle, 1) = (unsigned char)code;
    pickle->frame_size++;
}

static void opcode_number(struct trace_pickler *pickle, int code, uint64_t value, int width) {
    unsigned char *out = reserve(pickle, OPCODE_SIZE_MAX);
    out[0] = (unsigned char)code;
    write_little(out + 1, value, width);
    pickle->frame_size += 1 + (size_t)width;
}

static uint32_t memoize(struct trace_pickler *pickle) {
    opcode(pickle, 0x94); // MEMOIZE
    return pickle->memo_count++;
}

enum base_status trace__pickler_create(struct trace_pickler *pickle, const char *path) {
    *pickle = (struct trace_pickler){0};
    memset(pickle->word_memo, 0xff, sizeof pickle->word_memo);
    memset(pickle->action_memo, 0xff, sizeof pickle->action_memo);
    pickle->frame = malloc(TRACE_PICKLE_FRAME_BYTES);
    if (pickle->frame == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory to write %s", path);
    enum base_status status = base_file_create(&pickle->file, path);
    if (status != BASE_OK) {
        free(pickle->frame);
        return status;
    }
    write_bytes(pickle, "\x80\x04", 2); // PROTO 4
    return BASE_OK;
}

enum base_status trace__pickler_finish(struct trace_pickler *pickle) {
    opcode(pickle, '.'); // STOP
    frame_flush(pickle);
    enum base_status status = BASE_OK;
    if (base_interrupted())
        status =
            base_status_set(BASE_INTERRUPTED, "interrupted; %s was not written", pickle->file.path);
    else if (pickle->error != 0)
        status = base_status_set(BASE_IO, "cannot write %s: %s", pickle->file.path,
                                 strerror(pickle->error));
    if (status == BASE_OK)
        status = base_file_commit(&pickle->file);
    else
        base_file_abandon(&pickle->file);
    free(pickle->frame);
    return status;
}

void trace__pickler_abandon(struct trace_pickler *pickle) {
    base_file_abandon(&pickle->file);
    free(pickle->frame);
}

uint64_t trace__pickler_size(const struct trace_pickler *pickle) {
    return pickle->written_bytes + pickle->frame_size;
}

void trace__pickler_integer(struct trace_pickler *pickle, uint64_t value) {
    if (value <= UINT8_MAX) {
        opcode_number(pickle, 'K', value, 1); // BININT1
    } else if (value <= UINT16_MAX) {
        opcode_number(pickle, 'M', value, 2); // BININT2
    } else if (value <= INT32_MAX) {
        opcode_number(pickle, 'J', value, 4); // BININT
    } else {
        // LONG1: as many bytes as leave the sign bit clear.
        const int width = (64 - __builtin_clzll(value)) / 8 + 1;
        unsigned char *out = reserve(pickle, OPCODE_SIZE_MAX);
        out[0] = 0x8a;
        out[1] = (unsigned char)width;
        write_little(out + 2, value, width > 8 ? 8 : width);
        if (width > 8) out[10] = 0;
        pickle->frame_size += 2 + (size_t)width;
    }
}

void trace__pickler_signed(struct trace_pickler *pickle, int64_t value) {
    if (value >= 0) {
        trace__pickler_integer(pickle, (uint64_t)value);
    } else if (value >= INT32_MIN) {
        opcode_number(pickle, 'J', (uint64_t)value, 4); // BININT
    } else {
        unsigned char *out = reserve(pickle, OPCODE_SIZE_MAX);
        out[0] = 0x8a; // LONG1
        out[1] = 8;
        write_little(out + 2, (uint64_t)value, 8);
        pickle->frame_size += 10;
    }
}

void trace__pickler_number(struct trace_pickler *pickle, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    opcode_number(pickle, 'G', __builtin_bswap64(bits), 8); // BINFLOAT, big endian
}

void trace__pickler_bool(struct trace_pickler *pickle, bool value) {
    opcode(pickle, value ? 0x88 : 0x89);
}

void trace__pickler_refer(struct trace_pickler *pickle, uint32_t memo) {
    BASE_CHECK_LT(memo, pickle->memo_count);
    if (memo <= UINT8_MAX)
        opcode_number(pickle, 'h', memo, 1); // BINGET
    else
        opcode_number(pickle, 'j', memo, 4); // LONG_BINGET
}

void trace__pickler_text(struct trace_pickler *pickle, const char *text, uint32_t *memo) {
    if (memo != NULL && *memo != TRACE_PICKLE_UNKNOWN) {
        trace__pickler_refer(pickle, *memo);
        return;
    }
    const size_t length = strlen(text);
    BASE_CHECK_LE(length, UINT32_MAX);
    const bool is_short = length <= UINT8_MAX;
    const size_t head_size = is_short ? 2 : 5;
    unsigned char head[5] = {is_short ? 0x8c : 'X'}; // SHORT_BINUNICODE, BINUNICODE
    write_little(head + 1, length, (int)head_size - 1);
    if (head_size + length <= TRACE_PICKLE_FRAME_BYTES) {
        unsigned char *out = reserve(pickle, head_size + length);
        memcpy(out, head, head_size);
        memcpy(out + head_size, text, length);
        pickle->frame_size += head_size + length;
    } else { // longer than a frame: outside of frames, as the protocol has it
        frame_flush(pickle);
        write_bytes(pickle, head, head_size);
        write_bytes(pickle, text, length);
    }
    const uint32_t entry = memoize(pickle);
    if (memo != NULL) *memo = entry;
}

void trace__pickler_word(struct trace_pickler *pickle, enum trace_pickle_word word) {
    trace__pickler_text(pickle, word_texts[word], &pickle->word_memo[word]);
}

void trace__pickler_pair(struct trace_pickler *pickle, uint64_t first, uint64_t second,
                         uint32_t *memo) {
    if (*memo != TRACE_PICKLE_UNKNOWN) {
        trace__pickler_refer(pickle, *memo);
        return;
    }
    trace__pickler_integer(pickle, first);
    trace__pickler_integer(pickle, second);
    opcode(pickle, 0x86); // TUPLE2
    *memo = memoize(pickle);
}

static void container_begin(struct trace_pickler *pickle, int code) {
    opcode(pickle, code);
    memoize(pickle);
    opcode(pickle, '('); // MARK
}

void trace__pickler_dict_begin(struct trace_pickler *pickle) { container_begin(pickle, '}'); }
void trace__pickler_dict_end(struct trace_pickler *pickle) { opcode(pickle, 'u'); } // SETITEMS
void trace__pickler_list_begin(struct trace_pickler *pickle) { container_begin(pickle, ']'); }
void trace__pickler_list_end(struct trace_pickler *pickle) { opcode(pickle, 'e'); } // APPENDS

void trace__pickler_list_break(struct trace_pickler *pickle) {
    opcode(pickle, 'e');
    opcode(pickle, '(');
}

uint32_t trace__pickler_last_memo(const struct trace_pickler *pickle) {
    return pickle->memo_count - 1;
}
