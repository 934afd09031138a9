// The cases, a file a theme. The counts are those of the reports that were read: a case that gets
// lost does not compile.
#ifndef TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_THEMES_H
#define TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_THEMES_H

#include "allocator/public_faults/public_faults.h"

#define PUBLIC_FAULTS_FRAGMENTATION_COUNT 14
#define PUBLIC_FAULTS_STREAMS_COUNT       15
#define PUBLIC_FAULTS_EXPANDABLE_COUNT    14
#define PUBLIC_FAULTS_SETTINGS_COUNT      13
#define PUBLIC_FAULTS_NUMBERS_COUNT       10
#define PUBLIC_FAULTS_GRAPHS_COUNT        8

extern const struct public_fault_case
    public_faults_fragmentation[PUBLIC_FAULTS_FRAGMENTATION_COUNT];
extern const struct public_fault_case public_faults_streams[PUBLIC_FAULTS_STREAMS_COUNT];
extern const struct public_fault_case public_faults_expandable[PUBLIC_FAULTS_EXPANDABLE_COUNT];
extern const struct public_fault_case public_faults_settings[PUBLIC_FAULTS_SETTINGS_COUNT];
extern const struct public_fault_case public_faults_numbers[PUBLIC_FAULTS_NUMBERS_COUNT];
extern const struct public_fault_case public_faults_graphs[PUBLIC_FAULTS_GRAPHS_COUNT];

#endif
