// The rules about the settings of our own: those that have nothing to act on, and the one that is
// not for use.
#include "allocator/lint_rules.h"

static void tell(struct cca__lint *lint, const char *rule, const char *key, const char *instead,
                 const char *sentence) {
    cca__lint_tell(lint, &(struct cca__lint_place){rule, key, 0, CCA__TORCH_MINOR_LATEST}, instead,
                   "%s", sentence);
}

void cca__lint_own(struct cca__lint *lint) {
    const bool expands = cca__lint_is(lint, "expandable_segments", "True");
    const bool limits_splits = cca__lint_find(lint, "max_split_size_mb") != NULL;
    if (cca__lint_is(lint, "x_bound_growth", "True") && !(expands && limits_splits))
        tell(lint, "bound-without-growth", "x_bound_growth", "leave it out",
             "it keeps max_split_size_mb from growing expandable segments: without both of them "
             "there is nothing to bound");
    if (cca__lint_is(lint, "x_reclaim_idle", "True") && expands)
        tell(lint, "reclaim-with-expandable", "x_reclaim_idle", "choose one of the two",
             "it takes segments of cudaMalloc; with expandable_segments:True there are none to "
             "take");
    if (cca__lint_is(lint, "x_capture_reuse", "markers") ||
        cca__lint_is(lint, "x_capture_reuse", "markers_graph"))
        tell(lint, "reuse-by-markers", "x_capture_reuse", "terminals",
             "the first form walks the whole graph at each request of a capture and adds nodes to "
             "it; the present one proves as much");
    if (cca__lint_is(lint, "x_torch_faults", "True"))
        tell(lint, "torch-faults", "x_torch_faults",
             "leave it out, but to compare decisions with PyTorch's",
             "when max_split_size_mb is lowered at run time, memory that is in use may go back to "
             "the device, as in PyTorch");
}
