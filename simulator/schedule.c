// The eager schedule: a queue of streams, first ready first served. A stream that was forced or
// held after it was offered stays in the queue; whoever takes it out looks at its state again.
#include "simulator/schedule.h"

#include <stddef.h>

static struct sim__stream *first_offered;
static struct sim__stream **last_link = &first_offered;

void sim__schedule_offer(struct sim__stream *stream) {
    if (stream->offered)
        return;
    stream->offered = true;
    stream->next_offered = NULL;
    *last_link = stream;
    last_link = &stream->next_offered;
}

struct sim__stream *sim__schedule_next(void) {
    struct sim__stream *stream;
    while ((stream = first_offered) != NULL) {
        first_offered = stream->next_offered;
        if (first_offered == NULL)
            last_link = &first_offered;
        stream->offered = false;
        if (!stream->held)
            return stream;
    }
    return NULL;
}

void sim__schedule_clear(void) {
    first_offered = NULL;
    last_link = &first_offered;
}
