// Who called, in words. Frames of the simulator's own at the beginning of a list of callers are
// left out, by their names.
#include "simulator/call.h"

#include "base/symbol.h"

#include <stdio.h>
#include <string.h>

// Callers of the place of the call, and theirs, that are told as well.
#define CALLERS_SHOWN 2
#define FRAMES_MAX 16

// Whether a function of that name is the simulator's: a call that it answers, or what is below.
static bool is_own(const char *name) {
    static const char *const beginnings[] = {"sim__", "sim_", "written_cu", "written_sim_",
                                             "cublas"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; ++i)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    const char *behind = strncmp(name, "cuda", 4) == 0 ? name + 4 : name + 2;
    return strncmp(name, "cu", 2) == 0 && behind[0] >= 'A' && behind[0] <= 'Z';
}

static bool is_header(const char *file) {
    const char *ending = strrchr(file, '.');
    return ending != NULL && (ending[1] == 'h' || strcmp(ending, ".cuh") == 0);
}

// The first frame that is the program's; of wrappers in headers, who calls them.
static size_t frame_first(const struct base_symbol *frames, size_t count) {
    size_t first = 0;
    while (first < count && is_own(frames[first].function))
        ++first;
    size_t source = first;
    while (source < count && is_header(frames[source].file))
        ++source;
    return source < count && frames[source].line > 0 ? source : first;
}

static bool has_enough(const struct base_symbol *frames, size_t count) {
    return frame_first(frames, count) + CALLERS_SHOWN < count ||
           (count > 0 && strcmp(frames[count - 1].function, "main") == 0);
}

// From the inside out, inlined ones too, as far as they are told: libraries take their time.
static size_t frames_find(const void *const callers[SIM__CALLERS],
                          struct base_symbol frames[FRAMES_MAX]) {
    size_t count = 0;
    for (int i = 0; i < SIM__CALLERS && callers[i] != NULL && !has_enough(frames, count); ++i)
        count += base_symbol_frames(callers[i], frames + count, FRAMES_MAX - count);
    return count;
}

const char *sim__callers_text(const void *const callers[SIM__CALLERS], char *text, size_t size) {
    struct base_symbol frames[FRAMES_MAX];
    char place[BASE_SYMBOL_TEXT];
    const size_t count = frames_find(callers, frames);
    const size_t first = frame_first(frames, count);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = first; i < count && i <= first + CALLERS_SHOWN; ++i) {
        if (i > first && frames[i].line == 0)
            break;
        const int added =
            snprintf(text + length, size - length, "%s%s", i > first ? SIM__CALLED_BY : "",
                     base_symbol_format(&frames[i], place));
        if (added < 0 || (size_t)added >= size - length || strcmp(frames[i].function, "main") == 0)
            break;
        length += (size_t)added;
    }
    return text;
}
