// The file of reports: a line of JSON each, docs/races.md says what is in it.
#ifndef TIDEMARK_SIMULATOR_RACE_JSON_H
#define TIDEMARK_SIMULATOR_RACE_JSON_H

#include "simulator/race_report.h"

#include <stdio.h>

// The first line: what the file is.
void sim__race_json_head(FILE *file);
void sim__race_json_report(FILE *file, const struct sim__race_found *found,
                           const struct sim_race_report *report, uint64_t number);

// --- Between the two files ---

// What ORIGIN says, as members behind others; WHAT, if not NULL, in the place of its own.
void sim__race_json_origin(FILE *file, uint32_t origin, const char *what);
// race_json_nodes.c: the member "nodes", behind others.
void sim__race_json_nodes(FILE *file, const struct sim__race_found *found);

#endif
