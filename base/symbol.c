// By elfutils' libdw, which finds the program's modules and reads their line tables; by the dynamic
// linker where that fails. Modules are looked for again when an address is in none of them: a
// library may have been loaded since.
#include "base/symbol.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Dwfl *dwfl; // NULL before the first use, or if there is none to be had

static void copy(char *text, const char *from) {
    snprintf(text, BASE_SYMBOL_TEXT, "%s", from == NULL ? "" : from);
}

// Debug information in a file of its own. libdw would ask the servers of DEBUGINFOD_URLS too.
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *file, const char *link, GElf_Word crc, char **found) {
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (servers != NULL && servers[0] != '\0')
        return -1;
    return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, found);
}

static void modules_find(void) {
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = find_debuginfo,
    };
    if (dwfl == NULL)
        dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL)
        return;
    dwfl_report_begin(dwfl);
    (void)dwfl_linux_proc_report(dwfl, getpid());
    (void)dwfl_report_end(dwfl, NULL, NULL);
}

// dwfl_addrmodule answers with the nearest one.
static Dwfl_Module *known_module_at(Dwarf_Addr address) {
    Dwarf_Addr start, end;
    Dwfl_Module *module = dwfl == NULL ? NULL : dwfl_addrmodule(dwfl, address);
    if (module == NULL)
        return NULL;
    (void)dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL);
    return start <= address && address < end ? module : NULL;
}

static Dwfl_Module *module_at(Dwarf_Addr address) {
    Dwfl_Module *module = known_module_at(address);
    if (module != NULL)
        return module;
    modules_find();
    return known_module_at(address);
}

// A C++ name as its source has it, if the program brings what knows the rules.
static void function_name(const char *name, char *text) {
    typedef char *demangle_function(const char *name, char *buffer, size_t *size, int *status);
    void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    demangle_function *demangle;
    memcpy(&demangle, &found, sizeof demangle);
    char *readable = NULL;
    if (demangle != NULL && strncmp(name, "_Z", 2) == 0)
        readable = demangle(name, NULL, NULL, &(int){0});
    copy(text, readable != NULL ? readable : name);
    if (readable == NULL)
        text[strcspn(text, ".")] = '\0'; // of a part or a clone that the compiler made
    free(readable);
}

// Without the folder that the unit was compiled in.
static void file_name(const char *file, const char *folder, char *text) {
    const size_t length = folder == NULL ? 0 : strlen(folder);
    if (length > 0 && strncmp(file, folder, length) == 0 && file[length] == '/')
        file += length + 1;
    if (strncmp(file, "./", 2) == 0)
        file += 2;
    copy(text, file);
}

static void find_line(Dwfl_Module *module, Dwarf_Addr address, struct base_symbol *symbol) {
    Dwfl_Line *line = dwfl_module_getsrc(module, address);
    const char *file =
        line == NULL ? NULL : dwfl_lineinfo(line, NULL, &symbol->line, NULL, NULL, NULL);
    if (file != NULL)
        file_name(file, dwfl_line_comp_dir(line), symbol->file);
}

// Where the inlined function CALLED stands in the one that it is inlined into.
static void find_call_line(Dwarf_Die *unit, Dwarf_Die *called, struct base_symbol *symbol) {
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;
    Dwarf_Files *files;
    const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    if (dwarf_formudata(dwarf_attr(called, DW_AT_call_file, &attribute), &file) != 0 ||
        dwarf_formudata(dwarf_attr(called, DW_AT_call_line, &attribute), &line) != 0 ||
        dwarf_getsrcfiles(unit, &files, NULL) != 0)
        return;
    const char *name = dwarf_filesrc(files, file, NULL, NULL);
    if (name == NULL)
        return;
    file_name(name, folder, symbol->file);
    symbol->line = (int)line;
}

// The scopes that hold ADDRESS, from the inside out; to be freed.
static int find_scopes(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes) {
    Dwarf_Die *innermost = NULL;
    *scopes = NULL;
    if (unit == NULL || dwarf_getscopes(unit, address, &innermost) <= 0)
        return 0;
    const int count = dwarf_getscopes_die(&innermost[0], scopes);
    free(innermost);
    return count;
}

// Functions by debug information: returns how many of SYMBOLS are filled; the first has its line.
static size_t find_functions(Dwfl_Module *module, Dwarf_Addr address, struct base_symbol *symbols,
                             size_t count_max) {
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes;
    const int scope_count = find_scopes(unit, address - bias, &scopes);
    size_t count = 0;
    for (int i = 0; i < scope_count && count < count_max; ++i) {
        const int tag = dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        copy(symbols[count++].function, dwarf_diename(&scopes[i]));
        if (tag == DW_TAG_subprogram)
            break;
        if (count < count_max)
            find_call_line(unit, &scopes[i], &symbols[count]);
    }
    free(scopes);
    return count;
}

static size_t find_by_libdw(Dwarf_Addr address, struct base_symbol *symbols, size_t count_max) {
    Dwarf_Addr bias = 0;
    Dwfl_Module *module = module_at(address);
    const char *path = NULL;
    if (module == NULL)
        return 0;
    const char *name = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &path, NULL);
    if (dwfl_module_getelf(module, &bias) == NULL)
        return 0;
    find_line(module, address, &symbols[0]);
    size_t count = find_functions(module, address, symbols, count_max);
    if (count == 0) {
        const char *function = dwfl_module_addrname(module, address);
        if (function != NULL)
            function_name(function, symbols[0].function);
        count = 1;
    }
    for (size_t i = 0; i < count; ++i) {
        copy(symbols[i].module, path != NULL ? path : name);
        symbols[i].offset = address - bias;
    }
    return count;
}

static size_t find_by_linker(const void *address, struct base_symbol *symbol) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
        return 0;
    copy(symbol->module, info.dli_fname);
    symbol->offset = (uint64_t)((uintptr_t)address - (uintptr_t)info.dli_fbase);
    if (info.dli_sname != NULL)
        function_name(info.dli_sname, symbol->function);
    return 1;
}

size_t base_symbol_frames(const void *address, struct base_symbol *symbols, size_t count_max) {
    memset(symbols, 0, count_max * sizeof *symbols);
    if (address == NULL || count_max == 0)
        return 0;
    // The call ends where it returns to, which may be another line's already.
    const char *call = (const char *)address - 1;
    (void)pthread_mutex_lock(&lock);
    size_t count = find_by_libdw((uintptr_t)call, symbols, count_max);
    if (count == 0)
        count = find_by_linker(call, symbols);
    (void)pthread_mutex_unlock(&lock);
    return count;
}

bool base_symbol_find(const void *address, struct base_symbol *symbol) {
    return base_symbol_frames(address, symbol, 1) > 0;
}

// TEXT gets "FUNCTION (PLACE)" or "PLACE".
static void format(char *text, const char *function, const char *file, const char *separator,
                   uint64_t number, bool hexadecimal) {
    char place[2 * BASE_SYMBOL_TEXT];
    snprintf(place, sizeof place, hexadecimal ? "%s%s0x%" PRIx64 : "%s%s%" PRIu64, file, separator,
             number);
    snprintf(text, BASE_SYMBOL_TEXT, function[0] == '\0' ? "%s%s" : "%s (%s)", function, place);
}

const char *base_symbol_format(const struct base_symbol *symbol, char *text) {
    if (symbol->line > 0)
        format(text, symbol->function, symbol->file, ":", (uint64_t)symbol->line, false);
    else if (symbol->module[0] != '\0')
        format(text, symbol->function, symbol->module, "+", symbol->offset, true);
    else
        text[0] = '\0';
    return text;
}

const char *base_symbol_text(const void *address, char *text) {
    struct base_symbol symbol;
    if (base_symbol_find(address, &symbol))
        return base_symbol_format(&symbol, text);
    snprintf(text, BASE_SYMBOL_TEXT, "0x%" PRIxPTR, (uintptr_t)address);
    return text;
}
