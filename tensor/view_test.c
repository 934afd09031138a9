// Geometry: strides, contiguity, which views there are. Random shapes are checked against plain
// enumeration of positions.
#include "base/random.h"
#include "tensor/geometry.h"
#include "tensor/testing.h"
#include "tensor/view_call.h"

#include <math.h>
#include <stdlib.h>

static void empty_dimensions_count_as_one_in_strides(void) {
    struct tensor_geometry geometry;
    CHECK_OK(tensor_geometry_init(&geometry, SIZES(2, 0, 3)));
    BASE_CHECK_EQ(geometry.strides[0], 3);
    BASE_CHECK_EQ(geometry.strides[1], 3);
    BASE_CHECK_EQ(geometry.strides[2], 1);
    BASE_CHECK_EQ(geometry.numel, 0);
}

static void strides_of_size_one_do_not_count(void) {
    struct tensor_geometry geometry;
    CHECK_OK(tensor_geometry_init(&geometry, SIZES(5, 1, 7)));
    geometry.strides[1] = 99;
    BASE_CHECK((tensor_geometry_flags(&geometry) & TENSOR_IS_CONTIGUOUS) != 0);
    geometry.strides[0] = 8;
    BASE_CHECK((tensor_geometry_flags(&geometry) & TENSOR_IS_CONTIGUOUS) == 0);
}

static void row_is_contiguous_and_a_column_is_not(void) {
    struct tensor_place place = testing_place();
    struct tensor matrix = testing_range(&place, TENSOR_FLOAT32, SIZES(3, 4)), row, column, thin,
                  only;
    CHECK_OK(tensor_slice(matrix, 0, 1, 2, 1, &row));
    CHECK_OK(tensor_slice(matrix, 1, 1, 2, 1, &column));
    BASE_CHECK(tensor_is_contiguous(row, TENSOR_CONTIGUOUS));
    BASE_CHECK(!tensor_is_contiguous(column, TENSOR_CONTIGUOUS));
    CHECK_OK(tensor_slice(matrix, 0, 0, 1, 1, &thin));
    CHECK_OK(tensor_slice(thin, 1, 2, 3, 1, &only));
    BASE_CHECK(tensor_is_contiguous(only, TENSOR_CONTIGUOUS)); // of size 1
    tensor_release(&matrix);
    tensor_release(&row);
    tensor_release(&column);
    tensor_release(&thin);
    tensor_release(&only);
    testing_place_end(&place);
}

static void permuted_cube_views_only_along_its_runs(void) {
    struct tensor_place place = testing_place();
    struct tensor cube = testing_range(&place, TENSOR_FLOAT32, SIZES(2, 3, 4)), turned, flat, same;
    CHECK_OK(tensor_permute(cube, SIZES(0, 2, 1), &turned));
    CHECK_REFUSED(tensor_view(turned, SIZES(2, 12), &flat), "view size is not compatible");
    CHECK_OK(tensor_view(turned, SIZES(2, 4, 3), &same));
    BASE_CHECK(tensor_is_set_to(same, turned));
    tensor_release(&cube);
    tensor_release(&turned);
    tensor_release(&same);
    testing_place_end(&place);
}

static void empty_as_strided_may_lie_anywhere(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), view;
    const int64_t far = 1000000, negative = -1;
    CHECK_OK(tensor_as_strided(self, SIZES(0, 3), SIZES(1, 1), &far, &view));
    BASE_CHECK_EQ(tensor_offset(view), far);
    BASE_CHECK(tensor_data(view) == NULL);
    tensor_release(&view);
    CHECK_REFUSED(tensor_as_strided(self, SIZES(0), SIZES(1), &negative, &view),
                  "invalid storage offset -1");
    CHECK_REFUSED(tensor_as_strided(self, SIZES(5), SIZES(1), NULL, &view),
                  "out of bounds for storage of size 16");
    tensor_release(&self);
    testing_place_end(&place);
}

static void bad_lists_are_refused(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), result;
    int64_t many[TENSOR_RANK_MAX + 1];
    for (int dim = 0; dim <= TENSOR_RANK_MAX; dim++)
        many[dim] = 1;
    CHECK_REFUSED(tensor_view(self, many, TENSOR_RANK_MAX + 1, &result), "at most 16 dimensions");
    CHECK_REFUSED(tensor_ones(&place, TENSOR_FLOAT32, many, TENSOR_RANK_MAX + 1, &result),
                  "at most 16 dimensions");
    CHECK_REFUSED(tensor_view(self, SIZES(INT64_MAX, INT64_MAX), &result), "is invalid for input");
    CHECK_REFUSED(tensor_select(self, INT64_MIN, 0, &result), "Dimension out of range");
    CHECK_REFUSED(tensor_select(self, 0, INT64_MIN, &result), "out of range");
    CHECK_REFUSED(tensor_unfold(self, 0, 2, 0, &result), "step is 0 but must be > 0");
    CHECK_REFUSED(tensor_expand(self, SIZES(INT64_MAX, 4), &result), "overflow");
    CHECK_REFUSED(tensor_arange(&place, TENSOR_FLOAT32, 0, INFINITY, 1, &result),
                  "unsupported range: 0 -> inf");
    tensor_release(&self);
    testing_place_end(&place);
}

//------------------------------------------------------------------------------------------------
// Against enumeration

// Positions of all elements in logical order.
static int64_t *positions_of(const struct tensor_geometry *geometry) {
    int64_t *positions = malloc((size_t)(geometry->numel + 1) * sizeof *positions);
    for (int64_t element = 0; element < geometry->numel; element++) {
        int64_t rest = element, position = geometry->offset;
        for (int dim = geometry->rank - 1; dim >= 0; dim--) {
            position += rest % geometry->sizes[dim] * geometry->strides[dim];
            rest /= geometry->sizes[dim];
        }
        positions[element] = position;
    }
    return positions;
}

static struct tensor_geometry random_geometry(struct base_random *random) {
    struct tensor_geometry geometry = {.rank = (int)base_random_below(random, 5), .numel = 1};
    for (int dim = 0; dim < geometry.rank; dim++) {
        geometry.sizes[dim] = (int64_t)base_random_between(random, 1, 4);
        geometry.numel *= geometry.sizes[dim];
    }
    tensor_geometry_set_contiguous(&geometry);
    // Some order, holes, repetition.
    for (int dim = 0; dim + 1 < geometry.rank; dim++) {
        const int other =
            (int)base_random_between(random, (uint64_t)dim, (uint64_t)geometry.rank - 1);
        if (!base_random_chance(random, 0.4)) continue;
        const int64_t size = geometry.sizes[dim], stride = geometry.strides[dim];
        geometry.sizes[dim] = geometry.sizes[other];
        geometry.strides[dim] = geometry.strides[other];
        geometry.sizes[other] = size;
        geometry.strides[other] = stride;
    }
    for (int dim = 0; dim < geometry.rank; dim++)
        if (base_random_chance(random, 0.15))
            geometry.strides[dim] *= (int64_t)base_random_below(random, 3);
    return geometry;
}

// The sizes of another shape with as many elements.
static int random_shape(struct base_random *random, int64_t numel, int64_t *sizes) {
    int rank = 0;
    while (rank < 5 && (numel > 1 || base_random_chance(random, 0.4))) {
        int64_t size = 1;
        for (int64_t factor = 2; factor <= numel; factor++)
            if (numel % factor == 0 && base_random_chance(random, 0.5)) {
                size = factor;
                break;
            }
        if (rank == 4) size = numel;
        sizes[rank++] = size;
        numel /= size;
    }
    return numel == 1 ? rank : -1;
}

// Whether some strides give the positions in order: those that one step of each index has to make.
static bool is_strided(const int64_t *positions, struct tensor_geometry *shape) {
    tensor_geometry_set_contiguous(shape);
    int64_t steps[TENSOR_RANK_MAX];
    for (int dim = 0; dim < shape->rank; dim++)
        steps[dim] = shape->sizes[dim] > 1 ? positions[shape->strides[dim]] - positions[0] : 0;
    memcpy(shape->strides, steps, sizeof steps);
    shape->offset = positions[0];
    int64_t *own = positions_of(shape);
    const bool is_same = memcmp(own, positions, (size_t)shape->numel * sizeof *positions) == 0;
    free(own);
    return is_same;
}

static void views_are_found_where_there_are_any(uint64_t seed, int count) {
    struct base_random random = base_random_init(seed, "views");
    int found = 0, refused = 0;
    for (int round = 0; round < count; round++) {
        base_check_context("seed %llu, round %d", (unsigned long long)seed, round);
        const struct tensor_geometry from = random_geometry(&random);
        struct tensor_geometry to = {.numel = from.numel, .offset = from.offset};
        to.rank = random_shape(&random, from.numel, to.sizes);
        if (to.rank < 0) continue;
        int64_t *positions = positions_of(&from);
        struct tensor_geometry wanted = to;
        const bool is_possible = is_strided(positions, &wanted);
        const bool is_found = tensor_view_strides(&from, to.sizes, to.rank, to.strides);
        // Strides that overlap can be seen in ways that the rule does not look for.
        if (is_found) {
            int64_t *own = positions_of(&to);
            BASE_CHECK_EQ(memcmp(own, positions, (size_t)to.numel * sizeof *own), 0);
            free(own);
        } else if (!tensor_geometry_is_expanded(&from)) {
            BASE_CHECK(!is_possible);
        }
        found += is_found;
        refused += !is_found;
        free(positions);
    }
    base_check_context(NULL);
    BASE_CHECK_GT(found, count / 10);
    BASE_CHECK_GT(refused, count / 20);
}

static int position_compare(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

// Dense: the positions are first, first + 1, ... in some order.
static void flags_agree_with_enumeration(uint64_t seed, int count) {
    struct base_random random = base_random_init(seed, "flags");
    for (int round = 0; round < count; round++) {
        base_check_context("seed %llu, round %d", (unsigned long long)seed, round);
        const struct tensor_geometry geometry = random_geometry(&random);
        int64_t *positions = positions_of(&geometry);
        bool is_in_order = true, is_dense = true;
        for (int64_t element = 0; element < geometry.numel; element++)
            is_in_order &= positions[element] == geometry.offset + element;
        qsort(positions, (size_t)geometry.numel, sizeof *positions, position_compare);
        for (int64_t element = 0; element < geometry.numel; element++)
            is_dense &= positions[element] == geometry.offset + element;
        const unsigned flags = tensor_geometry_flags(&geometry);
        BASE_CHECK_EQ((flags & TENSOR_IS_CONTIGUOUS) != 0, is_in_order);
        BASE_CHECK_EQ((flags & TENSOR_IS_DENSE) != 0, is_dense);
        free(positions);
    }
    base_check_context(NULL);
}

// Sixteen dimensions are worked with; one more is refused wherever a program can ask for it.
static void seventeenth_dimension_is_refused(void) {
    struct tensor_place place = testing_place();
    const char *const sentence = "a tensor has at most 16 dimensions";
    int64_t sizes[17], strides[17], dims[17];
    struct tensor self, other, sum, total;
    struct tensor_scalar value;
    for (int dim = 0; dim < 17; dim++) {
        sizes[dim] = dim % 4 == 0 ? 2 : 1;
        strides[dim] = 1;
        dims[dim] = dim;
    }
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, sizes, 16, &self)); // 2 1 1 1 2 1 1 1 2 ...
    CHECK_OK(tensor_transpose(self, 0, 15, &other));
    CHECK_OK(tensor_add(self, tensor_operand_tensor(other), tensor_integer(1), &sum));
    CHECK_OK(tensor_sum(sum, &total));
    CHECK_OK(tensor_item(total, &value));
    BASE_CHECK_EQ(tensor_numel(sum), 32); // both ends are broadcast
    BASE_CHECK_EQ(value.floating, 64.0);
    tensor_release(&total);
    tensor_release(&sum);
    tensor_release(&other);
    CHECK_REFUSED(tensor_empty(&place, TENSOR_FLOAT32, sizes, 17, TENSOR_CONTIGUOUS, &other),
                  sentence);
    CHECK_REFUSED(tensor_empty_strided(&place, TENSOR_FLOAT32, sizes, 17, strides, 17, &other),
                  sentence);
    CHECK_REFUSED(tensor_zeros(&place, TENSOR_FLOAT32, sizes, 17, &other), sentence);
    CHECK_REFUSED(tensor_view(self, sizes, 17, &other), sentence);
    CHECK_REFUSED(tensor_reshape(self, sizes, 17, &other), sentence);
    CHECK_REFUSED(tensor_expand(self, sizes, 17, &other), sentence);
    CHECK_REFUSED(tensor_permute(self, dims, 17, &other), sentence);
    CHECK_REFUSED(tensor_squeeze_dims(self, dims, 17, &other), sentence);
    CHECK_REFUSED(tensor_as_strided(self, sizes, 17, strides, 17, NULL, &other), sentence);
    CHECK_REFUSED(tensor_as_strided_(self, sizes, 17, strides, 17, NULL), sentence);
    CHECK_REFUSED(tensor_unsqueeze(self, 0, &other), sentence);
    CHECK_REFUSED(tensor_unsqueeze_(self, 0), sentence);
    CHECK_REFUSED(tensor_unfold(self, 0, 1, 1, &other), sentence);
    CHECK_REFUSED(tensor_unflatten(self, 0, SIZES(1, 2), &other), sentence);
    CHECK_REFUSED(tensor_stack(&self, 1, 0, &other), sentence);
    struct tensor fifteen;
    CHECK_OK(tensor_select(self, 1, 0, &fifteen));
    CHECK_OK(tensor_unflatten(fifteen, 0, SIZES(1, 2), &other)); // as many as there may be
    BASE_CHECK_EQ(tensor_rank(other), 16);
    tensor_release(&other);
    tensor_release(&fifteen);
    CHECK_REFUSED(tensor_resize_(self, sizes, 17, NULL), sentence);
    struct tensor_storage *storage = tensor_storage(self);
    CHECK_REFUSED(tensor_set_storage_(self, storage, 0, sizes, 17, strides, 17), sentence);
    tensor_storage_release(&storage);
    BASE_CHECK_EQ(tensor_rank(self), 16);
    BASE_CHECK_EQ(testing_version(self), 0);
    tensor_release(&self);
    testing_place_end(&place);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : 20000;
    printf("seed %llu\n", (unsigned long long)seed);
    empty_dimensions_count_as_one_in_strides();
    strides_of_size_one_do_not_count();
    row_is_contiguous_and_a_column_is_not();
    permuted_cube_views_only_along_its_runs();
    empty_as_strided_may_lie_anywhere();
    bad_lists_are_refused();
    seventeenth_dimension_is_refused();
    views_are_found_where_there_are_any(seed, count);
    flags_agree_with_enumeration(seed, count);
}
