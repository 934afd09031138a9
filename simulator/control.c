// The machine as a whole: its options, from the program or the environment, its start and restart;
// and what belongs to each host thread.
#include "base/size.h"
#include "simulator/blas_status.h"
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/driver.h"
#include "simulator/fault.h"
#include "simulator/graph_memory.h"
#include "simulator/order.h"
#include "simulator/pool.h"
#include "simulator/race.h"
#include "simulator/profile.h"
#include "simulator/race_report.h"
#include "simulator/reading.h"
#include "simulator/replay.h"
#include "simulator/schedule.h"
#include "simulator/stream.h"
#include "simulator/transcript.h"
#include "simulator/user_object.h"
#include "simulator/virtual_memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// With numerics on twice the capacity must fit into the process's addresses.
#define CAPACITY_MAX_NUMERICS ((uint64_t)8 << 40)
#define CAPACITY_MAX ((uint64_t)1 << 54)
#define ADDRESS_SPACE_MAX ((uint64_t)1 << 47)

#define STREAM_TAG 0x53
#define EVENT_TAG 0x65

struct sim__state sim__state = {
    .lock = BASE_MUTEX_INITIALIZER,
    .operation_done = BASE_CONDITION_INITIALIZER,
    .streams = {.tag = STREAM_TAG, .slot_size = sizeof(struct sim__stream)},
    .events = {.tag = EVENT_TAG, .slot_size = sizeof(struct sim__event)},
};

// --- Threads ---

// A thread that finds another number than its own begins anew.
_Atomic uint64_t sim__epoch = 1;
_Thread_local struct sim__thread sim__thread_state;
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void thread_end(void *unused) {
    (void)unused;
    base_mutex_lock(&sim__state.lock);
    if (sim__thread_state.epoch == atomic_load(&sim__epoch))
        sim__streams_leave(&sim__thread_state);
    sim__race_leave();
    base_mutex_unlock(&sim__state.lock);
}

static void thread_key_make(void) { BASE_CHECK_EQ(pthread_key_create(&thread_key, thread_end), 0); }

void sim__thread_begin(uint64_t now) {
    static _Atomic uint64_t thread_count;
    sim__thread_state = (struct sim__thread){
        .epoch = now,
        .number = atomic_fetch_add_explicit(&thread_count, 1, memory_order_relaxed) + 1,
        .work_depth = sim__thread_state.work_depth};
    pthread_once(&thread_key_once, thread_key_make);
    // Any value but NULL makes the destructor run.
    BASE_CHECK_EQ(pthread_setspecific(thread_key, &sim__thread_state), 0);
}

// --- Options ---

static enum base_status options_check(const struct sim_options *options) {
    if (options->device_count < 1 || options->device_count > SIM_DEVICE_COUNT_MAX)
        return base_status_set(BASE_INVALID_VALUE, "%d simulated devices: want 1 to %d",
                               options->device_count, SIM_DEVICE_COUNT_MAX);
    if (options->numerics != SIM_NUMERICS_ON && options->numerics != SIM_NUMERICS_OFF)
        return base_status_set(BASE_INVALID_VALUE,
                               "numerics %d: want SIM_NUMERICS_ON or SIM_NUMERICS_OFF",
                               (int)options->numerics);
    if (options->addresses != SIM_ADDRESSES_ASCENDING && options->addresses != SIM_ADDRESSES_REUSED)
        return base_status_set(BASE_INVALID_VALUE,
                               "addresses %d: want SIM_ADDRESSES_ASCENDING or SIM_ADDRESSES_REUSED",
                               (int)options->addresses);
    const uint64_t most = options->numerics == SIM_NUMERICS_ON
                              ? CAPACITY_MAX_NUMERICS / (uint64_t)options->device_count
                              : CAPACITY_MAX;
    char given[BASE_SIZE_TEXT], least_text[BASE_SIZE_TEXT], most_text[BASE_SIZE_TEXT];
    if (options->capacity_bytes < SIM_PAGE_BYTES || options->capacity_bytes > most)
        return base_status_set(
            BASE_INVALID_VALUE, "simulated capacity %s: want %s to %s%s",
            base_size_format(options->capacity_bytes, given),
            base_size_format(SIM_PAGE_BYTES, least_text), base_size_format(most, most_text),
            options->numerics == SIM_NUMERICS_ON ? " (more with numerics off)" : "");
    if (options->address_bytes < SIM_PAGE_BYTES || options->address_bytes > ADDRESS_SPACE_MAX)
        return base_status_set(BASE_INVALID_VALUE, "simulated address space %s: want %s to %s",
                               base_size_format(options->address_bytes, given),
                               base_size_format(SIM_PAGE_BYTES, least_text),
                               base_size_format(ADDRESS_SPACE_MAX, most_text));
    if (options->context_bytes > options->capacity_bytes)
        return base_status_set(BASE_INVALID_VALUE, "a simulated context of %s: want at most %s",
                               base_size_format(options->context_bytes, given),
                               base_size_format(options->capacity_bytes, most_text));
    return BASE_OK;
}

// Sets *choice to the index of the word that the variable holds; leaves it if the variable is not
// set.
static enum base_status choice_from_environment(const char *variable, const char *const words[2],
                                                int *choice) {
    const char *text = getenv(variable);
    if (text == NULL)
        return BASE_OK;
    for (int i = 0; i < 2; ++i) {
        if (strcmp(text, words[i]) == 0) {
            *choice = i;
            return BASE_OK;
        }
    }
    return base_status_set(BASE_INVALID_VALUE, "%s=%s: want %s or %s", variable, text, words[0],
                           words[1]);
}

static enum base_status devices_from_environment(int *count) {
    const char *text = getenv("TIDEMARK_SIM_DEVICES");
    if (text == NULL)
        return BASE_OK;
    char *end;
    const long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > SIM_DEVICE_COUNT_MAX)
        return base_status_set(BASE_INVALID_VALUE,
                               "TIDEMARK_SIM_DEVICES=%s: want a number from 1 to %d", text,
                               SIM_DEVICE_COUNT_MAX);
    *count = (int)value;
    return BASE_OK;
}

// Sets *bytes; leaves it if the variable is not set.
static enum base_status size_from_environment(const char *variable, uint64_t *bytes) {
    const char *text = getenv(variable);
    const enum base_status status = text == NULL ? BASE_OK : base_size_parse(text, bytes);
    return status == BASE_OK ? BASE_OK : base_status_prefix(status, "%s", variable);
}

static enum base_status checked_from_environment(bool *checked) {
    static const char *const words[2] = {"0", "1"};
    int choice = 0;
    const enum base_status status = choice_from_environment("TIDEMARK_SIM_CHECKED", words, &choice);
    *checked = choice == 1;
    return status;
}

static enum base_status options_from_environment(struct sim_options *options) {
    static const char *const numerics_words[2] = {
        [SIM_NUMERICS_ON] = "on", [SIM_NUMERICS_OFF] = "off"};
    static const char *const addresses_words[2] = {
        [SIM_ADDRESSES_ASCENDING] = "ascending", [SIM_ADDRESSES_REUSED] = "reused"};
    int numerics = SIM_NUMERICS_ON, addresses = SIM_ADDRESSES_ASCENDING;
    enum base_status status = sim__profile_from_environment();
    *options = (struct sim_options){.device_count = 1,
                                    .capacity_bytes = sim__profile()->capacity_bytes,
                                    .address_bytes = ADDRESS_SPACE_MAX};
    if (status == BASE_OK)
        status = devices_from_environment(&options->device_count);
    if (status == BASE_OK)
        status = size_from_environment("TIDEMARK_SIM_CAPACITY", &options->capacity_bytes);
    if (status == BASE_OK)
        status = size_from_environment("TIDEMARK_SIM_ADDRESS_SPACE", &options->address_bytes);
    if (status == BASE_OK)
        status = size_from_environment("TIDEMARK_SIM_CONTEXT", &options->context_bytes);
    if (status == BASE_OK)
        status = checked_from_environment(&options->checked);
    if (status == BASE_OK)
        status = choice_from_environment("TIDEMARK_SIM_NUMERICS", numerics_words, &numerics);
    if (status == BASE_OK)
        status = choice_from_environment("TIDEMARK_SIM_ADDRESSES", addresses_words, &addresses);
    options->numerics = (enum sim_numerics)numerics;
    options->addresses = (enum sim_addresses)addresses;
    return status;
}

// --- Start and restart ---

static void machine_stop(void) {
    atomic_fetch_add_explicit(&sim__epoch, 1,
                              memory_order_release); // pairs with the load in sim__thread
    if (!sim__state.ready)
        return;
    sim__transcript_machine_stops();
    sim__race_reset();
    sim__captures_clear();
    sim__graph_memory_clear();
    sim__pools_clear(); // pools know streams
    sim__order_clear();
    sim__streams_clear();
    sim__launches_clear();
    sim__user_objects_clear();
    sim__graphs_clear(); // pending launches are gone
    sim__handle_clear(&sim__state.events);
    sim__blas_clear();
    sim__virtual_memory_clear();
    sim__memory_clear();
    sim__host_memory_clear();
    for (int i = 0; i < sim__state.options.device_count; ++i)
        sim__addresses_stop(&sim__state.devices[i]);
    sim__physical_stop();
    sim__checked_stop();
    sim__state.ready = false;
}

// What the environment says besides options. It is read once, before the first start.
static enum base_status settings_from_environment(void) {
    static bool is_read;
    if (is_read)
        return BASE_OK;
    enum base_status status = sim__schedule_from_environment();
    if (status == BASE_OK)
        status = sim__readings_from_environment();
    if (status == BASE_OK)
        status = sim__faults_from_environment();
    if (status == BASE_OK)
        status = sim__serialize_from_environment();
    if (status == BASE_OK)
        status = sim__races_from_environment();
    is_read = status == BASE_OK;
    return status;
}

static void machine_start(const struct sim_options *options) {
    sim__state.options = *options;
    sim__state.now_ns = sim__state.stall_ns = sim__state.stream_count = 0;
    memset(sim__state.devices, 0, sizeof sim__state.devices);
    sim__state.address_used_bytes = 0;
    sim__transcript_machine_starts();
    sim__schedule->reset();
    for (int i = 0; i < options->device_count; ++i)
        sim__state.devices[i].index = i;
    sim__physical_start();
    sim__virtual_memory_start();
    sim__contexts_start();
    sim__pools_start();
    sim__checked_start();
    for (int i = 0; i < options->device_count; ++i) {
        sim__addresses_start(&sim__state.devices[i]);
        sim__stream_start_device(&sim__state.devices[i]);
    }
    sim__call_reset();
    sim__cost_reset();
    sim__faults_begin();
    sim__state.ready = true;
}

void sim__start_locked(void) {
    if (sim__state.ready)
        return;
    struct sim_options options;
    enum base_status status = options_from_environment(&options);
    if (status == BASE_OK)
        status = options_check(&options);
    if (status == BASE_OK)
        status = settings_from_environment();
    if (status != BASE_OK) {
        fprintf(stderr, "%s\n", base_status_message());
        fflush(NULL);
        _exit(base_status_exit_code(status));
    }
    machine_start(&options);
}

static enum base_status configure_locked(const struct sim_options *options) {
    struct sim_options defaults, chosen = *options;
    enum base_status status = options_from_environment(&defaults);
    if (status != BASE_OK)
        return status;
    if (chosen.device_count == 0)
        chosen.device_count = defaults.device_count;
    if (chosen.capacity_bytes == 0)
        chosen.capacity_bytes = defaults.capacity_bytes;
    if (chosen.address_bytes == 0)
        chosen.address_bytes = defaults.address_bytes;
    if (chosen.context_bytes == 0)
        chosen.context_bytes = defaults.context_bytes;
    chosen.checked |= defaults.checked;
    status = options_check(&chosen);
    if (status == BASE_OK)
        status = settings_from_environment();
    if (status != BASE_OK)
        return status;
    machine_stop();
    machine_start(&chosen);
    return BASE_OK;
}

enum base_status sim_configure(const struct sim_options *options) {
    base_mutex_lock(&sim__state.lock);
    const enum base_status status = configure_locked(options);
    base_mutex_unlock(&sim__state.lock);
    return status;
}

void sim_reset(void) {
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    const struct sim_options options = sim__state.options;
    machine_stop();
    machine_start(&options);
    base_mutex_unlock(&sim__state.lock);
}

// Not exit(): a handler could make a CUDA call, and this thread holds the lock.
void sim__host_limit(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("simulator: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(base_status_exit_code(BASE_ENVIRONMENT));
}
