#include "simulator/race_property/removal.h"

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

int removals_list(const struct program *program, struct removal removals[REMOVALS_MAX]) {
    int count = 0;
    for (int i = 0; i < program->count; ++i) {
        const struct operation *operation = &program->operations[i];
        if (operation->dropped)
            continue;
        if (is_edge(operation))
            removals[count++] = (struct removal){REMOVE_CALL, i, NONE};
        else if (is_dependent_work(operation))
            removals[count++] = (struct removal){REMOVE_CONDITION, i, NONE};
        for (int k = 0; k < operation->dependency_count; ++k)
            removals[count++] = (struct removal){REMOVE_DEPENDENCY, i, k};
    }
    for (int i = 0; i < program->stream_count; ++i)
        if (program->streams[i].kind == BLOCKING)
            removals[count++] = (struct removal){REMOVE_BARRIER, i, NONE};
    return count;
}

static void dependency_drop(struct operation *operation, int index) {
    --operation->dependency_count;
    for (int i = index; i < operation->dependency_count; ++i)
        operation->dependencies[i] = operation->dependencies[i + 1];
}

void removal_apply(struct program *program, const struct removal *removal) {
    switch (removal->kind) {
    case REMOVE_CALL: program->operations[removal->index].dropped = true; break;
    case REMOVE_BARRIER: program->streams[removal->index].kind = NON_BLOCKING; break;
    case REMOVE_CONDITION: program->operations[removal->index].guard = NONE; break;
    case REMOVE_DEPENDENCY:
        dependency_drop(&program->operations[removal->index], removal->dependency);
        break;
    case REMOVAL_KIND_COUNT: break;
    }
}

const char *removal_text(const struct program *program, const struct removal *removal) {
    static char text[64];
    switch (removal->kind) {
    case REMOVE_CALL:
        snprintf(text, sizeof text, "%s (%s)", operation_label(removal->index),
                 verb_word(program->operations[removal->index].verb));
        break;
    case REMOVE_BARRIER:
        snprintf(text, sizeof text, "the barrier of stream %d", removal->index);
        break;
    case REMOVE_CONDITION:
        snprintf(text, sizeof text, "the condition of %s", operation_label(removal->index));
        break;
    case REMOVE_DEPENDENCY:
        snprintf(text, sizeof text, "dependency %d of node %s", removal->dependency,
                 operation_label(removal->index));
        break;
    case REMOVAL_KIND_COUNT: break;
    }
    return text;
}
