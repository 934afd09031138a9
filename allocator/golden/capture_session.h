// Runs a capture script against the caching allocator on the simulator, and prints what a recorded
// log has: each operation, and its answer. What a log says of the allocator's own queries,
// `q=[...]`, is left out.
//
//     golden_capture_run(&script, "graph_capture_record_stream_reuse:True", stdout);
//         malloc a s1 4096
//         = 0+0 size 4096 fresh ev=[segment_alloc 0+0:2097152@s1 p1,0; alloc 0+0:4096@s1 p1,0]
//
// The operations of a helper thread run on a thread of that number, one operation at a time. A
// `probe` runs in a forked child, which performs the whole script up to there anew, on devices and
// with an allocator of its own: an allocator does not pass through fork.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_SESSION_H
#define TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_SESSION_H

#include "allocator/golden/capture_script.h"

#include <stdio.h>

// Faults that a test puts between the script and the allocator, to see that the logs tell.
enum golden_capture_plant {
    GOLDEN_CAPTURE_SOUND,
    GOLDEN_CAPTURE_NO_RECORD,  // record_stream is not passed on
    GOLDEN_CAPTURE_NO_MARK,    // captures are not marked
    GOLDEN_CAPTURE_NO_CURRENT, // the current stream is always the default one
    GOLDEN_CAPTURE_NO_FILTER,  // a capture's scope takes every request
    GOLDEN_CAPTURE_NO_RELEASE, // pools are not released with their graph
    GOLDEN_CAPTURE_PLANT_COUNT
};

// CONFIG: the allocator's settings, the script's own included. Fails only as
// cca_allocator_create does, and prints nothing then; errors of operations are answers.
enum base_status golden_capture_run(const struct golden_capture_script *script, const char *config,
                                    enum golden_capture_plant plant, FILE *output) BASE_MUST_USE;

#endif
