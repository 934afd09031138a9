// The first published form of reuse inside a capture, kept beside the present one (capture_reuse.h)
// to be studied and measured.
//
// At the free, an empty node is put behind every stream that used the block and made the stream's
// only dependency: a *free marker*. All later work of the stream comes behind it. A block is proven
// by one of two rules:
//     per stream   every marker comes before all terminals of the stream that allocates; the block
//                  is one of that stream
//     graph-wide   every marker comes before all terminals of all streams of the capture; then
//                  whatever is captured next, on any stream, comes behind the block's uses
// Its costs are what replaced it: the graph grows by a node a stream a free, and every question
// walks the whole graph again. And a marker is a node: one that a free puts behind the last join of
// a forked stream is joined by nothing, and the driver refuses the end of the capture.
//
// Owns no block; the caller serialises.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_MARKERS_H
#define TIDEMARK_ALLOCATOR_CAPTURE_MARKERS_H

#include "allocator/capture_graph.h"
#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cca__marker_rule { CCA__MARKERS_PER_STREAM, CCA__MARKERS_GRAPH_WIDE };

struct cca__marked_free;

// All zero but the rule: nothing waits.
struct cca__capture_markers {
    enum cca__marker_rule rule;
    struct cca__marked_free *frees; // in order of the frees
    size_t count, capacity;
    uint64_t *proven;
    size_t proven_capacity;
};

// Notes a free and puts its markers into the graph. STREAMS[0] is the block's own stream,
// whose state is STATE. If a stream is not captured the block is never proven (*is_marked false);
// nodes that were added before that was found stay in the graph.
enum base_status cca__markers_defer(struct cca__capture_markers *markers,
                                    const struct cca__capture_state *state,
                                    const cudaStream_t *streams, size_t stream_count,
                                    uint64_t token, bool *is_marked) BASE_MUST_USE;

// Before an allocation on STREAM, whose state is STATE: the tokens that are proven, in order of
// their frees; they do not wait any more. STREAMS: all that the program uses, for the graph-wide
// rule. *tokens is valid until the next call.
enum base_status cca__markers_look(struct cca__capture_markers *markers, cudaStream_t stream,
                                   const struct cca__capture_state *state,
                                   const cudaStream_t *streams, size_t stream_count,
                                   const uint64_t **tokens, size_t *count) BASE_MUST_USE;

// The block does not wait for this policy any more.
void cca__markers_drop(struct cca__capture_markers *markers, uint64_t token);

void cca__markers_deinit(struct cca__capture_markers *markers);

#endif
