// What the files of the session share.
#ifndef TIDEMARK_TENSOR_GOLDEN_SESSION_INTERNAL_H
#define TIDEMARK_TENSOR_GOLDEN_SESSION_INTERNAL_H

#include "tensor/golden/session.h"
#include "tensor/tensor.h"

#include <stdbool.h>

#define GOLDEN_NAME_SIZE 24
#define GOLDEN_LINE_SIZE 4096
#define GOLDEN_RESULT_MAX 64
#define GOLDEN_LIST_MAX 64
#define GOLDEN_MODE_MAX 32

enum golden_kind {
    GOLDEN_TENSOR,
    GOLDEN_STORAGE,
    GOLDEN_WEAK,
    GOLDEN_WEAK_STORAGE,
    GOLDEN_SAVED,
    GOLDEN_ADDRESS,
};

// One name of the log and what it is bound to.
struct golden_name {
    char text[GOLDEN_NAME_SIZE];
    long number; // the digits: names print in this order
    enum golden_kind kind;
    struct tensor tensor;
    struct tensor_storage *storage;
    struct tensor_weak weak;
    struct tensor_storage_weak weak_storage;
    struct tensor_saved *saved;
    struct tensor saved_tensor; // what was saved: a weak handle, to know what the name reaches
    const void *address;
    char *printed[3]; // last t, v and g line
};

// Numbers of impls and storages, in order of appearance, while a name reaches them.
struct golden_identity {
    const void *object;
    long number;
    char *printed; // storages: the last line
    bool is_reached;
};

struct golden_identities {
    struct golden_identity *items;
    size_t count, capacity;
    long next;
};

struct golden_mode {
    bool gradients, inference;
};

struct golden_session {
    struct allocator *allocator;
    struct tensor_place place;
    struct golden_name **names; // by number
    size_t name_count, name_capacity;
    struct golden_identities impls, storages;
    struct golden_mode modes[GOLDEN_MODE_MAX];
    int mode_depth; // modes[mode_depth] is in force
    struct golden_lines *lines;
    bool came_of_inference; // the last operation computed with inference tensors, outside the mode
};

struct golden_list {
    int64_t values[GOLDEN_LIST_MAX];
    int count;
    bool is_list; // else one number
};

// Arguments by the letters of an operation's form (operations.h), and what it gives.
struct golden_call {
    struct golden_session *session;
    struct tensor tensors[GOLDEN_LIST_MAX];
    int tensor_count;
    int64_t ints[8];
    bool is_absent[8]; // "-"
    int int_count;
    struct golden_list lists[3];
    int list_count;
    struct tensor_operand_value values[2];
    int value_count;
    enum tensor_type types[2];
    int type_count;
    enum tensor_format format;
    bool has_format;
    double numbers[GOLDEN_LIST_MAX];
    int number_count;
    struct golden_name *names[2]; // storages, weak handles, saved tensors
    int name_count;
    const char *word; // of `push`; the name that a handle other than a tensor is given
    struct tensor results[GOLDEN_RESULT_MAX];
    int result_count;
    char answer[256]; // "": ok
    bool is_none;
};

struct golden_name *golden_name_find(struct golden_session *session, const char *text);
// A fresh binding of TEXT, whatever it was bound to before.
enum base_status golden_name_bind(struct golden_session *session, const char *text,
                                  enum golden_kind kind, struct golden_name **name) BASE_MUST_USE;
void golden_name_remove(struct golden_session *session, struct golden_name *name);

// FORM: a letter a word, D the names that are made (*made), behind '?' what may be missing.
enum base_status golden__arguments_take(struct golden_call *call, const char *form, char **words,
                                        int count, char **made) BASE_MUST_USE;
// Cuts TEXT at commas, brackets taken off; false if there are too many parts.
bool golden__parts_cut(char *text, char *parts[GOLDEN_LIST_MAX], int *count);
enum base_status golden__bad(const char *word, const char *what); // "... is no ..."

enum base_status golden_line_add(struct golden_lines *lines, const char *text) BASE_MUST_USE;
// Details: the names in MADE first, then all that changed.
enum base_status golden_print(struct golden_session *session, struct golden_name **made,
                              int made_count) BASE_MUST_USE;
void golden_value_text(enum tensor_type type, const void *bytes, char text[40]);

#endif
