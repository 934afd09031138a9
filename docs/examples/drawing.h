// What the programs of docs/ share: the caching allocator on a simulated device, blocks by letter,
// and lines of text that show what the device's memory holds.
//
//     struct drawing drawing;
//     drawing_start(&drawing, "", 64 * BASE_MIB);
//     drawing_take(&drawing, 'A', 3 * BASE_MIB, NULL);
//     drawing_segments(&drawing, BASE_MIB);                 |AAA.................|
//     drawing_stop(&drawing);
//
// A capital letter is a block that the program holds; the same letter small was given back and
// waits for its streams; a dot is free memory; | stands at both ends of a segment, or of a mapped
// piece of an expandable one. What cannot happen in an example aborts it.
#ifndef TIDEMARK_DOCS_EXAMPLES_DRAWING_H
#define TIDEMARK_DOCS_EXAMPLES_DRAWING_H

#include "allocator/cca.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#define DRAWING_LETTERS 26
#define DRAWING_STREAMS 4

#define DRAWING_CALL(call) BASE_CHECK_EQ(call, cudaSuccess)
#define DRAWING_OK(call)   BASE_CHECK_EQ(call, BASE_OK)

struct drawing {
    struct allocator *allocator;
    void *blocks[DRAWING_LETTERS];         // held now, or given back last
    cudaStream_t streams[DRAWING_STREAMS]; // those of drawing_stream; segments show their number
    int stream_count;
};

// A new device of CAPACITY bytes, accounting only, and an allocator with that configuration.
void drawing_start(struct drawing *drawing, const char *config, uint64_t capacity);
// The same with memory that holds what is written to it.
void drawing_start_with_bytes(struct drawing *drawing, const char *config, uint64_t capacity);
void drawing_stop(struct drawing *drawing);

// A stream that waits for no other of itself: the first one is 1.
cudaStream_t drawing_stream(struct drawing *drawing);

// Takes a block for the letter; false if there is no memory for it.
bool drawing_take(struct drawing *drawing, char letter, size_t bytes, cudaStream_t stream);
void *drawing_block(const struct drawing *drawing, char letter);
// The letter stands for a block that was taken some other way.
void drawing_name(struct drawing *drawing, char letter, void *block);
void drawing_give(struct drawing *drawing, char letter);

// Bytes of blocks that the program holds, and of segments.
int64_t drawing_allocated(const struct drawing *drawing);
int64_t drawing_reserved(const struct drawing *drawing);

// BYTES exactly, as people say them: "3 MiB", "1 MiB + 512 B", "600 KiB". Returns BUFFER.
#define DRAWING_SIZE 32
char *drawing_size(uint64_t bytes, char buffer[DRAWING_SIZE]);

// The segments by address with a character for each SCALE bytes, and a new line. Blocks get at
// least one character.
void drawing_segments(const struct drawing *drawing, size_t scale);

#endif
