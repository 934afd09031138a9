// Which reader a file is for, told by its first bytes, never by its name; a file for none of them
// is told what it seems to be.
#include "trace/trace.h"

#include "trace/build.h"
#include "trace/sidecar.h"
#include "trace/snapshot_reader.h"
#include "trace/tmt.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

// How far into a file words that tell its kind are looked for.
enum { LOOK_SIZE = 4096 };

static bool contains(const unsigned char *bytes, size_t size, const char *word) {
    return memmem(bytes, size, word, strlen(word)) != NULL;
}

static bool starts_with(const unsigned char *bytes, size_t size, const char *magic,
                        size_t magic_size) {
    return size >= magic_size && memcmp(bytes, magic, magic_size) == 0;
}

// zstd, xz, bzip2. The first begins like a pickle of protocol 0.
static bool is_otherwise_compressed(const unsigned char *bytes, size_t size) {
    return starts_with(bytes, size, "\x28\xb5\x2f\xfd", 4) ||
           starts_with(bytes, size, "\3757zXZ", 5) || starts_with(bytes, size, "BZh", 3);
}

// One sentence on a file that no reader takes.
static enum base_status refuse(const unsigned char *bytes, size_t size) {
    static const char wanted[] =
        "wanted is a .tmt or a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot)";
    if (size == 0) return base_status_set(BASE_FORMAT, "the file is empty; %s", wanted);
    if (contains(bytes, size, "umpire::") || contains(bytes, size, "\"allocator_ref\""))
        return base_status_set(BASE_FORMAT, "an Umpire replay log: these are not read yet; %s",
                               wanted);
    if (contains(bytes, size, "\"traceEvents\"") ||
        (contains(bytes, size, "\"schemaVersion\"") &&
         contains(bytes, size, "\"deviceProperties\"")) ||
        contains(bytes, size, "\"distributedInfo\""))
        return base_status_set(BASE_FORMAT, "profiler JSON: it is not read yet; %s", wanted);
    if (starts_with(bytes, size, "PK\3\4", 4))
        return base_status_set(BASE_FORMAT,
                               "a zip archive (torch.save writes these), not a memory snapshot; %s",
                               wanted);
    if (is_otherwise_compressed(bytes, size))
        return base_status_set(
            BASE_FORMAT, "compressed by zstd, xz or bzip2: of compressions only gzip is read; %s",
            wanted);
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", bytes[blank]) != NULL && bytes[blank] != 0) blank++;
    if (blank < size && (bytes[blank] == '{' || bytes[blank] == '['))
        return base_status_set(BASE_FORMAT, "JSON of an unknown kind; %s", wanted);
    return base_status_set(BASE_FORMAT,
                           "byte 0: neither a .tmt nor a pickle; %s", wanted);
}

static enum base_status read_snapshot(struct trace_input *input, const char *path,
                                      const struct trace_read_options *options,
                                      struct trace **trace) {
    struct trace *read = NULL;
    enum base_status status = trace__read_snapshot(input, options, &read);
    if (status != BASE_OK) return base_status_prefix(status, "%s", path);
    read->format = "PyTorch snapshot";
    status = trace__read_sidecar(path, &read->settings);
    if (status == BASE_OK)
        *trace = read;
    else
        trace_destroy(read);
    return status;
}

static enum base_status read_input(struct trace_input *input, const char *path,
                                   const struct trace_read_options *options, struct trace **trace) {
    enum base_status status = trace_input_fill(input, LOOK_SIZE);
    if (status != BASE_OK) return base_status_prefix(status, "%s", path);
    const size_t size = (size_t)(input->end - input->next),
                 look = size < LOOK_SIZE ? size : LOOK_SIZE;
    const size_t magic = size < TRACE_TMT_MAGIC_SIZE ? size : TRACE_TMT_MAGIC_SIZE;
    if (magic > 0 && memcmp(input->next, TRACE_TMT_MAGIC, magic) == 0) {
        status = trace__read_tmt(input, options, trace);
        return status == BASE_OK ? status : base_status_prefix(status, "%s", path);
    }
    if (!is_otherwise_compressed(input->next, look) && trace__is_pickle(input->next, look))
        return read_snapshot(input, path, options, trace);
    return base_status_prefix(refuse(input->next, look), "%s", path);
}

// What is shown on terminals and in pages, and may come from a stranger.
static void clean_texts(struct trace *trace) {
    char *const texts[] = {trace->name, trace->source, trace->settings.config,
                           trace->settings.torch_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL) base_text_clean(texts[i]);
}

enum base_status trace_read(const char *path, const struct trace_read_options *options,
                            struct trace **trace) {
    static const struct trace_read_options defaults = {0};
    if (strcmp(path, "-") == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "-: standard input is not read; give the name of a file");
    struct trace_input input;
    enum base_status status = trace_input_open(&input, path);
    if (status != BASE_OK) return status;
    status = read_input(&input, path, options == NULL ? &defaults : options, trace);
    trace_input_close(&input);
    if (status == BASE_OK) clean_texts(*trace);
    return status;
}
