// The out-of-memory message, number by number: docs/oom-message.md tells the story. Each row is the
// same world with one thing changed, and what the message says then.
#include "docs/examples/drawing.h"

#include "allocator/pools.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Who holds what, in MiB, and the request that fails.
struct world {
    size_t device; // its size
    size_t request_bytes;
    size_t other_process; // holds
    size_t context;       // of this process: CUDA's own memory
    size_t beside;        // that the program takes by cudaMalloc itself
    size_t held;          // of a cached block of 160: the program has that much of it again
    size_t idle;          // in a block that was given back and is a segment of its own
    size_t in_pool;       // the same in a private pool that is in use
    double fraction;      // 1: none
};

static const struct world usual = {.device = 1000,
                                   .request_bytes = 300 * BASE_MIB,
                                   .other_process = 200,
                                   .context = 100,
                                   .beside = 50,
                                   .held = 60,
                                   .fraction = 1.0};

static struct cca_out_of_memory told;
static void on_warning(void *context, const char *text) {
    (void)context;
    printf("warning: %s\n", text);
}

static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    (void)context;
    told = *numbers;
}

// What NVML would say: in the simulator nobody else knows.
static bool list_processes(void *context, int device, struct cca_process *processes,
                           size_t capacity, size_t *count) {
    const struct world *const world = context;
    BASE_CHECK(capacity >= 2);
    processes[0] = (struct cca_process){4242, world->other_process * BASE_MIB};
    processes[1] =
        (struct cca_process){getpid(), sim_used_bytes(device) + world->context * BASE_MIB};
    *count = 2;
    return true;
}

// What a captured graph keeps for its next replay.
static void cache_in_pool(struct drawing *drawing, size_t size) {
    static const struct allocator_pool_id id = {.capture = 1};
    DRAWING_OK(cca_pool_begin(drawing->allocator, 0, id, NULL));
    BASE_CHECK(drawing_take(drawing, 'E', size, NULL));
    DRAWING_OK(cca_pool_end(drawing->allocator, 0, id));
    drawing_give(drawing, 'E');
}

// Builds the world. *beside is what the program takes beside the allocator.
static void build(struct drawing *drawing, const char *config, struct world *world, void **beside) {
    *beside = NULL;
    drawing_start(drawing, config, world->device * BASE_MIB);
    cca_set_warning_observer(drawing->allocator,
                             &(struct cca_warning_observer){.warning = on_warning});
    DRAWING_OK(cca_set_out_of_memory_observer(
        drawing->allocator, &(struct cca_out_of_memory_observer){.event = on_out_of_memory}));
    cca_set_process_source(drawing->allocator,
                           &(struct cca_process_source){.list = list_processes, .context = world});
    sim_set_foreign_bytes(0, (world->other_process + world->context) * BASE_MIB);
    DRAWING_CALL(cudaMalloc(beside, world->beside * BASE_MIB));
    BASE_CHECK(drawing_take(drawing, 'A', 200 * BASE_MIB, NULL));
    BASE_CHECK(drawing_take(drawing, 'B', 160 * BASE_MIB, NULL));
    drawing_give(drawing, 'B');
    BASE_CHECK(drawing_take(drawing, 'C', world->held * BASE_MIB, NULL));
    if (world->idle > 0) BASE_CHECK(drawing_take(drawing, 'D', world->idle * BASE_MIB, NULL));
    if (world->idle > 0) drawing_give(drawing, 'D');
    if (world->in_pool > 0) cache_in_pool(drawing, world->in_pool * BASE_MIB);
    DRAWING_OK(cca_set_memory_fraction(drawing->allocator, 0, world->fraction));
}

// Lets the request of a world fail. The allocator is the caller's to stop.
static void fail(struct drawing *drawing, const char *config, struct world *world) {
    void *beside, *pointer = NULL;
    build(drawing, config, world, &beside);
    BASE_CHECK_EQ(allocator_malloc(drawing->allocator, 0, world->request_bytes, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
    DRAWING_CALL(cudaFree(beside));
}

// The message, a sentence or clause a line.
static void print_message(void) {
    static const char *const ends[] = {". GPU",     "free. ",        "use. ", "; ",
                                       "PyTorch, ", "unallocated. ", ".  "};
    const char *text = base_status_message();
    while (*text != '\0') {
        size_t length = strlen(text);
        for (size_t end = 0; end < sizeof ends / sizeof ends[0]; ++end) {
            const char *const found = strstr(text, ends[end]);
            if (found == NULL) continue;
            const size_t here = (size_t)(strchr(found, ' ') - text);
            if (here < length) length = here;
        }
        printf("%.*s\n", (int)length, text);
        text += length + strspn(text + length, " ");
    }
}

static size_t mib(size_t bytes) { return bytes / BASE_MIB; }

static void print_row(const char *what, struct world *world) {
    struct drawing drawing;
    fail(&drawing, "", world);
    printf("%-38s %5zu %6zu %5zu %8zu %5zu", what, mib(told.tried), mib(told.total), mib(told.free),
           mib(told.processes[0].used_bytes), mib(told.processes[1].used_bytes));
    if (told.limited)
        printf(" %8zu", mib(told.allowed));
    else
        printf(" %8s", "-");
    printf(" %10zu %8zu %12zu\n", mib(told.allocated), mib(told.private_free),
           mib(told.unallocated));
    drawing_stop(&drawing);
}

static void whole_message(void) {
    struct world world = usual;
    struct drawing drawing;
    fail(&drawing, "", &world);
    printf("segments of 200 and 160 MiB, a character is 20: ");
    drawing_segments(&drawing, 20 * BASE_MIB);
    print_message();
    drawing_stop(&drawing);
}

static void each_number_moves(void) {
    puts("what is different                      tried  total  free  process  this  allowed  "
         "allocated  private  unallocated");
    puts("                                                               4242   one");
    static const struct {
        const char *what;
        struct world change; // what is added to the usual world
    } rows[] = {
        {"nothing", {0}},
        {"the request: 1 byte more", {.request_bytes = 1}},
        {"a device larger by 5", {.device = 5}},
        {"process 4242 takes 100", {.other_process = 100}},
        {"the context is larger by 60", {.context = 60}},
        {"cudaMalloc of 30 beside the allocator", {.beside = 30}},
        {"40 more out of the cached block", {.held = 40}},
        {"a segment of 80, cached as a whole", {.idle = 80}},
        {"100 cached in a private pool", {.in_pool = 100}},
        {"a memory fraction of 0.5", {.fraction = -0.5}},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        const struct world *const change = &rows[row].change;
        struct world world = usual;
        world.device += change->device;
        world.request_bytes += change->request_bytes;
        world.other_process += change->other_process;
        world.context += change->context;
        world.beside += change->beside;
        world.held += change->held;
        world.idle += change->idle;
        world.in_pool += change->in_pool;
        world.fraction += change->fraction;
        print_row(rows[row].what, &world);
    }
}

// What adds up to what: the numbers of the message against what the program knows.
static void sums(void) {
    struct world world = usual;
    struct drawing drawing;
    fail(&drawing, "", &world);
    const size_t reserved = told.allocated + told.unallocated;
    const size_t others = told.processes[1].used_bytes - reserved - world.context * BASE_MIB;
    BASE_CHECK_EQ((int64_t)reserved, drawing_reserved(&drawing));
    BASE_CHECK_EQ((int64_t)told.allocated, drawing_allocated(&drawing));
    BASE_CHECK_EQ(told.free + told.processes[0].used_bytes + told.processes[1].used_bytes,
                  told.total);
    BASE_CHECK_EQ(others, world.beside * BASE_MIB);
    printf("allocated %zu + unallocated %zu = reserved %zu\n", mib(told.allocated),
           mib(told.unallocated), mib(reserved));
    printf("free %zu + process 4242 %zu + this one %zu = total %zu\n", mib(told.free),
           mib(told.processes[0].used_bytes), mib(told.processes[1].used_bytes), mib(told.total));
    printf("this one %zu - reserved %zu - context %zu = others in the process %zu\n",
           mib(told.processes[1].used_bytes), mib(reserved), world.context, mib(others));
    drawing_stop(&drawing);
}

// What it tries to allocate: the segment that the request needs, on a device that is full.
static void tried_sizes(void) {
    static const size_t sizes[] = {
        1, BASE_MIB, BASE_MIB + 1, 10 * BASE_MIB - 512, 10 * BASE_MIB, 10 * BASE_MIB + 1};
    puts("request           tried");
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index) {
        struct world world = usual;
        struct drawing drawing;
        char size[DRAWING_SIZE];
        // 1000 - 200 - 360 are free but for this; nothing is left of the block of 160.
        world.other_process = 440 - world.context;
        world.beside = 200;
        world.held = 160;
        world.request_bytes = sizes[index];
        fail(&drawing, "", &world);
        printf("%-15s  %6zu\n", drawing_size(sizes[index], size), mib(told.tried));
        drawing_stop(&drawing);
    }
}

// The end of the message under other settings.
static void advice(void) {
    struct world world = usual;
    struct drawing drawing;
    void *beside, *pointer;
    puts("expandable_segments:True");
    build(&drawing, "expandable_segments:True", &world, &beside);
    DRAWING_OK(allocator_malloc(drawing.allocator, 0, world.request_bytes, NULL, &pointer));
    printf("%zu MiB: served, reserved %d\n", mib(world.request_bytes),
           (int)(drawing_reserved(&drawing) / (int64_t)BASE_MIB));
    DRAWING_CALL(cudaFree(beside));
    drawing_stop(&drawing);
    world.request_bytes = 400 * BASE_MIB;
    printf("%zu MiB:\n", mib(world.request_bytes));
    fail(&drawing, "expandable_segments:True", &world);
    puts(strstr(base_status_message(), "unallocated. ") + strlen("unallocated. "));
    drawing_stop(&drawing);

    puts("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.6");
    fail(&drawing, "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.6", &world);
    puts(base_status_message());
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "oom_message",
        .summary = "The out-of-memory message, number by number.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    whole_message();
    each_number_moves();
    sums();
    tried_sizes();
    advice();
    return 0;
}
