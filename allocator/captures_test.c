// Graph capture: what is told of it (captures.h), and what that changes. The rules are those of the
// contract; where a value is not obvious, a recorded decision of PyTorch gives it.
#include "allocator/captures.h"
#include "allocator/testing.h"

#define CAPACITY (256 * BASE_MIB)
#define DEVICE 0

static enum base_status mark(struct allocator *allocator, unsigned long long id,
                             unsigned long long parent) {
    return cca_capture_begin(allocator, DEVICE, &(struct cca_capture){.id = id, .parent = parent});
}

static void marks_are_balanced(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("c10::Error INTERNAL ASSERT"));
    BASE_CHECK_EQ(mark(allocator, 0, 0), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_OK);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_capture_begin(allocator, 7, &(struct cca_capture){.id = 1}),
                  BASE_INVALID_VALUE);
    allocator_destroy(allocator);
}

static void a_capture_ends_after_its_parts(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    BASE_CHECK_EQ(mark(allocator, 2, 1), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 2, 1), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 3, 2), BASE_OK);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("capture 2"));
    for (unsigned long long id = 3; id > 0; --id)
        BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, id), BASE_OK);
    allocator_destroy(allocator);
}

static void as_many_captures_are_marked_as_said(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    for (unsigned long long id = 1; id <= CCA_CAPTURES_MAX; ++id)
        BASE_CHECK_EQ(mark(allocator, id, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, CCA_CAPTURES_MAX + 1, 0), BASE_LIMIT);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 5), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, CCA_CAPTURES_MAX + 1, 0), BASE_OK);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(void) {
    marks_are_balanced();
    a_capture_ends_after_its_parts();
    as_many_captures_are_marked_as_said();
    return 0;
}
