// Who called, in words. Frames of the simulator's own at the beginning of a list of callers are
// left out, by their names.
#include "simulator/call.h"

#include "base/symbol.h"

#include <stdio.h>
#include <string.h>

// Callers of the place of the call, and theirs, that are told as well.
#define CALLERS_SHOWN 2

// Whether a function of that name is the simulator's: a call that it answers, or what is below.
static bool is_own(const char *name) {
    static const char *const beginnings[] = {"sim__", "sim_", "written_cu", "written_sim_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; ++i)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    const char *behind = strncmp(name, "cuda", 4) == 0 ? name + 4 : name + 2;
    return strncmp(name, "cu", 2) == 0 && behind[0] >= 'A' && behind[0] <= 'Z';
}

const char *sim__callers_text(const void *const callers[SIM__CALLERS], char *text, size_t size) {
    bool has_place = false;
    size_t length = 0;
    int shown = 0;
    text[0] = '\0';
    for (int i = 0; i < SIM__CALLERS && callers[i] != NULL && shown <= CALLERS_SHOWN; ++i) {
        struct base_symbol symbol;
        char place[BASE_SYMBOL_TEXT];
        if (!base_symbol_find(callers[i], &symbol) || (!has_place && is_own(symbol.function)) ||
            (has_place && symbol.line == 0))
            continue;
        const int added =
            snprintf(text + length, size - length, "%s%s", has_place ? ", called by " : "",
                     base_symbol_format(&symbol, place));
        has_place = true;
        ++shown;
        if (strcmp(symbol.function, "main") == 0 || added < 0 || (size_t)added >= size - length)
            break;
        length += (size_t)added;
    }
    return text;
}
