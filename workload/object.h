// Objects of programs that are about memory more than about numbers: a tensor of any size, of which
// a few elements all over it hold one value, and a sum on the device of what was read of them. To
// write and read an object of a gigabyte costs no more than one of a page.
//
//     status = workload_object_make(&place, 3 << 20, 7, &object);       // on the current stream
//     status = workload_object_add(&object, 2);
//     status = workload_tally_add(&tally, &object, id);                 // nobody waits
//     tensor_release(&object.tensor);
//     status = workload_tally_end(run, &tally, key);                    // compares and checks
//
// The host knows what every object ought to hold, so a tally that comes out otherwise says that
// somebody wrote to memory that was another's. BASE_CHECK_FAILED.
#ifndef TIDEMARK_WORKLOAD_OBJECT_H
#define TIDEMARK_WORKLOAD_OBJECT_H

#include "workload/run.h"

struct workload_object {
    struct tensor tensor; // of int32, one dimension
    int64_t value;        // of every element that is touched
};

// BYTES is rounded up to an element. On the current stream of the place, as all below.
enum base_status workload_object_make(const struct tensor_place *place, size_t bytes, int64_t value,
                                      struct workload_object *object) BASE_MUST_USE;
enum base_status workload_object_add(struct workload_object *object, int64_t amount) BASE_MUST_USE;

// Sums on one device and one stream.
struct workload_tally {
    struct tensor sum;
    uint64_t expected;
};
enum base_status workload_tally_begin(const struct tensor_place *place,
                                      struct workload_tally *tally) BASE_MUST_USE;
// The object's elements, FACTOR times.
enum base_status workload_tally_add(struct workload_tally *tally,
                                    const struct workload_object *object,
                                    uint64_t factor) BASE_MUST_USE;
// Waits, compares, adds the sum to the checksum under KEY. The tally is empty afterwards, whatever
// comes of it; one that was never begun is nothing.
enum base_status workload_tally_end(struct workload_run *run, struct workload_tally *tally,
                                    uint64_t key) BASE_MUST_USE;

#endif
