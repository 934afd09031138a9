// See capture_script.h.
#include "allocator/golden/capture_script.h"

#include "allocator/golden/log.h"
#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_SIZE_MAX (1 * BASE_MIB)
#define CONFIG_MARK "# conf "

static const struct {
    const char *text, *arguments;
} verbs[GOLDEN_CAPTURE_VERB_COUNT] = {
#define VERB(name, text, arguments) {text, arguments},
    GOLDEN_CAPTURE_VERB_LIST(VERB)
#undef VERB
};

// What is being read. Names are told apart by what they name: "Ss1" is the stream s1.
struct reader {
    const char *path;
    struct golden_capture_script *script;
    size_t line;
    char *next_word; // free room of script->words
    const char **names;
    char *kinds;
    size_t name_count;
    size_t open_loop; // index + 1 of its `loop`; 0: none is open
};

static enum base_status malformed(const struct reader *reader, const char *what, const char *word) {
    return base_status_set(BASE_FORMAT, "%s:%zu: %s%s%.60s%s", reader->path, reader->line, what,
                           word[0] == '\0' ? "" : ": \"", word, word[0] == '\0' ? "" : "\"");
}

//--------------------------------------------------------------------------------------------------
// Arguments.

static bool is_name(const char *word) {
    for (const char *at = word; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '%')
            return false;
    return word[0] != '\0';
}

static bool is_known(const struct reader *reader, char kind, const char *word) {
    if (kind == 'S' && strcmp(word, "s0") == 0)
        return true;
    for (size_t index = 0; index < reader->name_count; index++)
        if (reader->kinds[index] == kind && strcmp(reader->names[index], word) == 0)
            return true;
    return false;
}

static bool is_pool(const char *word) {
    char text[48];
    uint64_t number;
    if (snprintf(text, sizeof text, "%s", word) >= (int)sizeof text)
        return false;
    char *const separator = strchr(text, ',');
    if (separator == NULL)
        return false;
    *separator = '\0';
    return golden_parse_number(text, &number) && golden_parse_number(separator + 1, &number);
}

static bool is_mode(const char *word) {
    return strcmp(word, "global") == 0 || strcmp(word, "thread") == 0 ||
           strcmp(word, "relaxed") == 0;
}

static void name_add(struct reader *reader, char kind, const char *word) {
    reader->names[reader->name_count] = word;
    reader->kinds[reader->name_count++] = kind;
}

// NULL, or what is wrong with WORD as an argument of KIND.
static const char *argument_fault(struct reader *reader, char kind, const char *word) {
    uint64_t number;
    switch (kind) {
    case 'S':
    case 'E':
    case 'C':
        if (!is_name(word))
            return "a name has letters, digits and _ only";
        if (kind != 'C' && is_known(reader, kind, word))
            return "there is one of this name already";
        name_add(reader, kind, word);
        return NULL;
    case 's':
        return is_known(reader, 'S', word) ? NULL : "no earlier line makes this stream";
    case 'e':
        return is_known(reader, 'E', word) ? NULL : "no earlier line makes this event";
    case 'g':
        return is_known(reader, 'C', word) ? NULL : "no earlier line begins this capture";
    case 'k':
    case 't':
        return is_name(word) ? NULL : "a name has letters, digits and _ only";
    case 'b':
        return golden_parse_number(word, &number) ? NULL : "a decimal number is needed here";
    case 'o':
        return strcmp(word, "0") == 0 || strcmp(word, "1") == 0 ? NULL : "0 or 1 is needed here";
    case 'p':
        return is_pool(word) ? NULL : "a pool \"A,B\" is needed here";
    case 'q':
        return strcmp(word, "new") == 0 || is_pool(word)
                   ? NULL
                   : "a pool \"A,B\", or \"new\", is needed here";
    case 'f':
        return strcmp(word, "body") == 0 || is_known(reader, 'S', word)
                   ? NULL
                   : "a stream that an earlier line made, or \"body\", is needed here";
    default:
        return is_mode(word) ? NULL : "a mode is global, thread or relaxed";
    }
}

static enum base_status check_arguments(struct reader *reader,
                                        const struct golden_capture_operation *operation) {
    const char *kind = verbs[operation->verb].arguments;
    for (size_t word = 0; word < operation->word_count; word++) {
        if (*kind == '\0')
            return malformed(reader, "too many words", operation->words[word]);
        const char *const fault = argument_fault(reader, *kind, operation->words[word]);
        if (fault != NULL)
            return malformed(reader, fault, operation->words[word]);
        if (kind[1] != '*')
            kind += kind[1] == '?' ? 2 : 1;
    }
    if (*kind != '\0' && kind[1] != '?' && kind[1] != '*')
        return malformed(reader, "a word is missing behind", operation->text);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Lines.

static enum base_status take_verb(struct reader *reader, const char *word,
                                  struct golden_capture_operation *operation) {
    for (int verb = 0; verb < GOLDEN_CAPTURE_VERB_COUNT; verb++)
        if (strcmp(word, verbs[verb].text) == 0) {
            operation->verb = (enum golden_capture_verb)verb;
            return BASE_OK;
        }
    return malformed(reader, "no operation has this name", word);
}

static enum base_status match_loops(struct reader *reader,
                                    struct golden_capture_operation *operation, size_t index) {
    if (operation->verb == GOLDEN_CAPTURE_LOOP) {
        if (reader->open_loop != 0)
            return malformed(reader, "a loop stands in a loop", "");
        reader->open_loop = index + 1;
    } else if (operation->verb == GOLDEN_CAPTURE_ENDLOOP) {
        if (reader->open_loop == 0)
            return malformed(reader, "no loop is open", "");
        operation->other_end = reader->open_loop - 1;
        reader->script->operations[operation->other_end].other_end = index;
        reader->open_loop = 0;
    }
    return BASE_OK;
}

// The number of a helper thread; 0 for what is none.
static unsigned thread_of(const char *word) {
    uint64_t number;
    return golden_parse_number(word + 1, &number) && number < GOLDEN_CAPTURE_THREAD_COUNT
               ? (unsigned)number
               : 0;
}

static enum base_status read_operation(struct reader *reader, const char *text) {
    const size_t index = reader->script->count;
    struct golden_capture_operation *const operation = &reader->script->operations[index];
    *operation = (struct golden_capture_operation){.text = text, .line = reader->line};
    char *const words = reader->next_word;
    strcpy(words, text);
    reader->next_word += strlen(text) + 1;

    char *rest = NULL;
    char *word = strtok_r(words, " ", &rest);
    if (word != NULL && word[0] == '@') {
        operation->thread = thread_of(word);
        if (operation->thread == 0)
            return malformed(reader, "helper threads are @1 to @8", word);
        word = strtok_r(NULL, " ", &rest);
    }
    if (word != NULL && strcmp(word, "probe") == 0) {
        operation->is_probe = true;
        word = strtok_r(NULL, " ", &rest);
    }
    if (word == NULL)
        return malformed(reader, "an operation is missing behind", text);
    enum base_status status = take_verb(reader, word, operation);
    while (status == BASE_OK && (word = strtok_r(NULL, " ", &rest)) != NULL) {
        if (operation->word_count == GOLDEN_CAPTURE_WORD_COUNT_MAX)
            return malformed(reader, "too many words", word);
        operation->words[operation->word_count++] = word;
    }
    if (status == BASE_OK)
        status = check_arguments(reader, operation);
    if (status == BASE_OK)
        status = match_loops(reader, operation, index);
    if (status == BASE_OK)
        reader->script->count++;
    return status;
}

static enum base_status read_lines(struct reader *reader) {
    struct golden_capture_script *const script = reader->script;
    for (char *text = script->data; *text != '\0';) {
        char *const end = strchr(text, '\n');
        char *const next = end == NULL ? text + strlen(text) : end + 1;
        if (end != NULL)
            *end = '\0';
        reader->line++;
        const bool is_config = reader->line == 1 && strncmp(text, CONFIG_MARK, 7) == 0;
        if (is_config)
            script->config = text + strlen(CONFIG_MARK);
        if (text[0] != '#' && text[strspn(text, " ")] != '\0') {
            const enum base_status status = read_operation(reader, text);
            if (status != BASE_OK)
                return status;
        }
        text = next;
    }
    if (reader->open_loop != 0)
        return malformed(reader, "the last loop has no endloop", "");
    if (script->count == 0)
        return malformed(reader, "the script has no operation", "");
    return BASE_OK;
}

enum base_status golden_capture_script_read(const char *path,
                                            struct golden_capture_script *script) {
    char *data;
    size_t size;
    const enum base_status read_status = base_file_read(path, SCRIPT_SIZE_MAX, &data, &size);
    if (read_status != BASE_OK)
        return read_status;
    size_t line_count = 1;
    for (size_t index = 0; index < size; index++)
        line_count += data[index] == '\n';
    *script = (struct golden_capture_script){.data = data,
                                             .words = malloc(size + line_count + 1),
                                             .config = "",
                                             .operations =
                                                 calloc(line_count, sizeof *script->operations)};
    struct reader reader = {.path = path,
                            .script = script,
                            .next_word = script->words,
                            .names = calloc(line_count, sizeof *reader.names),
                            .kinds = calloc(line_count, 1)};
    enum base_status status;
    if (script->words == NULL || script->operations == NULL || reader.names == NULL ||
        reader.kinds == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "%s: no memory for %zu lines", path, line_count);
    else if (strlen(data) != size)
        status =
            base_status_set(BASE_FORMAT, "%s: byte %zu is 0: not a text file", path, strlen(data));
    else
        status = read_lines(&reader);
    free(reader.names);
    free(reader.kinds);
    if (status != BASE_OK)
        golden_capture_script_deinit(script);
    return status;
}

void golden_capture_script_deinit(struct golden_capture_script *script) {
    free(script->operations);
    free(script->words);
    free(script->data);
    *script = (struct golden_capture_script){0};
}
