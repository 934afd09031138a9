// Scopes of user pools in the random programs that capture. A graph keeps using what it used in its
// capture, so a pool whose scope takes a capture's requests is that graph's own; other pools get
// requests of streams that never capture.
#include "workload/race_capture_program.h"

static bool is_eager(const struct workload__race_program *program, cudaStream_t stream) {
    for (int index = CAPTURE_STREAMS; index < EAGER_STREAMS; index++)
        if (program->streams[index] == stream) return true;
    return false;
}

static bool accepts(void *context, cudaStream_t stream) {
    const struct workload__race_scope *const scope = context;
    if (!scope->all_threads && !pthread_equal(scope->thread, pthread_self())) return false;
    if (scope->captured == NULL) return is_eager(scope->program, stream);
    const struct cca_pool_filter captures = cca_capture_filter(scope->captured);
    return captures.accepts(captures.context, stream);
}

void workload__race_scope_close(struct workload__race_program *program,
                                struct workload__race_scope *scope) {
    if (!scope->is_open) return;
    BASE_CHECK_EQ(cca_pool_end(program->caching, 0, scope->id), BASE_OK);
    BASE_CHECK_EQ(cca_pool_release(program->caching, 0, scope->id), BASE_OK);
    scope->is_open = false;
}

void workload__race_scope_flip(struct workload__race_actor *actor,
                               struct workload__race_scope *scope) {
    struct workload__race_program *const program = actor->program;
    if (scope->is_open) {
        workload__race_scope_close(program, scope);
        return;
    }
    if (scope->id.user == 0) {
        scope->id.user = ++program->user_pool_number;
        BASE_CHECK_EQ(cca_pool_create(program->caching, 0, scope->id, NULL), BASE_OK);
        if (workload__race_chance(actor, 0.2))
            BASE_CHECK_EQ(cca_pool_set_no_split(program->caching, 0, scope->id), BASE_OK);
    }
    scope->program = program;
    scope->thread = pthread_self();
    scope->all_threads = workload__race_chance(actor, 0.3);
    const struct cca_pool_filter filter = {.accepts = accepts, .context = scope};
    BASE_CHECK_EQ(cca_pool_begin(program->caching, 0, scope->id, &filter), BASE_OK);
    scope->is_open = true;
}

void workload__race_scope_end(struct workload__race_program *program,
                              struct workload__race_scope *scope) {
    workload__race_scope_close(program, scope);
    if (scope->id.user != 0)
        BASE_CHECK_EQ(cca_pool_destroy(program->caching, 0, scope->id), BASE_OK);
    scope->id.user = 0;
}
