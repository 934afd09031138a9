// A report as lines: what the two did, which bytes, whose block; and last what is missing
// (race_missing.c).
#include "simulator/race_words.h"

#include "base/size.h"
#include "simulator/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SITE_TEXT 512

// --- Words for single things ---

// " at upload (train.c:31)": without who called that.
static void site_add(struct sim__text *text, const char *site) {
    const char *behind = strstr(site, SIM__CALLED_BY);
    if (site[0] != '\0')
        sim__text_add(text, " at %.*s", behind == NULL ? SITE_TEXT : (int)(behind - site), site);
}

void sim__race_words_site(struct sim__text *text, uint32_t origin) {
    char site[SITE_TEXT];
    site_add(text, sim__race_origin_site(origin, site, sizeof site));
}

const char *sim__race_words_stream(uint64_t number, char *text) {
    const struct sim__race_stream stream = sim__race_log_stream(number);
    if (number == 0)
        snprintf(text, SIM__RACE_NOUN_TEXT, "the host");
    else if (stream.legacy && sim__state.options.device_count > 1)
        snprintf(text, SIM__RACE_NOUN_TEXT, "the legacy stream of device %d", stream.device);
    else if (stream.legacy)
        snprintf(text, SIM__RACE_NOUN_TEXT, "the legacy stream");
    else
        snprintf(text, SIM__RACE_NOUN_TEXT, "stream %" PRIu64, number);
    return text;
}

void sim__race_words_block(struct sim__text *text, const struct sim__race_block *block) {
    if (block->name != NULL && block->name[0] != '\0')
        sim__text_add(text, "block %s", block->name);
    else
        sim__text_add(text, "block %" PRIu64, block->number);
}

// --- Lines ---

static void headline(struct sim__text *text, const struct sim__race_found *found,
                     const struct sim_race_report *report) {
    static const char *const texts[SIM_RACE_RULE_COUNT] = {
#define SIM_RACE_TEXT(name, word, text) [SIM_RACE_##name] = text,
        SIM_RACE_RULE_LIST(SIM_RACE_TEXT)
#undef SIM_RACE_TEXT
    };
    const struct sim_race_operation *const sides[2] = {&report->first, &report->second};
    bool is_one = false;
    sim__text_add(text, "%s: ", sim_race_rule_name(found->rule));
    for (int i = 0; i < 2; ++i) {
        const char *site = sides[i]->node_site[0] != '\0' ? sides[i]->node_site : sides[i]->site;
        if (sides[i]->what[0] == '\0')
            continue;
        sim__text_add(text, "%s%s", is_one ? " and " : "", sides[i]->what);
        site_add(text, site);
        is_one = true;
    }
    sim__text_add(text, ": %s\n", texts[found->rule]);
}

// "operation 3 of stream 5"
static void place_add(struct sim__text *text, const struct sim__race_side *side) {
    char stream[SIM__RACE_NOUN_TEXT];
    sim__text_add(text, "operation %" PRIu64 " of %s", side->sequence,
                  sim__race_words_stream(side->stream, stream));
    if (sim__state.options.device_count > 1)
        sim__text_add(text, " (device %d)", side->device);
}

static void node_add(struct sim__text *text, const struct sim__race_side *side,
                     const struct sim_race_operation *operation) {
    char stream[SIM__RACE_NOUN_TEXT];
    sim__text_add(text, ", node %" PRIu64 " of graph %" PRIu64, side->node, side->graph);
    if (side->node_stream != 0)
        sim__text_add(text, ", captured in %s", sim__race_words_stream(side->node_stream, stream));
    if (operation->node[0] != '\0')
        sim__text_add(text, ", \"%s\"", operation->node);
    sim__text_add(text, "\n           launched");
    site_add(text, operation->site);
}

static void side_line(struct sim__text *text, const char *which, const struct sim__race_side *side,
                      const struct sim_race_operation *operation) {
    const bool is_node = side->node_origin != 0;
    const char *site = is_node ? operation->node_site : operation->site;
    if (!sim__race_is_side(side))
        return;
    sim__text_add(text, "  %-8s %s", which, operation->what);
    site_add(text, site);
    if (is_node)
        node_add(text, side, operation);
    if (side->stream != 0) {
        sim__text_add(text, ", ");
        place_add(text, side);
    }
    if (operation->label[0] != '\0')
        sim__text_add(text, ", \"%s\"", operation->label);
    if (operation->thread > 1)
        sim__text_add(text, ", by thread %d", operation->thread);
    const char *callers = strstr(operation->site, SIM__CALLED_BY);
    if (callers != NULL)
        sim__text_add(text, "\n           %s", callers + strlen(", "));
    sim__text_add(text, "\n");
}

// What it does to the bytes; NULL if it is no access.
static const char *deed(const struct sim__race_side *side) {
    static const char *const words[] = {
        [SIM_ACCESS_READ] = "reads",
        [SIM_ACCESS_WRITE] = "writes",
        [SIM_ACCESS_ATOMIC] = "updates",
        [SIM_ACCESS_CARRY] = "reads",
    };
    const uint8_t act = sim__race_side_act(side);
    const bool is_access = sim__race_is_side(side) && act != SIM__RACE_CALL && act < SIM__RACE_TAKE;
    return is_access ? words[side->mode] : NULL;
}

static void deeds_add(struct sim__text *text, const struct sim__race_found *found) {
    const char *first = deed(&found->first), *second = deed(&found->second);
    if (first != NULL && second != NULL && strcmp(first, second) == 0)
        sim__text_add(text, "; both %.*s", (int)strlen(first) - 1, first);
    else if (first != NULL && second != NULL)
        sim__text_add(text, "; the first %s, the second %s", first, second);
    else if (first != NULL || second != NULL)
        sim__text_add(text, "; the access %s", first != NULL ? first : second);
}

static void bytes_line(struct sim__text *text, const struct sim__race_found *found) {
    char size[BASE_SIZE_TEXT], call[SIM__RACE_NOUN_TEXT];
    const struct sim__race_allocation *memory = sim__race_log_allocation(found->start);
    sim__text_add(text, "  bytes    ");
    if (memory != NULL) {
        const uint64_t first = found->start - memory->start;
        sim__text_add(text, "%" PRIu64 " to %" PRIu64 " of the %s at 0x%" PRIx64, first,
                      first + found->size - (found->size > 0), base_size_format(memory->size, size),
                      memory->start);
        sim__text_add(text, ", allocated by %s",
                      sim__race_origin_what(memory->origin, call, sizeof call));
        sim__race_words_site(text, memory->origin);
    } else {
        sim__text_add(text, "%" PRIu64 " at 0x%" PRIx64, found->size, found->start);
    }
    deeds_add(text, found);
    sim__text_add(text, "\n");
}

static void block_line(struct sim__text *text, const struct sim__race_block *block) {
    char stream[SIM__RACE_NOUN_TEXT];
    sim__text_add(text, "  block    ");
    if (block->name != NULL && block->name[0] != '\0')
        sim__text_add(text, "%s", block->name);
    else
        sim__text_add(text, "%" PRIu64, block->number);
    sim__text_add(text, ", %" PRIu64 " bytes at 0x%" PRIx64 ": taken for %s", block->size,
                  block->start, sim__race_words_stream(block->stream, stream));
    sim__race_words_site(text, block->taken_origin);
    for (uint32_t i = 0; i < block->use_count && i < SIM__RACE_BLOCK_USES; ++i) {
        const bool is_late = block->given != 0 && block->uses[i].number > block->given;
        sim__text_add(text, ", %srecord_stream(%s)", is_late ? "too late " : "",
                      sim__race_words_stream(block->uses[i].stream, stream));
        sim__race_words_site(text, block->uses[i].origin);
    }
    if (block->use_count > SIM__RACE_BLOCK_USES)
        sim__text_add(text, ", %u more", (unsigned)(block->use_count - SIM__RACE_BLOCK_USES));
    if (block->given != 0) {
        sim__text_add(text, ", given back");
        sim__race_words_site(text, block->given_origin);
    }
    sim__text_add(text, "\n");
}

// In the order in which they were taken, each once.
static void block_lines(struct sim__text *text, const struct sim__race_found *found) {
    const uint64_t numbers[3] = {found->block, found->first.block, found->second.block};
    uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        uint64_t next = UINT64_MAX;
        for (int j = 0; j < 3; ++j)
            if (numbers[j] > last && numbers[j] < next)
                next = numbers[j];
        const struct sim__race_block *block = next == UINT64_MAX ? NULL : sim__race_log_block(next);
        if (block != NULL)
            block_line(text, block);
        last = next;
    }
}

static void sentence_line(struct sim__text *text, const char *which,
                          const struct sim__text *sentence) {
    if (sentence->length > 0)
        sim__text_add(text, "  %-8s %s\n", which, sentence->bytes);
}

void sim__race_words(struct sim__text *text, const struct sim__race_found *found,
                     const struct sim_race_report *report) {
    struct sim__text missing = {NULL, 0, 0}, mend = {NULL, 0, 0};
    headline(text, found, report);
    side_line(text, "first", &found->first, &report->first);
    side_line(text, "second", &found->second, &report->second);
    bytes_line(text, found);
    block_lines(text, found);
    sim__race_words_missing(&missing, &mend, found);
    sentence_line(text, "missing", &missing);
    sentence_line(text, "mend", &mend);
    sim__text_deinit(&missing);
    sim__text_deinit(&mend);
}
