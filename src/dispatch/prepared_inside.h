// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what a prepared dispatch is, for code that makes nodes of it.
#ifndef KILN_SRC_DISPATCH_PREPARED_INSIDE_H_
#define KILN_SRC_DISPATCH_PREPARED_INSIDE_H_

#include "dispatch/pipeline_inside.h"

// Zeroes that a run begins with. thread-compatible
typedef struct kilni_dispatch_clear_t {
  uint64_t address;
  uint64_t bytes;
  uint32_t index;  // the parameter
} kilni_dispatch_clear_t;

struct kiln_prepared_t {
  kiln_pipeline_t* pipeline;
  kiln_dispatcher_t* dispatcher;
  kiln_launch_t* launch;
  atomic_uint references;
  atomic_uint frees;             // of the table, when all was seen to be there
  _Atomic(kiln_stream_t*) last;  // that it ran on; only its address is used
  bool idle;
  bool overlaps;  // runs may start before what is in front has ended
  uint32_t count;
  uint32_t clear_count;
  kilni_dispatch_trap_record_t* record;  // NULL: the code cannot trap
  kiln_buffer_t* grid;                   // NULL: there is no grid barrier
  kiln_stream_t* grid_stream;  // that the grid's last run was on; retained
  kiln_binding_t* bindings;
  kiln_buffer_t** buffers;  // retained: of residents, buffers and statics
  kilni_dispatch_clear_t* clears;
  kiln_dispatch_options_t options;
  kiln_dispatch_plan_t plan;
  uint64_t threads;
  uint64_t work;
  char* label;  // NULL: the pipeline's
};

// What a binding keeps alive, with a reference; NULL for a scalar or pointer.
// STATIC: bytes that were uploaded.
kiln_status_t kilni_dispatch_binding_keep(kiln_dispatcher_t* dispatcher,
                                          const kiln_binding_t* binding,
                                          kiln_buffer_t** out_buffer);
// Releases that, after the runs that may use it.
void kilni_dispatch_binding_let_go(kiln_dispatcher_t* dispatcher,
                                   const kiln_binding_t* binding,
                                   kiln_buffer_t* buffer);

// One more with the same bindings, whose STATIC bytes both use. `for_graph`:
// without `overlap`, which a graph expresses with an edge.
kiln_status_t kilni_dispatch_prepared_clone(kiln_prepared_t* prepared,
                                            bool for_graph,
                                            kiln_prepared_t** out_prepared);

// Puts it on `stream`, which has been looked at; so has what it is bound to.
kiln_status_t kilni_dispatch_prepared_put(kiln_prepared_t* prepared,
                                          kiln_stream_t* stream);

// INVALID_STATE if a resident buffer of it was freed: names the parameter.
kiln_status_t kilni_dispatch_prepared_check_freed(kiln_prepared_t* prepared);

#endif  // KILN_SRC_DISPATCH_PREPARED_INSIDE_H_
