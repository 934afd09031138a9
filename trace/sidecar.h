// The JSON file beside a snapshot: "run.json" beside "run.pickle" or "run.pickle.gz". Inside trace/
// only.
//
// A PyTorch snapshot does not say how large the device was, which memory fraction was set or which
// release wrote it. The JSON may: {"device_capacity": BYTES, "memory_fraction": NUMBER or null,
// "torch": "2.15.0"}; other keys are ignored.
#ifndef TIDEMARK_TRACE_SIDECAR_H
#define TIDEMARK_TRACE_SIDECAR_H

#include "trace/trace.h"

// Fills what the JSON beside PATH says into SETTINGS; BASE_OK if there is none. BASE_FORMAT names
// the JSON file.
enum base_status trace__read_sidecar(const char *path,
                                     struct trace_settings *settings) BASE_MUST_USE;

// PATH's base name without folder, ".gz" and one more suffix; the caller frees. NULL: no memory.
char *trace__base_name(const char *path);

#endif
