// What an allocator did and where it was called from: docs/history.md tells the story. With a
// folder as argument, the history is also written there, for PyTorch's viewer and for replays.
#include "allocator/cca.h"
#include "base/check.h"
#include "base/options.h"
#include "base/size.h"
#include "base/symbol.h"
#include "simulator/sim.h"
#include "workload/snapshot_file.h"

#include <stdio.h>
#include <string.h>

#define LAYERS 3

static void expect_ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

//------------------------------------------------------------------------------------------------
// A small program. Its functions stay functions, so that stacks show them.

#define FUNCTION static __attribute__((noinline, noclone))
#define RETURNS  __asm__ volatile("" ::: "memory") // no jump in place of the call before

FUNCTION void *take(struct allocator *allocator, size_t size) {
    void *pointer = NULL;
    const enum base_status status = allocator_malloc(allocator, 0, size, NULL, &pointer);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    return pointer;
}

FUNCTION void give(struct allocator *allocator, void *pointer) {
    BASE_CHECK_EQ(allocator_free(allocator, pointer), BASE_OK);
    RETURNS;
}

FUNCTION void load_weights(struct allocator *allocator, void *weights[LAYERS]) {
    for (int layer = 0; layer < LAYERS; ++layer)
        weights[layer] = take(allocator, 6 * BASE_MIB);
    RETURNS;
}

FUNCTION void forward(struct allocator *allocator, void *activations[LAYERS]) {
    for (int layer = 0; layer < LAYERS; ++layer)
        activations[layer] = take(allocator, 2 * BASE_MIB - (size_t)layer * 1000);
    RETURNS;
}

FUNCTION void backward(struct allocator *allocator, void *activations[LAYERS]) {
    for (int layer = LAYERS; layer-- > 0;)
        give(allocator, activations[layer]);
    RETURNS;
}

FUNCTION void load_batch(struct allocator *allocator) {
    void *const batch = take(allocator, 100 * BASE_MIB);
    BASE_CHECK(batch == NULL); // the device is too small
    RETURNS;
}

//------------------------------------------------------------------------------------------------
// Looking at it.

// The functions of this file, from the inside out.
static void print_stack(const struct allocator_snapshot *snapshot, uint32_t stack) {
    static const char *const own[] = {"load_weights", "forward", "backward", "load_batch", "main"};
    const struct allocator_snapshot_stack *const frames = &snapshot->stacks[stack];
    const char *separator = "";
    for (size_t index = 0; index < frames->frame_count; ++index) {
        struct base_symbol symbol;
        if (!base_symbol_find(snapshot->frames[frames->frame_first + index], &symbol)) continue;
        for (size_t name = 0; name < sizeof own / sizeof own[0]; ++name)
            if (strcmp(symbol.function, own[name]) == 0) {
                printf("%s%s", separator, own[name]);
                separator = " < ";
            }
    }
    puts(stack == 0 ? "-" : "");
}

static void print_entries(const struct allocator_snapshot *snapshot) {
    const char *const first = snapshot->segments[0].address;
    for (size_t index = 0; index < snapshot->entry_count; ++index) {
        const struct allocator_snapshot_entry *const entry = &snapshot->entries[index];
        char place[32] = "-";
        if (entry->address != NULL)
            snprintf(place, sizeof place, "%+td", (const char *)entry->address - first);
        printf("%-15s %9s %11zu  ", allocator_action_name(entry->action), place, entry->size);
        print_stack(snapshot, entry->stack);
    }
}

static void print_blocks(const struct allocator_snapshot *snapshot) {
    static const char *const states[] = {"inactive", "active_allocated", "active_pending_free"};
    puts("\nblock                   size   requested  allocated by");
    for (size_t index = 0; index < snapshot->block_count; ++index) {
        const struct allocator_snapshot_block *const block = &snapshot->blocks[index];
        printf("%-17s %10zu  %10zu  ", states[block->state], block->size, block->requested_size);
        print_stack(snapshot, block->stack);
    }
}

static void write_files(const struct allocator_snapshot *snapshot, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/history.pickle", folder);
    expect_ok(workload_snapshot_write_pickle(snapshot, path));
    snprintf(path, sizeof path, "%s/history.tmt", folder);
    expect_ok(workload_snapshot_write_tmt(snapshot, path));
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "history",
        .arguments = "[FOLDER]",
        .summary = "A short training step with its history, printed, and as files in FOLDER.",
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct allocator *allocator;
    struct allocator_snapshot snapshot;
    void *weights[LAYERS], *activations[LAYERS];
    expect_ok(sim_configure(
        &(struct sim_options){.capacity_bytes = 100 * BASE_MIB, .numerics = SIM_NUMERICS_OFF}));
    expect_ok(cca_allocator_create(&(struct cca_options){.config = ""}, &allocator));
    expect_ok(
        cca_record_history(allocator, &(struct cca_history_options){.enabled = CCA_HISTORY_ALL,
                                                                    .context = CCA_CONTEXT_ALL,
                                                                    .max_entries = 100000}));
    load_weights(allocator, weights);
    forward(allocator, activations);
    backward(allocator, activations);
    load_batch(allocator);

    expect_ok(allocator_snapshot(allocator, &snapshot));
    print_entries(&snapshot);
    print_blocks(&snapshot);
    if (common.argument_count > 0) write_files(&snapshot, common.arguments[0]);
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
    return 0;
}
