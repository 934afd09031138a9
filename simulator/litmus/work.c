// What the kernels and host functions of a case do, and what of it the race checker is told.
#include "simulator/litmus/player.h"

// Where a part of a step's bytes can be touched now; NULL if its memory is gone.
static unsigned char *touchable(const struct litmus_player *player,
                                const struct litmus_bytes *bytes, unsigned char *address) {
    if (player->current->buffers[bytes->buffer].memory == LITMUS_MEMORY_DEVICE)
        return sim_device_bytes(address);
    return player->live[bytes->buffer] ? address : NULL;
}

static void step_run(const struct litmus_player *player, const struct litmus_step *step,
                     unsigned char *const addresses[3]) {
    if (step->kind == LITMUS_STEP_READ)
        return;
    unsigned char *to = touchable(player, &step->to, addresses[0]), *from[2] = {0};
    const int source_count = litmus_step_source_count(step->kind);
    for (int i = 0; i < source_count; ++i)
        from[i] = touchable(player, &step->from[i], addresses[1 + i]);
    if (to == NULL || (source_count > 0 && from[0] == NULL) ||
        (source_count > 1 && from[1] == NULL))
        return;
    // All is read before anything is written: source and destination may be the same bytes.
    unsigned char values[LITMUS_BYTE_COUNT_MAX];
    const int count = litmus_bytes_count(&step->to);
    for (int i = 0; i < count; ++i) {
        int value = step->value;
        for (int k = 0; k < source_count; ++k)
            value += from[k][litmus_bytes_at(&step->from[k], i)];
        if (step->kind == LITMUS_STEP_ATOMIC)
            value += to[litmus_bytes_at(&step->to, i)];
        values[i] = (unsigned char)value;
    }
    for (int i = 0; i < count; ++i)
        to[litmus_bytes_at(&step->to, i)] = values[i];
}

static void work_run(const void *argument) {
    const struct litmus_work *work = argument;
    for (int i = 0; i < work->effect->step_count; ++i)
        step_run(work->player, &work->effect->steps[i], work->addresses[i]);
}

void litmus__work_run_on_host(void *argument) { work_run(argument); }

void litmus__work_prepare(const struct litmus_call *call, struct litmus_work *work) {
    const struct litmus_player *player = call->player;
    const struct litmus_effect *effect = &call->operation->effect;
    *work = (struct litmus_work){.player = player, .effect = effect};
    for (int i = 0; i < effect->step_count; ++i) {
        const struct litmus_step *step = &effect->steps[i];
        work->addresses[i][0] = player->addresses[step->to.buffer];
        work->addresses[i][1] = player->addresses[step->from[0].buffer];
        work->addresses[i][2] = player->addresses[step->from[1].buffer];
    }
}

// --- Accesses ---

static size_t access_add(const struct litmus_player *player, const struct litmus_bytes *bytes,
                         enum sim_access_mode mode, struct sim_access *accesses, size_t count) {
    const unsigned char *address = player->addresses[bytes->buffer];
    if (litmus_bytes_count(bytes) == 0 || address == NULL)
        return count;
    accesses[count] = (struct sim_access){
        .mode = mode,
        .pointer = address + bytes->offset,
        .size = (size_t)bytes->length,
        .rows = (size_t)bytes->rows,
        .pitch = (size_t)bytes->stride,
        .block = bytes->block > 0 ? player->blocks[bytes->block - 1] : 0,
    };
    return count + 1;
}

size_t litmus__accesses(const struct litmus_call *call,
                        struct sim_access accesses[LITMUS_ACCESS_COUNT_MAX]) {
    const struct litmus_effect *effect = &call->operation->effect;
    size_t count = 0;
    for (int i = 0; i < effect->step_count; ++i) {
        const struct litmus_step *step = &effect->steps[i];
        const int sources = litmus_step_source_count(step->kind);
        for (int k = 0; k < sources; ++k)
            count = access_add(call->player, &step->from[k], SIM_ACCESS_READ, accesses, count);
        if (step->kind == LITMUS_STEP_ATOMIC)
            count = access_add(call->player, &step->to, SIM_ACCESS_ATOMIC, accesses, count);
        else if (step->kind != LITMUS_STEP_READ)
            count = access_add(call->player, &step->to, SIM_ACCESS_WRITE, accesses, count);
    }
    return count;
}

void litmus__launch_prepare(const struct litmus_call *call, struct litmus_launch *launch) {
    litmus__work_prepare(call, &launch->work);
    launch->kernel = (struct sim_kernel){
        .name = call->operation->label,
        .body = work_run,
        .argument = &launch->work,
        .argument_size = sizeof launch->work,
    };
    if (call->player->races) {
        launch->kernel.accesses = launch->accesses;
        launch->kernel.access_count = litmus__accesses(call, launch->accesses);
    }
}
