// A report in words: race_report.h.
//
//     race_words.c      all of it
//     race_missing.c    the edge that is missing, and what mends it
//     race_lifetime.c   the same where memory begins or ends
//     race_story.c      what happened between the two
#ifndef TIDEMARK_SIMULATOR_RACE_WORDS_H
#define TIDEMARK_SIMULATOR_RACE_WORDS_H

#include "simulator/race_report.h"
#include "simulator/transcript.h"

#define SIM__RACE_NOUN_TEXT 160

// Several lines. REPORT has its strings but not its text yet.
void sim__race_words(struct sim__text *text, const struct sim__race_found *found,
                     const struct sim_race_report *report);
// A sentence each, without a full stop.
void sim__race_words_missing(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_found *found);

// --- Between the two ---

// " at train.c:31", " at upload (train.c:31)", or nothing: without who called that.
void sim__race_words_site(struct sim__text *text, uint32_t origin);
// "stream 5", "the legacy stream", "the host". TEXT has SIM__RACE_NOUN_TEXT bytes, and is returned.
const char *sim__race_words_stream(uint64_t number, char *text);
// "block weights", "block 17".
void sim__race_words_block(struct sim__text *text, const struct sim__race_block *block);

static inline bool sim__race_is_side(const struct sim__race_side *side) {
    return side->origin != 0 || side->stream != 0;
}
// What it is: of a node, the node.
static inline uint8_t sim__race_side_act(const struct sim__race_side *side) {
    return sim__race_origin_at(side->node_origin != 0 ? side->node_origin : side->origin)->act;
}

#endif
