// The parts of the pickle machine that its files share; see trace/pickle.h for what it is.
//
// pickle.c runs the opcodes, pickle_stack.c holds values, marks and containers in the making,
// pickle_memo.c the memo, pickle_string.c the interned strings, pickle_text.c the numbers and
// strings that protocol 0 writes as lines.
#ifndef TIDEMARK_TRACE_PICKLE_MACHINE_H
#define TIDEMARK_TRACE_PICKLE_MACHINE_H

#include "trace/pickle.h"

// A container filled by APPEND or SETITEM, an item at a time: its items wait here until someone
// needs the container. `settled`: they were handed to the shapes, and VALUE is the result.
struct trace__pickle_partial {
    struct trace__pickle_value value;
    bool settled;
    struct trace__pickle_value *items;
    size_t count, capacity;
    uint32_t next_free;
};

// Interned strings: one after another in `bytes`, string i at [starts[i], starts[i + 1]).
struct trace__pickle_strings {
    char *bytes;
    size_t bytes_capacity;
    uint64_t *starts;
    size_t starts_capacity;
    uint32_t count;
    uint32_t *slots; // string + 1; 0: empty
    size_t slot_count;
};

struct trace__pickle {
    struct trace_input *input;
    const struct trace__pickle_shapes *shapes;
    uint64_t opcode_offset;
    const char *opcode_name;

    struct trace__pickle_value *stack;
    size_t count, stack_capacity;
    size_t *marks; // stack heights
    size_t mark_count, mark_capacity;

    // 32 bits an entry: shared flag, type, payload; what does not fit stands in `spilled`.
    uint32_t *memo;
    size_t memo_count,
        memo_capacity;  // one more than the highest index; entries below are set or holes
    uint64_t memo_next; // what MEMOIZE sets: the number of entries set
    struct trace__pickle_value *spilled;
    size_t spilled_count, spilled_capacity;

    struct trace__pickle_partial *partials;
    size_t partial_count, partial_capacity, partial_live;
    uint32_t partial_free; // chain through next_free; UINT32_MAX: none
    uint64_t partial_item_bytes;

    struct trace__pickle_strings strings;
    char *scratch; // of text opcodes, made when first needed
};

// Puts "opcode NAME at byte N" before a sentence of its own: how every refusal reads.
enum base_status trace__pickle_refuse(const struct trace__pickle *machine, const char *format, ...)
    BASE_PRINTF(2, 3);

//------------------------------------------------------------------------------------------------
// Values.

// A value that owns nothing.
static inline void trace__pickle_set(struct trace__pickle_value *value, unsigned type,
                                     uint64_t payload) {
    *value = (struct trace__pickle_value){.payload = payload, .link = 1, .type = (uint8_t)type};
}

enum base_status trace__pickle_push_slow(struct trace__pickle *machine) BASE_MUST_USE;
static inline BASE_MUST_USE enum base_status
trace__pickle_push(struct trace__pickle *machine, enum trace__pickle_type type, uint64_t payload) {
    if (machine->count == machine->stack_capacity) {
        enum base_status status = trace__pickle_push_slow(machine);
        if (status != BASE_OK) return status;
    }
    trace__pickle_set(&machine->stack[machine->count++], type, payload);
    return BASE_OK;
}
// An empty container, to be filled.
enum base_status trace__pickle_push_empty(struct trace__pickle *machine,
                                          enum trace__pickle_type type) BASE_MUST_USE;
enum base_status trace__pickle_push_mark(struct trace__pickle *machine) BASE_MUST_USE;
// The lowest stack position that the running opcode may touch.
size_t trace__pickle_floor(const struct trace__pickle *machine);
// Takes the topmost mark: items from *first on are above it.
enum base_status trace__pickle_pop_mark(struct trace__pickle *machine, size_t *first) BASE_MUST_USE;
// Takes the topmost value, settled.
enum base_status trace__pickle_pop(struct trace__pickle *machine,
                                   struct trace__pickle_value *value) BASE_MUST_USE;
// Drops everything from FIRST on.
enum base_status trace__pickle_cut(struct trace__pickle *machine, size_t first) BASE_MUST_USE;

// APPEND and SETITEM: the container is the topmost value.
enum base_status trace__pickle_add_one(struct trace__pickle *machine,
                                       const struct trace__pickle_value *items,
                                       size_t count) BASE_MUST_USE;
// APPENDS, SETITEMS and ADDITEMS, which fill a container of TYPE: it stands just below FIRST.
enum base_status trace__pickle_add_slice(struct trace__pickle *machine, size_t first,
                                         enum trace__pickle_type type) BASE_MUST_USE;
// LIST, TUPLE, DICT and their like: a container of all that stands from FIRST on takes their place.
enum base_status trace__pickle_make(struct trace__pickle *machine, size_t first,
                                    enum trace__pickle_type type) BASE_MUST_USE;
// Makes a partial container what it is.
enum base_status trace__pickle_settle(struct trace__pickle *machine,
                                      struct trace__pickle_value *value) BASE_MUST_USE;

uint64_t trace__pickle_stack_bytes(const struct trace__pickle *machine);

//------------------------------------------------------------------------------------------------
// The memo.

#define PICKLE_MEMO_SHARED ((uint32_t)1 << 31)
#define PICKLE_MEMO_PAYLOAD_BITS 26
#define PICKLE_MEMO_PAYLOAD_LIMIT ((uint64_t)1 << PICKLE_MEMO_PAYLOAD_BITS)
static inline enum trace__pickle_type trace__pickle_memo_type(uint32_t entry) {
    return (entry & ~PICKLE_MEMO_SHARED) >> PICKLE_MEMO_PAYLOAD_BITS;
}

// The common case of trace__pickle_memo_get: fills *value if the entry is set and holds its value.
static inline bool trace__pickle_memo_peek(struct trace__pickle *machine, uint64_t index,
                                           struct trace__pickle_value *value) {
    if (index >= machine->memo_count) return false;
    uint32_t entry = machine->memo[index], unshared = entry & ~PICKLE_MEMO_SHARED;
    // Holes and what stands elsewhere have the lowest types.
    if (unshared < (uint32_t)PICKLE_NONE << PICKLE_MEMO_PAYLOAD_BITS) return false;
    if (entry == unshared) machine->memo[index] = entry | PICKLE_MEMO_SHARED;
    trace__pickle_set(value, unshared >> PICKLE_MEMO_PAYLOAD_BITS,
                      entry & (PICKLE_MEMO_PAYLOAD_LIMIT - 1));
    return true;
}

// The common case of trace__pickle_memo_put: the next index in a row, of a value with no number
// yet.
static inline bool trace__pickle_memo_add(struct trace__pickle *machine,
                                          struct trace__pickle_value *value) {
    uint64_t index = machine->memo_next;
    bool is_run = machine->shapes->run_types >> value->type & 1;
    bool is_numbered = value->is_owner && value->link != PICKLE_NO_SLOT;
    if (index >= UINT32_MAX - 1) return false;
    if (index != machine->memo_count || index == machine->memo_capacity || is_run || is_numbered ||
        value->type == PICKLE_PARTIAL || value->payload >= PICKLE_MEMO_PAYLOAD_LIMIT)
        return false;
    machine->memo[index] =
        (uint32_t)value->type << PICKLE_MEMO_PAYLOAD_BITS | (uint32_t)value->payload;
    machine->memo_next = machine->memo_count = index + 1;
    if (value->is_owner) value->link = (uint32_t)index;
    return true;
}

enum base_status trace__pickle_memo_put(struct trace__pickle *machine,
                                        uint64_t index) BASE_MUST_USE;
enum base_status trace__pickle_memo_get(struct trace__pickle *machine,
                                        uint64_t index) BASE_MUST_USE;
// Writes what VALUE became into SLOT, which is set.
enum base_status trace__pickle_memo_update(struct trace__pickle *machine, uint32_t slot,
                                           const struct trace__pickle_value *value) BASE_MUST_USE;
uint64_t trace__pickle_memo_bytes(const struct trace__pickle *machine);

//------------------------------------------------------------------------------------------------
// Strings and lines.

// The next LENGTH bytes of the input as a string value.
enum base_status trace__pickle_push_string(struct trace__pickle *machine,
                                           uint64_t length) BASE_MUST_USE;
uint64_t trace__pickle_strings_bytes(const struct trace__pickle *machine);

enum base_status trace__pickle_text_int(struct trace__pickle *machine) BASE_MUST_USE;
enum base_status trace__pickle_text_float(struct trace__pickle *machine) BASE_MUST_USE;
enum base_status trace__pickle_text_string(struct trace__pickle *machine) BASE_MUST_USE;
enum base_status trace__pickle_text_unicode(struct trace__pickle *machine) BASE_MUST_USE;
enum base_status trace__pickle_text_index(struct trace__pickle *machine,
                                          uint64_t *index) BASE_MUST_USE;

#endif
