// Sizes: the contract's examples, and PyTorch's own recorded table without divisions (a sample of
// every kind of row).
#include "allocator/size_class.h"

#include "base/check.h"

static struct cca__size_rules default_rules(void) {
    return (struct cca__size_rules){
        .large_segment = CCA_LARGE_SEGMENT,
        .max_split_size = CCA_UNLIMITED,
        .max_non_split_rounding = CCA_LARGE_SEGMENT,
    };
}

static struct cca__size_rules divided_rules(uint64_t division) {
    struct cca__size_rules rules = default_rules();
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry) rules.divisions[entry] = division;
    cca__size_rules_update(&rules);
    return rules;
}

static const uint64_t mib = 1 << 20;

static void sizes_and_segments_without_divisions(void) {
    static const struct {
        size_t size, rounded, segment;
    } cases[] = {
        {1, 512, 2097152},
        {511, 512, 2097152},
        {512, 512, 2097152},
        {513, 1024, 2097152},
        {1048575, 1048576, 2097152},
        {1048576, 1048576, 2097152},
        {1048577, 1049088, 20971520},
        {10485248, 10485248, 20971520},
        {10485249, 10485760, 10485760},
        {10485760, 10485760, 10485760},
        {10485761, 10486272, 12582912},
        {20971520, 20971520, 20971520},
        {20971521, 20972032, 23068672},
        {1073741825, 1073742336, 1075838976},
        {((size_t)1 << 60) - 1, (size_t)1 << 60, (size_t)1 << 60},
    };
    const struct cca__size_rules rules = default_rules();
    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; ++row) {
        base_check_context("size %zu", cases[row].size);
        const size_t rounded = cca__round_size(&rules, cases[row].size);
        BASE_CHECK_EQ(rounded, cases[row].rounded);
        BASE_CHECK_EQ(cca__segment_size(&rules, rounded), cases[row].segment);
    }
    base_check_context(NULL);
}

static void divisions_of_powers_of_two(void) {
    // Contract section 1; public fault pt#161139 (514 MiB with two divisions becomes 768 MiB).
    const struct {
        uint64_t division;
        size_t size, rounded;
    } cases[] = {
        {4, 1200, 1536},
        {4, 2048, 2048},
        {4, 2049, 2560},
        {4, 5000, 5120},
        {4, 700000, 786432},
        {4, 1048577, 1310720},
        {4, 1200 * mib, 1280 * mib},
        {2, 514 * mib, 768 * mib},
        {1, 514 * mib + 1, 514 * mib + 512},
        {0, 514 * mib + 1, 514 * mib + 512},
        {8, 513, 1024},
        {4294967296, 513, 1024},
    };
    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; ++row) {
        const struct cca__size_rules rules = divided_rules(cases[row].division);
        base_check_context("division %llu, size %zu", (unsigned long long)cases[row].division,
                           cases[row].size);
        BASE_CHECK_EQ(cca__round_size(&rules, cases[row].size), cases[row].rounded);
    }
    base_check_context(NULL);
}

static void an_entry_rules_its_own_octave(void) {
    struct cca__size_rules rules = default_rules();
    rules.divisions[0] = 2; // below 2 MiB
    rules.divisions[8] = 4; // from 256 MiB to below 512 MiB
    cca__size_rules_update(&rules);
    BASE_CHECK_EQ(cca__round_size(&rules, 1100000), 1572864);
    BASE_CHECK_EQ(cca__round_size(&rules, 2 * mib + 1), 2 * mib + 512);
    BASE_CHECK_EQ(cca__round_size(&rules, 255 * mib + 1), 255 * mib + 512);
    BASE_CHECK_EQ(cca__round_size(&rules, 257 * mib), 320 * mib);
    BASE_CHECK_EQ(cca__round_size(&rules, 512 * mib + 1), 512 * mib + 512);
}

static void a_surplus_is_split_off_by_the_pools_rule(void) {
    BASE_CHECK(cca__should_split(true, 1024, 512, CCA_UNLIMITED));
    BASE_CHECK(!cca__should_split(true, 512, 512, CCA_UNLIMITED));
    BASE_CHECK(!cca__should_split(false, 11 * mib, 10 * mib, CCA_UNLIMITED)); // exactly 1 MiB stays
    BASE_CHECK(cca__should_split(false, 11 * mib + 512, 10 * mib, CCA_UNLIMITED));
    BASE_CHECK(!cca__should_split(false, 20 * mib, 10 * mib, 10 * mib));
    BASE_CHECK(cca__should_split(false, 20 * mib, 10 * mib - 512, 10 * mib));
}

static void oversize_blocks_and_requests_meet_each_other_only(void) {
    struct cca__size_rules rules = default_rules();
    BASE_CHECK(!cca__oversize_refused(&rules, 1 << 30, 512));
    rules.max_split_size = 64 * mib;
    BASE_CHECK(cca__oversize_refused(&rules, 64 * mib, 64 * mib - 512));
    BASE_CHECK(!cca__oversize_refused(&rules, 64 * mib - 512, 512));
    BASE_CHECK(cca__oversize_refused(&rules, 84 * mib, 64 * mib));
    BASE_CHECK(!cca__oversize_refused(&rules, 84 * mib - 512, 64 * mib));
}

int main(void) {
    sizes_and_segments_without_divisions();
    divisions_of_powers_of_two();
    an_entry_rules_its_own_octave();
    a_surplus_is_split_off_by_the_pools_rule();
    oversize_blocks_and_requests_meet_each_other_only();
    return 0;
}
