// Graph policy: may a block that was freed during a capture be used again in the same capture?
//
// While a stream is captured no event can tell when work on a block is done, so a block with uses
// on several streams would have to wait until the capture ends. But the graph itself can tell:
// whatever stream S captures next comes behind the nodes that S depends on, its *terminals*. At the
// free, the terminals of every stream that used the block are noted as its *markers*; all that used
// the block is one of them or comes before one. When the terminals of S have come behind all
// markers, what S captures next may use the memory. This is the present form of PyTorch's
// graph_capture_record_stream_reuse; capture_markers.h is the one it began with.
//
// The policy owns no block. It is told of a free, which makes a *ticket* for it, and before an
// allocation it says which tickets are proven.
//
// Cost: each node of a capture is visited once a stream, and a ticket is looked at when a node it
// waits for is visited, so neither a long capture nor many waiting tickets make a question dearer.
// Locks: none; the caller serialises.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_REUSE_H
#define TIDEMARK_ALLOCATOR_CAPTURE_REUSE_H

#include "allocator/capture_graph.h"
#include "base/address_map.h"
#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One freed block that waits.
struct cca__reuse_ticket;
// What is known to come before the next operation of one stream, in one capture.
struct cca__reuse_view;

// All zero: nothing waits. One object serves all captures and streams of a device.
struct cca__capture_reuse {
    // PyTorch 2.15's: what was before a stream counts for ever, also after the program replaced the
    // stream's dependencies. Then reuse may happen without an edge.
    bool keeps_stale;
    struct base_address_map views; // by stream; each a number in view_list
    struct cca__reuse_view **view_list;
    size_t view_count, view_capacity;
    struct cca__reuse_ticket *tickets; // 0 is none
    size_t ticket_count, ticket_capacity;
    uint32_t first_unused;
    struct cca__node_list markers; // of the free that is being noted
    uint64_t deferred;             // tickets made so far: their order
    struct cca__reuse_proof {
        uint64_t order, token;
    } * proofs;             // of the last look
    uint64_t *proven;       // their tokens
    size_t proven_capacity; // of both
};

// Notes a free: STREAMS[0] is the block's own stream, whose state is STATE, the others used it.
// TOKEN is what the caller knows the block by. *ticket is 0 if the block cannot be reused in this
// capture: a stream is not captured, or in another graph, or nothing was captured on any.
enum base_status cca__reuse_defer(struct cca__capture_reuse *reuse,
                                  const struct cca__capture_state *state,
                                  const cudaStream_t *streams, size_t stream_count, uint64_t token,
                                  uint32_t *ticket) BASE_MUST_USE;

// Before an allocation on STREAM, whose state is STATE: the tokens whose blocks may be used again,
// in order of their frees; their tickets are gone. *tokens is valid until the next call.
enum base_status cca__reuse_look(struct cca__capture_reuse *reuse, cudaStream_t stream,
                                 const struct cca__capture_state *state, const uint64_t **tokens,
                                 size_t *count) BASE_MUST_USE;

// The block does not wait for this policy any more.
void cca__reuse_drop(struct cca__capture_reuse *reuse, uint32_t ticket);

// A capture ended: what is known of its graph is forgotten. Its tickets stay, and are never proven.
void cca__reuse_end(struct cca__capture_reuse *reuse, unsigned long long capture);

void cca__reuse_deinit(struct cca__capture_reuse *reuse);

#endif
