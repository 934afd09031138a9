// Compares what PyTorch decided during graph captures with what the caching allocator decides.
//
//     struct golden_result result;
//     golden_capture_compare("r01.on.log", NULL, GOLDEN_CAPTURE_SOUND, &result);
//
// A log NAME.on.log or NAME.off.log has its script NAME.txt beside it, and is of
// graph_capture_record_stream_reuse on or off.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_COMPARE_H
#define TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_COMPARE_H

#include "allocator/golden/capture_session.h"
#include "allocator/golden/compare.h"

// Whether PATH is named as such a log is, and how long it is without the suffix.
bool golden_capture_log_is(const char *path, size_t *stem_length);

// As golden_compare.
void golden_capture_compare(const char *path, const char *more, enum golden_capture_plant plant,
                            struct golden_result *result);

// Whether a line that was replayed says what was recorded. RECORDED may have "q=[...]"; BEFORE is
// the line before it. Besides equal text: what a tally counts is not compared, and of an
// invalidated capture CUDA does not tell what its streams depended on.
bool golden_capture_lines_agree(const char *before, const char *recorded, const char *replayed);

#endif
