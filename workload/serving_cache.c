// See serving_cache.h.
#include "workload/serving_cache.h"

#include <stdlib.h>

static const struct tensor none;

static void assign(struct tensor *self, struct tensor value) {
    tensor_release(self);
    *self = value;
}

//------------------------------------------------------------------------------------------------
// The pool

static enum base_status pool_create(struct serving_cache *cache) {
    const struct serving_cache_form *form = &cache->form;
    const int64_t sizes[] = {form->page_count, form->page_tokens * form->row};
    enum base_status status = BASE_OK;
    for (int i = 0; i < 2 * form->layers && status == BASE_OK; ++i)
        status = tensor_zeros(&cache->place, form->type, sizes, 2, &cache->pools[i]);
    return status;
}

enum base_status serving_cache_create(enum serving_cache_kind kind,
                                      const struct tensor_place *place,
                                      const struct serving_cache_form *form,
                                      struct serving_cache **result) {
    struct serving_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a cache");
    *cache = (struct serving_cache){.kind = kind, .form = *form, .place = *place};
    cache->pools = calloc(2 * (size_t)form->layers, sizeof *cache->pools);
    enum base_status status = BASE_OK;
    if (cache->pools == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory for a cache");
    if (status == BASE_OK && kind == SERVING_PAGED) status = pool_create(cache);
    if (status == BASE_OK)
        *result = cache;
    else
        serving_cache_destroy(cache);
    return status;
}

void serving_cache_destroy(struct serving_cache *cache) {
    if (cache == NULL) return;
    for (int i = 0; cache->pools != NULL && i < 2 * cache->form.layers; ++i)
        tensor_release(&cache->pools[i]);
    free(cache->pools);
    free(cache);
}

//------------------------------------------------------------------------------------------------
// A step begins

static enum base_status sequence_begin(struct serving_cache *cache,
                                       struct serving_sequence *sequence) {
    const int64_t sizes[] = {2 * cache->form.layers, sequence->length_max, cache->form.row};
    if (cache->kind == SERVING_CONCATENATED && sequence->parts == NULL) {
        sequence->parts = calloc((size_t)sizes[0], sizeof *sequence->parts);
        if (sequence->parts == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no host memory for a cache");
    }
    if (cache->kind == SERVING_PREALLOCATED && sequence->buffer.impl == NULL)
        return tensor_empty(&cache->place, cache->form.type, sizes, 3, TENSOR_CONTIGUOUS,
                            &sequence->buffer);
    return BASE_OK;
}

static int64_t pages_of(const struct serving_cache *cache,
                        const struct serving_sequence *sequence) {
    const int64_t page = cache->form.page_tokens;
    return (sequence->length + sequence->rows + page - 1) / page;
}

// Page tables of the whole batch in one tensor of the device, each sequence's a view of it.
static enum base_status tables_make(struct serving_cache *cache,
                                    struct serving_sequence *const *sequences, int count) {
    int64_t total = 0, at = 0;
    struct tensor whole = none;
    for (int i = 0; i < count; ++i)
        total += pages_of(cache, sequences[i]);
    int64_t *numbers = calloc((size_t)total + 1, sizeof *numbers);
    if (numbers == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld pages", (long long)total);
    for (int i = 0; i < count; ++i)
        for (int64_t page = 0; page < pages_of(cache, sequences[i]); ++page)
            numbers[at++] = sequences[i]->pages[page];
    enum base_status status =
        tensor_from_bytes(&cache->place, TENSOR_INT64, &total, 1, numbers, &whole);
    free(numbers);
    at = 0;
    for (int i = 0; i < count && status == BASE_OK; ++i) {
        const int64_t pages = pages_of(cache, sequences[i]);
        struct tensor table;
        status = tensor_narrow(whole, 0, at, pages, &table);
        if (status == BASE_OK) assign(&sequences[i]->table, table);
        at += pages;
    }
    tensor_release(&whole);
    return status;
}

// Where the new rows go, counted over the whole pool: a tensor of the host, since an index is read
// there.
static enum base_status slots_make(const struct serving_cache *cache,
                                   const struct tensor_place *host,
                                   struct serving_sequence *sequence) {
    struct tensor slots;
    const enum base_status status =
        tensor_empty(host, TENSOR_INT64, &sequence->rows, 1, TENSOR_CONTIGUOUS, &slots);
    if (status != BASE_OK) return status;
    int64_t *numbers = tensor_data(slots);
    for (int64_t i = 0; i < sequence->rows; ++i) {
        const int64_t place = sequence->length + i, page = cache->form.page_tokens;
        numbers[i] = sequence->pages[place / page] * page + place % page;
    }
    assign(&sequence->slots, slots);
    return BASE_OK;
}

enum base_status serving_cache_begin(struct serving_cache *cache, const struct tensor_place *host,
                                     struct serving_sequence *const *sequences, int count) {
    enum base_status status = BASE_OK;
    for (int i = 0; i < count && status == BASE_OK; ++i) {
        status = sequence_begin(cache, sequences[i]);
        if (status == BASE_OK && cache->kind == SERVING_PAGED)
            status = slots_make(cache, host, sequences[i]);
    }
    if (status == BASE_OK && cache->kind == SERVING_PAGED)
        status = tables_make(cache, sequences, count);
    return status;
}

//------------------------------------------------------------------------------------------------
// Rows come

static enum base_status append_by_cat(struct tensor *part, struct tensor rows, struct tensor *all) {
    struct tensor longer;
    const bool is_first = part->impl == NULL;
    const struct tensor both[] = {is_first ? rows : *part, rows};
    const enum base_status status = tensor_cat(both, is_first ? 1 : 2, 0, &longer);
    if (status != BASE_OK) return status;
    assign(part, longer);
    *all = tensor_retain(longer);
    return BASE_OK;
}

static enum base_status append_to_buffer(const struct serving_sequence *sequence, int part,
                                         struct tensor rows, struct tensor *all) {
    struct tensor whole, end = none;
    enum base_status status = tensor_select(sequence->buffer, 0, part, &whole);
    if (status != BASE_OK) return status;
    status = tensor_narrow(whole, 0, sequence->length, sequence->rows, &end);
    if (status == BASE_OK) status = tensor_copy_(end, rows);
    if (status == BASE_OK)
        status = tensor_narrow(whole, 0, 0, sequence->length + sequence->rows, all);
    tensor_release(&end);
    tensor_release(&whole);
    return status;
}

static enum base_status append_to_pages(const struct serving_cache *cache,
                                        const struct serving_sequence *sequence, int part,
                                        struct tensor rows, struct tensor *all) {
    const struct serving_cache_form *form = &cache->form;
    const struct tensor pool = cache->pools[part];
    struct tensor tokens, pages = none, gathered = none;
    enum base_status status =
        tensor_view(pool, (int64_t[]){form->page_count * form->page_tokens, form->row}, 2, &tokens);
    if (status != BASE_OK) return status;
    status = tensor_index_put_(tokens, sequence->slots, tensor_operand_tensor(rows), false);
    tensor_release(&tokens);
    if (status == BASE_OK) status = tensor_embedding(pool, sequence->table, &pages);
    if (status == BASE_OK)
        status = tensor_view(pages,
                             (int64_t[]){pages_of(cache, sequence) * form->page_tokens, form->row},
                             2, &gathered);
    tensor_release(&pages);
    if (status == BASE_OK)
        status = tensor_narrow(gathered, 0, 0, sequence->length + sequence->rows, all);
    tensor_release(&gathered);
    return status;
}

enum base_status serving_cache_append(struct serving_cache *cache,
                                      struct serving_sequence *sequence, int layer, bool is_value,
                                      struct tensor rows, struct tensor *all) {
    const int part = 2 * layer + is_value;
    if (cache->kind == SERVING_CONCATENATED)
        return append_by_cat(&sequence->parts[part], rows, all);
    if (cache->kind == SERVING_PREALLOCATED) return append_to_buffer(sequence, part, rows, all);
    return append_to_pages(cache, sequence, part, rows, all);
}

void serving_sequence_end(const struct serving_cache *cache, struct serving_sequence *sequence) {
    for (int i = 0; sequence->parts != NULL && i < 2 * cache->form.layers; ++i)
        tensor_release(&sequence->parts[i]);
    free(sequence->parts);
    tensor_release(&sequence->buffer);
    tensor_release(&sequence->table);
    tensor_release(&sequence->slots);
    *sequence = (struct serving_sequence){0};
}
