#include "simulator/race_property/removal.h"

const char *removal_kind_text(enum removal_kind kind) {
    static const char *const texts[] = {
#define REMOVAL_TEXT(name, text) text,
        REMOVAL_LIST(REMOVAL_TEXT)
#undef REMOVAL_TEXT
    };
    return texts[kind];
}

// --- What there is ---

static bool is_edge(const struct operation *operation) {
    switch (operation->verb) {
    case RECORD:
    case WAIT:
    case EVENT_SYNC:
    case EVENT_POLL:
    case STREAM_SYNC:
    case STREAM_POLL:
    case DEVICE_SYNC:
    case AWAIT:
    case VALUE_POLL: return true;
    case KERNEL: return operation->step_count == 0;
    default: return false;
    }
}

static bool is_dependent_work(const struct operation *operation) {
    return operation->guard != NONE && operation->guard_success && operation->step_count > 0;
}

// The last work of the stream before it, or NONE.
static int work_before(const struct program *program, int index) {
    const int stream = program->operations[index].stream;
    for (int i = index - 1; i >= 0; --i)
        if (program->operations[i].stream == stream &&
            (program->operations[i].step_count > 0 || program->operations[i].verb == LAUNCH))
            return i;
    return NONE;
}

static bool uses_block(const struct operation *operation, int block) {
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < count; ++k)
            if (accesses[k].span.block == block)
                return true;
    }
    return false;
}

// The last launch that uses the block before it is given back; NONE as well if it is something that
// cannot say which block it means.
static int use_before(const struct program *program, int index) {
    const int block = program->operations[index].block;
    for (int i = index - 1; i >= 0; --i) {
        const enum verb verb = program->operations[i].verb;
        if (uses_block(&program->operations[i], block))
            return verb == KERNEL || verb == HOST_FUNCTION ? i : NONE;
    }
    return NONE;
}

static bool uses_bytes(const struct operation *operation, const struct block *block) {
    const uint32_t cells = ((1u << block->size) - 1) << block->start;
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < count; ++k)
            if (accesses[k].span.block == NONE && accesses[k].span.buffer == block->buffer &&
                (span_mask(&accesses[k].span) & cells))
                return true;
    }
    return false;
}

// Whether another block of the same bytes is taken later, which two would hold then; or they are
// used without a block, and would be meant through the one that still holds them.
static bool is_taken_later(const struct program *program, int index) {
    const struct block *block = &program->blocks[program->operations[index].block];
    for (int i = index + 1; i < program->count; ++i) {
        if (uses_bytes(&program->operations[i], block))
            return true;
        if (program->operations[i].verb != TAKE)
            continue;
        const struct block *other = &program->blocks[program->operations[i].block];
        if (other->buffer == block->buffer && other->start < block->start + block->size &&
            block->start < other->start + other->size)
            return true;
    }
    return false;
}

static bool is_write(const struct operation *operation) {
    for (int i = 0; i < operation->step_count; ++i)
        if (operation->steps[i].verb != STEP_READ)
            return operation->verb != ADD_KERNEL; // of which other nodes may depend
    return false;
}

int removals_list(const struct program *program, bool writes,
                  struct removal removals[REMOVALS_MAX]) {
    int count = 0, before;
    for (int i = 0; i < program->count; ++i) {
        const struct operation *operation = &program->operations[i];
        if (writes) {
            if (is_write(operation))
                removals[count++] = (struct removal){REMOVAL_WRITE, i, NONE};
            continue;
        }
        if (is_edge(operation))
            removals[count++] = (struct removal){REMOVAL_CALL, i, NONE};
        else if (is_dependent_work(operation))
            removals[count++] = (struct removal){REMOVAL_CONDITION, i, NONE};
        for (int k = 0; k < operation->dependency_count; ++k)
            removals[count++] = (struct removal){REMOVAL_DEPENDENCY, i, k};
        if (operation->verb == RECORD && (before = work_before(program, i)) != NONE)
            removals[count++] = (struct removal){REMOVAL_EARLY_RECORD, i, before};
        if (operation->verb == GIVE && (before = use_before(program, i)) != NONE)
            removals[count++] = (struct removal){REMOVAL_EARLY_GIVE, i, before};
        if (operation->verb == GIVE && !is_taken_later(program, i))
            removals[count++] = (struct removal){REMOVAL_NO_GIVE, i, NONE};
    }
    for (int i = 0; i < program->stream_count && !writes; ++i)
        if (program->streams[i].kind == BLOCKING)
            removals[count++] = (struct removal){REMOVAL_BARRIER, i, NONE};
    return count;
}

// --- Doing it ---

static void dependency_drop(struct operation *operation, int index) {
    --operation->dependency_count;
    for (int i = index; i < operation->dependency_count; ++i)
        operation->dependencies[i] = operation->dependencies[i + 1];
}

static void index_moved(int *index, int from, int to) {
    if (*index == from)
        *index = to;
    else if (*index >= to && *index < from)
        ++*index;
}

// Operation FROM comes before operation TO, an earlier one.
static void operation_move(struct program *program, int from, int to) {
    const struct operation moved = program->operations[from];
    for (int i = from; i > to; --i)
        program->operations[i] = program->operations[i - 1];
    program->operations[to] = moved;
    for (int i = 0; i < program->count; ++i) {
        struct operation *operation = &program->operations[i];
        index_moved(&operation->guard, from, to);
        for (int k = 0; k < operation->dependency_count; ++k)
            index_moved(&operation->dependencies[k], from, to);
    }
}

void removal_apply(struct program *program, const struct removal *removal) {
    switch (removal->kind) {
    case REMOVAL_CALL:
    case REMOVAL_NO_GIVE:
    case REMOVAL_WRITE: program->operations[removal->index].dropped = true; break;
    case REMOVAL_BARRIER: program->streams[removal->index].kind = NON_BLOCKING; break;
    case REMOVAL_CONDITION: program->operations[removal->index].guard = NONE; break;
    case REMOVAL_DEPENDENCY:
        dependency_drop(&program->operations[removal->index], removal->other);
        break;
    case REMOVAL_EARLY_RECORD:
    case REMOVAL_EARLY_GIVE: operation_move(program, removal->index, removal->other); break;
    case REMOVAL_KIND_COUNT: break;
    }
}

const char *removal_text(const struct program *program, const struct removal *removal) {
    static char text[64];
    const char *label = removal->kind == REMOVAL_BARRIER ? "" : operation_label(removal->index);
    const char *word =
        removal->kind == REMOVAL_BARRIER ? "" : verb_word(program->operations[removal->index].verb);
    switch (removal->kind) {
    case REMOVAL_CALL:
    case REMOVAL_NO_GIVE:
    case REMOVAL_WRITE: snprintf(text, sizeof text, "%s (%s) left out", label, word); break;
    case REMOVAL_BARRIER:
        snprintf(text, sizeof text, "stream %d made NonBlocking", removal->index);
        break;
    case REMOVAL_CONDITION:
        snprintf(text, sizeof text, "the condition of %s left out", label);
        break;
    case REMOVAL_DEPENDENCY:
        snprintf(text, sizeof text, "dependency %d of node %s left out", removal->other, label);
        break;
    case REMOVAL_EARLY_RECORD:
    case REMOVAL_EARLY_GIVE:
        snprintf(text, sizeof text, "%s (%s) moved before %s", label, word,
                 operation_label(removal->other));
        break;
    case REMOVAL_KIND_COUNT: break;
    }
    return text;
}
