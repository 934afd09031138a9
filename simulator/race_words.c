// A report as lines: what the two did, which bytes, whose block; and last what is missing
// (race_missing.c).
#include "simulator/race_words.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SITE_TEXT 512

// --- Words for single things ---

// " at train.c:31", or nothing.
void sim__race_words_site(struct sim__text *text, uint32_t origin) {
    char site[SITE_TEXT];
    if (sim__race_origin_site(origin, site, sizeof site)[0] != '\0')
        sim__text_add(text, " at %s", site);
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
        if (site[0] != '\0')
            sim__text_add(text, " at %s", site);
        is_one = true;
    }
    sim__text_add(text, ": %s\n", texts[found->rule]);
}

static void side_line(struct sim__text *text, const char *which, const struct sim__race_side *side,
                      const struct sim_race_operation *operation) {
    char stream[SIM__RACE_NOUN_TEXT];
    if (!sim__race_is_side(side))
        return;
    sim__text_add(text, "  %-8s %s", which, operation->what);
    if (side->node_origin != 0) {
        sim__text_add(text, ", node %" PRIu64 " of graph %" PRIu64, side->node, side->graph);
        if (side->node_stream != 0)
            sim__text_add(text, ", captured in %s",
                          sim__race_words_stream(side->node_stream, stream));
        if (operation->node[0] != '\0')
            sim__text_add(text, " as \"%s\"", operation->node);
        if (operation->node_site[0] != '\0')
            sim__text_add(text, " at %s", operation->node_site);
        sim__text_add(text, "; launched");
    }
    if (side->stream != 0)
        sim__text_add(text, "%s %s of device %d, its operation %" PRIu64,
                      side->node_origin != 0 ? " in" : ",",
                      sim__race_words_stream(side->stream, stream), side->device, side->sequence);
    if (operation->thread > 0)
        sim__text_add(text, ", by thread %d", operation->thread);
    if (operation->label[0] != '\0')
        sim__text_add(text, ", \"%s\"", operation->label);
    if (operation->site[0] != '\0')
        sim__text_add(text, ", at %s", operation->site);
    sim__text_add(text, "\n");
}

static const char *does(const struct sim__race_side *side) {
    return side->mode == SIM_ACCESS_WRITE    ? "writes"
           : side->mode == SIM_ACCESS_ATOMIC ? "updates"
                                             : "reads";
}

static bool is_access(const struct sim__race_side *side) {
    return sim__race_is_side(side) && sim__race_side_act(side) != SIM__RACE_CALL &&
           sim__race_side_act(side) < SIM__RACE_TAKE;
}

static void bytes_line(struct sim__text *text, const struct sim__race_found *found) {
    char size[BASE_SIZE_TEXT], call[SIM__RACE_NOUN_TEXT];
    const struct sim__race_allocation *memory = sim__race_log_allocation(found->start);
    const uint64_t start = memory != NULL ? memory->start : found->allocation_start;
    sim__text_add(text, "  bytes   ");
    if (found->rows > 1)
        sim__text_add(text,
                      " %" PRIu64 " pieces of %" PRIu64 " bytes, %" PRIu64 " apart, the first:",
                      found->rows, found->size, found->pitch);
    if (start != 0 && found->start >= start)
        sim__text_add(text, " %" PRIu64 " to %" PRIu64 " of", found->start - start,
                      found->start - start + found->size - (found->size > 0));
    else
        sim__text_add(text, " %" PRIu64 " at 0x%" PRIx64, found->size, found->start);
    if (memory != NULL)
        sim__text_add(text, " the %s", base_size_format(memory->size, size));
    if (start != 0 && found->start >= start)
        sim__text_add(text, "%s at 0x%" PRIx64, memory == NULL ? " the memory" : "", start);
    if (memory != NULL && memory->origin != 0) {
        sim__text_add(text, ", allocated by %s",
                      sim__race_origin_what(memory->origin, call, sizeof call));
        sim__race_words_site(text, memory->origin);
    }
    if (is_access(&found->first) && is_access(&found->second))
        sim__text_add(text, "; the first %s, the second %s", does(&found->first),
                      does(&found->second));
    else if (is_access(&found->first) || is_access(&found->second))
        sim__text_add(text, "; the access %s",
                      does(is_access(&found->first) ? &found->first : &found->second));
    sim__text_add(text, "\n");
}

static void block_line(struct sim__text *text, const char *which, uint64_t number) {
    const struct sim__race_block *block = sim__race_log_block(number);
    char stream[SIM__RACE_NOUN_TEXT];
    if (block == NULL)
        return;
    sim__text_add(text, "  %-8s ", which);
    sim__race_words_block(text, block);
    sim__text_add(text, ", %" PRIu64 " bytes at 0x%" PRIx64 ": taken for %s", block->size,
                  block->start, sim__race_words_stream(block->stream, stream));
    sim__race_words_site(text, block->taken_origin);
    for (uint32_t i = 0; i < block->use_count && i < SIM__RACE_BLOCK_USES; ++i) {
        sim__text_add(text, ", record_stream(%s)",
                      sim__race_words_stream(block->uses[i].stream, stream));
        sim__race_words_site(text, block->uses[i].origin);
        if (block->given != 0 && block->uses[i].number > block->given)
            sim__text_add(text, " (after it was given back)");
    }
    if (block->use_count > SIM__RACE_BLOCK_USES)
        sim__text_add(text, ", record_stream %u more times",
                      (unsigned)(block->use_count - SIM__RACE_BLOCK_USES));
    if (block->given != 0) {
        sim__text_add(text, ", given back");
        sim__race_words_site(text, block->given_origin);
    }
    sim__text_add(text, "\n");
}

void sim__race_words(struct sim__text *text, const struct sim__race_found *found,
                     const struct sim_race_report *report) {
    struct sim__text missing = {NULL, 0, 0}, mend = {NULL, 0, 0};
    const uint64_t blocks[3] = {found->block, found->first.block, found->second.block};
    headline(text, found, report);
    side_line(text, "first", &found->first, &report->first);
    side_line(text, "second", &found->second, &report->second);
    bytes_line(text, found);
    for (int i = 0; i < 3; ++i)
        if (blocks[i] != 0 && (i < 1 || blocks[i] != blocks[0]) &&
            (i < 2 || blocks[i] != blocks[1]))
            block_line(text, "block", blocks[i]);
    sim__race_words_missing(&missing, &mend, found);
    sim__text_add(text, "  missing  %s\n  mend     %s\n",
                  missing.bytes == NULL ? "" : missing.bytes, mend.bytes == NULL ? "" : mend.bytes);
    sim__text_deinit(&missing);
    sim__text_deinit(&mend);
}
