// See processes.h. NVML is loaded when it is first asked, and where it is missing or refuses, the
// processes are not known: PyTorch does the same.
//
// The device is found by its UUID, not by its place on the bus: so what is no real device (the
// simulator's) never passes for one, and MIG devices are found, too.
#include "allocator/processes.h"

#include "allocator/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// NVML, as its nvml.h has it: the first versions of the three functions, which every driver
// exports.

#define NVML_SUCCESS 0
#define NVML_VALUE_NOT_AVAILABLE ULLONG_MAX
#define NVML_PROCESSES_MAX 256

struct nvml_process {
    unsigned int pid;
    unsigned long long used_bytes;
};

static struct nvml {
    int (*init)(void);
    int (*device_by_uuid)(const char *uuid, void **device);
    int (*processes)(void *device, unsigned int *count, struct nvml_process *processes);
    bool works;
} nvml;

static void load_function(void *library, const char *name, void *function) {
    void *const address = dlsym(library, name);
    memcpy(function, &address, sizeof address); // ISO C has no cast between the two kinds
}

static void load_nvml(void) {
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return;
    load_function(library, "nvmlInit_v2", &nvml.init);
    load_function(library, "nvmlDeviceGetHandleByUUID", &nvml.device_by_uuid);
    load_function(library, "nvmlDeviceGetComputeRunningProcesses", &nvml.processes);
    nvml.works = nvml.init != NULL && nvml.device_by_uuid != NULL && nvml.processes != NULL &&
                 nvml.init() == NVML_SUCCESS;
}

// NVML's name for a CUDA device, as KIND of device.
static void uuid_text(const cudaUUID_t *uuid, const char *kind, char text[48]) {
    char *position = text + sprintf(text, "%s-", kind);
    for (int byte = 0; byte < 16; ++byte)
        position += sprintf(position, "%s%02x",
                            byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-" : "",
                            (unsigned)(unsigned char)uuid->bytes[byte]);
}

static bool find_device(int ordinal, void **device) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    char uuid[48];
    uuid_text(&properties.uuid, "GPU", uuid);
    if (nvml.device_by_uuid(uuid, device) == NVML_SUCCESS) return true;
    uuid_text(&properties.uuid, "MIG", uuid);
    return nvml.device_by_uuid(uuid, device) == NVML_SUCCESS;
}

static bool list_by_nvml(void *context, int ordinal, struct cca_process *processes, size_t capacity,
                         size_t *count) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct nvml_process found[NVML_PROCESSES_MAX];
    unsigned int found_count = NVML_PROCESSES_MAX;
    void *device;
    (void)context;
    BASE_CHECK_EQ(pthread_once(&once, load_nvml), 0);
    if (!nvml.works || !find_device(ordinal, &device)) return false;
    if (nvml.processes(device, &found_count, found) != NVML_SUCCESS) return false;
    *count = 0;
    for (unsigned int index = 0; index < found_count && *count < capacity; ++index)
        // Where the driver keeps no books on processes, PyTorch prints 17179869184.00 GiB.
        if (found[index].used_bytes != NVML_VALUE_NOT_AVAILABLE)
            processes[(*count)++] = (struct cca_process){.number = found[index].pid,
                                                         .used_bytes = found[index].used_bytes};
    return true;
}

//------------------------------------------------------------------------------------------------

enum base_status cca_set_process_source(struct allocator *allocator,
                                        const struct cca_process_source *source) {
    const enum base_status status = cca__require_caching(allocator, "list of processes");
    if (status != BASE_OK) return status;
    cca__of(allocator)->process_source = source != NULL ? *source : (struct cca_process_source){0};
    return BASE_OK;
}

void cca__list_processes(const struct cca *cca, struct cca_out_of_memory *numbers) {
    const struct cca_process_source *const source = &cca->process_source;
    bool (*const list)(void *, int, struct cca_process *, size_t, size_t *) =
        source->list != NULL ? source->list : list_by_nvml;
    size_t count = 0;
    const bool known =
        list(source->context, numbers->device, numbers->processes, CCA_PROCESSES_MAX, &count);
    numbers->process_count = known && count <= CCA_PROCESSES_MAX ? count : 0;
}
