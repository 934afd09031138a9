// Checkpoints of a pool: save, restore, and whether just these tensors live in it.
#include "allocator/golden/capture_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static void get(struct golden_capture_run *run, const char *name, struct allocator_pool_id id) {
    struct cca_checkpoint *checkpoint;
    const enum base_status status = cca_checkpoint_get(run->allocator, 0, id, &checkpoint);
    if (status == BASE_OK) {
        run->checkpoints =
            golden__capture_grow(run->checkpoints, run->checkpoint_count, &run->checkpoint_capacity,
                                 sizeof *run->checkpoints);
        run->checkpoints[run->checkpoint_count++] =
            (struct golden_capture_checkpoint){name, checkpoint};
    }
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
}

static bool is_among(void *pointer, void *const *pointers, size_t count) {
    for (size_t index = 0; index < count; index++)
        if (pointers[index] == pointer)
            return true;
    return false;
}

static int compare_names(const void *a, const void *b) {
    const struct golden_capture_tensor *const *const left = a, *const *const right = b;
    return strcmp((*left)->name, (*right)->name);
}

// The tensors whose memory was taken away, by name: they are none any more.
static void print_dead(struct golden_capture_run *run, const struct cca_restored *restored) {
    struct golden_capture_tensor **const dead = calloc(run->tensor_count + 1, sizeof *dead);
    size_t count = 0;
    BASE_CHECK(dead != NULL);
    for (size_t index = 0; index < run->tensor_count; index++) {
        struct golden_capture_tensor *const tensor = &run->tensors[index];
        if (tensor->pointer != NULL &&
            is_among(tensor->pointer, restored->freed, restored->freed_count))
            dead[count++] = tensor;
    }
    qsort(dead, count, sizeof *dead, compare_names);
    for (size_t index = 0; index < count; index++) {
        fprintf(run->output, " dead %s", dead[index]->name);
        dead[index]->pointer = NULL;
    }
    free(dead);
}

static size_t block_size_at(const struct golden_capture_run *run, void *pointer) {
    struct allocator_snapshot snapshot;
    size_t size = 0;
    BASE_CHECK_EQ(allocator_snapshot(run->allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.block_count; index++)
        if (snapshot.blocks[index].address == pointer)
            size = snapshot.blocks[index].size;
    allocator_snapshot_deinit(&snapshot);
    return size;
}

// What is allocated now belongs to tensors ck0, ck1 and so on.
static void print_allocated(struct golden_capture_run *run, const struct cca_restored *restored) {
    for (size_t index = 0; index < restored->allocated_count; index++) {
        char name[32];
        void *const pointer = restored->allocated[index];
        snprintf(name, sizeof name, "ck%zu", index);
        const size_t tensor = golden__capture_tensor(run, name);
        run->tensors[tensor].pointer = run->tensors[tensor].last = pointer;
        fprintf(run->output, " %s=", name);
        golden__capture_print_address(run, pointer);
        golden__capture_own(run, (uintptr_t)pointer,
                            (uintptr_t)pointer + block_size_at(run, pointer), tensor);
    }
}

static void print_addresses(struct golden_capture_run *run, const char *title,
                            void *const *addresses, size_t count) {
    fprintf(run->output, " %s", title);
    for (size_t index = 0; index < count; index++) {
        fputc(' ', run->output);
        golden__capture_print_address(run, addresses[index]);
    }
}

static void set(struct golden_capture_run *run, const char *name) {
    const struct cca_checkpoint *checkpoint = NULL;
    for (size_t index = 0; index < run->checkpoint_count; index++)
        if (strcmp(run->checkpoints[index].name, name) == 0)
            checkpoint = run->checkpoints[index].checkpoint;
    if (checkpoint == NULL) {
        fputs("error no such checkpoint", run->output);
        return;
    }
    struct cca_restored restored;
    const enum base_status status = cca_checkpoint_set(run->allocator, checkpoint, &restored);
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
    if (status != BASE_OK)
        return;
    print_dead(run, &restored);
    print_allocated(run, &restored);
    print_addresses(run, "freed", restored.freed, restored.freed_count);
    print_addresses(run, "allocd", restored.allocated, restored.allocated_count);
    cca_restored_deinit(&restored);
}

static void live(struct golden_capture_run *run, const struct golden_capture_operation *operation) {
    void *addresses[GOLDEN_CAPTURE_WORD_COUNT_MAX];
    bool equal = false;
    for (size_t word = 1; word < operation->word_count; word++) {
        const size_t tensor = golden__capture_tensor(run, operation->words[word]);
        addresses[word - 1] = run->tensors[tensor].last;
    }
    const enum base_status status =
        cca_checkpoint_compare_live(run->allocator, 0, golden__capture_pool(operation->words[0]),
                                    addresses, operation->word_count - 1, &equal);
    golden__capture_print_error(run, status);
    if (status == BASE_OK)
        fputs(equal ? " equal" : " different", run->output);
}

void golden__capture_checkpoint_perform(struct golden_capture_run *run,
                                        const struct golden_capture_operation *operation) {
    switch (operation->verb) {
    case GOLDEN_CAPTURE_CKPT_GET:
        get(run, operation->words[0], golden__capture_pool(operation->words[1]));
        return;
    case GOLDEN_CAPTURE_CKPT_SET:
        set(run, operation->words[0]);
        return;
    default:
        live(run, operation);
        return;
    }
}
