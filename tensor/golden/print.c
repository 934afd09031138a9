// Details of a log: lines of names and storages. See session_internal.h.
#include "base/half.h"
#include "tensor/golden/session_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_SHOWN_MAX 64

enum base_status golden_line_add(struct golden_lines *lines, const char *text) {
    if (lines->count == lines->capacity) {
        const size_t capacity = lines->capacity == 0 ? 16 : 2 * lines->capacity;
        char **texts = realloc(lines->texts, capacity * sizeof *texts);
        if (texts == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for a line");
        lines->texts = texts;
        lines->capacity = capacity;
    }
    char *copy = strdup(text);
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a line");
    lines->texts[lines->count++] = copy;
    return BASE_OK;
}

void golden_lines_deinit(struct golden_lines *lines) {
    for (size_t index = 0; index < lines->count; index++)
        free(lines->texts[index]);
    free(lines->texts);
    *lines = (struct golden_lines){0};
}

//------------------------------------------------------------------------------------------------
// Numbers of objects

static struct golden_identity *identity_find(struct golden_identities *identities,
                                             const void *object) {
    for (size_t index = 0; index < identities->count; index++)
        if (identities->items[index].object == object)
            return &identities->items[index];
    return NULL;
}

static void identity_reach(struct golden_identities *identities, const void *object) {
    struct golden_identity *identity = identity_find(identities, object);
    if (identity != NULL)
        identity->is_reached = true;
}

static void impl_reach(struct golden_session *session, struct tensor tensor) {
    if (tensor.impl == NULL)
        return;
    identity_reach(&session->impls, tensor.impl);
    struct tensor_storage *storage = tensor_storage(tensor);
    identity_reach(&session->storages, storage);
    tensor_storage_release(&storage);
}

static void identities_sweep(struct golden_identities *identities) {
    size_t kept = 0;
    for (size_t index = 0; index < identities->count; index++) {
        struct golden_identity *item = &identities->items[index];
        if (item->is_reached) {
            item->is_reached = false;
            identities->items[kept++] = *item;
        } else {
            free(item->printed);
        }
    }
    identities->count = kept;
}

// Numbers whose object no name reaches any more are given up.
static void identities_update(struct golden_session *session) {
    for (size_t index = 0; index < session->name_count; index++) {
        const struct golden_name *name = session->names[index];
        if (name->kind == GOLDEN_STORAGE)
            identity_reach(&session->storages, name->storage);
        const struct tensor self = name->kind == GOLDEN_SAVED ? name->saved_tensor : name->tensor;
        if (self.impl == NULL)
            continue;
        impl_reach(session, self);
        impl_reach(session, tensor_base(self));
        impl_reach(session, tensor_grad(self));
    }
    identities_sweep(&session->impls);
    identities_sweep(&session->storages);
}

static long number_of(struct golden_identities *identities, const void *object) {
    struct golden_identity *found = identity_find(identities, object);
    if (found != NULL)
        return found->number;
    if (identities->count == identities->capacity) {
        const size_t capacity = identities->capacity == 0 ? 32 : 2 * identities->capacity;
        struct golden_identity *items = realloc(identities->items, capacity * sizeof *items);
        if (items == NULL)
            abort(); // a test program without memory
        identities->items = items;
        identities->capacity = capacity;
    }
    identities->items[identities->count++] =
        (struct golden_identity){.object = object, .number = identities->next};
    return identities->next++;
}

//------------------------------------------------------------------------------------------------
// Texts

static size_t append(char *text, size_t length, const char *part) {
    const size_t size = strlen(part);
    if (length + size + 1 > GOLDEN_LINE_SIZE)
        return length;
    memcpy(text + length, part, size + 1);
    return length + size;
}

static size_t append_list(char *text, size_t length, const int64_t *values, int count) {
    char part[32];
    length = append(text, length, "[");
    for (int index = 0; index < count; index++) {
        snprintf(part, sizeof part, "%s%" PRId64, index > 0 ? "," : "", values[index]);
        length = append(text, length, part);
    }
    return append(text, length, "]");
}

static void floating_text(double value, int digits, char text[40]) {
    if (isnan(value))
        snprintf(text, 40, "nan");
    else
        snprintf(text, 40, "%.*g", digits, value);
}

void golden_value_text(enum tensor_type type, const void *bytes, char text[40]) {
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t bits;
        float f32;
        double f64;
    } value;
    memcpy(&value, bytes, tensor_type_size(type));
    switch (type) {
    case TENSOR_BOOL:
    case TENSOR_UINT8:
        snprintf(text, 40, "%d", value.u8);
        return;
    case TENSOR_INT8:
        snprintf(text, 40, "%d", value.i8);
        return;
    case TENSOR_INT16:
        snprintf(text, 40, "%d", value.i16);
        return;
    case TENSOR_INT32:
        snprintf(text, 40, "%d", value.i32);
        return;
    case TENSOR_INT64:
        snprintf(text, 40, "%" PRId64, value.i64);
        return;
    case TENSOR_FLOAT16:
        floating_text((double)base_half_to_float(value.bits), 9, text);
        return;
    case TENSOR_BFLOAT16:
        floating_text((double)base_bfloat16_to_float(value.bits), 9, text);
        return;
    case TENSOR_FLOAT32:
        floating_text((double)value.f32, 9, text);
        return;
    case TENSOR_FLOAT64:
        floating_text(value.f64, 17, text);
        return;
    case TENSOR_TYPE_COUNT:
        break;
    }
    text[0] = '\0';
}

static size_t append_values(char *text, size_t length, struct tensor self) {
    const int64_t numel = tensor_numel(self);
    if (!tensor_is_in_bounds(self) || numel < 0)
        return append(text, length, "!");
    if (numel == 0)
        return append(text, length, "-");
    const size_t item_size = tensor_type_size(tensor_type(self));
    uint8_t *bytes = malloc((size_t)numel * item_size);
    if (bytes == NULL || tensor_read(self, bytes) != BASE_OK) {
        free(bytes);
        return append(text, length, "?");
    }
    char part[40];
    if (numel > VALUES_SHOWN_MAX) {
        uint64_t hash = 0xcbf29ce484222325ull;
        for (size_t index = 0; index < (size_t)numel * item_size; index++)
            hash = (hash ^ bytes[index]) * 0x100000001b3ull;
        snprintf(part, sizeof part, "# %016" PRIx64, hash);
        length = append(text, length, part);
    }
    for (int64_t index = 0; index < numel && numel <= VALUES_SHOWN_MAX; index++) {
        if (index > 0)
            length = append(text, length, " ");
        golden_value_text(tensor_type(self), bytes + (size_t)index * item_size, part);
        length = append(text, length, part);
    }
    free(bytes);
    return length;
}

static void tensor_line(struct golden_session *session, const struct golden_name *name,
                        char *text) {
    const struct tensor self = name->tensor, base = tensor_base(self), grad = tensor_grad(self);
    const struct tensor_geometry *geometry = tensor_geometry(self);
    struct tensor_storage *storage = tensor_storage(self);
    char part[256];
    const long impl = number_of(&session->impls, self.impl);
    const long storage_number = number_of(&session->storages, storage);
    tensor_storage_release(&storage);
    snprintf(part, sizeof part, "t %s i%ld s%ld %s ", name->text, impl, storage_number,
             tensor_type_name(tensor_type(self)));
    size_t length = append(text, 0, part);
    length = append_list(text, length, geometry->sizes, geometry->rank);
    length = append(text, length, " ");
    length = append_list(text, length, geometry->strides, geometry->rank);
    uint32_t version;
    char version_text[16] = "-", base_text[24] = "-", grad_text[24] = "-";
    if (tensor_version(self, &version) == BASE_OK)
        snprintf(version_text, sizeof version_text, "%u", version);
    if (base.impl != NULL)
        snprintf(base_text, sizeof base_text, "i%ld", number_of(&session->impls, base.impl));
    if (grad.impl != NULL)
        snprintf(grad_text, sizeof grad_text, "i%ld", number_of(&session->impls, grad.impl));
    const unsigned flags = tensor_flags(self);
    const char *function;
    const bool is_known = tensor_gradient_function(self, &function) == BASE_OK;
    snprintf(part, sizeof part, " %" PRId64 " %" PRId64 " v%s %s %c%c%c%c r%d l%c %s %.80s",
             geometry->offset, geometry->numel, version_text, base_text,
             flags & TENSOR_IS_CONTIGUOUS ? 'C' : '-', flags & TENSOR_IS_CHANNELS_LAST ? 'L' : '-',
             flags & TENSOR_IS_CHANNELS_LAST_3D ? '3' : '-', flags & TENSOR_IS_DENSE ? 'D' : '-',
             tensor_requires_grad(self),
             !is_known          ? '!'
             : function == NULL ? '1'
                                : '0',
             grad_text,
             !is_known          ? "!"
             : function == NULL ? "-"
                                : function);
    append(text, length, part);
}

static void gradient_line(struct golden_session *session, const struct golden_name *name,
                          char *text) {
    const struct tensor grad = tensor_grad(name->tensor);
    char part[64];
    text[0] = '\0';
    if (grad.impl == NULL)
        return;
    snprintf(part, sizeof part, "g %s i%ld ", name->text, number_of(&session->impls, grad.impl));
    size_t length = append(text, 0, part);
    length = append_list(text, length, tensor_geometry(grad)->sizes, tensor_rank(grad));
    length = append(text, length, " ");
    length = append_list(text, length, tensor_geometry(grad)->strides, tensor_rank(grad));
    length = append(text, length, " ");
    append_values(text, length, grad);
}

bool golden_session_start_at_one(struct golden_session *session, const char *text) {
    struct golden_name *name = golden_name_find(session, text);
    char line[GOLDEN_LINE_SIZE];
    uint32_t version;
    if (!session->came_of_inference || name == NULL || name->kind != GOLDEN_TENSOR ||
        tensor_version(name->tensor, &version) != BASE_OK || version != 0)
        return false;
    tensor_bump_version(name->tensor);
    tensor_line(session, name, line);
    free(name->printed[0]);
    name->printed[0] = strdup(line);
    return true;
}

// Prints LINE, unless it is what was printed last and need not be.
static enum base_status line_print(struct golden_session *session, char **printed, const char *line,
                                   bool always) {
    const bool is_same = *printed != NULL && strcmp(*printed, line) == 0;
    if (!is_same) {
        free(*printed);
        *printed = strdup(line);
        if (*printed == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for a line");
    }
    if (line[0] == '\0' || (is_same && !always))
        return BASE_OK;
    return golden_line_add(session->lines, line);
}

static enum base_status name_print(struct golden_session *session, struct golden_name *name,
                                   bool always) {
    char line[GOLDEN_LINE_SIZE];
    if (name->kind != GOLDEN_TENSOR)
        return BASE_OK;
    tensor_line(session, name, line);
    enum base_status status = line_print(session, &name->printed[0], line, always);
    if (status == BASE_OK) {
        const size_t length = (size_t)snprintf(line, sizeof line, "v %s ", name->text);
        append_values(line, length, name->tensor);
        status = line_print(session, &name->printed[1], line, false);
    }
    if (status == BASE_OK) {
        gradient_line(session, name, line);
        status = line_print(session, &name->printed[2], line, false);
    }
    return status;
}

// Impls that hold the storage: every strong handle but those of `storage` names.
static uint32_t uses_of(const struct golden_session *session,
                        const struct tensor_storage *storage) {
    uint32_t uses = tensor_storage_count(storage);
    for (size_t index = 0; index < session->name_count; index++)
        uses -= session->names[index]->kind == GOLDEN_STORAGE &&
                session->names[index]->storage == storage;
    return uses;
}

static bool holds(struct tensor tensor, const struct tensor_storage *storage) {
    if (tensor.impl == NULL)
        return false;
    struct tensor_storage *own = tensor_storage(tensor);
    const bool is_same = own == storage;
    tensor_storage_release(&own);
    return is_same;
}

// Storages show while a name is bound to one or to a tensor on it.
static bool is_shown(const struct golden_session *session, const struct tensor_storage *storage) {
    for (size_t index = 0; index < session->name_count; index++)
        if (session->names[index]->storage == storage ||
            holds(session->names[index]->tensor, storage))
            return true;
    return false;
}

static enum base_status storages_print(struct golden_session *session) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < session->storages.count && status == BASE_OK; index++) {
        struct golden_identity *identity = &session->storages.items[index];
        const struct tensor_storage *storage = identity->object;
        if (!is_shown(session, storage)) {
            free(identity->printed);
            identity->printed = NULL;
            continue;
        }
        char line[128];
        snprintf(line, sizeof line, "s s%ld %zu %d %u", identity->number,
                 tensor_storage_bytes(storage), tensor_storage_is_resizable(storage),
                 uses_of(session, storage));
        status = line_print(session, &identity->printed, line, false);
    }
    return status;
}

// Impls that names reach, each once: what is not among them belongs to a graph.
static uint32_t reached_count(const struct golden_session *session,
                              const struct tensor_storage *storage) {
    struct tensor_impl *seen[1024];
    size_t count = 0;
    for (size_t index = 0; index < session->name_count; index++) {
        const struct tensor self = session->names[index]->tensor;
        if (self.impl == NULL)
            continue;
        const struct tensor reached[] = {self, tensor_base(self), tensor_grad(self)};
        for (int place = 0; place < 3; place++) {
            if (!holds(reached[place], storage))
                continue;
            size_t other = 0;
            while (other < count && seen[other] != reached[place].impl)
                other++;
            if (other == count && count < sizeof seen / sizeof seen[0])
                seen[count++] = reached[place].impl;
        }
    }
    return (uint32_t)count;
}

bool golden_session_storage_is_held(struct golden_session *session, long number) {
    for (size_t index = 0; index < session->storages.count; index++) {
        const struct golden_identity *identity = &session->storages.items[index];
        if (identity->number == number)
            return uses_of(session, identity->object) != reached_count(session, identity->object);
    }
    return false;
}

enum base_status golden_print(struct golden_session *session, struct golden_name **made,
                              int made_count) {
    identities_update(session);
    enum base_status status = BASE_OK;
    for (int index = 0; index < made_count && status == BASE_OK; index++)
        status = name_print(session, made[index], true);
    for (size_t index = 0; index < session->name_count && status == BASE_OK; index++) {
        bool is_made = false;
        for (int other = 0; other < made_count; other++)
            is_made |= made[other] == session->names[index];
        if (!is_made)
            status = name_print(session, session->names[index], false);
    }
    return status != BASE_OK ? status : storages_print(session);
}
