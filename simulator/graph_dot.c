// A graph as a picture, in Graphviz's language: a box a node, that says what the node does and
// where; its colour is the stream that captured it. Child graphs are frames: what comes before one
// leads to its upper end, what comes behind it starts at the lower one.
//
// The text is made under the simulator's lock and written without it.
#include "base/file.h"
#include "base/size.h"
#include "base/symbol.h"
#include "base/text.h"
#include "simulator/call.h"
#include "simulator/graph_memory.h"
#include "simulator/graph_params.h"
#include "simulator/race_log.h"
#include "simulator/race_node.h"
#include "simulator/race_site.h"
#include "simulator/transcript.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_COUNT 1000 // nodes, from which on Graphviz is told to be quick
#define NAME_BYTES 96 // of names of kernels and blocks; longer ones are cut
#define FLAGS_MASK                                                                                 \
    (cudaGraphDebugDotFlagsVerbose | cudaGraphDebugDotFlagsKernelNodeParams |                      \
     cudaGraphDebugDotFlagsMemcpyNodeParams | cudaGraphDebugDotFlagsMemsetNodeParams |             \
     cudaGraphDebugDotFlagsHostNodeParams | cudaGraphDebugDotFlagsEventNodeParams |                \
     cudaGraphDebugDotFlagsExtSemasSignalNodeParams |                                              \
     cudaGraphDebugDotFlagsExtSemasWaitNodeParams | cudaGraphDebugDotFlagsKernelNodeAttributes |   \
     cudaGraphDebugDotFlagsHandles | cudaGraphDebugDotFlagsConditionalNodeParams)

#define INK "#1f2328"
#define MUTED "#59636e"

struct colour {
    const char *fill, *line;
};
static const struct colour own_colour = {"#ffffff", "#59636e"};
static const struct colour colours[] = {
    {"#d6e9f8", "#0072b2"}, {"#fdebc8", "#e69f00"}, {"#d3efe4", "#00805c"}, {"#f6dfec", "#cc79a7"},
    {"#fadccb", "#d55e00"}, {"#dff2fd", "#56b4e9"}, {"#f7f3c6", "#a89a00"}, {"#e4e0f3", "#6a5fa8"},
};
#define COLOUR_COUNT (sizeof colours / sizeof colours[0])

struct picture {
    struct sim__text text;
    unsigned int flags;
    struct base_address_map streams; // their places in the legend
    uint64_t *stream_numbers;        // by these places
    size_t stream_count, stream_size;
};

static bool wants(const struct picture *picture, unsigned int flag) {
    return (picture->flags & (flag | cudaGraphDebugDotFlagsVerbose)) != 0;
}

// --- Streams and colours ---

static void stream_note(struct picture *picture, uint64_t stream) {
    uint64_t place;
    if (stream == 0 || base_address_map_get(&picture->streams, stream, &place))
        return;
    if (picture->stream_count == picture->stream_size) {
        const size_t size = picture->stream_size == 0 ? 8 : 2 * picture->stream_size;
        uint64_t *numbers = realloc(picture->stream_numbers, size * sizeof *numbers);
        if (numbers == NULL)
            return;
        picture->stream_numbers = numbers;
        picture->stream_size = size;
    }
    if (base_address_map_set(&picture->streams, stream, picture->stream_count) == BASE_OK)
        picture->stream_numbers[picture->stream_count++] = stream;
}

static void streams_note(struct picture *picture, const struct sim__graph *graph) {
    SIM__EACH_NODE(node, graph) {
        stream_note(picture, node->stream);
        if (node->child != NULL)
            streams_note(picture, node->child);
    }
}

static struct colour colour_of(const struct picture *picture, uint64_t stream) {
    uint64_t place;
    return base_address_map_get(&picture->streams, stream, &place) ? colours[place % COLOUR_COUNT]
                                                                   : own_colour;
}

// --- Text in boxes ---

// At most NAME_BYTES of a name, on one line and fit for a label.
static void name_add(struct sim__text *text, const char *name) {
    char clean[NAME_BYTES + 1];
    snprintf(clean, sizeof clean, "%s", name);
    base_text_clean(clean);
    for (const char *at = clean; *at != '\0'; ++at) {
        switch (*at) {
        case '&': sim__text_add(text, "&amp;"); break;
        case '<': sim__text_add(text, "&lt;"); break;
        case '>': sim__text_add(text, "&gt;"); break;
        case '"': sim__text_add(text, "&quot;"); break;
        default: sim__text_add(text, "%c", *at); break;
        }
    }
    if (strlen(name) > NAME_BYTES)
        sim__text_add(text, "...");
}

static void row_begin(struct sim__text *text, const char *label) {
    sim__text_add(text,
                  "<tr><td align=\"left\"><font point-size=\"8\" color=\"" MUTED "\">%s</font></td>"
                  "<td align=\"left\"><font face=\"monospace\" point-size=\"8\">",
                  label);
}

static void row_end(struct sim__text *text) { sim__text_add(text, "</font></td></tr>"); }

static void row(struct sim__text *text, const char *label, const char *value) {
    row_begin(text, label);
    sim__text_add(text, "%s", value);
    row_end(text);
}

static void row_address(struct sim__text *text, const char *label, const void *pointer) {
    row_begin(text, label);
    sim__text_add(text, "0x%" PRIxPTR, (uintptr_t)pointer);
    row_end(text);
}

static void row_name(struct sim__text *text, const char *label, const char *name) {
    row_begin(text, label);
    name_add(text, name);
    row_end(text);
}

static void block_add(struct sim__text *text, uint64_t number) {
    const struct sim__race_block *block = sim__race_log_block(number);
    sim__text_add(text, ", block %" PRIu64, number);
    if (block != NULL && block->name != NULL) {
        sim__text_add(text, " ");
        name_add(text, block->name);
    }
}

// ROWS of SIZE bytes, PITCH apart; in BLOCK, if not 0.
static void row_range(struct sim__text *text, const char *label, uint64_t start, uint64_t size,
                      uint64_t rows, uint64_t pitch, uint64_t block) {
    char bytes[BASE_SIZE_TEXT], apart[BASE_SIZE_TEXT];
    row_begin(text, label);
    sim__text_add(text, "0x%" PRIx64 ", ", start);
    if (rows > 1)
        sim__text_add(text, "%" PRIu64 " x %s, %s apart", rows, base_size_format(size, bytes),
                      base_size_format(pitch, apart));
    else
        sim__text_add(text, "%s", base_size_format(size, bytes));
    if (block != 0)
        block_add(text, block);
    row_end(text);
}

// --- What nodes do ---

// Name of a function of the program's, if its debug information tells.
static void function_add(struct sim__text *text, const void *function) {
    static const void *last;
    static struct base_symbol symbol;
    if (function != last) { // looked up as where a call returns to
        last = function;
        if (!base_symbol_find((const char *)function + 1, &symbol))
            symbol.function[0] = '\0';
    }
    if (symbol.function[0] != '\0') {
        sim__text_add(text, " ");
        name_add(text, symbol.function);
    }
}

static void event_add(struct sim__text *text, cudaEvent_t event) {
    struct sim__text value = {0};
    sim__value_event(&value, "event", event); // numbered as in transcripts
    if (value.bytes != NULL)
        sim__text_add(text, " %s", value.bytes + strlen("event="));
    sim__text_deinit(&value);
}

static const char *copy_way(const struct sim__copy *copy) {
    const bool to_device = copy->destination_place == SIM__PLACE_DEVICE;
    if (copy->source_place == SIM__PLACE_DEVICE)
        return to_device ? "within the device" : "to the host";
    return to_device ? "to the device" : "within the host";
}

static void title_add(struct sim__text *text, const struct sim__node *node) {
    const struct sim__operation *operation = node->work == NULL ? NULL : &node->work->operation;
    char bytes[BASE_SIZE_TEXT];
    switch ((int)node->type) {
    case cudaGraphNodeTypeKernel:
        name_add(text, operation->kernel.name == NULL ? "kernel" : operation->kernel.name);
        break;
    case cudaGraphNodeTypeMemcpy:
        sim__text_add(text, "%s %s",
                      base_size_format(operation->copy.size * operation->copy.rows, bytes),
                      operation->copy.peer ? "to another device" : copy_way(&operation->copy));
        break;
    case cudaGraphNodeTypeMemset:
        sim__text_add(text, "%s of 0x%" PRIx32,
                      base_size_format(operation->fill.size * operation->fill.rows, bytes),
                      operation->fill.value);
        break;
    case cudaGraphNodeTypeHost:
        sim__text_add(text, "host function");
        function_add(text, (const void *)(uintptr_t)operation->host_function.function);
        break;
    case cudaGraphNodeTypeEmpty: sim__text_add(text, "empty"); break;
    case cudaGraphNodeTypeWaitEvent:
        sim__text_add(text, "wait for event");
        event_add(text, node->event);
        break;
    case cudaGraphNodeTypeEventRecord:
        sim__text_add(text, "record event");
        event_add(text, node->event);
        break;
    case cudaGraphNodeTypeMemAlloc:
        sim__text_add(text, "allocate %s", base_size_format(node->allocation->size, bytes));
        break;
    case cudaGraphNodeTypeMemFree:
        sim__text_add(text, "free %s", base_size_format(node->allocation->size, bytes));
        break;
    case SIM__NODE_VALUE:
        sim__text_add(text, "write value %" PRIu64, operation->value.value);
        break;
    default: sim__text_add(text, "node"); break;
    }
}

static const char *type_name(enum cudaGraphNodeType type) {
    switch ((int)type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "copy";
    case cudaGraphNodeTypeMemset: return "fill";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "child graph";
    case cudaGraphNodeTypeWaitEvent:
    case cudaGraphNodeTypeEventRecord: return "event";
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: return "memory";
    case SIM__NODE_VALUE: return "value";
    default: return "empty";
    }
}

static uint64_t address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void kernel_rows(struct picture *picture, const struct sim__node *node) {
    struct sim__text *text = &picture->text;
    const struct sim__kernel *kernel = &node->work->operation.kernel;
    char bytes[BASE_SIZE_TEXT];
    if (!wants(picture, cudaGraphDebugDotFlagsKernelNodeParams))
        return;
    row_address(text, "body", (const void *)(uintptr_t)kernel->body);
    row(text, "argument", base_size_format(kernel->argument_size, bytes));
    if (kernel->bytes > 0)
        row(text, "moves", base_size_format(kernel->bytes, bytes));
}

// What else there is to say, if it is asked for.
static void rows_add(struct picture *picture, const struct sim__node *node) {
    struct sim__text *text = &picture->text;
    const struct sim__operation *operation = node->work == NULL ? NULL : &node->work->operation;
    switch ((int)node->type) {
    case cudaGraphNodeTypeKernel: kernel_rows(picture, node); break;
    case cudaGraphNodeTypeHost:
        if (wants(picture, cudaGraphDebugDotFlagsHostNodeParams)) {
            row_address(text, "function",
                        (const void *)(uintptr_t)operation->host_function.function);
            row_address(text, "argument", operation->host_function.user_data);
        }
        break;
    default: break;
    }
    if (wants(picture, cudaGraphDebugDotFlagsEventNodeParams) && node->event != NULL)
        row_address(text, "event", node->event);
    if (wants(picture, cudaGraphDebugDotFlagsHandles))
        row_address(text, "node", sim__node_handle(node));
}

static const char *mode_name(enum sim_access_mode mode) {
    switch (mode) {
    case SIM_ACCESS_WRITE: return "writes";
    case SIM_ACCESS_ATOMIC: return "updates";
    default: return "reads";
    }
}

// What the checker keeps of the node: the memory it touches, with blocks, and who added it.
static void checker_rows_add(struct sim__text *text, const struct sim__race_node *node) {
    const struct sim__race_origin *origin = sim__race_origin_at(node->origin);
    char site[NAME_BYTES + 1];
    for (uint32_t i = 0; i < node->count; ++i) {
        const struct sim__rows *rows = &node->accesses[i].rows;
        row_range(text, mode_name(node->accesses[i].mode), rows->start, rows->size, rows->rows,
                  rows->pitch, node->accesses[i].block);
    }
    if (origin->label != NULL)
        row_name(text, "label", origin->label);
    if (sim__race_origin_site(node->origin, site, sizeof site)[0] != '\0')
        row_name(text, "at", site);
}

// The memory that the node names.
static void ranges_add(struct picture *picture, const struct sim__node *node) {
    struct sim__text *text = &picture->text;
    if (node->allocation != NULL)
        row_range(text, "memory", node->allocation->start, node->allocation->size, 1, 0, 0);
    if (node->work != NULL && node->work->race != NULL)
        checker_rows_add(text, node->work->race);
    else if (node->type == cudaGraphNodeTypeMemcpy) {
        const struct sim__copy *copy = &node->work->operation.copy;
        row_range(text, "from", address(copy->source), copy->size, copy->rows, copy->source_pitch,
                  0);
        row_range(text, "to", address(copy->destination), copy->size, copy->rows,
                  copy->destination_pitch, 0);
    } else if (node->type == cudaGraphNodeTypeMemset) {
        const struct sim__fill *fill = &node->work->operation.fill;
        row_range(text, "to", address(fill->pointer), fill->size, fill->rows, fill->pitch, 0);
    } else if (node->type == SIM__NODE_VALUE) {
        const struct sim__value *value = &node->work->operation.value;
        row_range(text, "to", address(value->address), value->size, 1, 0, 0);
    }
}

// --- Nodes and edges ---

static void id_add(struct sim__text *text, char kind, const struct sim__node *node) {
    sim__text_add(text, "%c%" PRIu64 "_%" PRIu64, kind, node->graph->number, node->number);
}

// Where edges end that lead to NODE, and start that come from it.
static char entry_of(const struct sim__node *node) { return node->child == NULL ? 'n' : 'b'; }
static char exit_of(const struct sim__node *node) { return node->child == NULL ? 'n' : 'e'; }

static void box_add(struct picture *picture, const struct sim__node *node) {
    struct sim__text *text = &picture->text;
    const struct colour colour = colour_of(picture, node->stream);
    id_add(text, 'n', node);
    sim__text_add(text,
                  " [fillcolor=\"%s\", color=\"%s\"%s, label=<<table border=\"0\" "
                  "cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">"
                  "<tr><td colspan=\"2\" align=\"left\"><font point-size=\"8\" color=\"" MUTED
                  "\">%" PRIu64 " %s</font></td></tr>"
                  "<tr><td colspan=\"2\" align=\"left\"><b>",
                  colour.fill, colour.line,
                  node->type == cudaGraphNodeTypeKernel ? ", style=\"filled,rounded\"" : "",
                  node->number, type_name(node->type));
    title_add(text, node);
    sim__text_add(text, "</b></td></tr>");
    ranges_add(picture, node);
    rows_add(picture, node);
    sim__text_add(text, "</table>>];\n");
}

static void graph_add(struct picture *picture, const struct sim__graph *graph);

// A frame, with a point at either end.
static void frame_add(struct picture *picture, const struct sim__node *node) {
    struct sim__text *text = &picture->text;
    const struct sim__graph *child = node->child;
    sim__text_add(text, "subgraph ");
    id_add(text, 'c', node);
    sim__text_add(text,
                  " {\ncluster=true; style=\"rounded\"; color=\"%s\"; labeljust=l;\n"
                  "label=<<font point-size=\"8\" color=\"" MUTED "\">%" PRIu64
                  " child graph, %" PRIu64 " node%s</font>>;\n",
                  own_colour.line, node->number, child->node_count,
                  child->node_count == 1 ? "" : "s");
    for (const char *kind = "be"; *kind != '\0'; ++kind) {
        id_add(text, *kind, node);
        sim__text_add(text, " [shape=point, width=0.06, color=\"%s\"];\n", own_colour.line);
    }
    graph_add(picture, child);
    for (const struct sim__node_link *link = child->roots.next; link != &child->roots;
         link = link->next) {
        const struct sim__node *root = SIM__NODE_OF(link, root);
        id_add(text, 'b', node);
        sim__text_add(text, " -> ");
        id_add(text, entry_of(root), root);
        sim__text_add(text, " [style=dotted];\n");
    }
    for (const struct sim__node_link *link = child->sinks.next; link != &child->sinks;
         link = link->next) {
        const struct sim__node *sink = SIM__NODE_OF(link, sink);
        id_add(text, exit_of(sink), sink);
        sim__text_add(text, " -> ");
        id_add(text, 'e', node);
        sim__text_add(text, " [style=dotted];\n");
    }
    if (child->node_count == 0) {
        id_add(text, 'b', node);
        sim__text_add(text, " -> ");
        id_add(text, 'e', node);
        sim__text_add(text, " [style=dotted];\n");
    }
    sim__text_add(text, "}\n");
}

// Edges within a stream are drawn in its colour, and straight if possible.
static void edge_style_add(const struct picture *picture, struct sim__text *text,
                           const struct sim__node *from, const struct sim__node *to,
                           uint32_t data) {
    const cudaGraphEdgeData carried = sim__edge_unpack(data);
    if (from->stream == to->stream && from->stream != 0)
        sim__text_add(text, " [color=\"%s\", weight=8",
                      colour_of(picture, from->stream).line);
    else
        sim__text_add(text, " [weight=1");
    if (data != 0)
        sim__text_add(text, ", style=dashed, label=\"  %sport %u\"",
                      carried.type == cudaGraphDependencyTypeProgrammatic ? "programmatic, " : "",
                      carried.from_port);
    sim__text_add(text, "];\n");
}

static void graph_add(struct picture *picture, const struct sim__graph *graph) {
    struct sim__text *text = &picture->text;
    SIM__EACH_NODE(node, graph) {
        if (node->child == NULL)
            box_add(picture, node);
        else
            frame_add(picture, node);
    }
    SIM__EACH_NODE(node, graph) {
        for (uint32_t i = 0; i < node->dependency_count; ++i) {
            const struct sim__node *from = node->dependencies[i].node;
            id_add(text, exit_of(from), from);
            sim__text_add(text, " -> ");
            id_add(text, entry_of(node), node);
            edge_style_add(picture, text, from, node, node->dependencies[i].data);
        }
    }
}

// --- The whole ---

static void legend_add(const struct picture *picture, struct sim__text *text,
                       const struct sim__graph *graph) {
    sim__text_add(text,
                  "label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"2\"><tr><td "
                  "align=\"left\" colspan=\"%zu\"><b>graph %" PRIu64 "</b>: %" PRIu64
                  " node%s, %" PRIu64 " edge%s</td></tr>",
                  COLOUR_COUNT, graph->number, graph->node_count,
                  graph->node_count == 1 ? "" : "s", graph->edge_count,
                  graph->edge_count == 1 ? "" : "s");
    for (size_t i = 0; i < picture->stream_count; ++i) {
        const struct colour *colour = &colours[i % COLOUR_COUNT];
        if (i % COLOUR_COUNT == 0)
            sim__text_add(text, "<tr>");
        sim__text_add(text,
                      "<td bgcolor=\"%s\" color=\"%s\" border=\"1\"><font point-size=\"8\"> "
                      "stream %" PRIu64 " </font></td>",
                      colour->fill, colour->line, picture->stream_numbers[i]);
        if (i % COLOUR_COUNT == COLOUR_COUNT - 1 || i + 1 == picture->stream_count)
            sim__text_add(text, "</tr>");
    }
    sim__text_add(text, "</table>>;\n");
}

static void picture_draw(struct picture *picture, const struct sim__graph *graph) {
    struct sim__text *text = &picture->text;
    streams_note(picture, graph);
    sim__text_add(text,
                  "digraph \"graph %" PRIu64 "\" {\n"
                  "bgcolor=white; fontname=\"Helvetica\"; fontsize=11; fontcolor=\"" INK "\";\n"
                  "labelloc=t; labeljust=l; nodesep=0.2; ranksep=0.25; newrank=true;\n"
                  "node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10, "
                  "fontcolor=\"" INK "\", margin=\"0.06,0.03\", height=0.2];\n"
                  "edge [fontname=\"Helvetica\", fontsize=8, color=\"" MUTED
                  "\", arrowsize=0.6];\n%s",
                  graph->number, graph->node_count < LARGE_COUNT ? "nslimit=2;\n"
                                                                 : "nslimit=0.2; mclimit=0.2;\n");
    legend_add(picture, text, graph);
    graph_add(picture, graph);
    sim__text_add(text, "}\n");
}

// Text that did not fit into the host's memory lacks its end.
static bool is_complete(const struct sim__text *text) {
    return text->length >= 2 && memcmp(text->bytes + text->length - 2, "}\n", 2) == 0;
}

static cudaError_t draw_locked(cudaGraph_t handle, const char *path, unsigned int flags,
                               struct sim__text *text) {
    struct sim__graph *graph;
    struct picture picture = {.flags = flags};
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || path == NULL || (flags & ~(unsigned int)FLAGS_MASK) != 0)
        return cudaErrorInvalidValue;
    picture_draw(&picture, graph);
    base_address_map_deinit(&picture.streams);
    free(picture.stream_numbers);
    *text = picture.text;
    return is_complete(text) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static bool write(const char *path, const struct sim__text *text) {
    struct base_file file;
    if (base_file_create(&file, path) != BASE_OK)
        return false;
    fwrite(text->bytes, 1, text->length, file.stream);
    return base_file_commit(&file) == BASE_OK;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
    struct sim__text text = {0};
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = draw_locked(graph, path, flags, &text);
    error = sim__call_end(SIM__CALL_OTHER, error);
    if (error == cudaSuccess && !write(path, &text)) {
        error = sim__call_begin(SIM__CALL_OTHER);
        error = sim__call_end(SIM__CALL_OTHER,
                              error == cudaSuccess ? cudaErrorOperatingSystem : error);
    }
    sim__text_deinit(&text);
    return error;
}
