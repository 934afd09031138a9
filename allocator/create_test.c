// One text, any allocator.
#include "allocator/create.h"

#include "allocator/testing.h"

static void check_name(const char *text, const char *name) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(allocator_create(text, 1.0, &allocator), BASE_OK);
    BASE_CHECK(strcmp(allocator->operations->name, name) == 0);
    allocator_destroy(allocator);
}

static void the_text_names_the_allocator(void) {
    check_name("", "caching");
    check_name(NULL, "caching");
    check_name("max_split_size_mb:128", "caching");
    check_name("x_allocator:caching", "caching");
    check_name("x_allocator:caching,max_split_size_mb:128", "caching");
    check_name("x_allocator:direct", "direct");
    check_name("x_allocator:async", "async");
    check_name("x_allocator:async,x_release_threshold:64MiB", "async");
    check_name("backend:cudaMallocAsync", "async");
    check_name("max_split_size_mb:128, backend:cudaMallocAsync,garbage_collection_threshold:0.5",
               "async");
    check_name("backend:native", "caching");
    BASE_CHECK(allocator_text_is_async("x_allocator:async"));
    BASE_CHECK(allocator_text_is_async("max_split_size_mb:64,backend:cudaMallocAsync"));
    BASE_CHECK(!allocator_text_is_async("x_allocator:caching,backend:cudaMallocAsync"));
    BASE_CHECK(!allocator_text_is_async("x_allocator:direct"));
    BASE_CHECK(allocator_text_is_caching(""));
    BASE_CHECK(allocator_text_is_caching("x_allocator:caching,max_split_size_mb:64"));
    BASE_CHECK(!allocator_text_is_caching("backend:cudaMallocAsync"));
    BASE_CHECK(!allocator_text_is_caching("x_allocator:direct"));
}

static void what_is_no_allocator_is_refused(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(allocator_create("x_allocator:buddy", 1.0, &allocator), BASE_INVALID_CONFIG);
    BASE_CHECK(testing_message_has("caching, direct, async or environment"));
    BASE_CHECK_EQ(allocator_create("x_allocator:direct,max_split_size_mb:64", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(allocator_create("x_allocator:async,max_split_size_mb:64", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(allocator_create("x_allocator:async,x_release_threshold:much", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK(testing_message_has("x_release_threshold:much"));
    // Under either back end the whole text is read.
    BASE_CHECK_EQ(allocator_create("backend:cudaMallocAsync,max_split_size_mb:1", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK(testing_message_has("max_split_size_mb"));
    BASE_CHECK_EQ(allocator_create("backend:cudaMallocAsync,backend:native", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK(testing_message_has("both back ends are named"));
    BASE_CHECK_EQ(allocator_create("backend:native,backend:cudaMallocAsync", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(allocator_create("backend:buddy", 1.0, &allocator), BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(allocator_create("max_split_size_mb:1", 1.0, &allocator), BASE_INVALID_CONFIG);
    BASE_CHECK(allocator == NULL);
}

static void a_fraction_below_one_limits(void) {
    struct allocator *allocator = NULL;
    void *pointer;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(allocator_create("", 0.5, &allocator), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 600 * BASE_MIB, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("512.00 MiB allowed"));
    allocator_destroy(allocator);
}

int main(void) {
    the_text_names_the_allocator();
    what_is_no_allocator_is_refused();
    a_fraction_below_one_limits();
    return 0;
}
