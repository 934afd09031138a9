// Device work of programs that run with the race checker on: bytes are really written, read back
// and compared, little of them, and the checker is told what is touched.
//
//     workload_race_write(&bytes, 7, stream);
//     workload_race_read(&bytes, other);          counts the bytes that are not 7
//
// In a capture they become nodes, which expect at each launch what was last captured.
#ifndef TIDEMARK_WORKLOAD_RACE_WORK_H
#define TIDEMARK_WORKLOAD_RACE_WORK_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

struct workload_race_bytes {
    unsigned char *pointer;
    size_t size;
    unsigned char value; // of every byte
};

// A kernel on STREAM that compares them with what they ought to be.
void workload_race_read(const struct workload_race_bytes *bytes, cudaStream_t stream);
// A kernel, or a memset where they are few, that makes every byte VALUE. Of many bytes some stand
// for all, the last one among them: to write each would cost a page of the host's memory each.
void workload_race_write(struct workload_race_bytes *bytes, unsigned char value,
                         cudaStream_t stream);

// How many bytes were not what they ought to be, since the last call.
uint64_t workload_race_wrong_bytes(void);

#endif
