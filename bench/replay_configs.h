// Which configurations a trace is replayed under.
#ifndef TIDEMARK_BENCH_REPLAY_CONFIGS_H
#define TIDEMARK_BENCH_REPLAY_CONFIGS_H

#include "base/options.h"
#include "bench/replay_run.h"

#define BENCH_REPLAY_COLLECTION_LIMIT 1.1 // of the default configuration's peak reserved

// The setting that another has to beat.
#define BENCH_REPLAY_DEFAULT_NAME "default"
// The recording's own, where it has none of the names that are compared.
#define BENCH_REPLAY_RECORDED_NAME "recorded"

// What is compared when the user names nothing: the default and one change each.
const struct base_config *bench_replay_configs_default(int *count);

// A bad text among COUNT configurations: its status, the sentence begins with its name. Also two of
// one name.
enum base_status bench_replay_configs_check(const struct base_config *configs,
                                            int count) BASE_MUST_USE;

// True if CONFIG under these limits is the recording's own setting.
bool bench_replay_config_is_recorded(const struct trace *trace, const char *config,
                                     const struct bench_replay_limits *limits);

// A configuration with garbage_collection_threshold does nothing without a memory fraction (a rule
// of PyTorch's). True if that is so here: then bench_replay_limit_collection is to be applied.
bool bench_replay_config_needs_limit(const char *config, const struct bench_replay_limits *limits);
// Limits the process to BENCH_REPLAY_COLLECTION_LIMIT x PEAK_BYTES.
void bench_replay_limit_collection(struct bench_replay_limits *limits, uint64_t peak_bytes);

#endif
