// A stand-in for NVML's library, found by processes_test through LD_LIBRARY_PATH: it knows the
// simulator's second device only, and three processes on it.
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct process {
    unsigned int pid;
    unsigned long long used_bytes;
};

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count,
                                         struct process *processes);

static int known;

int nvmlInit_v2(void) { return 0; }

// "tidemark-sim-001" as hexadecimal digits, as NVML writes the identity of a device.
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    if (strcmp(uuid, "GPU-74696465-6d61-726b-2d73-696d2d303031") != 0) return 6; // not found
    *device = &known;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count,
                                         struct process *processes) {
    if (device != &known) return 2; // invalid argument
    if (*count < 3) {
        *count = 3;
        return 7; // insufficient size
    }
    processes[0] = (struct process){4242, 3ull << 30};
    processes[1] = (struct process){(unsigned int)getpid(), 700ull << 20};
    processes[2] = (struct process){4243, ULLONG_MAX}; // not available
    *count = 3;
    return 0;
}
