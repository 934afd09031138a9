// See subject.h.
#include "bench/subject.h"

#include "bench/ideal_list.h"

#include "allocator/async.h"
#include "allocator/cca.h"
#include "allocator/direct.h"

#define HISTORY_ENTRY_COUNT 100000 // what PyTorch's documents advise
#define WARM_UP_COUNT 32768        // twice the table of `mixed` settles a cache

static enum base_status create_no_list(struct allocator **allocator) {
    *allocator = bench_no_list_create();
    return BASE_OK;
}
static enum base_status create_ideal_list(struct allocator **allocator) {
    *allocator = bench_ideal_list_create();
    return BASE_OK;
}
static enum base_status create_mutex_list(struct allocator **allocator) {
    *allocator = bench_mutex_list_create();
    return BASE_OK;
}
static enum base_status create_caching(struct allocator **allocator) {
    return cca_allocator_create(&(struct cca_options){.config = ""}, allocator);
}

static enum base_status create_async(struct allocator **allocator) {
    return async_allocator_create(&(struct async_options){0}, allocator);
}

static enum base_status create_history(enum cca_history_context context,
                                       struct allocator **allocator) {
    struct allocator *made;
    enum base_status status = create_caching(&made);
    if (status != BASE_OK) return status;
    status =
        cca_record_history(made, &(struct cca_history_options){.enabled = CCA_HISTORY_ALL,
                                                               .context = context,
                                                               .max_entries = HISTORY_ENTRY_COUNT});
    if (status == BASE_OK)
        *allocator = made;
    else
        allocator_destroy(made);
    return status;
}
static enum base_status create_history_bare(struct allocator **allocator) {
    return create_history(CCA_CONTEXT_NEVER, allocator);
}
static enum base_status create_history_stacks(struct allocator **allocator) {
    return create_history(CCA_CONTEXT_ALL, allocator);
}

const struct bench_subject bench_subject_no_list = {"no_list", create_no_list, true, WARM_UP_COUNT};
const struct bench_subject bench_subject_ideal_list = {"ideal_list", create_ideal_list, true,
                                                       WARM_UP_COUNT};
const struct bench_subject bench_subject_mutex_list = {"mutex_list", create_mutex_list, true,
                                                       WARM_UP_COUNT};
const struct bench_subject bench_subject_caching = {"caching", create_caching, true, WARM_UP_COUNT};
const struct bench_subject bench_subject_history = {"history", create_history_bare, true,
                                                    WARM_UP_COUNT};
const struct bench_subject bench_subject_history_stacks = {"history_stacks", create_history_stacks,
                                                           true, WARM_UP_COUNT};
// What has no cache needs a first touch only.
const struct bench_subject bench_subject_direct = {"direct", direct_allocator_create, false, 64};
// Its cache is the driver's, which does not tell when it goes to the device.
const struct bench_subject bench_subject_async = {"async", create_async, false, WARM_UP_COUNT};
