// Addresses of code as a reader knows them: function, file and line, from the debug information of
// the running program and of its shared libraries.
//
//     char text[BASE_SYMBOL_TEXT];
//     base_symbol_text(__builtin_return_address(0), text)      "upload (train.c:71)"
//
// Without debug information there is the function's name, if its file has symbols, and the place in
// that file, for addr2line: "upload (libtrain.so+0x1a5d)".
//
// The first call costs some milliseconds, a later one tens of microseconds. Threads: any; nothing
// here takes a lock of base/thread.h. Nothing is fetched from the network.
#ifndef TIDEMARK_BASE_SYMBOL_H
#define TIDEMARK_BASE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BASE_SYMBOL_TEXT 256

struct base_symbol {
    char function[BASE_SYMBOL_TEXT]; // "" if not known
    char file[BASE_SYMBOL_TEXT];     // as the compiler was given it; "" if not known
    int line;                        // 0 if not known
    char module[BASE_SYMBOL_TEXT]; // path of the program or library; "" if the address is no code's
    uint64_t offset;               // in that one
};

// The call that returns to ADDRESS: the innermost function, inlined ones too. False if the address
// is no code's.
bool base_symbol_find(const void *address, struct base_symbol *symbol);
// The same with what that function is inlined into, from the inside out, at most COUNT_MAX. Returns
// how many.
size_t base_symbol_frames(const void *address, struct base_symbol *symbols, size_t count_max);

// The innermost one as text; "0x7f..." if it is no code's. Returns TEXT, which has BASE_SYMBOL_TEXT
// bytes.
const char *base_symbol_text(const void *address, char *text);
const char *base_symbol_format(const struct base_symbol *symbol, char *text);

#endif
