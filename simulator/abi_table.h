// What a set of CUDA headers says about each name that the simulator's headers declare.
#ifndef TIDEMARK_SIMULATOR_ABI_TABLE_H
#define TIDEMARK_SIMULATOR_ABI_TABLE_H

#include <stddef.h>

struct abi_entry {
    const char *name;
    long long value; // of an enumerator or macro; offset of a field; 0 for a type
    size_t size;     // of its type
    const char *text; // what a macro makes of the name of a function; else NULL
};

struct abi_table {
    const struct abi_entry *entries;
    size_t count;
};

struct abi_table abi_table_simulator(void);
struct abi_table abi_table_toolkit(void);

#endif
