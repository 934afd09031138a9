// A pickle, read as data: protocols 0 to 5, front to back, nothing built, imported or called.
//
// The machine runs the opcodes that plain data needs and refuses every other by name and offset.
// What it keeps of a value is 16 bytes; containers are handed, as soon as their items are there, to
// a set of shapes, which keep what they know (a dict of a known kind becomes a record in a table of
// theirs) and let the rest go. So a gigabyte passes through without being held, and what is deep or
// cyclic in the file is never deep or cyclic here: no recursion, no pointers.
//
// Strings are interned: equal strings have equal ids, and those a caller interns before the run
// have the ids 0, 1, 2 ...
//
// Rules that every pickler keeps and this machine asks for (a file that breaks one is refused, in
// one sentence): a container is filled before anything else refers to it (so cycles are refused); a
// memo index is set once, and memo indices are dense.
#ifndef TIDEMARK_TRACE_PICKLE_H
#define TIDEMARK_TRACE_PICKLE_H

#include "trace/input.h"

enum trace__pickle_type {
    PICKLE_UNSET,   // only in the memo: a hole
    PICKLE_PARTIAL, // only inside the machine: a container filled item by item; payload: index
    PICKLE_SPILLED, // only in the memo: a value that did not fit in; payload: index
    PICKLE_NONE,
    PICKLE_BOOL,   // payload 0 or 1
    PICKLE_INT,    // payload: int64_t
    PICKLE_BIG,    // payload: an integer of 2^63 to 2^64 - 1
    PICKLE_FLOAT,  // payload: the bits of a double
    PICKLE_STRING, // payload: string id
    PICKLE_SCALAR, // bytes, an integer beyond 64 bits, a string beyond PICKLE_STRING_BYTES_MAX: of
                   // no use to anybody
    PICKLE_LIST,   // payload 0: empty; 1: of nothing that the shapes know
    PICKLE_TUPLE,  // likewise
    PICKLE_DICT,   // likewise
    PICKLE_SET,    // likewise
    PICKLE_RECORD_FIRST, // from here to 31: what the shapes made of a container
    PICKLE_TYPE_COUNT_MAX = 32,
};

#define PICKLE_STRING_BYTES_MAX TRACE_INPUT_WINDOW_BYTES
#define PICKLE_NO_SLOT UINT32_MAX

struct trace__pickle_value {
    uint64_t payload;
    uint32_t link; // owner: its memo index or PICKLE_NO_SLOT; a record of a run type: how many
                   // there are, payload up
    uint8_t type;
    bool is_owner; // the one reference through which a container may still be filled
};

// What becomes of containers. CONTEXT is the caller's; the offset of a container is
// trace__pickle_offset() in the call.
struct trace__pickle_shapes {
    void *context;
    // Types whose records are numbered 0, 1, 2 ... in the order of their making. Neighbours in a
    // list with consecutive numbers are held as one value, so that a list of millions written as
    // one batch takes no stack.
    uint32_t run_types;
    // All items of a dict: COUNT pairs of key and value. DICT holds an empty dict and may be made a
    // record.
    enum base_status (*set_items)(void *context, const struct trace__pickle_value *pairs,
                                  size_t count, struct trace__pickle_value *dict);
    // Items of a list or tuple; LIST holds what the last call left in it (an empty one at first).
    // Called again for each further batch of a long list, in which case a refusal is right where
    // that cannot be.
    enum base_status (*add_items)(void *context, const struct trace__pickle_value *items,
                                  size_t count, struct trace__pickle_value *list);
    // Checks what is held, MACHINE_BYTES by the machine, against the budget.
    enum base_status (*check_memory)(void *context, uint64_t machine_bytes);
};

struct trace__pickle;

// INPUT stands at the first byte; input and shapes outlive the machine.
enum base_status trace__pickle_create(struct trace_input *input,
                                      const struct trace__pickle_shapes *shapes,
                                      struct trace__pickle **machine) BASE_MUST_USE;
void trace__pickle_destroy(struct trace__pickle *machine);

// Runs to STOP and the end of the file.
enum base_status trace__pickle_run(struct trace__pickle *machine,
                                   struct trace__pickle_value *root) BASE_MUST_USE;

enum base_status trace__pickle_intern(struct trace__pickle *machine, const void *bytes,
                                      size_t length, uint32_t *id) BASE_MUST_USE;
// Not terminated; valid until the next string comes.
const char *trace__pickle_string(const struct trace__pickle *machine, uint32_t id, size_t *length);
uint32_t trace__pickle_string_count(const struct trace__pickle *machine);

// The offset of the opcode at work.
uint64_t trace__pickle_offset(const struct trace__pickle *machine);
// "an integer", "a list" ...; a record type gives "a known dict or list".
const char *trace__pickle_type_name(enum trace__pickle_type type);

// Makes TABLE hold at least NEEDED entries of SIZE bytes; grows by a half, so that what is held
// stays near what is used.
enum base_status trace__pickle_grow(void **table, size_t *capacity, size_t needed,
                                    size_t size) BASE_MUST_USE;

#endif
