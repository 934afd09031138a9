// A run of a case from start to end: the devices, two host threads that take turns, and what is
// left.
//
// Starting the devices anew costs more than a run, so a case's memory is made once, and only filled
// anew for each run: the race checker, which starts with the run, takes memory that was there
// before as written. Memory that nobody wrote is allocated behind that start, and holds a value of
// its own, so that it does not pass for what an earlier run left there.
#include "simulator/litmus/player.h"

#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNWRITTEN_BYTE 0xd5
#define HELD_PREFIX    "held:"

// --- Memory that the case declares ---

static void fill(struct litmus_player *player, int index) {
    const struct litmus_buffer *buffer = &player->current->buffers[index];
    unsigned char *bytes = player->addresses[index];
    if (buffer->memory == LITMUS_MEMORY_DEVICE)
        bytes = sim_device_bytes(bytes);
    memset(bytes, buffer->initial == LITMUS_UNDEFINED ? UNWRITTEN_BYTE : buffer->initial,
           (size_t)buffer->size);
}

static void declare(struct litmus_player *player, int index) {
    const struct litmus_buffer *buffer = &player->current->buffers[index];
    void *pointer = player->pageable[index];
    if (buffer->memory == LITMUS_MEMORY_DEVICE) {
        BASE_CHECK_EQ(cudaSetDevice(buffer->device), cudaSuccess);
        BASE_CHECK_EQ(cudaMalloc(&pointer, (size_t)buffer->size), cudaSuccess);
    } else if (buffer->memory != LITMUS_MEMORY_PAGEABLE) {
        BASE_CHECK_EQ(cudaHostAlloc(&pointer, (size_t)buffer->size, cudaHostAllocDefault),
                      cudaSuccess);
    }
    player->addresses[index] = pointer;
    player->live[index] = true;
}

static void memory_free(struct litmus_player *player, int index) {
    BASE_CHECK_EQ(player->current->buffers[index].memory == LITMUS_MEMORY_DEVICE
                      ? cudaFree(player->addresses[index])
                      : cudaFreeHost(player->addresses[index]),
                  cudaSuccess);
    player->live[index] = false;
}

// Memory that is declared and that nobody wrote.
static bool is_unwritten(const struct litmus_buffer *buffer) {
    return !buffer->allocated && buffer->initial == LITMUS_UNDEFINED &&
           buffer->memory != LITMUS_MEMORY_PAGEABLE;
}

// --- The reading that a case is judged under ---

static enum base_status reading_set(struct litmus_player *player,
                                    const struct litmus_expectation *expectation) {
    player->default_reading = NULL;
    if (expectation->reading == NULL)
        return BASE_OK;
    player->default_reading = sim_reading_value(expectation->reading);
    return sim_reading(expectation->reading, expectation->reading_value);
}

void litmus_player_unload(struct litmus_player *player) {
    if (player->default_reading != NULL)
        BASE_CHECK_EQ(sim_reading(player->expectation->reading, player->default_reading), BASE_OK);
    player->default_reading = NULL;
    player->expectation = NULL;
    player->current = NULL;
}

enum base_status litmus_player_load(struct litmus_player *player,
                                    const struct litmus_case *current,
                                    const struct litmus_expectation *expectation) {
    litmus_player_unload(player);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = LITMUS_DEVICE_COUNT,
                                                      .capacity_bytes = 256 * BASE_MIB,
                                                      .checked = player->checked}),
                  BASE_OK);
    player->current = current;
    player->expectation = expectation;
    player->stale = false;
    memset(player->addresses, 0, sizeof player->addresses);
    memset(player->live, 0, sizeof player->live);
    for (int i = 0; i < current->buffer_count; ++i)
        if (!current->buffers[i].allocated)
            declare(player, i);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    void *timelines = NULL;
    if (current->timeline_count > 0)
        BASE_CHECK_EQ(cudaHostAlloc(&timelines,
                                    (size_t)current->timeline_count * sizeof *player->timelines,
                                    cudaHostAllocDefault),
                      cudaSuccess);
    player->timelines = timelines;
    return reading_set(player, expectation);
}

// --- Before and after the calls of a run ---

static void objects_create(struct litmus_player *player) {
    const struct litmus_case *current = player->current;
    for (int i = 0; i < current->stream_count; ++i) {
        const enum litmus_stream_kind kind = current->streams[i].kind;
        BASE_CHECK_EQ(cudaSetDevice(current->streams[i].device), cudaSuccess);
        player->streams[i] = kind == LITMUS_STREAM_LEGACY ? cudaStreamLegacy : cudaStreamPerThread;
        player->stream_destroyed[i] =
            kind == LITMUS_STREAM_LEGACY || kind == LITMUS_STREAM_PER_THREAD;
        if (!player->stream_destroyed[i])
            BASE_CHECK_EQ(cudaStreamCreateWithFlags(&player->streams[i],
                                                    kind == LITMUS_STREAM_NONBLOCKING
                                                        ? cudaStreamNonBlocking
                                                        : cudaStreamDefault),
                          cudaSuccess);
        if (player->held)
            sim_stream_hold(player->streams[i], true);
    }
    for (int i = 0; i < current->event_count; ++i) {
        BASE_CHECK_EQ(cudaSetDevice(current->events[i].device), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreate(&player->events[i]), cudaSuccess);
        player->event_destroyed[i] = false;
    }
    for (int i = 0; i < current->buffer_count; ++i) {
        if (player->races && is_unwritten(&current->buffers[i])) {
            memory_free(player, i);
            declare(player, i);
        }
        if (!current->buffers[i].allocated)
            fill(player, i);
        else
            player->addresses[i] = NULL;
    }
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    memset(player->blocks, 0, sizeof player->blocks);
    memset(player->graphs, 0, sizeof player->graphs);
    memset(player->execs, 0, sizeof player->execs);
    memset(player->nodes, 0, sizeof player->nodes);
    memset(player->operation_captures, 0, sizeof player->operation_captures);
    memset(player->graph_captures, 0, sizeof player->graph_captures);
    memset(player->exec_captures, 0, sizeof player->exec_captures);
    for (int i = 0; i < current->timeline_count; ++i)
        player->timelines[i] = 0;
    memset(player->device, 0, sizeof player->device);
}

static void objects_destroy(struct litmus_player *player) {
    const struct litmus_case *current = player->current;
    for (int i = 0; i < current->stream_count; ++i)
        if (!player->stream_destroyed[i])
            BASE_CHECK_EQ(cudaStreamDestroy(player->streams[i]), cudaSuccess);
    for (int i = 0; i < current->event_count; ++i)
        if (!player->event_destroyed[i])
            BASE_CHECK_EQ(cudaEventDestroy(player->events[i]), cudaSuccess);
    litmus__graphs_destroy(player);
    for (int i = 0; i < current->buffer_count; ++i) {
        if (player->live[i] && current->buffers[i].allocated)
            memory_free(player, i);
    }
    (void)cudaGetLastError();
}

// Waits for all that is pending, in every device; false if that ended in an error.
static bool machine_settle(void) {
    for (int device = LITMUS_DEVICE_COUNT - 1; device >= 0; --device)
        if (cudaSetDevice(device) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
            return false;
    return true;
}

static void collect(const struct litmus_player *player, struct litmus_result *result) {
    const struct litmus_case *current = player->current;
    for (int i = 0; i < current->buffer_count; ++i) {
        result->live[i] = player->live[i];
        if (!player->live[i])
            continue;
        const void *bytes = player->addresses[i];
        if (current->buffers[i].memory == LITMUS_MEMORY_DEVICE)
            bytes = sim_device_bytes(bytes);
        if (bytes == NULL) {
            result->live[i] = false; // the simulator lost it: no outcome that names it matches
            continue;
        }
        memcpy(result->contents[i], bytes, (size_t)current->buffers[i].size);
    }
}

// --- Held streams ---

void litmus__advance_held(struct litmus_player *player) {
    if (!player->held || player->current->stream_count == 0)
        return;
    const struct litmus_case *current = player->current;
    while (base_random_chance(&player->random, 0.5)) {
        const uint64_t index = base_random_below(&player->random, (uint64_t)current->stream_count);
        const enum litmus_stream_kind kind = current->streams[index].kind;
        if (kind == LITMUS_STREAM_LEGACY || kind == LITMUS_STREAM_PER_THREAD) {
            int device;
            if (cudaGetDevice(&device) != cudaSuccess ||
                cudaSetDevice(current->streams[index].device) != cudaSuccess)
                return; // a device that is dead runs nothing
            (void)sim_stream_run(player->streams[index], 1);
            (void)cudaSetDevice(device);
        } else if (!player->stream_destroyed[index]) {
            (void)sim_stream_run(player->streams[index], 1);
        }
    }
}

// --- Host threads ---

// What an earlier run may have left otherwise.
static void thread_begin(const struct litmus_player *player, int thread) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    (void)cudaSetDevice(player->device[thread]);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

static void turn_change(struct litmus_turn *turn, bool second) {
    turn->second = second;
    BASE_CHECK_EQ(pthread_cond_broadcast(&turn->changed), 0);
}

static void second_thread(void *argument) {
    struct litmus_player *player = argument;
    struct litmus_turn *turn = &player->turn;
    BASE_CHECK_EQ(pthread_mutex_lock(&turn->lock), 0);
    for (;;) {
        while (!turn->second && !turn->quit)
            BASE_CHECK_EQ(pthread_cond_wait(&turn->changed, &turn->lock), 0);
        if (turn->quit)
            break;
        if (turn->begins)
            thread_begin(player, 1);
        turn->begins = false;
        for (int i = turn->first; i < turn->last; ++i)
            litmus__perform(player, player->order[i]);
        turn_change(turn, false);
    }
    BASE_CHECK_EQ(pthread_mutex_unlock(&turn->lock), 0);
}

static void second_thread_perform(struct litmus_turn *turn, int first, int last) {
    BASE_CHECK_EQ(pthread_mutex_lock(&turn->lock), 0);
    turn->first = first;
    turn->last = last;
    turn_change(turn, true);
    while (turn->second)
        BASE_CHECK_EQ(pthread_cond_wait(&turn->changed, &turn->lock), 0);
    BASE_CHECK_EQ(pthread_mutex_unlock(&turn->lock), 0);
}

static int thread_at(const struct litmus_player *player, int position) {
    return player->current->operations[player->order[position]].thread;
}

static void perform_all(struct litmus_player *player) {
    const int count = player->current->operation_count;
    player->turn.begins = true;
    thread_begin(player, 0);
    for (int first = 0, last; first < count; first = last) {
        const int thread = thread_at(player, first);
        for (last = first + 1; last < count && thread_at(player, last) == thread; ++last) {
        }
        if (thread == 1)
            second_thread_perform(&player->turn, first, last);
        for (int i = first; thread == 0 && i < last; ++i)
            litmus__perform(player, player->order[i]);
    }
}

// Whether the hand-off that an "await" needs has been given, among the first COUNT of the order.
static bool may_submit(const struct litmus_player *player, int index, int count) {
    const struct litmus_operation *operations = player->current->operations;
    if (operations[index].verb != LITMUS_VERB_AWAIT)
        return true;
    for (int i = 0; i < count; ++i)
        if (operations[player->order[i]].verb == LITMUS_VERB_SIGNAL &&
            strcmp(operations[player->order[i]].word, operations[index].word) == 0)
            return true;
    return false;
}

// Any order that keeps each thread's own and the hand-offs.
static void order_interleaved(struct litmus_player *player, uint64_t seed) {
    struct base_random random = base_random_init(seed, "litmus interleaving");
    const struct litmus_case *current = player->current;
    int next[LITMUS_THREAD_COUNT] = {0};
    for (int count = 0; count < current->operation_count; ++count) {
        int ready[LITMUS_THREAD_COUNT], ready_count = 0;
        for (int thread = 0; thread < LITMUS_THREAD_COUNT; ++thread) {
            while (next[thread] < current->operation_count &&
                   current->operations[next[thread]].thread != thread)
                ++next[thread];
            if (next[thread] < current->operation_count &&
                may_submit(player, next[thread], count))
                ready[ready_count++] = thread;
        }
        BASE_CHECK(ready_count > 0);
        const int chosen = ready[base_random_below(&random, (uint64_t)ready_count)];
        player->order[count] = next[chosen]++;
    }
}

static void order_choose(struct litmus_player *player, uint64_t interleaving_seed) {
    for (int i = 0; i < player->current->operation_count; ++i)
        player->order[i] = i;
    if (interleaving_seed != 0)
        order_interleaved(player, interleaving_seed);
}

// --- A run ---

static enum base_status schedule_set(struct litmus_player *player, const char *schedule) {
    player->held = strncmp(schedule, HELD_PREFIX, strlen(HELD_PREFIX)) == 0;
    if (!player->held)
        return sim_schedule(schedule);
    char *end;
    errno = 0;
    const unsigned long long seed = strtoull(schedule + strlen(HELD_PREFIX), &end, 10);
    if (end == schedule + strlen(HELD_PREFIX) || *end != '\0' || errno != 0)
        return base_status_set(BASE_INVALID_VALUE, "schedule \"%s\": want held:SEED", schedule);
    player->random = base_random_init(seed, "litmus held");
    return sim_schedule("eager");
}

// Checking ends with the calls of the case: how the run is cleared away is no part of it.
static void races_begin(void) {
    const struct sim_race_options options = {.quiet = true};
    BASE_CHECK_EQ(sim_race_start(&options), BASE_OK);
}

static void races_end(const struct litmus_player *player, struct litmus_result *result) {
    sim_race_label(NULL);
    sim_race_stop();
    litmus__races_collect(player, result);
}

enum base_status litmus_play(struct litmus_player *player, const struct litmus_run *run,
                             struct litmus_result *result) {
    const enum base_status status = schedule_set(player, run->schedule);
    if (status != BASE_OK)
        return status;
    if (player->stale) {
        const struct litmus_case *current = player->current;
        const struct litmus_expectation *expectation = player->expectation;
        BASE_CHECK_EQ(litmus_player_load(player, current, expectation), BASE_OK);
        BASE_CHECK_EQ(schedule_set(player, run->schedule), BASE_OK);
    }
    *result = (struct litmus_result){.never_succeeded = -1, .races_judged = run->races};
    player->result = result;
    player->races = run->races;
    if (player->races)
        races_begin();
    objects_create(player);
    order_choose(player, run->interleaving_seed);
    perform_all(player);
    if (player->races)
        races_end(player, result);
    const bool ended = litmus__captures_end(player);
    if (!machine_settle())
        result->illegal_address = true;
    player->stale = result->illegal_address || !ended;
    if (player->stale)
        return BASE_OK;
    collect(player, result);
    objects_destroy(player);
    return BASE_OK;
}

struct litmus_player *litmus_player_create(bool checked) {
    struct litmus_player *player = calloc(1, sizeof *player);
    BASE_CHECK(player != NULL);
    player->checked = checked;
    BASE_CHECK_EQ(pthread_mutex_init(&player->turn.lock, NULL), 0);
    BASE_CHECK_EQ(pthread_cond_init(&player->turn.changed, NULL), 0);
    base_thread_start(&player->turn.thread, second_thread, player);
    return player;
}

void litmus_player_destroy(struct litmus_player *player) {
    litmus_player_unload(player);
    BASE_CHECK_EQ(pthread_mutex_lock(&player->turn.lock), 0);
    player->turn.quit = true;
    turn_change(&player->turn, false);
    BASE_CHECK_EQ(pthread_mutex_unlock(&player->turn.lock), 0);
    base_thread_join(&player->turn.thread);
    BASE_CHECK_EQ(pthread_mutex_destroy(&player->turn.lock), 0);
    BASE_CHECK_EQ(pthread_cond_destroy(&player->turn.changed), 0);
    free(player);
}
