// The patterns of threads: see patterns.c.
#include "workload/patterns.h"

#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Threads. A status's sentence is the thread's: it is handed over to the one that joins.

struct worker {
    const struct workload__pattern *pattern;
    int index;
    cudaStream_t stream;
    struct exchange *exchange;
    struct workload_tally tally;
    enum base_status status;
    char message[BASE_STATUS_MESSAGE_SIZE];
    struct base_thread thread;
};

static void worker_end(struct worker *worker, int which, enum base_status status) {
    const enum base_status ended =
        workload_tally_end(worker->pattern->run, &worker->tally,
                           workload__pattern_key(worker->pattern, which, worker->index));
    worker->status = status == BASE_OK ? ended : status;
    if (worker->status != BASE_OK)
        strncpy(worker->message, base_status_message(), sizeof worker->message - 1);
}

static void worker_start(struct worker *worker, const struct workload__pattern *pattern, int index,
                         void (*body)(void *argument), void *argument) {
    worker->pattern = pattern;
    worker->index = index;
    worker->stream = pattern->streams[index];
    base_thread_start(&worker->thread, body, argument);
}

static enum base_status worker_join(struct worker *worker) {
    base_thread_join(&worker->thread);
    return worker->status == BASE_OK ? BASE_OK
                                     : base_status_set(worker->status, "%s", worker->message);
}

//------------------------------------------------------------------------------------------------
// Bleeding: what a thread makes, the next one drops.

struct mail {
    struct workload_object object; // none: its maker failed
    cudaEvent_t event;             // behind its making
    bool is_there;
};

struct exchange {
    struct base_mutex mutex; // guards the rest
    struct base_condition arrived;
    struct mail *mails; // COUNT of each thread
    int count;
};

static struct mail *mail_at(struct exchange *exchange, int thread, int slot) {
    return &exchange->mails[thread * exchange->count + slot];
}

static void mail_put(struct exchange *exchange, int thread, int slot, struct mail mail) {
    base_mutex_lock(&exchange->mutex);
    mail.is_there = true;
    *mail_at(exchange, thread, slot) = mail;
    base_condition_broadcast(&exchange->arrived);
    base_mutex_unlock(&exchange->mutex);
}

static struct mail mail_take(struct exchange *exchange, int thread, int slot) {
    base_mutex_lock(&exchange->mutex);
    while (!mail_at(exchange, thread, slot)->is_there)
        base_condition_wait(&exchange->arrived, &exchange->mutex);
    const struct mail mail = *mail_at(exchange, thread, slot);
    base_mutex_unlock(&exchange->mutex);
    return mail;
}

static enum base_status mail_make(struct worker *worker, struct base_random *random,
                                  struct mail *mail) {
    enum base_status status = workload__pattern_object(worker->pattern, random, &mail->object);
    if (status == BASE_OK)
        status = workload_cuda("cudaEventCreateWithFlags",
                               cudaEventCreateWithFlags(&mail->event, cudaEventDisableTiming));
    if (status == BASE_OK)
        status = workload_cuda("cudaEventRecord", cudaEventRecord(mail->event, worker->stream));
    return status;
}

// The object is the worker's now, and its maker's stream never learns of the use.
static enum base_status mail_use(struct worker *worker, struct mail *mail, uint64_t factor) {
    enum base_status status = BASE_OK;
    if (mail->object.tensor.impl == NULL || mail->event == NULL) return BASE_OK;
    status =
        workload_cuda("cudaStreamWaitEvent", cudaStreamWaitEvent(worker->stream, mail->event, 0));
    if (status == BASE_OK) status = workload_object_add(&mail->object, (int64_t)factor % 17);
    if (status == BASE_OK) status = workload_tally_add(&worker->tally, &mail->object, factor);
    if (status == BASE_OK) status = tensor_record_stream(mail->object.tensor, worker->stream);
    return status;
}

// Each letter is put before one is waited for, so nobody waits for ever; that goes for a worker
// that failed, too: it goes on with empty ones.
static void bleed_body(void *argument) {
    struct worker *worker = argument;
    const struct workload__pattern *pattern = worker->pattern;
    struct base_random random = workload__pattern_random(pattern, "bleed", worker->index);
    tensor_set_stream(0, worker->stream);
    enum base_status status = workload_tally_begin(&pattern->run->devices[0], &worker->tally);
    for (int slot = 0; slot < worker->exchange->count; ++slot) {
        struct mail mail = {.event = NULL};
        if (status == BASE_OK) status = mail_make(worker, &random, &mail);
        mail_put(worker->exchange, (worker->index + 1) % WORKLOAD_PATTERN_THREADS, slot, mail);
        mail = mail_take(worker->exchange, worker->index, slot);
        if (status == BASE_OK) status = mail_use(worker, &mail, (uint64_t)slot + 1);
        tensor_release(&mail.object.tensor);
        if (mail.event != NULL) (void)cudaEventDestroy(mail.event);
    }
    worker_end(worker, 0, status);
}

enum base_status workload__pattern_bleed(const struct workload__pattern *pattern) {
    struct worker workers[WORKLOAD_PATTERN_THREADS] = {{.index = 0}};
    struct exchange exchange = {.count = pattern->scale.count};
    enum base_status status = BASE_OK;
    exchange.mails =
        calloc((size_t)(WORKLOAD_PATTERN_THREADS * exchange.count), sizeof *exchange.mails);
    if (exchange.mails == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for mail between threads");
    base_mutex_init(&exchange.mutex);
    base_condition_init(&exchange.arrived);
    for (int index = 0; index < WORKLOAD_PATTERN_THREADS; ++index) {
        workers[index].exchange = &exchange;
        worker_start(&workers[index], pattern, index, bleed_body, &workers[index]);
    }
    for (int index = 0; index < WORKLOAD_PATTERN_THREADS; ++index) {
        const enum base_status joined = worker_join(&workers[index]);
        if (status == BASE_OK) status = joined;
    }
    base_condition_deinit(&exchange.arrived);
    base_mutex_deinit(&exchange.mutex);
    free(exchange.mails);
    return status;
}

//------------------------------------------------------------------------------------------------
// Threads that end, and leave objects.

#define GENERATIONS 3

struct estate {
    struct worker worker;
    struct workload_object *objects; // LIVE_COUNT of them, that the thread leaves
    int live_count;
    struct estate *heir_of; // every second object of it is this thread's to use and free
};

static enum base_status inherit(struct estate *estate) {
    struct estate *const old = estate->heir_of;
    const cudaStream_t stream = estate->worker.stream;
    enum base_status status = workload_stream_wait(0, stream, 0, old->worker.stream);
    for (int index = 0; index < old->live_count && status == BASE_OK; index += 2) {
        struct workload_object *const object = &old->objects[index];
        status = workload_tally_add(&estate->worker.tally, object, (uint64_t)index + 1);
        if (status == BASE_OK) status = tensor_record_stream(object->tensor, stream);
        tensor_release(&object->tensor);
    }
    return status;
}

static void death_body(void *argument) {
    struct estate *estate = argument;
    struct worker *worker = &estate->worker;
    const struct workload__pattern *pattern = worker->pattern;
    struct base_random random = workload__pattern_random(pattern, "death", worker->index);
    tensor_set_stream(0, worker->stream);
    enum base_status status = workload_tally_begin(&pattern->run->devices[0], &worker->tally);
    if (status == BASE_OK && estate->heir_of != NULL) status = inherit(estate);
    while (estate->live_count < pattern->scale.count / 2 && status == BASE_OK) {
        status = workload__pattern_object(pattern, &random, &estate->objects[estate->live_count]);
        estate->live_count += status == BASE_OK;
    }
    worker_end(worker, 2, status);
}

static void estate_clear(struct estate *estate) {
    for (int index = 0; index < estate->live_count; ++index)
        tensor_release(&estate->objects[index].tensor);
    estate->live_count = 0;
}

// A generation frees half of what the one before left; the main thread the other half, unused.
enum base_status workload__pattern_death(const struct workload__pattern *pattern) {
    struct estate estates[GENERATIONS] = {{.live_count = 0}};
    enum base_status status = BASE_OK;
    for (int index = 0; index < GENERATIONS && status == BASE_OK; ++index) {
        struct estate *const estate = &estates[index];
        estate->heir_of = index > 0 ? &estates[index - 1] : NULL;
        estate->objects = calloc((size_t)pattern->scale.count, sizeof *estate->objects);
        if (estate->objects == NULL) {
            status = base_status_set(BASE_HOST_MEMORY, "no host memory for what a thread leaves");
            break;
        }
        worker_start(&estate->worker, pattern, index, death_body, estate);
        status = worker_join(&estate->worker);
        if (index > 0) estate_clear(&estates[index - 1]);
    }
    for (int index = 0; index < GENERATIONS; ++index) {
        estate_clear(&estates[index]);
        free(estates[index].objects);
    }
    return status;
}
