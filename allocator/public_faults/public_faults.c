// See public_faults.h.
#include "allocator/public_faults/public_faults.h"

#include "allocator/public_faults/themes.h"

const struct public_fault_theme public_fault_themes[PUBLIC_FAULT_THEME_COUNT] = {
    {"fragmentation", public_faults_fragmentation, PUBLIC_FAULTS_FRAGMENTATION_COUNT},
    {"streams", public_faults_streams, PUBLIC_FAULTS_STREAMS_COUNT},
    {"expandable", public_faults_expandable, PUBLIC_FAULTS_EXPANDABLE_COUNT},
    {"settings", public_faults_settings, PUBLIC_FAULTS_SETTINGS_COUNT},
    {"numbers", public_faults_numbers, PUBLIC_FAULTS_NUMBERS_COUNT},
    {"graphs", public_faults_graphs, PUBLIC_FAULTS_GRAPHS_COUNT},
};

bool public_fault_line_agrees(const struct public_fault_line *line) {
    switch (line->relation) {
    case PUBLIC_FAULT_BELOW: return line->got < line->expected;
    case PUBLIC_FAULT_ABOVE: return line->got > line->expected;
    default: return line->got == line->expected;
    }
}
