// The kernels on the simulated device: the items of each in a plain loop, in stream order; and what
// each reads and writes, named for the race checker. See launch.h.
//
// A kernel tells its arrays (struct use): from them follow the places that are named, and where the
// loop can touch them (sim_kernel_bytes): the device faults where it may not.
#include "tensor/kernel/launch.h"

#include "base/check.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "tensor/kernel/loops.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define USES_MAX 9
#define RANK_MAX (TENSOR_KERNEL_RANK_MAX + 1)

// An array of a kernel, and the shape through which it is gone.
struct use {
    enum sim_access_mode mode;
    struct tensor_kernel_array *array;
    int rank;
    int64_t sizes[RANK_MAX], strides[RANK_MAX];
    bool is_read_too; // and written afterwards
};

struct uses {
    int count;
    struct use all[USES_MAX];
};

// --- Telling arrays ---

static struct use *use_begin(struct uses *uses, enum sim_access_mode mode,
                             struct tensor_kernel_array *array) {
    static _Thread_local struct use nowhere;
    if (array->data == NULL)
        return &nowhere;
    BASE_CHECK_LT(uses->count, USES_MAX);
    struct use *use = &uses->all[uses->count++];
    use->mode = mode;
    use->array = array;
    use->rank = 0;
    use->is_read_too = false;
    return use;
}

static void use_dimension(struct use *use, int64_t size, int64_t stride) {
    if (use->array == NULL || size == 1)
        return;
    use->sizes[use->rank] = size;
    use->strides[use->rank++] = stride;
}

static struct use *use_shape(struct uses *uses, enum sim_access_mode mode,
                             const struct tensor_kernel_shape *shape,
                             struct tensor_kernel_array *array) {
    struct use *use = use_begin(uses, mode, array);
    for (int dim = 0; dim < shape->rank; ++dim)
        use_dimension(use, shape->sizes[dim], array->strides[dim]);
    return use;
}

static struct use *use_rows(struct uses *uses, enum sim_access_mode mode,
                            const struct tensor_kernel_shape *shape, int64_t columns,
                            struct tensor_kernel_rows *rows) {
    struct use *use = use_shape(uses, mode, shape, &rows->array);
    use_dimension(use, columns, rows->step);
    return use;
}

static struct use *use_flat(struct uses *uses, enum sim_access_mode mode, int64_t count,
                            struct tensor_kernel_array *array) {
    struct use *use = use_begin(uses, mode, array);
    use_dimension(use, count, 1);
    return use;
}

#define READ SIM_ACCESS_READ
#define WRITE SIM_ACCESS_WRITE

static void pointwise_uses(struct tensor_kernel_pointwise *kernel, struct uses *uses) {
    // A copy without conversion hands on what it reads as it is.
    const bool carries = kernel->operation == TENSOR_KERNEL_COPY &&
                         kernel->a.type == kernel->out.type && kernel->compute == kernel->a.type;
    use_shape(uses, carries ? SIM_ACCESS_CARRY : READ, &kernel->shape, &kernel->a);
    if (kernel->operation != TENSOR_KERNEL_ACCUMULATE)
        use_shape(uses, READ, &kernel->shape, &kernel->b);
    use_shape(uses, WRITE, &kernel->shape, &kernel->out)->is_read_too =
        kernel->operation == TENSOR_KERNEL_ACCUMULATE;
}

static void sum_uses(struct tensor_kernel_sum *kernel, struct uses *uses) {
    struct use *use = use_shape(uses, READ, &kernel->kept, &kernel->a);
    for (int dim = 0; dim < kernel->reduced.rank; ++dim)
        use_dimension(use, kernel->reduced.sizes[dim], kernel->b.strides[dim]);
    use_shape(uses, WRITE, &kernel->kept, &kernel->out);
}

static void sum_parts_uses(struct tensor_kernel_sum_parts *kernel, struct uses *uses) {
    const int64_t results = tensor_kernel_count(&kernel->sum.kept);
    sum_uses(&kernel->sum, uses);
    use_flat(uses, WRITE, kernel->parts * results, &kernel->staging); // read once it was written
    use_flat(uses, WRITE, (results + kernel->group - 1) / kernel->group, &kernel->counters)
        ->is_read_too = true;
}

static void matrix_use(struct uses *uses, enum sim_access_mode mode, int64_t batch, int64_t rows,
                       int64_t columns, struct tensor_kernel_array *array) {
    use_shape(uses, mode, &(struct tensor_kernel_shape){3, {batch, rows, columns}}, array);
}

static void product_uses(struct tensor_kernel_product *kernel, struct uses *uses) {
    matrix_use(uses, READ, kernel->batch, kernel->m, kernel->k, &kernel->a);
    matrix_use(uses, READ, kernel->batch, kernel->k, kernel->n, &kernel->b);
    matrix_use(uses, WRITE, kernel->batch, kernel->m, kernel->n, &kernel->out);
}

static void softmax_uses(struct tensor_kernel_softmax *kernel, struct uses *uses) {
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_rows(uses, WRITE, &kernel->shape, kernel->columns, &kernel->out);
}

static void softmax_gradient_uses(struct tensor_kernel_softmax_gradient *kernel,
                                  struct uses *uses) {
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->gradient);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->result);
    use_rows(uses, WRITE, &kernel->shape, kernel->columns, &kernel->out);
}

static void norm_uses(struct tensor_kernel_norm *kernel, struct uses *uses) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_flat(uses, READ, kernel->columns, &kernel->weight);
    use_flat(uses, READ, kernel->columns, &kernel->bias);
    use_rows(uses, WRITE, &kernel->shape, kernel->columns, &kernel->out);
    use_flat(uses, WRITE, rows, &kernel->mean);
    use_flat(uses, WRITE, rows, &kernel->rstd);
}

static void norm_gradient_uses(struct tensor_kernel_norm_gradient *kernel, struct uses *uses) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->gradient);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_flat(uses, READ, kernel->columns, &kernel->weight);
    use_flat(uses, READ, rows, &kernel->mean);
    use_flat(uses, READ, rows, &kernel->rstd);
    use_rows(uses, WRITE, &kernel->shape, kernel->columns, &kernel->out);
}

static void norm_weight_uses(struct tensor_kernel_norm_weight *kernel, struct uses *uses) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->gradient);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_flat(uses, READ, rows, &kernel->mean);
    use_flat(uses, READ, rows, &kernel->rstd);
    use_flat(uses, WRITE, kernel->columns, &kernel->weight);
    use_flat(uses, WRITE, kernel->columns, &kernel->bias);
}

static void cross_entropy_uses(struct tensor_kernel_cross_entropy *kernel, struct uses *uses) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_flat(uses, READ, rows, &kernel->targets);
    use_flat(uses, WRITE, rows, &kernel->loss);
    use_flat(uses, WRITE, rows, &kernel->total);
}

static void cross_entropy_gradient_uses(struct tensor_kernel_cross_entropy_gradient *kernel,
                                        struct uses *uses) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_flat(uses, READ, rows, &kernel->targets);
    use_flat(uses, READ, rows, &kernel->total);
    use_dimension(use_begin(uses, READ, &kernel->gradient), rows, kernel->gradient_stride);
    use_rows(uses, WRITE, &kernel->shape, kernel->columns, &kernel->out);
}

static void argmax_uses(struct tensor_kernel_argmax *kernel, struct uses *uses) {
    use_rows(uses, READ, &kernel->shape, kernel->columns, &kernel->a);
    use_shape(uses, WRITE, &kernel->shape, &kernel->out);
}

static void nll_uses(struct tensor_kernel_nll *kernel, struct uses *uses) {
    use_rows(uses, READ, &(struct tensor_kernel_shape){1, {kernel->count}}, kernel->columns,
             &kernel->a);
    use_flat(uses, READ, kernel->count, &kernel->targets);
    use_flat(uses, WRITE, 1, &kernel->loss);
    use_flat(uses, WRITE, 1, &kernel->total);
}

static void nll_gradient_uses(struct tensor_kernel_nll_gradient *kernel, struct uses *uses) {
    use_flat(uses, READ, kernel->count, &kernel->targets);
    use_flat(uses, READ, 1, &kernel->total);
    use_flat(uses, READ, 1, &kernel->gradient);
    use_rows(uses, WRITE, &(struct tensor_kernel_shape){1, {kernel->count}}, kernel->columns,
             &kernel->out);
}

static void gather_uses(struct tensor_kernel_gather *kernel, struct uses *uses) {
    const struct tensor_kernel_shape table = {1, {kernel->table_rows}}, out = {1, {kernel->count}};
    use_flat(uses, READ, kernel->count, &kernel->index);
    use_rows(uses, READ, &table, kernel->columns, &kernel->table);
    use_rows(uses, WRITE, &out, kernel->columns, &kernel->out);
}

static void scatter_add_uses(struct tensor_kernel_scatter_add *kernel, struct uses *uses) {
    const struct tensor_kernel_shape table = {1, {kernel->table_rows}}, a = {1, {kernel->count}};
    use_flat(uses, READ, kernel->count, &kernel->index);
    use_rows(uses, READ, &a, kernel->columns, &kernel->a);
    use_rows(uses, WRITE, &table, kernel->columns, &kernel->table)->is_read_too = true;
}

static void dropout_uses(struct tensor_kernel_dropout *kernel, struct uses *uses) {
    use_shape(uses, READ, &kernel->shape, &kernel->a);
    use_shape(uses, WRITE, &kernel->shape, &kernel->out);
    memcpy(kernel->mask.strides, kernel->out.strides, sizeof kernel->mask.strides);
    use_shape(uses, WRITE, &kernel->shape, &kernel->mask);
    use_flat(uses, READ, 1, &kernel->state);
}

static void squares_uses(struct tensor_kernel_squares *kernel, struct uses *uses) {
    use_flat(uses, READ, kernel->count, &kernel->a);
    use_flat(uses, WRITE, kernel->parts, &kernel->out);
}

static void addc_uses(struct tensor_kernel_addc *kernel, struct uses *uses) {
    use_shape(uses, READ, &kernel->shape, &kernel->a);
    use_shape(uses, READ, &kernel->shape, &kernel->b);
    use_shape(uses, WRITE, &kernel->shape, &kernel->out)->is_read_too = true;
}

static void adam_uses(struct tensor_kernel_adam *kernel, struct uses *uses) {
    use_flat(uses, READ, kernel->count, &kernel->gradient);
    use_flat(uses, WRITE, kernel->count, &kernel->parameter)->is_read_too = true;
    use_flat(uses, WRITE, kernel->count, &kernel->mean)->is_read_too = true;
    use_flat(uses, WRITE, kernel->count, &kernel->square)->is_read_too = true;
}

static void sgd_uses(struct tensor_kernel_sgd *kernel, struct uses *uses) {
    use_flat(uses, READ, kernel->count, &kernel->gradient);
    use_flat(uses, WRITE, kernel->count, &kernel->parameter)->is_read_too = true;
    use_flat(uses, WRITE, kernel->count, &kernel->velocity)->is_read_too = true;
}

static struct tensor_kernel_shape keys_of(const struct tensor_kernel_attention_form *form) {
    struct tensor_kernel_shape shape = form->shape;
    shape.sizes[shape.rank - 1] = form->keys;
    return shape;
}

static void attention_uses(struct tensor_kernel_attention *kernel, struct uses *uses) {
    struct tensor_kernel_attention_form *form = &kernel->form;
    const struct tensor_kernel_shape keys = keys_of(form);
    use_flat(uses, READ, 1, &form->state);
    use_rows(uses, READ, &form->shape, form->columns, &kernel->query);
    use_rows(uses, READ, &keys, form->columns, &kernel->key);
    use_rows(uses, READ, &keys, form->value_columns, &kernel->value);
    use_rows(uses, WRITE, &form->shape, form->value_columns, &kernel->out);
    use_flat(uses, WRITE, tensor_kernel_count(&form->shape), &kernel->total);
}

static void attention_query_uses(struct tensor_kernel_attention_query *kernel, struct uses *uses) {
    struct tensor_kernel_attention_form *form = &kernel->form;
    const struct tensor_kernel_shape keys = keys_of(form);
    use_flat(uses, READ, 1, &form->state);
    use_rows(uses, READ, &form->shape, form->value_columns, &kernel->gradient);
    use_rows(uses, READ, &form->shape, form->value_columns, &kernel->out);
    use_rows(uses, READ, &form->shape, form->columns, &kernel->query);
    use_rows(uses, READ, &keys, form->columns, &kernel->key);
    use_rows(uses, READ, &keys, form->value_columns, &kernel->value);
    use_flat(uses, READ, tensor_kernel_count(&form->shape), &kernel->total);
    use_flat(uses, WRITE, tensor_kernel_count(&form->shape), &kernel->shares);
    use_rows(uses, WRITE, &form->shape, form->columns, &kernel->of_query);
}

static void attention_key_uses(struct tensor_kernel_attention_key *kernel, struct uses *uses) {
    struct tensor_kernel_attention_form *form = &kernel->form;
    const struct tensor_kernel_shape keys = keys_of(form);
    use_flat(uses, READ, 1, &form->state);
    use_rows(uses, READ, &form->shape, form->value_columns, &kernel->gradient);
    use_rows(uses, READ, &form->shape, form->columns, &kernel->query);
    use_rows(uses, READ, &keys, form->columns, &kernel->key);
    use_rows(uses, READ, &keys, form->value_columns, &kernel->value);
    use_flat(uses, READ, tensor_kernel_count(&form->shape), &kernel->total);
    use_flat(uses, READ, tensor_kernel_count(&form->shape), &kernel->shares);
    use_rows(uses, WRITE, &keys, form->columns, &kernel->of_key);
    use_rows(uses, WRITE, &keys, form->value_columns, &kernel->of_value);
}

// --- Where a kernel can touch its arrays ---

// From the first to the last byte. Elements lie behind the first one only: strides are not
// negative.
static size_t use_bytes(const struct use *use) {
    int64_t last = 0;
    for (int dim = 0; dim < use->rank; ++dim)
        last += (use->sizes[dim] - 1) * use->strides[dim];
    return (size_t)((last + 1) * tensor_kernel_size_of(use->array->type));
}

static bool is_empty(const struct use *use) {
    for (int dim = 0; dim < use->rank; ++dim)
        if (use->sizes[dim] == 0)
            return true;
    return false;
}

// Puts the addresses in force into the kernel that USES are of; false: the device has faulted.
static bool uses_reach(struct uses *uses) {
    for (int i = 0; i < uses->count; ++i) {
        struct use *use = &uses->all[i];
        if (is_empty(use))
            continue;
        void *bytes = sim_kernel_bytes(use->array->data, use_bytes(use), use->mode == WRITE);
        if (bytes == NULL)
            return false;
        use->array->data = bytes;
    }
    return true;
}

static void trap_look(void) {
    if (tensor_kernel_trapped)
        (void)sim_kernel_bytes(NULL, 1, true); // faults
    tensor_kernel_trapped = false;
}

// --- Places, named ---

struct accesses {
    struct sim_access *all;
    size_t count, size;
};

static void access_add(struct accesses *accesses, struct sim_access access) {
    if (accesses->count == accesses->size) {
        accesses->size = accesses->size > 0 ? 2 * accesses->size : 16;
        accesses->all = realloc(accesses->all, accesses->size * sizeof *accesses->all);
        BASE_CHECK(accesses->all != NULL);
    }
    accesses->all[accesses->count++] = access;
}

// Sorted by stride, the smallest last, without those that stay in one place; one dimension where
// two are as one.
static void use_simplify(struct use *use) {
    int rank = 0;
    for (int dim = 0; dim < use->rank; ++dim) {
        const int64_t size = use->sizes[dim], stride = use->strides[dim];
        int at = rank;
        if (stride == 0)
            continue;
        for (; at > 0 && use->strides[at - 1] < stride; --at) {
            use->sizes[at] = use->sizes[at - 1];
            use->strides[at] = use->strides[at - 1];
        }
        use->sizes[at] = size;
        use->strides[at] = stride;
        ++rank;
    }
    use->rank = 0;
    for (int dim = 0; dim < rank; ++dim) {
        const int64_t size = use->sizes[dim], stride = use->strides[dim];
        const int last = use->rank - 1;
        if (last >= 0 && use->strides[last] == size * stride) {
            use->sizes[last] *= size;
            use->strides[last] = stride;
        } else {
            use->sizes[use->rank] = size;
            use->strides[use->rank++] = stride;
        }
    }
}

// Pieces without gaps, rows of these, and as many accesses as further dimensions make. Pieces that
// lie over each other (windows) are named each.
static void use_access(struct use *use, enum sim_access_mode mode, struct accesses *accesses) {
    const size_t item = (size_t)tensor_kernel_size_of(use->array->type);
    struct use simple = *use;
    if (is_empty(use))
        return;
    use_simplify(&simple);
    size_t piece = item, rows = 1, pitch = 0;
    if (simple.rank > 0 && simple.strides[simple.rank - 1] == 1)
        piece *= (size_t)simple.sizes[--simple.rank];
    if (simple.rank > 0 && (size_t)simple.strides[simple.rank - 1] * item >= piece) {
        rows = (size_t)simple.sizes[--simple.rank];
        pitch = (size_t)simple.strides[simple.rank] * item;
    }
    int64_t index[RANK_MAX] = {0};
    for (;;) {
        int64_t place = 0;
        for (int dim = 0; dim < simple.rank; ++dim)
            place += index[dim] * simple.strides[dim];
        access_add(accesses, (struct sim_access){.mode = mode,
                                                 .pointer = (const char *)use->array->data +
                                                            place * (int64_t)item,
                                                 .size = piece,
                                                 .rows = rows,
                                                 .pitch = pitch});
        int dim = simple.rank - 1;
        for (; dim >= 0 && ++index[dim] == simple.sizes[dim]; --dim)
            index[dim] = 0;
        if (dim < 0)
            return;
    }
}

// A carried read names as many bytes as the write behind it: without gaps on both sides, or it is a
// plain one.
static bool can_carry(const struct uses *uses) {
    for (int i = 0; i < uses->count; ++i) {
        struct use simple = uses->all[i];
        int64_t count = 1;
        for (int dim = 0; dim < simple.rank; ++dim)
            count *= simple.sizes[dim];
        use_simplify(&simple);
        if (simple.rank > 1 || (simple.rank == 1 && simple.strides[0] != 1) ||
            (simple.rank == 1 ? simple.sizes[0] : 1) != count)
            return false;
    }
    return true;
}

static void accesses_tell(struct uses *uses, struct accesses *accesses) {
    const bool carries = can_carry(uses);
    for (int i = 0; i < uses->count; ++i) {
        struct use *use = &uses->all[i];
        const bool is_plain = use->mode == SIM_ACCESS_CARRY && !carries;
        if (use->is_read_too)
            use_access(use, READ, accesses);
        use_access(use, is_plain ? READ : use->mode, accesses);
    }
}

static uint64_t uses_move(const struct uses *uses) {
    uint64_t bytes = 0;
    for (int i = 0; i < uses->count; ++i) {
        uint64_t count = (uint64_t)tensor_kernel_size_of(uses->all[i].array->type);
        for (int dim = 0; dim < uses->all[i].rank; ++dim)
            if (uses->all[i].strides[dim] != 0)
                count *= (uint64_t)uses->all[i].sizes[dim];
        bytes += uses->all[i].is_read_too ? 2 * count : count;
    }
    return bytes;
}

// The thread's list, which goes with it.
static _Thread_local struct accesses thread_accesses;
static pthread_key_t accesses_key;
static pthread_once_t accesses_key_once = PTHREAD_ONCE_INIT;

static void accesses_deinit(void *accesses) { free(((struct accesses *)accesses)->all); }

static void accesses_key_make(void) {
    BASE_CHECK_EQ(pthread_key_create(&accesses_key, accesses_deinit), 0);
}

static void accesses_leave_with_thread(void) {
    if (thread_accesses.all != NULL)
        return;
    BASE_CHECK_EQ(pthread_once(&accesses_key_once, accesses_key_make), 0);
    BASE_CHECK_EQ(pthread_setspecific(accesses_key, &thread_accesses), 0);
}

// --- Arithmetic, for the cost model ---

struct work {
    uint64_t flops, tensor_flops;
};

// An operation for each four bytes that move: element work and rows.
static struct work plain_work(const void *kernel, uint64_t bytes) {
    (void)kernel;
    return (struct work){.flops = bytes / 4};
}

// COUNT multiplications and as many additions; of 16-bit numbers by tensor cores, as kernels of
// devices do them.
static struct work multiply_work(int type, uint64_t count) {
    const bool is_short = tensor_kernel_size_of(type) == 2;
    return (struct work){.flops = is_short ? 0 : 2 * count,
                         .tensor_flops = is_short ? 2 * count : 0};
}

static struct work product_work(const void *argument, uint64_t bytes) {
    const struct tensor_kernel_product *kernel = argument;
    (void)bytes;
    return multiply_work(kernel->out.type,
                         (uint64_t)(kernel->batch * kernel->m * kernel->n * kernel->k));
}

// PRODUCTS of each query with each key that it sees.
static struct work attention_work(const struct tensor_kernel_attention_form *form, int type,
                                  uint64_t products, uint64_t value_products) {
    const uint64_t pairs = (uint64_t)(tensor_kernel_count(&form->shape) * form->keys);
    return multiply_work(type, (form->is_causal ? pairs / 2 : pairs) *
                                   (products * (uint64_t)form->columns +
                                    value_products * (uint64_t)form->value_columns));
}

static struct work attention_forward_work(const void *argument, uint64_t bytes) {
    const struct tensor_kernel_attention *kernel = argument;
    (void)bytes;
    return attention_work(&kernel->form, kernel->query.array.type, 1, 1);
}

static struct work attention_query_work(const void *argument, uint64_t bytes) {
    const struct tensor_kernel_attention_query *kernel = argument;
    (void)bytes;
    return attention_work(&kernel->form, kernel->query.array.type, 2, 1);
}

static struct work attention_key_work(const void *argument, uint64_t bytes) {
    const struct tensor_kernel_attention_key *kernel = argument;
    (void)bytes;
    return attention_work(&kernel->form, kernel->query.array.type, 2, 2);
}

#define WORK_OF(kernel)                                                                            \
    _Generic((kernel),                                                                             \
        const struct tensor_kernel_product *: product_work,                                        \
        const struct tensor_kernel_attention *: attention_forward_work,                            \
        const struct tensor_kernel_attention_query *: attention_query_work,                        \
        const struct tensor_kernel_attention_key *: attention_key_work,                            \
        default: plain_work)

static cudaError_t launch(const char *name, void (*body)(const void *argument),
                          const void *argument, size_t argument_size, struct uses *uses,
                          struct work (*work_of)(const void *kernel, uint64_t bytes),
                          cudaStream_t stream) {
    struct accesses *const accesses = &thread_accesses;
    const uint64_t bytes = uses_move(uses);
    const struct work work = work_of(argument, bytes);
    accesses->count = 0;
    if (sim_race_is_running()) {
        accesses_leave_with_thread();
        accesses_tell(uses, accesses);
    }
    return sim_launch_kernel(stream, &(struct sim_kernel){.name = name,
                                                          .body = body,
                                                          .argument = argument,
                                                          .argument_size = argument_size,
                                                          .bytes = bytes,
                                                          .flops = work.flops,
                                                          .tensor_flops = work.tensor_flops,
                                                          .accesses = accesses->all,
                                                          .access_count = accesses->count});
}

// --- The loops ---

#define PLAIN(name)                                                                                \
    static void name##_loop(const struct tensor_kernel_##name *kernel, int64_t items) {            \
        for (int64_t i = 0; i < items; ++i)                                                        \
            tensor_kernel_##name##_at(kernel, i);                                                  \
    }

#define STRETCHES(name)                                                                            \
    static void name##_loop(const struct tensor_kernel_##name *kernel, int64_t items) {            \
        (void)items;                                                                               \
        tensor_loop_##name(kernel);                                                                \
    }

STRETCHES(pointwise)
STRETCHES(sum)
STRETCHES(product)

// Strides of the shape without gaps.
static void strides_flat(const struct tensor_kernel_shape *shape, int64_t *strides) {
    int64_t stride = 1;
    for (int dim = shape->rank - 1; dim >= 0; --dim) {
        strides[dim] = stride;
        stride *= shape->sizes[dim];
    }
}

// Part by part, then all parts of all results: what the items do, in loops that are as fast as
// those of a whole sum.
static void sum_parts_loop(const struct tensor_kernel_sum_parts *kernel, int64_t items) {
    const struct tensor_kernel_sum *whole = &kernel->sum;
    const int64_t results = tensor_kernel_count(&whole->kept);
    const int64_t count = tensor_kernel_count(&whole->reduced);
    const int64_t length = (count + kernel->parts - 1) / kernel->parts;
    if (whole->reduced.rank != 1) {
        for (int64_t i = 0; i < items; ++i)
            tensor_kernel_sum_parts_at(kernel, i);
        return;
    }
    struct tensor_kernel_sum one = *whole;
    one.compute = one.out.type = kernel->staging.type;
    strides_flat(&whole->kept, one.out.strides);
    for (int64_t part = 0, first = 0; part < kernel->parts; ++part, first += length) {
        const int64_t left = count - first < length ? count - first : length;
        one.reduced.sizes[0] = left > 0 ? left : 0;
        if (left > 0)
            one.a.data = (char *)whole->a.data +
                         first * whole->b.strides[0] * tensor_kernel_size_of(whole->a.type);
        one.out.data = (char *)kernel->staging.data + part * results * (int64_t)sizeof(double);
        tensor_loop_sum(&one);
    }
    struct tensor_kernel_sum join = *whole;
    join.a = kernel->staging;
    strides_flat(&whole->kept, join.a.strides);
    join.reduced = (struct tensor_kernel_shape){1, {kernel->parts}};
    join.b = (struct tensor_kernel_array){.strides = {results}};
    tensor_loop_sum(&join);
    int32_t *counters = kernel->counters.data;
    for (int64_t i = 0; i < results; ++i)
        counters[i / kernel->group] += (int32_t)kernel->parts;
}
TENSOR_KERNEL_MODEL_LIST(PLAIN)

#define KERNEL(name)                                                                               \
    static void name##_body(const void *argument) {                                                \
        struct tensor_kernel_##name kernel = *(const struct tensor_kernel_##name *)argument;       \
        struct uses uses = {.count = 0};                                                           \
        name##_uses(&kernel, &uses);                                                               \
        if (uses_reach(&uses))                                                                     \
            name##_loop(&kernel, tensor_kernel_##name##_items(&kernel));                           \
        trap_look();                                                                               \
    }                                                                                              \
    cudaError_t tensor_launch_##name(const struct tensor_kernel_##name *kernel,                    \
                                     cudaStream_t stream) {                                        \
        struct tensor_kernel_##name copy = *kernel;                                                \
        struct uses uses = {.count = 0};                                                           \
        if (tensor_kernel_##name##_items(kernel) == 0)                                             \
            return cudaSuccess;                                                                    \
        name##_uses(&copy, &uses);                                                                 \
        return launch(#name, name##_body, kernel, sizeof *kernel, &uses, WORK_OF(kernel), stream); \
    }
TENSOR_KERNEL_LIST(KERNEL)
