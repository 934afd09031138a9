// Calls that only the caching allocator has, on allocators of other kinds: each is refused with a
// sentence that says what there is not, and touches nothing. Which calls there are is read from the
// headers.
#include "allocator/captures.h"
#include "allocator/checkpoint.h"
#include "allocator/create.h"
#include "allocator/pools.h"
#include "allocator/settings.h"
#include "allocator/testing_state.h"
#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

// The head of an allocator's own memory must not be taken for anything else.
static const struct allocator_pool_id id = {.user = 1};
static struct cca_checkpoint *checkpoint_of_another;

#define CALL(name, ...)                                                                            \
    static enum base_status call_##name(struct allocator *allocator) {                             \
        return name(allocator, __VA_ARGS__);                                                       \
    }
CALL(cca_capture_begin, 0, &(struct cca_capture){.id = 1})
CALL(cca_capture_end, 0, 1)
CALL(cca_set_current_stream_source, NULL)
CALL(cca_set_config, "")
CALL(cca_set_memory_fraction, 0, 0.5)
CALL(cca_memory_fraction, 0, &(double){0})
CALL(cca_round_size, 1000, &(size_t){0}, &(size_t){0})
CALL(cca_set_warning_observer, NULL)
CALL(cca_malloc_at, 0, 1000, NULL, NULL, &(void *){NULL})
CALL(cca_set_stream_reserve_class, 0, NULL, "class")
CALL(cca_set_reserve_class_default, "class", 0.5)
CALL(cca_enable_peer_access, 0, 0)
CALL(cca_expandable_segments, 0, &(struct cca_expandable_segment *){NULL}, &(size_t){0})
CALL(cca_pending_frees, 0, &(struct cca_pending_frees){0})
CALL(cca_record_history, &(struct cca_history_options){.enabled = CCA_HISTORY_ALL})
CALL(cca_checkpoint_get, 0, id, &(struct cca_checkpoint *){NULL})
CALL(cca_checkpoint_set, checkpoint_of_another, &(struct cca_restored){0})
CALL(cca_checkpoint_compare_live, 0, id, NULL, 0, &(bool){false})
CALL(cca_pool_create, 0, id, NULL)
CALL(cca_pool_release, 0, id)
CALL(cca_pool_count, 0, id, &(int64_t){0})
CALL(cca_pool_begin, 0, id, NULL)
CALL(cca_pool_end, 0, id)
CALL(cca_pool_set_use_on_oom, 0, id, true)
CALL(cca_pool_set_no_split, 0, id)
CALL(cca_pool_empty_cache, 0, id)
CALL(cca_pool_destroy, 0, id)
CALL(cca_pool_stats, 0, &(struct cca_pool_stats *){NULL}, &(size_t){0})
CALL(cca_pool_snapshot, id, &(struct allocator_snapshot){0})
CALL(cca_settings, &(struct cca_settings){.text = NULL})
CALL(cca_add_free_memory_callback, &(struct cca_free_memory_callback){0})
CALL(cca_remove_free_memory_callback, &(struct cca_free_memory_callback){0})
CALL(cca_set_process_source, NULL)
CALL(cca_set_out_of_memory_observer, NULL)
CALL(cca_set_rejection_observer, NULL)

#define ENTRY(name)                                                                                \
    { #name, call_##name }
static const struct {
    const char *name;
    enum base_status (*call)(struct allocator *allocator);
} calls[] = {
    ENTRY(cca_capture_begin),
    ENTRY(cca_capture_end),
    ENTRY(cca_set_current_stream_source),
    ENTRY(cca_set_config),
    ENTRY(cca_set_memory_fraction),
    ENTRY(cca_memory_fraction),
    ENTRY(cca_round_size),
    ENTRY(cca_set_warning_observer),
    ENTRY(cca_malloc_at),
    ENTRY(cca_set_stream_reserve_class),
    ENTRY(cca_set_reserve_class_default),
    ENTRY(cca_enable_peer_access),
    ENTRY(cca_expandable_segments),
    ENTRY(cca_pending_frees),
    ENTRY(cca_record_history),
    ENTRY(cca_checkpoint_get),
    ENTRY(cca_checkpoint_set),
    ENTRY(cca_checkpoint_compare_live),
    ENTRY(cca_pool_create),
    ENTRY(cca_pool_release),
    ENTRY(cca_pool_count),
    ENTRY(cca_pool_begin),
    ENTRY(cca_pool_end),
    ENTRY(cca_pool_set_use_on_oom),
    ENTRY(cca_pool_set_no_split),
    ENTRY(cca_pool_empty_cache),
    ENTRY(cca_pool_destroy),
    ENTRY(cca_pool_stats),
    ENTRY(cca_pool_snapshot),
    ENTRY(cca_settings),
    ENTRY(cca_add_free_memory_callback),
    ENTRY(cca_remove_free_memory_callback),
    ENTRY(cca_set_process_source),
    ENTRY(cca_set_out_of_memory_observer),
    ENTRY(cca_set_rejection_observer),
};
#define CALL_COUNT (sizeof calls / sizeof calls[0])

static void every_call_is_refused(const char *text, const char *kind) {
    struct allocator *allocator;
    BASE_CHECK_EQ(allocator_create(text, 1, &allocator), BASE_OK);
    void *const block = testing_malloc(allocator, 1000, NULL);
    for (size_t index = 0; index < CALL_COUNT; ++index) {
        base_check_context("%s of \"%s\"", calls[index].name, text);
        (void)base_status_set(BASE_OK, "-");
        BASE_CHECK_EQ(calls[index].call(allocator), BASE_UNSUPPORTED);
        testing_message_is_a_sentence();
        BASE_CHECK(testing_message_has(kind));
    }
    base_check_context(NULL);
    testing_free(allocator, block);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

//------------------------------------------------------------------------------------------------
// The headers.

static bool is_in_table(const char *name, size_t length) {
    for (size_t index = 0; index < CALL_COUNT; ++index)
        if (strlen(calls[index].name) == length && strncmp(calls[index].name, name, length) == 0)
            return true;
    return length == strlen("cca_check") && strncmp(name, "cca_check", length) == 0;
}

// Returns how many calls the header declares that take an allocator.
static size_t every_call_of_a_header_is_in_the_table(const char *header) {
    char path[256], *text;
    size_t size, found = 0;
    (void)snprintf(path, sizeof path, "allocator/%s", header);
    BASE_CHECK_EQ(base_file_read(path, BASE_MIB, &text, &size), BASE_OK);
    static const char first[] = "(struct allocator *allocator";
    for (const char *at = text; (at = strstr(at, first)) != NULL; ++at) {
        const char *start = at;
        while (start > text && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
            --start;
        if (strncmp(start, "cca_", 4) != 0) continue;
        base_check_context("%.*s of %s", (int)(at - start), start, header);
        BASE_CHECK(is_in_table(start, (size_t)(at - start)));
        ++found;
    }
    base_check_context(NULL);
    free(text);
    return found;
}

int main(void) {
    static const char *const headers[] = {"captures.h", "cca.h",      "checkpoint.h",
                                          "pools.h",    "settings.h", "shortage.h"};
    size_t found = 0;
    for (size_t index = 0; index < sizeof headers / sizeof headers[0]; ++index)
        found += every_call_of_a_header_is_in_the_table(headers[index]);
    BASE_CHECK_EQ(found, CALL_COUNT + 1); // and cca_check
    struct allocator *const allocator = testing_create("", BASE_GIB);
    BASE_CHECK_EQ(cca_pool_create(allocator, 0, id, NULL), BASE_OK);
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 0, id, &checkpoint_of_another), BASE_OK);
    every_call_is_refused("x_allocator:direct", "the direct allocator has no ");
    every_call_is_refused("x_allocator:async", "the async allocator has no ");
    cca_checkpoint_destroy(checkpoint_of_another);
    allocator_destroy(allocator);
    return 0;
}
