// SPDX-License-Identifier: Apache-2.0
//
// dispatch: threads that copy host memory together.
//
// A copy is divided among idle threads; the caller does its share. So a copy is
// done whether or not threads are free, and several may be in progress at once.
// Knows nothing of devices.
#ifndef KILN_SRC_DISPATCH_COPY_CREW_H_
#define KILN_SRC_DISPATCH_COPY_CREW_H_

#include <stdbool.h>
#include <stddef.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

enum { KILNI_CREW_THREADS = 16 };  // maximum of one, with the caller

// Threads, and the copies they are at. thread-safe
typedef struct kilni_dispatch_crew_t kilni_dispatch_crew_t;

// One copy. one-thread
typedef struct kilni_dispatch_copy_t {
  void* to;
  const void* from;
  size_t bytes;
  uint32_t place;    // where the threads see it; 0: they do not
  bool past_caches;  // it is not read soon
} kilni_dispatch_copy_t;

// `threads` copy together: the caller and the others, which are yet to be
// started; 1: the caller copies alone. Starts none now.
kiln_status_t kilni_dispatch_crew_create(kiln_allocator_t allocator,
                                         uint32_t threads,
                                         kilni_dispatch_crew_t** out_crew);
// It may not be used any more. NULL is accepted.
void kilni_dispatch_crew_destroy(kilni_dispatch_crew_t* crew);

// Starts the threads that are not there; all of them, or none and a status.
kiln_status_t kilni_dispatch_crew_start(kilni_dispatch_crew_t* crew);
// Ends the threads after their current work; a start makes others.
void kilni_dispatch_crew_rest(kilni_dispatch_crew_t* crew);
// How many threads run, without askers.
uint32_t kilni_dispatch_crew_running(const kilni_dispatch_crew_t* crew);

// Lets the threads begin; does nothing itself. The memory is theirs until
// finish.
void kilni_dispatch_crew_begin(kilni_dispatch_crew_t* crew,
                               kilni_dispatch_copy_t* copy);
// Does what is left of it and returns when all is done.
void kilni_dispatch_crew_finish(kilni_dispatch_crew_t* crew,
                                kilni_dispatch_copy_t* copy);

#endif  // KILN_SRC_DISPATCH_COPY_CREW_H_
