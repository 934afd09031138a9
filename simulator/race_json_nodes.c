// Of a launch, the nodes that a picture of a race inside it shows: the two, and those next to them.
#include "simulator/race_json.h"

#include "simulator/graph.h"
#include "simulator/race_node.h"

#include <inttypes.h>

#define NODES_SHOWN 20

struct shown {
    const struct sim__exec *exec;
    uint32_t sides[2];           // indices of the two
    uint32_t nodes[NODES_SHOWN]; // indices
    int count;
};

// Its index; the executable's count if it is none.
static uint32_t index_of(const struct sim__exec *exec, const struct sim__race_side *side) {
    uint32_t i = 0;
    for (; i < exec->node_count; ++i) {
        const struct sim__graph_work *work = exec->nodes[i].work;
        if (work != NULL && work->race != NULL && work->race->graph == side->graph &&
            work->race->number == side->node)
            break;
    }
    return i;
}

static bool is_shown(const struct shown *shown, uint32_t node) {
    for (int i = 0; i < shown->count; ++i)
        if (shown->nodes[i] == node)
            return true;
    return false;
}

static void show(struct shown *shown, uint32_t node) {
    if (node < shown->exec->node_count && shown->count < NODES_SHOWN && !is_shown(shown, node))
        shown->nodes[shown->count++] = node;
}

static bool depends(const struct sim__exec *exec, uint32_t node, uint32_t on) {
    const struct sim__exec_node *dependent = &exec->nodes[node];
    for (uint32_t i = 0; i < dependent->dependency_count; ++i)
        if (exec->dependencies[dependent->dependency_first + i] == on)
            return true;
    return false;
}

// What it depends on, then what depends on it.
static void show_next_to(struct shown *shown, uint32_t node) {
    const struct sim__exec *exec = shown->exec;
    if (node >= exec->node_count)
        return;
    for (uint32_t i = 0; i < exec->nodes[node].dependency_count; ++i)
        show(shown, exec->dependencies[exec->nodes[node].dependency_first + i]);
    for (uint32_t i = node + 1; i < exec->node_count && shown->count < NODES_SHOWN; ++i)
        if (depends(exec, i, node))
            show(shown, i);
}

static const char *type_name(enum cudaGraphNodeType type) {
    switch (type) {
    case cudaGraphNodeTypeEventRecord: return "event record";
    case cudaGraphNodeTypeWaitEvent: return "event wait";
    case cudaGraphNodeTypeMemAlloc: return "allocation";
    case cudaGraphNodeTypeMemFree: return "free";
    case cudaGraphNodeTypeGraph: return "child graph";
    default: return "empty node";
    }
}

static void node_write(FILE *file, const struct shown *shown, uint32_t index) {
    const struct sim__exec *exec = shown->exec;
    const struct sim__exec_node *node = &exec->nodes[index];
    const struct sim__race_node *race = node->work == NULL ? NULL : node->work->race;
    fprintf(file, "{\"node\":%u,\"number\":%" PRIu64 ",\"stream\":%" PRIu64 ",\"chain\":%u", index,
            node->number, node->stream, node->lane + 1);
    if (index == shown->sides[0] || index == shown->sides[1])
        fprintf(file, ",\"side\":\"%s\"", index == shown->sides[0] ? "first" : "second");
    sim__race_json_origin(file, race == NULL ? 0 : race->origin,
                          race == NULL ? type_name(node->type) : NULL);
    fputs(",\"dependencies\":[", file);
    bool is_one = false;
    for (uint32_t i = 0; i < node->dependency_count; ++i) {
        const uint32_t dependency = exec->dependencies[node->dependency_first + i];
        if (is_shown(shown, dependency))
            fprintf(file, "%s%u", is_one ? "," : "", dependency);
        is_one |= is_shown(shown, dependency);
    }
    fputs("]}", file);
}

void sim__race_json_nodes(FILE *file, const struct sim__race_found *found) {
    struct shown shown = {.exec = found->inside};
    fputs(",\"nodes\":[", file);
    if (found->inside != NULL) {
        shown.sides[0] = index_of(found->inside, &found->first);
        shown.sides[1] = index_of(found->inside, &found->second);
        for (int i = 0; i < 2; ++i)
            show(&shown, shown.sides[i]);
        for (int i = 0; i < 2; ++i)
            show_next_to(&shown, shown.sides[i]);
    }
    bool is_one = false;
    for (uint32_t i = 0; found->inside != NULL && i < found->inside->node_count; ++i) {
        if (!is_shown(&shown, i))
            continue;
        fputs(is_one ? "," : "", file);
        node_write(file, &shown, i);
        is_one = true;
    }
    putc(']', file);
}
