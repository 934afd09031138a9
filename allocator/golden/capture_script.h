// A script of the logs that were recorded during graph captures, read and checked; its language is
// in testdata/capture/README.md.
//
//     struct golden_capture_script script;
//     status = golden_capture_script_read("r01.txt", &script);     BASE_FORMAT: "r01.txt:17: ..."
//     for (size_t i = 0; i < script.count; i++) ... script.operations[i] ...
//     golden_capture_script_deinit(&script);
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_SCRIPT_H
#define TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_SCRIPT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// X(NAME, text, arguments), an argument a letter:
//     S, E, C  a new stream, event or capture      s, e, g  one that an earlier line made
//     t  a tensor, or what a checkpoint is called  b  a number   o  0 or 1
//     k  a capture, begun or not
//     p  a pool "A,B"   q  a pool, or `new`        f  a stream, or `body`
//     m  global, thread or relaxed
// `?` behind one: it may be missing; `*`: any number of them. BEGIN to POOL_COUNT are about
// captures and pools.
#define GOLDEN_CAPTURE_VERB_LIST(X)                                                                \
    X(STREAM, "stream", "S")                                                                       \
    X(EVENT, "event", "E")                                                                         \
    X(MALLOC, "malloc", "tsbs?")                                                                   \
    X(FREE, "free", "t")                                                                           \
    X(RECORD, "record", "ts")                                                                      \
    X(CUR, "cur", "s")                                                                             \
    X(LAUNCH, "launch", "st*")                                                                     \
    X(EVREC, "evrec", "es")                                                                        \
    X(EVWAIT, "evwait", "se")                                                                      \
    X(BEGIN, "begin", "Csqm?")                                                                     \
    X(END, "end", "g")                                                                             \
    X(BEGIN_POOL, "begin.pool", "Csq")                                                             \
    X(BEGIN_DRIVER, "begin.driver", "gm?")                                                         \
    X(BEGIN_MARK, "begin.mark", "g")                                                               \
    X(END_DRIVER, "end.driver", "g")                                                               \
    X(END_MARK, "end.mark", "k")                                                                   \
    X(END_POOL, "end.pool", "g")                                                                   \
    X(BEGIN_RAW, "begin.raw", "Csm?")                                                              \
    X(BEGIN_TO, "begin.to", "Csfm?")                                                               \
    X(RESET, "reset", "g")                                                                         \
    X(GRAPH, "graph", "g")                                                                         \
    X(POOL_BEGIN, "pool_begin", "p")                                                               \
    X(POOL_END, "pool_end", "p")                                                                   \
    X(POOL_CREATE, "pool_create", "p")                                                             \
    X(POOL_RELEASE, "pool_release", "p")                                                           \
    X(POOL_COUNT, "pool_count", "p")                                                               \
    X(EMPTY, "empty", "p?")                                                                        \
    X(STAT, "stat", "")                                                                            \
    X(LAYOUT, "layout", "")                                                                        \
    X(CKPT_GET, "ckpt_get", "tp")                                                                  \
    X(CKPT_SET, "ckpt_set", "t")                                                                   \
    X(LIVE, "live", "pt*")                                                                         \
    X(COMPLETE, "complete", "o")                                                                   \
    X(CAPACITY, "capacity", "b")                                                                   \
    X(DEPS, "deps", "s")                                                                           \
    X(SETDEPS, "setdeps", "ss*")                                                                   \
    X(EMPTYNODE, "emptynode", "s")                                                                 \
    X(SYNC, "sync", "s")                                                                           \
    X(DEVSYNC, "devsync", "")                                                                      \
    X(EVQUERY, "evquery", "e")                                                                     \
    X(EVSYNC, "evsync", "e")                                                                       \
    X(RAWMALLOC, "rawmalloc", "b")                                                                 \
    X(XMODE, "xmode", "m")                                                                         \
    X(QUIET, "quiet", "o")                                                                         \
    X(TALLY, "tally", "")                                                                          \
    X(LOOP, "loop", "bb")                                                                          \
    X(ENDLOOP, "endloop", "")

enum golden_capture_verb {
#define GOLDEN_CAPTURE_ENUMERATOR(name, text, arguments) GOLDEN_CAPTURE_##name,
    GOLDEN_CAPTURE_VERB_LIST(GOLDEN_CAPTURE_ENUMERATOR)
#undef GOLDEN_CAPTURE_ENUMERATOR
        GOLDEN_CAPTURE_VERB_COUNT
};

#define GOLDEN_CAPTURE_THREAD_COUNT 9 // the main one, and helpers 1 to 8
#define GOLDEN_CAPTURE_WORD_COUNT_MAX 32

struct golden_capture_operation {
    const char *text; // the whole line, as a log repeats it
    size_t line;      // in the script, from 1
    enum golden_capture_verb verb;
    unsigned thread;
    bool is_probe;                                    // to be tried in a process of its own
    const char *words[GOLDEN_CAPTURE_WORD_COUNT_MAX]; // behind the verb
    size_t word_count;
    size_t other_end; // of `loop` and `endloop`: the index of the other one
};

struct golden_capture_script {
    char *data;         // what the operations point into
    char *words;        // likewise
    const char *config; // of "# conf" in the first line, else ""
    struct golden_capture_operation *operations;
    size_t count;
};

// BASE_IO for a file that cannot be read; BASE_FORMAT names file, line and what would be right.
enum base_status golden_capture_script_read(const char *path,
                                            struct golden_capture_script *script) BASE_MUST_USE;
void golden_capture_script_deinit(struct golden_capture_script *script);

#endif
