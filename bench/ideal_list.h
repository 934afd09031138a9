// The limits that every host cost is shown beside, as struct allocators so that they go through the
// same loop:
//
//   ideal_list  a free list a size class, no lock, no statistics, no reuse across classes: what no
//   allocator can beat. mutex_list  the same list under one pthread mutex: what no allocator with a
//   lock can beat.
//   no_list     hands out the same address each time and forgets frees: what the measuring loop and
//   its calls cost alone. It checks nothing and its blocks overlap, so it serves `pair` only.
//
// They hand out addresses and own no memory: nothing may be read or written there. Sizes are
// rounded to a power of two of at least 512 bytes. Streams and devices are ignored. Their stats()
// has `allocation` and `allocated_bytes` of ALL, current only, counted when asked: a count kept on
// every call would raise the limit. What a limit does not need is BASE_UNSUPPORTED.
//
// mutex_list is thread-safe. An ideal_list belongs to one thread.
#ifndef TIDEMARK_BENCH_IDEAL_LIST_H
#define TIDEMARK_BENCH_IDEAL_LIST_H

#include "allocator/allocator.h"

struct allocator *bench_ideal_list_create(void);
struct allocator *bench_mutex_list_create(void);
struct allocator *bench_no_list_create(void);

#endif
