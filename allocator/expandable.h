// The memory of an expandable segment: a range of addresses, and the pages of device memory that
// are mapped into it. Driver calls, and nothing of blocks (those are in expandable_blocks.h).
//
//     reserved  |page|page|    |page|                                  |
//               0              ^ mapped: one cuMemCreate a page        reserved_bytes
//
// A page is 2 MiB in the small pool and large_segment_size_mb in the large one. Each page has a
// physical handle of its own, so that a hole can be unmapped anywhere. What fails half way is
// undone: a call either maps everything it was asked for or nothing.
//
// All functions need the device's growth_lock, and no stream's: they wait for the driver.
#ifndef TIDEMARK_ALLOCATOR_EXPANDABLE_H
#define TIDEMARK_ALLOCATOR_EXPANDABLE_H

#include "allocator/core.h"

struct cca__expandable;

// Takes BYTES of addresses, a whole number of pages. BASE_UNSUPPORTED if the driver has no such
// calls.
enum base_status cca__expandable_reserve(struct cca__device *device, size_t bytes,
                                         size_t page_bytes,
                                         struct cca__expandable **segment) BASE_MUST_USE;
// Gives the addresses back. Nothing may be mapped. On failure the segment is as it was.
enum base_status cca__expandable_free(struct cca__device *device,
                                      struct cca__expandable *segment) BASE_MUST_USE;
// The same for a caller who has another failure to tell: what the driver refuses now it is asked
// for again later. SEGMENT is gone.
void cca__expandable_abandon(struct cca__device *device, struct cca__expandable *segment);
// Unmaps what is mapped and gives everything back; the device's end, where errors have nowhere to
// go.
void cca__expandable_destroy(struct cca__device *device, struct cca__expandable *segment);

uint64_t cca__expandable_address(const struct cca__expandable *segment);
size_t cca__expandable_bytes(const struct cca__expandable *segment); // of addresses
size_t cca__expandable_page_bytes(const struct cca__expandable *segment);
bool cca__expandable_is_mapped(const struct cca__expandable *segment, uint64_t address);

// Maps memory at [ADDRESS, ADDRESS + SIZE), whole pages, for the device and its peers to read and
// write. BASE_OUT_OF_MEMORY, with a warning and without a sentence, if the device has not enough;
// another status with one. Nothing has changed then.
enum base_status cca__expandable_map(struct cca__device *device, struct cca__expandable *segment,
                                     uint64_t address, size_t size) BASE_MUST_USE;
// Waits for STREAM and unmaps [ADDRESS, ADDRESS + SIZE), whole pages that are mapped. *unmapped is
// SIZE, or less from the front if the driver refused in between.
enum base_status cca__expandable_unmap(struct cca__device *device, cudaStream_t stream,
                                       struct cca__expandable *segment, uint64_t address,
                                       size_t size, size_t *unmapped) BASE_MUST_USE;

// Lets another device read and write what is mapped; device->peers says whom later mappings let.
enum base_status cca__expandable_add_peer(struct cca__device *device,
                                          struct cca__expandable *segment, int peer) BASE_MUST_USE;

#endif
