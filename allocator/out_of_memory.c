// See out_of_memory.h. The sentence is PyTorch's, since people and tools search for it. What only
// informs may fail: then the sentence has a part less, and the failure itself is told all the same.
#include "allocator/out_of_memory.h"

#include "allocator/device.h"
#include "allocator/pool.h"
#include "allocator/processes.h"

#include <stdio.h>
#include <unistd.h>

char *cca__size_text(size_t bytes, char buffer[CCA__SIZE_TEXT]) {
    const double kib = 1024.0;
    if (bytes <= 1024)
        snprintf(buffer, CCA__SIZE_TEXT, "%zu bytes", bytes);
    else if (bytes <= (size_t)1 << 20)
        snprintf(buffer, CCA__SIZE_TEXT, "%.2f KiB", (double)bytes / kib);
    else if (bytes <= (size_t)1 << 30)
        snprintf(buffer, CCA__SIZE_TEXT, "%.2f MiB", (double)bytes / (kib * kib));
    else
        snprintf(buffer, CCA__SIZE_TEXT, "%.2f GiB", (double)bytes / (kib * kib * kib));
    return buffer;
}

// What the driver says is free and in all. A device that cannot even be asked must not hide the
// failure itself.
static void ask_device(struct cca__device *device, struct cca_out_of_memory *numbers) {
    struct cca__device_scope scope;
    numbers->total = device->total_bytes;
    if (cca__device_scope_begin(&scope, device->ordinal) != BASE_OK) return;
    size_t free_bytes, total_bytes;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        numbers->free = free_bytes;
        numbers->total = total_bytes;
        numbers->free_known = true;
    } else {
        (void)cudaGetLastError();
    }
    cca__device_scope_end(&scope);
}

// All streams' locks held.
static size_t free_in_private_pools_locked(const struct cca__device *device) {
    const struct cca *const cca = device->owner;
    size_t bytes = 0;
    for (struct cca__stream *stream =
             atomic_load_explicit(&device->private_streams, memory_order_relaxed);
         stream != NULL; stream = stream->private_next)
        for (int kind = 0; kind < 2; ++kind) {
            struct cca__free_index *const index = &stream->pools[kind].index;
            for (uint32_t number = 0;
                 (number = cca__free_index_next(index, cca->blocks, number)) != 0;)
                bytes += cca__block_at(cca, number)->size;
        }
    return bytes;
}

void cca__out_of_memory_locked(struct cca__stream *stream, size_t rounded, size_t exceeded_reserve,
                               bool raw_failed, struct cca_out_of_memory *numbers) {
    struct cca__device *const device = stream->device;
    *numbers = (struct cca_out_of_memory){
        .device = device->ordinal,
        .tried = cca__segment_size(&device->owner->config.sizes, rounded),
        .limited = device->limited,
        .allowed = device->allowed_bytes,
        .expandable = device->owner->config.expandable_segments && !device->cannot_expand,
        .exceeded_reserve = exceeded_reserve,
        .rounded = rounded,
        .raw_failed = raw_failed,
    };
    ask_device(device, numbers);
    ++device->num_ooms;
    struct allocator_stats stats;
    cca__streams_lock_all(device);
    cca__stats_read_locked(device, &stats);
    numbers->private_free = free_in_private_pools_locked(device);
    cca__streams_unlock_all(device);
    numbers->allocated =
        (size_t)stats.allocated_bytes[ALLOCATOR_STAT_ALL].current + numbers->private_free;
    numbers->unallocated =
        (size_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].current - numbers->allocated;
    cca__observe(device->owner, &(struct allocator_event){
                                    .action = ALLOCATOR_OOM,
                                    .device = device->ordinal,
                                    .size = rounded,
                                    .device_free = numbers->free,
                                    .stream = stream->handle,
                                    .pool = cca__pool_id(&stream->pools[CCA__POOL_SMALL]),
                                });
    if (device->history == NULL) return;
    cca__lock_take(&stream->lock);
    (void)cca__history_device_locked(device, ALLOCATOR_OOM, &stream->pools[CCA__POOL_SMALL],
                                     numbers->free, rounded);
    cca__lock_release(&stream->lock);
}

#define ADVICE_BYTES 512

// What PyTorch says to try.
static const char *advice_text(const struct cca_out_of_memory *numbers, char text[ADVICE_BYTES]) {
    char reserve[CCA__SIZE_TEXT], request[CCA__SIZE_TEXT];
    if (!numbers->expandable)
        return "If reserved but unallocated memory is large try setting "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
               "documentation for Memory Management  "
               "(https://docs.pytorch.org/docs/stable/notes/"
               "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
    if (numbers->exceeded_reserve == 0)
        return "expandable_segments is enabled. If instead the process is running out of virtual "
               "address space (VSZ), expandable segments may be over-reserving VA (each segment "
               "reserves ~9/8 of device memory, times the number of streams); reduce it via "
               "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / "
               "expandable_segments_reserve_by_class.";
    cca__size_text(numbers->rounded, request);
    snprintf(text, ADVICE_BYTES,
             "This allocation exceeds the expandable-segment reserve of %s for this stream, and a "
             "single allocation cannot span expandable segments. Raise PYTORCH_CUDA_ALLOC_CONF "
             "expandable_segments_reserve or expandable_segments_reserve_by_class (or unset it) so "
             "that a segment is at least %s.",
             cca__size_text(numbers->exceeded_reserve, reserve), request);
    return text;
}

// "Including non-PyTorch memory, this process has 1.00 GiB memory in use. ", "Process 7 has ...".
#define PROCESSES_BYTES (CCA_PROCESSES_MAX * (CCA__SIZE_TEXT + 64))
static const char *processes_text(const struct cca_out_of_memory *numbers,
                                  char text[PROCESSES_BYTES]) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t index = 0; index < numbers->process_count; ++index) {
        const struct cca_process *const process = &numbers->processes[index];
        char used[CCA__SIZE_TEXT], who[64] = "Including non-PyTorch memory, this process";
        if (process->number != getpid())
            snprintf(who, sizeof who, "Process %lld", (long long)process->number);
        length +=
            (size_t)snprintf(text + length, PROCESSES_BYTES - length, "%s has %s memory in use. ",
                             who, cca__size_text(process->used_bytes, used));
    }
    return text;
}

static const char raw_text[] =
    " The custom allocator backing this MemPool returned nullptr. Check preceding allocator "
    "warnings or logs for the underlying cause. This can indicate an allocator-specific error or "
    "memory constraint, even when device-wide free memory is available.";

static enum base_status set_sentence(const struct cca_out_of_memory *numbers) {
    char tried[CCA__SIZE_TEXT], total[CCA__SIZE_TEXT], free_text[CCA__SIZE_TEXT] = "unknown";
    char allocated[CCA__SIZE_TEXT], private_free[CCA__SIZE_TEXT], unallocated[CCA__SIZE_TEXT];
    char allowed[CCA__SIZE_TEXT], allowed_part[CCA__SIZE_TEXT + 16] = "";
    char private_part[CCA__SIZE_TEXT + 64] = "", processes[PROCESSES_BYTES], advice[ADVICE_BYTES];
    if (numbers->free_known) cca__size_text(numbers->free, free_text);
    if (numbers->limited)
        snprintf(allowed_part, sizeof allowed_part, "%s allowed; ",
                 cca__size_text(numbers->allowed, allowed));
    if (numbers->private_free > 0)
        snprintf(private_part, sizeof private_part,
                 "with %s allocated in private pools (e.g., CUDA Graphs), ",
                 cca__size_text(numbers->private_free, private_free));
    return base_status_set(
        BASE_OUT_OF_MEMORY,
        "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which %s "
        "is free. %s%sOf the allocated memory %s is allocated by PyTorch, %sand %s is reserved by "
        "PyTorch but unallocated. %s%s",
        cca__size_text(numbers->tried, tried), numbers->device,
        cca__size_text(numbers->total, total), free_text, processes_text(numbers, processes),
        allowed_part, cca__size_text(numbers->allocated, allocated), private_part,
        cca__size_text(numbers->unallocated, unallocated), advice_text(numbers, advice),
        numbers->raw_failed ? raw_text : "");
}

enum base_status cca__out_of_memory_tell(struct cca *cca, struct cca_out_of_memory *numbers) {
    cca__list_processes(cca, numbers);
    if (cca->out_of_memory_observer.event != NULL)
        cca->out_of_memory_observer.event(cca->out_of_memory_observer.context, numbers);
    return set_sentence(numbers);
}

enum base_status cca_set_out_of_memory_observer(struct allocator *allocator,
                                                const struct cca_out_of_memory_observer *observer) {
    const enum base_status status = cca__require_caching(allocator, "out-of-memory observer");
    if (status != BASE_OK) return status;
    cca__of(allocator)->out_of_memory_observer =
        observer != NULL ? *observer : (struct cca_out_of_memory_observer){0};
    return BASE_OK;
}
