// The plans of race_plan.h. A node that only continues its lane knows what the one before it knows,
// so both share one vector; whoever joins other lanes gets a vector of its own, with an entry for
// each lane. Where that would take too much memory, a question is a search backwards along the
// edges instead, which ends early where the two nodes are near each other.
#include "simulator/race_plan.h"

#include "simulator/race_inside.h"

#include <stdlib.h>
#include <string.h>

#define VECTOR_BYTES_MAX ((uint64_t)256 << 20)
#define NO_VECTOR UINT32_MAX

struct sim__race_plan {
    const struct sim__exec *exec; // that is launched now
    uint32_t node_count, lane_count;
    bool waits; // for events
    uint32_t *vector_of; // by node; NULL: there are no vectors
    uint32_t *vectors;   // for each lane 1 + the index of the last node that is known, or 0
    // Scratch: of a search, nodes that were seen; of sim__race_plan_note, lanes.
    uint32_t *seen, seen_mark, *stack;
    uint32_t *noted, *noted_mark, note_mark;
};

static struct {
    uint64_t handle;
    struct sim__race_plan *plan;
} *plans; // by slot
static uint32_t plan_count;

static void *array_make(size_t count, size_t size) {
    void *array = calloc(count == 0 ? 1 : count, size);
    if (array == NULL)
        sim__host_limit("out of host memory for the order of %zu nodes of a graph", count);
    return array;
}

// --- Vectors ---

static const uint32_t *dependencies_of(const struct sim__exec *exec, uint32_t node) {
    return exec->dependencies + exec->nodes[node].dependency_first;
}

static bool continues_lane(const struct sim__exec *exec, uint32_t node) {
    return exec->nodes[node].dependency_count == 1 &&
           exec->nodes[*dependencies_of(exec, node)].lane == exec->nodes[node].lane;
}

static void vector_fill(struct sim__race_plan *plan, uint32_t node, uint32_t vector) {
    const struct sim__exec *exec = plan->exec;
    const uint32_t *dependencies = dependencies_of(exec, node);
    uint32_t *const own = plan->vectors + (size_t)vector * plan->lane_count;
    for (uint32_t i = 0; i < exec->nodes[node].dependency_count; ++i) {
        const uint32_t before = dependencies[i], its = plan->vector_of[before];
        const uint32_t lane = exec->nodes[before].lane;
        if (own[lane] < before + 1)
            own[lane] = before + 1;
        for (uint32_t k = 0; its != NO_VECTOR && k < plan->lane_count; ++k) {
            const uint32_t known = plan->vectors[(size_t)its * plan->lane_count + k];
            own[k] = own[k] > known ? own[k] : known;
        }
    }
}

static void vectors_make(struct sim__race_plan *plan) {
    const struct sim__exec *exec = plan->exec;
    uint64_t count = 0;
    for (uint32_t i = 0; i < plan->node_count; ++i)
        count += exec->nodes[i].dependency_count > 0 && !continues_lane(exec, i);
    if (count * plan->lane_count * sizeof *plan->vectors > VECTOR_BYTES_MAX)
        return;
    plan->vector_of = array_make(plan->node_count, sizeof *plan->vector_of);
    plan->vectors = array_make(count * plan->lane_count, sizeof *plan->vectors);
    count = 0;
    for (uint32_t i = 0; i < plan->node_count; ++i) {
        if (exec->nodes[i].dependency_count == 0) {
            plan->vector_of[i] = NO_VECTOR;
        } else if (continues_lane(exec, i)) {
            plan->vector_of[i] = plan->vector_of[*dependencies_of(exec, i)];
        } else {
            vector_fill(plan, i, (uint32_t)count);
            plan->vector_of[i] = (uint32_t)count++;
        }
    }
}

// --- Plans ---

static void plan_free(struct sim__race_plan *plan) {
    if (plan == NULL)
        return;
    free(plan->vector_of);
    free(plan->vectors);
    free(plan->seen);
    free(plan->stack);
    free(plan->noted);
    free(plan->noted_mark);
    free(plan);
}

static struct sim__race_plan *plan_make(const struct sim__exec *exec) {
    struct sim__race_plan *plan = array_make(1, sizeof *plan);
    *plan = (struct sim__race_plan){
        .exec = exec, .node_count = exec->node_count, .lane_count = exec->lane_count};
    plan->noted = array_make(plan->lane_count, sizeof *plan->noted);
    plan->noted_mark = array_make(plan->lane_count, sizeof *plan->noted_mark);
    for (uint32_t i = 0; i < exec->node_count; ++i)
        plan->waits |= exec->nodes[i].type == cudaGraphNodeTypeWaitEvent;
    vectors_make(plan);
    if (plan->vector_of == NULL) {
        plan->seen = array_make(plan->node_count, sizeof *plan->seen);
        plan->stack = array_make(plan->node_count, sizeof *plan->stack);
    }
    return plan;
}

struct sim__race_plan *sim__race_plan_of(const struct sim__exec *exec) {
    const uint32_t index = exec->slot.index;
    if (index >= plan_count) {
        const uint32_t count = index + index / 2 + 16;
        plans = realloc(plans, count * sizeof *plans);
        if (plans == NULL)
            sim__host_limit("out of host memory for the order of nodes of graphs");
        memset(plans + plan_count, 0, (count - plan_count) * sizeof *plans);
        plan_count = count;
    }
    if (plans[index].handle != exec->slot.handle) {
        plan_free(plans[index].plan);
        plans[index].plan = plan_make(exec);
        plans[index].handle = exec->slot.handle;
    }
    plans[index].plan->exec = exec;
    return plans[index].plan;
}

void sim__race_plans_clear(void) {
    for (uint32_t i = 0; i < plan_count; ++i)
        plan_free(plans[i].plan);
    free(plans);
    plans = NULL;
    plan_count = 0;
}

bool sim__race_plan_waits(const struct sim__race_plan *plan) { return plan->waits; }

// --- Questions ---

static uint32_t lane_at(struct sim__race_plan *plan, uint32_t node) {
    return plan->exec->nodes[node - 1].lane;
}

bool sim__race_plan_same_lane(struct sim__race_plan *plan, uint32_t a, uint32_t b) {
    return lane_at(plan, a) == lane_at(plan, b);
}

// Nodes here are indices. Each node is on the stack once at most.
static bool search(struct sim__race_plan *plan, uint32_t a, uint32_t b) {
    const struct sim__exec *exec = plan->exec;
    uint32_t count = 1;
    plan->stack[0] = b;
    if (++plan->seen_mark == 0) {
        memset(plan->seen, 0, plan->node_count * sizeof *plan->seen);
        plan->seen_mark = 1;
    }
    while (count > 0) {
        const uint32_t node = plan->stack[--count];
        const uint32_t *dependencies = dependencies_of(exec, node);
        for (uint32_t i = 0; i < exec->nodes[node].dependency_count; ++i) {
            const uint32_t before = dependencies[i];
            if (before < a || plan->seen[before] == plan->seen_mark)
                continue;
            if (before == a || exec->nodes[before].lane == exec->nodes[a].lane)
                return true;
            plan->seen[before] = plan->seen_mark;
            plan->stack[count++] = before;
        }
    }
    return false;
}

bool sim__race_plan_before(struct sim__race_plan *plan, uint32_t a, uint32_t b) {
    if (a > b)
        return false;
    if (sim__race_plan_same_lane(plan, a, b))
        return true;
    if (plan->vector_of == NULL)
        return search(plan, a - 1, b - 1);
    const uint32_t vector = plan->vector_of[b - 1];
    return vector != NO_VECTOR &&
           plan->vectors[(size_t)vector * plan->lane_count + lane_at(plan, a)] >= a;
}

void sim__race_plan_note_begin(struct sim__race_plan *plan) {
    ++plan->note_mark;
}

void sim__race_plan_note(struct sim__race_plan *plan, uint32_t node) {
    const uint32_t lane = lane_at(plan, node);
    if (plan->noted_mark[lane] == plan->note_mark && plan->noted[lane] >= node)
        return;
    plan->noted[lane] = node;
    plan->noted_mark[lane] = plan->note_mark;
}

bool sim__race_plan_is_noted(struct sim__race_plan *plan, uint32_t node) {
    return plan->noted[lane_at(plan, node)] == node;
}
