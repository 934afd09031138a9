// See object.h.
#include "workload/object.h"

// As many elements are touched at most, evenly spread, the first one among them.
#define TOUCHED_MAX 16

static int64_t step_of(int64_t count) { return (count + TOUCHED_MAX - 1) / TOUCHED_MAX; }

static int64_t touched_of(struct tensor tensor) {
    const int64_t count = tensor_numel(tensor), step = step_of(count);
    return (count + step - 1) / step;
}

static enum base_status touched(struct tensor tensor, struct tensor *view) {
    return tensor_slice(tensor, 0, 0, INT64_MAX, step_of(tensor_numel(tensor)), view);
}

enum base_status workload_object_make(const struct tensor_place *place, size_t bytes, int64_t value,
                                      struct workload_object *object) {
    const int64_t count = (int64_t)((bytes + sizeof(int32_t) - 1) / sizeof(int32_t));
    struct tensor made, view;
    enum base_status status = tensor_empty(place, TENSOR_INT32, (int64_t[]){count > 0 ? count : 1},
                                           1, TENSOR_CONTIGUOUS, &made);
    if (status != BASE_OK) return status;
    status = touched(made, &view);
    if (status == BASE_OK) {
        status = tensor_fill_(view, tensor_operand_integer(value));
        tensor_release(&view);
    }
    if (status == BASE_OK)
        *object = (struct workload_object){made, value};
    else
        tensor_release(&made);
    return status;
}

enum base_status workload_object_add(struct workload_object *object, int64_t amount) {
    struct tensor view;
    enum base_status status = touched(object->tensor, &view);
    if (status != BASE_OK) return status;
    status = tensor_add_(view, tensor_operand_integer(amount), tensor_integer(1));
    tensor_release(&view);
    if (status == BASE_OK) object->value += amount;
    return status;
}

enum base_status workload_tally_begin(const struct tensor_place *place,
                                      struct workload_tally *tally) {
    struct tensor sum;
    const enum base_status status = tensor_zeros(place, TENSOR_INT64, NULL, 0, &sum);
    if (status == BASE_OK) *tally = (struct workload_tally){sum, 0};
    return status;
}

enum base_status workload_tally_add(struct workload_tally *tally,
                                    const struct workload_object *object, uint64_t factor) {
    struct tensor view, sum;
    enum base_status status = touched(object->tensor, &view);
    if (status != BASE_OK) return status;
    status = tensor_sum(view, &sum); // of integers in 64 bits
    tensor_release(&view);
    if (status != BASE_OK) return status;
    status = tensor_add_(tally->sum, tensor_operand_tensor(sum), tensor_integer((int64_t)factor));
    tensor_release(&sum);
    if (status == BASE_OK)
        tally->expected += factor * (uint64_t)(touched_of(object->tensor) * object->value);
    return status;
}

enum base_status workload_tally_end(struct workload_run *run, struct workload_tally *tally,
                                    uint64_t key) {
    if (tally->sum.impl == NULL) return BASE_OK;
    struct tensor_scalar found;
    enum base_status status = tensor_item(tally->sum, &found);
    tensor_release(&tally->sum);
    if (status != BASE_OK || run->options.without_values) return status;
    workload_run_add_bytes(run, key, &found.integer, sizeof found.integer);
    if ((uint64_t)found.integer == tally->expected) return BASE_OK;
    return base_status_set(
        BASE_CHECK_FAILED, "sum %llu is %lld and ought to be %lld: memory in use was written to",
        (unsigned long long)key, (long long)found.integer, (long long)tally->expected);
}
