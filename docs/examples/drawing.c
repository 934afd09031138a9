// See drawing.h.
#include "docs/examples/drawing.h"

#include <stdio.h>

static void start(struct drawing *drawing, const char *config, uint64_t capacity,
                  enum sim_numerics numerics) {
    *drawing = (struct drawing){0};
    DRAWING_OK(
        sim_configure(&(struct sim_options){.capacity_bytes = capacity, .numerics = numerics}));
    DRAWING_OK(cca_allocator_create(&(struct cca_options){.config = config}, &drawing->allocator));
}

void drawing_start(struct drawing *drawing, const char *config, uint64_t capacity) {
    start(drawing, config, capacity, SIM_NUMERICS_OFF);
}

void drawing_start_with_bytes(struct drawing *drawing, const char *config, uint64_t capacity) {
    start(drawing, config, capacity, SIM_NUMERICS_ON);
}

void drawing_stop(struct drawing *drawing) {
    allocator_destroy(drawing->allocator);
    for (int index = 0; index < drawing->stream_count; ++index)
        DRAWING_CALL(cudaStreamDestroy(drawing->streams[index]));
}

cudaStream_t drawing_stream(struct drawing *drawing) {
    BASE_CHECK(drawing->stream_count < DRAWING_STREAMS);
    cudaStream_t *const stream = &drawing->streams[drawing->stream_count++];
    DRAWING_CALL(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    return *stream;
}

static int index_of(char letter) {
    BASE_CHECK(letter >= 'A' && letter <= 'Z');
    return letter - 'A';
}

bool drawing_take(struct drawing *drawing, char letter, size_t bytes, cudaStream_t stream) {
    void *block;
    const enum base_status status = allocator_malloc(drawing->allocator, 0, bytes, stream, &block);
    if (status == BASE_OUT_OF_MEMORY) return false;
    BASE_CHECK_EQ(status, BASE_OK);
    drawing_name(drawing, letter, block);
    return true;
}

void drawing_name(struct drawing *drawing, char letter, void *block) {
    // The address may be that of a block which another letter had.
    for (int index = 0; index < DRAWING_LETTERS; ++index)
        if (drawing->blocks[index] == block) drawing->blocks[index] = NULL;
    drawing->blocks[index_of(letter)] = block;
}

void *drawing_block(const struct drawing *drawing, char letter) {
    return drawing->blocks[index_of(letter)];
}

void drawing_give(struct drawing *drawing, char letter) {
    DRAWING_OK(allocator_free(drawing->allocator, drawing_block(drawing, letter)));
}

char *drawing_size(uint64_t bytes, char buffer[DRAWING_SIZE]) {
    static const uint64_t near = 4096;
    const uint64_t whole = (bytes + near) / BASE_MIB;
    const int64_t beyond = (int64_t)(bytes - whole * BASE_MIB);
    if (whole > 0 && beyond != 0 && beyond < (int64_t)near)
        snprintf(buffer, DRAWING_SIZE, "%d MiB %c %d B", (int)whole, beyond < 0 ? '-' : '+',
                 (int)(beyond < 0 ? -beyond : beyond));
    else if (bytes != 0 && bytes % BASE_MIB == 0)
        snprintf(buffer, DRAWING_SIZE, "%d MiB", (int)whole);
    else if (bytes != 0 && bytes % BASE_KIB == 0)
        snprintf(buffer, DRAWING_SIZE, "%d KiB", (int)(bytes / BASE_KIB));
    else
        snprintf(buffer, DRAWING_SIZE, "%llu B", (unsigned long long)bytes);
    return buffer;
}

static struct allocator_stats stats_of(const struct drawing *drawing) {
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    return stats;
}

int64_t drawing_allocated(const struct drawing *drawing) {
    return stats_of(drawing).allocated_bytes[ALLOCATOR_STAT_ALL].current;
}

int64_t drawing_reserved(const struct drawing *drawing) {
    return stats_of(drawing).reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

static char letter_of(const struct drawing *drawing, const struct allocator_snapshot_block *block) {
    if (block->state == ALLOCATOR_BLOCK_INACTIVE) return '.';
    char found = '?';
    for (int index = 0; index < DRAWING_LETTERS; ++index)
        if (drawing->blocks[index] == block->address) found = (char)('A' + index);
    return block->state == ALLOCATOR_BLOCK_PENDING_FREE ? (char)(found - 'A' + 'a') : found;
}

static void draw_segment(const struct drawing *drawing, const struct allocator_snapshot *snapshot,
                         const struct allocator_snapshot_segment *segment, size_t scale) {
    for (int index = 0; index < drawing->stream_count; ++index)
        if (drawing->streams[index] == segment->stream) printf("%d:", index + 1);
    putchar('|');
    for (size_t index = 0; index < segment->block_count; ++index) {
        const struct allocator_snapshot_block *const block =
            &snapshot->blocks[segment->block_first + index];
        for (size_t done = 0; done < block->size; done += scale)
            putchar(letter_of(drawing, block));
    }
    putchar('|');
}

void drawing_segments(const struct drawing *drawing, size_t scale) {
    struct allocator_snapshot snapshot;
    DRAWING_OK(allocator_snapshot(drawing->allocator, &snapshot));
    for (size_t index = 0; index < snapshot.segment_count; ++index) {
        if (index > 0) fputs("  ", stdout);
        draw_segment(drawing, &snapshot, &snapshot.segments[index], scale);
    }
    putchar('\n');
    allocator_snapshot_deinit(&snapshot);
}
