// cublasLt's descriptors: memory of the host, so that nothing here takes the lock.
#include "simulator/blas_lt_attribute.h"

#include <stdlib.h>
#include <string.h>

#define REDUCTION_SCHEMES_ALL 7
#define ALIGNMENT_BYTES 256

// Where an attribute stands in a descriptor, and its size; 0: there is none of that number.
struct place {
    size_t offset, size;
};
#define PLACE(structure, member)                                                                   \
    { offsetof(struct structure, member), sizeof(((struct structure *)0)->member) }

static const struct place layout_places[] = {
    [CUBLASLT_MATRIX_LAYOUT_TYPE] = PLACE(sim__lt_layout, type),
    [CUBLASLT_MATRIX_LAYOUT_ORDER] = PLACE(sim__lt_layout, order),
    [CUBLASLT_MATRIX_LAYOUT_ROWS] = PLACE(sim__lt_layout, rows),
    [CUBLASLT_MATRIX_LAYOUT_COLS] = PLACE(sim__lt_layout, columns),
    [CUBLASLT_MATRIX_LAYOUT_LD] = PLACE(sim__lt_layout, ld),
    [CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = PLACE(sim__lt_layout, count),
    [CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET] = PLACE(sim__lt_layout, stride),
};

static const struct place operation_places[] = {
    [CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = PLACE(sim__lt_operation, compute_type),
    [CUBLASLT_MATMUL_DESC_SCALE_TYPE] = PLACE(sim__lt_operation, scale_type),
    [CUBLASLT_MATMUL_DESC_POINTER_MODE] = PLACE(sim__lt_operation, pointer_mode),
    [CUBLASLT_MATMUL_DESC_TRANSA] = PLACE(sim__lt_operation, transa),
    [CUBLASLT_MATMUL_DESC_TRANSB] = PLACE(sim__lt_operation, transb),
    [CUBLASLT_MATMUL_DESC_TRANSC] = PLACE(sim__lt_operation, transc),
    [CUBLASLT_MATMUL_DESC_EPILOGUE] = PLACE(sim__lt_operation, epilogue),
    [CUBLASLT_MATMUL_DESC_BIAS_POINTER] = PLACE(sim__lt_operation, bias),
    [CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE] = PLACE(sim__lt_operation, bias_stride),
    [CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = PLACE(sim__lt_operation, bias_type),
};

static const struct place preference_places[] = {
    [CUBLASLT_MATMUL_PREF_SEARCH_MODE] = PLACE(sim__lt_preference, search_mode),
    [CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES] = PLACE(sim__lt_preference, workspace_bytes),
    [CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK] = PLACE(sim__lt_preference, reduction_schemes),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = PLACE(sim__lt_preference, alignments[0]),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES] = PLACE(sim__lt_preference, alignments[1]),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES] = PLACE(sim__lt_preference, alignments[2]),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES] = PLACE(sim__lt_preference, alignments[3]),
};

// One kind of descriptor.
struct kind {
    const struct place *places;
    size_t count, size;
};
#define KIND(places_, type_)                                                                       \
    { places_, sizeof places_ / sizeof places_[0], sizeof(type_) }
static const struct kind layouts = KIND(layout_places, cublasLtMatrixLayoutOpaque_t);
static const struct kind operations = KIND(operation_places, cublasLtMatmulDescOpaque_t);
static const struct kind preferences = KIND(preference_places, cublasLtMatmulPreferenceOpaque_t);

static cublasStatus_t attribute_find(const struct kind *kind, const void *descriptor,
                                     unsigned attribute, struct place *place) {
    if (descriptor == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute >= kind->count || kind->places[attribute].size == 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *place = kind->places[attribute];
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t attribute_set(const struct kind *kind, void *descriptor, unsigned attribute,
                                    const void *value, size_t size) {
    struct place place;
    const cublasStatus_t status = attribute_find(kind, descriptor, attribute, &place);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (value == NULL || size != place.size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)descriptor + place.offset, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t attribute_get(const struct kind *kind, const void *descriptor,
                                    unsigned attribute, void *value, size_t size, size_t *written) {
    struct place place;
    const cublasStatus_t status = attribute_find(kind, descriptor, attribute, &place);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (size == 0 ? written == NULL : value == NULL || size != place.size)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size > 0)
        memcpy(value, (const char *)descriptor + place.offset, size);
    if (written != NULL)
        *written = place.size;
    return CUBLAS_STATUS_SUCCESS;
}

// All zero; NULL: out of memory.
static void *descriptor_create(const struct kind *kind) { return calloc(1, kind->size); }

static cublasStatus_t descriptor_begin(const struct kind *kind, void *descriptor, size_t size) {
    if (descriptor == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < kind->size)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(descriptor, 0, kind->size);
    return CUBLAS_STATUS_SUCCESS;
}

// --- Layouts ---

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld) {
    const cublasStatus_t status = descriptor_begin(&layouts, layout, size);
    if (status == CUBLAS_STATUS_SUCCESS)
        *sim__lt_layout(layout) = (struct sim__lt_layout){
            .type = (uint32_t)type, .rows = rows, .columns = columns, .ld = ld, .count = 1};
    return status;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    if (layout == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    *layout = descriptor_create(&layouts);
    return *layout == NULL ? CUBLAS_STATUS_ALLOC_FAILED
                           : cublasLtMatrixLayoutInit_internal(*layout, sizeof **layout, type, rows,
                                                               columns, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size) {
    return attribute_set(&layouts, layout, (unsigned)attribute, value, size);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *value, size_t size, size_t *size_written) {
    return attribute_get(&layouts, layout, (unsigned)attribute, value, size, size_written);
}

// --- Operations ---

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size,
                                               cublasComputeType_t compute_type,
                                               cudaDataType_t scale_type) {
    const cublasStatus_t status = descriptor_begin(&operations, operation, size);
    if (status == CUBLAS_STATUS_SUCCESS)
        *sim__lt_operation(operation) =
            (struct sim__lt_operation){.compute_type = (int32_t)compute_type,
                                       .scale_type = (int32_t)scale_type,
                                       .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                       .bias_type = -1};
    return status;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                                        cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
    if (operation == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    *operation = descriptor_create(&operations);
    return *operation == NULL ? CUBLAS_STATUS_ALLOC_FAILED
                              : cublasLtMatmulDescInit_internal(*operation, sizeof **operation,
                                                                compute_type, scale_type);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
    free(operation);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
    return attribute_set(&operations, operation, (unsigned)attribute, value, size);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, void *value,
                                              size_t size, size_t *size_written) {
    return attribute_get(&operations, operation, (unsigned)attribute, value, size, size_written);
}

// --- Preferences ---

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size) {
    const cublasStatus_t status = descriptor_begin(&preferences, preference, size);
    if (status == CUBLAS_STATUS_SUCCESS)
        *sim__lt_preference(preference) = (struct sim__lt_preference){
            .reduction_schemes = REDUCTION_SCHEMES_ALL,
            .alignments = {ALIGNMENT_BYTES, ALIGNMENT_BYTES, ALIGNMENT_BYTES, ALIGNMENT_BYTES},
        };
    return status;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    if (preference == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    *preference = descriptor_create(&preferences);
    return *preference == NULL
               ? CUBLAS_STATUS_ALLOC_FAILED
               : cublasLtMatmulPreferenceInit_internal(*preference, sizeof **preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size) {
    return attribute_set(&preferences, preference, (unsigned)attribute, value, size);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void *value, size_t size,
                                                    size_t *size_written) {
    return attribute_get(&preferences, preference, (unsigned)attribute, value, size, size_written);
}
