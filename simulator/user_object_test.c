// User objects: who refers to one, and when its destructor runs.
#include "base/check.h"
#include "simulator/sim.h"

#include <limits.h>

static int destroyed;
static cudaError_t call_from_inside;

static void destroy(void *pointer) {
    ++*(int *)pointer;
    void *memory;
    call_from_inside = cudaMalloc(&memory, 1);
}

static cudaUserObject_t create(unsigned int references) {
    cudaUserObject_t object = NULL;
    BASE_CHECK_EQ(cudaUserObjectCreate(&object, &destroyed, destroy, references,
                                       cudaUserObjectNoDestructorSync),
                  cudaSuccess);
    return object;
}

static void start(void) {
    sim_reset();
    destroyed = 0;
}

static cudaGraph_t owner(cudaUserObject_t object, unsigned int count) {
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, count, cudaGraphUserObjectMove),
                  cudaSuccess);
    return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
}

static void the_last_reference_runs_the_destructor(void) {
    start();
    const cudaUserObject_t object = create(2);
    BASE_CHECK_EQ(cudaUserObjectRetain(object, 3), cudaSuccess);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 4), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 2), cudaErrorInvalidValue); // there is one
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 1), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
    BASE_CHECK_EQ(call_from_inside, cudaErrorNotPermitted);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectRetain(object, 1), cudaErrorInvalidValue);
}

static void wrong_arguments_are_refused(void) {
    start();
    cudaUserObject_t object;
    const unsigned int flag = cudaUserObjectNoDestructorSync, too_many = (unsigned int)INT_MAX + 1;
    BASE_CHECK_EQ(cudaUserObjectCreate(NULL, NULL, destroy, 1, flag), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectCreate(&object, NULL, NULL, 1, flag), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectCreate(&object, NULL, destroy, 0, flag), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectCreate(&object, NULL, destroy, too_many, flag),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectCreate(&object, NULL, destroy, 1, 0), cudaErrorInvalidValue);
    object = create(1);
    const cudaGraph_t graph = owner(create(1), 1);
    BASE_CHECK_EQ(cudaUserObjectRetain(object, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectRetain(object, too_many), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectRetain(NULL, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 0, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 1, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 2, cudaGraphUserObjectMove),
                  cudaErrorInvalidValue); // one cannot move two
    BASE_CHECK_EQ(cudaGraphRetainUserObject(NULL, object, 1, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphReleaseUserObject(graph, object, 1), cudaErrorInvalidValue); // not its
    BASE_CHECK_EQ(destroyed, 0);
}

// What graphs refer to is not the program's to release.
static void references_of_graphs_are_theirs(void) {
    start();
    const cudaUserObject_t object = create(1);
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 5, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaGraphReleaseUserObject(graph, object, 5), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
}

static void a_graph_lets_go_when_it_is_destroyed(void) {
    start();
    const cudaUserObject_t object = create(1);
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphRetainUserObject(graph, object, 2, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaUserObjectRelease(object, 1), cudaSuccess); // the caller's own
    BASE_CHECK_EQ(cudaGraphReleaseUserObject(graph, object, 3), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphReleaseUserObject(graph, object, 1), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
}

static void copies_and_executables_refer_as_their_graph_does(void) {
    start();
    const cudaGraph_t graph = owner(create(1), 1);
    cudaGraph_t copy;
    const cudaGraphExec_t exec = instantiate(graph);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaGraphDestroy(copy), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
}

static void a_pending_launch_keeps_the_objects(void) {
    start();
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    const cudaGraph_t graph = owner(create(1), 1);
    const cudaGraphExec_t exec = instantiate(graph);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
}

// What an update replaces goes when no launch can need it any more.
static void an_update_takes_the_new_graphs_objects(void) {
    start();
    cudaStream_t stream;
    cudaGraphExecUpdateResultInfo info;
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    const cudaGraph_t first = owner(create(1), 1), second = owner(create(1), 1);
    const cudaGraphExec_t exec = instantiate(first);
    BASE_CHECK_EQ(cudaGraphDestroy(first), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, second, &info), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(second), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1); // the first's
    const cudaGraph_t third = owner(create(1), 1);
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, third, &info), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 2); // nothing is pending
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 2);
    BASE_CHECK_EQ(cudaGraphDestroy(third), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 3);
}

static void a_child_graphs_objects_are_its_own(void) {
    start();
    const cudaGraph_t child = owner(create(1), 1), other = owner(create(1), 1);
    cudaGraph_t graph;
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(child), cudaSuccess);
    const cudaGraphExec_t exec = instantiate(graph), second = instantiate(graph);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, other), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(other), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
    BASE_CHECK_EQ(cudaGraphExecDestroy(second), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 2);
}

static void an_update_of_all_takes_the_child_graphs_objects_too(void) {
    start();
    cudaGraph_t graphs[2];
    cudaGraphExecUpdateResultInfo info;
    for (int i = 0; i < 2; ++i) {
        cudaGraphNode_t node;
        const cudaGraph_t child = owner(create(1), 1);
        BASE_CHECK_EQ(cudaGraphCreate(&graphs[i], 0), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graphs[i], NULL, 0, child), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphDestroy(child), cudaSuccess);
    }
    const cudaGraphExec_t exec = instantiate(graphs[0]);
    BASE_CHECK_EQ(cudaGraphDestroy(graphs[0]), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, graphs[1], &info), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
    BASE_CHECK_EQ(cudaGraphDestroy(graphs[1]), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 1);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 2);
}

static void the_machines_end_runs_no_destructors(void) {
    start();
    const cudaGraph_t graph = owner(create(2), 1);
    instantiate(graph);
    sim_reset();
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(destroyed, 0);
}

int main(void) {
    the_last_reference_runs_the_destructor();
    wrong_arguments_are_refused();
    references_of_graphs_are_theirs();
    a_graph_lets_go_when_it_is_destroyed();
    copies_and_executables_refer_as_their_graph_does();
    a_pending_launch_keeps_the_objects();
    an_update_takes_the_new_graphs_objects();
    a_child_graphs_objects_are_its_own();
    an_update_of_all_takes_the_child_graphs_objects_too();
    the_machines_end_runs_no_destructors();
    return 0;
}
