// Words of an operation as arguments. See session_internal.h.
#include "tensor/golden/session_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool integer_parse(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static bool number_parse(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0';
}

// Cuts TEXT at commas, brackets taken off; false if there are too many parts.
bool golden__parts_cut(char *text, char *parts[GOLDEN_LIST_MAX], int *count) {
    const size_t length = strlen(text);
    *count = 0;
    if (text[0] == '[' && length >= 2 && text[length - 1] == ']') {
        text[length - 1] = '\0';
        text++;
    }
    while (*text != '\0') {
        if (*count == GOLDEN_LIST_MAX)
            return false;
        parts[(*count)++] = text;
        char *comma = strchr(text, ',');
        if (comma == NULL)
            break;
        *comma = '\0';
        text = comma + 1;
    }
    return true;
}

static bool format_parse(const char *text, enum tensor_format *format) {
    static const char *const names[] = {"contiguous", "channels_last", "channels_last_3d",
                                        "preserve"};
    for (int index = 0; index < 4; index++) {
        if (strcmp(text, names[index]) != 0)
            continue;
        *format = (enum tensor_format)index;
        return true;
    }
    return false;
}

enum base_status golden__bad(const char *word, const char *what) {
    return base_status_set(BASE_FORMAT, "\"%.60s\" is no %s", word, what);
}

static enum base_status list_parse(char *word, struct golden_list *list) {
    char *parts[GOLDEN_LIST_MAX];
    list->is_list = word[0] == '[';
    if (!golden__parts_cut(word, parts, &list->count))
        return golden__bad(word, "list: too long");
    for (int index = 0; index < list->count; index++)
        if (!integer_parse(parts[index], &list->values[index]))
            return golden__bad(parts[index], "number");
    return BASE_OK;
}

// A name that is not bound leaves the call without an outcome of its own.
static struct golden_name *bound(struct golden_call *call, const char *word,
                                 enum golden_kind kind) {
    struct golden_name *name = golden_name_find(call->session, word);
    if (name == NULL || name->kind != kind) {
        call->is_none = true;
        return NULL;
    }
    return name;
}

static enum base_status tensor_take(struct golden_call *call, const char *word) {
    struct golden_name *name = bound(call, word, GOLDEN_TENSOR);
    if (call->tensor_count == GOLDEN_LIST_MAX)
        return golden__bad(word, "list: too long");
    call->tensors[call->tensor_count++] = name == NULL ? (struct tensor){0} : name->tensor;
    return BASE_OK;
}

static enum base_status value_take(struct golden_call *call, const char *word) {
    struct tensor_operand_value *value = &call->values[call->value_count++];
    int64_t integer;
    double floating;
    if (word[0] == 't' && isdigit((unsigned char)word[1])) {
        struct golden_name *name = bound(call, word, GOLDEN_TENSOR);
        if (name != NULL)
            *value = tensor_operand_tensor(name->tensor);
    } else if (integer_parse(word, &integer)) {
        *value = tensor_operand_integer(integer);
    } else if (number_parse(word, &floating)) {
        *value = tensor_operand_floating(floating);
    } else {
        return golden__bad(word, "tensor or number");
    }
    return BASE_OK;
}

static enum base_status names_take(struct golden_call *call, const char *word,
                                   enum golden_kind kind) {
    call->names[call->name_count++] = bound(call, word, kind);
    return BASE_OK;
}

static enum base_status tensors_take(struct golden_call *call, char *word) {
    char *parts[GOLDEN_LIST_MAX];
    int count;
    if (!golden__parts_cut(word, parts, &count))
        return golden__bad(word, "list: too long");
    enum base_status status = BASE_OK;
    for (int index = 0; index < count && status == BASE_OK; index++)
        status = tensor_take(call, parts[index]);
    return status;
}

static enum base_status numbers_take(struct golden_call *call, char *word) {
    char *parts[GOLDEN_LIST_MAX];
    int count;
    if (!golden__parts_cut(word, parts, &count))
        return golden__bad(word, "list: too long");
    for (int index = 0; index < count; index++)
        if (!number_parse(parts[index], &call->numbers[call->number_count++]))
            return golden__bad(parts[index], "number");
    return BASE_OK;
}

// One word by its letter: S tensor, B tensor or "-", A tensors, X tensor or number, i number, e
// number or "-", L list, J list or number, T type, F format, x floating number, V floating numbers,
// U storage, W weak handle, Y weak handle on a storage, K saved tensor, P kept address, w any word.
static enum base_status word_take(struct golden_call *call, char letter, char *word) {
    switch (letter) {
    case 'S':
        return tensor_take(call, word);
    case 'B':
        if (strcmp(word, "-") != 0)
            return tensor_take(call, word);
        call->tensors[call->tensor_count++] = (struct tensor){0};
        return BASE_OK;
    case 'A':
        return tensors_take(call, word);
    case 'X':
        return value_take(call, word);
    case 'e':
        call->is_absent[call->int_count] = strcmp(word, "-") == 0;
        if (call->is_absent[call->int_count]) {
            call->int_count++;
            return BASE_OK;
        }
        // fall through
    case 'i':
        return integer_parse(word, &call->ints[call->int_count++]) ? BASE_OK
                                                                   : golden__bad(word, "number");
    case 'L':
    case 'J':
        return list_parse(word, &call->lists[call->list_count++]);
    case 'T':
        return tensor_type_find(word, &call->types[call->type_count++]) ? BASE_OK
                                                                        : golden__bad(word, "type");
    case 'F':
        call->has_format = true;
        return format_parse(word, &call->format) ? BASE_OK : golden__bad(word, "format");
    case 'x':
        return number_parse(word, &call->numbers[call->number_count++])
                   ? BASE_OK
                   : golden__bad(word, "number");
    case 'V':
        return numbers_take(call, word);
    case 'U':
        return names_take(call, word, GOLDEN_STORAGE);
    case 'W':
        call->names[call->name_count++] = golden_name_find(call->session, word);
        call->is_none |= call->names[call->name_count - 1] == NULL;
        return BASE_OK;
    case 'K':
        return names_take(call, word, GOLDEN_SAVED);
    case 'P':
        return names_take(call, word, GOLDEN_ADDRESS);
    case 'w':
        call->word = word;
        return BASE_OK;
    }
    return golden__bad(word, "argument of this operation");
}

// FORM: a letter a word, D the names that are made; behind '?' what may be missing.
enum base_status golden__arguments_take(struct golden_call *call, const char *form, char **words,
                                        int count, char **made) {
    enum base_status status = BASE_OK;
    bool is_optional = false;
    int next = 0;
    for (; *form != '\0' && status == BASE_OK; form++) {
        if (*form == '?') {
            is_optional = true;
            continue;
        }
        if (next == count)
            return is_optional ? BASE_OK : base_status_set(BASE_FORMAT, "too few arguments");
        if (*form == 'D')
            *made = words[next++];
        else
            status = word_take(call, *form, words[next++]);
    }
    if (status == BASE_OK && next < count)
        return base_status_set(BASE_FORMAT, "too many arguments");
    return status;
}
