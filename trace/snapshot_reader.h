// PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), Torch 2.0 to 2.15, as traces. Inside
// trace/ only.
#ifndef TIDEMARK_TRACE_SNAPSHOT_READER_H
#define TIDEMARK_TRACE_SNAPSHOT_READER_H

#include "trace/input.h"
#include "trace/trace.h"

// Whether a file that begins with BYTES may be a pickle.
bool trace__is_pickle(const unsigned char *bytes, size_t size);

// Reads the snapshot that INPUT stands at the beginning of, to its end; INPUT's name gives the
// trace's. Holds what the trace will hold and 4 bytes for each object that the file numbers, and no
// more than OPTIONS allow. The sentence of a failure says where in the snapshot or the file,
// without the file's name.
enum base_status trace__read_snapshot(struct trace_input *input,
                                      const struct trace_read_options *options,
                                      struct trace **trace) BASE_MUST_USE;

#endif
