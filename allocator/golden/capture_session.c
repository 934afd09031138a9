// See capture_session.h.
#include "allocator/golden/capture_session.h"

#include "allocator/golden/capture_internal.h"
#include "allocator/golden/log.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPACITY (80 * BASE_GIB)
#define WORD_LENGTH_MAX 64

static _Thread_local struct golden_capture_thread *self;

struct golden_capture_thread *golden__capture_self(void) {
    return self;
}

// Of no stream where a fault is planted.
static cudaStream_t current_stream(void *context, int device) {
    const struct golden_capture_run *const run = context;
    (void)device;
    return self == NULL || run->plant == GOLDEN_CAPTURE_NO_CURRENT ? NULL : self->current;
}

//--------------------------------------------------------------------------------------------------
// One operation.

static void answer(struct golden_capture_run *run,
                   const struct golden_capture_operation *operation) {
    run->trace_count = 0;
    if (operation->verb >= GOLDEN_CAPTURE_BEGIN && operation->verb <= GOLDEN_CAPTURE_POOL_COUNT)
        golden__capture_scope_perform(run, operation);
    else
        golden__capture_memory_perform(run, operation);
}

static void thread_body(void *context) {
    struct golden_capture_thread *const thread = context;
    self = thread;
    base_mutex_lock(&thread->mutex);
    while (!thread->is_over) {
        if (thread->operation == NULL) {
            base_condition_wait(&thread->handed, &thread->mutex);
            continue;
        }
        answer(thread->run, thread->operation);
        thread->operation = NULL;
        base_condition_broadcast(&thread->handed);
    }
    base_mutex_unlock(&thread->mutex);
}

// The caller waits, so that nothing races.
static void answer_on(struct golden_capture_thread *thread,
                      const struct golden_capture_operation *operation) {
    if (!thread->is_started) {
        base_mutex_init(&thread->mutex);
        base_condition_init(&thread->handed);
        thread->is_started = true;
        base_thread_start(&thread->thread, thread_body, thread);
    }
    base_mutex_lock(&thread->mutex);
    thread->operation = operation;
    base_condition_broadcast(&thread->handed);
    while (thread->operation != NULL)
        base_condition_wait(&thread->handed, &thread->mutex);
    base_mutex_unlock(&thread->mutex);
}

// Puts the counter of a loop where a word has %.
static void expand(const struct golden_capture_run *run,
                   const struct golden_capture_operation *operation,
                   struct golden_capture_operation *expanded, char words[][WORD_LENGTH_MAX]) {
    *expanded = *operation;
    for (size_t word = 0; run->counter != NULL && word < operation->word_count; word++) {
        const char *const mark = strchr(operation->words[word], '%');
        if (mark == NULL)
            continue;
        snprintf(words[word], WORD_LENGTH_MAX, "%.*s%s%s", (int)(mark - operation->words[word]),
                 operation->words[word], run->counter, mark + 1);
        expanded->words[word] = words[word];
    }
}

static void perform(struct golden_capture_run *run,
                    const struct golden_capture_operation *operation) {
    char words[GOLDEN_CAPTURE_WORD_COUNT_MAX][WORD_LENGTH_MAX];
    struct golden_capture_operation expanded;
    expand(run, operation, &expanded, words);
    fputs("= ", run->output);
    if (operation->thread == 0)
        answer(run, &expanded);
    else
        answer_on(&run->threads[operation->thread], &expanded);
    fputc('\n', run->output);
}

//--------------------------------------------------------------------------------------------------
// A whole script.

static enum base_status run_create(struct golden_capture_run **created, const char *config,
                                   enum golden_capture_plant plant, FILE *log) {
    const struct sim_options world = {.device_count = 1,
                                      .capacity_bytes = CAPACITY,
                                      .numerics = SIM_NUMERICS_OFF,
                                      .addresses = SIM_ADDRESSES_ASCENDING};
    BASE_CHECK_EQ(sim_configure(&world), BASE_OK);
    // As the recordings' stand-in has it.
    BASE_CHECK_EQ(sim_reading("lost-unsafe", "refused"), BASE_OK);
    struct allocator *allocator;
    const enum base_status status =
        cca_allocator_create(&(struct cca_options){.config = config}, &allocator);
    if (status != BASE_OK)
        return status;
    struct golden_capture_run *const run = calloc(1, sizeof *run);
    BASE_CHECK(run != NULL);
    run->allocator = allocator;
    run->config = config;
    run->plant = plant;
    run->log = log;
    run->silence = fopen("/dev/null", "w");
    BASE_CHECK(run->silence != NULL);
    for (size_t thread = 0; thread < GOLDEN_CAPTURE_THREAD_COUNT; thread++)
        run->threads[thread].run = run;
    BASE_CHECK_EQ(allocator_set_observer(
                      allocator,
                      &(struct allocator_observer){.event = golden__capture_trace, .context = run}),
                  BASE_OK);
    cca_set_current_stream_source(
        allocator, &(struct cca_current_stream_source){.current = current_stream, .context = run});
    self = &run->threads[0];
    *created = run;
    return BASE_OK;
}

static void thread_end(struct golden_capture_thread *thread) {
    if (!thread->is_started)
        return;
    base_mutex_lock(&thread->mutex);
    thread->is_over = true;
    base_condition_broadcast(&thread->handed);
    base_mutex_unlock(&thread->mutex);
    base_thread_join(&thread->thread);
    base_condition_deinit(&thread->handed);
    base_mutex_deinit(&thread->mutex);
}

static void run_destroy(struct golden_capture_run *run) {
    for (size_t thread = 1; thread < GOLDEN_CAPTURE_THREAD_COUNT; thread++)
        thread_end(&run->threads[thread]);
    cca_check(run->allocator);
    allocator_destroy(run->allocator);
    self = NULL;
    BASE_CHECK_EQ(sim_reading("lost-unsafe", "allowed"), BASE_OK);
    fclose(run->silence);
    for (size_t index = 0; index < run->capture_count; index++)
        free(run->captures[index]);
    for (size_t index = 0; index < run->node_count; index++)
        free(run->nodes[index].label);
    for (size_t index = 0; index < run->tensor_count; index++)
        free(run->tensors[index].name);
    for (size_t index = 0; index < run->checkpoint_count; index++)
        cca_checkpoint_destroy(run->checkpoints[index].checkpoint);
    free(run->checkpoints);
    free(run->captures);
    free(run->nodes);
    free(run->tensors);
    free(run->streams);
    free(run->events);
    free(run->spans);
    free(run->segments);
    free(run->trace);
    free(run);
}

static void run_script(struct golden_capture_run *run, const struct golden_capture_script *script,
                       size_t end);

// The child performs all of it again, up to the operation and without a word.
static void probe(struct golden_capture_run *run, const struct golden_capture_script *script,
                  size_t index) {
    if (run->is_child)
        return;
    fflush(NULL);
    const pid_t child = fork();
    BASE_CHECK(child >= 0);
    if (child == 0) {
        struct golden_capture_run *again;
        BASE_CHECK_EQ(run_create(&again, run->config, run->plant, run->silence), BASE_OK);
        again->is_child = true;
        run_script(again, script, index);
        perform(again, &script->operations[index]);
        _exit(0);
    }
    int ended = 0;
    BASE_CHECK_EQ(waitpid(child, &ended, 0), child);
    fprintf(run->output, "= %s\n",
            WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? "survives" : "crash");
}

// A loop prints its lines once, as they stand, and what its turns answer not at all.
static void run_loop(struct golden_capture_run *run, const struct golden_capture_script *script,
                     size_t loop) {
    const struct golden_capture_operation *const operations = script->operations;
    const size_t end = operations[loop].other_end;
    uint64_t first, last;
    BASE_CHECK(golden_parse_number(operations[loop].words[0], &first) &&
               golden_parse_number(operations[loop].words[1], &last));
    for (size_t index = loop; index <= end; index++)
        fprintf(run->log, "%s\n", operations[index].text);
    run->output = run->silence;
    for (uint64_t turn = first; turn <= last; turn++) {
        char counter[24];
        snprintf(counter, sizeof counter, "%" PRIu64, turn);
        run->counter = counter;
        for (size_t index = loop + 1; index < end; index++)
            perform(run, &operations[index]);
    }
    run->counter = NULL;
}

static void run_operation(struct golden_capture_run *run,
                          const struct golden_capture_script *script, size_t index) {
    const struct golden_capture_operation *const operation = &script->operations[index];
    run->output = run->is_quiet ? run->silence : run->log;
    if (operation->verb == GOLDEN_CAPTURE_LOOP) {
        run_loop(run, script, index);
    } else if (operation->verb == GOLDEN_CAPTURE_TALLY) {
        fputs("tally\n=\n", run->log);
    } else {
        fprintf(run->output, "%s\n", operation->text);
        if (operation->verb == GOLDEN_CAPTURE_QUIET)
            run->is_quiet = operation->words[0][0] == '1';
        else if (operation->is_probe)
            probe(run, script, index);
        else
            perform(run, operation);
    }
}

static void run_script(struct golden_capture_run *run, const struct golden_capture_script *script,
                       size_t end) {
    for (size_t index = 0; index < end; index++) {
        const struct golden_capture_operation *const operation = &script->operations[index];
        base_check_context("line %zu: %s", operation->line, operation->text);
        run_operation(run, script, index);
        if (operation->verb == GOLDEN_CAPTURE_LOOP)
            index = operation->other_end;
    }
    base_check_context(NULL);
}

enum base_status golden_capture_run(const struct golden_capture_script *script, const char *config,
                                    enum golden_capture_plant plant, FILE *output) {
    struct golden_capture_run *run;
    const enum base_status status = run_create(&run, config, plant, output);
    if (status != BASE_OK)
        return status;
    if (script->config[0] != '\0')
        fprintf(output, "# conf %s\n", script->config);
    run_script(run, script, script->count);
    run_destroy(run);
    return BASE_OK;
}
