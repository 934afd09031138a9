// The programs there are (program.c has the list), and what program.c and run.c share.
#ifndef TIDEMARK_WORKLOAD_PROGRAMS_H
#define TIDEMARK_WORKLOAD_PROGRAMS_H

#include "workload/run.h"

extern const struct workload_program workload_graphs;
extern const struct workload_program workload_moe;
extern const struct workload_program workload_offload;
extern const struct workload_program workload_patterns;
extern const struct workload_program workload_serving;
extern const struct workload_program workload_sharded;
extern const struct workload_program workload_transformer;

void workload__run_streams_destroy(struct workload_run *run);

#endif
