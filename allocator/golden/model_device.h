// The device under the naive model: bytes counted, addresses that only ascend, events that are
// numbers. Nothing of the simulator is in it, so that a fault of the simulator cannot hide one of
// the allocator.
//
// It follows the device of the decision logs: cudaMalloc accounts whole 2 MiB pages and waits for
// nothing; an event is pending from its record on until its stream was completed up to it; a
// cudaFree completes everything.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_MODEL_DEVICE_H
#define TIDEMARK_ALLOCATOR_GOLDEN_MODEL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_STREAM_MAX 8
#define MODEL_PAGE_BYTES ((uint64_t)2 << 20)

struct model_device_stream {
    uint64_t recorded; // events recorded on it so far
    uint64_t done;     // the first so many of them are complete
};

struct model_device {
    uint64_t capacity_bytes;
    uint64_t foreign_bytes; // held by others
    uint64_t used_bytes;    // held by us, in whole pages
    uint64_t next_address;
    struct model_device_stream streams[MODEL_STREAM_MAX];
    bool completes_at_once; // events complete when recorded
    bool lists_processes;   // this one, and 4242, which holds what is foreign
    uint64_t events_outstanding;

    // A planned failure: the call of this number from now (1 = the next) fails with this code; 0 is
    // none.
    uint64_t fault_countdown;
    int fault_code;

    // The same for creations of virtual memory's pages.
    uint64_t create_fault_countdown;
    int create_fault_code;

    // Where the next segments and ranges go, first in first out, before next_address does it.
    uint64_t queued[8];
    size_t queued_count;

    // Calls made so far.
    uint64_t malloc_count, malloc_failed_count, free_count;
    uint64_t reserve_count, address_free_count, create_count, create_failed_count, release_count;
    uint64_t map_count, unmap_count, set_access_count, stream_synchronize_count;
    uint64_t event_record_count, event_query_count, event_synchronize_count, event_create_count;
};

// One recorded event: the NUMBER-th of its stream, from 1.
struct model_event {
    unsigned stream;
    uint64_t number;
};

void model_device_init(struct model_device *device, uint64_t capacity_bytes);

uint64_t model_device_free_bytes(const struct model_device *device);

// Returns 0 and an address, or a CUDA error code (2: out of memory).
int model_device_malloc(struct model_device *device, uint64_t size, uint64_t *address);
void model_device_free(struct model_device *device, uint64_t size);

// In place of what was queued before.
void model_device_queue_addresses(struct model_device *device, const uint64_t *addresses,
                                  size_t count);

// Virtual memory: ranges of addresses, and pages that count as memory from their creation on.
uint64_t model_device_reserve(struct model_device *device, uint64_t size);
void model_device_address_free(struct model_device *device);
int model_device_create(struct model_device *device, uint64_t size); // 0 or an error code
void model_device_release(struct model_device *device, uint64_t size);
// One mapping a page, and access to all of them at once.
void model_device_map(struct model_device *device, uint64_t page_count);
// Waits for the stream, then one call a page, and the page's release.
void model_device_unmap(struct model_device *device, unsigned stream, uint64_t page_count,
                        uint64_t page_size);

struct model_event model_device_event_record(struct model_device *device, unsigned stream);
bool model_device_event_query(struct model_device *device, struct model_event event);
void model_device_event_wait(struct model_device *device, struct model_event event);
// The event goes back to the pool that records take events from.
void model_device_event_release(struct model_device *device);

// All work enqueued so far on STREAM has run.
void model_device_complete(struct model_device *device, unsigned stream);

#endif
