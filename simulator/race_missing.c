// From a pair to two sentences. Which edge is missing follows from what the checker knows; why the
// program thought it was there, from the log: an event recorded too early, a wait the wrong way
// round, record_stream for another stream. Each cause that is named is something that happened.
#include "simulator/race_words.h"

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

// "copy", "kernel scale", "host write": without article.
static void plain_noun(const struct sim__race_side *side, char *noun) {
    const uint32_t number = side->node_origin != 0 ? side->node_origin : side->origin;
    const struct sim__race_origin *origin = sim__race_origin_at(number);
    switch (origin->act) {
    case SIM__OPERATION_COPY: snprintf(noun, NOUN_TEXT, "copy"); break;
    case SIM__OPERATION_FILL: snprintf(noun, NOUN_TEXT, "fill"); break;
    case SIM__RACE_HOST_READ: snprintf(noun, NOUN_TEXT, "host read"); break;
    case SIM__RACE_HOST_WRITE: snprintf(noun, NOUN_TEXT, "host write"); break;
    case SIM__RACE_TAKE: snprintf(noun, NOUN_TEXT, "taking of the block"); break;
    case SIM__RACE_GIVE: snprintf(noun, NOUN_TEXT, "giving back of the block"); break;
    default: (void)sim__race_origin_what(number, noun, NOUN_TEXT);
    }
}

// With article; two alike are told apart by their order.
static const char *noun_of(const struct sim__race_found *found, bool second, char *noun) {
    char mine[NOUN_TEXT], other[NOUN_TEXT];
    plain_noun(second ? &found->second : &found->first, mine);
    plain_noun(second ? &found->first : &found->second, other);
    const bool alike = sim__race_is_side(&found->first) && sim__race_is_side(&found->second) &&
                       strcmp(mine, other) == 0;
    snprintf(noun, NOUN_TEXT, "the %s%.*s",
             !alike   ? ""
             : second ? "second "
                      : "first ",
             NOUN_TEXT - 16, mine);
    return noun;
}

// --- Why it is so: what happened between the two streams ---

struct story {
    const struct sim__race_found *found;
    char first[NOUN_TEXT], second[NOUN_TEXT];               // the copy
    char first_stream[NOUN_TEXT], second_stream[NOUN_TEXT]; // stream 5
    // Entries, NULL if there was none; the last of each.
    const struct sim__race_entry *early_wait; // the second one's stream waits for the first one's,
    const struct sim__race_entry *early_record; // for an event recorded before the first one
    const struct sim__race_entry *blind_wait;   // it waits for an event before it is recorded
    const struct sim__race_entry *blind_record; // which it is later, behind the first one
    const struct sim__race_entry *wrong_wait;   // the first one's stream waits for the second one's
    const struct sim__race_entry *late_record;  // an event was recorded behind the first one,
    const struct sim__race_entry *late_waiter;  // for which another stream waits
    const struct sim__race_entry *other_wait;   // the host waited for something else since
};

// The streams between which an edge is missing: inside a graph those that captured the nodes.
static uint64_t stream_of(const struct sim__race_found *found, const struct sim__race_side *side) {
    return found->inside != NULL ? side->node_stream : side->stream;
}
static uint64_t sequence_of(const struct sim__race_found *found,
                            const struct sim__race_side *side) {
    return found->inside != NULL ? side->node : side->sequence;
}

static const struct sim__race_entry *record_before(const struct sim__race_entry *wait) {
    for (uint64_t number = wait->number - 1; number >= sim__race_log_first(); --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry->kind == SIM__RACE_LOG_RECORD && entry->object == wait->object)
            return entry;
    }
    return NULL;
}

static void story_record(struct story *story, const struct sim__race_entry *entry,
                         uint64_t sequence) {
    if (entry->other_sequence < sequence)
        return;
    story->late_record = entry;
    story->late_waiter = NULL;
    if (story->blind_wait != NULL && entry->object == story->blind_wait->object)
        story->blind_record = entry;
}

static void story_wait(struct story *story, const struct sim__race_entry *entry,
                       uint64_t first_stream, uint64_t second_stream, uint64_t sequence) {
    if (entry->stream == second_stream && entry->other == 0)
        story->blind_wait = entry;
    if (entry->stream == second_stream && entry->other == first_stream &&
        entry->other_sequence < sequence)
        story->early_wait = entry;
    if (entry->stream == first_stream && entry->other == second_stream)
        story->wrong_wait = entry;
    if (story->late_record != NULL && entry->object == story->late_record->object &&
        entry->stream != second_stream && entry->stream != first_stream)
        story->late_waiter = entry;
}

static void story_entry(struct story *story, const struct sim__race_entry *entry) {
    const struct sim__race_found *found = story->found;
    const uint64_t first_stream = stream_of(found, &found->first);
    const uint64_t second_stream = stream_of(found, &found->second);
    const uint64_t sequence = sequence_of(found, &found->first);
    if (entry->captured != (found->inside != NULL))
        return;
    if (entry->kind == SIM__RACE_LOG_RECORD && entry->other == first_stream)
        story_record(story, entry, sequence);
    else if (entry->kind == SIM__RACE_LOG_WAIT)
        story_wait(story, entry, first_stream, second_stream, sequence);
    else if (entry->kind == SIM__RACE_LOG_HOST_WAIT && second_stream == 0)
        story->other_wait = entry;
}

// The entry of the first of the two, 0 if the log has it no more.
static uint64_t entry_of(const struct sim__race_side *side) {
    for (uint64_t number = sim__race_log_last(); number >= sim__race_log_first() && number > 0;
         --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry->kind == SIM__RACE_LOG_OPERATION && entry->stream == side->stream &&
            entry->sequence == side->sequence && side->stream != 0)
            return number;
    }
    return 0;
}

static void story_tell(struct story *story, const struct sim__race_found *found) {
    *story = (struct story){.found = found};
    (void)noun_of(found, false, story->first);
    (void)noun_of(found, true, story->second);
    (void)sim__race_words_stream(stream_of(found, &found->first), story->first_stream);
    (void)sim__race_words_stream(stream_of(found, &found->second), story->second_stream);
    for (uint64_t number = sim__race_log_first(); number <= sim__race_log_last(); ++number)
        story_entry(story, sim__race_log_at(number));
    if (story->early_wait != NULL)
        story->early_record = record_before(story->early_wait);
    if (story->other_wait != NULL && story->other_wait->number < entry_of(&found->first))
        story->other_wait = NULL;
}

// --- Two streams ---

static void mend_by_event(struct sim__text *mend, const struct story *story) {
    sim__text_add(mend, "record an event in %s after %s and make %s wait for it before %s",
                  story->first_stream, story->first, story->second_stream, story->second);
}

static void missing_between_streams(struct sim__text *missing, struct sim__text *mend,
                                    const struct story *story) {
    const struct sim__race_found *found = story->found;
    const uint64_t first = stream_of(found, &found->first);
    const uint64_t second = stream_of(found, &found->second);
    const struct sim__race_stream a = sim__race_log_stream(first);
    const struct sim__race_stream b = sim__race_log_stream(second);
    if (story->early_wait != NULL && story->early_record != NULL) {
        sim__text_add(missing, "%s waits", story->second_stream);
        entry_site_add(missing, story->early_wait);
        sim__text_add(missing, " for an event that was recorded in %s", story->first_stream);
        entry_site_add(missing, story->early_record);
        sim__text_add(missing, " before %s, which it does not cover", story->first);
        sim__text_add(mend, "record the event after %s", story->first);
        return;
    }
    if (story->blind_record != NULL) {
        sim__text_add(missing, "%s waits", story->second_stream);
        entry_site_add(missing, story->blind_wait);
        sim__text_add(missing, " for an event that was recorded only later");
        entry_site_add(missing, story->blind_record);
        sim__text_add(missing, ": a wait sees the records before it");
        sim__text_add(mend, "record the event after %s, and only then make %s wait for it",
                      story->first, story->second_stream);
        return;
    }
    if (story->wrong_wait != NULL) {
        sim__text_add(missing, "%s waits for %s", story->first_stream, story->second_stream);
        entry_site_add(missing, story->wrong_wait);
        sim__text_add(missing, ", not the other way round");
        mend_by_event(mend, story);
        return;
    }
    if (story->late_record != NULL) {
        sim__text_add(missing, "an event was recorded in %s behind %s", story->first_stream,
                      story->first);
        entry_site_add(missing, story->late_record);
        sim__text_add(missing, ", but %s never waited for it", story->second_stream);
        if (story->late_waiter != NULL) {
            char waiter[NOUN_TEXT];
            sim__text_add(missing, "; %s did",
                          sim__race_words_stream(story->late_waiter->stream, waiter));
            entry_site_add(missing, story->late_waiter);
        }
        sim__text_add(mend, "make %s wait for that event before %s", story->second_stream,
                      story->second);
        return;
    }
    if (a.device == b.device && ((a.legacy && b.nonblocking) || (b.legacy && a.nonblocking)))
        sim__text_add(missing, "%s is non-blocking: the legacy stream orders only blocking streams",
                      a.legacy ? story->second_stream : story->first_stream);
    else if (found->known > 0 && found->inside == NULL)
        sim__text_add(missing,
                      "%s comes behind %s only up to that one's operation %" PRIu64
                      "; %s is its operation %" PRIu64,
                      story->second_stream, story->first_stream, found->known, story->first,
                      found->first.sequence);
    else
        sim__text_add(missing, "%s never waited for %s behind %s", story->second_stream,
                      story->first_stream, story->first);
    mend_by_event(mend, story);
}

// --- Graphs ---

static void missing_inside_graph(struct sim__text *missing, struct sim__text *mend,
                                 const struct story *story) {
    const struct sim__race_found *found = story->found;
    const uint64_t first = found->first.node_stream, second = found->second.node_stream;
    sim__text_add(missing, "no path of edges leads from %s to %s in graph %" PRIu64, story->first,
                  story->second, found->first.graph);
    if (first == 0 || second == 0 || first == second) {
        sim__text_add(mend, "add an edge from %s to %s (cudaGraphAddDependencies)", story->first,
                      story->second);
        return;
    }
    sim__text_add(missing, ": when it was captured, ");
    missing_between_streams(missing, mend, story);
    sim__text_add(mend, ", within the capture");
}

static void missing_between_launches(struct sim__text *missing, struct sim__text *mend,
                                     const struct story *story) {
    const struct sim__race_found *found = story->found;
    sim__text_add(missing, "the launch of graph %" PRIu64 " in %s", found->second.graph,
                  story->second_stream);
    sim__race_words_site(missing, found->second.origin);
    sim__text_add(missing, " does not come behind that of graph %" PRIu64 " in %s",
                  found->first.graph, story->first_stream);
    sim__race_words_site(missing, found->first.origin);
    sim__text_add(missing, ": launches in different streams run in parallel, unless they are of "
                           "one executable");
    sim__text_add(mend,
                  "launch both in one stream, or record an event in %s behind the first launch "
                  "and make %s wait for it before the second",
                  story->first_stream, story->second_stream);
}

// --- The host ---

static void missing_for_host(struct sim__text *missing, struct sim__text *mend,
                             const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_entry *wait = story->other_wait;
    const char *verb = writes(&found->second) ? "writes" : "reads";
    if (wait != NULL && wait->other == found->first.stream) {
        sim__text_add(missing, "the host waited");
        entry_site_add(missing, wait);
        sim__text_add(missing, " for what was enqueued in %s before %s", story->first_stream,
                      story->first);
    } else if (wait != NULL && wait->other != 0) {
        char stream[NOUN_TEXT];
        sim__text_add(missing, "the host waited");
        entry_site_add(missing, wait);
        sim__text_add(missing, " for %s, which does not come behind %s in %s",
                      sim__race_words_stream(wait->other, stream), story->first,
                      story->first_stream);
    } else {
        sim__text_add(missing, "the host did not wait for %s in %s", story->first,
                      story->first_stream);
    }
    sim__text_add(mend,
                  "wait for %s before the host %s (cudaEventSynchronize of an event recorded "
                  "behind it, or cudaStreamSynchronize)",
                  story->first, verb);
}

static void missing_between_threads(struct sim__text *missing, struct sim__text *mend,
                                    const struct story *story) {
    const struct sim__race_found *found = story->found;
    sim__text_add(missing, "thread %u enqueued or did %s without a hand-off from thread %u",
                  (unsigned)sim__race_origin_at(found->second.origin)->thread, story->second,
                  (unsigned)sim__race_origin_at(found->first.origin)->thread);
    sim__text_add(mend, "hand over by a lock, a condition or a join of base/thread.h, or by "
                        "sim_handoff_signal and sim_handoff_await");
}

// --- Allocators' blocks ---

static const struct sim__race_entry *use_of_another(const struct sim__race_block *block,
                                                    uint64_t stream) {
    const uint64_t end = block->given != 0 ? block->given : sim__race_log_last();
    const uint64_t start =
        block->taken > sim__race_log_first() ? block->taken : sim__race_log_first();
    for (uint64_t number = end; number >= start && number > 0; --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry != NULL && entry->kind == SIM__RACE_LOG_USE && entry->stream == stream &&
            entry->object != block->number)
            return entry;
    }
    return NULL;
}

// The index of the use of BLOCK for STREAM; -1: it was never recorded for that one.
static int use_for(const struct sim__race_block *block, uint64_t stream) {
    for (uint32_t i = 0; i < block->use_count && i < SIM__RACE_BLOCK_USES; ++i)
        if (block->uses[i].stream == stream)
            return (int)i;
    return -1;
}

static void missing_for_reuse(struct sim__text *missing, struct sim__text *mend,
                              const struct story *story, const struct sim__race_block *block) {
    const struct sim__race_found *found = story->found;
    const uint64_t stream = found->first.stream;
    char words[NOUN_TEXT];
    const int use = use_for(block, stream);
    const struct sim__race_entry *other = use < 0 ? use_of_another(block, stream) : NULL;
    if (use >= 0 && block->given != 0 && block->uses[use].number > block->given) {
        sim__text_add(missing, "record_stream(%s)", story->first_stream);
        sim__race_words_site(missing, block->uses[use].origin);
        sim__text_add(missing, " comes after the block was given back");
        sim__race_words_site(missing, block->given_origin);
        sim__text_add(mend, "call it before the block is given back");
        return;
    }
    if (use >= 0) {
        sim__text_add(missing, "record_stream(%s)", story->first_stream);
        sim__race_words_site(missing, block->uses[use].origin);
        sim__text_add(missing,
                      " was called in time: the allocator hands the block out before the work "
                      "of %s is done",
                      story->first_stream);
        sim__text_add(mend,
                      "in the allocator: wait for an event recorded in %s when the block is "
                      "given back",
                      story->first_stream);
        return;
    }
    if (stream == block->stream) {
        sim__text_add(missing, "the memory is handed from %s to %s, which does not come behind %s",
                      story->first_stream, story->second_stream, story->first);
        sim__text_add(mend,
                      "in the allocator: make %s wait for %s first, or hand it out again in "
                      "%s only",
                      story->second_stream, story->first_stream, story->first_stream);
        return;
    }
    sim__text_add(missing, "the block of %s is used in %s too, and ",
                  sim__race_words_stream(block->stream, words), story->first_stream);
    if (other != NULL) {
        const struct sim__race_block *named = sim__race_log_block(other->object);
        sim__text_add(missing, "record_stream(%s)", story->first_stream);
        entry_site_add(missing, other);
        sim__text_add(missing, " was called for another one");
        if (named != NULL) {
            sim__text_add(missing, ", ");
            sim__race_words_block(missing, named);
        }
        sim__text_add(mend,
                      "call record_stream(%s) for the block that holds the bytes: a view's "
                      "memory is its storage's",
                      story->first_stream);
        return;
    }
    if (block->use_count > 0) {
        sim__text_add(missing, "record_stream was called for %s",
                      sim__race_words_stream(block->uses[0].stream, words));
        sim__race_words_site(missing, block->uses[0].origin);
        sim__text_add(missing, ", not for %s", story->first_stream);
    } else {
        sim__text_add(missing, "the allocator was not told");
    }
    sim__text_add(mend,
                  "call record_stream(%s) before the block is given back, or first make %s wait "
                  "for an event recorded in %s behind %s",
                  story->first_stream, sim__race_words_stream(block->stream, words),
                  story->first_stream, story->first);
}

// What record_stream does not do, where the program may have trusted in it.
static void add_record_stream_note(struct sim__text *missing, const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_block *block =
        sim__race_log_block(found->second.block != 0 ? found->second.block : found->first.block);
    if (block == NULL)
        return;
    int use = use_for(block, found->second.stream);
    const bool is_second = use >= 0;
    if (use < 0)
        use = use_for(block, found->first.stream);
    if (use < 0)
        return;
    sim__text_add(missing, "; record_stream(%s)",
                  is_second ? story->second_stream : story->first_stream);
    sim__race_words_site(missing, block->uses[use].origin);
    sim__text_add(missing,
                  " keeps the block from being reused too early, it does not order %s behind %s "
                  "in %s",
                  story->second_stream, story->first, story->first_stream);
}

// --- Life of memory ---

static bool ends_memory(const struct sim__race_side *side) {
    const struct sim__race_origin *origin = sim__race_origin_at(side->origin);
    return origin->act == SIM__RACE_GIVE ||
           (origin->act == SIM__RACE_CALL &&
            (origin->call == SIM_CALL_FREE || origin->call == SIM_CALL_FREE_ASYNC ||
             origin->call == SIM_CALL_HOST_FREE || origin->call == SIM_CALL_HOST_UNREGISTER ||
             origin->call == SIM_CALL_MEM_UNMAP));
}

static void missing_before_free(struct sim__text *missing, struct sim__text *mend,
                                const struct story *story) {
    const struct sim__race_found *found = story->found;
    const bool free_is_first = ends_memory(&found->first) && !ends_memory(&found->second);
    const struct sim__race_side *end = free_is_first ? &found->first : &found->second;
    const char *use = free_is_first ? story->second : story->first;
    const char *use_stream = free_is_first ? story->second_stream : story->first_stream;
    const char *end_stream = free_is_first ? story->first_stream : story->second_stream;
    if (sim__race_side_act(end) == SIM__RACE_GIVE) {
        sim__text_add(missing, "%s was enqueued after the block was given back", use);
        sim__race_words_site(missing, end->origin);
        sim__text_add(mend, "give the block back after %s is enqueued", use);
        if (use_stream != end_stream)
            sim__text_add(mend, " (with record_stream(%s) if that is not the block's stream)",
                          use_stream);
        return;
    }
    char call[NOUN_TEXT];
    (void)sim__race_origin_what(end->origin, call, sizeof call);
    if (free_is_first && (is_host(end) || found->known >= end->sequence)) {
        sim__text_add(missing, "%s comes after %s", use, call);
        sim__race_words_site(missing, end->origin);
        sim__text_add(mend, "free the memory behind its last use");
        return;
    }
    if (is_host(end)) {
        sim__text_add(missing, "%s", call);
        sim__race_words_site(missing, end->origin);
        sim__text_add(missing, " is not ordered behind %s in %s: it promises to wait for nothing",
                      use, use_stream);
        sim__text_add(mend, "wait for %s (cudaStreamSynchronize, or an event) before %s",
                      use_stream, call);
        return;
    }
    sim__text_add(missing, "%s in %s", call, end_stream);
    sim__race_words_site(missing, end->origin);
    sim__text_add(missing, " does not come behind %s in %s", use, use_stream);
    sim__text_add(mend,
                  "record an event in %s after %s and make %s wait for it before %s; or free the "
                  "memory in %s",
                  use_stream, use, end_stream, call, use_stream);
}

static void missing_behind_alloc(struct sim__text *missing, struct sim__text *mend,
                                 const struct story *story) {
    const struct sim__race_found *found = story->found;
    char call[NOUN_TEXT];
    if (!sim__race_is_side(&found->first)) {
        sim__text_add(missing, "the memory is not allocated when %s runs in %s", story->second,
                      story->second_stream);
        sim__text_add(mend, "launch the graph that allocates it before, in stream order");
        return;
    }
    (void)sim__race_origin_what(found->first.origin, call, sizeof call);
    sim__text_add(missing, "%s never waited for %s, where %s", story->second_stream,
                  story->first_stream, call);
    sim__race_words_site(missing, found->first.origin);
    sim__text_add(missing, " makes the memory in stream order");
    sim__text_add(mend,
                  "record an event in %s after %s and make %s wait for it before %s; or use the "
                  "memory in %s",
                  story->first_stream, call, story->second_stream, story->second,
                  story->first_stream);
}

static void missing_memory(struct sim__text *missing, struct sim__text *mend,
                           const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_allocation *gone = sim__race_log_allocation(found->start);
    char call[NOUN_TEXT];
    if (gone != NULL && gone->freed_origin != 0) {
        sim__text_add(missing, "the memory was given up by %s",
                      sim__race_origin_what(gone->freed_origin, call, sizeof call));
        sim__race_words_site(missing, gone->freed_origin);
        sim__text_add(mend, "give it up behind its last use");
    } else if (gone != NULL) {
        sim__text_add(missing, "the memory ends before the access does");
        sim__text_add(mend, "allocate more, or touch less");
    } else {
        sim__text_add(missing, "no memory was ever there");
        sim__text_add(mend, "pass an address that a call gave");
    }
}

static void missing_write(struct sim__text *missing, struct sim__text *mend,
                          const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_block *block = sim__race_log_block(found->block);
    const struct sim__race_allocation *memory = sim__race_log_allocation(found->start);
    const bool is_second = sim__race_is_side(&found->second) && !sim__race_is_side(&found->first);
    char call[NOUN_TEXT];
    sim__text_add(missing, "nobody wrote these bytes");
    if (block != NULL) {
        sim__text_add(missing, " since the block was taken");
        sim__race_words_site(missing, block->taken_origin);
    } else if (memory != NULL) {
        sim__text_add(missing, " since %s",
                      sim__race_origin_what(memory->origin, call, sizeof call));
        sim__race_words_site(missing, memory->origin);
    }
    sim__text_add(mend, "write them before %s, or touch only what was written",
                  is_second ? story->second : story->first);
}

static void missing_graph_memory(struct sim__text *missing, struct sim__text *mend,
                                 const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_block *block = sim__race_log_block(found->block);
    const struct sim__race_side *launch =
        sim__race_side_act(&found->first) == SIM__RACE_TAKE ? &found->second : &found->first;
    (void)story;
    sim__text_add(missing, "the launch of graph %" PRIu64, launch->graph);
    sim__race_words_site(missing, launch->origin);
    sim__text_add(missing, " uses memory that ");
    if (block != NULL) {
        sim__race_words_block(missing, block);
        sim__text_add(missing, ", taken outside its capture");
        sim__race_words_site(missing, block->taken_origin);
        sim__text_add(missing, ", holds now");
    } else {
        sim__text_add(missing, "was handed to others outside its capture");
    }
    sim__text_add(mend, "keep what a capture took in a pool of its own (a private pool) until the "
                        "executable is destroyed");
}

// --- All of it ---

static void missing_order(struct sim__text *missing, struct sim__text *mend,
                          const struct story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_block *reused =
        found->rule == SIM_RACE_REUSE ? sim__race_log_block(found->block) : NULL;
    if (is_host(&found->first))
        missing_between_threads(missing, mend, story);
    else if (is_host(&found->second))
        missing_for_host(missing, mend, story);
    else if (reused != NULL)
        missing_for_reuse(missing, mend, story, reused);
    else if (found->inside != NULL)
        missing_inside_graph(missing, mend, story);
    else if (found->first.node_origin != 0 && found->second.node_origin != 0)
        missing_between_launches(missing, mend, story);
    else
        missing_between_streams(missing, mend, story);
    if (reused == NULL && !is_host(&found->first) && !is_host(&found->second))
        add_record_stream_note(missing, story);
}

void sim__race_words_missing(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_found *found) {
    struct story story;
    story_tell(&story, found);
    switch (found->rule) {
    case SIM_RACE_USE_AFTER_FREE: missing_before_free(missing, mend, &story); break;
    case SIM_RACE_USE_BEFORE_ALLOC: missing_behind_alloc(missing, mend, &story); break;
    case SIM_RACE_UNMAPPED: missing_memory(missing, mend, &story); break;
    case SIM_RACE_UNINITIALISED: missing_write(missing, mend, &story); break;
    case SIM_RACE_GRAPH_MEMORY: missing_graph_memory(missing, mend, &story); break;
    default: missing_order(missing, mend, &story);
    }
}
