// The picture of docs/tensor.md as facts, one a line: at a few moments, which handle counts which
// impl, which impl which storage, which block the storage has, and where the allocator has it.
//
// It asks the tensors that live then, beginning with the handles: an impl that no handle counts is
// found as the base of a view. CSV, one moment after the other:
//
//     moment,LINE
//     segment,NUMBER,BYTES                   block,SEGMENT,FIRST,END,STATE         positions in
//     bytes storage,NUMBER,BYTES,STRONG,SEGMENT,FIRST                           the place of its
//     block version,NUMBER,VALUE
//     impl,NUMBER,SIZES,STRIDES,OFFSET,STRONG,STORAGE,VERSION,BASE,FIRST,END     in the storage
//     handle,NAME,IMPL
#include "docs/examples/tensor_text.h"

#include "base/options.h"

#define HANDLES_MAX 8
#define IMPLS_MAX 8

struct handle {
    const char *name;
    struct tensor tensor; // none: not there yet, or no more
};

struct walk {
    struct tensor impls[IMPLS_MAX], storages[IMPLS_MAX], versions[IMPLS_MAX]; // one that has it
    int impl_count, storage_count, version_count;
};

typedef bool is_alike(struct tensor a, struct tensor b);

// The number of the first of TENSORS that is alike; it is added if there is none.
static int number_of(struct tensor self, struct tensor *tensors, int *count, is_alike *alike) {
    for (int index = 0; index < *count; ++index)
        if (alike(tensors[index], self)) return index;
    BASE_CHECK(*count < IMPLS_MAX);
    tensors[*count] = self;
    return (*count)++;
}

static int impl_number(struct walk *walk, struct tensor self) {
    return number_of(self, walk->impls, &walk->impl_count, tensor_is_same);
}
static int storage_number(struct walk *walk, struct tensor self) {
    return number_of(self, walk->storages, &walk->storage_count, tensor_text_is_same_storage);
}
static int version_number(struct walk *walk, struct tensor self) {
    return number_of(self, walk->versions, &walk->version_count, tensor_shares_version);
}

//------------------------------------------------------------------------------------------------
// Lines

static const char *state_name(enum allocator_block_state state) {
    return state == ALLOCATOR_BLOCK_INACTIVE ? "free" : "allocated";
}

static void print_segments(const struct allocator_snapshot *snapshot) {
    for (size_t index = 0; index < snapshot->segment_count; ++index) {
        const struct allocator_snapshot_segment *segment = &snapshot->segments[index];
        size_t first = 0;
        printf("segment,%d,%zu\n", (int)index, segment->total_size);
        for (size_t at = 0; at < segment->block_count; ++at) {
            const struct allocator_snapshot_block *block =
                &snapshot->blocks[segment->block_first + at];
            printf("block,%d,%zu,%zu,%s\n", (int)index, first, first + block->size,
                   state_name(block->state));
            first += block->size;
        }
    }
}

static void print_storage(int number, struct tensor self,
                          const struct allocator_snapshot *snapshot) {
    struct tensor_storage *storage = tensor_storage(self);
    const char *const data = tensor_storage_data(storage);
    for (size_t index = 0; index < snapshot->segment_count; ++index) {
        const struct allocator_snapshot_segment *segment = &snapshot->segments[index];
        const ptrdiff_t first = data - (const char *)segment->address;
        if (first >= 0 && (size_t)first < segment->total_size)
            printf("storage,%d,%zu,%d,%d,%d\n", number, tensor_storage_bytes(storage),
                   (int)tensor_storage_count(storage) - 1, (int)index, (int)first);
    }
    tensor_storage_release(&storage);
}

static void print_impl(struct walk *walk, int number) {
    char sizes[TENSOR_TEXT_SIZE], strides[TENSOR_TEXT_SIZE];
    const struct tensor self = walk->impls[number], base = tensor_base(self);
    const int item = (int)tensor_type_size(tensor_type(self));
    int64_t first, last;
    tensor_geometry_range(tensor_geometry(self), &first, &last);
    printf("impl,%d,\"%s\",\"%s\",%d,%d,%d,%d,%d,%d,%d\n", number, tensor_text_sizes(self, sizes),
           tensor_text_strides(self, strides), (int)tensor_offset(self),
           (int)tensor_count_strong_handles(self), storage_number(walk, self),
           version_number(walk, self), base.impl == NULL ? -1 : impl_number(walk, base),
           (int)first * item, (int)(last + 1) * item);
}

static void print_moment(const struct drawing *drawing, const struct handle *handles,
                         const char *line) {
    struct walk walk = {0};
    struct allocator_snapshot snapshot;
    DRAWING_OK(allocator_snapshot(drawing->allocator, &snapshot));
    printf("moment,\"%s\"\n", line);
    print_segments(&snapshot);
    for (int index = 0; index < HANDLES_MAX; ++index)
        if (handles[index].tensor.impl != NULL)
            printf("handle,%s,%d\n", handles[index].name,
                   impl_number(&walk, handles[index].tensor));
    for (int number = 0; number < walk.impl_count; ++number) // bases are added on the way
        print_impl(&walk, number);
    for (int number = 0; number < walk.storage_count; ++number)
        print_storage(number, walk.storages[number], &snapshot);
    for (int number = 0; number < walk.version_count; ++number)
        printf("version,%d,%u\n", number, testing_version(walk.versions[number]));
    allocator_snapshot_deinit(&snapshot);
}

//------------------------------------------------------------------------------------------------
// The moments

enum { A, B, ROW, D, E };

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "tensor_moments",
        .summary = "Handles, impls, storages and blocks at a few moments, as CSV for a picture.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct handle handles[HANDLES_MAX] = {
        [A] = {"a", {0}}, [B] = {"b", {0}}, [ROW] = {"row", {0}},
        [D] = {"d", {0}}, [E] = {"e", {0}},
    };
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor *const a = &handles[A].tensor;

    CHECK_OK(tensor_zeros(&place, TENSOR_FLOAT32, SIZES(2, 65536), a));
    handles[B].tensor = tensor_retain(*a);
    print_moment(&drawing, handles, "a = zeros(2, 65536); b = a");
    CHECK_OK(tensor_select(*a, 0, 1, &handles[ROW].tensor));
    print_moment(&drawing, handles, "row = a[1]");
    CHECK_OK(tensor_detach(*a, &handles[D].tensor));
    CHECK_OK(tensor_data_of(*a, &handles[E].tensor));
    CHECK_OK(tensor_fill_(handles[D].tensor, tensor_operand_integer(1)));
    print_moment(&drawing, handles, "d = a.detach(); e = a.data; d.fill_(1)");
    for (int index = B; index <= E; ++index)
        if (index != ROW) tensor_release(&handles[index].tensor);
    CHECK_OK(tensor_resize_(*a, SIZES(4, 65536), NULL));
    print_moment(&drawing, handles, "del b, d, e; a.resize_(4, 65536)");
    tensor_release(a);
    print_moment(&drawing, handles, "del a");
    tensor_release(&handles[ROW].tensor);
    drawing_stop(&drawing);
    return 0;
}
