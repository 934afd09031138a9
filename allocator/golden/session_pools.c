// The operations on private pools.
#include "allocator/golden/log.h"
#include "allocator/golden/session_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// "P" is user pool P, "A.B" the id (A, B).
static enum base_status word_pool(const struct golden_request *request, size_t word,
                                  struct allocator_pool_id *id) {
    char *const dot = strchr(request->words[word], '.');
    if (dot == NULL) {
        id->capture = 0;
        return golden__word_number(request, word, "pool", UINT64_MAX, &id->user);
    }
    *dot = '\0';
    const bool is_pair = golden_parse_number(request->words[word], &id->capture) &&
                         golden_parse_number(dot + 1, &id->user);
    return is_pair ? BASE_OK : golden__malformed(request, "the pool must be P or A.B");
}

static enum base_status word_flag(const struct golden_request *request, size_t word, bool *flag) {
    uint64_t number = 0;
    enum base_status status = BASE_OK;
    if (word < request->word_count)
        status = golden__word_number(request, word, "switch", 1, &number);
    *flag = number == 1;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Filters. The context of the one that accepts one stream is that stream.

static bool accepts_all(void *context, cudaStream_t stream) {
    (void)context;
    (void)stream;
    return true;
}
static bool accepts_none(void *context, cudaStream_t stream) {
    (void)context;
    (void)stream;
    return false;
}
static bool accepts_one(void *context, cudaStream_t stream) { return (void *)stream == context; }

static enum base_status word_filter(const struct golden_request *request, size_t word,
                                    struct cca_pool_filter *filter) {
    *filter = (struct cca_pool_filter){.accepts = accepts_all};
    if (strcmp(request->words[word], "all") == 0) return BASE_OK;
    filter->accepts = accepts_none;
    if (strcmp(request->words[word], "none") == 0) return BASE_OK;
    uint64_t stream;
    const enum base_status status = golden__word_stream(request, word, &stream);
    if (status != BASE_OK) return status;
    *filter = (struct cca_pool_filter){.accepts = accepts_one,
                                       .context = (void *)request->session->streams[stream]};
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Actions.

static enum base_status create(const struct golden_request *request, struct allocator_pool_id id) {
    const struct golden_pools *const pools = request->session->subject->pools;
    struct allocator *const allocator = request->session->allocator;
    bool use_on_oom, no_split, raw;
    enum base_status status = word_flag(request, 3, &use_on_oom);
    if (status == BASE_OK) status = word_flag(request, 4, &no_split);
    if (status == BASE_OK) status = word_flag(request, 5, &raw);
    if (status != BASE_OK) return status;
    status = pools->create(allocator, id, raw);
    if (status == BASE_OK && use_on_oom) status = pools->set_use_on_oom(allocator, id, true);
    if (status == BASE_OK && no_split) status = pools->set_no_split(allocator, id);
    return golden__print_status(request, status);
}

static enum base_status begin(const struct golden_request *request, struct allocator_pool_id id) {
    struct cca_pool_filter filter;
    const enum base_status status = word_filter(request, 3, &filter);
    if (status != BASE_OK) return status;
    return golden__print_status(
        request, request->session->subject->pools->begin(request->session->allocator, id, &filter));
}

static enum base_status count(const struct golden_request *request, struct allocator_pool_id id) {
    int64_t users;
    const enum base_status status =
        request->session->subject->pools->count(request->session->allocator, id, &users);
    if (status != BASE_OK) return golden__print_status(request, status);
    fprintf(request->outcome, "%" PRId64, users);
    return BASE_OK;
}

static enum base_status use_on_oom(const struct golden_request *request,
                                   struct allocator_pool_id id) {
    bool on;
    const enum base_status status = word_flag(request, 3, &on);
    if (status != BASE_OK) return status;
    return golden__print_status(request, request->session->subject->pools->set_use_on_oom(
                                             request->session->allocator, id, on));
}

static enum base_status end(const struct golden_request *request, struct allocator_pool_id id) {
    return golden__print_status(
        request, request->session->subject->pools->end(request->session->allocator, id));
}
static enum base_status release(const struct golden_request *request, struct allocator_pool_id id) {
    return golden__print_status(
        request, request->session->subject->pools->release(request->session->allocator, id));
}
static enum base_status empty(const struct golden_request *request, struct allocator_pool_id id) {
    return golden__print_status(
        request, request->session->subject->pools->empty(request->session->allocator, id));
}
static enum base_status destroy(const struct golden_request *request, struct allocator_pool_id id) {
    return golden__print_status(
        request, request->session->subject->pools->destroy(request->session->allocator, id));
}

static const struct action {
    const char *name;
    enum base_status (*perform)(const struct golden_request *request, struct allocator_pool_id id);
    size_t word_count_min, word_count_max; // "pool" included
} actions[] = {
    {"create", create, 3, 6},         {"begin", begin, 4, 4}, {"end", end, 3, 3},
    {"release", release, 3, 3},       {"empty", empty, 3, 3}, {"destroy", destroy, 3, 3},
    {"use_on_oom", use_on_oom, 4, 4}, {"count", count, 3, 3},
};

enum base_status golden__perform_pool(struct golden_request *request) {
    struct allocator_pool_id id;
    if (request->session->subject->pools == NULL)
        return base_status_set(BASE_UNSUPPORTED, "needs private pools");
    for (size_t index = 0; index < sizeof actions / sizeof actions[0]; index++) {
        const struct action *const action = &actions[index];
        if (strcmp(request->words[1], action->name) != 0) continue;
        if (request->word_count < action->word_count_min ||
            request->word_count > action->word_count_max)
            return golden__malformed(request, "this action has other words");
        const enum base_status status = word_pool(request, 2, &id);
        return status != BASE_OK ? status : action->perform(request, id);
    }
    return golden__malformed(request, "no action on a pool has this name");
}

//--------------------------------------------------------------------------------------------------
// Queries.

enum base_status golden__pool_snapshot(const struct golden_request *request,
                                       struct allocator_snapshot *snapshot) {
    const struct golden_pools *const pools = request->session->subject->pools;
    struct allocator_pool_id id;
    if (pools == NULL) return base_status_set(BASE_UNSUPPORTED, "needs private pools");
    const enum base_status status = word_pool(request, 1, &id);
    return status != BASE_OK ? status : pools->snapshot(request->session->allocator, id, snapshot);
}

enum base_status golden__pool_stats(const struct golden_session *session,
                                    struct cca_pool_stats **pools, size_t *pool_count) {
    *pools = NULL;
    *pool_count = 0;
    if (session->subject->pools == NULL || session->options.no_caching) return BASE_OK;
    return session->subject->pools->stats(session->allocator, pools, pool_count);
}
