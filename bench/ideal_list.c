// See ideal_list.h. The address of a block tells its class (class c owns 2^40 bytes of made-up
// addresses), so a free needs no lookup and no header, and touches one stack. A hit is: count
// leading zeros, one load and one store of the stack's count, one load of the block.
#include "bench/ideal_list.h"

#include "base/check.h"
#include "base/thread.h"

#include <stdlib.h>

#define CLASS_FIRST 9       // 512 B
#define CLASS_COUNT 28      // up to 2^36 B
#define CLASS_SPAN_SHIFT 40 // of addresses a class owns
#define ADDRESS_BASE ((uint64_t)1 << 46)

struct size_class {
    void **free; // stack of free blocks; has room for every block of the class
    size_t free_count;
    size_t made_count, capacity;
};

struct list {
    struct allocator allocator;
    struct base_mutex mutex; // mutex_list: guards the classes
    struct size_class classes[CLASS_COUNT];
};

static unsigned class_of_size(size_t size) {
    if (size <= (size_t)1 << CLASS_FIRST) return 0;
    return 64 - (unsigned)__builtin_clzll((unsigned long long)size - 1) - CLASS_FIRST;
}

// The slow path, first uses only: one more block of the class.
static __attribute__((noinline)) void *class_make(struct size_class *class, unsigned index) {
    if (class->made_count == class->capacity) {
        class->capacity = class->capacity ? 2 * class->capacity : 64;
        class->free = realloc(class->free, class->capacity * sizeof *class->free);
        BASE_CHECK(class->free != NULL);
    }
    const uint64_t offset = (uint64_t) class->made_count++ << (index + CLASS_FIRST);
    BASE_CHECK_LT(offset, (uint64_t)1 << CLASS_SPAN_SHIFT);
    return (void *)(ADDRESS_BASE + ((uint64_t)index << CLASS_SPAN_SHIFT) + offset);
}

static inline enum base_status list_take(struct list *list, size_t size, void **pointer) {
    const unsigned index = class_of_size(size);
    if (index >= CLASS_COUNT)
        return base_status_set(BASE_LIMIT, "%zu bytes are more than the list's largest class",
                               size);
    struct size_class *class = &list->classes[index];
    *pointer = class->free_count > 0 ? class->free[--class->free_count] : class_make(class, index);
    return BASE_OK;
}

static inline enum base_status list_give(struct list *list, void *pointer) {
    if (pointer == NULL) return BASE_OK;
    struct size_class *class =
        &list->classes[((uint64_t)pointer - ADDRESS_BASE) >> CLASS_SPAN_SHIFT];
    class->free[class->free_count++] = pointer;
    return BASE_OK;
}

static enum base_status ideal_malloc(struct allocator *allocator, int device, size_t size,
                                     cudaStream_t stream, void **pointer) {
    (void)device, (void)stream;
    return list_take((struct list *)allocator, size, pointer);
}

static enum base_status ideal_free(struct allocator *allocator, void *pointer) {
    return list_give((struct list *)allocator, pointer);
}

static enum base_status mutex_malloc(struct allocator *allocator, int device, size_t size,
                                     cudaStream_t stream, void **pointer) {
    (void)device, (void)stream;
    struct list *list = (struct list *)allocator;
    base_mutex_lock(&list->mutex);
    const enum base_status status = list_take(list, size, pointer);
    base_mutex_unlock(&list->mutex);
    return status;
}

static enum base_status mutex_free(struct allocator *allocator, void *pointer) {
    struct list *list = (struct list *)allocator;
    base_mutex_lock(&list->mutex);
    const enum base_status status = list_give(list, pointer);
    base_mutex_unlock(&list->mutex);
    return status;
}

static enum base_status no_list_malloc(struct allocator *allocator, int device, size_t size,
                                       cudaStream_t stream, void **pointer) {
    (void)device, (void)size, (void)stream;
    *pointer = allocator;
    return BASE_OK;
}

static enum base_status no_list_free(struct allocator *allocator, void *pointer) {
    (void)allocator, (void)pointer;
    return BASE_OK;
}

static enum base_status list_stats(struct allocator *allocator, int device,
                                   struct allocator_stats *stats) {
    (void)device;
    struct list *list = (struct list *)allocator;
    int64_t blocks = 0, bytes = 0;
    base_mutex_lock(&list->mutex);
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        const int64_t live =
            (int64_t)list->classes[i].made_count - (int64_t)list->classes[i].free_count;
        blocks += live;
        bytes += live * ((int64_t)1 << (i + CLASS_FIRST));
    }
    base_mutex_unlock(&list->mutex);
    *stats = (struct allocator_stats){.max_split_size = -1};
    stats->allocation[ALLOCATOR_STAT_ALL].current = blocks;
    stats->allocated_bytes[ALLOCATOR_STAT_ALL].current = bytes;
    return BASE_OK;
}

static void list_destroy(struct allocator *allocator) {
    struct list *list = (struct list *)allocator;
    for (unsigned i = 0; i < CLASS_COUNT; i++) free(list->classes[i].free);
    base_mutex_deinit(&list->mutex);
    free(list);
}

static enum base_status refuse(void) {
    return base_status_set(BASE_UNSUPPORTED, "a limit only allocates and frees");
}
static enum base_status no_record_stream(struct allocator *allocator, void *pointer,
                                         cudaStream_t stream) {
    (void)allocator, (void)pointer, (void)stream;
    return refuse();
}
static enum base_status no_empty_cache(struct allocator *allocator) {
    (void)allocator;
    return refuse();
}
static enum base_status no_base_allocation(struct allocator *allocator, const void *pointer,
                                           void **base, size_t *size) {
    (void)allocator, (void)pointer, (void)base, (void)size;
    return refuse();
}
static enum base_status no_largest_block(struct allocator *allocator, int device, size_t *size) {
    (void)allocator, (void)device, (void)size;
    return refuse();
}
static enum base_status no_reset(struct allocator *allocator, int device) {
    (void)allocator, (void)device;
    return refuse();
}
static enum base_status no_snapshot(struct allocator *allocator,
                                    struct allocator_snapshot *snapshot) {
    (void)allocator, (void)snapshot;
    return refuse();
}
static enum base_status no_observer(struct allocator *allocator,
                                    const struct allocator_observer *observer) {
    (void)allocator, (void)observer;
    return refuse();
}

#define OPERATIONS(name_text, malloc_function, free_function)                                      \
    {                                                                                              \
        .name = name_text, .malloc = malloc_function, .free = free_function,                       \
        .record_stream = no_record_stream, .empty_cache = no_empty_cache,                          \
        .base_allocation = no_base_allocation, .largest_block = no_largest_block,                  \
        .stats = list_stats, .reset_peak_stats = no_reset, .reset_accumulated_stats = no_reset,    \
        .snapshot = no_snapshot, .set_observer = no_observer, .destroy = list_destroy              \
    }
static const struct allocator_operations ideal_operations =
    OPERATIONS("ideal_list", ideal_malloc, ideal_free);
static const struct allocator_operations mutex_operations =
    OPERATIONS("mutex_list", mutex_malloc, mutex_free);
static const struct allocator_operations no_list_operations =
    OPERATIONS("no_list", no_list_malloc, no_list_free);

static struct allocator *list_create(const struct allocator_operations *operations) {
    struct list *list = calloc(1, sizeof *list);
    BASE_CHECK(list != NULL);
    list->allocator.operations = operations;
    base_mutex_init(&list->mutex);
    return &list->allocator;
}

struct allocator *bench_ideal_list_create(void) {
    return list_create(&ideal_operations);
}
struct allocator *bench_mutex_list_create(void) {
    return list_create(&mutex_operations);
}
struct allocator *bench_no_list_create(void) {
    return list_create(&no_list_operations);
}
