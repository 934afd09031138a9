// Copies between places: devices, the host.
#ifndef TIDEMARK_TENSOR_TRANSFER_H
#define TIDEMARK_TENSOR_TRANSFER_H

#include "tensor/impl.h"

static inline bool tensor__is_same_place(const struct tensor_place *a,
                                         const struct tensor_place *b) {
    return a->kind == b->kind && a->device == b->device;
}

// FROM's elements into TO, which is of its shape (FROM may broadcast) and of another place. Device
// work throughout: on the current stream of the device; between two devices on that of FROM's,
// which both streams wait for and are waited for by.
enum base_status tensor__transfer(struct tensor_impl *to, const struct tensor_impl *from,
                                  bool non_blocking) BASE_MUST_USE;

// To and from plain host memory, of a tensor of a device that is contiguous. The host waits.
enum base_status tensor__transfer_out(const struct tensor_impl *from, void *bytes) BASE_MUST_USE;
enum base_status tensor__transfer_in(struct tensor_impl *to, const void *bytes) BASE_MUST_USE;

#endif
