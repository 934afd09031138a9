// What is wrong with a record, in a sentence: which key, what it holds, what would be right.
#include "trace/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 512

static const char *key_text(unsigned key) {
    static const char *const texts[] = {
#define KEY_TEXT(name, text) text,
        SNAPSHOT_KEYS(KEY_TEXT)
#undef KEY_TEXT
    };
    return texts[key];
}

static const char *type_text(unsigned type) {
    switch (type) {
    case SNAPSHOT_FRAME: return "a frame";
    case SNAPSHOT_EVENT: return "an event";
    case SNAPSHOT_BLOCK: return "a block";
    case SNAPSHOT_SEGMENT: return "a segment";
    case SNAPSHOT_TOP: return "a snapshot";
    case SNAPSHOT_STACK: return "a list of frames";
    case SNAPSHOT_PAIR: return "a pair of integers";
    case SNAPSHOT_EVENT_LIST: return "a list of events";
    case SNAPSHOT_BLOCK_LIST: return "a list of blocks";
    case SNAPSHOT_SEGMENT_LIST: return "a list of segments";
    default: return trace__pickle_type_name(type);
    }
}

// What should stand behind KEY.
static const char *due_text(unsigned key) {
    switch (key) {
    case KEY_ACTION:
        return "one of alloc, free_requested, free_completed, segment_alloc, segment_free, "
               "segment_map, "
               "segment_unmap, snapshot, oom, user_defined, annotate, empty_cache";
    case KEY_STATE:
        return "one of inactive, active_allocated, active_pending_free, active_awaiting_free";
    case KEY_SEGMENT_TYPE: return "small or large";
    case KEY_STREAM: return "an integer of 64 bits";
    case KEY_FRAMES: return "a list of frames {name: string, filename: string, line: integer}";
    case KEY_HISTORY: return "a list of {addr, real_size, frames}";
    case KEY_POOL_ID:
    case KEY_SEGMENT_POOL_ID: return "a pair of integers from 0 to 2^32 - 1";
    case KEY_BLOCKS: return "a list of blocks";
    case KEY_SEGMENTS: return "a list of segments";
    case KEY_DEVICE_TRACES: return "a list of lists of events, one a device";
    case KEY_ALLOCATOR_SETTINGS: return "a dict of the allocator's settings";
    case KEY_IS_EXPANDABLE:
    case KEY_EXPANDABLE_SEGMENTS: return "True or False";
    case KEY_CONFIG: return "a string";
    case KEY_GARBAGE_COLLECTION_THRESHOLD: return "a number from 0 to 1";
    case KEY_ROUNDUP_POWER2_DIVISIONS: return "a dict from '1', '2' ... '32768' to integers";
    case KEY_DEVICE: return "an integer from 0 to 15";
    default: return "an integer from 0 to 2^63 - 1";
    }
}

// A string of the file, cut short and with anything unprintable shown as '?'.
static void quote(const struct snapshot *snapshot, uint32_t id, char quoted[64]) {
    size_t length;
    const char *bytes = trace__pickle_string(snapshot->machine, id, &length);
    size_t shown = length < 40 ? length : 40;
    for (size_t i = 0; i < shown; i++)
        quoted[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
    strcpy(quoted + shown, length > shown ? "..." : "");
}

enum base_status trace__snapshot_fault_status(const struct snapshot *snapshot,
                                              const struct snapshot_fault *fault) {
    char what[TEXT_SIZE], quoted[64];
    const char *key = key_text(fault->key), *due = due_text(fault->key);
    switch (fault->problem) {
    case PROBLEM_MISSING:
        snprintf(what, sizeof what, "'%s' is missing; due is %s", key, due);
        break;
    case PROBLEM_TYPE:
        snprintf(what, sizeof what, "'%s' is %s; due is %s", key, type_text(fault->type), due);
        break;
    case PROBLEM_NEGATIVE:
        snprintf(what, sizeof what, "'%s' is %" PRId64 "; due is %s", key, (int64_t)fault->value,
                 due);
        break;
    case PROBLEM_LARGE:
        snprintf(what, sizeof what, "'%s' is %" PRIu64 "; due is %s", key, fault->value, due);
        break;
    case PROBLEM_TEXT:
        quote(snapshot, (uint32_t)fault->value, quoted);
        snprintf(what, sizeof what, "'%s' is '%s'; due is %s", key, quoted, due);
        break;
    case PROBLEM_RANGE:
        if (fault->type == PICKLE_FLOAT) {
            double number;
            memcpy(&number, &fault->value, sizeof number);
            snprintf(what, sizeof what, "'%s' is %g; due is %s", key, number, due);
        } else {
            snprintf(what, sizeof what, "'%s' is %" PRIu64 "; due is %s", key, fault->value, due);
        }
        break;
    default:
        snprintf(what, sizeof what, "it is %s without the keys that are due there",
                 type_text(fault->type));
        break;
    }
    // The values of the outermost dict have no place of their own.
    if (fault->offset == 0) return base_status_set(BASE_FORMAT, "%s", what);
    return base_status_set(BASE_FORMAT, "ending at byte %" PRIu64 ": %s", fault->offset, what);
}
