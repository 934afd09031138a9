// The subjects by name.
#include "allocator/golden/subject.h"

#include <string.h>

const struct golden_subject *golden_subject_find(const char *name) {
    static const struct golden_subject *const subjects[] = {&golden_subject_caching,
                                                            &golden_subject_model};
    for (size_t index = 0; index < sizeof subjects / sizeof subjects[0]; index++)
        if (strcmp(subjects[index]->name, name) == 0) return subjects[index];
    return NULL;
}
