// What the numbers of an out-of-memory error must add up to, whoever gives them. Checked at every
// one that a session meets, so at those of every log and of every random program.
#include "allocator/golden/session_internal.h"
#include "base/check.h"
#include "base/size.h"

#define PAGE_BYTES (2 * BASE_MIB) // the device's accounting of cudaMalloc

void golden__relations_count(struct golden_session *session, const struct allocator_event *event) {
    const uint64_t rest = base_round_up(event->size, PAGE_BYTES) - event->size;
    if (event->action == ALLOCATOR_SEGMENT_ALLOC) session->page_rest_bytes += rest;
    if (event->action != ALLOCATOR_SEGMENT_FREE) return;
    session->page_rest_bytes -= rest;
    const struct golden_segment *const segment =
        golden__segment_find(session, (uintptr_t)event->address);
    if (segment->address != (uintptr_t)event->address || segment->size != event->size)
        session->is_torn = true;
}

void golden__relations_check(struct golden_session *session,
                             const struct cca_out_of_memory *numbers) {
    session->out_of_memory_count++;
    // PyTorch's numbers add up no more once it gave back what it had not.
    if (session->is_torn) return;
    struct allocator_stats stats;
    struct golden_counts counts;
    BASE_CHECK_EQ(allocator_stats(session->allocator, 0, &stats), BASE_OK);
    session->subject->counts(session->allocator, &counts);
    const uint64_t reserved = (uint64_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].current;
    const uint64_t allocated = (uint64_t)stats.allocated_bytes[ALLOCATOR_STAT_ALL].current;

    // What the program has and what is only cached are all that was taken.
    BASE_CHECK_EQ(numbers->allocated + numbers->unallocated, reserved);
    BASE_CHECK(numbers->private_free <= numbers->allocated);
    BASE_CHECK_EQ(numbers->allocated - numbers->private_free, allocated);

    // What is free and what processes hold are the whole device. The logs let others hold more than
    // there is; then nothing is free.
    const uint64_t held = counts.used_bytes + session->foreign_bytes;
    BASE_CHECK_EQ(numbers->free, held < numbers->total ? numbers->total - held : 0);

    // What the process holds beyond that was not taken by the allocator. There is no context on
    // these devices, and nobody else in the process; a segment's last page may be partly unused.
    BASE_CHECK_EQ(counts.used_bytes - reserved, session->page_rest_bytes);

    uint64_t listed = 0;
    for (size_t index = 0; index < numbers->process_count; index++)
        listed += numbers->processes[index].used_bytes;
    if (numbers->process_count > 0) BASE_CHECK_EQ(listed, held);
}
