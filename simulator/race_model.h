// For tests: what comes before what, kept as plainly as can be: for each operation the set of all
// that come before it, by the rules of CUDA's order and nothing else.
#ifndef TIDEMARK_SIMULATOR_RACE_MODEL_H
#define TIDEMARK_SIMULATOR_RACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_OPERATIONS 2048
#define MODEL_STREAMS 512
#define MODEL_EVENTS 64
#define MODEL_DEVICES 2

struct model_set {
    uint64_t words[MODEL_OPERATIONS / 64];
};

enum model_kind { MODEL_NONBLOCKING, MODEL_BLOCKING, MODEL_LEGACY };

struct model_stream {
    enum model_kind kind;
    int device;
    struct model_set tip; // its last operation and all before that
};

struct model {
    int operation_count, stream_count;
    struct model_set before[MODEL_OPERATIONS];
    struct model_stream streams[MODEL_STREAMS]; // those of MODEL_DEVICES legacy streams first
    struct model_set events[MODEL_EVENTS];
    bool recorded[MODEL_EVENTS];
    struct model_set host, fences[MODEL_DEVICES];
};

void model_begin(struct model *model);
int model_stream(struct model *model, enum model_kind kind, int device);
// An operation of STREAM, by its number: from 0.
int model_operation(struct model *model, int stream);
// Between all earlier and all later work of both devices.
int model_fence(struct model *model);
void model_record(struct model *model, int event, int stream);
void model_event_new(struct model *model, int event);
void model_wait(struct model *model, int stream, int event);
// The host waits.
void model_sync_stream(struct model *model, int stream);
void model_sync_event(struct model *model, int event);
void model_sync_device(struct model *model, int device);
void model_sync_operation(struct model *model, int operation);

bool model_is_before(const struct model *model, int first, int second);
bool model_host_knows(const struct model *model, int operation);

#endif
