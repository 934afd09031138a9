// Arguments and results as text that is the same in each run: addresses in device memory as device
// and offset, handles as numbers in order of creation, host addresses as numbers in order of first
// use.
#include "simulator/transcript.h"

#include "base/address_map.h"
#include "simulator/blas.h"
#include "simulator/graph.h"
#include "simulator/replay.h"
#include "simulator/user_object.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE_FIRST 256

// Handles of before the machine's start have lower serials.
static uint64_t stream_serial_start, event_serial_start, graph_serial_start, exec_serial_start,
    object_serial_start, blas_serial_start;
static struct base_address_map host_addresses;

// --- Text ---

void sim__text_add(struct sim__text *text, const char *format, ...) {
    va_list arguments;
    for (;;) {
        const size_t room = text->size - text->length;
        va_start(arguments, format);
        const int length = vsnprintf(room > 0 ? text->bytes + text->length : NULL, room, format,
                                     arguments);
        va_end(arguments);
        if (length < 0 || (size_t)length < room) {
            text->length += length < 0 ? 0 : (size_t)length;
            return;
        }
        size_t size = text->size == 0 ? TEXT_SIZE_FIRST : text->size;
        while (size <= text->length + (size_t)length)
            size *= 2;
        char *bytes = realloc(text->bytes, size);
        if (bytes == NULL)
            return;
        text->bytes = bytes;
        text->size = size;
    }
}

void sim__text_deinit(struct sim__text *text) {
    free(text->bytes);
    *text = (struct sim__text){NULL, 0, 0};
}

// --- Values ---

static void name_add(struct sim__text *text, const char *name) {
    sim__text_add(text, "%s%s=", text->length > 0 ? ", " : "", name);
}

void sim__value_name(struct sim__text *text, const char *name) {
    sim__text_add(text, "%s%s", text->length > 0 ? ", " : "", name);
}

void sim__value_number(struct sim__text *text, const char *name, long long value) {
    name_add(text, name);
    sim__text_add(text, "%lld", value);
}

void sim__value_real(struct sim__text *text, const char *name, double value) {
    name_add(text, name);
    sim__text_add(text, "%.9g", value);
}

void sim__value_text(struct sim__text *text, const char *name, const char *value) {
    name_add(text, name);
    sim__text_add(text, value == NULL ? "NULL" : "\"%s\"", value);
}

// The number of a handle among those of its table since the machine's start; 0: it is none.
static uint64_t handle_number(const struct sim__handle_table *table, uint64_t handle,
                              uint64_t serial_start) {
    const uint64_t serial = handle << 8 >> 8 >> SIM__HANDLE_SLOT_BITS;
    return handle >> 56 == table->tag && serial > serial_start ? serial - serial_start : 0;
}

static void handle_add(struct sim__text *text, const struct sim__handle_table *table,
                       const void *handle, uint64_t serial_start) {
    const uint64_t number = handle_number(table, (uint64_t)(uintptr_t)handle, serial_start);
    if (number > 0)
        sim__text_add(text, "%llu", (unsigned long long)number);
    else
        sim__text_add(text, "0x%llx", (unsigned long long)(uintptr_t)handle);
}

void sim__value_stream(struct sim__text *text, const char *name, const void *stream) {
    name_add(text, name);
    if (stream == NULL || stream == cudaStreamLegacy)
        sim__text_add(text, "legacy");
    else if (stream == cudaStreamPerThread)
        sim__text_add(text, "per-thread");
    else
        handle_add(text, &sim__state.streams, stream, stream_serial_start);
}

void sim__value_event(struct sim__text *text, const char *name, const void *event) {
    name_add(text, name);
    if (event == NULL)
        sim__text_add(text, "NULL");
    else
        handle_add(text, &sim__state.events, event, event_serial_start);
}

static void table_handle_value(struct sim__text *text, const char *name,
                               const struct sim__handle_table *table, const void *handle,
                               uint64_t serial_start) {
    name_add(text, name);
    if (handle == NULL)
        sim__text_add(text, "NULL");
    else
        handle_add(text, table, handle, serial_start);
}

void sim__value_graph(struct sim__text *text, const char *name, const void *graph) {
    table_handle_value(text, name, &sim__graphs, graph, graph_serial_start);
}

void sim__value_exec(struct sim__text *text, const char *name, const void *exec) {
    table_handle_value(text, name, &sim__execs, exec, exec_serial_start);
}

void sim__value_object(struct sim__text *text, const char *name, const void *object) {
    table_handle_value(text, name, &sim__user_objects, object, object_serial_start);
}

void sim__value_blas(struct sim__text *text, const char *name, const void *handle) {
    table_handle_value(text, name, &sim__blas_handles, handle, blas_serial_start);
}

void sim__value_node(struct sim__text *text, const char *name, const void *handle) {
    const struct sim__node *node =
        sim__handle_find(&sim__nodes, (uint64_t)(uintptr_t)handle);
    name_add(text, name);
    if (node != NULL)
        sim__text_add(text, "%llu.%llu", (unsigned long long)node->graph->number,
                      (unsigned long long)node->number);
    else if (handle == NULL)
        sim__text_add(text, "NULL");
    else
        sim__text_add(text, "0x%llx", (unsigned long long)(uintptr_t)handle);
}

static const struct sim__device *device_of(uint64_t address) {
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        const struct sim__device *device = &sim__state.devices[i];
        if (address >= device->addresses_start && address < device->addresses_end)
            return device;
    }
    return NULL;
}

// Page-locked memory by its start and an offset; other memory is not known.
static void host_address_add(struct sim__text *text, uint64_t address) {
    const struct sim__range *pinned = sim__range_at(&sim__state.host_ranges, address);
    const uint64_t start = pinned != NULL ? pinned->start : address;
    uint64_t number;
    if (!base_address_map_get(&host_addresses, start, &number)) {
        number = host_addresses.count + 1;
        if (base_address_map_set(&host_addresses, start, number) != BASE_OK)
            number = 0;
    }
    sim__text_add(text, "host%llu", (unsigned long long)number);
    if (address > start)
        sim__text_add(text, "+0x%llx", (unsigned long long)(address - start));
}

// With numerics off device addresses are plain numbers, the same in each run.
void sim__value_address(struct sim__text *text, const char *name, uint64_t address) {
    name_add(text, name);
    const struct sim__device *device = device_of(address);
    if (address == 0)
        sim__text_add(text, "NULL");
    else if (device == NULL)
        host_address_add(text, address);
    else if (sim__state.options.numerics == SIM_NUMERICS_OFF)
        sim__text_add(text, "0x%llx", (unsigned long long)address);
    else
        sim__text_add(text, "d%d+0x%llx", device->index,
                      (unsigned long long)(address - device->addresses_start));
}

void sim__value_kind(struct sim__text *text, const char *name, enum cudaMemcpyKind kind) {
    static const char *const names[] = {
        [cudaMemcpyHostToHost] = "HostToHost",     [cudaMemcpyHostToDevice] = "HostToDevice",
        [cudaMemcpyDeviceToHost] = "DeviceToHost", [cudaMemcpyDeviceToDevice] = "DeviceToDevice",
        [cudaMemcpyDefault] = "Default",
    };
    if ((unsigned)kind > cudaMemcpyDefault) {
        sim__value_number(text, name, kind);
        return;
    }
    name_add(text, name);
    sim__text_add(text, "%s", names[kind]);
}

void sim__value_kernel(struct sim__text *text, const char *name, const struct sim_kernel *kernel) {
    sim__value_text(text, name, kernel->name);
    if (kernel->bytes > 0)
        sim__value_number(text, "bytes", (long long)kernel->bytes);
    if (kernel->flops > 0)
        sim__value_number(text, "flops", (long long)kernel->flops);
    if (kernel->tensor_flops > 0)
        sim__value_number(text, "tensor_flops", (long long)kernel->tensor_flops);
}

void sim__values_reset(void) {
    stream_serial_start = sim__state.streams.serial;
    event_serial_start = sim__state.events.serial;
    graph_serial_start = sim__graphs.serial;
    exec_serial_start = sim__execs.serial;
    object_serial_start = sim__user_objects.serial;
    blas_serial_start = sim__blas_handles.serial;
    base_address_map_deinit(&host_addresses);
}

// --- Operations ---

static const char *place_name(enum sim__place place) {
    return place == SIM__PLACE_DEVICE ? "device" : place == SIM__PLACE_PINNED ? "pinned" : "host";
}

void sim__value_operation(struct sim__text *text, const struct sim__operation *operation) {
    switch (operation->kind) {
    case SIM__OPERATION_RECORD:
        sim__text_add(text, "record event %llu",
                      (unsigned long long)handle_number(&sim__state.events, operation->event,
                                                        event_serial_start));
        break;
    case SIM__OPERATION_WAIT: sim__text_add(text, "wait"); break;
    case SIM__OPERATION_COPY:
        sim__text_add(text, "copy %zu bytes, %s to %s",
                      operation->copy.size * operation->copy.rows,
                      place_name(operation->copy.source_place),
                      place_name(operation->copy.destination_place));
        break;
    case SIM__OPERATION_FILL:
        sim__text_add(text, "fill %zu bytes", operation->fill.size * operation->fill.rows);
        break;
    case SIM__OPERATION_KERNEL:
        sim__text_add(text, "kernel %s",
                      operation->kernel.name == NULL ? "" : operation->kernel.name);
        break;
    case SIM__OPERATION_HOST_FUNCTION: sim__text_add(text, "host function"); break;
    case SIM__OPERATION_VALUE: sim__text_add(text, "write value"); break;
    case SIM__OPERATION_LAUNCH_BEGIN:
        sim__text_add(text, "launch of graph %llu begins",
                      (unsigned long long)operation->launch->graph);
        break;
    case SIM__OPERATION_LAUNCH_END:
        sim__text_add(text, "launch of graph %llu", (unsigned long long)operation->launch->graph);
        break;
    case SIM__OPERATION_INTERNAL: sim__text_add(text, "%s", operation->internal.name); break;
    }
}
