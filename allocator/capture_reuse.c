// See capture_reuse.h.
//
// A view keeps, for each node it knows, one number in a hash table: flags, and the first ticket
// that waits for the node. The walk goes from the stream's terminals towards their dependencies and
// stops at nodes that were visited before. It has to notice when the terminals of the last walk are
// no longer behind the stream, since then what was visited proves nothing: every node of the last
// *front* (terminals that no other terminal came behind) must be met again, or the view starts
// anew.
#include "allocator/capture_reuse.h"

#include "allocator/array.h"
#include "allocator/capture_graph.h"

#include <stdlib.h>

#define MARKERS_FEW 4

struct cca__reuse_ticket {
    uint64_t token, order;
    struct cca__reuse_view *view; // in one of whose lists it is; NULL: unused, or never proven
    size_t marker_count;
    union { // few markers lie in the ticket
        cudaGraphNode_t few[MARKERS_FEW];
        cudaGraphNode_t *many;
    };
    bool is_dropped; // given back as soon as its list is taken
    uint32_t next;   // in the list of a node, of what is to be judged, or of unused
                     // tickets
};

// What a view knows of a node: these, and above them the number of the first waiting ticket.
#define NODE_VISITED ((uint64_t)1)  // comes before the stream's next operation
#define NODE_TERMINAL ((uint64_t)2) // in this walk: a terminal, not met as a dependency so far
#define NODE_FRONT ((uint64_t)4)    // in the front of the last walk, not met again so far
#define NODE_FLAGS ((uint64_t)7)
#define TICKET_SHIFT 3

struct cca__reuse_view {
    cudaStream_t stream;
    unsigned long long capture;
    struct base_address_map nodes;
    struct cca__node_list front, terminals, stack, dependencies;
    size_t front_missed;
    uint32_t to_judge; // tickets whose watched marker was visited, or that had
                       // none to wait for
};

static struct cca__reuse_ticket *ticket_at(const struct cca__capture_reuse *reuse,
                                           uint32_t number) {
    return &reuse->tickets[number];
}

//------------------------------------------------------------------------------------------------
// Nodes of a view.

static uint64_t key_of(cudaGraphNode_t node) { return (uint64_t)(uintptr_t)node; }

static uint64_t flags_of(const struct cca__reuse_view *view, cudaGraphNode_t node) {
    uint64_t value;
    return base_address_map_get(&view->nodes, key_of(node), &value) ? value : 0;
}

static enum base_status set_flags(struct cca__reuse_view *view, cudaGraphNode_t node,
                                  uint64_t value) {
    return base_address_map_set(&view->nodes, key_of(node), value);
}

//------------------------------------------------------------------------------------------------
// Tickets.

static enum base_status ticket_take(struct cca__capture_reuse *reuse, uint32_t *number) {
    if (reuse->first_unused != 0) {
        *number = reuse->first_unused;
        reuse->first_unused = ticket_at(reuse, *number)->next;
        return BASE_OK;
    }
    if (reuse->ticket_count == reuse->ticket_capacity) {
        struct cca__reuse_ticket *const tickets = cca__array_grow(
            reuse->tickets, &reuse->ticket_capacity, sizeof *tickets, 64, "deferred frees");
        if (tickets == NULL) return BASE_HOST_MEMORY;
        reuse->tickets = tickets;
        if (reuse->ticket_count == 0) reuse->ticket_count = 1;
    }
    *number = (uint32_t)reuse->ticket_count++;
    return BASE_OK;
}

static const cudaGraphNode_t *markers_of(const struct cca__reuse_ticket *ticket) {
    return ticket->marker_count <= MARKERS_FEW ? ticket->few : ticket->many;
}

static void markers_free(const struct cca__reuse_ticket *ticket) {
    if (ticket->marker_count > MARKERS_FEW) free(ticket->many);
}

static enum base_status markers_set(struct cca__reuse_ticket *ticket,
                                    const struct cca__node_list *markers) {
    cudaGraphNode_t *copy = ticket->few;
    if (markers->count > MARKERS_FEW) copy = malloc(markers->count * sizeof(cudaGraphNode_t));
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu graph nodes",
                               markers->count);
    for (size_t index = 0; index < markers->count; ++index)
        copy[index] = markers->nodes[index];
    if (markers->count > MARKERS_FEW) ticket->many = copy;
    ticket->marker_count = markers->count;
    return BASE_OK;
}

static void ticket_give_back(struct cca__capture_reuse *reuse, uint32_t number) {
    struct cca__reuse_ticket *const ticket = ticket_at(reuse, number);
    markers_free(ticket);
    *ticket = (struct cca__reuse_ticket){.next = reuse->first_unused};
    reuse->first_unused = number;
}

//------------------------------------------------------------------------------------------------
// Views.

static void view_clear(struct cca__capture_reuse *reuse, struct cca__reuse_view *view) {
    base_address_map_deinit(&view->nodes);
    view->nodes = (struct base_address_map){0};
    view->front.count = 0;
    view->to_judge = 0;
    for (uint32_t number = 1; number < reuse->ticket_count; ++number) {
        struct cca__reuse_ticket *const ticket = ticket_at(reuse, number);
        if (ticket->view != view) continue;
        ticket->view = NULL;
        if (ticket->is_dropped) ticket_give_back(reuse, number);
    }
}

static enum base_status view_add(struct cca__capture_reuse *reuse, cudaStream_t stream,
                                 struct cca__reuse_view **view) {
    if (reuse->view_count == reuse->view_capacity) {
        struct cca__reuse_view **const list =
            cca__array_grow(reuse->view_list, &reuse->view_capacity, sizeof *list, 8, "views");
        if (list == NULL) return BASE_HOST_MEMORY;
        reuse->view_list = list;
    }
    struct cca__reuse_view *const added = calloc(1, sizeof *added);
    if (added == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a view of a capture");
    added->stream = stream;
    const enum base_status status =
        base_address_map_set(&reuse->views, (uint64_t)(uintptr_t)stream, reuse->view_count);
    if (status != BASE_OK) {
        free(added);
        return status;
    }
    reuse->view_list[reuse->view_count++] = added;
    *view = added;
    return BASE_OK;
}

// The view of a stream in CAPTURE; what it knew of an earlier one is forgotten.
static enum base_status view_of(struct cca__capture_reuse *reuse, cudaStream_t stream,
                                unsigned long long capture, struct cca__reuse_view **view) {
    uint64_t number;
    if (base_address_map_get(&reuse->views, (uint64_t)(uintptr_t)stream, &number)) {
        *view = reuse->view_list[number];
    } else {
        const enum base_status status = view_add(reuse, stream, view);
        if (status != BASE_OK) return status;
    }
    if ((*view)->capture != capture) {
        view_clear(reuse, *view);
        (*view)->capture = capture;
    }
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// What a ticket waits for.

// Puts the ticket into the list of a marker that is not visited yet; without one it is to be judged
// at the next look.
static enum base_status ticket_wait(struct cca__capture_reuse *reuse, uint32_t number) {
    struct cca__reuse_ticket *const ticket = ticket_at(reuse, number);
    struct cca__reuse_view *const view = ticket->view;
    for (size_t index = 0; index < ticket->marker_count; ++index) {
        const uint64_t known = flags_of(view, markers_of(ticket)[index]);
        if ((known & NODE_VISITED) != 0) continue;
        ticket->next = (uint32_t)(known >> TICKET_SHIFT);
        return set_flags(view, markers_of(ticket)[index],
                         (known & NODE_FLAGS) | (uint64_t)number << TICKET_SHIFT);
    }
    ticket->next = view->to_judge;
    view->to_judge = number;
    return BASE_OK;
}

static bool all_visited(const struct cca__reuse_ticket *ticket) {
    for (size_t index = 0; index < ticket->marker_count; ++index)
        if ((flags_of(ticket->view, markers_of(ticket)[index]) & NODE_VISITED) == 0) return false;
    return true;
}

// Appends a list of tickets to those to be judged.
static void judge_later(struct cca__capture_reuse *reuse, struct cca__reuse_view *view,
                        uint32_t first) {
    while (first != 0) {
        struct cca__reuse_ticket *const ticket = ticket_at(reuse, first);
        const uint32_t next = ticket->next;
        ticket->next = view->to_judge;
        view->to_judge = first;
        first = next;
    }
}

//------------------------------------------------------------------------------------------------
// The walk.

// A node that the stream's next operation comes behind. A front is met when the stream turns out to
// be behind it still. A terminal that was visited and is not of the front has something of the
// front behind it; one that another node depends on is none of the next front.
static inline enum base_status meet(struct cca__capture_reuse *reuse, struct cca__reuse_view *view,
                                    cudaGraphNode_t node, bool is_terminal) {
    uint64_t *known;
    enum base_status status = base_address_map_place(&view->nodes, key_of(node), &known);
    if (status != BASE_OK) return status;
    if ((*known & NODE_VISITED) == 0) {
        const uint32_t waiting = (uint32_t)(*known >> TICKET_SHIFT);
        status = cca__node_list_push(&view->stack, node);
        if (status != BASE_OK) return status;
        *known = NODE_VISITED | (is_terminal ? NODE_TERMINAL : 0);
        if (waiting != 0) judge_later(reuse, view, waiting);
        return BASE_OK;
    }
    const bool is_front = (*known & NODE_FRONT) != 0;
    view->front_missed -= is_front;
    *known &= ~NODE_FRONT;
    if (!is_terminal)
        *known &= ~NODE_TERMINAL;
    else if (is_front)
        *known |= NODE_TERMINAL;
    return BASE_OK;
}

static enum base_status walk(struct cca__capture_reuse *reuse, struct cca__reuse_view *view) {
    enum base_status status = BASE_OK;
    struct cca__node_list *const stack = &view->stack;
    stack->count = 0;
    for (size_t index = 0; index < view->terminals.count && status == BASE_OK; ++index)
        status = meet(reuse, view, view->terminals.nodes[index], true);
    while (stack->count > 0 && status == BASE_OK) {
        view->dependencies.count = 0;
        status = cca__node_dependencies(stack->nodes[--stack->count], &view->dependencies);
        for (size_t index = 0; index < view->dependencies.count && status == BASE_OK; ++index)
            status = meet(reuse, view, view->dependencies.nodes[index], false);
    }
    return status;
}

// Forgets what was visited, but not which tickets wait for what.
static void forget_visits(struct cca__reuse_view *view) {
    for (size_t index = 0; index < view->nodes.capacity; ++index)
        if (view->nodes.entries[index].value != BASE_ADDRESS_UNUSED)
            view->nodes.entries[index].value &= ~NODE_FLAGS;
    view->front.count = view->front_missed = 0;
}

// The front of the next walk: terminals that no other terminal came behind.
static enum base_status keep_front(struct cca__reuse_view *view) {
    enum base_status status = BASE_OK;
    view->front.count = 0;
    for (size_t index = 0; index < view->terminals.count && status == BASE_OK; ++index) {
        const cudaGraphNode_t node = view->terminals.nodes[index];
        const uint64_t known = flags_of(view, node);
        if ((known & NODE_TERMINAL) == 0) continue;
        status = set_flags(view, node, (known & ~NODE_TERMINAL) | NODE_FRONT);
        if (status == BASE_OK) status = cca__node_list_push(&view->front, node);
    }
    return status;
}

static enum base_status advance(struct cca__capture_reuse *reuse, struct cca__reuse_view *view) {
    view->front_missed = view->front.count;
    enum base_status status = walk(reuse, view);
    if (status == BASE_OK && view->front_missed > 0 && !reuse->keeps_stale) {
        forget_visits(view);
        status = walk(reuse, view);
    }
    if (status == BASE_OK) status = keep_front(view);
    // What a walk did not finish proves nothing.
    if (status != BASE_OK) forget_visits(view);
    return status;
}

//------------------------------------------------------------------------------------------------

static enum base_status reserve_proven(struct cca__capture_reuse *reuse, size_t count) {
    if (count <= reuse->proven_capacity) return BASE_OK;
    const size_t capacity = count < 64 ? 64 : 2 * count;
    struct cca__reuse_proof *const proofs = realloc(reuse->proofs, capacity * sizeof *proofs);
    if (proofs == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu deferred frees",
                               capacity);
    reuse->proofs = proofs;
    uint64_t *const proven = realloc(reuse->proven, capacity * sizeof *proven);
    if (proven == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu deferred frees",
                               capacity);
    reuse->proven = proven;
    reuse->proven_capacity = capacity;
    return BASE_OK;
}

static int by_order(const void *left, const void *right) {
    const struct cca__reuse_proof *const a = left, *const b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static size_t count_list(const struct cca__capture_reuse *reuse, uint32_t number) {
    size_t count = 0;
    for (; number != 0; number = ticket_at(reuse, number)->next)
        ++count;
    return count;
}

// Sorts out the tickets that can be judged: proven, or waiting for another marker. A ticket that
// cannot wait for want of host memory is judged again next time.
static enum base_status judge(struct cca__capture_reuse *reuse, struct cca__reuse_view *view,
                              size_t *count) {
    *count = 0;
    const enum base_status status = reserve_proven(reuse, count_list(reuse, view->to_judge));
    if (status != BASE_OK) return status;
    uint32_t number = view->to_judge, next;
    view->to_judge = 0;
    for (; number != 0; number = next) {
        struct cca__reuse_ticket *const ticket = ticket_at(reuse, number);
        next = ticket->next;
        if (ticket->is_dropped) {
            ticket_give_back(reuse, number);
        } else if (all_visited(ticket)) {
            reuse->proofs[(*count)++] =
                (struct cca__reuse_proof){.order = ticket->order, .token = ticket->token};
            ticket_give_back(reuse, number);
        } else if (ticket_wait(reuse, number) != BASE_OK) {
            ticket->next = view->to_judge;
            view->to_judge = number;
        }
    }
    if (*count > 1) qsort(reuse->proofs, *count, sizeof *reuse->proofs, by_order);
    for (size_t index = 0; index < *count; ++index)
        reuse->proven[index] = reuse->proofs[index].token;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The interface.

static enum base_status push_terminals(struct cca__node_list *list,
                                       const struct cca__capture_state *state) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < state->terminal_count && status == BASE_OK; ++index)
        status = cca__node_list_push(list, state->terminals[index]);
    return status;
}

// Appends the terminals of all streams, FIRST that of the first; none if one of them is not
// captured or in another graph.
static enum base_status gather_markers(const struct cca__capture_state *first,
                                       const cudaStream_t *streams, size_t stream_count,
                                       struct cca__node_list *markers) {
    struct cca__capture_state state = *first;
    const cudaGraph_t graph = first->graph;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < stream_count && status == BASE_OK; ++index) {
        if (index > 0) status = cca__capture_state_read(streams[index], &state);
        if (status == BASE_OK && (!state.is_active || state.graph != graph)) {
            markers->count = 0;
            return BASE_OK;
        }
        if (status == BASE_OK) status = push_terminals(markers, &state);
    }
    return status;
}

static enum base_status ticket_make(struct cca__capture_reuse *reuse, struct cca__reuse_view *view,
                                    uint64_t token, uint32_t *made) {
    uint32_t number;
    enum base_status status = ticket_take(reuse, &number);
    if (status != BASE_OK) return status;
    struct cca__reuse_ticket *const ticket = ticket_at(reuse, number);
    *ticket = (struct cca__reuse_ticket){.token = token, .order = reuse->deferred, .view = view};
    status = markers_set(ticket, &reuse->markers);
    if (status == BASE_OK) status = ticket_wait(reuse, number);
    if (status != BASE_OK) {
        ticket_give_back(reuse, number);
        return status;
    }
    ++reuse->deferred;
    *made = number;
    return BASE_OK;
}

enum base_status cca__reuse_defer(struct cca__capture_reuse *reuse,
                                  const struct cca__capture_state *state,
                                  const cudaStream_t *streams, size_t stream_count, uint64_t token,
                                  uint32_t *ticket) {
    const unsigned long long capture = state->capture; // STATE goes with the next question
    struct cca__reuse_view *view;
    reuse->markers.count = 0;
    enum base_status status = gather_markers(state, streams, stream_count, &reuse->markers);
    if (status == BASE_OK && reuse->markers.count == 0) {
        *ticket = 0;
        return BASE_OK;
    }
    if (status == BASE_OK) status = view_of(reuse, streams[0], capture, &view);
    return status == BASE_OK ? ticket_make(reuse, view, token, ticket) : status;
}

enum base_status cca__reuse_look(struct cca__capture_reuse *reuse, cudaStream_t stream,
                                 const struct cca__capture_state *state, const uint64_t **tokens,
                                 size_t *count) {
    struct cca__reuse_view *view;
    *tokens = NULL;
    *count = 0;
    if (!state->is_active || state->terminal_count == 0) return BASE_OK;
    enum base_status status = view_of(reuse, stream, state->capture, &view);
    if (status != BASE_OK) return status;
    view->terminals.count = 0;
    status = push_terminals(&view->terminals, state);
    if (status == BASE_OK) status = advance(reuse, view);
    if (status == BASE_OK) status = judge(reuse, view, count);
    if (status == BASE_OK) *tokens = reuse->proven;
    return status;
}

void cca__reuse_drop(struct cca__capture_reuse *reuse, uint32_t ticket) {
    if (ticket == 0) return;
    if (ticket_at(reuse, ticket)->view == NULL)
        ticket_give_back(reuse, ticket);
    else
        ticket_at(reuse, ticket)->is_dropped = true;
}

void cca__reuse_end(struct cca__capture_reuse *reuse, unsigned long long capture) {
    for (size_t index = 0; index < reuse->view_count; ++index)
        if (reuse->view_list[index]->capture == capture) view_clear(reuse, reuse->view_list[index]);
}

void cca__reuse_deinit(struct cca__capture_reuse *reuse) {
    for (size_t index = 0; index < reuse->view_count; ++index) {
        struct cca__reuse_view *const view = reuse->view_list[index];
        base_address_map_deinit(&view->nodes);
        cca__node_list_deinit(&view->front);
        cca__node_list_deinit(&view->terminals);
        cca__node_list_deinit(&view->stack);
        cca__node_list_deinit(&view->dependencies);
        free(view);
    }
    for (size_t number = 1; number < reuse->ticket_count; ++number)
        markers_free(ticket_at(reuse, (uint32_t)number));
    base_address_map_deinit(&reuse->views);
    free(reuse->view_list);
    cca__node_list_deinit(&reuse->markers);
    free(reuse->tickets);
    free(reuse->proofs);
    free(reuse->proven);
    *reuse = (struct cca__capture_reuse){.keeps_stale = reuse->keeps_stale};
}
