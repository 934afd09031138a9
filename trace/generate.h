// A program's memory requests made up by a seed: what trace:make writes. Inside trace/ only.
//
//     struct trace_generator *generator;
//     status = trace__generator_create(&options, &generator);
//     while (requests left) { trace__generator_next(generator, &event, &site); ... }
//
// Three programs, each with sizes of its own that come again from step to step as real ones do:
//   training  layers of fixed sizes; forward keeps activations, backward frees them last in, first
//             out, with short-lived buffers in between; weights stay
//   varlen    the same, each step of another sequence length, so that sizes seldom come again
//   serving   caches of mixed sizes that come and go in any order, buffers that live for one
//             operation
// With more than one stream, side streams take buffers that live for a while, as all-gathers do;
// some of their blocks are also used by stream 0, and their frees complete later than they are
// requested.
//
// Requests only: addresses are unique, ever-growing names. Where an allocator would have put the
// blocks is not made up.
#ifndef TIDEMARK_TRACE_GENERATE_H
#define TIDEMARK_TRACE_GENERATE_H

#include "base/status.h"
#include "trace/trace.h"

enum trace_profile {
    TRACE_PROFILE_TRAINING,
    TRACE_PROFILE_VARLEN,
    TRACE_PROFILE_SERVING,
    TRACE_PROFILE_COUNT
};
// NULL beyond the last.
const char *trace__profile_name(int profile);

struct trace_generator_options {
    uint64_t seed;
    enum trace_profile profile;
    uint32_t stream_count; // 1 to TRACE_GENERATOR_STREAMS_MAX
};
enum { TRACE_GENERATOR_STREAMS_MAX = 64 };

struct trace_generator;

enum base_status trace__generator_create(const struct trace_generator_options *options,
                                         struct trace_generator **generator) BASE_MUST_USE;
void trace__generator_destroy(struct trace_generator *generator);

// The next entry of the trace; its stream is the stream's index, its stack TRACE_NONE. *site tells
// where in the program the block was asked for: equal for the same operation of each step.
enum base_status trace__generator_next(struct trace_generator *generator, struct trace_event *event,
                                       uint32_t *site) BASE_MUST_USE;

// The stream's handle as a recording would have it.
static inline uint64_t trace__generator_stream(uint32_t index) {
    return index == 0 ? 0 : 0x5555aa000000 + (uint64_t)index * 0x80;
}

#endif
