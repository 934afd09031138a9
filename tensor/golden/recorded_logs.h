// The logs under testdata/. The numbers of operations and lines that agree are written out in
// golden_test.c, so that a log that quietly loses lines, or is no longer compared, fails a test.
#ifndef TIDEMARK_TENSOR_GOLDEN_RECORDED_LOGS_H
#define TIDEMARK_TENSOR_GOLDEN_RECORDED_LOGS_H

// Random programs: views, writes, storages, formats, types, the tape, modes.
#define GOLDEN_RANDOM_LOGS                                                                         \
    "alias-01", "alias-02", "alias-04", "alias-05", "alias-07", "alias-08", "alias-10",            \
        "format-01", "format-02", "format-04", "format-05", "format-07", "mixed-01", "mixed-02",   \
        "mixed-04", "mixed-05", "modes-01", "modes-04", "modes-05", "modes-07", "promote-01",      \
        "promote-02", "promote-04", "promote-05", "rebase-01", "rebase-02", "rebase-05",           \
        "rebase-06", "rebase-08", "rebase-09", "rebase-11", "rebase-12", "storage-01",             \
        "storage-02", "storage-04", "storage-05", "storage-07", "storage-08", "tape-01",           \
        "tape-02", "tape-04", "tape-05", "tape-07", "tape-08", "views-01", "views-02", "views-04", \
        "views-05", "views-07"

// By hand, one subject each.
#define GOLDEN_RULE_LOGS                                                                           \
    "rule-as-strided-bounds", "rule-assign-shares-impl", "rule-backward-args",                     \
        "rule-backward-rebase-base", "rule-backward-rebase-chain", "rule-backward-views",          \
        "rule-broadcast-rules", "rule-channels-last-flags", "rule-channels-last-suggest",          \
        "rule-contiguity-size-one", "rule-create-shapes", "rule-data-new-version",                 \
        "rule-detach-inplace", "rule-detach-shares-version", "rule-expand-rules",                  \
        "rule-failed-inplace-version", "rule-flatten-unflatten", "rule-frozen-metadata",           \
        "rule-grad-accumulate", "rule-index-assign", "rule-index-put-expanded",                    \
        "rule-inference-normal", "rule-inplace-empty-scalar", "rule-inplace-expanded-overlap",     \
        "rule-inplace-interleaved", "rule-inplace-partial-overlap", "rule-inplace-saved-twice",    \
        "rule-inplace-version-sharing", "rule-is-set-to", "rule-large-checksum",                   \
        "rule-leaf-inplace", "rule-memory-format-preserve", "rule-mm-grad",                        \
        "rule-mul-saved-modified", "rule-multi-view-read", "rule-no-grad-version",                 \
        "rule-no-grad-view-of-plain", "rule-out-and-grad", "rule-promote-pairs",                   \
        "rule-promote-table", "rule-requires-grad-rules", "rule-requires-grad-view",               \
        "rule-reshape-view-or-copy", "rule-resize-grow-shrink", "rule-resize-refused",             \
        "rule-retain-grad", "rule-saved-output-modified", "rule-saved-storage",                    \
        "rule-saved-version", "rule-set-grows", "rule-set-tensor", "rule-setitem-grad",            \
        "rule-slice-rules", "rule-split-chunk-unbind", "rule-squeeze-unsqueeze",                   \
        "rule-stack-cat-copies", "rule-storage-outlives-tensor", "rule-storage-resize-zero",       \
        "rule-transpose-permute", "rule-unsafe-split-version", "rule-view-basic",                  \
        "rule-view-chunks", "rule-view-dtype", "rule-view-dtype-version",                          \
        "rule-view-inplace-metadata", "rule-weak-refs"

// Record faults of PyTorch: a refused operation that changes something. They differ here.
#define GOLDEN_FAULT_LOGS                                                                          \
    "modes-02", "rule-inference-write-outside", "rule-numel-large", "rule-out-resize",             \
        "rule-resize-failed"

// What is right in their place.
#define GOLDEN_SOUND_LOGS                                                                          \
    "sound-modes-02", "sound-rule-inference-write-outside", "sound-rule-numel-large",              \
        "sound-rule-out-resize", "sound-rule-resize-failed"

#endif
