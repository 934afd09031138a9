// Handles, impls, storages: who owns what, and when it goes.
#include "base/thread.h"
#include "tensor/testing.h"

// Memory of the test's own, which notes when it is given back.
struct memory {
    float values[16];
    int freed;
};

static void memory_freed(void *context, void *data) {
    struct memory *memory = context;
    BASE_CHECK(data == memory->values);
    memory->freed++;
}

static struct tensor over(const struct tensor_place *place, struct memory *memory) {
    struct tensor self;
    CHECK_OK(tensor_from_memory(place, TENSOR_FLOAT32, SIZES(16), memory->values, memory_freed,
                                memory, &self));
    return self;
}

static void weak_handle_keeps_the_object_but_not_its_bytes(void) {
    struct tensor_place place = testing_place();
    struct memory memory = {0};
    struct tensor self = over(&place, &memory), locked = {0};
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 1);
    struct tensor_weak weak = tensor_weak(self), second = tensor_weak(self);
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 3);
    BASE_CHECK_EQ(tensor_count_strong_handles(self), 1);
    tensor_weak_release(&second);
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 2);
    BASE_CHECK(tensor_weak_lock(weak, &locked));
    BASE_CHECK_EQ(tensor_count_strong_handles(self), 2);
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 2);
    tensor_release(&locked);
    BASE_CHECK_EQ(memory.freed, 0);
    tensor_release(&self);
    BASE_CHECK_EQ(memory.freed, 1); // with the last strong handle
    BASE_CHECK(tensor_weak_expired(weak));
    BASE_CHECK(!tensor_weak_lock(weak, &locked));
    tensor_weak_release(&weak);
    BASE_CHECK_EQ(memory.freed, 1);
    testing_place_end(&place);
}

static void storage_goes_with_its_last_holder(void) {
    struct tensor_place place = testing_place();
    struct memory memory = {0};
    struct tensor self = over(&place, &memory), view;
    CHECK_OK(tensor_slice(self, 0, 2, 5, 1, &view));
    struct tensor_storage *storage = tensor_storage(self);
    struct tensor_storage_weak weak = tensor_storage_weak(storage);
    tensor_release(&self);
    tensor_release(&view);
    BASE_CHECK_EQ(memory.freed, 0);
    BASE_CHECK_EQ(tensor_storage_count(storage), 1);
    tensor_storage_release(&storage);
    BASE_CHECK_EQ(memory.freed, 1);
    BASE_CHECK(tensor_storage_weak_expired(weak));
    BASE_CHECK(tensor_storage_weak_lock(weak) == NULL);
    tensor_storage_weak_release(&weak);
    testing_place_end(&place);
}

static void view_keeps_its_base_and_not_the_views_between(void) {
    struct tensor_place place = testing_place();
    struct tensor base = testing_range(&place, TENSOR_FLOAT32, SIZES(6)), between, last;
    CHECK_OK(tensor_view(base, SIZES(2, 3), &between));
    CHECK_OK(tensor_select(between, 0, 1, &last));
    struct tensor_weak weak_base = tensor_weak(base), weak_between = tensor_weak(between);
    BASE_CHECK(tensor_is_same(tensor_base(last), base));
    tensor_release(&base);
    tensor_release(&between);
    BASE_CHECK(!tensor_weak_expired(weak_base));
    BASE_CHECK(tensor_weak_expired(weak_between));
    tensor_release(&last);
    BASE_CHECK(tensor_weak_expired(weak_base));
    tensor_weak_release(&weak_base);
    tensor_weak_release(&weak_between);
    testing_place_end(&place);
}

static void alias_outlives_the_tensor_whose_counter_it_shares(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(6)), alias, second, view;
    CHECK_OK(tensor_detach(self, &alias));
    CHECK_OK(tensor_detach(alias, &second));
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 1); // of the program's own there is none
    struct tensor_weak weak = tensor_weak(self);
    BASE_CHECK_EQ(tensor_count_weak_handles(self), 2);
    CHECK_OK(tensor_zero_(self));
    tensor_release(&self);
    BASE_CHECK(tensor_weak_expired(weak));
    tensor_weak_release(&weak);
    BASE_CHECK_EQ(testing_version(second), 1);
    CHECK_OK(tensor_select(second, 0, 1, &view));
    tensor_release(&second);
    CHECK_OK(tensor_zero_(view));
    BASE_CHECK_EQ(testing_version(alias), 2);
    tensor_release(&alias);
    CHECK_OK(tensor_zero_(view));
    BASE_CHECK_EQ(testing_version(view), 3);
    tensor_release(&view);
    testing_place_end(&place);
}

static void foreign_memory_cannot_be_resized(void) {
    struct tensor_place place = testing_place();
    struct memory memory = {.values = {7}};
    struct tensor self = over(&place, &memory);
    struct tensor_storage *storage = tensor_storage(self);
    BASE_CHECK(!tensor_storage_is_resizable(storage));
    CHECK_REFUSED(tensor_storage_resize(storage, 128), "not resizable");
    CHECK_REFUSED(tensor_resize_(self, SIZES(17), NULL), "not resizable");
    BASE_CHECK_EQ(tensor_numel(self), 16);
    BASE_CHECK_EQ(testing_version(self), 0);
    CHECK_OK(tensor_resize_(self, SIZES(3), NULL)); // fits
    tensor_storage_release(&storage);
    tensor_release(&self);
    BASE_CHECK_EQ(memory.freed, 1);
    testing_place_end(&place);
}

// Views and handles come and go on four threads; the storage is given back once, at the end.
static void handles_are_passed_around(void *argument) {
    const struct tensor self = *(struct tensor *)argument;
    for (int round = 0; round < 4000; round++) {
        struct tensor handle = tensor_retain(self), view, locked;
        CHECK_OK(tensor_slice(handle, 0, round % 8, 16, 1, &view));
        struct tensor_weak weak = tensor_weak(view);
        BASE_CHECK(tensor_weak_lock(weak, &locked));
        tensor_release(&view);
        tensor_release(&locked);
        BASE_CHECK(tensor_weak_expired(weak));
        tensor_weak_release(&weak);
        tensor_release(&handle);
    }
}

static void counts_hold_on_several_threads(void) {
    struct tensor_place place = testing_place();
    struct memory memory = {0};
    struct tensor self = over(&place, &memory);
    struct base_thread threads[4];
    for (int index = 0; index < 4; index++)
        base_thread_start(&threads[index], handles_are_passed_around, &self);
    for (int index = 0; index < 4; index++)
        base_thread_join(&threads[index]);
    BASE_CHECK_EQ(tensor_count_strong_handles(self), 1);
    BASE_CHECK_EQ(memory.freed, 0);
    tensor_release(&self);
    BASE_CHECK_EQ(memory.freed, 1);
    testing_place_end(&place);
}

static void host_allocator_refuses_what_is_not_its_own(void) {
    struct tensor_place place = testing_place();
    int foreign = 0;
    void *block;
    CHECK_REFUSED(allocator_free(place.allocator, &foreign), "is no block of it");
    CHECK_OK(allocator_malloc(place.allocator, 0, 100, NULL, &block));
    for (int byte = 0; byte < 100; byte++)
        BASE_CHECK_EQ(((char *)block)[byte], 0);
    BASE_CHECK_EQ(testing_live_blocks(&place), 1);
    CHECK_OK(allocator_free(place.allocator, block));
    CHECK_REFUSED(allocator_free(place.allocator, block), "is no block of it");
    CHECK_REFUSED(allocator_malloc(place.allocator, 0, SIZE_MAX, NULL, &block), "no memory");
    testing_place_end(&place);
}

int main(void) {
    weak_handle_keeps_the_object_but_not_its_bytes();
    storage_goes_with_its_last_holder();
    view_keeps_its_base_and_not_the_views_between();
    alias_outlives_the_tensor_whose_counter_it_shares();
    foreign_memory_cannot_be_resized();
    counts_hold_on_several_threads();
    host_allocator_refuses_what_is_not_its_own();
}
