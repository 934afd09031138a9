// Who holds the memory of a device, by NVML (nvml_stand_in.c stands in for its library).
#include "allocator/testing.h"

static struct cca_out_of_memory last;
static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    (void)context;
    last = *numbers;
}

static void exhaust(struct allocator *allocator, int device) {
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, device, 2 * BASE_GIB, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
}

static bool list_nobody(void *context, int device, struct cca_process *processes, size_t capacity,
                        size_t *count) {
    (void)context;
    (void)device;
    (void)processes;
    (void)capacity;
    (void)count;
    return false;
}

static void nvml_names_the_processes_of_the_device_it_knows(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .device_count = 2, .capacity_bytes = BASE_GIB, .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = ""}, &allocator), BASE_OK);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){.event = on_out_of_memory}),
                  BASE_OK);
    exhaust(allocator, 1);
    BASE_CHECK_EQ(last.process_count, 2);
    BASE_CHECK_EQ(last.processes[0].number, 4242);
    BASE_CHECK_EQ(last.processes[0].used_bytes, 3 * BASE_GIB);
    BASE_CHECK_EQ(last.processes[1].used_bytes, 700 * BASE_MIB);
    // In NVML's order; the one whose memory nobody counts is no 17179869184.00 GiB.
    BASE_CHECK(testing_message_has("is free. Process 4242 has 3.00 GiB memory in use. Including "
                                   "non-PyTorch memory, this process has 700.00 MiB memory in "
                                   "use. Of the allocated memory"));
    BASE_CHECK(!testing_message_has("4243"));

    exhaust(allocator, 0);
    BASE_CHECK_EQ(last.process_count, 0);
    BASE_CHECK(testing_message_has("1024.00 MiB is free. Of the allocated memory"));

    // Another source stands in for it, also one that knows nothing; without one it is NVML again.
    BASE_CHECK_EQ(
        cca_set_process_source(allocator, &(struct cca_process_source){.list = list_nobody}),
        BASE_OK);
    exhaust(allocator, 1);
    BASE_CHECK_EQ(last.process_count, 0);
    BASE_CHECK_EQ(cca_set_process_source(allocator, NULL), BASE_OK);
    exhaust(allocator, 1);
    BASE_CHECK_EQ(last.process_count, 2);
    allocator_destroy(allocator);
}

int main(void) {
    nvml_names_the_processes_of_the_device_it_knows();
    return 0;
}
