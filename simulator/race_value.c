// Values that streams write for the host to see (cuStreamWriteValue32, 64): who sees that one has
// come knows that its stream has come so far.
#include "simulator/race_value.h"

#include "simulator/call.h"
#include "simulator/race_unwritten.h"

#include <stdlib.h>
#include <string.h>

// Of each address so many writes are kept that the host does not know of; of the older ones it
// learns by a later one.
#define WRITES_MAX 256

struct write {
    uint64_t value;
    struct sim__order_point point;
};

struct sign {
    const void *address;
    struct write *writes;
    uint32_t count, size;
};

static struct sign *signs;
static uint32_t sign_count, sign_size;

static struct sign *sign_find(const void *address) {
    for (uint32_t i = 0; i < sign_count; ++i)
        if (signs[i].address == address)
            return &signs[i];
    return NULL;
}

static struct sign *sign_make(const void *address) {
    if (sign_count == sign_size) {
        sign_size = sign_size == 0 ? 8 : 2 * sign_size;
        signs = realloc(signs, sign_size * sizeof *signs);
        if (signs == NULL)
            sim__host_limit("out of host memory for the race checker");
    }
    signs[sign_count] = (struct sign){.address = address};
    return &signs[sign_count++];
}

static void write_drop(struct sign *sign, uint32_t at) {
    sim__order_release(&sign->writes[at].point);
    --sign->count;
    memmove(&sign->writes[at], &sign->writes[at + 1],
            (sign->count - at) * sizeof *sign->writes);
}

// Those that the host knows to be over say nothing new.
static void settled_drop(struct sign *sign) {
    for (uint32_t i = sign->count; i-- > 0;)
        if (sim__order_is_settled(sign->writes[i].point.column, sign->writes[i].point.sequence))
            write_drop(sign, i);
    if (sign->count >= WRITES_MAX)
        write_drop(sign, 0);
}

void sim__race_value_written(const void *address, uint64_t value, struct sim__order_point point) {
    struct sign *sign = sign_find(address);
    if (sign == NULL)
        sign = sign_make(address);
    if (sign->count == sign->size) {
        settled_drop(sign);
        if (sign->count == sign->size) {
            sign->size = sign->size == 0 ? 4 : 2 * sign->size;
            sign->writes = realloc(sign->writes, sign->size * sizeof *sign->writes);
            if (sign->writes == NULL)
                sim__host_limit("out of host memory for the race checker");
        }
    }
    sign->writes[sign->count++] = (struct write){value, point};
}

static void value_seen(const void *pointer, uint64_t value) {
    const struct sign *sign = sign_find(pointer);
    for (uint32_t i = 0; sign != NULL && i < sign->count; ++i) {
        if (sign->writes[i].value < value)
            continue;
        struct sim__order_point point = sim__order_point_copy(&sign->writes[i].point);
        sim__order_know(&point);
        return;
    }
}

void sim_value_seen(const void *pointer, uint64_t value) {
    base_mutex_lock(&sim__state.lock);
    if (sim__race_is_on()) {
        sim__call_note(SIM__CALL_OTHER);
        value_seen(pointer, value);
        sim__unwritten_settle(false);
    }
    base_mutex_unlock(&sim__state.lock);
}

void sim__race_values_clear(void) {
    for (uint32_t i = 0; i < sign_count; ++i) {
        while (signs[i].count > 0)
            write_drop(&signs[i], signs[i].count - 1);
        free(signs[i].writes);
    }
    free(signs);
    signs = NULL;
    sign_count = sign_size = 0;
}
