// cuBLAS's inside: handles, the frame of its calls, workspaces, and how its work enters streams.
//
//     blas_status.c     statuses; with the table of handles all that programs without cuBLAS have
//     blas.c            handles and their settings; frame; workspaces; submission
//     blas_access.c     what work touches, for the race checker
//     blas_gemm.c       products: the calls; their arguments, checked
//     blas_product.c    products: how they are computed
//     blas_vector.c     vectors
//     blas_lt.c         cublasLt: descriptors; its product is that of blas_gemm.c
//
// A call is one operation of a stream, a kernel as sim_launch_kernel makes one; so captures,
// replays, schedules, costs and the checker know it as such.
//
// All functions need the simulator's lock, unless they say so.
#ifndef TIDEMARK_SIMULATOR_BLAS_H
#define TIDEMARK_SIMULATOR_BLAS_H

#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/race.h"

#include <cublas_v2.h>

#define SIM__BLAS_SLICE_COUNT 8

// A part of a handle's own workspace.
struct sim__blas_slice {
    struct sim__stream *stream; // that used it last; NULL: nobody
    struct sim__position last;  // the operation that did
    uint64_t turn;              // grows with each use
};

struct sim__blas_handle {
    struct sim__handle_slot slot; // in sim__blas_handles
    bool light;                   // of cublasLt: it has a device and nothing else
    int device;
    cudaStream_t stream; // as the program names it
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
    cublasAtomicsMode_t atomics_mode;
    bool has_workspace; // cublasSetWorkspace
    void *workspace;
    size_t workspace_bytes;
    char *pool; // the handle's own workspace
    size_t slice_bytes;
    uint64_t turn;
    struct sim__blas_slice slices[SIM__BLAS_SLICE_COUNT];
};

extern struct sim__handle_table sim__blas_handles; // blas_status.c

// --- The frame of a call ---

// SUCCESS: *blas is what HANDLE names. Takes the lock, which sim__blas_end gives back, in any case.
cublasStatus_t sim__blas_begin(enum sim_call call, cublasHandle_t handle,
                               struct sim__blas_handle **blas);
// The same for one of cublasLt, or one of cuBLAS, which does for that.
cublasStatus_t sim__blas_begin_light(enum sim_call call, cublasHandle_t handle,
                                     struct sim__blas_handle **blas);
cublasStatus_t sim__blas_end(enum sim_call call, cublasStatus_t status);
// Calls: a handle is made, without a workspace, and taken back; *POOL is to be freed.
cublasStatus_t sim__blas_create(cublasHandle_t *handle, bool light);
cublasStatus_t sim__blas_destroy(cublasHandle_t handle, bool light, void **pool);
// Returns STATUS; in checked mode with a sentence that says why.
cublasStatus_t sim__blas_refuse(cublasStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// What cuBLAS makes of a failed CUDA call.
cublasStatus_t sim__blas_status_of(cudaError_t error);

// --- Work ---

// Where an operation's work goes, and the workspace that it uses.
struct sim__blas_target {
    struct sim__stream *stream;
    void *workspace; // NULL: none
    size_t workspace_bytes;
    bool is_programs;              // the checker is to know of it
    bool is_of_graph;              // a memory node gave it
    struct sim__blas_slice *slice; // or this is it
};
// The stream that HANDLE means, which must be of BLAS's device, that of the thread; and a workspace
// of BLAS's.
cublasStatus_t sim__blas_aim(struct sim__blas_handle *blas, cudaStream_t handle,
                             struct sim__blas_target *target);
cublasStatus_t sim__blas_aim_workspace(struct sim__blas_handle *blas,
                                       struct sim__blas_target *target);
// Submits KERNEL there; its accesses are those that blas_access.c has gathered.
cublasStatus_t sim__blas_submit(struct sim__blas_target *target, struct sim_kernel *kernel);

// An argument that is on the host or on the device.
struct sim__blas_scalar {
    const void *device; // NULL: it is this
    double value;
};
struct sim__blas_scalar sim__blas_scalar_take(bool on_device, bool is_double, const void *pointer);
// For kernels, without the lock; false: the device has faulted.
bool sim__blas_scalar_read(const struct sim__blas_scalar *scalar, bool is_double, double *value);

static inline bool sim__blas_is_16_bit(cudaDataType type) {
    return type == CUDA_R_16F || type == CUDA_R_16BF;
}
// Of the types that are computed with; 0: another one.
static inline size_t sim__blas_size_of(cudaDataType type) {
    return type == CUDA_R_64F          ? sizeof(double)
           : type == CUDA_R_32F        ? sizeof(float)
           : sim__blas_is_16_bit(type) ? 2
                                       : 0;
}

// --- blas_access.c: gathered from begin on, while the checker is on ---

void sim__blas_access_begin(void);
void sim__blas_access_add(enum sim_access_mode mode, const void *pointer, size_t size);
// ROWS x COLUMNS elements of SIZE bytes, LD apart from column to column; COUNT such matrices,
// STRIDE elements apart.
void sim__blas_access_add_matrix(enum sim_access_mode mode, const void *pointer, size_t size,
                                 int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                                 int64_t count);
void sim__blas_access_add_vector(enum sim_access_mode mode, const void *pointer, size_t size,
                                 int64_t count, int64_t increment);
void sim__blas_access_add_scalar(const struct sim__blas_scalar *scalar, bool is_double);
// The first BYTES of the workspace, written and then read.
void sim__blas_access_add_workspace(const struct sim__blas_target *target, size_t bytes);
const struct sim_access *sim__blas_accesses(size_t *count);

#endif
