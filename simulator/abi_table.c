// The table of abi_table.h for one set of headers, the one on this compilation's include path:
// compiled twice, with ABI_TABLE naming the function. A name that the toolkit does not have stops
// the compilation, by name.
#include "simulator/abi_table.h"

#include <cuda_runtime_api.h>

#define ABI_VALUE(name) {#name, (long long)(name), sizeof(name)},
#define ABI_TYPE(type) {#type, 0, sizeof(type)},
#define ABI_FIELD(type, field)                                                                     \
    {#type "." #field, (long long)offsetof(type, field), sizeof(((type *)0)->field)},

static const struct abi_entry entries[] = {
#include "simulator/abi_list.inc"
};

struct abi_table ABI_TABLE(void) {
    return (struct abi_table){entries, sizeof entries / sizeof entries[0]};
}
