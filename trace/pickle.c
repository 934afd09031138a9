// The opcode loop. Every opcode of protocols 0 to 5 stands in one list: with what it reads, or as
// one of those that would import, build or call something, which are refused.
#include "trace/pickle.h"

#include "trace/pickle_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// X(name, byte). The comment of CPython's Lib/pickle.py tells what each is for.
#define DATA_OPCODES(X)                                                                            \
    X(MARK, '(')                                                                                   \
    X(STOP, '.')                                                                                   \
    X(POP, '0')                                                                                    \
    X(POP_MARK, '1')                                                                               \
    X(DUP, '2')                                                                                    \
    X(FLOAT, 'F')                                                                                  \
    X(INT, 'I')                                                                                    \
    X(BININT, 'J') X(BININT1, 'K') X(LONG, 'L') X(BININT2, 'M') X(NONE, 'N') X(STRING, 'S')        \
        X(BINSTRING, 'T') X(SHORT_BINSTRING, 'U') X(UNICODE, 'V') X(BINUNICODE, 'X')               \
            X(APPEND, 'a') X(DICT, 'd') X(EMPTY_DICT, '}') X(APPENDS, 'e') X(GET, 'g')             \
                X(BINGET, 'h') X(LONG_BINGET, 'j') X(LIST, 'l') X(EMPTY_LIST, ']') X(PUT, 'p')     \
                    X(BINPUT, 'q') X(LONG_BINPUT, 'r') X(SETITEM, 's') X(TUPLE, 't')               \
                        X(EMPTY_TUPLE, ')') X(SETITEMS, 'u') X(BINFLOAT, 'G') X(PROTO, 0x80)       \
                            X(TUPLE1, 0x85) X(TUPLE2, 0x86) X(TUPLE3, 0x87) X(NEWTRUE, 0x88)       \
                                X(NEWFALSE, 0x89) X(LONG1, 0x8a) X(LONG4, 0x8b) X(BINBYTES, 'B')   \
                                    X(SHORT_BINBYTES, 'C') X(SHORT_BINUNICODE, 0x8c)               \
                                        X(BINUNICODE8, 0x8d) X(BINBYTES8, 0x8e) X(EMPTY_SET, 0x8f) \
                                            X(ADDITEMS, 0x90) X(FROZENSET, 0x91) X(MEMOIZE, 0x94)  \
                                                X(FRAME, 0x95) X(BYTEARRAY8, 0x96)

// X(name, byte, what it would do).
#define REFUSED_OPCODES(X)                                    \
    X(PERSID, 'P', "ask for an object by name")               \
    X(BINPERSID, 'Q', "ask for an object by name")            \
    X(REDUCE, 'R', "call a function")                         \
    X(BUILD, 'b', "set an object's state")                    \
    X(GLOBAL, 'c', "import a name")                           \
    X(INST, 'i', "import a class and call it")                \
    X(OBJ, 'o', "call a class")                               \
    X(NEWOBJ, 0x81, "build an object")                        \
    X(EXT1, 0x82, "import a registered name")                 \
    X(EXT2, 0x83, "import a registered name")                 \
    X(EXT4, 0x84, "import a registered name")                 \
    X(NEWOBJ_EX, 0x92, "build an object")                     \
    X(STACK_GLOBAL, 0x93, "import a name")                    \
    X(NEXT_BUFFER, 0x97, "ask for a buffer outside the file") \
    X(READONLY_BUFFER, 0x98, "ask for a buffer outside the file")

enum opcode {
#define OPCODE_ENUMERATOR(name, byte, ...) OPCODE_##name = byte,
    DATA_OPCODES(OPCODE_ENUMERATOR) REFUSED_OPCODES(OPCODE_ENUMERATOR)
#undef OPCODE_ENUMERATOR
};

static const char *const opcode_names[256] = {
#define OPCODE_TEXT(name, byte, ...) [byte] = #name,
    DATA_OPCODES(OPCODE_TEXT) REFUSED_OPCODES(OPCODE_TEXT)
#undef OPCODE_TEXT
};

static const char *const refused_deeds[256] = {
#define DEED_TEXT(name, byte, deed) [byte] = deed,
    REFUSED_OPCODES(DEED_TEXT)
#undef DEED_TEXT
};

#define PROTOCOL_MAX 5
// The longest opcode of run_frequent with all that it may look at.
#define FREQUENT_BYTES_MAX 10

const char *trace__pickle_type_name(enum trace__pickle_type type) {
    static const char *const names[] = {
        [PICKLE_UNSET] = "nothing",
        [PICKLE_PARTIAL] = "a list or dict",
        [PICKLE_SPILLED] = "a value",
        [PICKLE_NONE] = "None",
        [PICKLE_BOOL] = "a boolean",
        [PICKLE_INT] = "an integer",
        [PICKLE_BIG] = "an integer of 2^63 or more",
        [PICKLE_FLOAT] = "a float",
        [PICKLE_STRING] = "a string",
        [PICKLE_SCALAR] = "bytes, an integer beyond 64 bits or a very long string",
        [PICKLE_LIST] = "a list",
        [PICKLE_TUPLE] = "a tuple",
        [PICKLE_DICT] = "a dict",
        [PICKLE_SET] = "a set",
    };
    return type < PICKLE_RECORD_FIRST ? names[type] : "another list or dict";
}

enum base_status trace__pickle_refuse(const struct trace__pickle *machine, const char *format,
                                      ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return base_status_set(BASE_FORMAT, "opcode %s at byte %llu: %s", machine->opcode_name,
                           (unsigned long long)machine->opcode_offset, text);
}

uint64_t trace__pickle_offset(const struct trace__pickle *machine) {
    return machine->opcode_offset;
}

enum base_status trace__pickle_create(struct trace_input *input,
                                      const struct trace__pickle_shapes *shapes,
                                      struct trace__pickle **machine) {
    *machine = calloc(1, sizeof **machine);
    if (*machine == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a pickle machine");
    (*machine)->input = input;
    (*machine)->shapes = shapes;
    (*machine)->opcode_name = "";
    (*machine)->partial_free = UINT32_MAX;
    // From here on there is a stack, so that no pointer into it is made of NULL.
    enum base_status status = trace__pickle_push_slow(*machine);
    if (status != BASE_OK) {
        free(*machine);
        *machine = NULL;
    }
    return status;
}

void trace__pickle_destroy(struct trace__pickle *machine) {
    if (machine == NULL) return;
    for (size_t i = 0; i < machine->partial_count; i++)
        free(machine->partials[i].items);
    free(machine->partials);
    free(machine->stack);
    free(machine->marks);
    free(machine->memo);
    free(machine->spilled);
    free(machine->strings.bytes);
    free(machine->strings.starts);
    free(machine->strings.slots);
    free(machine->scratch);
    free(machine);
}

//------------------------------------------------------------------------------------------------
// Arguments.

// The little-endian argument of COUNT bytes after the opcode. Inlined, so that COUNT is a constant:
// these are most of a file.
__attribute__((always_inline)) static inline enum base_status
take_number(struct trace__pickle *machine, size_t count, uint64_t *number) {
    enum base_status status = trace_input_need(machine->input, count);
    if (status != BASE_OK) return status;
    uint64_t value = 0;
    memcpy(&value, machine->input->next, count); // hosts with GPUs are little-endian
    machine->input->next += count;
    *number = value;
    return BASE_OK;
}

__attribute__((always_inline)) static inline enum base_status
push_number(struct trace__pickle *machine, size_t count) {
    uint64_t number;
    enum base_status status = take_number(machine, count, &number);
    if (status != BASE_OK) return status;
    if (count == 4) number = (uint64_t)(int64_t)(int32_t)number;
    return trace__pickle_push(machine, PICKLE_INT, number);
}

static enum base_status push_float(struct trace__pickle *machine) {
    uint64_t bits;
    enum base_status status = take_number(machine, 8, &bits);
    return status == BASE_OK ? trace__pickle_push(machine, PICKLE_FLOAT, __builtin_bswap64(bits))
                             : status;
}

// Two's complement of LENGTH bytes: 64 bits are kept; a ninth byte may be there to say that there
// is no sign.
static enum base_status push_long(struct trace__pickle *machine, uint64_t length) {
    struct trace_input *input = machine->input;
    if (length > 9) {
        enum base_status status = trace_input_skip(input, length);
        return status == BASE_OK ? trace__pickle_push(machine, PICKLE_SCALAR, 0) : status;
    }
    enum base_status status = trace_input_need(input, length);
    if (status != BASE_OK) return status;
    bool negative = length > 0 && input->next[length - 1] & 0x80;
    uint64_t value = negative ? UINT64_MAX : 0;
    memcpy(&value, input->next, length < 8 ? length : 8);
    uint8_t ninth = length == 9 ? input->next[8] : 0;
    input->next += length;
    if (length < 9) return trace__pickle_push(machine, PICKLE_INT, value);
    if (ninth != 0) return trace__pickle_push(machine, PICKLE_SCALAR, 0);
    return trace__pickle_push(machine, value >> 63 ? PICKLE_BIG : PICKLE_INT, value);
}

static enum base_status push_long1(struct trace__pickle *machine) {
    uint64_t length;
    enum base_status status = take_number(machine, 1, &length);
    return status == BASE_OK ? push_long(machine, length) : status;
}

static enum base_status push_long4(struct trace__pickle *machine) {
    uint64_t length;
    enum base_status status = take_number(machine, 4, &length);
    if (status != BASE_OK) return status;
    if (length > INT32_MAX) return trace__pickle_refuse(machine, "its length is negative");
    return push_long(machine, length);
}

// A string or bytes behind a length of COUNT bytes. Bytes are of no use to any shape.
__attribute__((always_inline)) static inline enum base_status
push_counted(struct trace__pickle *machine, size_t count, bool is_string) {
    uint64_t length;
    enum base_status status = take_number(machine, count, &length);
    if (status != BASE_OK) return status;
    if (is_string) return trace__pickle_push_string(machine, length);
    status = trace_input_skip(machine->input, length);
    return status == BASE_OK ? trace__pickle_push(machine, PICKLE_SCALAR, 0) : status;
}

__attribute__((always_inline)) static inline enum base_status
memo_get(struct trace__pickle *machine, size_t count) {
    uint64_t index;
    enum base_status status = take_number(machine, count, &index);
    return status == BASE_OK ? trace__pickle_memo_get(machine, index) : status;
}

__attribute__((always_inline)) static inline enum base_status
memo_put(struct trace__pickle *machine, size_t count) {
    uint64_t index;
    enum base_status status = take_number(machine, count, &index);
    return status == BASE_OK ? trace__pickle_memo_put(machine, index) : status;
}

static enum base_status text_get(struct trace__pickle *machine) {
    uint64_t index;
    enum base_status status = trace__pickle_text_index(machine, &index);
    return status == BASE_OK ? trace__pickle_memo_get(machine, index) : status;
}

static enum base_status text_put(struct trace__pickle *machine) {
    uint64_t index;
    enum base_status status = trace__pickle_text_index(machine, &index);
    return status == BASE_OK ? trace__pickle_memo_put(machine, index) : status;
}

// A frame is a hint of how much to read at once; only its claim is of interest.
static enum base_status check_frame(struct trace__pickle *machine) {
    uint64_t length;
    enum base_status status = take_number(machine, 8, &length);
    if (status != BASE_OK) return status;
    const struct trace_input *input = machine->input;
    uint64_t offset = trace_input_offset(input); // beyond the size where the file grows meanwhile
    if (input->size != TRACE_INPUT_SIZE_UNKNOWN &&
        length > (offset < input->size ? input->size - offset : 0))
        return trace__pickle_refuse(machine, "it claims %llu bytes, but the file ends at byte %llu",
                                    (unsigned long long)length, (unsigned long long)input->size);
    return BASE_OK;
}

static enum base_status check_protocol(struct trace__pickle *machine) {
    uint64_t protocol;
    enum base_status status = take_number(machine, 1, &protocol);
    if (status == BASE_OK && protocol > PROTOCOL_MAX)
        return trace__pickle_refuse(machine, "protocol %llu: 0 to %d are known",
                                    (unsigned long long)protocol, PROTOCOL_MAX);
    return status;
}

//------------------------------------------------------------------------------------------------
// Containers.

static enum base_status add_slice(struct trace__pickle *machine, enum trace__pickle_type type) {
    size_t first;
    enum base_status status = trace__pickle_pop_mark(machine, &first);
    return status == BASE_OK ? trace__pickle_add_slice(machine, first, type) : status;
}

static enum base_status make(struct trace__pickle *machine, enum trace__pickle_type type) {
    size_t first;
    enum base_status status = trace__pickle_pop_mark(machine, &first);
    return status == BASE_OK ? trace__pickle_make(machine, first, type) : status;
}

static enum base_status make_short_tuple(struct trace__pickle *machine, size_t count) {
    struct trace__pickle_value items[3], made = {.type = PICKLE_TUPLE, .link = 1};
    enum base_status status = BASE_OK;
    for (size_t i = count; i-- > 0 && status == BASE_OK;)
        status = trace__pickle_pop(machine, &items[i]);
    if (status == BASE_OK)
        status = machine->shapes->add_items(machine->shapes->context, items, count, &made);
    return status == BASE_OK ? trace__pickle_push(machine, made.type, made.payload) : status;
}

static enum base_status append(struct trace__pickle *machine) {
    struct trace__pickle_value item;
    enum base_status status = trace__pickle_pop(machine, &item);
    return status == BASE_OK ? trace__pickle_add_one(machine, &item, 1) : status;
}

static enum base_status set_item(struct trace__pickle *machine) {
    struct trace__pickle_value pair[2];
    enum base_status status = trace__pickle_pop(machine, &pair[1]);
    if (status == BASE_OK) status = trace__pickle_pop(machine, &pair[0]);
    return status == BASE_OK ? trace__pickle_add_one(machine, pair, 2) : status;
}

// A mark that was never used is taken before a value, as CPython does.
static enum base_status pop(struct trace__pickle *machine) {
    struct trace__pickle_value value;
    if (machine->mark_count > 0 && machine->marks[machine->mark_count - 1] == machine->count) {
        machine->mark_count--;
        return BASE_OK;
    }
    return trace__pickle_pop(machine, &value);
}

static enum base_status pop_mark(struct trace__pickle *machine) {
    size_t first;
    enum base_status status = trace__pickle_pop_mark(machine, &first);
    return status == BASE_OK ? trace__pickle_cut(machine, first) : status;
}

// Both copies refer to the same thing, so that neither may be filled.
static enum base_status duplicate(struct trace__pickle *machine) {
    struct trace__pickle_value value;
    enum base_status status = trace__pickle_pop(machine, &value);
    for (int i = 0; i < 2 && status == BASE_OK; i++)
        status = trace__pickle_push(machine, value.type, value.payload);
    return status;
}

//------------------------------------------------------------------------------------------------
// The loop.

static enum base_status refuse_opcode(struct trace__pickle *machine, unsigned opcode) {
    if (refused_deeds[opcode] != NULL && machine->opcode_offset > 0)
        return trace__pickle_refuse(
            machine,
            "it would %s, and a snapshot is plain data: the file is refused, nothing of it was run",
            refused_deeds[opcode]);
    if (machine->opcode_offset > 0)
        return base_status_set(
            BASE_FORMAT, "byte %llu (0x%02x) is no pickle opcode: the file is damaged or no pickle",
            (unsigned long long)machine->opcode_offset, opcode);
    const struct trace_input *input = machine->input;
    if (opcode == 'P' && input->next < input->end && *input->next == 'K')
        return base_status_set(BASE_FORMAT,
                               "it is a zip file, as torch.save writes; a snapshot is written by "
                               "torch.cuda.memory._dump_snapshot");
    return base_status_set(
        BASE_FORMAT,
        "it begins with the byte 0x%02x, which no pickle of plain data does; a snapshot is "
        "written by torch.cuda.memory._dump_snapshot",
        opcode);
}

static enum base_status step(struct trace__pickle *machine, unsigned opcode) {
    switch (opcode) {
    case OPCODE_BINGET: return memo_get(machine, 1);
    case OPCODE_LONG_BINGET: return memo_get(machine, 4);
    case OPCODE_MEMOIZE: return trace__pickle_memo_put(machine, machine->memo_next);
    case OPCODE_MARK: return trace__pickle_push_mark(machine);
    case OPCODE_EMPTY_DICT: return trace__pickle_push_empty(machine, PICKLE_DICT);
    case OPCODE_EMPTY_LIST: return trace__pickle_push_empty(machine, PICKLE_LIST);
    case OPCODE_SETITEMS: return add_slice(machine, PICKLE_DICT);
    case OPCODE_APPENDS: return add_slice(machine, PICKLE_LIST);
    case OPCODE_BININT: return push_number(machine, 4);
    case OPCODE_BININT1: return push_number(machine, 1);
    case OPCODE_BININT2: return push_number(machine, 2);
    case OPCODE_TUPLE1: return make_short_tuple(machine, 1);
    case OPCODE_TUPLE2: return make_short_tuple(machine, 2);
    case OPCODE_TUPLE3: return make_short_tuple(machine, 3);
    case OPCODE_SHORT_BINUNICODE:
    case OPCODE_SHORT_BINSTRING: return push_counted(machine, 1, true);
    case OPCODE_BINUNICODE:
    case OPCODE_BINSTRING: return push_counted(machine, 4, true);
    case OPCODE_BINUNICODE8: return push_counted(machine, 8, true);
    case OPCODE_SHORT_BINBYTES: return push_counted(machine, 1, false);
    case OPCODE_BINBYTES: return push_counted(machine, 4, false);
    case OPCODE_BINBYTES8:
    case OPCODE_BYTEARRAY8: return push_counted(machine, 8, false);
    case OPCODE_LONG1: return push_long1(machine);
    case OPCODE_LONG4: return push_long4(machine);
    case OPCODE_BINFLOAT: return push_float(machine);
    case OPCODE_NONE: return trace__pickle_push(machine, PICKLE_NONE, 0);
    case OPCODE_NEWTRUE: return trace__pickle_push(machine, PICKLE_BOOL, 1);
    case OPCODE_NEWFALSE: return trace__pickle_push(machine, PICKLE_BOOL, 0);
    case OPCODE_EMPTY_TUPLE: return trace__pickle_push(machine, PICKLE_TUPLE, 0);
    case OPCODE_EMPTY_SET: return trace__pickle_push_empty(machine, PICKLE_SET);
    case OPCODE_ADDITEMS: return add_slice(machine, PICKLE_SET);
    case OPCODE_FROZENSET: return make(machine, PICKLE_SET);
    case OPCODE_TUPLE: return make(machine, PICKLE_TUPLE);
    case OPCODE_LIST: return make(machine, PICKLE_LIST);
    case OPCODE_DICT: return make(machine, PICKLE_DICT);
    case OPCODE_APPEND: return append(machine);
    case OPCODE_SETITEM: return set_item(machine);
    case OPCODE_BINPUT: return memo_put(machine, 1);
    case OPCODE_LONG_BINPUT: return memo_put(machine, 4);
    case OPCODE_GET: return text_get(machine);
    case OPCODE_PUT: return text_put(machine);
    case OPCODE_INT:
    case OPCODE_LONG: return trace__pickle_text_int(machine);
    case OPCODE_FLOAT: return trace__pickle_text_float(machine);
    case OPCODE_STRING: return trace__pickle_text_string(machine);
    case OPCODE_UNICODE: return trace__pickle_text_unicode(machine);
    case OPCODE_POP: return pop(machine);
    case OPCODE_POP_MARK: return pop_mark(machine);
    case OPCODE_DUP: return duplicate(machine);
    case OPCODE_PROTO: return check_protocol(machine);
    case OPCODE_FRAME: return check_frame(machine);
    default: return refuse_opcode(machine, opcode);
    }
}

// Most of a snapshot is references, numbers and marks. This runs on while only such come, on values
// that live in registers, and stops before anything else, which step() then does, or refuses. Each
// case does what step() does for it.
static void run_frequent(struct trace__pickle *machine) {
    const uint8_t *next = machine->input->next;
    const uint8_t *const last = machine->input->end - FREQUENT_BYTES_MAX;
    struct trace__pickle_value *top = machine->stack + machine->count;
    const struct trace__pickle_value *const limit = machine->stack + machine->stack_capacity;
    while (next <= last && top < limit) {
        uint32_t number;
        uint64_t wide = 0;
        switch (*next) {
        case OPCODE_LONG_BINGET: // a stack is a row of these
            do {
                memcpy(&number, next + 1, 4);
                if (!trace__pickle_memo_peek(machine, number, top)) goto stop;
                next += 5;
                top++;
            } while (*next == OPCODE_LONG_BINGET && next <= last && top < limit);
            continue;
        case OPCODE_BINGET:
            if (!trace__pickle_memo_peek(machine, next[1], top)) goto stop;
            next += 2;
            break;
        case OPCODE_BININT1:
            trace__pickle_set(top, PICKLE_INT, next[1]);
            next += 2;
            break;
        case OPCODE_BININT2:
            number = next[1] | (uint32_t)next[2] << 8;
            trace__pickle_set(top, PICKLE_INT, number);
            next += 3;
            break;
        case OPCODE_BININT:
            memcpy(&number, next + 1, 4);
            wide = (uint64_t)(int64_t)(int32_t)number;
            trace__pickle_set(top, PICKLE_INT, wide);
            next += 5;
            break;
        case OPCODE_LONG1:
            number = next[1];
            if (number == 0 || number > 8) goto stop;
            memcpy(&wide, next + 2, 8);
            wide = (uint64_t)((int64_t)(wide << (64 - 8 * number)) >> (64 - 8 * number));
            trace__pickle_set(top, PICKLE_INT, wide);
            next += 2 + number;
            break;
        case OPCODE_MARK:
            if (machine->mark_count == machine->mark_capacity) goto stop;
            machine->marks[machine->mark_count++] = (size_t)(top - machine->stack);
            next++;
            continue;
        case OPCODE_EMPTY_DICT:
        case OPCODE_EMPTY_LIST:
            *top = (struct trace__pickle_value){.link = PICKLE_NO_SLOT,
                                                .type = *next == OPCODE_EMPTY_DICT ? PICKLE_DICT
                                                                                   : PICKLE_LIST,
                                                .is_owner = true};
            next++;
            break;
        case OPCODE_MEMOIZE:
            if (top == machine->stack + trace__pickle_floor(machine) ||
                !trace__pickle_memo_add(machine, top - 1))
                goto stop;
            next++;
            continue;
        default: goto stop;
        }
        top++;
    }
stop:
    machine->input->next = next;
    machine->count = (size_t)(top - machine->stack);
}

static enum base_status check_memory(const struct trace__pickle *machine) {
    return machine->shapes->check_memory(machine->shapes->context,
                                         trace__pickle_stack_bytes(machine) +
                                             trace__pickle_memo_bytes(machine) +
                                             trace__pickle_strings_bytes(machine));
}

// Brings the next opcode to hand. What one buffer of input can make is little, so that memory is
// looked at here and nowhere else.
static enum base_status refill(struct trace__pickle *machine) {
    struct trace_input *input = machine->input;
    enum base_status status = check_memory(machine);
    if (status == BASE_OK) status = trace_input_fill(input, 1);
    if (status != BASE_OK || input->next < input->end) return status;
    if (trace_input_offset(input) == 0) return base_status_set(BASE_FORMAT, "the file is empty");
    return base_status_set(BASE_FORMAT,
                           "the file ends at byte %llu before the pickle does: it is cut off",
                           (unsigned long long)trace_input_offset(input));
}

enum base_status trace__pickle_run(struct trace__pickle *machine,
                                   struct trace__pickle_value *root) {
    struct trace_input *input = machine->input;
    enum base_status status = BASE_OK;
    while (status == BASE_OK) {
        if (input->end - input->next >= FREQUENT_BYTES_MAX) run_frequent(machine);
        if (input->next == input->end && (status = refill(machine)) != BASE_OK) return status;
        machine->opcode_offset = trace_input_offset(input);
        unsigned opcode = *input->next++;
        machine->opcode_name = opcode_names[opcode];
        if (opcode == OPCODE_STOP) break;
        status = step(machine, opcode);
    }
    if (status == BASE_OK) status = check_memory(machine);
    if (status == BASE_OK) status = trace__pickle_pop(machine, root);
    if (status == BASE_OK && (machine->count > 0 || machine->mark_count > 0))
        return trace__pickle_refuse(machine, "more than one value is left");
    return status == BASE_OK ? trace_input_expect_end(input) : status;
}
