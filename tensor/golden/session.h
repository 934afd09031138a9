// Performs the operations of a log on tensors of this library and prints what became of them, as
// the log has it (shared/reference/golden-tensor/README.md has the format).
//
//     struct golden_session *session;
//     status = golden_session_create(&session);
//     status = golden_session_perform(session, "view t1 t0 [2,3]", &lines);
//     golden_session_destroy(session, &live_blocks);
#ifndef TIDEMARK_TENSOR_GOLDEN_SESSION_H
#define TIDEMARK_TENSOR_GOLDEN_SESSION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct golden_session;

// Lines of text: the outcome ("= ok"), then the details.
struct golden_lines {
    char **texts;
    size_t count, capacity;
};
void golden_lines_deinit(struct golden_lines *lines);

enum base_status golden_session_create(struct golden_session **session) BASE_MUST_USE;
// BASE_UNSUPPORTED: no such operation; BASE_FORMAT: its arguments make no sense. What the operation
// itself refuses is an outcome. *lines is filled; the caller deinits it.
enum base_status golden_session_perform(struct golden_session *session, const char *operation,
                                        struct golden_lines *lines) BASE_MUST_USE;
// Whether something but names (their tensors, the bases and gradients of those, handles) holds the
// storage of that number: a graph, or a saved tensor.
bool golden_session_storage_is_held(struct golden_session *session, long number);
// PyTorch may start a result at version 1 that it computed of inference tensors outside the mode:
// brings the tensor NAME, which the last operation made so, there. False if it is none.
bool golden_session_start_at_one(struct golden_session *session, const char *name);
// Lets go of all names; *live_blocks: blocks of memory that are still held, which is a leak.
void golden_session_destroy(struct golden_session *session, int64_t *live_blocks);

#endif
