// What becomes of a tensor's memory: blocks for storages, resizing, what a graph keeps, and which
// line gives a block back: docs/tensor.md tells the story.
//
// Lines are labelled with the Python that does the same.
#include "docs/examples/tensor_text.h"

#include "base/options.h"

#define MIB_FLOATS ((int64_t)(BASE_MIB / sizeof(float)))

static struct tensor zeros(const struct tensor_place *place, int64_t count) {
    struct tensor self;
    CHECK_OK(tensor_zeros(place, TENSOR_FLOAT32, &count, 1, &self));
    return self;
}

static size_t storage_bytes(struct tensor self) {
    struct tensor_storage *storage = tensor_storage(self);
    const size_t bytes = tensor_storage_bytes(storage);
    tensor_storage_release(&storage);
    return bytes;
}

static void storage_resize(struct tensor self, int64_t bytes) {
    struct tensor_storage *storage = tensor_storage(self);
    CHECK_OK(tensor_storage_resize(storage, bytes));
    tensor_storage_release(&storage);
}

static int mib(int64_t bytes) { return (int)(bytes / (int64_t)BASE_MIB); }

static struct allocator_stats stats_of(const struct drawing *drawing) {
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    return stats;
}

//------------------------------------------------------------------------------------------------
// Storage and block

// Sizes of the block at ADDRESS and of its segment; 0 if the allocator has none there.
static void find_block(const struct drawing *drawing, const void *address, size_t *block_bytes,
                       size_t *segment_bytes) {
    struct allocator_snapshot snapshot;
    DRAWING_OK(allocator_snapshot(drawing->allocator, &snapshot));
    *block_bytes = *segment_bytes = 0;
    for (size_t index = 0; index < snapshot.segment_count; ++index) {
        const struct allocator_snapshot_segment *segment = &snapshot.segments[index];
        for (size_t block = 0; block < segment->block_count; ++block) {
            if (snapshot.blocks[segment->block_first + block].address != address) continue;
            *block_bytes = snapshot.blocks[segment->block_first + block].size;
            *segment_bytes = segment->total_size;
        }
    }
    allocator_snapshot_deinit(&snapshot);
}

static void print_block(const struct drawing *drawing, const char *line, struct tensor self) {
    char storage[DRAWING_SIZE], block[DRAWING_SIZE], segment[DRAWING_SIZE];
    size_t block_bytes, segment_bytes;
    find_block(drawing, tensor_data(self), &block_bytes, &segment_bytes);
    printf("%-22s %-15s %-15s %s\n", line, drawing_size(storage_bytes(self), storage),
           block_bytes == 0 ? "none" : drawing_size(block_bytes, block),
           block_bytes == 0 ? "-" : drawing_size(segment_bytes, segment));
}

static void show_blocks(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    static const int64_t counts[] = {1, 128, 129, MIB_FLOATS, MIB_FLOATS + 1, 0};
    char line[32];
    const void *first = NULL;
    puts("                       storage         block           in a segment of");
    for (int index = 0; index < 6; ++index) {
        struct tensor self = zeros(&place, counts[index]);
        snprintf(line, sizeof line, "zeros(%d)", (int)counts[index]);
        print_block(&drawing, line, self);
        if (first == NULL) first = tensor_data(self);
        tensor_release(&self);
    }
    printf("all released: allocated %d, reserved %d MiB\n", (int)drawing_allocated(&drawing),
           mib(drawing_reserved(&drawing)));
    struct tensor again = zeros(&place, 1);
    printf("zeros(1) again: %s block\n", tensor_data(again) == first ? "the same" : "another");
    tensor_release(&again);
    drawing_stop(&drawing);
}

static void count_call(void *context, void *memory) {
    (void)memory;
    ++*(int *)context;
}

static void show_foreign_memory(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor self, view;
    void *memory;
    int calls = 0;
    DRAWING_CALL(cudaMalloc(&memory, 64));
    CHECK_OK(
        tensor_from_memory(&place, TENSOR_FLOAT32, SIZES(16), memory, count_call, &calls, &self));
    CHECK_OK(tensor_slice(self, 0, 0, 4, 1, &view));
    printf("f = from_blob(.., 16); v = f[:4]: allocated %d\n", (int)drawing_allocated(&drawing));
    tensor_text_refusal("f.resize_(17)", tensor_resize_(self, SIZES(17), NULL));
    tensor_release(&self);
    printf("calls of its deleter: after del f %d", calls);
    tensor_release(&view);
    printf(", after del v %d\n", calls);
    DRAWING_CALL(cudaFree(memory));
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Resizing

#define CHARACTER_BYTES (256 * BASE_KIB)

static void print_resized(struct drawing *drawing, const char *line, struct tensor a,
                          struct tensor v) {
    char sizes[TENSOR_TEXT_SIZE], bytes[DRAWING_SIZE];
    if (tensor_data(a) != NULL) drawing_name(drawing, 'A', tensor_data(a));
    printf("%-19s %-10s %-7s %8u %9u  ", line, tensor_text_sizes(a, sizes),
           drawing_size(storage_bytes(a), bytes), testing_version(a), testing_version(v));
    drawing_segments(drawing, CHARACTER_BYTES);
}

static float first_of(struct tensor self) {
    struct tensor element;
    struct tensor_scalar value;
    CHECK_OK(tensor_select(self, 0, 0, &element));
    CHECK_OK(tensor_item(element, &value));
    tensor_release(&element);
    return (float)value.floating;
}

static void show_resize(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    const int64_t count = MIB_FLOATS / 2;
    struct tensor a = zeros(&place, count), v;
    CHECK_OK(tensor_slice(a, 0, count / 2, count, 1, &v));
    CHECK_OK(tensor_fill_(v, tensor_operand_integer(7)));
    char character[DRAWING_SIZE];
    printf("                    a          storage version v version  a character is %s\n",
           drawing_size(CHARACTER_BYTES, character));
    print_resized(&drawing, "v = a[65536:] = 7", a, v);
    CHECK_OK(tensor_resize_(a, &count, 1, NULL));
    print_resized(&drawing, "a.resize_(131072)", a, v);
    CHECK_OK(tensor_resize_(a, SIZES(1000), NULL));
    print_resized(&drawing, "a.resize_(1000)", a, v);
    CHECK_OK(tensor_resize_(a, &count, 1, NULL));
    print_resized(&drawing, "a.resize_(131072)", a, v);
    const char *const old = tensor_data(a);
    DRAWING_OK(allocator_reset_peak_stats(drawing.allocator, 0));
    CHECK_OK(tensor_resize_(a, SIZES(MIB_FLOATS), NULL));
    print_resized(&drawing, "a.resize_(262144)", a, v);
    char peak[DRAWING_SIZE];
    const struct allocator_stats stats = stats_of(&drawing);
    printf("at its highest %s were allocated\n",
           drawing_size((uint64_t)stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak, peak));
    const ptrdiff_t distance = (char *)tensor_data(v) - (char *)tensor_data(a);
    printf("v: offset %d, %d bytes behind the new block's start, reads %g\n", (int)tensor_offset(v),
           (int)distance, (double)first_of(v));
    struct tensor other = zeros(&place, count);
    printf("zeros(131072) gets the old block: %s\n", tensor_data(other) == old ? "yes" : "no");
    tensor_release(&other);
    tensor_release(&a);
    tensor_release(&v);
    drawing_stop(&drawing);
}

static void print_emptied(const struct drawing *drawing, const char *line, struct tensor a) {
    char sizes[TENSOR_TEXT_SIZE], bytes[DRAWING_SIZE];
    printf("%-36s %-11s %-7s %-9s %7u %13d\n", line, tensor_text_sizes(a, sizes),
           drawing_size(storage_bytes(a), bytes), tensor_is_in_bounds(a) ? "yes" : "no",
           testing_version(a), mib(drawing_allocated(drawing)));
}

static void show_emptied(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor w = zeros(&place, 4 * MIB_FLOATS), result;
    puts("                                     sizes       storage in bounds version allocated "
         "MiB");
    print_emptied(&drawing, "w = zeros(1048576)", w);
    storage_resize(w, 0);
    print_emptied(&drawing, "w.untyped_storage().resize_(0)", w);
    tensor_text_refusal("w + 1",
                        tensor_add(w, tensor_operand_integer(1), tensor_integer(1), &result));
    storage_resize(w, 4 * (int64_t)BASE_MIB);
    print_emptied(&drawing, "w.untyped_storage().resize_(4194304)", w);
    tensor_release(&w);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// What a graph keeps. Sums have 512 B: not seen in MiB.

static struct tensor times_itself(struct tensor self) {
    struct tensor result;
    CHECK_OK(tensor_mul(self, tensor_operand_tensor(self), &result));
    return result;
}

static struct tensor sum_of(struct tensor self) {
    struct tensor result;
    CHECK_OK(tensor_sum(self, &result));
    return result;
}

static void backward(struct tensor self, bool retain) {
    CHECK_OK(tensor_backward(self, (struct tensor){0}, retain));
}

static struct tensor parameter(const struct tensor_place *place) {
    struct tensor self = zeros(place, MIB_FLOATS);
    CHECK_OK(tensor_set_requires_grad(self, true));
    return self;
}

#define GRAPH_LINES 10

static const char *const graph_lines[GRAPH_LINES] = {
    "x = zeros(262144), requires grad",
    "a = x * x",
    "b = a * a",
    "loss = b.sum()",
    "del b",
    "del a",
    "loss.backward(retain_graph)",
    "del loss",
    "x.grad = None",
    "del x",
};

// What is allocated after each line.
static void run_graph(bool retain, int allocated_mib[GRAPH_LINES]) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor x, a, b, loss;
    for (int line = 0; line < GRAPH_LINES; ++line) {
        switch (line) {
        case 0:
            x = parameter(&place);
            break;
        case 1:
            a = times_itself(x);
            break;
        case 2:
            b = times_itself(a);
            break;
        case 3:
            loss = sum_of(b);
            break;
        case 4:
            tensor_release(&b);
            break;
        case 5:
            tensor_release(&a);
            break;
        case 6:
            backward(loss, retain);
            break;
        case 7:
            tensor_release(&loss);
            break;
        case 8:
            CHECK_OK(tensor_set_grad(x, (struct tensor){0}));
            break;
        default:
            tensor_release(&x);
        }
        allocated_mib[line] = mib(drawing_allocated(&drawing));
    }
    drawing_stop(&drawing);
}

static void show_graph(void) {
    int once[GRAPH_LINES], retained[GRAPH_LINES];
    run_graph(false, once);
    run_graph(true, retained);
    puts("allocated MiB, retain_graph =        False  True");
    for (int line = 0; line < GRAPH_LINES; ++line)
        printf("%-36s %5d %5d\n", graph_lines[line], once[line], retained[line]);
}

enum keep { KEEP_LOSS, KEEP_AFTER_BACKWARD, KEEP_DETACHED, KEEP_NO_GRAD, KEEP_COUNT };

static void show_kept_losses(void) {
    static const char *const names[KEEP_COUNT] = {
        "losses.append(loss)", "loss.backward(); losses.append(loss)",
        "losses.append(loss.detach())", "with no_grad(): losses.append(loss)"};
    puts("four batches                         allocated MiB");
    for (int keep = 0; keep < KEEP_COUNT; ++keep) {
        struct drawing drawing;
        drawing_start_with_bytes(&drawing, "", BASE_GIB);
        const struct tensor_place place = tensor_text_place(&drawing);
        struct tensor x = parameter(&place), losses[4];
        tensor_set_grad_mode(keep != KEEP_NO_GRAD);
        for (int batch = 0; batch < 4; ++batch) {
            struct tensor a = times_itself(x), b = times_itself(a), loss = sum_of(b);
            tensor_release(&a);
            tensor_release(&b);
            if (keep == KEEP_AFTER_BACKWARD) backward(loss, false);
            if (keep == KEEP_DETACHED)
                CHECK_OK(tensor_detach(loss, &losses[batch]));
            else
                losses[batch] = tensor_retain(loss);
            tensor_release(&loss);
        }
        tensor_set_grad_mode(true);
        printf("%-36s %13d\n", names[keep], mib(drawing_allocated(&drawing)));
        for (int batch = 0; batch < 4; ++batch)
            tensor_release(&losses[batch]);
        tensor_release(&x);
        drawing_stop(&drawing);
    }
}

//------------------------------------------------------------------------------------------------
// record_stream

static void print_active(struct drawing *drawing, const char *line) {
    printf("%-36s %8d %9d %6d  ", line, mib(drawing_reserved(drawing)),
           mib(drawing_allocated(drawing)),
           mib(stats_of(drawing).active_bytes[ALLOCATOR_STAT_ALL].current));
    drawing_segments(drawing, 2 * BASE_MIB);
}

static void show_record_stream(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    cudaStream_t const side = drawing_stream(&drawing);
    struct tensor a = zeros(&place, 16 * MIB_FLOATS), part, b;
    CHECK_OK(tensor_slice(a, 0, -1, INT64_MAX, 1, &part));
    drawing_name(&drawing, 'A', tensor_data(a));
    sim_stream_hold(side, true);
    puts("                                     reserved allocated active");
    print_active(&drawing, "a = zeros(4194304); part = a[-1:]");
    CHECK_OK(tensor_record_stream(part, side));
    tensor_release(&part);
    print_active(&drawing, "part.record_stream(side); del part");
    tensor_release(&a);
    print_active(&drawing, "del a");
    b = zeros(&place, 16 * MIB_FLOATS);
    drawing_name(&drawing, 'B', tensor_data(b));
    print_active(&drawing, "b = zeros(4194304)");
    sim_stream_hold(side, false);
    tensor_release(&b);
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "tensor_memory",
        .summary = "What becomes of a tensor's memory, and which line gives it back.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    show_blocks();
    show_foreign_memory();
    show_resize();
    show_emptied();
    show_graph();
    show_kept_losses();
    show_record_stream();
    return 0;
}
