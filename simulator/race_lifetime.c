// Of memory's life: a block that is handed out too early, memory that ends before its last use or
// begins behind its first, bytes that nobody wrote.
#include "simulator/race_story.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOUN_TEXT SIM__RACE_NOUN_TEXT

static bool is_host(const struct sim__race_side *side) { return side->stream == 0; }

// --- Allocators' blocks ---

// The index of the use of BLOCK for STREAM; -1: it was never recorded for that one.
static int use_for(const struct sim__race_block *block, uint64_t stream) {
    for (uint32_t i = 0; i < block->use_count && i < SIM__RACE_BLOCK_USES; ++i)
        if (block->uses[i].stream == stream)
            return (int)i;
    return -1;
}

// "record_stream(stream 5) at train.c:40"
static void use_add(struct sim__text *text, const char *stream, uint32_t origin) {
    sim__text_add(text, "record_stream(%s)", stream);
    sim__race_words_site(text, origin);
}

// It was recorded for the right stream.
static void tell_use(struct sim__text *missing, struct sim__text *mend,
                     const struct sim__race_story *story, const struct sim__race_block *block,
                     int use) {
    use_add(missing, story->stream_nouns[0], block->uses[use].origin);
    if (block->given != 0 && block->uses[use].number > block->given) {
        sim__text_add(missing, " comes after the block was given back");
        sim__race_words_site(missing, block->given_origin);
        sim__text_add(mend, "call it before the block is given back");
        return;
    }
    sim__text_add(missing,
                  " was called in time: the allocator hands the block out before the work of %s "
                  "is done",
                  story->stream_nouns[0]);
    sim__text_add(mend,
                  "in the allocator: wait for an event recorded in %s when the block is given back",
                  story->stream_nouns[0]);
}

// In the block's own stream it needs no record_stream.
static void tell_owner(struct sim__text *missing, struct sim__text *mend,
                       const struct sim__race_story *story) {
    sim__text_add(missing, "the memory is handed from %s to %s, which does not come behind %s",
                  story->stream_nouns[0], story->stream_nouns[1], story->nouns[0]);
    sim__text_add(mend,
                  "in the allocator: make %s wait for %s first, or hand the memory out again in "
                  "%s only",
                  story->stream_nouns[1], story->stream_nouns[0], story->stream_nouns[0]);
}

static void tell_other_use(struct sim__text *missing, struct sim__text *mend,
                           const struct sim__race_story *story,
                           const struct sim__race_entry *other) {
    const struct sim__race_block *block = sim__race_log_block(other->object);
    use_add(missing, story->stream_nouns[0], other->origin);
    sim__text_add(missing, " was called for another one");
    if (block != NULL) {
        sim__text_add(missing, ", ");
        sim__race_words_block(missing, block);
    }
    sim__text_add(mend,
                  "call record_stream(%s) for the block that holds the bytes: a view's memory is "
                  "its storage's",
                  story->stream_nouns[0]);
}

static void tell_no_use(struct sim__text *missing, struct sim__text *mend,
                        const struct sim__race_story *story, const struct sim__race_block *block) {
    char owner[NOUN_TEXT], named[NOUN_TEXT];
    (void)sim__race_words_stream(block->stream, owner);
    if (block->use_count > 0) {
        use_add(missing, sim__race_words_stream(block->uses[0].stream, named),
                block->uses[0].origin);
        sim__text_add(missing, " does not name that one");
    } else {
        sim__text_add(missing, "the allocator was not told");
    }
    sim__text_add(mend,
                  "call record_stream(%s) before the block is given back, or first make %s wait "
                  "for an event recorded in %s behind %s",
                  story->stream_nouns[0], owner, story->stream_nouns[0], story->nouns[0]);
}

void sim__race_missing_reuse(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story,
                             const struct sim__race_block *block) {
    const uint64_t stream = story->streams[0];
    const int use = use_for(block, stream);
    const struct sim__race_entry *other = use < 0 ? sim__race_story_other_use(block, stream) : NULL;
    char owner[NOUN_TEXT];
    if (use >= 0) {
        tell_use(missing, mend, story, block, use);
    } else if (stream == block->stream) {
        tell_owner(missing, mend, story);
    } else {
        sim__text_add(missing, "the block of %s is used in %s too, and ",
                      sim__race_words_stream(block->stream, owner), story->stream_nouns[0]);
        if (other != NULL)
            tell_other_use(missing, mend, story, other);
        else
            tell_no_use(missing, mend, story, block);
    }
}

// What record_stream does not do, where the program may have trusted in it.
void sim__race_missing_note(struct sim__text *missing, const struct sim__race_story *story) {
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
                  is_second ? story->stream_nouns[1] : story->stream_nouns[0]);
    sim__race_words_site(missing, block->uses[use].origin);
    sim__text_add(missing,
                  " keeps the block from being reused too early, it does not order %s behind %s "
                  "in %s",
                  story->stream_nouns[1], story->nouns[0], story->stream_nouns[0]);
}

// --- Life of memory ---

// Of a node its own: what ends memory may be one.
static uint32_t own_origin(const struct sim__race_side *side) {
    return side->node_origin != 0 ? side->node_origin : side->origin;
}

static bool ends_memory(const struct sim__race_side *side) {
    const struct sim__race_origin *origin = sim__race_origin_at(own_origin(side));
    return origin->act == SIM__RACE_GIVE ||
           (origin->act == SIM__OPERATION_INTERNAL && strcmp(origin->name, "free") == 0) ||
           (origin->act == SIM__RACE_CALL &&
            (origin->call == SIM_CALL_FREE || origin->call == SIM_CALL_FREE_ASYNC ||
             origin->call == SIM_CALL_HOST_FREE || origin->call == SIM_CALL_HOST_UNREGISTER ||
             origin->call == SIM_CALL_MEM_UNMAP));
}

// A use, and the end of what it uses.
struct ending {
    const struct sim__race_side *use, *end;
    const char *use_noun, *use_stream, *end_stream;
    uint64_t user;  // the stream of the use
    bool is_behind; // the use was enqueued behind the end
};

static struct ending ending_of(const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const bool is_behind = ends_memory(&found->first) && !ends_memory(&found->second);
    const int use = is_behind ? 1 : 0;
    return (struct ending){
        .use = is_behind ? &found->second : &found->first,
        .end = is_behind ? &found->first : &found->second,
        .use_noun = story->nouns[use],
        .use_stream = story->stream_nouns[use],
        .end_stream = story->stream_nouns[1 - use],
        .user = story->streams[use],
        .is_behind = is_behind,
    };
}

static void tell_given(struct sim__text *missing, struct sim__text *mend,
                       const struct ending *ending) {
    const struct sim__race_block *block = sim__race_log_block(ending->end->block);
    sim__text_add(missing, "%s was enqueued after the block was given back", ending->use_noun);
    sim__race_words_site(missing, ending->end->origin);
    sim__text_add(mend, "give the block back after %s is enqueued", ending->use_noun);
    if (block != NULL && ending->user != 0 && ending->user != block->stream)
        sim__text_add(mend, ", which is not its own stream: with record_stream(%s) before",
                      ending->use_stream);
}

static void tell_freed(struct sim__text *missing, struct sim__text *mend,
                       const struct ending *ending, bool is_ordered) {
    char call[NOUN_TEXT];
    const uint32_t origin = own_origin(ending->end);
    if (sim__race_origin_at(origin)->act == SIM__OPERATION_INTERNAL) // a node's
        snprintf(call, sizeof call, "the free");
    else
        (void)sim__race_origin_what(origin, call, sizeof call);
    if (ending->is_behind && is_ordered) {
        sim__text_add(missing, "%s comes after %s", ending->use_noun, call);
        sim__race_words_site(missing, origin);
        sim__text_add(mend, "free the memory behind its last use");
    } else if (is_host(ending->end)) {
        sim__text_add(missing, "%s", call);
        sim__race_words_site(missing, origin);
        sim__text_add(missing, " is not ordered behind %s in %s: it promises to wait for nothing",
                      ending->use_noun, ending->use_stream);
        sim__text_add(mend, "wait for %s (cudaStreamSynchronize, or an event) before %s",
                      ending->use_stream, call);
    } else {
        sim__text_add(missing, "%s in %s", call, ending->end_stream);
        sim__race_words_site(missing, origin);
        sim__text_add(missing, " does not come behind %s in %s", ending->use_noun,
                      ending->use_stream);
        sim__text_add(mend,
                      "record an event in %s after %s and make %s wait for it before %s; or free "
                      "the memory in %s",
                      ending->use_stream, ending->use_noun, ending->end_stream, call,
                      ending->use_stream);
    }
}

// The block was given back longer ago than is remembered, or nobody ever took one of that number.
static void tell_unknown_block(struct sim__text *missing, struct sim__text *mend,
                               const struct sim__race_story *story) {
    sim__text_add(missing,
                  "%s names block %" PRIu64 ", which nobody holds: it was given back long before, "
                  "or never taken",
                  story->nouns[1], story->found->second.block);
    sim__text_add(mend, "name the block that holds the bytes; give it back after %s is enqueued",
                  story->nouns[1]);
}

void sim__race_missing_free(struct sim__text *missing, struct sim__text *mend,
                            const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    if (!sim__race_is_side(&found->first)) {
        tell_unknown_block(missing, mend, story);
        return;
    }
    const struct ending ending = ending_of(story);
    if (sim__race_side_act(ending.end) == SIM__RACE_GIVE)
        tell_given(missing, mend, &ending);
    else
        tell_freed(missing, mend, &ending,
                   is_host(ending.end) || ending.end->stream == ending.use->stream ||
                       found->known >= ending.end->sequence);
}

void sim__race_missing_alloc(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    char call[NOUN_TEXT];
    if (!sim__race_is_side(&found->first)) {
        sim__text_add(missing, "the memory is not allocated when %s runs in %s", story->nouns[1],
                      story->stream_nouns[1]);
        sim__text_add(mend, "launch the graph that allocates it before, in stream order");
        return;
    }
    (void)sim__race_origin_what(found->first.origin, call, sizeof call);
    sim__text_add(missing, "%s never waited for %s, where %s", story->stream_nouns[1],
                  story->stream_nouns[0], call);
    sim__race_words_site(missing, found->first.origin);
    sim__text_add(missing, " makes the memory in stream order");
    sim__text_add(mend,
                  "record an event in %s after %s and make %s wait for it before %s; or use the "
                  "memory in %s",
                  story->stream_nouns[0], call, story->stream_nouns[1], story->nouns[1],
                  story->stream_nouns[0]);
}

void sim__race_missing_memory(struct sim__text *missing, struct sim__text *mend,
                              const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    const struct sim__race_allocation *memory = sim__race_log_allocation(found->start);
    const struct sim__race_allocation *before = sim__race_log_allocation(found->start - 1);
    char call[NOUN_TEXT];
    if (memory != NULL && memory->freed_origin != 0) {
        sim__text_add(missing, "the memory was given up by %s",
                      sim__race_origin_what(memory->freed_origin, call, sizeof call));
        sim__race_words_site(missing, memory->freed_origin);
        sim__text_add(mend, "give it up behind its last use");
    } else if (memory != NULL) {
        sim__text_add(missing, "the device has no right to access this memory");
        sim__text_add(mend, "grant it (cudaDeviceEnablePeerAccess, cudaMemPoolSetAccess, "
                            "cuMemSetAccess)");
    } else if (before != NULL && before->freed_origin == 0) {
        sim__text_add(missing, "the memory of %s",
                      sim__race_origin_what(before->origin, call, sizeof call));
        sim__race_words_site(missing, before->origin);
        sim__text_add(missing, " ends before these bytes");
        sim__text_add(mend, "allocate more, or touch less");
    } else {
        sim__text_add(missing, "no memory is known there");
        sim__text_add(mend, "pass an address that a call gave");
    }
}

void sim__race_missing_write(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story) {
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
                  is_second ? story->nouns[1] : story->nouns[0]);
}

void sim__race_missing_graph(struct sim__text *missing, struct sim__text *mend,
                             const struct sim__race_story *story) {
    const struct sim__race_found *found = story->found;
    // The report is about the graph's own block; whose bytes they are now says the take.
    const bool take_is_first = sim__race_side_act(&found->first) == SIM__RACE_TAKE;
    const struct sim__race_side *launch = take_is_first ? &found->second : &found->first;
    const struct sim__race_side *take = take_is_first ? &found->first : &found->second;
    const struct sim__race_block *block = sim__race_log_block(take->block);
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
