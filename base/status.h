// Operating errors are values: a status, and a sentence that says what, which object, the numbers,
// a hint.
//
//     enum base_status status = trace_read(path, &trace);
//     if (status != BASE_OK) {
//         fprintf(stderr, "%s\n", base_status_message());
//         return base_status_exit_code(status);
//     }
//
// The sentence belongs to the calling thread and stays until that thread sets another one. Broken
// invariants are no operating errors: they abort (base/check.h).
#ifndef TIDEMARK_BASE_STATUS_H
#define TIDEMARK_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

// X(NAME, EXIT, TEXT): the enumerator BASE_NAME, the exit status of a program that ends with it
// (0 well, 1 a check failed, 2 wrong usage or unreadable input, 3 the environment lacks something,
// 130 interrupted), and what the status means when no sentence was set.
#define BASE_STATUS_LIST(X)                                 \
    X(OK, 0, "ok")                                          \
    X(OUT_OF_MEMORY, 1, "out of device memory")             \
    X(CHECK_FAILED, 1, "a check failed")                    \
    X(INVALID_VALUE, 2, "invalid value")                    \
    X(INVALID_POINTER, 2, "invalid device pointer")         \
    X(INVALID_CONFIG, 2, "invalid allocator configuration") \
    X(UNSUPPORTED, 2, "not supported")                      \
    X(FORMAT, 2, "malformed input")                         \
    X(IO, 2, "input or output failed")                      \
    X(LIMIT, 2, "a limit was reached")                      \
    X(HOST_MEMORY, 3, "out of host memory")                 \
    X(ENVIRONMENT, 3, "the environment lacks something")    \
    X(CUDA, 3, "a CUDA call failed")                        \
    X(INTERRUPTED, 130, "interrupted")

enum base_status {
#define BASE_STATUS_ENUMERATOR(name, exit_code, text) BASE_##name,
    BASE_STATUS_LIST(BASE_STATUS_ENUMERATOR)
#undef BASE_STATUS_ENUMERATOR
};

#define BASE_MUST_USE __attribute__((warn_unused_result))
#define BASE_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))

// The longest sentence kept, in bytes with the terminator; longer ones are cut.
#define BASE_STATUS_MESSAGE_SIZE 2048

// Sets this thread's sentence and returns STATUS, so that `return base_status_set(BASE_IO, ...)`
// reads well. Whatever it quotes, the sentence is one line without control characters.
enum base_status base_status_set(enum base_status status, const char *format, ...)
    BASE_PRINTF(2, 3);

// Puts "PREFIX: " before this thread's sentence ("FILE: byte 17: ..."); returns STATUS.
enum base_status base_status_prefix(enum base_status status, const char *format, ...)
    BASE_PRINTF(2, 3);

// This thread's last sentence; never NULL, "" before the first.
const char *base_status_message(void);

// "OUT_OF_MEMORY", "out of device memory", 1. Never NULL; an unknown value gives "UNKNOWN" and exit
// status 1.
const char *base_status_name(enum base_status status);
const char *base_status_text(enum base_status status);
int base_status_exit_code(enum base_status status);

#ifdef __cplusplus
}
#endif

#endif
