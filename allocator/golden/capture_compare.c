// See capture_compare.h.
#include "allocator/golden/capture_compare.h"

#include "allocator/golden/log.h"
#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define LOG_SIZE_MAX (64 * BASE_MIB)
#define NO_LINE "(no line)"

static const char on_suffix[] = ".on.log", off_suffix[] = ".off.log";

static bool ends_with(const char *text, const char *suffix, size_t *stem_length) {
    const size_t length = strlen(text), suffix_length = strlen(suffix);
    if (length < suffix_length || strcmp(text + length - suffix_length, suffix) != 0)
        return false;
    *stem_length = length - suffix_length;
    return true;
}

bool golden_capture_log_is(const char *path, size_t *stem_length) {
    return ends_with(path, on_suffix, stem_length) || ends_with(path, off_suffix, stem_length);
}

//--------------------------------------------------------------------------------------------------
// Lines.

// A line without its queries, and without blanks at the end.
static char *without_queries(const char *line) {
    char *const copy = strdup(line);
    BASE_CHECK(copy != NULL);
    char *const queries = strstr(copy, " q=[");
    const char *const end = queries == NULL ? NULL : strchr(queries, ']');
    if (end != NULL)
        memmove(queries, end + 1, strlen(end + 1) + 1);
    size_t length = strlen(copy);
    while (length > 0 && copy[length - 1] == ' ')
        length--;
    copy[length] = '\0';
    return copy;
}

bool golden_capture_lines_agree(const char *before, const char *recorded, const char *replayed) {
    char *const bare = without_queries(recorded), *const own = without_queries(replayed);
    const bool agree = strcmp(bare, own) == 0 ||
                       (strcmp(before, "tally") == 0 && strcmp(own, "=") == 0) ||
                       (strncmp(bare, "= status 2 set", 14) == 0 && strcmp(own, "= status 2") == 0);
    free(bare);
    free(own);
    return agree;
}

static char *next_line(char **rest) {
    char *const line = *rest;
    char *const end = strchr(line, '\n');
    if (*line == '\0')
        return NULL;
    if (end != NULL)
        *end = '\0';
    *rest = end == NULL ? line + strlen(line) : end + 1;
    return line;
}

static void compare_texts(struct golden_result *result, char *recorded, char *replayed) {
    const char *before = "";
    for (size_t number = 1;; number++) {
        const char *const recorded_line = next_line(&recorded);
        const char *const replayed_line = next_line(&replayed);
        if (recorded_line == NULL && replayed_line == NULL)
            return;
        if (recorded_line != NULL && replayed_line != NULL &&
            golden_capture_lines_agree(before, recorded_line, replayed_line)) {
            result->line_count += strcmp(before, "tally") != 0;
            before = recorded_line;
            continue;
        }
        if (recorded_line != NULL && replayed_line != NULL &&
            strcmp(recorded_line, "= crash") == 0 && strcmp(replayed_line, "= survives") == 0) {
            result->survived_count++;
            before = recorded_line;
            continue;
        }
        result->verdict = GOLDEN_DIFFERS;
        result->line_number = number;
        snprintf(result->recorded, sizeof result->recorded, "%s",
                 recorded_line != NULL ? recorded_line : NO_LINE);
        snprintf(result->replayed, sizeof result->replayed, "%s",
                 replayed_line != NULL ? replayed_line : NO_LINE);
        return;
    }
}

//--------------------------------------------------------------------------------------------------
// Logs.

static enum base_status read_script(const char *path, size_t stem_length,
                                    struct golden_capture_script *script) {
    char script_path[4096];
    snprintf(script_path, sizeof script_path, "%.*s.txt", (int)stem_length, path);
    return golden_capture_script_read(script_path, script);
}

static enum base_status replay(const char *path, size_t stem_length, const char *more,
                               enum golden_capture_plant plant, char **text) {
    struct golden_capture_script script;
    size_t size;
    enum base_status status = read_script(path, stem_length, &script);
    if (status != BASE_OK)
        return status;
    char config[GOLDEN_CONFIG_LENGTH_MAX + 1];
    const int length =
        snprintf(config, sizeof config, "graph_capture_record_stream_reuse:%s%s%s%s%s",
                 strcmp(path + stem_length, on_suffix) == 0 ? "True" : "False",
                 script.config[0] == '\0' ? "" : ",", script.config, more == NULL ? "" : ",",
                 more == NULL ? "" : more);
    *text = NULL;
    if (length >= (int)sizeof config) {
        status = base_status_set(BASE_LIMIT, "%s: settings of %d bytes are too long", path, length);
    } else {
        FILE *const output = open_memstream(text, &size);
        BASE_CHECK(output != NULL);
        status = golden_capture_run(&script, config, plant, output);
        fclose(output);
        if (status != BASE_OK)
            (void)base_status_prefix(status, "%s", path);
    }
    golden_capture_script_deinit(&script);
    return status;
}

void golden_capture_compare(const char *path, const char *more, enum golden_capture_plant plant,
                            struct golden_result *result) {
    *result = (struct golden_result){
        .path = path, .subject_name = golden_subject_caching.name, .verdict = GOLDEN_AGREES};
    char *recorded = NULL, *replayed = NULL;
    size_t size, stem_length = 0;
    BASE_CHECK(golden_capture_log_is(path, &stem_length));
    enum base_status status = base_file_read(path, LOG_SIZE_MAX, &recorded, &size);
    if (status == BASE_OK && strlen(recorded) != size)
        status = base_status_set(BASE_FORMAT, "%s: byte %zu is 0: not a text file", path,
                                 strlen(recorded));
    if (status == BASE_OK)
        status = replay(path, stem_length, more, plant, &replayed);
    if (status == BASE_OK) {
        compare_texts(result, recorded, replayed);
    } else {
        result->verdict = GOLDEN_UNREADABLE;
        snprintf(result->reason, sizeof result->reason, "%s", base_status_message());
    }
    free(recorded);
    free(replayed);
}
