// The memo: what the file may refer to again by number.
//
// CPython gives a number to nearly every container and string, and refers back to few of them. An
// entry is therefore 4 bytes: a type and a payload of 26 bits, which holds string ids and record
// numbers of any file under 5 GB; what does not fit (a number, a long list) stands in a side table.
#include "trace/pickle_machine.h"

#include "base/check.h"

#include <string.h>

static enum base_status pack(struct trace__pickle *machine, const struct trace__pickle_value *value,
                             uint32_t *entry) {
    // Of a run, the last record is the value at the top.
    uint64_t payload = value->payload;
    bool is_run = !value->is_owner && machine->shapes->run_types >> value->type & 1;
    if (is_run) payload += value->link - 1;
    if (payload < PICKLE_MEMO_PAYLOAD_LIMIT) {
        *entry = (uint32_t)value->type << PICKLE_MEMO_PAYLOAD_BITS | (uint32_t)payload;
        return BASE_OK;
    }
    if (machine->spilled_count == PICKLE_MEMO_PAYLOAD_LIMIT)
        return base_status_set(BASE_LIMIT, "the memo holds more than %llu large values",
                               (unsigned long long)PICKLE_MEMO_PAYLOAD_LIMIT);
    enum base_status status =
        trace__pickle_grow((void **)&machine->spilled, &machine->spilled_capacity,
                           machine->spilled_count + 1, sizeof *machine->spilled);
    if (status != BASE_OK) return status;
    machine->spilled[machine->spilled_count] =
        (struct trace__pickle_value){.payload = payload, .link = 1, .type = value->type};
    *entry =
        (uint32_t)PICKLE_SPILLED << PICKLE_MEMO_PAYLOAD_BITS | (uint32_t)machine->spilled_count++;
    return BASE_OK;
}

static struct trace__pickle_value unpack(const struct trace__pickle *machine, uint32_t entry) {
    uint32_t payload = entry & (PICKLE_MEMO_PAYLOAD_LIMIT - 1);
    if (trace__pickle_memo_type(entry) == PICKLE_SPILLED) return machine->spilled[payload];
    return (struct trace__pickle_value){
        .payload = payload, .link = 1, .type = (uint8_t)trace__pickle_memo_type(entry)};
}

// Picklers number densely, so that an index beyond the bytes read so far is a lie.
static enum base_status make_room(struct trace__pickle *machine, uint64_t index) {
    if (index > machine->opcode_offset || index >= UINT32_MAX - 1)
        return trace__pickle_refuse(machine,
                                    "memo index %llu is beyond what the file can have set so far",
                                    (unsigned long long)index);
    enum base_status status = trace__pickle_grow((void **)&machine->memo, &machine->memo_capacity,
                                                 index + 1, sizeof *machine->memo);
    if (status != BASE_OK) return status;
    memset(machine->memo + machine->memo_count, 0,
           (index + 1 - machine->memo_count) * sizeof *machine->memo);
    machine->memo_count = index + 1;
    return BASE_OK;
}

enum base_status trace__pickle_memo_put(struct trace__pickle *machine, uint64_t index) {
    if (machine->count <= trace__pickle_floor(machine))
        return trace__pickle_refuse(machine, "there is no value for it on the stack");
    enum base_status status = BASE_OK;
    if (index >= machine->memo_count) status = make_room(machine, index);
    if (status == BASE_OK && machine->memo[index] != PICKLE_UNSET)
        return trace__pickle_refuse(machine, "memo index %llu is set a second time",
                                    (unsigned long long)index);
    struct trace__pickle_value *top = &machine->stack[machine->count - 1];
    // Under two numbers a container can no longer be filled: only one entry would learn what it
    // became.
    if (status == BASE_OK && top->is_owner && top->link != PICKLE_NO_SLOT) {
        if (top->type == PICKLE_PARTIAL) status = trace__pickle_settle(machine, top);
        top->is_owner = false;
        top->link = 1;
    }
    if (status == BASE_OK) status = pack(machine, top, &machine->memo[index]);
    if (status != BASE_OK) return status;
    machine->memo_next++;
    if (top->is_owner) {
        top->link = (uint32_t)index;
        if (top->type == PICKLE_PARTIAL)
            machine->partials[top->payload].value.link = (uint32_t)index;
    }
    return BASE_OK;
}

enum base_status trace__pickle_memo_get(struct trace__pickle *machine, uint64_t index) {
    if (index >= machine->memo_count || machine->memo[index] == PICKLE_UNSET)
        return trace__pickle_refuse(machine, "memo index %llu was never set",
                                    (unsigned long long)index);
    uint32_t entry = machine->memo[index];
    if (trace__pickle_memo_type(entry) == PICKLE_PARTIAL) {
        struct trace__pickle_value value = unpack(machine, entry);
        enum base_status status = trace__pickle_settle(machine, &value);
        if (status != BASE_OK) return status;
        entry = machine->memo[index];
    }
    if (!(entry & PICKLE_MEMO_SHARED)) machine->memo[index] = entry | PICKLE_MEMO_SHARED;
    struct trace__pickle_value value = unpack(machine, entry);
    return trace__pickle_push(machine, value.type, value.payload);
}

enum base_status trace__pickle_memo_update(struct trace__pickle *machine, uint32_t slot,
                                           const struct trace__pickle_value *value) {
    BASE_CHECK(slot < machine->memo_count);
    uint32_t shared = machine->memo[slot] & PICKLE_MEMO_SHARED;
    // A long list that grows batch by batch keeps its one place in the side table.
    if (trace__pickle_memo_type(machine->memo[slot]) == PICKLE_SPILLED &&
        value->payload >= PICKLE_MEMO_PAYLOAD_LIMIT) {
        machine->spilled[machine->memo[slot] & (PICKLE_MEMO_PAYLOAD_LIMIT - 1)] =
            (struct trace__pickle_value){.payload = value->payload, .link = 1, .type = value->type};
        return BASE_OK;
    }
    enum base_status status = pack(machine, value, &machine->memo[slot]);
    machine->memo[slot] |= shared;
    return status;
}

uint64_t trace__pickle_memo_bytes(const struct trace__pickle *machine) {
    return machine->memo_capacity * sizeof *machine->memo +
           machine->spilled_capacity * sizeof *machine->spilled;
}
