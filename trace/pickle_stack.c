// Values on the stack, and containers while they are filled.
//
// A container comes in one of two ways. Picklers of protocol 1 and up push all its items and then
// say APPENDS or SETITEMS: the items go to the shapes straight from the stack. Protocol 0, and
// containers of one item, add an item at a time: those items wait in a partial container until
// another opcode takes it as a value, so that the shapes see a dict whole. A partial container is
// reused when its owner is gone.
#include "trace/pickle_machine.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

// A list batch of this many values may be the first of several (CPython writes 1,000 a batch): it
// goes the slow way.
#define BATCH_COUNT 1000
#define PARTIAL_NONE UINT32_MAX

enum base_status trace__pickle_grow(void **table, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity) return BASE_OK;
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < needed) wanted = needed;
    if (wanted < 8) wanted = 8;
    void *grown = wanted <= PTRDIFF_MAX / size ? realloc(*table, wanted * size) : NULL;
    if (grown == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "no memory for a table of %zu entries of %zu bytes", wanted, size);
    *table = grown;
    *capacity = wanted;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Pushing and popping.

enum base_status trace__pickle_push_slow(struct trace__pickle *machine) {
    return trace__pickle_grow((void **)&machine->stack, &machine->stack_capacity,
                              machine->count + 1, sizeof *machine->stack);
}

enum base_status trace__pickle_push_empty(struct trace__pickle *machine,
                                          enum trace__pickle_type type) {
    enum base_status status = trace__pickle_push(machine, type, 0);
    if (status != BASE_OK) return status;
    struct trace__pickle_value *value = &machine->stack[machine->count - 1];
    value->is_owner = true;
    value->link = PICKLE_NO_SLOT;
    return BASE_OK;
}

enum base_status trace__pickle_push_mark(struct trace__pickle *machine) {
    if (machine->mark_count == machine->mark_capacity) {
        enum base_status status =
            trace__pickle_grow((void **)&machine->marks, &machine->mark_capacity,
                               machine->mark_count + 1, sizeof *machine->marks);
        if (status != BASE_OK) return status;
    }
    machine->marks[machine->mark_count++] = machine->count;
    return BASE_OK;
}

size_t trace__pickle_floor(const struct trace__pickle *machine) {
    return machine->mark_count > 0 ? machine->marks[machine->mark_count - 1] : 0;
}

enum base_status trace__pickle_pop_mark(struct trace__pickle *machine, size_t *first) {
    if (machine->mark_count == 0)
        return trace__pickle_refuse(machine, "there is no MARK before it");
    *first = machine->marks[--machine->mark_count];
    return BASE_OK;
}

static bool is_run_type(const struct trace__pickle *machine, unsigned type) {
    return machine->shapes->run_types >> type & 1;
}

enum base_status trace__pickle_pop(struct trace__pickle *machine,
                                   struct trace__pickle_value *value) {
    if (machine->count <= trace__pickle_floor(machine))
        return trace__pickle_refuse(machine, "there is no value for it on the stack");
    struct trace__pickle_value *top = &machine->stack[machine->count - 1];
    if (is_run_type(machine, top->type) && top->link > 1) {
        top->link--;
        *value = *top;
        value->payload += top->link;
        value->link = 1;
        return BASE_OK;
    }
    machine->count--;
    *value = *top;
    return value->type == PICKLE_PARTIAL ? trace__pickle_settle(machine, value) : BASE_OK;
}

// Makes every partial container from FIRST on what it is.
static enum base_status settle_from(struct trace__pickle *machine, size_t first) {
    enum base_status status = BASE_OK;
    for (size_t i = first; i < machine->count && machine->partial_live > 0 && status == BASE_OK;
         i++)
        if (machine->stack[i].type == PICKLE_PARTIAL)
            status = trace__pickle_settle(machine, &machine->stack[i]);
    return status;
}

enum base_status trace__pickle_cut(struct trace__pickle *machine, size_t first) {
    enum base_status status = settle_from(machine, first);
    machine->count = first;
    return status;
}

// Appends VALUE to the COUNT values at VALUES, where there is room, or lengthens the run at their
// end.
static size_t append_merging(const struct trace__pickle *machine,
                             struct trace__pickle_value *values, size_t count,
                             const struct trace__pickle_value *value) {
    struct trace__pickle_value *last = count > 0 ? &values[count - 1] : NULL;
    if (last != NULL && is_run_type(machine, value->type) && last->type == value->type &&
        last->payload + last->link == value->payload && last->link < UINT32_MAX - value->link) {
        last->link += value->link;
        return count;
    }
    values[count] = *value;
    return count + 1;
}

//------------------------------------------------------------------------------------------------
// Partial containers.

static enum base_status partial_begin(struct trace__pickle *machine,
                                      struct trace__pickle_value *value) {
    uint32_t index = machine->partial_free;
    if (index == PARTIAL_NONE) {
        if (machine->partial_count == PARTIAL_NONE)
            return base_status_set(BASE_LIMIT, "too many containers are open at once");
        enum base_status status =
            trace__pickle_grow((void **)&machine->partials, &machine->partial_capacity,
                               machine->partial_count + 1, sizeof *machine->partials);
        if (status != BASE_OK) return status;
        index = (uint32_t)machine->partial_count++;
        machine->partials[index] = (struct trace__pickle_partial){0};
    } else {
        machine->partial_free = machine->partials[index].next_free;
    }
    struct trace__pickle_partial *partial = &machine->partials[index];
    partial->value = *value;
    partial->settled = false;
    partial->count = 0;
    machine->partial_live++;
    value->type = PICKLE_PARTIAL;
    value->payload = index;
    return value->link == PICKLE_NO_SLOT ? BASE_OK
                                         : trace__pickle_memo_update(machine, value->link, value);
}

static bool is_dict(const struct trace__pickle_partial *partial) {
    return partial->value.type == PICKLE_DICT;
}

// A dict's later value of a key takes the place of the earlier one, so that one key repeated for
// ever takes no memory.
static bool replace_pair(struct trace__pickle_partial *partial,
                         const struct trace__pickle_value *pair) {
    size_t looked_at = partial->count < 128 ? partial->count : 128;
    for (size_t i = 0; i + 1 < looked_at; i += 2) {
        if (partial->items[i].type != pair[0].type || partial->items[i].payload != pair[0].payload)
            continue;
        partial->items[i + 1] = pair[1];
        return true;
    }
    return false;
}

static enum base_status partial_add(struct trace__pickle *machine, uint64_t index,
                                    const struct trace__pickle_value *items, size_t count) {
    struct trace__pickle_partial *partial = &machine->partials[index];
    if (is_dict(partial) && count == 2 && replace_pair(partial, items)) return BASE_OK;
    size_t capacity_before = partial->capacity;
    enum base_status status = trace__pickle_grow((void **)&partial->items, &partial->capacity,
                                                 partial->count + count, sizeof *partial->items);
    if (status != BASE_OK) return status;
    machine->partial_item_bytes += (partial->capacity - capacity_before) * sizeof *partial->items;
    for (size_t i = 0; i < count; i++) {
        if (!is_dict(partial))
            partial->count = append_merging(machine, partial->items, partial->count, &items[i]);
        else
            partial->items[partial->count++] = items[i];
    }
    return BASE_OK;
}

// Hands the items to the shapes; the partial container then only holds the result.
static enum base_status partial_finish(struct trace__pickle *machine,
                                       struct trace__pickle_partial *partial) {
    if (partial->settled) return BASE_OK;
    partial->settled = true;
    const struct trace__pickle_shapes *shapes = machine->shapes;
    struct trace__pickle_value result = partial->value;
    enum base_status status;
    if (is_dict(partial))
        status = shapes->set_items(shapes->context, partial->items, partial->count / 2, &result);
    else
        status = shapes->add_items(shapes->context, partial->items, partial->count, &result);
    result.is_owner = false;
    result.link = 1;
    uint32_t slot = partial->value.link;
    partial->value = result;
    // A long list's items are not kept for the next small one.
    if (partial->capacity > BATCH_COUNT) {
        machine->partial_item_bytes -= partial->capacity * sizeof *partial->items;
        free(partial->items);
        partial->items = NULL;
        partial->capacity = 0;
    }
    if (status != BASE_OK || slot == PICKLE_NO_SLOT) return status;
    return trace__pickle_memo_update(machine, slot, &result);
}

enum base_status trace__pickle_settle(struct trace__pickle *machine,
                                      struct trace__pickle_value *value) {
    uint32_t index = (uint32_t)value->payload;
    enum base_status status = partial_finish(machine, &machine->partials[index]);
    if (value->is_owner) { // the memo's reference settles as well, but only the owner is the end of
                           // it
        *value = machine->partials[index].value;
        machine->partials[index].next_free = machine->partial_free;
        machine->partial_free = index;
        machine->partial_live--;
    } else {
        *value = machine->partials[index].value;
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// Filling.

static bool is_container(const struct trace__pickle_value *value) {
    return value->type == PICKLE_LIST || value->type == PICKLE_DICT || value->type == PICKLE_SET ||
           value->type == PICKLE_PARTIAL || value->type >= PICKLE_RECORD_FIRST;
}

// Whether CONTAINER may be filled: only its owner fills it, and only before anyone else saw it.
static enum base_status check_fillable(const struct trace__pickle *machine,
                                       const struct trace__pickle_value *container) {
    if (!is_container(container))
        return trace__pickle_refuse(machine, "what it would fill is %s",
                                    trace__pickle_type_name(container->type));
    bool seen = !container->is_owner;
    if (!seen && container->type == PICKLE_PARTIAL)
        seen = machine->partials[container->payload].settled;
    else if (!seen && container->link != PICKLE_NO_SLOT)
        seen = machine->memo[container->link] & PICKLE_MEMO_SHARED;
    if (!seen) return BASE_OK;
    return trace__pickle_refuse(
        machine, "it fills a container that is complete, or that the file referred to "
                 "before (a cycle): no snapshot has that");
}

// PICKLE_LIST, PICKLE_DICT or PICKLE_SET: what CONTAINER was made as. A known dict is no owner any
// more, so that what is left is a list.
static enum trace__pickle_type kind_of(const struct trace__pickle *machine,
                                       const struct trace__pickle_value *container) {
    unsigned type = container->type == PICKLE_PARTIAL
                        ? machine->partials[container->payload].value.type
                        : container->type;
    return type == PICKLE_DICT || type == PICKLE_SET ? type : PICKLE_LIST;
}

static enum base_status check_kind(const struct trace__pickle *machine,
                                   const struct trace__pickle_value *container,
                                   enum trace__pickle_type type) {
    enum trace__pickle_type kind = kind_of(machine, container);
    if (kind == type) return BASE_OK;
    return trace__pickle_refuse(machine, "what it would fill is %s", trace__pickle_type_name(kind));
}

// Checks COUNT values that are to be keys and values in turn.
static enum base_status check_pairs(const struct trace__pickle *machine,
                                    const struct trace__pickle_value *values, size_t count) {
    if (count % 2 != 0) return trace__pickle_refuse(machine, "a key has no value");
    unsigned unusual = 0; // nearly always there is nothing to look at
    for (size_t i = 0; i < count; i += 2)
        unusual |= (values[i].type != PICKLE_STRING) | is_run_type(machine, values[i + 1].type);
    if (!unusual) return BASE_OK;
    for (size_t i = 0; i < count; i++) {
        unsigned type = values[i].type;
        bool hashable =
            type <= PICKLE_SCALAR || type == PICKLE_TUPLE || type >= PICKLE_RECORD_FIRST;
        // Several values held as one can only be there if one of them stands where a key should.
        if ((is_run_type(machine, type) && (i % 2 == 0 || values[i].link > 1)) ||
            (i % 2 == 0 && !hashable))
            return trace__pickle_refuse(machine, "a list or dict is used as a key");
    }
    return BASE_OK;
}

enum base_status trace__pickle_add_one(struct trace__pickle *machine,
                                       const struct trace__pickle_value *items, size_t count) {
    if (machine->count <= trace__pickle_floor(machine))
        return trace__pickle_refuse(machine, "there is no container for it on the stack");
    struct trace__pickle_value *container = &machine->stack[machine->count - 1];
    enum base_status status = check_fillable(machine, container);
    if (status == BASE_OK)
        status = check_kind(machine, container, count == 2 ? PICKLE_DICT : PICKLE_LIST);
    if (status == BASE_OK && count == 2) status = check_pairs(machine, items, count);
    if (status != BASE_OK) return status;
    if (container->type == PICKLE_PARTIAL)
        return partial_add(machine, container->payload, items, count);
    if ((container->type == PICKLE_LIST || container->type == PICKLE_DICT) &&
        container->payload == 0) {
        status = partial_begin(machine, container);
        return status == BASE_OK ? partial_add(machine, container->payload, items, count) : status;
    }
    if (container->type == PICKLE_DICT) return BASE_OK; // one of unknown keys stays so
    status = machine->shapes->add_items(machine->shapes->context, items, count, container);
    if (status != BASE_OK || container->link == PICKLE_NO_SLOT) return status;
    return trace__pickle_memo_update(machine, container->link, container);
}

// A dict became a record: what it was filled through is of no more use, and neighbours are held as
// one.
static void seal_record(struct trace__pickle *machine, size_t position) {
    struct trace__pickle_value value = machine->stack[position];
    value.is_owner = false;
    value.link = 1;
    size_t floor = trace__pickle_floor(machine);
    if (floor > position) floor = position;
    machine->count =
        floor + append_merging(machine, machine->stack + floor, position - floor, &value);
}

static enum base_status fill_dict(struct trace__pickle *machine, size_t first) {
    size_t count = machine->count - first;
    struct trace__pickle_value *dict = &machine->stack[first - 1], *pairs = &machine->stack[first];
    enum base_status status = check_pairs(machine, pairs, count);
    if (status != BASE_OK) return status;
    machine->count = first;
    if (dict->payload != 0 || count == 0)
        return BASE_OK; // a further batch of a dict of more keys than any we know
    status = machine->shapes->set_items(machine->shapes->context, pairs, count / 2, dict);
    if (status == BASE_OK && dict->link != PICKLE_NO_SLOT)
        status = trace__pickle_memo_update(machine, dict->link, dict);
    if (status == BASE_OK && dict->type >= PICKLE_RECORD_FIRST) seal_record(machine, first - 1);
    return status;
}

static enum base_status fill_list(struct trace__pickle *machine, size_t first) {
    size_t count = machine->count - first;
    struct trace__pickle_value *list = &machine->stack[first - 1], *items = &machine->stack[first];
    machine->count = first;
    if (count == 0) return BASE_OK;
    if (list->type == PICKLE_LIST && list->payload == 0 && count >= BATCH_COUNT) {
        enum base_status status = partial_begin(machine, list);
        return status == BASE_OK ? partial_add(machine, list->payload, items, count) : status;
    }
    enum base_status status =
        machine->shapes->add_items(machine->shapes->context, items, count, list);
    if (status != BASE_OK || list->link == PICKLE_NO_SLOT) return status;
    return trace__pickle_memo_update(machine, list->link, list);
}

static enum base_status fill_partial(struct trace__pickle *machine, size_t first) {
    uint64_t partial = machine->stack[first - 1].payload;
    const struct trace__pickle_value *items = machine->stack + first;
    size_t count = machine->count - first;
    machine->count = first;
    if (!is_dict(&machine->partials[partial])) return partial_add(machine, partial, items, count);
    enum base_status status = check_pairs(machine, items, count);
    for (size_t i = 0; i + 1 < count && status == BASE_OK; i += 2)
        status = partial_add(machine, partial, items + i, 2);
    return status;
}

enum base_status trace__pickle_add_slice(struct trace__pickle *machine, size_t first,
                                         enum trace__pickle_type type) {
    if (first <= trace__pickle_floor(machine))
        return trace__pickle_refuse(machine, "there is no container for it below the MARK");
    enum base_status status = settle_from(machine, first);
    struct trace__pickle_value *container = &machine->stack[first - 1];
    if (status == BASE_OK) status = check_fillable(machine, container);
    if (status == BASE_OK) status = check_kind(machine, container, type);
    if (status != BASE_OK) return status;
    if (container->type == PICKLE_PARTIAL) return fill_partial(machine, first);
    if (type == PICKLE_DICT) return fill_dict(machine, first);
    if (type == PICKLE_LIST) return fill_list(machine, first);
    container->payload = 1;
    machine->count = first;
    return BASE_OK;
}

enum base_status trace__pickle_make(struct trace__pickle *machine, size_t first,
                                    enum trace__pickle_type type) {
    enum base_status status = settle_from(machine, first);
    size_t count = machine->count - first;
    struct trace__pickle_value *items = machine->stack + first;
    struct trace__pickle_value made = {.type = (uint8_t)type, .link = 1};
    const struct trace__pickle_shapes *shapes = machine->shapes;
    if (status == BASE_OK && type == PICKLE_DICT) status = check_pairs(machine, items, count);
    if (status == BASE_OK && count > 0) {
        if (type == PICKLE_DICT)
            status = shapes->set_items(shapes->context, items, count / 2, &made);
        else if (type == PICKLE_SET)
            made.payload = 1;
        else
            status = shapes->add_items(shapes->context, items, count, &made);
    }
    if (status != BASE_OK) return status;
    machine->count = first;
    // Protocol 0 begins every list and dict so.
    if (count == 0 && (type == PICKLE_LIST || type == PICKLE_DICT))
        return trace__pickle_push_empty(machine, type);
    status = trace__pickle_push(machine, made.type, made.payload);
    if (status != BASE_OK) return status;
    if (made.type >= PICKLE_RECORD_FIRST) seal_record(machine, first);
    return BASE_OK;
}

uint64_t trace__pickle_stack_bytes(const struct trace__pickle *machine) {
    return machine->stack_capacity * sizeof *machine->stack +
           machine->mark_capacity * sizeof *machine->marks +
           machine->partial_capacity * sizeof *machine->partials + machine->partial_item_bytes;
}
