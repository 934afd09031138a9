// The file of reports: a line of JSON each, docs/races.md says what is in it.
#ifndef TIDEMARK_SIMULATOR_RACE_JSON_H
#define TIDEMARK_SIMULATOR_RACE_JSON_H

#include "simulator/race_report.h"

#include <stdio.h>

// The first line: what the file is.
void sim__race_json_head(FILE *file);
void sim__race_json_report(FILE *file, const struct sim__race_found *found,
                           const struct sim_race_report *report, uint64_t number);

#endif
