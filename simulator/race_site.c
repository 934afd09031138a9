// Tables of what was seen, each thing once: names and places of calls, which stay; and origins,
// which are forgotten when there are too many. So an origin's number has two parts: which it is,
// and the number of times they were forgotten before; that of a forgotten one knows nothing.
#include "simulator/race_site.h"

#include "simulator/call.h"
#include "simulator/memory.h"
#include "simulator/race.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 1024
#define CHUNK_COUNT 1024
#define ORIGIN_BITS 20
#define ORIGIN_MASK ((1u << ORIGIN_BITS) - 1)
// Behind so many origins the sizes of new ones are left out; and a new start of the checker forgets
// them.
#define SIZED_MAX 32768

// What is in a table stands in chunks, which never move; slots hold numbers, 0: empty.
struct table {
    size_t item_size;
    uint32_t count;
    uint32_t slot_count; // a power of two, or 0
    uint32_t *slots;
    uint64_t *hashes[CHUNK_COUNT];
    unsigned char *chunks[CHUNK_COUNT];
};

struct site {
    const char *file; // or NULL: then the callers
    uint64_t line;
    const void *callers[SIM__CALLERS];
};
// What a site is as text, once somebody asked.
static char **site_texts;
static uint32_t site_text_count;

struct name {
    const char *text; // the table's own
};

static struct table sites = {.item_size = sizeof(struct site)};
static struct table origins = {.item_size = sizeof(struct sim__race_origin)};
static uint32_t origins_age; // times that they were forgotten, in the bits that are left
static struct table names = {.item_size = sizeof(struct name)};

// What belongs to a host thread, through restarts of the machine.
static _Thread_local struct {
    const char *file; // sim_call_site
    int line;
    const void *address; // sim_call_address
    const char *label;
    uint32_t number, start; // the number is of that start of the checker
} thread;
static uint32_t thread_count, start_count;

// --- Tables ---

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

// SIZE is a multiple of 8.
static inline uint64_t hash_words(const void *item, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)item + i, sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

static uint64_t hash_text(const char *text) {
    uint64_t hash = 0;
    for (size_t left = strlen(text); left > 0;) {
        uint64_t word = 0;
        const size_t piece = left < sizeof word ? left : sizeof word;
        memcpy(&word, text, piece);
        hash = mix(hash, word);
        text += piece;
        left -= piece;
    }
    return hash;
}

static inline void *item_at(const struct table *table, uint32_t number) {
    return table->chunks[(number - 1) / CHUNK] + (number - 1) % CHUNK * table->item_size;
}
static inline uint64_t hash_at(const struct table *table, uint32_t number) {
    return table->hashes[(number - 1) / CHUNK][(number - 1) % CHUNK];
}

static bool slots_grow(struct table *table) {
    const uint32_t slot_count = table->slot_count == 0 ? 256 : 2 * table->slot_count;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t number = 1; number <= table->count; ++number) {
        uint32_t place = (uint32_t)hash_at(table, number) & (slot_count - 1);
        while (slots[place] != 0)
            place = (place + 1) & (slot_count - 1);
        slots[place] = number;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    return true;
}

// A new item, zeroed; 0 if there is no room.
static uint32_t table_add(struct table *table, uint64_t hash) {
    const uint32_t chunk = table->count / CHUNK;
    if (chunk == CHUNK_COUNT || (2 * table->count >= table->slot_count && !slots_grow(table)))
        return 0;
    if (table->chunks[chunk] == NULL)
        table->chunks[chunk] = calloc(CHUNK, table->item_size);
    if (table->hashes[chunk] == NULL)
        table->hashes[chunk] = calloc(CHUNK, sizeof(uint64_t));
    if (table->chunks[chunk] == NULL || table->hashes[chunk] == NULL)
        return 0;
    const uint32_t number = ++table->count;
    table->hashes[chunk][(number - 1) % CHUNK] = hash;
    uint32_t place = (uint32_t)hash & (table->slot_count - 1);
    while (table->slots[place] != 0)
        place = (place + 1) & (table->slot_count - 1);
    table->slots[place] = number;
    return number;
}

// The number of ITEM, entered if it is new.
static inline uint32_t table_intern(struct table *table, const void *item, size_t size) {
    const uint64_t hash = hash_words(item, size);
    if (table->slot_count > 0)
        for (uint32_t place = (uint32_t)hash & (table->slot_count - 1); table->slots[place] != 0;
             place = (place + 1) & (table->slot_count - 1)) {
            const uint32_t number = table->slots[place];
            if (hash_at(table, number) == hash && memcmp(item_at(table, number), item, size) == 0)
                return number;
        }
    const uint32_t number = table_add(table, hash);
    if (number != 0)
        memcpy(item_at(table, number), item, size);
    return number;
}

const char *sim__race_keep(const char *text) {
    if (text == NULL)
        return NULL;
    const uint64_t hash = hash_text(text);
    if (names.slot_count > 0)
        for (uint32_t place = (uint32_t)hash & (names.slot_count - 1); names.slots[place] != 0;
             place = (place + 1) & (names.slot_count - 1)) {
            const struct name *name = item_at(&names, names.slots[place]);
            if (hash_at(&names, names.slots[place]) == hash && strcmp(name->text, text) == 0)
                return name->text;
        }
    char *copy = strdup(text);
    const uint32_t number = copy == NULL ? 0 : table_add(&names, hash);
    if (number == 0) {
        free(copy);
        return "";
    }
    ((struct name *)item_at(&names, number))->text = copy;
    return copy;
}

// --- The call under way ---

void sim_call_site(const char *file, int line) {
    thread.file = file;
    thread.line = line;
}

void sim_call_address(const void *address) { thread.address = address; }

void sim_race_label(const char *label) {
    base_mutex_lock(&sim__state.lock);
    thread.label = sim__race_keep(label);
    base_mutex_unlock(&sim__state.lock);
}

uint32_t sim__race_thread(void) {
    if (thread.number == 0 || thread.start != start_count) {
        thread.number = ++thread_count;
        thread.start = start_count;
    }
    return thread.number;
}

static void origins_forget(void) {
    origins.count = 0;
    memset(origins.slots, 0, origins.slot_count * sizeof *origins.slots);
    ++origins_age;
}

void sim__race_origins_reset(void) {
    ++start_count;
    thread_count = 0;
    if (origins.count >= SIZED_MAX)
        origins_forget();
}

static uint32_t site_here(void) {
    struct site site = {.file = thread.file, .line = (uint64_t)thread.line};
    if (thread.file == NULL && thread.address != NULL)
        site.callers[0] = thread.address;
    else if (thread.file == NULL)
        memcpy(site.callers, sim__thread()->callers, sizeof site.callers);
    if (thread.file == NULL && site.callers[0] == NULL)
        return 0;
    return table_intern(&sites, &site, sizeof site);
}

static uint32_t origin_of(struct sim__race_origin *origin) {
    origin->label = thread.label;
    origin->site = site_here();
    origin->thread = sim__race_thread();
    origin->call = (uint8_t)sim__thread()->call;
    if (origins.count >= SIZED_MAX)
        origin->size = 0;
    if (origins.count == ORIGIN_MASK)
        origins_forget();
    const uint32_t number = table_intern(&origins, origin, sizeof *origin);
    return number == 0 ? 0 : origins_age << ORIGIN_BITS | number;
}

uint32_t sim__race_origin(const struct sim__operation *operation) {
    struct sim__race_origin origin;
    memset(&origin, 0, sizeof origin); // padding is compared
    origin.act = (uint8_t)operation->kind;
    switch (operation->kind) {
    case SIM__OPERATION_COPY:
        origin.size = operation->copy.size * operation->copy.rows;
        origin.from = operation->copy.source_place;
        origin.to = operation->copy.destination_place;
        break;
    case SIM__OPERATION_FILL: origin.size = operation->fill.size * operation->fill.rows; break;
    case SIM__OPERATION_VALUE: origin.size = operation->value.size; break;
    case SIM__OPERATION_KERNEL: origin.name = sim__race_keep(operation->kernel.name); break;
    case SIM__OPERATION_INTERNAL: origin.name = sim__race_keep(operation->internal.name); break;
    default: break;
    }
    return origin_of(&origin);
}

uint32_t sim__race_origin_act(enum sim__race_act act, uint64_t size) {
    struct sim__race_origin origin;
    memset(&origin, 0, sizeof origin);
    origin.act = (uint8_t)act;
    origin.size = size;
    return origin_of(&origin);
}

const struct sim__race_origin *sim__race_origin_at(uint32_t origin) {
    static const struct sim__race_origin nothing = {.act = SIM__RACE_CALL, .call = SIM__CALL_OTHER};
    const uint32_t number = origin & ORIGIN_MASK;
    const bool is_known = number > 0 && number <= origins.count &&
                          origin >> ORIGIN_BITS == origins_age << ORIGIN_BITS >> ORIGIN_BITS;
    return is_known ? item_at(&origins, number) : &nothing;
}

// --- Text ---

static const char *copy_direction(const struct sim__race_origin *origin) {
    static const char *const words[2][2] = {
        {"in host memory", "to the device"},
        {"from the device", "on the device"},
    };
    return words[origin->from == SIM__PLACE_DEVICE][origin->to == SIM__PLACE_DEVICE];
}

static void sized(char *text, size_t size, const char *what, uint64_t bytes, const char *behind) {
    if (bytes > 0)
        snprintf(text, size, "%s of %" PRIu64 " byte%s%s%s", what, bytes, bytes == 1 ? "" : "s",
                 behind[0] == '\0' ? "" : " ", behind);
    else
        snprintf(text, size, "%s%s%s", what, behind[0] == '\0' ? "" : " ", behind);
}

const char *sim__race_origin_what(uint32_t number, char *text, size_t size) {
    const struct sim__race_origin *origin = sim__race_origin_at(number);
    switch (origin->act) {
    case SIM__OPERATION_COPY:
        sized(text, size, "copy", origin->size, copy_direction(origin));
        break;
    case SIM__OPERATION_FILL: sized(text, size, "fill", origin->size, ""); break;
    case SIM__OPERATION_KERNEL:
        snprintf(text, size, "kernel%s%s", origin->name == NULL ? "" : " ",
                 origin->name == NULL ? "" : origin->name);
        break;
    case SIM__OPERATION_HOST_FUNCTION: snprintf(text, size, "host function"); break;
    case SIM__OPERATION_VALUE: snprintf(text, size, "write of a value"); break;
    case SIM__OPERATION_RECORD: snprintf(text, size, "event record"); break;
    case SIM__OPERATION_WAIT: snprintf(text, size, "wait"); break;
    case SIM__OPERATION_LAUNCH_BEGIN:
    case SIM__OPERATION_LAUNCH_END: snprintf(text, size, "launch of a graph"); break;
    case SIM__OPERATION_INTERNAL:
        snprintf(text, size, "%s", origin->name == NULL ? "internal work" : origin->name);
        break;
    case SIM__RACE_HOST_READ: sized(text, size, "host read", origin->size, ""); break;
    case SIM__RACE_HOST_WRITE: sized(text, size, "host write", origin->size, ""); break;
    case SIM__RACE_LAUNCH: snprintf(text, size, "launch of graph %" PRIu64, origin->size); break;
    case SIM__RACE_TAKE: snprintf(text, size, "block taken"); break;
    case SIM__RACE_USE: snprintf(text, size, "record_stream"); break;
    case SIM__RACE_GIVE: snprintf(text, size, "block given back"); break;
    default:
        snprintf(text, size, "%s",
                 origin->call < SIM_CALL_KIND_COUNT ? sim_call_name((enum sim_call)origin->call)
                                                    : "a CUDA call");
    }
    return text;
}

static void site_make(const struct site *site, char *text, size_t size) {
    if (site->file != NULL)
        snprintf(text, size, "%s:%" PRIu64, site->file, site->line);
    else
        (void)sim__callers_text(site->callers, text, size);
}

// Kept, since a reader of debug information takes its time.
static const char *site_text(uint32_t number) {
    char text[1024];
    if (number > site_text_count) {
        char **grown = realloc(site_texts, sites.count * sizeof *grown);
        if (grown == NULL)
            return "";
        memset(grown + site_text_count, 0, (sites.count - site_text_count) * sizeof *grown);
        site_texts = grown;
        site_text_count = sites.count;
    }
    if (site_texts[number - 1] == NULL) {
        site_make(item_at(&sites, number), text, sizeof text);
        site_texts[number - 1] = strdup(text);
    }
    return site_texts[number - 1] == NULL ? "" : site_texts[number - 1];
}

const char *sim__race_origin_site(uint32_t number, char *text, size_t size) {
    const uint32_t site = sim__race_origin_at(number)->site;
    snprintf(text, size, "%s", site == 0 ? "" : site_text(site));
    return text;
}
