// See transfer.h. Bytes travel as they are, so both ends have to be alike: where they are not, FROM
// is first brought to the type of TO, and to rows, in its own place, and TO gets it through a copy
// in its own.
#include "tensor/transfer.h"

#include "tensor/formulas.h"
#include "tensor/guard.h"
#include "tensor/iterate.h"
#include "tensor/operator.h"

static size_t bytes_of(const struct tensor_impl *impl) {
    return (size_t)impl->geometry.numel * tensor_type_size(impl->type);
}

static void *first_of(const struct tensor_impl *impl) {
    return tensor__element(impl, impl->geometry.offset);
}

//------------------------------------------------------------------------------------------------
// Between the host and a device

// Page-locked memory waits for the copy when it is freed; other memory may change or go as soon as
// the call returns, so there the host waits.
static enum base_status host_copy(void *to, const void *from, size_t bytes, int device,
                                  const struct tensor_impl *pinned) {
    const cudaStream_t stream = tensor_stream(device);
    struct tensor_guard guard;
    enum base_status status = tensor__guard_begin(device, &guard);
    if (status != BASE_OK) return status;
    status = tensor__cuda_status("cudaMemcpyAsync",
                                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    if (status == BASE_OK && pinned != NULL)
        status = allocator_record_stream(pinned->storage->place.allocator, pinned->storage->data,
                                         stream);
    else if (status == BASE_OK)
        status = tensor__cuda_status("cudaStreamSynchronize", cudaStreamSynchronize(stream));
    return tensor__guard_end(&guard, status);
}

enum base_status tensor__transfer_out(const struct tensor_impl *from, void *bytes) {
    return host_copy(bytes, first_of(from), bytes_of(from), from->storage->place.device, NULL);
}

enum base_status tensor__transfer_in(struct tensor_impl *to, const void *bytes) {
    return host_copy(first_of(to), bytes, bytes_of(to), to->storage->place.device, NULL);
}

//------------------------------------------------------------------------------------------------
// Between two devices

// What comes on WAITING, of device TO, comes behind what is on STREAM of device FROM.
static enum base_status stream_wait(int to, cudaStream_t waiting, int from, cudaStream_t stream) {
    struct tensor_guard guard;
    cudaEvent_t event = NULL;
    enum base_status status = tensor__guard_begin(from, &guard);
    if (status != BASE_OK) return status;
    status = tensor__cuda_status("cudaEventCreateWithFlags",
                                 cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    if (status == BASE_OK)
        status = tensor__cuda_status("cudaEventRecord", cudaEventRecord(event, stream));
    status = tensor__guard_end(&guard, status);
    if (status == BASE_OK) status = tensor__guard_begin(to, &guard);
    if (status == BASE_OK)
        status =
            tensor__guard_end(&guard, tensor__cuda_status("cudaStreamWaitEvent",
                                                          cudaStreamWaitEvent(waiting, event, 0)));
    if (event != NULL) (void)cudaEventDestroy(event);
    return status;
}

// On the source's stream, behind what TO's stream does with that memory now, and before what it
// will do: so each block may be freed at once, on the stream that it was taken for.
static enum base_status peer_copy(struct tensor_impl *to, const struct tensor_impl *from) {
    const int to_device = to->storage->place.device, from_device = from->storage->place.device;
    const cudaStream_t to_stream = tensor_stream(to_device),
                       from_stream = tensor_stream(from_device);
    struct tensor_guard guard;
    enum base_status status = stream_wait(from_device, from_stream, to_device, to_stream);
    if (status == BASE_OK) status = tensor__guard_begin(from_device, &guard);
    if (status == BASE_OK)
        status = tensor__guard_end(
            &guard,
            tensor__cuda_status("cudaMemcpyPeerAsync",
                                cudaMemcpyPeerAsync(first_of(to), to_device, first_of(from),
                                                    from_device, bytes_of(to), from_stream)));
    return status == BASE_OK ? stream_wait(to_device, to_stream, from_device, from_stream) : status;
}

//------------------------------------------------------------------------------------------------
// Any two places

static const struct tensor_impl *pinned_of(struct tensor_impl *to, const struct tensor_impl *from) {
    const struct tensor_impl *host = to->storage->place.kind == TENSOR_CPU ? to : from;
    return tensor_is_pinned((struct tensor){(struct tensor_impl *)(uintptr_t)host}) ? host : NULL;
}

static enum base_status rows_copy(struct tensor_impl *to, const struct tensor_impl *from,
                                  bool non_blocking) {
    const bool is_to_host = to->storage->place.kind == TENSOR_CPU;
    if (!is_to_host && from->storage->place.kind == TENSOR_CUDA) return peer_copy(to, from);
    return host_copy(first_of(to), first_of(from), bytes_of(to),
                     (is_to_host ? from : to)->storage->place.device,
                     non_blocking ? pinned_of(to, from) : NULL);
}

static bool is_rows_of(const struct tensor_impl *impl, enum tensor_type type,
                       const struct tensor_geometry *rows) {
    return impl->type == type && (impl->flags & TENSOR_IS_CONTIGUOUS) != 0 &&
           tensor_geometry_same_shape(&impl->geometry, rows);
}

// *rows is FROM itself or a copy of it, in *made, that the caller drops.
static enum base_status rows_make(const struct tensor_impl *from, enum tensor_type type,
                                  const struct tensor_geometry *geometry,
                                  const struct tensor_impl **rows, struct tensor_impl **made) {
    *rows = from;
    if (is_rows_of(from, type, geometry)) return BASE_OK;
    enum base_status status = tensor__impl_alloc(&from->storage->place, type, geometry, made);
    if (status == BASE_OK) status = tensor__copy_elements(*made, from);
    *rows = *made;
    return status;
}

static enum base_status in_bounds_check(const struct tensor_impl *impl) {
    struct tensor_operand operand;
    return tensor__operand(impl, impl->geometry.rank, impl->geometry.sizes, &operand);
}

enum base_status tensor__transfer(struct tensor_impl *to, const struct tensor_impl *from,
                                  bool non_blocking) {
    struct tensor_geometry geometry;
    struct tensor_impl *made = NULL, *received = NULL;
    const struct tensor_impl *sent;
    if (to->geometry.numel == 0) return BASE_OK;
    tensor_geometry_copy(&geometry, &to->geometry);
    geometry.offset = 0;
    tensor_geometry_set_contiguous(&geometry);
    enum base_status status = in_bounds_check(to);
    if (status == BASE_OK) status = in_bounds_check(from);
    if (status == BASE_OK) status = rows_make(from, to->type, &geometry, &sent, &made);
    if (status == BASE_OK && (to->flags & TENSOR_IS_CONTIGUOUS) != 0) {
        status = rows_copy(to, sent, non_blocking);
    } else if (status == BASE_OK) {
        status = tensor__impl_alloc(&to->storage->place, to->type, &geometry, &received);
        if (status == BASE_OK) // the host spreads what has arrived
            status =
                rows_copy(received, sent, non_blocking && to->storage->place.kind == TENSOR_CUDA);
        if (status == BASE_OK) status = tensor__copy_elements(to, received);
    }
    tensor__impl_drop(made);
    tensor__impl_drop(received);
    return status;
}

//------------------------------------------------------------------------------------------------
// To a place, on the graph

struct move_payload {
    struct tensor_place from;
};

static enum base_status move_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    const struct move_payload *payload = node->payload;
    if (gradients[0].impl == NULL || !tape_wants(node, 0)) return BASE_OK;
    return tensor_to_place(gradients[0], &payload->from, false, &results[0]);
}

static const struct tape_formula tape_move = {.name = "ToCopyBackward0", .apply = move_back};

enum base_status tensor_to_place(struct tensor self, const struct tensor_place *place,
                                 bool non_blocking, struct tensor *result) {
    const struct tensor_place *from = &self.impl->storage->place;
    if (tensor__is_same_place(place, from) && place->allocator == from->allocator) {
        *result = tensor_retain(self);
        return BASE_OK;
    }
    struct tape_node *node = NULL;
    struct tensor made = {0};
    enum base_status status = BASE_OK;
    if (tensor_type_is_floating(self.impl->type))
        status = tape_begin(&tape_move, &self, 1, 1, sizeof(struct move_payload), &node);
    if (status == BASE_OK && node != NULL) ((struct move_payload *)node->payload)->from = *from;
    if (status == BASE_OK) {
        struct tensor_geometry geometry;
        tensor_geometry_copy(&geometry, &self.impl->geometry);
        geometry.offset = 0;
        if ((self.impl->flags & TENSOR_IS_DENSE) == 0) tensor_geometry_densify(&geometry);
        status = tensor__impl_alloc(place, self.impl->type, &geometry, &made.impl);
    }
    if (status == BASE_OK)
        status = tensor__is_same_place(place, from)
                     ? tensor__copy_elements(made.impl, self.impl)
                     : tensor__transfer(made.impl, self.impl, non_blocking);
    return tensor__explain(tape_end(status, node, &made, result), "to", &self, 1);
}
