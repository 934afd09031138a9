// Lists and tuples: of frames they are a stack, of two numbers a pool id, of records a chain.
//
// A chain is one or more ranges of record numbers. The records of a list are nearly always made one
// after another, so that a list of a million events is one range; where the file refers back to a
// record, or another list came between, a further range is linked on. Nothing is ever copied,
// whatever the file does.
#include "trace/snapshot.h"

enum base_status trace__snapshot_grow(void **entries, size_t *capacity, size_t needed,
                                      size_t size) {
    if (needed >= TRACE_NONE)
        return base_status_set(BASE_LIMIT, "the snapshot holds more records of a kind than %u",
                               TRACE_NONE - 1);
    return trace__pickle_grow(entries, capacity, needed, size);
}

//------------------------------------------------------------------------------------------------
// Chains.

static uint64_t chain_payload(uint32_t head, uint32_t tail) { return (uint64_t)tail << 32 | head; }

static enum base_status chain_add(struct snapshot *snapshot, struct trace__pickle_value *list,
                                  uint32_t first, uint32_t count) {
    uint32_t head = (uint32_t)list->payload, tail = (uint32_t)(list->payload >> 32);
    if (tail != TRACE_NONE) {
        struct snapshot_range *last = &snapshot->ranges.entries[tail];
        if ((uint64_t)last->first + last->count == first && count <= UINT32_MAX - last->count) {
            last->count += count;
            return BASE_OK;
        }
    }
    enum base_status status = SNAPSHOT_RESERVE(snapshot->ranges);
    if (status != BASE_OK) return status;
    uint32_t added = (uint32_t)snapshot->ranges.count++;
    snapshot->ranges.entries[added] = (struct snapshot_range){first, count, TRACE_NONE};
    if (tail == TRACE_NONE)
        head = added;
    else
        snapshot->ranges.entries[tail].next = added;
    list->payload = chain_payload(head, added);
    return BASE_OK;
}

static unsigned record_type_of(unsigned list_type) {
    switch (list_type) {
    case SNAPSHOT_EVENT_LIST: return SNAPSHOT_EVENT;
    case SNAPSHOT_BLOCK_LIST: return SNAPSHOT_BLOCK;
    case SNAPSHOT_SEGMENT_LIST: return SNAPSHOT_SEGMENT;
    default: return PICKLE_UNSET;
    }
}

static enum base_status add_device_list(struct snapshot *snapshot,
                                        const struct trace__pickle_value *item, uint32_t *index) {
    enum base_status status = SNAPSHOT_RESERVE(snapshot->device_lists);
    if (status != BASE_OK) return status;
    *index = (uint32_t)snapshot->device_lists.count++;
    snapshot->device_lists.entries[*index].list = *item;
    return BASE_OK;
}

// Adds to a list that is a chain already. What does not belong there gets a faulty record in its
// place.
static enum base_status chain_add_items(struct snapshot *snapshot,
                                        const struct trace__pickle_value *items, size_t count,
                                        struct trace__pickle_value *list) {
    enum base_status status = BASE_OK;
    for (size_t i = 0; i < count && status == BASE_OK; i++) {
        uint32_t first = (uint32_t)items[i].payload, records = items[i].link;
        if (list->type == SNAPSHOT_TRACE_LIST) {
            records = 1;
            status = add_device_list(snapshot, &items[i], &first);
        } else if (items[i].type != record_type_of(list->type)) {
            struct snapshot_fault fault = {.offset = trace__pickle_offset(snapshot->machine),
                                           .problem = PROBLEM_RECORD,
                                           .type = items[i].type};
            records = 1;
            status =
                trace__snapshot_add_faulty(snapshot, record_type_of(list->type), &fault, &first);
        }
        if (status == BASE_OK) status = chain_add(snapshot, list, first, records);
    }
    return status;
}

static enum base_status begin_chain(struct snapshot *snapshot,
                                    const struct trace__pickle_value *items, size_t count,
                                    struct trace__pickle_value *list, enum snapshot_type type) {
    list->type = (uint8_t)type;
    list->payload = chain_payload(TRACE_NONE, TRACE_NONE);
    return chain_add_items(snapshot, items, count, list);
}

//------------------------------------------------------------------------------------------------
// All of them.

static bool is_pool_number(const struct trace__pickle_value *value) {
    return value->type == PICKLE_INT && value->payload <= UINT32_MAX;
}

enum base_status trace__snapshot_add_items(void *context, const struct trace__pickle_value *items,
                                           size_t count, struct trace__pickle_value *list) {
    struct snapshot *snapshot = context;
    switch (list->type) {
    case SNAPSHOT_EVENT_LIST:
    case SNAPSHOT_BLOCK_LIST:
    case SNAPSHOT_SEGMENT_LIST:
    case SNAPSHOT_TRACE_LIST: return chain_add_items(snapshot, items, count, list);
    case SNAPSHOT_HISTORY_LIST: return BASE_OK; // the newest comes first, and only that one counts
    case SNAPSHOT_STACK:
    case SNAPSHOT_PAIR:
        return base_status_set(BASE_FORMAT,
                               "a list is filled in steps at byte %llu: no pickler writes that",
                               (unsigned long long)trace__pickle_offset(snapshot->machine));
    default: break;
    }
    if (list->payload != 0 || count == 0) return BASE_OK;
    switch (items[0].type) {
    case SNAPSHOT_FRAME: return trace__snapshot_make_stack(snapshot, items, count, list);
    case SNAPSHOT_EVENT: return begin_chain(snapshot, items, count, list, SNAPSHOT_EVENT_LIST);
    case SNAPSHOT_BLOCK: return begin_chain(snapshot, items, count, list, SNAPSHOT_BLOCK_LIST);
    case SNAPSHOT_SEGMENT: return begin_chain(snapshot, items, count, list, SNAPSHOT_SEGMENT_LIST);
    case SNAPSHOT_EVENT_LIST:
    case PICKLE_LIST:
    case PICKLE_TUPLE: return begin_chain(snapshot, items, count, list, SNAPSHOT_TRACE_LIST);
    case SNAPSHOT_HISTORY:
        list->type = SNAPSHOT_HISTORY_LIST;
        list->payload = items[0].payload;
        return BASE_OK;
    case PICKLE_INT:
        if (count == 2 && is_pool_number(&items[0]) && is_pool_number(&items[1])) {
            list->type = SNAPSHOT_PAIR;
            list->payload = items[0].payload << 32 | items[1].payload;
            return BASE_OK;
        }
        break;
    default: break;
    }
    list->payload = 1;
    return BASE_OK;
}
