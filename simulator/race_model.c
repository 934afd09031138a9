// The sets of race_model.h.
#include "simulator/race_model.h"

#include "base/check.h"

#include <string.h>

static void unite(struct model_set *set, const struct model_set *other) {
    for (int i = 0; i < MODEL_OPERATIONS / 64; ++i)
        set->words[i] |= other->words[i];
}

static void add(struct model_set *set, int operation) {
    set->words[operation / 64] |= (uint64_t)1 << operation % 64;
}

static bool has(const struct model_set *set, int operation) {
    return (set->words[operation / 64] >> operation % 64 & 1) != 0;
}

void model_begin(struct model *model) {
    memset(model, 0, sizeof *model);
    for (int device = 0; device < MODEL_DEVICES; ++device)
        model_stream(model, MODEL_LEGACY, device);
}

int model_stream(struct model *model, enum model_kind kind, int device) {
    BASE_CHECK_LT(model->stream_count, MODEL_STREAMS);
    model->streams[model->stream_count] = (struct model_stream){.kind = kind, .device = device};
    return model->stream_count++;
}

// What the next work of STREAM comes after.
static struct model_set behind(const struct model *model, int index) {
    const struct model_stream *stream = &model->streams[index];
    struct model_set set = model->host;
    unite(&set, &stream->tip);
    unite(&set, &model->fences[stream->device]);
    for (int i = 0; i < model->stream_count; ++i) {
        const struct model_stream *other = &model->streams[i];
        if (other->device == stream->device &&
            ((stream->kind == MODEL_LEGACY && other->kind == MODEL_BLOCKING) ||
             (stream->kind == MODEL_BLOCKING && other->kind == MODEL_LEGACY)))
            unite(&set, &other->tip);
    }
    return set;
}

static int operation_add(struct model *model, const struct model_set *before) {
    BASE_CHECK_LT(model->operation_count, MODEL_OPERATIONS);
    model->before[model->operation_count] = *before;
    return model->operation_count++;
}

int model_operation(struct model *model, int stream) {
    const struct model_set set = behind(model, stream);
    const int operation = operation_add(model, &set);
    model->streams[stream].tip = set;
    add(&model->streams[stream].tip, operation);
    return operation;
}

int model_fence(struct model *model) {
    struct model_set set = model->host;
    for (int i = 0; i < model->stream_count; ++i)
        unite(&set, &model->streams[i].tip);
    for (int device = 0; device < MODEL_DEVICES; ++device)
        unite(&set, &model->fences[device]);
    const int operation = operation_add(model, &set);
    add(&set, operation);
    for (int device = 0; device < MODEL_DEVICES; ++device)
        model->fences[device] = set;
    return operation;
}

void model_record(struct model *model, int event, int stream) {
    model->events[event] = behind(model, stream);
    model->streams[stream].tip = model->events[event];
    model->recorded[event] = true;
}

void model_event_new(struct model *model, int event) { model->recorded[event] = false; }

void model_wait(struct model *model, int stream, int event) {
    if (!model->recorded[event])
        return;
    struct model_set set = behind(model, stream);
    unite(&set, &model->events[event]);
    model->streams[stream].tip = set;
}

// A blocking stream's synchronise is about its own operations, the legacy stream's about those of
// the blocking streams as well.
void model_sync_stream(struct model *model, int stream) {
    if (model->streams[stream].kind == MODEL_LEGACY)
        model->host = behind(model, stream);
    else
        unite(&model->host, &model->streams[stream].tip);
}

void model_sync_event(struct model *model, int event) {
    if (model->recorded[event])
        unite(&model->host, &model->events[event]);
}

void model_sync_device(struct model *model, int device) {
    unite(&model->host, &model->fences[device]);
    for (int i = 0; i < model->stream_count; ++i)
        if (model->streams[i].device == device)
            unite(&model->host, &model->streams[i].tip);
}

void model_sync_operation(struct model *model, int operation) {
    unite(&model->host, &model->before[operation]);
    add(&model->host, operation);
}

bool model_is_before(const struct model *model, int first, int second) {
    return has(&model->before[second], first);
}

bool model_host_knows(const struct model *model, int operation) {
    return has(&model->host, operation);
}
