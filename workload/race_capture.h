// Random programs that capture CUDA graphs and launch them, with the race checker on. Streams fork
// off a capture and join it again; blocks go from stream to stream with record_stream and are freed
// anywhere, in the capture or after it; graphs have pools of their own or share one; other streams
// allocate beside a capture; graphs are launched many times in any order, on any stream. The
// programs are right, so with a right allocator the checker finds nothing and every byte is there.
//
//     workload_race_capture(&(struct workload_race_capture){.config = "", .schedule = "lazy",
//                                                           .seed = 7}, &found);
//     found.races                                  0
#ifndef TIDEMARK_WORKLOAD_RACE_CAPTURE_H
#define TIDEMARK_WORKLOAD_RACE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define WORKLOAD_RACE_THREADS_MAX 4

// A wrong rule, put between the program and the allocator.
enum workload_race_plant {
    WORKLOAD_RACE_SOUND,
    WORKLOAD_RACE_FORGETS_USES,  // no use of another stream is told
    WORKLOAD_RACE_MISSES_STREAM, // those of one stream are not
};

struct workload_race_capture {
    const char *config;   // the allocator's
    const char *schedule; // the simulator's
    uint64_t seed;
    enum workload_race_plant plant;
    // Now and then the program takes a stream's join back, with
    // cudaStreamUpdateCaptureDependencies.
    bool unjoins;
    bool alone; // nobody allocates or frees beside a capture
    // Host threads besides the one that captures, while it does so: they allocate, use and free on
    // streams of their own, and take part in the capture as well, where they free blocks that
    // others took. Without turns they run as they come; with them the seed says who is next.
    int threads;
    bool turns;
    // Scopes of user pools open and close in captures, beside them, and around their end; captures
    // of other streams, with pools of their own, become parts of a capture (child graphs).
    bool nests;
    // Captures are lost: a stream does not come back, or a forbidden call invalidates them; or a
    // request in one finds no memory. Behind each of these all graphs and blocks go, and nothing
    // stays reserved.
    bool fails;
};

struct workload_race_found {
    uint64_t races, wrong_bytes;
    uint64_t captures, launches; // what was done
    uint64_t proven;             // frees that a request in the same capture completed
    uint64_t parts, user_scopes; // of captures
    uint64_t unjoined, invalidated, out_of_memory;
    uint64_t beside;          // requests of other threads that were served while a capture ran
    uint64_t reserved_peak;   // bytes
    uint64_t reserved_at_end; // bytes, when all is freed, destroyed and emptied
};

// Aborts where a call fails that ought not to, or succeeds that ought to fail.
void workload_race_capture(const struct workload_race_capture *options,
                           struct workload_race_found *found);

#endif
