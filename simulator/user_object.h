// User objects: counted objects of the program's (cudaUserObject_t) with a destructor, which
// graphs, their copies and executables own. All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_USER_OBJECT_H
#define TIDEMARK_SIMULATOR_USER_OBJECT_H

#include "simulator/handle.h"

#include <stdbool.h>

struct sim__graph_objects; // what one graph owns

extern struct sim__handle_table sim__user_objects;

// The references of a graph, for its copy as well. False: out of memory.
bool sim__graph_objects_copy(const struct sim__graph_objects *objects,
                             struct sim__graph_objects **copy);
// Gives all references back, those retired behind OBJECTS as well; NULL is fine.
void sim__graph_objects_release(struct sim__graph_objects *objects);
// OBJECTS, or NULL, are to be released with the list at RETIRED.
void sim__graph_objects_retire(struct sim__graph_objects *objects,
                               struct sim__graph_objects **retired);

// Destructors of objects that nobody refers to any more run when the call that let go of the last
// reference has given the lock back.
extern bool sim__user_objects_dead;
void sim__user_objects_finish(void); // without the lock

// The machine stops: what is left is forgotten, and no destructor runs.
void sim__user_objects_clear(void);

#endif
