// Only what stands near the pair counts as meant for it: an event that is recorded right before the
// first one, a wait right before the second one. The same calls further away had other purposes.
#include "simulator/race_story.h"

#include <stdio.h>
#include <string.h>

// A kernel's name without its result, its arguments and those of templates.
static void kernel_noun(const char *name, char *noun) {
    size_t length = (size_t)snprintf(noun, SIM__RACE_NOUN_TEXT, "kernel ");
    int depth = 0;
    if (strncmp(name, "void ", 5) == 0)
        name += 5;
    for (; *name != '\0' && length + 1 < SIM__RACE_NOUN_TEXT; ++name) {
        if (*name == '(' && strncmp(name, "(anonymous", 10) != 0)
            break;
        depth -= *name == '>' && depth > 0;
        if (depth == 0 && *name != '<' && *name != '>')
            noun[length++] = *name;
        depth += *name == '<';
    }
    noun[length] = '\0';
}

static void plain_noun(const struct sim__race_side *side, char *noun) {
    const uint32_t number = side->node_origin != 0 ? side->node_origin : side->origin;
    const struct sim__race_origin *origin = sim__race_origin_at(number);
    switch (origin->act) {
    case SIM__OPERATION_COPY: snprintf(noun, SIM__RACE_NOUN_TEXT, "copy"); break;
    case SIM__OPERATION_FILL: snprintf(noun, SIM__RACE_NOUN_TEXT, "fill"); break;
    case SIM__OPERATION_KERNEL: kernel_noun(origin->name == NULL ? "" : origin->name, noun); break;
    case SIM__RACE_TAKE: snprintf(noun, SIM__RACE_NOUN_TEXT, "taking of the block"); break;
    case SIM__RACE_GIVE: snprintf(noun, SIM__RACE_NOUN_TEXT, "giving back of the block"); break;
    case SIM__RACE_HOST_READ: snprintf(noun, SIM__RACE_NOUN_TEXT, "host read"); break;
    case SIM__RACE_HOST_WRITE: snprintf(noun, SIM__RACE_NOUN_TEXT, "host write"); break;
    default: (void)sim__race_origin_what(number, noun, SIM__RACE_NOUN_TEXT);
    }
}

// "the copy", "kernel scale"; two alike are told apart by their order.
static void noun_make(const struct sim__race_found *found, bool second, char *noun) {
    char mine[SIM__RACE_NOUN_TEXT], other[SIM__RACE_NOUN_TEXT];
    plain_noun(second ? &found->second : &found->first, mine);
    plain_noun(second ? &found->first : &found->second, other);
    const bool alike = sim__race_is_side(&found->first) && sim__race_is_side(&found->second) &&
                       strcmp(mine, other) == 0;
    const bool named = strncmp(mine, "kernel ", 7) == 0 || strncmp(mine, "cu", 2) == 0;
    snprintf(noun, SIM__RACE_NOUN_TEXT, "%s%s%.*s", alike || !named ? "the " : "",
             !alike   ? ""
             : second ? "second "
                      : "first ",
             SIM__RACE_NOUN_TEXT - 16, mine);
}

static bool is_inside(const struct sim__race_story *story) { return story->found->inside != NULL; }

// Entries of work, as against those of edges.
static bool is_work(const struct sim__race_story *story, const struct sim__race_entry *entry) {
    return entry->kind == (is_inside(story) ? SIM__RACE_LOG_NODE : SIM__RACE_LOG_OPERATION);
}

static bool is_first(const struct sim__race_story *story, const struct sim__race_entry *entry) {
    return is_work(story, entry) && entry->sequence == story->sequence &&
           (is_inside(story) ? entry->object == story->found->first.graph
                             : entry->stream == story->streams[0]);
}

// The last record of the event that WAIT waits for, before it.
static const struct sim__race_entry *record_before(const struct sim__race_entry *wait) {
    for (uint64_t number = wait->number - 1; number >= sim__race_log_first(); --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry->kind == SIM__RACE_LOG_RECORD && entry->object == wait->object)
            return entry;
    }
    return NULL;
}

// What happened between the last work of each of the two streams before the pair and now.
struct span {
    uint64_t first;  // number of the first one's entry; 0: the log has it no more
    uint64_t before; // of the work before it in its stream
    uint64_t last;   // of the work before the second one in that one's stream
    uint64_t second; // of the second one, if it has an entry
};

static struct span span_find(const struct sim__race_story *story) {
    struct span span = {.first = 0};
    const uint64_t second_sequence =
        is_inside(story) ? story->found->second.node : story->found->second.sequence;
    for (uint64_t number = sim__race_log_first(); number <= sim__race_log_last(); ++number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (!is_work(story, entry))
            continue;
        if (is_first(story, entry))
            span.first = number;
        else if (entry->stream == story->streams[0] && span.first == 0)
            span.before = number;
        if (entry->stream == story->streams[1] && entry->sequence == second_sequence)
            span.second = number;
        else if (entry->stream == story->streams[1])
            span.last = number;
    }
    return span;
}

// Whether RECORD covers the first one.
static bool covers(const struct sim__race_story *story, const struct span *span,
                   const struct sim__race_entry *record) {
    return is_inside(story) ? span->first != 0 && record->number > span->first
                            : record->other_sequence >= story->sequence;
}

static void story_record(struct sim__race_story *story, const struct span *span,
                         const struct sim__race_entry *entry) {
    if (entry->other != story->streams[0] || !covers(story, span, entry))
        return;
    if (story->late_record == NULL)
        story->late_record = entry;
    if (story->blind_wait != NULL && story->blind_record == NULL &&
        entry->object == story->blind_wait->object)
        story->blind_record = entry;
}

static void story_wait(struct sim__race_story *story, const struct span *span,
                       const struct sim__race_entry *entry) {
    const struct sim__race_entry *record = entry->other == 0 ? NULL : record_before(entry);
    const bool is_near = entry->number > span->last;
    if (entry->stream == story->streams[1] && entry->other == 0 && is_near)
        story->blind_wait = entry;
    if (entry->stream == story->streams[1] && entry->other == story->streams[0] && record != NULL &&
        !covers(story, span, record) && (is_near || record->number > span->before)) {
        story->early_wait = entry;
        story->early_record = record;
    }
    if (entry->stream == story->streams[0] && entry->other == story->streams[1] &&
        entry->number > span->before)
        story->wrong_wait = entry;
    if (story->late_record != NULL && entry->object == story->late_record->object &&
        entry->stream != story->streams[0] && entry->stream != story->streams[1])
        story->late_waiter = entry;
}

static void story_entry(struct sim__race_story *story, const struct span *span,
                        const struct sim__race_entry *entry) {
    if (entry->captured != is_inside(story) || (span->second != 0 && entry->number > span->second))
        return;
    if (entry->kind == SIM__RACE_LOG_RECORD)
        story_record(story, span, entry);
    else if (entry->kind == SIM__RACE_LOG_WAIT)
        story_wait(story, span, entry);
    else if (entry->kind == SIM__RACE_LOG_HOST_WAIT && entry->number > span->first)
        story->host_wait = entry;
}

void sim__race_story(struct sim__race_story *story, const struct sim__race_found *found) {
    const bool inside = found->inside != NULL;
    *story = (struct sim__race_story){
        .found = found,
        .streams = {inside ? found->first.node_stream : found->first.stream,
                    inside ? found->second.node_stream : found->second.stream},
        .sequence = inside ? found->first.node : found->first.sequence,
    };
    for (int i = 0; i < 2; ++i) {
        noun_make(found, i == 1, story->nouns[i]);
        (void)sim__race_words_stream(story->streams[i], story->stream_nouns[i]);
    }
    const struct span span = span_find(story);
    for (uint64_t number = sim__race_log_first(); number <= sim__race_log_last(); ++number)
        story_entry(story, &span, sim__race_log_at(number));
}

const struct sim__race_entry *sim__race_story_other_use(const struct sim__race_block *block,
                                                        uint64_t stream) {
    const uint64_t end = block->given != 0 ? block->given : sim__race_log_last();
    const uint64_t start =
        block->taken > sim__race_log_first() ? block->taken : sim__race_log_first();
    for (uint64_t number = end; number >= start && number > 0; --number) {
        const struct sim__race_entry *entry = sim__race_log_at(number);
        if (entry->kind == SIM__RACE_LOG_USE && entry->stream == stream &&
            entry->object != block->number)
            return entry;
    }
    return NULL;
}
