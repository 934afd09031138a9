// What the names of a script stand for, and whose bytes were whose.
#include "allocator/golden/capture_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

void *golden__capture_grow(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity)
        return items;
    *capacity = *capacity == 0 ? 16 : 2 * *capacity;
    void *const grown = realloc(items, *capacity * item_size);
    BASE_CHECK(grown != NULL);
    return grown;
}

static void *named(const struct golden_capture_named *items, size_t count, const char *name) {
    for (size_t index = 0; index < count; index++)
        if (strcmp(items[index].name, name) == 0)
            return items[index].handle;
    base_check_context("\"%s\" was not checked", name);
    BASE_CHECK(false);
    return NULL;
}

cudaStream_t golden__capture_stream(const struct golden_capture_run *run, const char *name) {
    if (strcmp(name, "s0") == 0)
        return NULL;
    return named(run->streams, run->stream_count, name);
}

cudaEvent_t golden__capture_event(const struct golden_capture_run *run, const char *name) {
    return named(run->events, run->event_count, name);
}

const char *golden__capture_stream_name(const struct golden_capture_run *run, cudaStream_t stream) {
    for (size_t index = 0; index < run->stream_count; index++)
        if (run->streams[index].handle == (void *)stream)
            return run->streams[index].name;
    return "s0";
}

struct golden_capture *golden__capture_find(const struct golden_capture_run *run,
                                            const char *name) {
    for (size_t index = run->capture_count; index > 0; index--)
        if (strcmp(run->captures[index - 1]->name, name) == 0)
            return run->captures[index - 1];
    return NULL;
}

// Newest first: a loop asks for what it has just made.
size_t golden__capture_tensor(struct golden_capture_run *run, const char *name) {
    for (size_t index = run->tensor_count; index > 0; index--)
        if (strcmp(run->tensors[index - 1].name, name) == 0)
            return index - 1;
    run->tensors = golden__capture_grow(run->tensors, run->tensor_count, &run->tensor_capacity,
                                        sizeof *run->tensors);
    char *const copy = strdup(name);
    BASE_CHECK(copy != NULL);
    run->tensors[run->tensor_count] = (struct golden_capture_tensor){.name = copy};
    return run->tensor_count++;
}

//--------------------------------------------------------------------------------------------------
// Owners.

static void span_insert(struct golden_capture_run *run, size_t at,
                        const struct golden_capture_span *span) {
    run->spans =
        golden__capture_grow(run->spans, run->span_count, &run->span_capacity, sizeof *run->spans);
    memmove(&run->spans[at + 1], &run->spans[at], (run->span_count - at) * sizeof *run->spans);
    run->spans[at] = *span;
    run->span_count++;
}

// The first span that ends behind ADDRESS.
static size_t span_after(const struct golden_capture_run *run, uint64_t address) {
    size_t low = 0, high = run->span_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (run->spans[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Cuts the span that ADDRESS lies inside in two.
static void span_split(struct golden_capture_run *run, uint64_t address) {
    const size_t at = span_after(run, address);
    if (at == run->span_count || run->spans[at].begin >= address)
        return;
    struct golden_capture_span front = run->spans[at];
    front.end = address;
    run->spans[at].begin = address;
    span_insert(run, at, &front);
}

static int compare_names(const void *a, const void *b) {
    const char *const *const left = a, *const *const right = b;
    return strcmp(*left, *right);
}

static void print_owners(struct golden_capture_run *run, size_t first, size_t last) {
    const char **const names = calloc(last - first + 1, sizeof *names);
    BASE_CHECK(names != NULL);
    for (size_t index = first; index < last; index++)
        names[index - first] = run->tensors[run->spans[index].owner].name;
    qsort(names, last - first, sizeof *names, compare_names);
    const char *separator = " over=";
    for (size_t index = 0; index < last - first; index++) {
        if (index > 0 && strcmp(names[index], names[index - 1]) == 0)
            continue;
        fprintf(run->output, "%s%s", separator, names[index]);
        separator = ",";
    }
    free(names);
}

void golden__capture_own(struct golden_capture_run *run, uint64_t begin, uint64_t end,
                         size_t owner) {
    span_split(run, begin);
    span_split(run, end);
    const size_t first = span_after(run, begin);
    size_t last = first;
    while (last < run->span_count && run->spans[last].begin < end)
        last++;
    if (first == last)
        fputs(" fresh", run->output);
    else
        print_owners(run, first, last);
    if (last < run->span_count)
        memmove(&run->spans[first], &run->spans[last],
                (run->span_count - last) * sizeof *run->spans);
    run->span_count -= last - first;
    span_insert(run, first, &(struct golden_capture_span){begin, end, owner});
}
