// See subject.h.
#include "bench/subject.h"

#include "bench/ideal_list.h"

#include "allocator/cca.h"
#include "allocator/direct.h"

#define WARM_UP_COUNT 32768 // twice the table of `mixed` settles a cache

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

const struct bench_subject bench_subject_no_list = {"no_list", create_no_list, true, WARM_UP_COUNT};
const struct bench_subject bench_subject_ideal_list = {"ideal_list", create_ideal_list, true,
                                                       WARM_UP_COUNT};
const struct bench_subject bench_subject_mutex_list = {"mutex_list", create_mutex_list, true,
                                                       WARM_UP_COUNT};
const struct bench_subject bench_subject_caching = {"caching", create_caching, true, WARM_UP_COUNT};
// What has no cache needs a first touch only.
const struct bench_subject bench_subject_direct = {"direct", direct_allocator_create, false, 64};
