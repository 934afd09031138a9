// See compare.h.
#include "allocator/golden/compare.h"

#include "allocator/golden/differences.h"
#include "allocator/golden/log.h"
#include "allocator/golden/session.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_LINE "(no line)"

static const char *calls_of(const char *text) {
    const char *calls = strrchr(text, '|');
    return calls == NULL ? "" : calls;
}

// Compares up to the end of MARKER where both have it, and the device calls at the end.
static bool agree_through(const char *recorded, const char *replayed, const char *marker) {
    const char *end = strstr(recorded, marker);
    if (end == NULL) return false;
    const size_t length = (size_t)(end - recorded) + strlen(marker);
    return strncmp(recorded, replayed, length) == 0 &&
           strcmp(calls_of(recorded), calls_of(replayed)) == 0;
}

static bool counts_agree(const char *recorded, const char *replayed) {
    uint64_t recorded_queries, replayed_queries;
    int recorded_length = 0, replayed_length = 0;
    const char *const format = "counts = query=%" SCNu64 "%n";
    if (sscanf(recorded, format, &recorded_queries, &recorded_length) != 1) return false;
    if (sscanf(replayed, format, &replayed_queries, &replayed_length) != 1) return false;
    return replayed_queries <= recorded_queries &&
           strcmp(recorded + recorded_length, replayed + replayed_length) == 0;
}

// The recorded words are the stand-in's; any that name a CUDA error will do.
static bool cuda_errors_agree(const char *recorded, const char *replayed) {
    if (agree_through(recorded, replayed, " = error c10::AcceleratorError ")) return true;
    return strncmp(recorded, "error = CUDA error: ", strlen("error = CUDA error: ")) == 0 &&
           strncmp(replayed, "error = ", strlen("error = ")) == 0 &&
           (strstr(replayed, "cudaError") != NULL || strstr(replayed, "CUDA_ERROR_") != NULL);
}

// Where in PyTorch's source an assertion stands is not compared; what it says is.
static bool assertions_agree(const char *recorded, const char *replayed) {
    static const char says[] = ", please report a bug to PyTorch. ";
    if (!agree_through(recorded, replayed, " INTERNAL ASSERT FAILED at ")) return false;
    const char *const a = strstr(recorded, says), *const b = strstr(replayed, says);
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

bool golden_lines_agree(const char *recorded, const char *replayed) {
    return strcmp(recorded, replayed) == 0 || counts_agree(recorded, replayed) ||
           cuda_errors_agree(recorded, replayed) || assertions_agree(recorded, replayed);
}

static void result_fail(struct golden_result *result, enum base_status status, size_t line_number) {
    result->verdict = status == BASE_UNSUPPORTED ? GOLDEN_UNSUPPORTED : GOLDEN_UNREADABLE;
    result->line_number = line_number;
    snprintf(result->reason, sizeof result->reason, "%s", base_status_message());
}

static void result_differ(struct golden_result *result, size_t line_number, const char *recorded,
                          const char *replayed) {
    result->verdict = GOLDEN_DIFFERS;
    result->line_number = line_number;
    snprintf(result->recorded, sizeof result->recorded, "%s", recorded);
    snprintf(result->replayed, sizeof result->replayed, "%s", replayed);
}

// Compares the lines FIRST to END of the log, one operation with its details, with what was
// replayed.
static bool compare_lines(struct golden_result *result, const struct golden_log *log, size_t first,
                          size_t end, char *replayed) {
    for (size_t index = first; index < end || *replayed != '\0'; index++) {
        char *line_end = strchr(replayed, '\n');
        if (line_end != NULL) *line_end = '\0';
        const bool is_recorded = index < end;
        const char *recorded = is_recorded ? log->lines[index].text : NO_LINE;
        const char *got = line_end != NULL ? replayed : NO_LINE;
        if (!golden_lines_agree(recorded, got)) {
            result_differ(result,
                          is_recorded ? log->lines[index].number : log->lines[end - 1].number + 1,
                          recorded, got);
            return false;
        }
        result->line_count++;
        replayed = line_end + 1;
    }
    return true;
}

// Performs the operation at line INDEX and compares; returns the index of the next operation, 0 to
// stop.
static size_t compare_operation(struct golden_result *result, const struct golden_log *log,
                                size_t index, struct golden_session *session) {
    size_t end = index + 1;
    while (end < log->line_count && golden_line_is_detail(log->lines[end].text))
        end++;

    size_t length = 0;
    BASE_CHECK(golden_line_operation(log->lines[index].text, &length));
    char *operation = strndup(log->lines[index].text, length);
    char *replayed;
    size_t size;
    FILE *output = open_memstream(&replayed, &size);
    BASE_CHECK(operation != NULL && output != NULL);
    const enum base_status status = golden_session_perform(session, operation, output);
    fclose(output);
    bool agrees = false;
    if (status != BASE_OK)
        result_fail(result, status, log->lines[index].number);
    else
        agrees = compare_lines(result, log, index, end, replayed);
    free(operation);
    free(replayed);
    return agrees ? end : 0;
}

// The settings that the log's process found in its environment, where `config` is one variable. The
// allocator's own reading of the variables says what they come to.
static enum base_status read_environment(const struct golden_log *log,
                                         struct golden_options *options) {
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    static const char cuda[] = "PYTORCH_CUDA_ALLOC_CONF";
    if (log->environment == NULL) return BASE_OK;
    const size_t length = strcspn(log->environment, " ");
    const char *name = NULL;
    for (size_t index = 0; index < sizeof names / sizeof names[0]; index++)
        if (length == strlen(names[index]) && strncmp(names[index], log->environment, length) == 0)
            name = names[index];
    if (name == NULL)
        return base_status_set(BASE_UNSUPPORTED, "needs \"%s\" in the environment",
                               log->environment);
    const char *const value = log->environment[length] == ' ' ? log->environment + length + 1 : "";
    struct cca_options read = {0};
    BASE_CHECK_EQ(setenv(name, value, 1), 0);
    BASE_CHECK_EQ(log->has_config ? setenv(cuda, log->config, 1) : unsetenv(cuda), 0);
    cca_options_from_environment(&read);
    // Its text lives as long as the variable: the log has it as well.
    options->config = read.config == NULL               ? ""
                      : strcmp(read.config, value) == 0 ? value
                                                        : log->config;
    options->no_caching = read.no_caching;
    unsetenv(name);
    unsetenv(cuda);
    return BASE_OK;
}

static enum base_status add_settings(struct golden_options *options, const char *more,
                                     char config[GOLDEN_CONFIG_LENGTH_MAX + 1]) {
    if (more == NULL) return BASE_OK;
    const int length = snprintf(config, GOLDEN_CONFIG_LENGTH_MAX + 1, "%s%s%s", options->config,
                                options->config[0] == '\0' ? "" : ",", more);
    options->config = config;
    return length <= GOLDEN_CONFIG_LENGTH_MAX
               ? BASE_OK
               : base_status_set(BASE_LIMIT, "settings of %d bytes are too long", length);
}

static void compare_log(struct golden_result *result, const struct golden_log *log,
                        const struct golden_subject *subject, const char *more) {
    struct golden_session *session;
    struct golden_options options = {.config = log->config, .capacity_bytes = log->capacity_bytes};
    char config[GOLDEN_CONFIG_LENGTH_MAX + 1];
    enum base_status status = read_environment(log, &options);
    if (status == BASE_OK) status = add_settings(&options, more, config);
    if (status == BASE_OK) status = golden_session_create(subject, &options, &session);
    if (status != BASE_OK) {
        (void)base_status_prefix(status, "%s", result->path);
        result_fail(result, status, 0);
        return;
    }
    for (size_t index = 0; index < log->line_count;) {
        index = compare_operation(result, log, index, session);
        if (index == 0) break;
    }
    result->out_of_memory_count = golden_session_out_of_memory_count(session);
    if (result->verdict == GOLDEN_AGREES) golden_session_check(session);
    golden_session_destroy(session);
}

void golden_compare(const char *path, const struct golden_subject *subject, const char *more,
                    struct golden_result *result) {
    *result = (struct golden_result){
        .path = path, .subject_name = subject->name, .verdict = GOLDEN_AGREES};
    struct golden_log log;
    const enum base_status status = golden_log_read(path, &log);
    if (status != BASE_OK) {
        result_fail(result, status, 0);
        return;
    }
    compare_log(result, &log, subject, more);
    golden_log_deinit(&log);
}

// The log's name: the file's, without folder and ".log".
static void print_name(const char *path, FILE *output) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *suffix = strstr(name, ".log");
    fprintf(output, "%.*s", suffix == NULL ? (int)strlen(name) : (int)(suffix - name), name);
}

void golden_result_print(const struct golden_result *result, FILE *output) {
    if (result->verdict == GOLDEN_UNREADABLE) {
        // Errors of reading name the file themselves; those of an operation know only its text.
        if (result->line_number > 0) fprintf(output, "%s:%zu: ", result->path, result->line_number);
        fprintf(output, "%s\n", result->reason);
        return;
    }
    print_name(result->path, output);
    if (result->verdict == GOLDEN_AGREES) {
        fprintf(output, ": %zu lines agree", result->line_count);
        if (result->survived_count > 0)
            fprintf(output, "; what crashes PyTorch does not crash the allocator: %zu operations",
                    result->survived_count);
        fputc('\n', output);
    }
    if (result->verdict == GOLDEN_DIFFERS_BY_DESIGN) {
        const struct golden_fault *const fault = result->difference->fault;
        fprintf(output,
                ": differs by design from line %zu on, agrees under %s\n  PyTorch   %s\n  here      "
                "%s\n",
                result->line_number, fault->setting != NULL ? fault->setting : "no setting",
                fault->torch, fault->ours);
    }
    if (result->verdict == GOLDEN_UNSUPPORTED) {
        fprintf(output, ": not compared: %s", result->reason);
        if (result->line_number > 0) fprintf(output, " (line %zu)", result->line_number);
        fputc('\n', output);
    }
    if (result->verdict == GOLDEN_DIFFERS)
        fprintf(output,
                ": DIFFERS after %zu lines that agree\n  at        %s:%zu\n  recorded  %s\n  %-8s  "
                "%s\n",
                result->line_count, result->path, result->line_number, result->recorded,
                result->subject_name, result->replayed);
}
