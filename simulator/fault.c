// A fault plan: which CUDA calls fail, or take longer, and when. A text file, one rule a line;
// words are separated by blanks, "#" starts a comment.
//
//     CALL WHEN EFFECT [TIMES]
//
//     cudaMalloc           at 5         error cudaErrorMemoryAllocation
//     cudaMalloc           every 100    error 2                          times 3
//     cudaMalloc           above 60GiB  error cudaErrorMemoryAllocation
//     cudaEventQuery       chance 0.01  error 719                        once
//     cudaLaunchKernel     at 1000      sticky cudaErrorIllegalAddress
//     cudaStreamSynchronize chance 0.1  delay 2ms
//     cublasGemmEx         at 7         error CUBLAS_STATUS_EXECUTION_FAILED
//     any                  every 1000   delay 50us
//
//     CALL    a kind of call as sim_call_name says it, or "any"
//     WHEN    at N       the N-th call of the kind; with TIMES the calls behind it, too
//             every N    each N-th call
//             chance P   each call with probability P; "seed S" may follow (default 1)
//             above SIZE each call that finds more than SIZE in use on the current device
//     EFFECT  error E    the call does nothing and returns E, a number or a name: a CUDA error, of
//                        cuBLAS calls a status
//             sticky E   the same, and the device is dead: all later calls return E
//             delay T    the call takes T longer (virtual time; 5ns, 5us, 5ms, 5s)
//             stall T    what the call enqueues starts T later (virtual time)
//     TIMES   once, times K, always; without it "at" strikes once, the others always
//
// Rules are looked at in order; all that match strike, and the first error counts. A rule counts
// the calls of its kind from the start of the machine; sim_configure and sim_reset begin anew.
#include "simulator/fault.h"

#include "base/file.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/blas_status.h"
#include "simulator/call.h"
#include "simulator/cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES_MAX ((size_t)16 << 20)
#define WORDS_MAX 10
#define CALL_ANY SIM_CALL_KIND_COUNT
#define ERROR_MAX 1000 // codes are below

enum when { WHEN_AT, WHEN_EVERY, WHEN_CHANCE, WHEN_ABOVE };
enum effect { EFFECT_ERROR, EFFECT_STICKY, EFFECT_DELAY, EFFECT_STALL };

struct rule {
    int call; // enum sim_call, or CALL_ANY
    enum when when;
    uint64_t number; // of calls, or bytes
    double probability;
    uint64_t seed;
    enum effect effect;
    cudaError_t error;
    uint64_t time_ns;
    uint64_t times; // UINT64_MAX: always
    // The state.
    uint64_t seen, struck;
    struct base_random random;
};

int sim__fault_count;
static struct rule *rules;
static bool is_loaded; // by the program: the environment no longer counts

// --- Striking ---

static bool rule_matches(struct rule *rule) {
    ++rule->seen;
    if (rule->struck >= rule->times)
        return false;
    switch (rule->when) {
    case WHEN_AT: return rule->seen >= rule->number;
    case WHEN_EVERY: return rule->seen % rule->number == 0;
    case WHEN_CHANCE: return base_random_chance(&rule->random, rule->probability);
    case WHEN_ABOVE: return sim__device_current()->used_bytes > rule->number;
    }
    return false;
}

cudaError_t sim__fault_strike(enum sim_call call) {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < sim__fault_count; ++i) {
        struct rule *rule = &rules[i];
        if ((rule->call != CALL_ANY && rule->call != (int)call) || !rule_matches(rule))
            continue;
        ++rule->struck;
        if (rule->effect == EFFECT_DELAY)
            sim__time_pass(rule->time_ns, rule->time_ns, rule->time_ns);
        else if (rule->effect == EFFECT_STALL)
            sim__state.stall_ns += rule->time_ns;
        else if (error == cudaSuccess)
            error = rule->error;
        if (rule->effect == EFFECT_STICKY && sim__device_current()->sticky_error == cudaSuccess)
            sim__device_current()->sticky_error = rule->error;
    }
    return error;
}

void sim__faults_begin(void) {
    for (int i = 0; i < sim__fault_count; ++i) {
        rules[i].seen = rules[i].struck = 0;
        rules[i].random = base_random_init(rules[i].seed, "fault");
    }
}

// --- Reading ---

// A line's words, and the next one to read.
struct words {
    char *word[WORDS_MAX];
    int count, at;
};

static const char *words_next(struct words *words) {
    return words->at < words->count ? words->word[words->at++] : "";
}

static enum base_status bad(const char *what, const char *word, const char *want) {
    return *word == '\0' ? base_status_set(BASE_FORMAT, "the line ends: want %s", want)
                         : base_status_set(BASE_FORMAT, "%s \"%s\": want %s", what, word, want);
}

static bool number_parse(const char *word, uint64_t least, uint64_t *number) {
    char *end;
    if (*word < '0' || *word > '9')
        return false;
    errno = 0;
    *number = strtoull(word, &end, 10);
    return errno == 0 && *end == '\0' && *number >= least;
}

static enum base_status call_parse(const char *word, int *call) {
    for (*call = 0; *call < SIM_CALL_KIND_COUNT; ++*call)
        if (strcmp(sim_call_name((enum sim_call)*call), word) == 0)
            return BASE_OK;
    if (strcmp(word, "any") == 0)
        return BASE_OK;
    char names[2048] = "any";
    for (int i = 0; i < SIM_CALL_KIND_COUNT; ++i) {
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s",
                 i + 1 < SIM_CALL_KIND_COUNT ? ", " : " or ", sim_call_name((enum sim_call)i));
    }
    return bad("call", word, names);
}

static enum base_status error_parse(const char *word, cudaError_t *error) {
    uint64_t number;
    const char *unknown = cudaGetErrorName((cudaError_t)ERROR_MAX);
    const bool is_number = number_parse(word, 1, &number);
    for (int code = 1; code < ERROR_MAX; ++code) {
        const char *name = cudaGetErrorName((cudaError_t)code);
        *error = (cudaError_t)code;
        if (strcmp(name, unknown) != 0 &&
            (is_number ? number == (uint64_t)code : strcmp(name, word) == 0))
            return BASE_OK;
    }
    return bad("error", word, "a CUDA error, by number or name: 2, cudaErrorMemoryAllocation");
}

// Of cuBLAS calls.
static enum base_status status_parse(const char *word, cudaError_t *error) {
    uint64_t number;
    const struct sim__blas_status *status =
        number_parse(word, 1, &number) && number < ERROR_MAX ? sim__blas_status_find((int)number)
                                                             : sim__blas_status_named(word);
    if (status == NULL || status->status == CUBLAS_STATUS_SUCCESS)
        return bad("error", word, "a cuBLAS status, by number or name: CUBLAS_STATUS_ALLOC_FAILED");
    *error = SIM_FAULT_STATUS(status->status);
    return BASE_OK;
}

static bool is_blas(int call) { return call >= SIM_CALL_BLAS_CREATE && call < CALL_ANY; }

static enum base_status time_parse(const char *word, uint64_t *time_ns) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    const double value = strtod(word, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i)
        if (end != word && strcmp(end, units[i].name) == 0 && value >= 0 &&
            value * units[i].ns < 1e18) {
            *time_ns = (uint64_t)llround(value * units[i].ns);
            return BASE_OK;
        }
    return bad("time", word, "a time such as 50us (ns, us, ms, s)");
}

static enum base_status probability_parse(const char *word, double *probability) {
    char *end;
    *probability = strtod(word, &end);
    return end != word && *end == '\0' && *probability >= 0 && *probability <= 1
               ? BASE_OK
               : bad("probability", word, "a number from 0 to 1");
}

static enum base_status when_parse(struct words *words, struct rule *rule) {
    const char *word = words_next(words);
    rule->times = UINT64_MAX;
    rule->seed = 1;
    if (strcmp(word, "at") == 0 || strcmp(word, "every") == 0) {
        rule->when = *word == 'a' ? WHEN_AT : WHEN_EVERY;
        if (rule->when == WHEN_AT)
            rule->times = 1;
        word = words_next(words);
        return number_parse(word, 1, &rule->number)
                   ? BASE_OK
                   : bad("number of calls", word, "a number from 1");
    }
    if (strcmp(word, "above") == 0) {
        rule->when = WHEN_ABOVE;
        word = words_next(words);
        return base_size_parse(word, &rule->number) == BASE_OK
                   ? BASE_OK
                   : bad("size", word, "a size such as 60GiB");
    }
    if (strcmp(word, "chance") != 0)
        return bad("condition", word, "at N, every N, chance P or above SIZE");
    rule->when = WHEN_CHANCE;
    const enum base_status status = probability_parse(words_next(words), &rule->probability);
    if (status != BASE_OK || words->at == words->count ||
        strcmp(words->word[words->at], "seed") != 0)
        return status;
    ++words->at;
    word = words_next(words);
    return number_parse(word, 0, &rule->seed) ? BASE_OK : bad("seed", word, "a number");
}

static enum base_status effect_parse(struct words *words, struct rule *rule) {
    static const char *const effects[] = {"error", "sticky", "delay", "stall"};
    const char *word = words_next(words);
    for (int i = 0; i < 4; ++i) {
        if (strcmp(word, effects[i]) != 0)
            continue;
        rule->effect = (enum effect)i;
        word = words_next(words);
        if (i > EFFECT_STICKY)
            return time_parse(word, &rule->time_ns);
        return i == EFFECT_ERROR && is_blas(rule->call) ? status_parse(word, &rule->error)
                                                        : error_parse(word, &rule->error);
    }
    return bad("effect", word, "error E, sticky E, delay T or stall T");
}

static enum base_status times_parse(struct words *words, struct rule *rule) {
    if (words->at == words->count)
        return BASE_OK;
    const char *word = words_next(words);
    if (strcmp(word, "once") == 0) {
        rule->times = 1;
    } else if (strcmp(word, "always") == 0) {
        rule->times = UINT64_MAX;
    } else if (strcmp(word, "times") == 0) {
        word = words_next(words);
        if (!number_parse(word, 1, &rule->times))
            return bad("number of times", word, "a number from 1");
    } else {
        return bad("word", word, "once, times K, always or the end of the line");
    }
    word = words_next(words);
    return *word == '\0' ? BASE_OK : bad("word", word, "the end of the line");
}

static enum base_status rule_parse(struct words *words, struct rule *rule) {
    enum base_status status = call_parse(words_next(words), &rule->call);
    if (status == BASE_OK)
        status = when_parse(words, rule);
    if (status == BASE_OK)
        status = effect_parse(words, rule);
    return status == BASE_OK ? times_parse(words, rule) : status;
}

static enum base_status line_split(char *line, struct words *words) {
    words->count = words->at = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *rest, *word = strtok_r(line, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (words->count == WORDS_MAX)
            return bad("word", word, "the end of the line");
        words->word[words->count++] = word;
    }
    return BASE_OK;
}

// TEXT is changed. The plan grows by its rules.
static enum base_status text_parse(const char *path, char *text, struct rule **plan, int *count) {
    int number = 0;
    for (char *line = text; line != NULL;) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        ++number;
        struct words words;
        enum base_status status = line_split(line, &words);
        if (status == BASE_OK && words.count > 0) {
            struct rule *grown = realloc(*plan, (size_t)(*count + 1) * sizeof *grown);
            if (grown == NULL)
                return base_status_set(BASE_HOST_MEMORY, "%s: out of host memory", path);
            *plan = grown;
            grown[*count] = (struct rule){0};
            status = rule_parse(&words, &grown[(*count)++]);
        }
        if (status != BASE_OK)
            return base_status_prefix(status, "%s:%d", path, number);
        line = next;
    }
    return BASE_OK;
}

static enum base_status load(const char *path) {
    struct rule *plan = NULL;
    int count = 0;
    char *text;
    size_t size;
    enum base_status status = base_file_read(path, PLAN_BYTES_MAX, &text, &size);
    if (status != BASE_OK)
        return status;
    status = text_parse(path, text, &plan, &count);
    free(text);
    if (status != BASE_OK) {
        free(plan);
        return status;
    }
    free(rules);
    rules = plan;
    sim__fault_count = count;
    sim__faults_begin();
    return BASE_OK;
}

enum base_status sim_faults_load(const char *path) {
    enum base_status status = BASE_OK;
    base_mutex_lock(&sim__state.lock);
    is_loaded = true;
    if (path != NULL) {
        status = load(path);
    } else {
        free(rules);
        rules = NULL;
        sim__fault_count = 0;
    }
    base_mutex_unlock(&sim__state.lock);
    return status;
}

enum base_status sim__faults_from_environment(void) {
    const char *path = getenv("TIDEMARK_SIM_FAULTS");
    if (is_loaded || path == NULL)
        return BASE_OK;
    const enum base_status status = load(path);
    return status == BASE_OK ? status : base_status_prefix(status, "TIDEMARK_SIM_FAULTS");
}
