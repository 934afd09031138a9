// The simulator's CUDA headers against the toolkit's: every enumerator, constant, type size and
// field offset that ours declare, and the variants that names of functions mean; the types of all
// functions (abi_functions.c, by compiling); and the names of errors, as the toolkit's own runtime
// gives them. Without a toolkit
// the test says so, and that nothing was compared.
#include "simulator/abi_table.h"

#include "base/check.h"

#include <stdio.h>

#ifndef ABI_TOOLKIT_LIBRARY

int main(void) {
    printf("simulator/abi_test: skipped, nothing compared: no CUDA Toolkit (CUDA_HOME, then "
           "/usr/local/cuda)\n");
    return 0;
}

#else

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>

static void headers_agree(void) {
    const struct abi_table ours = abi_table_simulator(), theirs = abi_table_toolkit();
    BASE_CHECK_EQ(ours.count, theirs.count);
    BASE_CHECK_GE(ours.count, 300);
    for (size_t i = 0; i < ours.count; ++i) {
        base_check_context("%s", ours.entries[i].name);
        BASE_CHECK_EQ(strcmp(ours.entries[i].name, theirs.entries[i].name), 0);
        BASE_CHECK_EQ(ours.entries[i].value, theirs.entries[i].value);
        BASE_CHECK_EQ(ours.entries[i].size, theirs.entries[i].size);
        BASE_CHECK_EQ(ours.entries[i].text != NULL, theirs.entries[i].text != NULL);
        if (ours.entries[i].text != NULL)
            BASE_CHECK_EQ(strcmp(ours.entries[i].text, theirs.entries[i].text), 0);
    }
    base_check_context(NULL);
    printf("simulator/abi_test: %zu values, sizes and offsets agree with the toolkit's headers\n",
           ours.count);
}

// The driver is not part of the toolkit: its names are those of the enumerators.
static void driver_error_names_agree(void) {
    const struct abi_table table = abi_table_toolkit();
    int count = 0;
    for (size_t i = 0; i < table.count; ++i) {
        const struct abi_entry *entry = &table.entries[i];
        const char *name, *description;
        if (strncmp(entry->name, "CUDA_ERROR_", 11) != 0)
            continue;
        base_check_context("%s", entry->name);
        BASE_CHECK_EQ(cuGetErrorName((CUresult)entry->value, &name), CUDA_SUCCESS);
        BASE_CHECK_EQ(strcmp(name, entry->name), 0);
        BASE_CHECK_EQ(cuGetErrorString((CUresult)entry->value, &description), CUDA_SUCCESS);
        BASE_CHECK(strcmp(description, "unrecognized error code") != 0);
        ++count;
    }
    base_check_context(NULL);
    BASE_CHECK_GE(count, 90);
}

typedef const char *(*error_name)(cudaError_t error);

static void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    BASE_CHECK(address != NULL);
    return address;
}

static void error_names_agree(void) {
    void *library = dlopen(ABI_TOOLKIT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("simulator/abi_test: error names not compared: %s\n", dlerror());
        return;
    }
    const error_name name = (error_name)(uintptr_t)symbol(library, "cudaGetErrorName");
    BASE_CHECK(name != cudaGetErrorName);
    for (int code = -1; code <= 1000; ++code) {
        base_check_context("code %d, the toolkit says %s", code, name((cudaError_t)code));
        BASE_CHECK_EQ(strcmp(cudaGetErrorName((cudaError_t)code), name((cudaError_t)code)), 0);
    }
    base_check_context(NULL);
    printf("simulator/abi_test: error names agree with the toolkit's runtime\n");
}

int main(void) {
    headers_agree();
    error_names_agree();
    driver_error_names_agree();
    return 0;
}

#endif
