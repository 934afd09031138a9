// See trace/fuzz_one.h.
#include "trace/fuzz_one.h"

#include "trace/snapshot_reader.h"
#include "trace/tmt.h"

#include "base/check.h"
#include "base/size.h"

#include <string.h>

#define MEMORY_LIMIT_BYTES (32 * BASE_MIB)

static enum base_status read(struct trace_input *input, struct trace **trace) {
    const struct trace_read_options options = {.memory_limit_bytes = MEMORY_LIMIT_BYTES};
    enum base_status status = trace_input_fill(input, TRACE_TMT_MAGIC_SIZE);
    if (status != BASE_OK) return status;
    size_t size = (size_t)(input->end - input->next);
    if (size >= TRACE_TMT_MAGIC_SIZE &&
        memcmp(input->next, TRACE_TMT_MAGIC, TRACE_TMT_MAGIC_SIZE) == 0)
        return trace__read_tmt(input, &options, trace);
    return trace__read_snapshot(input, &options, trace);
}

enum base_status trace__fuzz_one(const void *bytes, size_t size) {
    struct trace_input input;
    struct trace *trace = NULL;
    enum base_status status = trace_input_open_memory(&input, "fuzz", bytes, size);
    if (status == BASE_OK) {
        status = read(&input, &trace);
        trace_input_close(&input);
    }
    if (status == BASE_OK) {
        BASE_CHECK_EQ(trace__validate(trace), BASE_OK);
    } else {
        BASE_CHECK(trace == NULL);
        BASE_CHECK(status == BASE_FORMAT || status == BASE_LIMIT || status == BASE_UNSUPPORTED);
        BASE_CHECK(base_status_message()[0] != 0 && strchr(base_status_message(), '\n') == NULL);
    }
    trace_destroy(trace);
    return status;
}
