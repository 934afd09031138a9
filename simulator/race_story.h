// What the log tells about a pair: the streams between which an edge is missing, and what the
// program did that looks like one.
#ifndef TIDEMARK_SIMULATOR_RACE_STORY_H
#define TIDEMARK_SIMULATOR_RACE_STORY_H

#include "simulator/race_words.h"

struct sim__race_story {
    const struct sim__race_found *found;
    // Between which an edge is missing: of nodes of one launch, the streams that captured them.
    uint64_t streams[2];
    uint64_t sequence;                  // of the first one: in its stream; of a node: its number
    char nouns[2][SIM__RACE_NOUN_TEXT]; // "the copy", "kernel scale"
    char stream_nouns[2][SIM__RACE_NOUN_TEXT]; // "stream 5"
    // Entries; NULL: there is none.
    const struct sim__race_entry *early_wait;   // the second one's stream waits
    const struct sim__race_entry *early_record; // for an event recorded before the first one
    const struct sim__race_entry *blind_wait;   // it waits for an event before it is recorded,
    const struct sim__race_entry *blind_record; // which it is behind the first one
    const struct sim__race_entry *wrong_wait;   // the first one's stream waits for the second one's
    const struct sim__race_entry *late_record;  // an event was recorded behind the first one,
    const struct sim__race_entry *late_waiter;  // and another stream waits for it
    const struct sim__race_entry *host_wait;    // the host waited for something else in between
};

void sim__race_story(struct sim__race_story *story, const struct sim__race_found *found);

// The last time that record_stream was called for STREAM and for another block, while BLOCK was
// held; NULL: never.
const struct sim__race_entry *sim__race_story_other_use(const struct sim__race_block *block,
                                                        uint64_t stream);

// --- race_lifetime.c: sim__race_words_missing for memory's life ---

// BLOCK was handed out again before the first one was done with it.
void sim__race_missing_reuse(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story,
                             const struct sim__race_block *block);
// What record_stream does not do, where the program may have trusted in it.
void sim__race_missing_note(struct sim__text *missing, const struct sim__race_story *story);
void sim__race_missing_free(struct sim__text *missing, struct sim__text *mend,
                            const struct sim__race_story *story);
void sim__race_missing_alloc(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story);
// There is no memory.
void sim__race_missing_memory(struct sim__text *missing, struct sim__text *mend,
                              const struct sim__race_story *story);
void sim__race_missing_write(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story);
// A graph is launched over a block of others.
void sim__race_missing_graph(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story);

#endif
