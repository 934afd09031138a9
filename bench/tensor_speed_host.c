// What a tensor costs before any work is done: views, empty tensors, and operators on a device that
// only accounts. See tensor_speed.c.
#include "bench/tensor_speed.h"

#include "allocator/cca.h"
#include "base/check.h"

#include <stdlib.h>

#define BLOCK_BYTES 4096 // of a pair, and of an empty tensor

// What a view takes of the C library at least: one small object.
#define OBJECT_BYTES 256

static void measure_object(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            void *object = malloc(OBJECT_BYTES);
            __asm__ volatile("" : "+r"(object)::"memory");
            free(object);
        }
}

static void measure_pair(struct bench_state *state, void *argument) {
    (void)argument;
    struct tensor_place place = speed_place_begin(TENSOR_CUDA, SIM_NUMERICS_OFF);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            void *block;
            SPEED_OK(allocator_malloc(place.allocator, 0, BLOCK_BYTES, NULL, &block));
            SPEED_OK(allocator_free(place.allocator, block));
        }
    speed_place_end(state, &place);
}

static void measure_empty(struct bench_state *state, void *argument) {
    (void)argument;
    struct tensor_place place = speed_place_begin(TENSOR_CUDA, SIM_NUMERICS_OFF);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            struct tensor made;
            SPEED_OK(tensor_empty(&place, TENSOR_FLOAT32, (const int64_t[]){32, 32}, 2,
                                  TENSOR_CONTIGUOUS, &made));
            tensor_release(&made);
        }
    speed_place_end(state, &place);
}

//--------------------------------------------------------------------------------------------------
// Views

enum view { VIEW_RESHAPED, VIEW_SELECT, VIEW_SLICE, VIEW_TRANSPOSE, VIEW_EXPAND, VIEW_PERMUTE };

static enum base_status view_make(enum view view, struct tensor self, struct tensor *result) {
    switch (view) {
    case VIEW_RESHAPED:
        return tensor_view(self, (const int64_t[]){-1, 64}, 2, result);
    case VIEW_SELECT:
        return tensor_select(self, 0, 1, result);
    case VIEW_SLICE:
        return tensor_slice(self, 1, 2, 6, 1, result);
    case VIEW_TRANSPOSE:
        return tensor_transpose(self, -2, -1, result);
    case VIEW_EXPAND:
        return tensor_expand(self, (const int64_t[]){4, 8, 16, 64}, 4, result);
    case VIEW_PERMUTE:
        break;
    }
    return tensor_permute(self, (const int64_t[]){1, 0, 2}, 3, result);
}

static void measure_view(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct tensor_place place = speed_place_begin(TENSOR_CUDA, SIM_NUMERICS_OFF);
    struct tensor base;
    SPEED_OK(tensor_empty(&place, TENSOR_FLOAT32, (const int64_t[]){8, 16, 64}, 3,
                          TENSOR_CONTIGUOUS, &base));
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            struct tensor view;
            SPEED_OK(view_make((enum view)measured->what, base, &view));
            tensor_release(&view);
        }
    tensor_release(&base);
    speed_place_end(state, &place);
}

//--------------------------------------------------------------------------------------------------
// Operators, at sizes of a model

#define WIDTH 1024

struct operands {
    struct tensor_place place;
    struct tensor a, b;
};

static struct operands operands_begin(bool is_recorded) {
    struct operands operands = {.place = speed_place_begin(TENSOR_CUDA, SIM_NUMERICS_OFF)};
    const int64_t sizes[] = {WIDTH, WIDTH};
    SPEED_OK(
        tensor_empty(&operands.place, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &operands.a));
    SPEED_OK(
        tensor_empty(&operands.place, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &operands.b));
    if (is_recorded) SPEED_OK(tensor_set_requires_grad(operands.a, true));
    return operands;
}

static void operands_end(struct bench_state *state, struct operands *operands) {
    tensor_release(&operands->a);
    tensor_release(&operands->b);
    speed_place_end(state, &operands->place);
}

enum step { STEP_MIX, STEP_MIX_RECORDED, STEP_ADD, STEP_ADD_IN_PLACE, STEP_PRODUCT };

static void step_run(enum step step, const struct operands *operands) {
    struct tensor view = {0}, made = {0}, sum = {0}, product = {0};
    const bool is_mix = step == STEP_MIX || step == STEP_MIX_RECORDED;
    const struct tensor_operand_value other = tensor_operand_tensor(operands->b);
    if (is_mix) {
        SPEED_OK(tensor_transpose(operands->a, 0, 1, &view));
        SPEED_OK(tensor_empty(&operands->place, TENSOR_FLOAT32, (const int64_t[]){WIDTH, WIDTH}, 2,
                              TENSOR_CONTIGUOUS, &made));
    }
    if (is_mix || step == STEP_ADD)
        SPEED_OK(tensor_add(is_mix ? view : operands->a, other, tensor_integer(1), &sum));
    if (is_mix || step == STEP_PRODUCT)
        SPEED_OK(tensor_mm(is_mix ? sum : operands->a, operands->b, &product));
    if (step == STEP_ADD_IN_PLACE) SPEED_OK(tensor_add_(operands->a, other, tensor_integer(1)));
    tensor_release(&view);
    tensor_release(&made);
    tensor_release(&sum);
    tensor_release(&product);
}

static void measure_step(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct operands operands = operands_begin(measured->what == STEP_MIX_RECORDED);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            step_run((enum step)measured->what, &operands);
    operands_end(state, &operands);
}

static struct speed_case *step_add(const char *name, enum step step, uint64_t operations) {
    struct speed_case *added = speed_case_add(name, measure_step);
    added->what = (int)step;
    added->operations = operations;
    added->per_second_min = 1e6;
    return added;
}

void speed_cases_host(void) {
    static const char *const views[] = {"view/view",      "view/select", "view/slice",
                                        "view/transpose", "view/expand", "view/permute"};
    const struct speed_case *object = speed_case_add("malloc_free", measure_object);
    const struct speed_case *pair = speed_case_add("allocator_pair", measure_pair);
    for (int view = VIEW_RESHAPED; view <= VIEW_PERMUTE; view++) {
        struct speed_case *added = speed_case_add(views[view], measure_view);
        added->what = view;
        speed_case_limit(added, 3, object);
    }
    struct speed_case *empty = speed_case_add("empty", measure_empty);
    speed_case_limit(empty, 1, pair);
    empty->beside[1] = object;
    empty->beside_times[1] = 3;
    empty->beside_count = 2;
    step_add("accounting/view_empty_add_mm", STEP_MIX, 4);
    step_add("accounting/recorded", STEP_MIX_RECORDED, 4);
    step_add("accounting/add", STEP_ADD, 1);
    step_add("accounting/add_", STEP_ADD_IN_PLACE, 1);
    step_add("accounting/mm", STEP_PRODUCT, 1);
}
