// See pin.h.
#include "bench/pin.h"

#include "base/check.h"
#include "base/size.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Read once and kept: threads inherit their creator's binding, so a later look would see one core
// only.
static struct {
    hwloc_topology_t topology; // NULL if hwloc failed
    hwloc_bitmap_t cores;      // usable CPUs, the first one of each core
} machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void machine_load(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return;
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    BASE_CHECK(usable != NULL);
    if (hwloc_topology_load(topology) != 0) {
        hwloc_bitmap_free(usable);
        hwloc_topology_destroy(topology);
        return;
    }
    if (hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD) != 0 ||
        hwloc_bitmap_iszero(usable))
        hwloc_bitmap_copy(usable, hwloc_topology_get_topology_cpuset(topology));
    hwloc_bitmap_singlify_per_core(topology, usable, 0);
    machine.cores = usable;
    machine.topology = topology;
}

static hwloc_topology_t machine_topology(void) {
    BASE_CHECK_EQ(pthread_once(&machine_once, machine_load), 0);
    return machine.topology;
}

int bench_core_count(void) {
    const int count = machine_topology() == NULL ? 0 : hwloc_bitmap_weight(machine.cores);
    return count < 1 ? 1 : count;
}

static int core_cpu(int index) {
    int skip = bench_core_count() - 1 - index % bench_core_count();
    int cpu = hwloc_bitmap_first(machine.cores);
    while (skip-- > 0) cpu = hwloc_bitmap_next(machine.cores, cpu);
    return cpu;
}

enum base_status bench_pin_thread(int index, int *cpu) {
    hwloc_topology_t topology = machine_topology();
    if (topology == NULL)
        return base_status_set(BASE_ENVIRONMENT,
                               "threads are not bound: hwloc cannot read the topology");
    const int wanted = core_cpu(index);
    hwloc_bitmap_t set = hwloc_bitmap_alloc(), before = hwloc_bitmap_alloc();
    BASE_CHECK(set != NULL && before != NULL && wanted >= 0);
    const bool known = hwloc_get_cpubind(topology, before, HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_only(set, (unsigned)wanted);
    enum base_status status = BASE_OK;
    if (hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD | HWLOC_CPUBIND_STRICT) != 0) {
        status =
            base_status_set(BASE_ENVIRONMENT, "threads are not bound: binding to CPU %d failed: %s",
                            wanted, strerror(errno));
    } else if (hwloc_get_last_cpu_location(topology, set, HWLOC_CPUBIND_THREAD) != 0 ||
               !hwloc_bitmap_isset(set, (unsigned)wanted)) {
        // The system took the call and ignored it, as some sandboxes do.
        if (known) hwloc_set_cpubind(topology, before, HWLOC_CPUBIND_THREAD);
        status =
            base_status_set(BASE_ENVIRONMENT,
                            "threads are not bound: CPU %d was asked for and is not used", wanted);
    } else {
        *cpu = wanted;
    }
    hwloc_bitmap_free(set);
    hwloc_bitmap_free(before);
    return status;
}

// snprintf at the end of BUFFER; cut when full.
static void append(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *buffer, size_t size, const char *format, ...) {
    const size_t length = strlen(buffer);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer + length, size - length, format, arguments);
    va_end(arguments);
}

static void append_count(char *buffer, size_t size, hwloc_obj_type_t type, const char *noun) {
    const int count = hwloc_get_nbobjs_by_type(machine.topology, type);
    if (count > 0) append(buffer, size, "%d %s%s, ", count, noun, count == 1 ? "" : "s");
}

void bench_topology_line(char *buffer, size_t size) {
    hwloc_topology_t topology = machine_topology();
    if (topology == NULL) {
        snprintf(buffer, size, "unknown");
        return;
    }
    static const struct {
        hwloc_obj_type_t type;
        const char *name;
    } caches[] = {{HWLOC_OBJ_L1CACHE, "L1d"}, {HWLOC_OBJ_L2CACHE, "L2"}, {HWLOC_OBJ_L3CACHE, "L3"}};
    char text[BASE_SIZE_TEXT];
    buffer[0] = '\0';
    append_count(buffer, size, HWLOC_OBJ_PACKAGE, "package");
    append_count(buffer, size, HWLOC_OBJ_CORE, "core");
    append_count(buffer, size, HWLOC_OBJ_PU, "thread");
    append_count(buffer, size, HWLOC_OBJ_NUMANODE, "NUMA node");
    // Not hwloc's sum over NUMA nodes: in some sandboxes the nodes' files and the machine's
    // disagree.
    const uint64_t memory_bytes =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    append(buffer, size, "%s", base_size_format(memory_bytes, text));
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, caches[i].type, 0);
        if (cache != NULL)
            append(buffer, size, ", %s %s", caches[i].name,
                   base_size_format(cache->attr->cache.size, text));
    }
}
