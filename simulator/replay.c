// A launch turns an executable into operations: replay.h. All of a launch is submitted in one step
// before any of it can run without the lock, so no other thread's work comes in between.
//
// The executable lists its nodes in an order in which every edge goes forward, so a node's
// dependencies have their positions when it is submitted. Cost: O(nodes + edges), and no memory is
// allocated once lanes and their rings have grown.
#include "simulator/replay.h"

#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/cost.h"
#include "simulator/graph.h"
#include "simulator/graph_memory.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/race.h"
#include "simulator/stream.h"

#include <stdlib.h>

// A launch with more chains runs several in one lane, behind each other: that allows fewer orders
// than the edges do, of graphs so wide that nobody could tell.
#define LANES_MAX 2048u
// Numbers and indices that no program's stream has.
#define LANE_NUMBER_FIRST ((uint64_t)1 << 40)
#define LANE_INDEX_FIRST (1u << SIM__HANDLE_SLOT_BITS)
#define RING_KEPT_MAX ((uint64_t)1 << 20) // an idle lane keeps a ring of this many operations

uint32_t sim__lane_count;

// Guarded by the simulator's lock, as all here.
static struct sim__stream **lanes;
static uint32_t lane_size;
static struct sim__stream *idle_lanes[SIM_DEVICE_COUNT_MAX]; // linked by slot.next_free
static struct sim__launch *launches, *idle_launches;

// Of the launch that is being submitted: the sequence number of each node, and what a node waits
// for.
static uint64_t *sequences;
static uint32_t sequence_size;
static struct sim__position *waits;
static size_t wait_count, wait_size;

// --- Lanes ---

struct sim__stream *sim__lane_at(uint32_t index) { return lanes[index]; }

static struct sim__stream *lane_make(void) {
    if (sim__lane_count == lane_size) {
        lane_size = lane_size == 0 ? 64 : 2 * lane_size;
        lanes = realloc(lanes, lane_size * sizeof(struct sim__stream *));
    }
    struct sim__stream *lane = lanes == NULL ? NULL : calloc(1, sizeof *lane);
    if (lane == NULL)
        sim__host_limit("out of host memory for %u lanes of graphs", lane_size);
    lane->slot.index = LANE_INDEX_FIRST + sim__lane_count;
    lane->number = LANE_NUMBER_FIRST + sim__lane_count;
    lanes[sim__lane_count++] = lane;
    return lane;
}

// To a schedule it is a new stream, but for a place in a queue that it may still have.
static struct sim__stream *lane_take(int device, const struct sim__stream *stream) {
    struct sim__stream *lane = idle_lanes[device];
    if (lane != NULL)
        idle_lanes[device] = (struct sim__stream *)lane->slot.next_free;
    else
        lane = lane_make();
    lane->device = device;
    lane->flags = cudaStreamNonBlocking;
    lane->priority = stream->priority;
    lane->fence_seen = 0;
    lane->schedule = (struct sim__stream_schedule){.offered = lane->schedule.offered,
                                                   .next_offered = lane->schedule.next_offered};
    return lane;
}

static void lane_give(struct sim__stream *lane) {
    if (lane->ring_size > RING_KEPT_MAX) {
        free(lane->ring);
        lane->ring = NULL;
        lane->ring_size = 0;
    }
    lane->launch = NULL;
    lane->slot.next_free = (struct sim__handle_slot *)idle_lanes[lane->device];
    idle_lanes[lane->device] = lane;
}

// --- Launches ---

static struct sim__launch *launch_take(const struct sim__stream *stream, struct sim__exec *exec) {
    const bool folds = exec->lane_count > LANES_MAX;
    const uint32_t devices = (uint32_t)sim__state.options.device_count;
    struct sim__launch *launch = idle_launches;
    if (launch != NULL) {
        idle_launches = launch->next_idle;
    } else {
        launch = calloc(1, sizeof *launch);
        if (launch == NULL)
            sim__host_limit("out of host memory for launches of graphs");
        launch->next = launches;
        launches = launch;
    }
    launch->exec = exec;
    launch->graph = exec->graph;
    launch->stream = stream->number;
    launch->stream_handle = stream->slot.handle;
    launch->legacy = stream->legacy;
    launch->lane_count = folds ? devices * LANES_MAX : exec->lane_count;
    if (launch->lane_count > launch->lane_size) {
        launch->lane_size = launch->lane_count;
        free(launch->lanes);
        launch->lanes = malloc(launch->lane_size * sizeof(struct sim__stream *));
        if (launch->lanes == NULL)
            sim__host_limit("out of host memory for %u lanes of graphs", launch->lane_count);
    }
    for (uint32_t i = 0; i < launch->lane_count; ++i)
        launch->lanes[i] = NULL;
    ++exec->running;
    return launch;
}

// The lanes go back such that the next launch gets them in the same order.
void sim__launch_end(struct sim__launch *launch) {
    struct sim__exec *exec = launch->exec;
    for (uint32_t i = launch->lane_count; i-- > 0;)
        if (launch->lanes[i] != NULL)
            lane_give(launch->lanes[i]);
    launch->next_idle = idle_launches;
    idle_launches = launch;
    if (--exec->running == 0)
        sim__exec_idle(exec);
}

void sim__launches_clear(void) {
    struct sim__launch *next;
    for (struct sim__launch *launch = launches; launch != NULL; launch = next) {
        next = launch->next;
        free(launch->lanes);
        free(launch);
    }
    for (uint32_t i = 0; i < sim__lane_count; ++i) {
        sim__engine_discard(lanes[i]);
        free(lanes[i]);
    }
    free(lanes);
    free(sequences);
    free(waits);
    lanes = NULL;
    sequences = NULL;
    waits = NULL;
    launches = idle_launches = NULL;
    sim__lane_count = lane_size = sequence_size = 0;
    wait_size = 0;
    for (int i = 0; i < SIM_DEVICE_COUNT_MAX; ++i)
        idle_lanes[i] = NULL;
}

static struct sim__stream **lane_place(const struct sim__launch *launch,
                                       const struct sim__exec_node *node) {
    const uint32_t place = launch->exec->lane_count > LANES_MAX
                               ? (uint32_t)node->device * LANES_MAX + node->lane % LANES_MAX
                               : node->lane;
    return &launch->lanes[place];
}

static struct sim__stream *lane_of(struct sim__launch *launch, const struct sim__stream *stream,
                                   const struct sim__exec_node *node) {
    struct sim__stream **place = lane_place(launch, node);
    if (*place == NULL) {
        *place = lane_take(node->device, stream);
        (*place)->launch = launch;
        (*place)->lane = (uint32_t)(place - launch->lanes);
    }
    return *place;
}

// --- What operations wait for ---

static void wait_add(struct sim__position position) {
    if (wait_count == wait_size) {
        wait_size = wait_size == 0 ? 64 : 2 * wait_size;
        waits = realloc(waits, wait_size * sizeof *waits);
        if (waits == NULL)
            sim__host_limit("out of host memory for %zu waits", wait_size);
    }
    waits[wait_count++] = position;
}

static void sequences_reserve(uint32_t count) {
    if (count <= sequence_size)
        return;
    sequence_size = count;
    free(sequences);
    sequences = malloc(count * sizeof *sequences);
    if (sequences == NULL)
        sim__host_limit("out of host memory for a graph of %u nodes", count);
}

// The edges that the lane's own order does not stand for. A node without any waits for the launch
// to begin; others do through what they depend on.
static void waits_of_node(const struct sim__launch *launch, const struct sim__exec_node *node,
                          const struct sim__stream *lane, struct sim__position begin) {
    const struct sim__exec *exec = launch->exec;
    wait_count = 0;
    if (node->dependency_count == 0 && !sim__planted(SIM__PLANT_LAUNCH_EARLY))
        wait_add(begin);
    for (uint32_t i = 0; i < node->dependency_count; ++i) {
        const uint32_t before = exec->dependencies[node->dependency_first + i];
        struct sim__stream *other = *lane_place(launch, &exec->nodes[before]);
        if (other != lane)
            wait_add((struct sim__position){other, sequences[before]});
    }
}

// --- Nodes ---

static void nothing_run(void *argument, bool discarded) {
    (void)argument;
    (void)discarded;
}

static struct sim__event *event_of(const struct sim__exec_node *node) {
    return sim__handle_find(&sim__state.events, (uint64_t)(uintptr_t)node->event);
}

// As cudaEventRecord and cudaStreamWaitEvent at the launch; an event that was destroyed since is
// nothing.
static void event_node_submit(struct sim__stream *lane, const struct sim__exec_node *node,
                              uint32_t index) {
    struct sim__event *event = event_of(node);
    struct sim__operation operation;
    if (node->type == cudaGraphNodeTypeEventRecord) {
        operation.kind = SIM__OPERATION_RECORD;
        operation.event = (uint64_t)(uintptr_t)node->event;
        if (event != NULL) {
            sim__event_uncapture(event);
            event->recorded = true;
            event->position = (struct sim__position){lane, lane->submitted + 1};
        }
    } else {
        operation.kind = SIM__OPERATION_WAIT;
        if (event != NULL && event->recorded && event->captured == NULL &&
            !sim__planted(SIM__PLANT_WAIT_NODE))
            wait_add(event->position);
    }
    sim__engine_submit_node(lane, &operation, index, NULL, waits, wait_count);
}

// What the executable was made with, or told since, whatever became of the graph's node.
static struct sim__graph_work *work_of(const struct sim__exec_node *node) {
    const struct sim__node *origin = sim__planted(SIM__PLANT_PARAMETERS)
                                         ? sim__handle_find(&sim__nodes, node->origin)
                                         : NULL;
    return origin == NULL ? node->work : origin->work;
}

static void node_submit(struct sim__launch *launch, const struct sim__stream *stream,
                        uint32_t index, struct sim__position begin) {
    static const struct sim__operation nothing = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"empty node", nothing_run, NULL},
    };
    const struct sim__exec_node *node = &launch->exec->nodes[index];
    struct sim__graph_work *work = work_of(node);
    struct sim__stream *lane = lane_of(launch, stream, node);
    waits_of_node(launch, node, lane, begin);
    if (index > 0 && sim__planted(SIM__PLANT_NODES_SERIAL) &&
        *lane_place(launch, node - 1) != lane)
        wait_add((struct sim__position){*lane_place(launch, node - 1), sequences[index - 1]});
    sequences[index] = lane->submitted + 1;
    if (!node->enabled && !sim__planted(SIM__PLANT_DISABLED))
        sim__engine_submit_node(lane, &nothing, index, NULL, waits, wait_count);
    else if (node->type == cudaGraphNodeTypeEventRecord ||
             node->type == cudaGraphNodeTypeWaitEvent)
        event_node_submit(lane, node, index);
    else if (work == NULL)
        sim__engine_submit_node(lane, &nothing, index, NULL, waits, wait_count);
    else
        sim__engine_submit_node(lane, &work->operation, index, work, waits, wait_count);
}

static struct sim__position end_submit(struct sim__launch *launch, struct sim__stream *stream) {
    const struct sim__operation operation = {.kind = SIM__OPERATION_LAUNCH_END, .launch = launch};
    wait_count = 0;
    for (uint32_t i = 0; i < launch->lane_count; ++i)
        if (launch->lanes[i] != NULL && !(i > 0 && sim__planted(SIM__PLANT_LAUNCH_OPEN)))
            wait_add((struct sim__position){launch->lanes[i], launch->lanes[i]->submitted});
    return sim__engine_submit_after(stream, &operation, waits, wait_count);
}

cudaError_t sim__replay(struct sim__stream *stream, struct sim__exec *exec) {
    wait_count = 0;
    const cudaError_t error = sim__exec_memory_attach(exec, stream, wait_add, true);
    if (error != cudaSuccess)
        return error;
    sim__cost_nodes(SIM_CALL_GRAPH_LAUNCH, exec->node_count);
    sim__engine_group_begin();
    struct sim__launch *launch = launch_take(stream, exec);
    const struct sim__operation operation = {.kind = SIM__OPERATION_LAUNCH_BEGIN,
                                             .launch = launch};
    if (!sim__planted(SIM__PLANT_EXEC_OVERLAPS))
        wait_add(exec->last);
    sim__order_launch(stream, exec);
    const struct sim__position begin =
        sim__engine_submit_after(stream, &operation, waits, wait_count);
    sim__exec_memory_begun(exec, stream);
    sequences_reserve(exec->node_count);
    for (uint32_t i = 0; i < exec->node_count; ++i)
        node_submit(launch, stream, i, begin);
    exec->last = end_submit(launch, stream); // LAUNCH may be gone
    sim__order_launched(exec->last, exec);
    sim__exec_memory_launched(exec);
    if (sim__race_is_on())
        sim__race_launched(exec->last, exec);
    sim__engine_group_end();
    return cudaSuccess;
}

// --- The calls ---

static cudaError_t resolve(cudaGraphExec_t exec_handle, cudaStream_t stream_handle,
                           struct sim__exec **exec, struct sim__stream **stream) {
    cudaError_t error = sim__exec_resolve(exec_handle, exec);
    if (error == cudaSuccess)
        error = sim__stream_resolve(stream_handle, stream);
    return error == cudaSuccess ? sim__capture_refuse(*stream) : error;
}

// Behind the stream's work and the executable's launches, as a launch; nothing runs.
cudaError_t sim__upload(struct sim__stream *stream, struct sim__exec *exec) {
    wait_count = 0;
    const cudaError_t error = sim__exec_memory_attach(exec, stream, wait_add, false);
    if (error != cudaSuccess)
        return error;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaGraphUpload", nothing_run, NULL},
    };
    wait_add(exec->last);
    sim__order_launch(stream, exec);
    sim__engine_group_begin(); // the position is kept before another thread can launch
    exec->last = sim__engine_submit_after(stream, &operation, waits, wait_count);
    sim__order_launched(exec->last, exec);
    sim__engine_group_end();
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec_handle, cudaStream_t stream_handle) {
    struct sim__exec *exec;
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM_CALL_GRAPH_LAUNCH);
    if (error == cudaSuccess &&
        (error = resolve(exec_handle, stream_handle, &exec, &stream)) == cudaSuccess)
        error = sim__replay(stream, exec);
    return sim__call_end(SIM_CALL_GRAPH_LAUNCH, error);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec_handle, cudaStream_t stream_handle) {
    struct sim__exec *exec;
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM_CALL_GRAPH_UPLOAD);
    if (error == cudaSuccess &&
        (error = resolve(exec_handle, stream_handle, &exec, &stream)) == cudaSuccess)
        error = sim__upload(stream, exec);
    return sim__call_end(SIM_CALL_GRAPH_UPLOAD, error);
}
