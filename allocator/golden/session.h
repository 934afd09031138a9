// One run of operations through a subject: performs an operation as a decision log writes it, and
// prints its outcome in the log's own format.
//
//     struct golden_session *session;
//     status = golden_session_create(
//         &golden_subject_caching,
//         &(struct golden_options){.config = "max_split_size_mb:64", .capacity_bytes = capacity},
//         &session);
//     status = golden_session_perform(session, "alloc 1 1000 0", stdout);
//         alloc 1 1000 0 = 0 0 1024 | M1
//     golden_session_destroy(session);
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_SESSION_H
#define TIDEMARK_ALLOCATOR_GOLDEN_SESSION_H

#include "allocator/golden/subject.h"

#include <stdio.h>

struct golden_session;

// The statuses of the subject's open.
enum base_status golden_session_create(const struct golden_subject *subject,
                                       const struct golden_options *options,
                                       struct golden_session **session) BASE_MUST_USE;

// Performs OPERATION (the text before " = ") and prints its line and its detail lines. BASE_FORMAT:
// it is malformed, the sentence says how. BASE_UNSUPPORTED: the sentence names what it needs that
// is not built. Both print nothing. Errors of the allocator are outcomes, not errors of this call.
enum base_status golden_session_perform(struct golden_session *session, const char *operation,
                                        FILE *output) BASE_MUST_USE;

// How many out-of-memory errors there were; the numbers of each were checked against the statistics
// and the device.
size_t golden_session_out_of_memory_count(const struct golden_session *session);

// Walks the subject's structures and aborts on a broken invariant.
void golden_session_check(struct golden_session *session);

void golden_session_destroy(struct golden_session *session);

#endif
