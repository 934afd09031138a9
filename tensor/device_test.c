// Tensors on the simulated device: their blocks come of the caching allocator and go back to it,
// and record_stream reaches the whole storage.
#include "allocator/cca.h"
#include "tensor/testing.h"

static struct tensor_place device_place(void) {
    struct tensor_place place = {.kind = TENSOR_CUDA, .device = 0};
    CHECK_OK(cca_allocator_create(&(struct cca_options){.config = ""}, &place.allocator));
    return place;
}

static int64_t stat(const struct tensor_place *place, bool active) {
    struct allocator_stats stats;
    CHECK_OK(allocator_stats(place->allocator, 0, &stats));
    return active ? stats.active[ALLOCATOR_STAT_ALL].current
                  : stats.allocation[ALLOCATOR_STAT_ALL].current;
}

static void view_takes_no_block_and_keeps_its_storages(void) {
    struct tensor_place place = device_place();
    const float values[] = {1, 2, 3, 4, 5, 6};
    struct tensor self, row;
    CHECK_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, SIZES(2, 3), values, &self));
    BASE_CHECK_EQ(stat(&place, false), 1);
    CHECK_OK(tensor_select(self, 0, 1, &row));
    BASE_CHECK_EQ(stat(&place, false), 1); // a view takes no memory
    tensor_release(&self);
    BASE_CHECK_EQ(stat(&place, false), 1); // which it keeps
    tensor_release(&row);
    BASE_CHECK_EQ(stat(&place, false), 0);
    allocator_destroy(place.allocator);
}

static void storage_grows_on_the_device_and_keeps_its_bytes(void) {
    struct tensor_place place = device_place();
    const int32_t values[] = {1, 2, 3, 4};
    int32_t read[4] = {0};
    struct tensor self;
    CHECK_OK(tensor_from_bytes(&place, TENSOR_INT32, SIZES(4), values, &self));
    CHECK_OK(tensor_resize_(self, SIZES(1000), NULL));
    BASE_CHECK_EQ(stat(&place, false), 1); // the old block is free
    BASE_CHECK_EQ(cudaMemcpy(read, tensor_data(self), sizeof read, cudaMemcpyDeviceToHost),
                  cudaSuccess);
    BASE_CHECK_EQ(memcmp(read, values, sizeof read), 0);
    tensor_release(&self);
    BASE_CHECK_EQ(stat(&place, false), 0);
    allocator_destroy(place.allocator);
}

static void record_stream_through_a_slice_defers_the_whole_storage(void) {
    struct tensor_place place = device_place();
    cudaStream_t side;
    BASE_CHECK_EQ(cudaStreamCreate(&side), cudaSuccess);
    const float values[64] = {0};
    struct tensor self, slice;
    CHECK_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, SIZES(64), values, &self));
    CHECK_OK(tensor_slice(self, 0, 60, 64, 1, &slice));
    CHECK_OK(tensor_record_stream(slice, side));
    tensor_release(&slice);
    BASE_CHECK_EQ(stat(&place, false), 1);
    tensor_release(&self);
    BASE_CHECK_EQ(stat(&place, false), 0);
    BASE_CHECK_EQ(stat(&place, true), 1); // freed, but waits for the other stream
    CHECK_OK(allocator_empty_cache(place.allocator));
    BASE_CHECK_EQ(stat(&place, true), 0);
    BASE_CHECK_EQ(cudaStreamDestroy(side), cudaSuccess);
    allocator_destroy(place.allocator);
}

static void record_stream_is_nothing_for_what_no_device_allocator_owns(void) {
    struct tensor_place cpu = testing_place(), place = device_place();
    struct tensor host, empty;
    cudaStream_t side;
    BASE_CHECK_EQ(cudaStreamCreate(&side), cudaSuccess);
    host = testing_range(&cpu, TENSOR_FLOAT32, SIZES(4));
    CHECK_OK(tensor_record_stream(host, side));
    CHECK_OK(tensor_empty(&place, TENSOR_FLOAT32, SIZES(0), TENSOR_CONTIGUOUS, &empty));
    CHECK_OK(tensor_record_stream(empty, side));
    tensor_release(&host);
    tensor_release(&empty);
    BASE_CHECK_EQ(cudaStreamDestroy(side), cudaSuccess);
    allocator_destroy(place.allocator);
    testing_place_end(&cpu);
}

static void tensors_of_two_devices_do_not_mix(void) {
    struct tensor_place cpu = testing_place(), place = device_place();
    struct tensor host = testing_range(&cpu, TENSOR_FLOAT32, SIZES(4)), device, result;
    const float values[4] = {0};
    CHECK_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, SIZES(4), values, &device));
    CHECK_REFUSED(tensor_add(host, tensor_operand_tensor(device), tensor_integer(1), &result),
                  "found at least two devices, cpu and cuda:0!");
    CHECK_REFUSED(tensor_set_(host, device), "another device");
    CHECK_REFUSED(tensor_cat_out(host, &device, 1, 0), "Expected all tensors to be on the same");
    BASE_CHECK_EQ(testing_version(host), 0);
    tensor_release(&host);
    tensor_release(&device);
    allocator_destroy(place.allocator);
    testing_place_end(&cpu);
}

// A product of a matrix and its transposed one, by cuBLAS; a sum and a broadcast, by kernels; and
// the gradient of it all.
static void operators_and_gradients_run_on_the_device(void) {
    struct tensor_place place = device_place();
    const float values[] = {1, 2, 3, 4, 5, 6}, wanted[] = {15, 33, 33, 78};
    float read[6];
    struct tensor self, other, product, shifted, sum;
    CHECK_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, SIZES(2, 3), values, &self));
    CHECK_OK(tensor_set_requires_grad(self, true));
    CHECK_OK(tensor_transpose(self, 0, 1, &other));
    CHECK_OK(tensor_mm(self, other, &product));
    CHECK_OK(tensor_add(product, tensor_operand_integer(1), tensor_integer(1), &shifted));
    CHECK_OK(tensor_read(shifted, read));
    BASE_CHECK_EQ(memcmp(read, wanted, sizeof wanted), 0);
    CHECK_OK(tensor_sum(shifted, &sum));
    CHECK_OK(tensor_backward(sum, (struct tensor){NULL}, false));
    CHECK_OK(tensor_read(tensor_grad(self), read));
    for (int i = 0; i < 6; i++) // twice the sum of the other row and its own
        BASE_CHECK(read[i] == 2 * (values[i % 3] + values[3 + i % 3]));
    tensor_release(&self);
    tensor_release(&other);
    tensor_release(&product);
    tensor_release(&shifted);
    tensor_release(&sum);
    BASE_CHECK_EQ(stat(&place, false), 0);
    allocator_destroy(place.allocator);
}

static int64_t requests_so_far(const struct tensor_place *place) {
    struct allocator_stats stats;
    CHECK_OK(allocator_stats(place->allocator, 0, &stats));
    return stats.allocation[ALLOCATOR_STAT_ALL].allocated;
}

// Ones: each column comes to the number of rows. Divided among blocks it takes memory for the time.
static void long_sums_are_divided_and_give_their_memory_back(void) {
    enum { ROWS = 5003, COLUMNS = 37 };
    struct tensor_place place = device_place();
    struct tensor self, columns, all;
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(ROWS, COLUMNS), &self));
    const int64_t before = requests_so_far(&place);
    CHECK_OK(tensor_sum_dims(self, SIZES(0), false, &columns));
    BASE_CHECK_EQ(requests_so_far(&place) - before, 3); // the result, what parts leave, counters
    BASE_CHECK_EQ(stat(&place, false), 2);
    float values[COLUMNS], total;
    CHECK_OK(tensor_read(columns, values));
    for (int i = 0; i < COLUMNS; i++)
        BASE_CHECK_EQ(values[i], ROWS);
    CHECK_OK(tensor_sum(self, &all));
    CHECK_OK(tensor_read(all, &total));
    BASE_CHECK_EQ(total, ROWS * COLUMNS);
    tensor_release(&self);
    tensor_release(&columns);
    tensor_release(&all);
    BASE_CHECK_EQ(stat(&place, false), 0);
    allocator_destroy(place.allocator);
}

int main(void) {
    long_sums_are_divided_and_give_their_memory_back();
    operators_and_gradients_run_on_the_device();
    view_takes_no_block_and_keeps_its_storages();
    storage_grows_on_the_device_and_keeps_its_bytes();
    record_stream_through_a_slice_defers_the_whole_storage();
    record_stream_is_nothing_for_what_no_device_allocator_owns();
    tensors_of_two_devices_do_not_mix();
}
