// See capture_logs.h.
#include "allocator/golden/capture_logs.h"

#include "allocator/golden/capture_compare.h"
#include "base/check.h"

#include <dirent.h>
#include <stdlib.h>

static int is_log(const struct dirent *entry) {
    size_t stem_length;
    return golden_capture_log_is(entry->d_name, &stem_length);
}

char **golden_capture_logs(size_t *count) {
    struct dirent **entries;
    const int found = scandir(GOLDEN_CAPTURE_FOLDER, &entries, is_log, alphasort);
    BASE_CHECK(found >= 0);
    char **const paths = calloc((size_t)found + 1, sizeof *paths);
    BASE_CHECK(paths != NULL);
    for (int index = 0; index < found; index++) {
        BASE_CHECK(asprintf(&paths[index], GOLDEN_CAPTURE_FOLDER "%s", entries[index]->d_name) > 0);
        free(entries[index]);
    }
    free(entries);
    *count = (size_t)found;
    return paths;
}

void golden_capture_logs_free(char **paths, size_t count) {
    for (size_t index = 0; index < count; index++)
        free(paths[index]);
    free(paths);
}
