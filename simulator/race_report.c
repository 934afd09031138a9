// Which pairs are reported, and where to. A pair is two places of the program that do the same to
// the same memory, in whatever streams and however often: it is told once, and counted.
//
// A program that is to fail ends here, with the simulator's lock held: its files are completed, no
// handler of the program runs.
#include "simulator/race_report.h"

#include "base/address_map.h"
#include "base/file.h"
#include "simulator/race.h"
#include "simulator/race_json.h"
#include "simulator/race_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_DEFAULT 1000
#define PAIRS_MAX ((size_t)1 << 20) // more are not told apart from what was seen

struct kept {
    struct sim_race_report report;
    struct sim__text strings[2][4]; // of the two operations: what, node, site, node_site
    struct sim__text text;
};

static struct sim_race_options options;
static bool is_started; // between start and stop
static pid_t owner;     // who started: what a forked child does is its own
static uint64_t counts[SIM_RACE_RULE_COUNT];
static uint64_t met_count;
static struct kept **kept; // in order
static uint32_t kept_count, kept_size;
static bool is_full; // and that was said
static struct base_address_map pairs; // from a pair's hash to its place in KEPT, or PLACE_NONE
#define PLACE_NONE UINT32_MAX

static struct base_file file;
static bool file_is_open; // a forked child may not write to it

const char *sim_race_rule_name(enum sim_race_rule rule) {
    static const char *const names[SIM_RACE_RULE_COUNT] = {
#define SIM_RACE_WORD(name, word, text) [SIM_RACE_##name] = word,
        SIM_RACE_RULE_LIST(SIM_RACE_WORD)
#undef SIM_RACE_WORD
    };
    return (unsigned)rule < SIM_RACE_RULE_COUNT ? names[rule] : "all";
}

// --- The file ---

// Files take a lock of base/thread.h, which would be a point of sim_serialize: its hooks look away
// meanwhile. What is written is flushed at once, so that a forked child has nothing of it left to
// write.
static enum base_status file_begin(const char *path) {
    const struct base_thread_hooks *hooks = base__thread_hooks_suspend();
    const enum base_status status = base_file_create(&file, path);
    base__thread_hooks_resume(hooks);
    file_is_open = status == BASE_OK;
    if (file_is_open) {
        sim__race_json_head(file.stream);
        fflush(file.stream);
    }
    return status;
}

// What is reported must not be lost in silence, and must not change how the program goes on.
static void file_end(void) {
    if (!file_is_open)
        return;
    file_is_open = false;
    if (owner != getpid())
        return;
    const struct base_thread_hooks *hooks = base__thread_hooks_suspend();
    if (base_file_commit(&file) != BASE_OK)
        fprintf(stderr, "race reports: %s\n", base_status_message());
    base__thread_hooks_resume(hooks);
}

static void file_add(const struct sim__race_found *found, const struct sim_race_report *report,
                     uint64_t number) {
    if (!file_is_open || owner != getpid())
        return;
    sim__race_json_report(file.stream, found, report, number);
    fflush(file.stream);
}

// --- What is kept ---

static void kept_free(struct kept *entry) {
    for (int side = 0; side < 2; ++side)
        for (int i = 0; i < 4; ++i)
            sim__text_deinit(&entry->strings[side][i]);
    sim__text_deinit(&entry->text);
    free(entry);
}

static void clear(void) {
    for (uint32_t i = 0; i < kept_count; ++i)
        kept_free(kept[i]);
    kept_count = 0;
    is_full = false;
    base_address_map_deinit(&pairs);
    memset(counts, 0, sizeof counts);
    met_count = 0;
}

static const char *text_of(const struct sim__text *text) {
    return text->bytes == NULL ? "" : text->bytes;
}

static void side_fill(struct sim_race_operation *operation, struct sim__text strings[4],
                      const struct sim__race_side *side) {
    char text[1024];
    const struct sim__race_origin *origin = sim__race_origin_at(side->origin);
    const struct sim__race_origin *node = sim__race_origin_at(side->node_origin);
    const bool is_there = side->origin != 0 || side->stream != 0;
    if (is_there)
        sim__text_add(
            &strings[0], "%s",
            sim__race_origin_what(side->node_origin != 0 ? side->node_origin : side->origin, text,
                                  sizeof text));
    sim__text_add(&strings[1], "%s", node->label == NULL ? "" : node->label);
    sim__text_add(&strings[2], "%s", sim__race_origin_site(side->origin, text, sizeof text));
    sim__text_add(&strings[3], "%s", sim__race_origin_site(side->node_origin, text, sizeof text));
    *operation = (struct sim_race_operation){
        .what = text_of(&strings[0]),
        .label = origin->label == NULL ? "" : origin->label,
        .node = text_of(&strings[1]),
        .site = text_of(&strings[2]),
        .node_site = text_of(&strings[3]),
        .stream = side->stream,
        .device = side->device,
        .thread = (int)origin->thread,
        .sequence = side->sequence,
    };
}

// What the two do to the memory.
static const char *kind_of(const struct sim__race_found *found) {
    switch (found->rule) {
    case SIM_RACE_UNMAPPED:
    case SIM_RACE_GRAPH_MEMORY: return "use-after-free";
    case SIM_RACE_HOST_ACCESS:
        return found->first.mode == SIM_ACCESS_READ || found->second.mode == SIM_ACCESS_READ ||
                       found->first.mode == SIM_ACCESS_CARRY ||
                       found->second.mode == SIM_ACCESS_CARRY
                   ? "read-write"
                   : "write-write";
    default: return sim_race_rule_name(found->rule);
    }
}

static struct kept *kept_make(const struct sim__race_found *found) {
    struct kept *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    struct sim_race_report *report = &entry->report;
    *report = (struct sim_race_report){
        .rule = found->rule,
        .kind = found->kind != NULL ? found->kind : kind_of(found),
        .start = found->start,
        .size = found->size,
        .block = found->block,
        .count = 1,
    };
    side_fill(&report->first, entry->strings[0], &found->first);
    side_fill(&report->second, entry->strings[1], &found->second);
    const struct sim__race_allocation *allocation = sim__race_log_allocation(found->start);
    report->allocation_start = found->allocation_start;
    if (allocation != NULL && allocation->start == found->allocation_start)
        report->allocation_size = allocation->size;
    sim__race_words(&entry->text, found, report);
    report->text = text_of(&entry->text);
    return entry;
}

static bool kept_add(struct kept *entry) {
    if (kept_count == kept_size) {
        const uint32_t size = kept_size == 0 ? 16 : 2 * kept_size;
        struct kept **grown = realloc(kept, size * sizeof *grown);
        if (grown == NULL)
            return false;
        kept = grown;
        kept_size = size;
    }
    kept[kept_count++] = entry;
    return true;
}

// --- Pairs ---

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

// Of an origin without its size: a loop that copies more and more is one place.
static uint64_t mix_origin(uint64_t hash, uint32_t number) {
    const struct sim__race_origin *origin = sim__race_origin_at(number);
    if (origin->site == 0)
        return mix(hash, number);
    hash = mix(hash, (uint64_t)origin->site << 32 | origin->thread);
    hash = mix(hash, (uint64_t)(uintptr_t)origin->label);
    return mix(hash, (uint64_t)(uintptr_t)origin->name ^ origin->act);
}

static uint64_t mix_side(uint64_t hash, const struct sim__race_side *side) {
    hash = mix_origin(mix_origin(hash, side->origin), side->node_origin);
    return side->origin == 0 ? mix(hash, side->stream) : hash;
}

// Memory is the same if it was allocated, or its block taken, at the same place.
static uint64_t pair_hash(const struct sim__race_found *found) {
    uint64_t hash = mix(found->rule, 1);
    hash = mix_side(mix_side(hash, &found->first), &found->second);
    const struct sim__race_allocation *allocation = sim__race_log_allocation(found->start);
    const struct sim__race_block *block = sim__race_log_block(found->block);
    if (block != NULL && block->taken_origin != 0)
        return mix_origin(hash, block->taken_origin);
    return allocation != NULL && allocation->origin != 0 ? mix_origin(hash, allocation->origin)
                                                         : mix(hash, found->allocation_start);
}

static bool is_wanted(enum sim_race_rule rule) {
    return options.rules == 0 || (options.rules >> rule & 1) != 0;
}

static uint64_t count_all(void) {
    uint64_t count = 0;
    for (int i = 0; i < SIM_RACE_RULE_COUNT; ++i)
        count += counts[i];
    return count;
}

static void tell(const struct sim__race_found *found, const struct sim_race_report *report) {
    const uint64_t number = count_all();
    if (!options.quiet)
        fprintf(stderr, "tidemark race %llu: %s", (unsigned long long)number, report->text);
    file_add(found, report, number);
    if (!options.fail)
        return;
    file_end();
    sim__transcript_machine_stops();
    fflush(NULL);
    _exit(base_status_exit_code(BASE_CHECK_FAILED));
}

void sim__race_report(const struct sim__race_found *found) {
    if (!is_wanted(found->rule))
        return;
    ++met_count;
    const uint64_t hash = pair_hash(found);
    uint64_t place;
    if (base_address_map_get(&pairs, hash, &place)) {
        if (place != PLACE_NONE)
            ++kept[place]->report.count;
        return;
    }
    if (pairs.count >= PAIRS_MAX)
        return;
    const uint32_t most = options.report_count_max == 0 ? KEPT_DEFAULT : options.report_count_max;
    if (base_address_map_set(&pairs, hash, PLACE_NONE) != BASE_OK)
        return;
    ++counts[found->rule];
    if (kept_count == most) { // a program that goes wrong everywhere; it would fill the disk
        if (!is_full && !options.quiet)
            fprintf(stderr, "tidemark races: after %u reports further ones are only counted\n",
                    most);
        is_full = true;
        return;
    }
    struct kept *entry = kept_make(found);
    if (entry == NULL)
        return;
    tell(found, &entry->report);
    if (!kept_add(entry))
        kept_free(entry);
    else
        (void)!base_address_map_set(&pairs, hash, kept_count - 1);
}

// --- Start and stop ---

// A program that ends while it is checked: what is reported last is reported, the file completed.
static void at_exit(void) {
    if (is_started && owner == getpid())
        sim_race_stop();
}

// Behind base/file's own, so that it runs before that one: that is there with the first file.
static void at_exit_install(void) {
    static bool is_installed, is_behind_files;
    if (!is_installed || (file_is_open && !is_behind_files))
        BASE_CHECK_EQ(atexit(at_exit), 0);
    is_installed = true;
    is_behind_files |= file_is_open;
}

enum base_status sim__race_report_start(const struct sim_race_options *new_options) {
    if (new_options == NULL)
        return base_status_set(BASE_INVALID_VALUE,
                               "race checker: no options; {0} are the defaults");
    if ((new_options->rules >> SIM_RACE_RULE_COUNT) != 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "race checker: rules 0x%x: there are only rules 0 to %d",
                               (unsigned)new_options->rules, SIM_RACE_RULE_COUNT - 1);
    sim__race_report_stop();
    owner = getpid();
    if (new_options->report_path != NULL && new_options->report_path[0] == '\0')
        return base_status_set(BASE_INVALID_VALUE, "race checker: the report file has no name");
    if (new_options->report_path != NULL) {
        const enum base_status status = file_begin(new_options->report_path);
        if (status != BASE_OK)
            return status;
    }
    clear();
    options = *new_options;
    options.report_path = NULL; // the caller's
    is_started = true;
    at_exit_install();
    return BASE_OK;
}

void sim__race_report_stop(void) {
    if (!is_started)
        return;
    is_started = false;
    file_end();
    const uint64_t count = count_all();
    if (count > 0 && !options.quiet && owner == getpid())
        fprintf(stderr, "tidemark races: %llu reported, met %llu time%s\n",
                (unsigned long long)count, (unsigned long long)met_count,
                met_count == 1 ? "" : "s");
}

// --- For programs ---

uint64_t sim_race_count(enum sim_race_rule rule) {
    uint64_t count = 0;
    base_mutex_lock(&sim__state.lock);
    for (int i = 0; i < SIM_RACE_RULE_COUNT; ++i)
        count += rule == SIM_RACE_RULE_COUNT || (int)rule == i ? counts[i] : 0;
    base_mutex_unlock(&sim__state.lock);
    return count;
}

const struct sim_race_report *sim_race_report_at(uint64_t index) {
    base_mutex_lock(&sim__state.lock);
    const struct sim_race_report *report = index < kept_count ? &kept[index]->report : NULL;
    base_mutex_unlock(&sim__state.lock);
    return report;
}

void sim_race_clear(void) {
    base_mutex_lock(&sim__state.lock);
    clear();
    base_mutex_unlock(&sim__state.lock);
}
