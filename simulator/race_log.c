// A ring of entries, and tables of live memory and live blocks. What ended stays in a ring of its
// own for a while.
#include "simulator/race_log.h"

#include "base/address_map.h"
#include "simulator/handle.h"

#include <stdlib.h>
#include <string.h>

#define GONE_MAX 1024
#define STREAMS_MAX 65536 // then they are forgotten: a program that makes more uses few at once

static struct sim__race_entry *entries;
static uint64_t last;  // number of the last entry
static uint64_t first; // since the log began anew

// From a stream's number to device, legacy and nonblocking.
static struct base_address_map streams;
static struct {
    uint64_t number;
    struct sim__race_stream stream;
} recent_streams[64]; // by number: most entries are of a few streams

// Live blocks by number, as places in an array with a list of free ones.
static struct base_address_map block_places;
static struct sim__race_block *blocks;
static uint32_t block_count, block_size, block_free; // block_free: 1 + place, through NUMBER
static struct sim__race_block gone_blocks[GONE_MAX];
static uint64_t gone_block_count;

struct allocation {
    struct sim__range range; // in allocations
    struct sim__race_allocation what;
};
static struct sim__range_index allocations;
static struct sim__race_allocation gone_allocations[GONE_MAX];
static uint64_t gone_allocation_count;

// --- Streams ---

static uint64_t stream_code(const struct sim__race_stream *stream) {
    return (uint64_t)stream->device << 2 | (uint64_t)stream->legacy << 1 |
           (uint64_t)stream->nonblocking;
}

static void stream_note(const struct sim__stream *stream) {
    const size_t place = stream->number % 64;
    if (recent_streams[place].number == stream->number)
        return;
    const struct sim__race_stream what = {
        .device = stream->device,
        .legacy = stream->legacy,
        .nonblocking = !stream->legacy && (stream->flags & cudaStreamNonBlocking) != 0,
    };
    recent_streams[place].number = stream->number;
    recent_streams[place].stream = what;
    if (streams.count >= STREAMS_MAX)
        base_address_map_deinit(&streams);
    (void)!base_address_map_set(&streams, stream->number, stream_code(&what));
}

struct sim__race_stream sim__race_log_stream(uint64_t number) {
    uint64_t code = 0;
    (void)base_address_map_get(&streams, number, &code);
    return (struct sim__race_stream){
        .device = (int)(code >> 2),
        .legacy = (code & 2) != 0,
        .nonblocking = (code & 1) != 0,
    };
}

// --- Entries ---

static struct sim__race_entry *entry_add(enum sim__race_entry_kind kind, uint32_t origin) {
    static struct sim__race_entry nowhere;
    if (entries == NULL)
        entries = calloc(SIM__RACE_LOG_ENTRIES, sizeof *entries);
    if (entries == NULL)
        return &nowhere;
    ++last;
    struct sim__race_entry *entry = &entries[last % SIM__RACE_LOG_ENTRIES];
    *entry = (struct sim__race_entry){.number = last, .origin = origin, .kind = (uint8_t)kind};
    return entry;
}

static struct sim__race_entry *entry_of_call(enum sim__race_entry_kind kind) {
    return entry_add(kind, sim__race_origin_act(SIM__RACE_CALL, 0));
}

static void entry_stream(struct sim__race_entry *entry, const struct sim__stream *stream) {
    if (stream == NULL)
        return;
    stream_note(stream);
    entry->stream = stream->number;
    entry->sequence = stream->submitted;
    entry->device = (int8_t)stream->device;
}

static void entry_other(struct sim__race_entry *entry, struct sim__position covered) {
    if (covered.stream == NULL)
        return;
    stream_note(covered.stream);
    entry->other = covered.stream->number;
    entry->other_sequence = covered.sequence;
}

uint64_t sim__race_log_last(void) { return last; }

uint64_t sim__race_log_first(void) {
    const uint64_t kept = last < SIM__RACE_LOG_ENTRIES ? 1 : last - SIM__RACE_LOG_ENTRIES + 1;
    return kept > first ? kept : first;
}

const struct sim__race_entry *sim__race_log_at(uint64_t number) {
    return number >= sim__race_log_first() && number <= last
               ? &entries[number % SIM__RACE_LOG_ENTRIES]
               : NULL;
}

// --- What happens in streams ---

void sim__race_log_operation(struct sim__position position, uint32_t origin) {
    struct sim__race_entry *entry = entry_add(SIM__RACE_LOG_OPERATION, origin);
    entry_stream(entry, position.stream);
    entry->sequence = position.sequence;
}

void sim__race_log_node(const struct sim__stream *stream, uint64_t graph, uint64_t node,
                        uint32_t origin) {
    struct sim__race_entry *entry = entry_add(SIM__RACE_LOG_NODE, origin);
    entry_stream(entry, stream);
    entry->sequence = node;
    entry->object = graph;
    entry->captured = true;
}

void sim__race_log_record(struct sim__position position, uint64_t event) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_RECORD);
    entry_stream(entry, position.stream);
    entry->sequence = position.sequence;
    entry_other(entry, position);
    entry->object = event;
}

void sim__race_log_wait(const struct sim__stream *stream, uint64_t event,
                        struct sim__position covered) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_WAIT);
    entry_stream(entry, stream);
    entry_other(entry, covered);
    entry->object = event;
}

void sim__race_log_record_captured(const struct sim__stream *stream, uint64_t event) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_RECORD);
    entry_stream(entry, stream);
    entry->sequence = 0;
    entry->other = stream->number;
    entry->object = event;
    entry->captured = true;
}

void sim__race_log_wait_captured(const struct sim__stream *stream, uint64_t event,
                                 uint64_t other_stream) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_WAIT);
    entry_stream(entry, stream);
    entry->sequence = 0;
    entry->other = other_stream;
    entry->object = event;
    entry->captured = true;
}

void sim__race_log_host_wait(struct sim__position covered, int device) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_HOST_WAIT);
    entry_other(entry, covered);
    entry->device = (int8_t)device;
}

void sim__race_log_host(uint32_t origin, uint64_t start, uint64_t size) {
    struct sim__race_entry *entry = entry_add(SIM__RACE_LOG_HOST, origin);
    entry->start = start;
    entry->size = size;
}

// --- Memory ---

static void allocation_end(struct allocation *allocation, uint32_t origin) {
    sim__range_remove(&allocations, &allocation->range);
    allocation->what.freed_origin = origin;
    gone_allocations[gone_allocation_count++ % GONE_MAX] = allocation->what;
    free(allocation);
}

// What was there before has ended without a word: with the machine, say.
static void allocations_end(uint64_t start, uint64_t size) {
    struct sim__range *range;
    while ((range = sim__range_overlapping(&allocations, start, size)) != NULL) {
        struct allocation *allocation = (struct allocation *)(void *)range;
        allocation_end(allocation, 0);
    }
}

void sim__race_log_alloc(uint64_t start, uint64_t size, const struct sim__stream *stream) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_ALLOC);
    entry_stream(entry, stream);
    entry->start = start;
    entry->size = size;
    struct allocation *allocation = size == 0 ? NULL : malloc(sizeof *allocation);
    if (allocation == NULL)
        return;
    allocations_end(start, size);
    *allocation = (struct allocation){
        .range = {start, size},
        .what = {.start = start, .size = size, .stream = entry->stream, .origin = entry->origin},
    };
    sim__range_insert(&allocations, &allocation->range);
}

void sim__race_log_free(uint64_t start, uint64_t size, const struct sim__stream *stream) {
    struct sim__race_entry *entry = entry_of_call(SIM__RACE_LOG_FREE);
    entry_stream(entry, stream);
    entry->start = start;
    entry->size = size;
    struct sim__range *range = sim__range_at(&allocations, start);
    if (range != NULL)
        allocation_end((struct allocation *)(void *)range, entry->origin);
}

const struct sim__race_allocation *sim__race_log_allocation(uint64_t address) {
    const struct sim__range *range = sim__range_at(&allocations, address);
    if (range != NULL)
        return &((const struct allocation *)(const void *)range)->what;
    for (uint64_t i = 0; i < GONE_MAX && i < gone_allocation_count; ++i) {
        const struct sim__race_allocation *gone =
            &gone_allocations[(gone_allocation_count - 1 - i) % GONE_MAX];
        if (address - gone->start < gone->size)
            return gone;
    }
    return NULL;
}

// --- Blocks ---

static struct sim__race_block *block_new(uint64_t number) {
    uint32_t place;
    if (block_free > 0) {
        place = block_free - 1;
    } else {
        if (block_count == block_size) {
            const uint32_t size = block_size == 0 ? 256 : 2 * block_size;
            struct sim__race_block *grown = realloc(blocks, size * sizeof *grown);
            if (grown == NULL)
                return NULL;
            blocks = grown;
            block_size = size;
        }
        place = block_count;
    }
    if (base_address_map_set(&block_places, number, place) != BASE_OK)
        return NULL;
    if (block_free > 0)
        block_free = (uint32_t)blocks[place].number;
    else
        ++block_count;
    return &blocks[place];
}

static struct sim__race_block *block_live(uint64_t number) {
    uint64_t place;
    return base_address_map_get(&block_places, number, &place) ? &blocks[place] : NULL;
}

static struct sim__race_block *block_gone(uint64_t number) {
    for (uint64_t i = 0; i < GONE_MAX && i < gone_block_count; ++i) {
        struct sim__race_block *gone = &gone_blocks[(gone_block_count - 1 - i) % GONE_MAX];
        if (gone->number == number)
            return gone;
    }
    return NULL;
}

static struct sim__race_entry *block_entry(enum sim__race_entry_kind kind, enum sim__race_act act,
                                           const struct sim__race_block *block) {
    struct sim__race_entry *entry = entry_add(kind, sim__race_origin_act(act, block->size));
    entry->object = block->number;
    entry->start = block->start;
    entry->size = block->size;
    return entry;
}

void sim__race_log_take(uint64_t number, uint64_t start, uint64_t size,
                        const struct sim__stream *stream, const char *name) {
    struct sim__race_block *block = block_new(number);
    if (block == NULL)
        return;
    *block = (struct sim__race_block){
        .number = number, .start = start, .size = size, .name = sim__race_keep(name)};
    struct sim__race_entry *entry = block_entry(SIM__RACE_LOG_TAKE, SIM__RACE_TAKE, block);
    entry_stream(entry, stream);
    block->stream = entry->stream;
    block->taken = entry->number;
    block->taken_origin = entry->origin;
}

void sim__race_log_use(uint64_t number, const struct sim__stream *stream) {
    struct sim__race_block *block = block_live(number);
    if (block == NULL)
        block = block_gone(number); // too late, as the report will say
    if (block == NULL)
        return;
    struct sim__race_entry *entry = block_entry(SIM__RACE_LOG_USE, SIM__RACE_USE, block);
    entry_stream(entry, stream);
    if (block->use_count++ < SIM__RACE_BLOCK_USES) {
        const uint32_t i = block->use_count - 1;
        block->uses[i].stream = entry->stream;
        block->uses[i].number = entry->number;
        block->uses[i].origin = entry->origin;
    }
}

void sim__race_log_give(uint64_t number) {
    struct sim__race_block *block = block_live(number);
    uint64_t place;
    if (block == NULL)
        return;
    struct sim__race_entry *entry = block_entry(SIM__RACE_LOG_GIVE, SIM__RACE_GIVE, block);
    block->given = entry->number;
    block->given_origin = entry->origin;
    gone_blocks[gone_block_count++ % GONE_MAX] = *block;
    (void)base_address_map_remove(&block_places, number, &place);
    block->number = block_free;
    block_free = (uint32_t)place + 1;
}

const struct sim__race_block *sim__race_log_block(uint64_t number) {
    if (number == 0)
        return NULL;
    const struct sim__race_block *block = block_live(number);
    return block != NULL ? block : block_gone(number);
}

// --- Start ---

// Numbers go on, so that nothing is mistaken for something of before.
void sim__race_log_reset(void) {
    first = last + 1;
    sim__race_origins_reset();
    base_address_map_deinit(&streams);
    memset(recent_streams, 0, sizeof recent_streams);
    base_address_map_deinit(&block_places);
    block_count = block_free = 0;
    gone_block_count = gone_allocation_count = 0;
    struct sim__range *range;
    while ((range = sim__range_last(&allocations)) != NULL) {
        sim__range_remove(&allocations, range);
        free(range);
    }
}
