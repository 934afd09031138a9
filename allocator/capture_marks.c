// See capture_marks.h.
#include "allocator/capture_marks.h"

uint64_t cca__marks_bit(const struct cca__capture_marks *marks, unsigned long long id) {
    for (uint64_t left = marks->marked; left != 0;) {
        const unsigned place = cca__marks_next(&left);
        if (marks->captures[place].id == id)
            return (uint64_t)1 << place;
    }
    return 0;
}

enum base_status cca__marks_begin(struct cca__capture_marks *marks,
                                  const struct cca_capture *capture) {
    if (capture->id == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "a capture has no id 0; cudaStreamGetCaptureInfo tells it");
    if (cca__marks_bit(marks, capture->id) != 0)
        return base_status_set(BASE_INVALID_VALUE, "capture %llu is marked already", capture->id);
    if (capture->parent != 0 && cca__marks_bit(marks, capture->parent) == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "capture %llu cannot be a part of capture %llu, which is not marked",
                               capture->id, capture->parent);
    if (~marks->marked == 0)
        return base_status_set(BASE_LIMIT, "%d captures are marked already", CCA_CAPTURES_MAX);
    const unsigned place = (unsigned)__builtin_ctzll(~marks->marked);
    marks->captures[place] = *capture;
    marks->marked |= (uint64_t)1 << place;
    return BASE_OK;
}

enum base_status cca__marks_end(struct cca__capture_marks *marks, unsigned long long id) {
    const uint64_t bit = cca__marks_bit(marks, id);
    if (bit == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "capture %llu is not marked (PyTorch: c10::Error INTERNAL ASSERT "
                               "captures_underway)",
                               id);
    for (uint64_t left = marks->marked; left != 0;) {
        const struct cca_capture *const capture = &marks->captures[cca__marks_next(&left)];
        if (capture->parent == id)
            return base_status_set(BASE_INVALID_VALUE,
                                   "capture %llu is still marked, a part of capture %llu: end it "
                                   "first",
                                   capture->id, id);
    }
    const unsigned long long parent = marks->captures[__builtin_ctzll(bit)].parent;
    marks->marked &= ~bit;
    marks->wholes &= ~bit;
    if (parent != 0)
        marks->wholes |= cca__marks_bit(marks, parent);
    return BASE_OK;
}
