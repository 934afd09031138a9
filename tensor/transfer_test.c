// Copies between places, of any shapes, strides and types, blocking or not, under every schedule
// and with the race checker on: each element against a plain loop. And who waits, which device is
// the current one, where gradients go.
//
//     transfer_test [SEED [COUNT]]
#include "allocator/cca.h"
#include "base/random.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "tensor/nn.h"
#include "tensor/pinned_allocator.h"
#include "tensor/testing.h"

#include <stdlib.h>

#define DEVICES 3
#define PLACES (DEVICES + 2) // plain host memory, page-locked memory, the devices
#define SIDE_MAX 12
#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

static struct tensor_place places[PLACES];
static cudaStream_t side_streams[DEVICES];

static void places_init(const char *schedule) {
    struct allocator *caching;
    CHECK_OK(sim_schedule(schedule));
    CHECK_OK(sim_configure(&(struct sim_options){.device_count = DEVICES}));
    places[0] = testing_place();
    places[1] = (struct tensor_place){.kind = TENSOR_CPU};
    CHECK_OK(tensor_pinned_allocator_create(&places[1].allocator));
    CHECK_OK(cca_allocator_create(&(struct cca_options){.config = ""}, &caching));
    for (int device = 0; device < DEVICES; ++device) {
        places[2 + device] = (struct tensor_place){caching, TENSOR_CUDA, device};
        CUDA(cudaSetDevice(device));
        CUDA(cudaStreamCreateWithFlags(&side_streams[device], cudaStreamNonBlocking));
    }
    CUDA(cudaSetDevice(0));
}

static void places_end(void) {
    for (int device = 0; device < DEVICES; ++device) {
        struct allocator_stats stats;
        CHECK_OK(allocator_stats(places[2].allocator, device, &stats));
        BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
        tensor_set_stream(device, NULL);
        CUDA(cudaSetDevice(device));
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaStreamDestroy(side_streams[device]));
    }
    CUDA(cudaSetDevice(0));
    allocator_destroy(places[2].allocator);
    testing_place_end(&places[1]);
    testing_place_end(&places[0]);
}

static void current_is(int device) {
    int current;
    CUDA(cudaGetDevice(&current));
    BASE_CHECK_EQ(current, device);
}

//------------------------------------------------------------------------------------------------
// Random copies. An array of twice the sides of a view of it.

enum form { PLAIN, EVERY_SECOND, TURNED, FORM_COUNT };

struct sides {
    int64_t rows, columns; // of the view
};

// Where element (ROW, COLUMN) of the view lies in the array.
static int64_t index_of(enum form form, struct sides sides, int64_t row, int64_t column) {
    if (form == EVERY_SECOND) return 2 * row * 2 * sides.columns + 2 * column;
    if (form == TURNED) return column * 2 * sides.rows + row;
    return row * 2 * sides.columns + column;
}

static struct tensor view_of(struct tensor array, enum form form, struct sides sides) {
    struct tensor turned, rows, view;
    const int64_t step = form == EVERY_SECOND ? 2 : 1;
    if (form == TURNED)
        CHECK_OK(tensor_transpose(array, 0, 1, &turned));
    else
        turned = tensor_retain(array);
    CHECK_OK(tensor_slice(turned, 0, 0, step * sides.rows, step, &rows));
    CHECK_OK(tensor_slice(rows, 1, 0, step * sides.columns, step, &view));
    tensor_release(&turned);
    tensor_release(&rows);
    return view;
}

static struct tensor array_make(const struct tensor_place *place, enum tensor_type type,
                                enum form form, struct sides sides, bool is_numbered) {
    const bool is_turned = form == TURNED;
    const int64_t shape[] = {2 * (is_turned ? sides.columns : sides.rows),
                             2 * (is_turned ? sides.rows : sides.columns)};
    struct tensor numbers, array;
    CHECK_OK(is_numbered
                 ? tensor_arange(&places[0], type, 0, (double)(shape[0] * shape[1]), 1, &numbers)
                 : tensor_zeros(&places[0], type, (int64_t[]){shape[0] * shape[1]}, 1, &numbers));
    int32_t bytes[8 * SIDE_MAX * SIDE_MAX];
    CHECK_OK(tensor_read(numbers, bytes));
    CHECK_OK(tensor_from_bytes(place, type, shape, 2, bytes, &array));
    tensor_release(&numbers);
    return array;
}

static enum form form_draw(struct base_random *random) {
    return (enum form)base_random_below(random, FORM_COUNT);
}

static enum tensor_type type_draw(struct base_random *random) {
    static const enum tensor_type types[] = {TENSOR_INT32, TENSOR_FLOAT32};
    return types[base_random_below(random, 2)];
}

static const struct tensor_place *place_draw(struct base_random *random) {
    return &places[base_random_below(random, PLACES)];
}

// The whole array: what was copied, and 0 elsewhere.
static void array_check(struct tensor array, enum form to_form, enum form from_form,
                        struct sides sides) {
    struct tensor whole;
    int64_t wanted[4 * SIDE_MAX * SIDE_MAX] = {0}, found[4 * SIDE_MAX * SIDE_MAX];
    for (int64_t row = 0; row < sides.rows; ++row)
        for (int64_t column = 0; column < sides.columns; ++column)
            wanted[index_of(to_form, sides, row, column)] = index_of(from_form, sides, row, column);
    CHECK_OK(tensor_to(array, TENSOR_INT64, TENSOR_CONTIGUOUS, &whole));
    CHECK_OK(tensor_read(whole, found));
    for (int64_t index = 0; index < tensor_numel(array); ++index)
        BASE_CHECK_EQ(found[index], wanted[index]);
    tensor_release(&whole);
}

static void streams_draw(struct base_random *random) {
    for (int device = 0; device < DEVICES; ++device)
        tensor_set_stream(device, base_random_chance(random, 0.5) ? side_streams[device] : NULL);
    CUDA(cudaSetDevice((int)base_random_below(random, DEVICES)));
}

static void devices_wait(int current) {
    for (int device = 0; device < DEVICES; ++device) {
        CUDA(cudaSetDevice(device));
        CUDA(cudaDeviceSynchronize());
    }
    CUDA(cudaSetDevice(current));
}

// From a place to another one, and on to a third, the tensors between dropped at once.
static void copies_are_exact(struct base_random *random) {
    const struct sides sides = {1 + (int64_t)base_random_below(random, SIDE_MAX),
                                1 + (int64_t)base_random_below(random, SIDE_MAX)};
    const enum form from_form = form_draw(random), to_form = form_draw(random);
    const bool non_blocking = base_random_chance(random, 0.5);
    const struct tensor_place *const between = place_draw(random);
    int current;
    streams_draw(random);
    CUDA(cudaGetDevice(&current));
    struct tensor from = array_make(place_draw(random), type_draw(random), from_form, sides, true);
    struct tensor to = array_make(place_draw(random), type_draw(random), to_form, sides, false);
    struct tensor from_view = view_of(from, from_form, sides);
    struct tensor to_view = view_of(to, to_form, sides), moved;
    CHECK_OK(tensor_zero_(to)); // work of its stream, which the copy has to come behind
    CHECK_OK(tensor_to_place(from_view, between, non_blocking, &moved));
    tensor_release(&from);
    tensor_release(&from_view);
    if (non_blocking && between->kind == TENSOR_CPU) // what is there only when the stream says so
        devices_wait(current);
    CHECK_OK(non_blocking ? tensor_copy_non_blocking_(to_view, moved)
                          : tensor_copy_(to_view, moved));
    tensor_release(&moved);
    BASE_CHECK_EQ(testing_version(to), 2);
    current_is(current);
    devices_wait(current);
    array_check(to, to_form, from_form, sides);
    tensor_release(&to_view);
    tensor_release(&to);
}

static void random_copies_are_exact(uint64_t seed, int count) {
    static const char *const schedules[] = {"eager", "lazy", "random:3"};
    for (int schedule = 0; schedule < 3; ++schedule) {
        places_init(schedules[schedule]);
        CHECK_OK(sim_race_start(&(struct sim_race_options){.fail = true}));
        for (int index = 0; index < count; ++index) {
            struct base_random random = base_random_init(seed + (uint64_t)index, "transfer");
            base_check_context("%s, seed %llu", schedules[schedule],
                               (unsigned long long)seed + (unsigned long long)index);
            copies_are_exact(&random);
        }
        sim_race_stop();
        places_end();
    }
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Who waits.

static void only_page_locked_memory_lets_the_host_go_on(void) {
    places_init("eager");
    struct tensor device = testing_range(&places[0], TENSOR_INT32, SIZES(8)), pinned, plain;
    struct tensor source;
    int32_t found[8];
    CHECK_OK(tensor_to_place(device, &places[2], false, &source));
    CHECK_OK(tensor_zeros(&places[1], TENSOR_INT32, SIZES(8), &pinned));
    CHECK_OK(tensor_zeros(&places[0], TENSOR_INT32, SIZES(8), &plain));
    BASE_CHECK(tensor_is_pinned(pinned));
    BASE_CHECK(!tensor_is_pinned(plain));
    BASE_CHECK(!tensor_is_pinned(source));
    tensor_set_stream(0, side_streams[0]);
    sim_stream_hold(side_streams[0], true);
    CHECK_OK(tensor_copy_non_blocking_(pinned, source));
    BASE_CHECK_GT(sim_stream_pending(side_streams[0]), 0);
    BASE_CHECK_EQ(((int32_t *)tensor_data(pinned))[7], 0); // not there yet
    CHECK_OK(tensor_copy_non_blocking_(plain, source));
    BASE_CHECK_EQ(sim_stream_pending(side_streams[0]), 0);
    CHECK_OK(tensor_read(pinned, found));
    BASE_CHECK_EQ(found[7], 7);
    CHECK_OK(tensor_read(plain, found));
    BASE_CHECK_EQ(found[7], 7);
    CHECK_OK(tensor_zero_(pinned));
    CHECK_OK(tensor_copy_(pinned, source));
    BASE_CHECK_EQ(sim_stream_pending(side_streams[0]), 0);
    sim_stream_hold(side_streams[0], false);
    tensor_release(&device);
    tensor_release(&source);
    tensor_release(&pinned);
    tensor_release(&plain);
    places_end();
}

// A page-locked source is dropped while its copy is pending: its memory is not handed out again
// before the copy has read it.
static void a_dropped_source_is_kept_for_its_copy(void) {
    places_init("lazy");
    const int32_t first[] = {1, 2, 3, 4}, second[] = {5, 6, 7, 8};
    struct tensor source, other, to;
    int32_t found[4];
    tensor_set_stream(0, side_streams[0]);
    CHECK_OK(tensor_from_bytes(&places[1], TENSOR_INT32, SIZES(4), first, &source));
    CHECK_OK(tensor_empty(&places[2], TENSOR_INT32, SIZES(4), TENSOR_CONTIGUOUS, &to));
    CHECK_OK(tensor_copy_non_blocking_(to, source));
    const void *const memory = tensor_data(source);
    tensor_release(&source);
    CHECK_OK(tensor_from_bytes(&places[1], TENSOR_INT32, SIZES(4), second, &other));
    BASE_CHECK(tensor_data(other) != memory);
    CHECK_OK(tensor_read(to, found));
    BASE_CHECK_EQ(found[0], 1);
    tensor_release(&other);
    CHECK_OK(tensor_from_bytes(&places[1], TENSOR_INT32, SIZES(4), second, &other));
    tensor_release(&other);
    tensor_release(&to);
    places_end();
}

//------------------------------------------------------------------------------------------------
// Devices.

static void operators_work_on_devices_that_are_not_current(void) {
    places_init("random:1");
    for (int device = 0; device < DEVICES; ++device) {
        const float values[] = {1, 2, 3, 4, 5, 6};
        float products[4];
        struct tensor self, doubled, sum, product, rows;
        struct tensor_scalar found;
        CUDA(cudaSetDevice((device + 1) % DEVICES));
        CHECK_OK(
            tensor_from_bytes(&places[2 + device], TENSOR_FLOAT32, SIZES(2, 3), values, &self));
        CHECK_OK(tensor_add(self, tensor_operand_tensor(self), tensor_integer(1), &doubled));
        CHECK_OK(tensor_resize_(doubled, SIZES(1000, 3), NULL)); // grows: copied on its device
        CHECK_OK(tensor_narrow(doubled, 0, 0, 2, &sum));
        tensor_release(&doubled);
        CHECK_OK(tensor_sum(sum, &doubled));
        CHECK_OK(tensor_item(doubled, &found));
        BASE_CHECK(found.floating == 42);
        tensor_release(&doubled);
        CHECK_OK(tensor_transpose(self, 0, 1, &doubled));
        CHECK_OK(tensor_mm(self, doubled, &product)); // by cuBLAS
        CHECK_OK(tensor_softmax(product, 1, &rows));  // by a kernel of rows
        CHECK_OK(tensor_read(product, products));
        BASE_CHECK(products[0] == 14 && products[1] == 32 && products[3] == 77);
        tensor_release(&product);
        tensor_release(&rows);
        current_is((device + 1) % DEVICES);
        tensor_release(&self);
        tensor_release(&doubled);
        tensor_release(&sum);
    }
    places_end();
}

// y = 2 x over there, z = sum: the gradient comes back to where x is.
static void gradients_travel_back(void) {
    places_init("eager");
    for (int by_copy = 0; by_copy < 2; ++by_copy) {
        struct tensor x = testing_range(&places[0], TENSOR_FLOAT32, SIZES(3)), there, twice, sum;
        float found[3];
        CHECK_OK(tensor_set_requires_grad(x, true));
        if (by_copy) {
            CHECK_OK(tensor_zeros(&places[3], TENSOR_FLOAT32, SIZES(3), &there));
            CHECK_OK(tensor_copy_(there, x));
        } else {
            CHECK_OK(tensor_to_place(x, &places[3], true, &there));
        }
        CHECK_OK(tensor_mul(there, tensor_operand_integer(2), &twice));
        CHECK_OK(tensor_sum(twice, &sum));
        CHECK_OK(tensor_backward(sum, (struct tensor){NULL}, false));
        BASE_CHECK_EQ(tensor_place(tensor_grad(x)).kind, TENSOR_CPU);
        CHECK_OK(tensor_read(tensor_grad(x), found));
        BASE_CHECK(found[0] == 2 && found[2] == 2);
        tensor_release(&x);
        tensor_release(&there);
        tensor_release(&twice);
        tensor_release(&sum);
    }
    places_end();
}

static void a_place_that_it_is_in_is_no_copy(void) {
    places_init("eager");
    struct tensor self = testing_range(&places[0], TENSOR_FLOAT32, SIZES(3)), same, pinned;
    CHECK_OK(tensor_to_place(self, &places[0], false, &same));
    BASE_CHECK(tensor_is_same(self, same));
    CHECK_OK(tensor_to_place(self, &places[1], false, &pinned)); // other memory of the host
    BASE_CHECK(tensor_is_pinned(pinned));
    tensor_release(&self);
    tensor_release(&same);
    tensor_release(&pinned);
    places_end();
}

// Of a copy that fails nothing is left, and nothing was counted as a write.
static void a_refused_copy_leaves_nothing(void) {
    places_init("eager");
    struct tensor host = testing_range(&places[0], TENSOR_INT32, SIZES(4, 4)), turned, to;
    CHECK_OK(tensor_zeros(&places[2], TENSOR_INT32, SIZES(4, 4), &to));
    CHECK_OK(tensor_transpose(host, 0, 1, &turned));
    sim_fault_next(SIM_CALL_MEMCPY, 1, cudaErrorInvalidValue);
    CHECK_REFUSED(tensor_copy_(to, turned), "cudaMemcpyAsync: cudaErrorInvalidValue");
    BASE_CHECK_EQ(testing_version(to), 0);
    tensor_host_allocator_fail_at(places[0].allocator, 1); // the rows that are to be sent
    CHECK_REFUSED(tensor_copy_(to, turned),
                  "copy_(int32 [4, 4], int32 [4, 4]): host allocator: no");
    BASE_CHECK_EQ(testing_version(to), 0);
    BASE_CHECK_EQ(testing_live_blocks(&places[0]), 1);
    tensor_release(&host);
    tensor_release(&turned);
    tensor_release(&to);
    places_end();
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : 300;
    printf("seed %llu\n", (unsigned long long)seed);
    random_copies_are_exact(seed, count);
    only_page_locked_memory_lets_the_host_go_on();
    a_dropped_source_is_kept_for_its_copy();
    operators_work_on_devices_that_are_not_current();
    gradients_travel_back();
    a_place_that_it_is_in_is_no_copy();
    a_refused_copy_leaves_nothing();
    return 0;
}
