// The table of abi_table.h for one set of headers, the one on this compilation's include path:
// compiled twice, with ABI_TABLE naming the function. A name that the toolkit does not have stops
// the compilation, by name.
#include "simulator/abi_table.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#define ABI_TEXT(name) #name
#define ABI_EXPANDED(name) ABI_TEXT(name)
#define ABI_VALUE(name) {#name, (long long)(name), sizeof(name), NULL},
#define ABI_TYPE(type) {#type, 0, sizeof(type), NULL},
#define ABI_FIELD(type, field)                                                                     \
    {#type "." #field, (long long)offsetof(type, field), sizeof(((type *)0)->field), NULL},
#define ABI_NAME(name) {#name, 0, 0, ABI_EXPANDED(name)},

static const struct abi_entry entries[] = {
#include "simulator/abi_list.inc"
};

struct abi_table ABI_TABLE(void) {
    return (struct abi_table){entries, sizeof entries / sizeof entries[0]};
}
