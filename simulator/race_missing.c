// From a pair to two sentences: which edge is missing, and what mends it. Each cause that is named
// is something that happened (race_story.c); what is not known is not guessed.
#include "simulator/race_story.h"
#include "simulator/reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOUN_TEXT SIM__RACE_NOUN_TEXT

// --- Words for single things ---

// Of things with an entry in the log.
static void entry_site_add(struct sim__text *text, const struct sim__race_entry *entry) {
    sim__race_words_site(text, entry->origin);
}

static bool is_host(const struct sim__race_side *side) { return side->stream == 0; }
static bool writes(const struct sim__race_side *side) {
    return side->mode == SIM_ACCESS_WRITE || side->mode == SIM_ACCESS_ATOMIC;
}

// --- Two streams ---

static void mend_by_event(struct sim__text *mend, const struct sim__race_story *story) {
    sim__text_add(mend, "record an event in %s after %s and make %s wait for it before %s",
                  story->stream_nouns[0], story->nouns[0], story->stream_nouns[1], story->nouns[1]);
}

static void tell_early_record(struct sim__text *missing, struct sim__text *mend,
                              const struct sim__race_story *story) {
    sim__text_add(missing, "%s waits", story->stream_nouns[1]);
    entry_site_add(missing, story->early_wait);
    sim__text_add(missing, " for an event that was recorded in %s", story->stream_nouns[0]);
    entry_site_add(missing, story->early_record);
    sim__text_add(missing, " before %s, which it does not cover", story->nouns[0]);
    sim__text_add(mend, "record the event after %s", story->nouns[0]);
}

static void tell_blind_wait(struct sim__text *missing, struct sim__text *mend,
                            const struct sim__race_story *story) {
    sim__text_add(missing, "%s waits", story->stream_nouns[1]);
    entry_site_add(missing, story->blind_wait);
    sim__text_add(missing, " for an event that was recorded only later");
    entry_site_add(missing, story->blind_record);
    sim__text_add(missing, ": a wait sees the records before it");
    sim__text_add(mend, "record the event after %s, and only then make %s wait for it",
                  story->nouns[0], story->stream_nouns[1]);
}

// In a capture that is how a fork looks.
static void tell_wrong_wait(struct sim__text *missing, struct sim__text *mend,
                            const struct sim__race_story *story) {
    if (story->found->inside != NULL) {
        sim__text_add(missing, "%s was forked from %s", story->stream_nouns[0],
                      story->stream_nouns[1]);
        entry_site_add(missing, story->wrong_wait);
        sim__text_add(missing, " and not joined again before %s", story->nouns[1]);
    } else {
        sim__text_add(missing, "%s waits for %s", story->stream_nouns[0], story->stream_nouns[1]);
        entry_site_add(missing, story->wrong_wait);
        sim__text_add(missing, ", not the other way round");
    }
    mend_by_event(mend, story);
}

static void tell_late_record(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story) {
    char waiter[NOUN_TEXT];
    sim__text_add(missing, "an event was recorded in %s behind %s", story->stream_nouns[0],
                  story->nouns[0]);
    entry_site_add(missing, story->late_record);
    sim__text_add(missing, ", but %s never waited for it", story->stream_nouns[1]);
    if (story->late_waiter != NULL) {
        sim__text_add(missing, "; %s did",
                      sim__race_words_stream(story->late_waiter->stream, waiter));
        entry_site_add(missing, story->late_waiter);
    }
    sim__text_add(mend, "make %s wait for that event before %s", story->stream_nouns[1],
                  story->nouns[1]);
}

// No cause is known: what is so.
static void tell_no_edge(struct sim__text *missing, struct sim__text *mend,
                         const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_stream first = sim__race_log_stream(story->streams[0]);
    const struct sim__race_stream second = sim__race_log_stream(story->streams[1]);
    if (first.device == second.device &&
        ((first.legacy && second.nonblocking) || (second.legacy && first.nonblocking)))
        sim__text_add(missing, "%s is non-blocking: the legacy stream orders only blocking streams",
                      story->stream_nouns[first.legacy ? 1 : 0]);
    else if (found->known > 0 && found->inside == NULL)
        sim__text_add(missing,
                      "%s comes behind %s only up to that one's operation %" PRIu64
                      "; %s is its operation %" PRIu64,
                      story->stream_nouns[1], story->stream_nouns[0], found->known, story->nouns[0],
                      found->first.sequence);
    else
        sim__text_add(missing, "%s never waited for %s behind %s", story->stream_nouns[1],
                      story->stream_nouns[0], story->nouns[0]);
    mend_by_event(mend, story);
}

static void missing_between_streams(struct sim__text *missing, struct sim__text *mend,
                                    const struct sim__race_story *story) {
    if (story->early_wait != NULL)
        tell_early_record(missing, mend, story);
    else if (story->blind_record != NULL)
        tell_blind_wait(missing, mend, story);
    else if (story->late_record != NULL)
        tell_late_record(missing, mend, story);
    else if (story->wrong_wait != NULL)
        tell_wrong_wait(missing, mend, story);
    else
        tell_no_edge(missing, mend, story);
}

// --- Graphs ---

static void missing_inside_graph(struct sim__text *missing, struct sim__text *mend,
                                 const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const uint64_t first = found->first.node_stream, second = found->second.node_stream;
    sim__text_add(missing, "no path of edges leads from %s to %s in graph %" PRIu64,
                  story->nouns[0], story->nouns[1], found->first.graph);
    if (first == 0 || second == 0 || first == second) {
        sim__text_add(mend, "add an edge from %s to %s (cudaGraphAddDependencies)", story->nouns[0],
                      story->nouns[1]);
        return;
    }
    sim__text_add(missing, ": when it was captured, ");
    missing_between_streams(missing, mend, story);
    sim__text_add(mend, ", within the capture");
}

static void missing_between_launches(struct sim__text *missing, struct sim__text *mend,
                                     const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    sim__text_add(missing, "the launch of graph %" PRIu64 " in %s", found->second.graph,
                  story->stream_nouns[1]);
    sim__race_words_site(missing, found->second.origin);
    sim__text_add(missing, " does not come behind that of graph %" PRIu64 " in %s",
                  found->first.graph, story->stream_nouns[0]);
    sim__race_words_site(missing, found->first.origin);
    sim__text_add(missing, ": launches in different streams run in parallel, unless they are of "
                           "one executable");
    sim__text_add(mend,
                  "launch both in one stream, or record an event in %s behind the first launch "
                  "and make %s wait for it before the second",
                  story->stream_nouns[0], story->stream_nouns[1]);
}

// --- The host ---

static void missing_for_host(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_entry *wait = story->host_wait;
    const char *verb = writes(&found->second) ? "writes" : "reads";
    if (wait != NULL && wait->other == found->first.stream) {
        sim__text_add(missing, "the host waited");
        entry_site_add(missing, wait);
        sim__text_add(missing, " for what was enqueued in %s before %s", story->stream_nouns[0],
                      story->nouns[0]);
    } else if (wait != NULL && wait->other != 0) {
        char stream[NOUN_TEXT];
        sim__text_add(missing, "the host waited");
        entry_site_add(missing, wait);
        sim__text_add(missing, " for %s, which does not come behind %s in %s",
                      sim__race_words_stream(wait->other, stream), story->nouns[0],
                      story->stream_nouns[0]);
    } else {
        sim__text_add(missing, "the host did not wait for %s in %s", story->nouns[0],
                      story->stream_nouns[0]);
    }
    sim__text_add(mend,
                  "wait for %s before the host %s (cudaEventSynchronize of an event recorded "
                  "behind it, or cudaStreamSynchronize)",
                  story->nouns[0], verb);
}

static void missing_between_threads(struct sim__text *missing, struct sim__text *mend,
                                    const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    sim__text_add(missing, "thread %u enqueued or did %s without a hand-off from thread %u",
                  (unsigned)sim__race_origin_at(found->second.origin)->thread, story->nouns[1],
                  (unsigned)sim__race_origin_at(found->first.origin)->thread);
    sim__text_add(missing, ", which did %s", story->nouns[0]);
    sim__race_words_site(missing, found->first.origin);
    sim__text_add(mend, "hand over by a lock, a condition or a join of base/thread.h, or by "
                        "sim_handoff_signal and sim_handoff_await");
}

// With reading threads=strict: the two are of threads that nothing orders.
static bool is_between_threads(const struct sim__race_found *found) {
    return sim__reading_other[SIM__READING_THREADS] && sim__race_is_side(&found->first) &&
           sim__race_is_side(&found->second) &&
           sim__race_origin_at(found->first.origin)->thread !=
               sim__race_origin_at(found->second.origin)->thread &&
           (is_host(&found->first) || is_host(&found->second));
}

// --- All of it ---

static void missing_reuse(struct sim__text *missing, struct sim__text *mend,
                          const struct sim__race_story *story,
                          const struct sim__race_block *block) {
    struct sim__text unused = {NULL, 0, 0};
    sim__race_missing_reuse(missing, mend, story, block);
    if (story->found->inside == NULL)
        return;
    // Why the streams are not ordered: a join is forgotten, mostly.
    sim__text_add(missing, "; ");
    missing_between_streams(missing, &unused, story);
    sim__text_deinit(&unused);
}

static void missing_order(struct sim__text *missing, struct sim__text *mend,
                          const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_block *reused =
        found->rule == SIM_RACE_REUSE ? sim__race_log_block(found->block) : NULL;
    if (is_host(&found->first))
        missing_between_threads(missing, mend, story);
    else if (is_host(&found->second))
        missing_for_host(missing, mend, story);
    else if (reused != NULL)
        missing_reuse(missing, mend, story, reused);
    else if (found->inside != NULL)
        missing_inside_graph(missing, mend, story);
    else if (found->first.node_origin != 0 && found->second.node_origin != 0)
        missing_between_launches(missing, mend, story);
    else
        missing_between_streams(missing, mend, story);
    if (reused == NULL && !is_host(&found->first) && !is_host(&found->second))
        sim__race_missing_note(missing, story);
}

void sim__race_words_missing(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_found *found) {
    struct sim__race_story story;
    sim__race_story(&story, found);
    if (is_between_threads(found) && found->rule != SIM_RACE_HOST_ACCESS) {
        missing_between_threads(missing, mend, &story);
        return;
    }
    switch (found->rule) {
    case SIM_RACE_USE_AFTER_FREE: sim__race_missing_free(missing, mend, &story); break;
    case SIM_RACE_USE_BEFORE_ALLOC: sim__race_missing_alloc(missing, mend, &story); break;
    case SIM_RACE_UNMAPPED: sim__race_missing_memory(missing, mend, &story); break;
    case SIM_RACE_UNINITIALISED: sim__race_missing_write(missing, mend, &story); break;
    case SIM_RACE_GRAPH_MEMORY: sim__race_missing_graph(missing, mend, &story); break;
    default: missing_order(missing, mend, &story);
    }
}
