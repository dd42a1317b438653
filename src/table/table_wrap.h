// SPDX-License-Identifier: Apache-2.0
//
// table: what the wrappers of every library share: the trace wrapper's line and
// the fault wrapper's count.
//
// The thunks are made from the rows (*_trace_gen.inc, *_fault_gen.inc), and
// wrap_library.inc makes the functions of table.h around them.
#ifndef KILN_SRC_TABLE_TABLE_WRAP_H_
#define KILN_SRC_TABLE_TABLE_WRAP_H_

#include <stdatomic.h>

#include "kiln/log.h"
#include "table/cuda_abi.h"
#include "table/table.h"

// ---- Places ----

// A place of the trace wrapper. Written at install. thread-compatible
typedef struct kilni_trace_slot_t {
  atomic_bool used;
  kiln_log_sink_t log;
} kilni_trace_slot_t;

// A place of the fault wrapper. thread-safe
//
// `thread` is 0 or the thread that armed it; every field below it is only
// touched by that thread.
typedef struct kilni_fault_slot_t {
  atomic_bool used;
  atomic_uintptr_t thread;
  uint64_t nth;
  uint64_t calls;
  const char* hit;
  uint32_t mode;
  uint32_t result;  // in the library's own numbers
} kilni_fault_slot_t;

// The places of one library's wrappers, and what each wraps: a part of the
// module's state (table_state.h), reached by itself, so that the wrappers of
// one library are not compiled again for the rows of another.
#define KILNI_WRAPPED(library)                          \
  typedef struct kilni_table_##library##_wrapped_t {    \
    kilni_trace_slot_t trace[KILNI_WRAP_SLOTS];         \
    kiln_##library##_table_t traced[KILNI_WRAP_SLOTS];  \
    kilni_fault_slot_t fault[KILNI_WRAP_SLOTS];         \
    kiln_##library##_table_t faulted[KILNI_WRAP_SLOTS]; \
  } kilni_table_##library##_wrapped_t;                  \
  extern kilni_table_##library##_wrapped_t* const       \
      kilni_table_##library##_wrapped

// The same for a name that is a macro.
#define KILNI_WRAPPED_AGAIN(library) KILNI_WRAPPED(library)

// ---- Trace ----

enum { KILNI_TRACE_LINE_BYTES = 768 };  // a longer line is cut

// A line being written. one-thread
typedef struct kilni_trace_line_t {
  const kilni_trace_slot_t* slot;
  size_t used;
  bool on;
  bool first;  // no argument yet
  char text[KILNI_TRACE_LINE_BYTES];
} kilni_trace_line_t;

// One call's line: begin, what goes in, gave, what comes out, end. Nothing is
// formatted for a sink that does not want it.
kilni_trace_line_t kilni_table_trace_begin(const kilni_trace_slot_t* slot,
                                           const char* call);
void kilni_table_trace_signed(kilni_trace_line_t* line, const char* name,
                              int64_t value);
void kilni_table_trace_unsigned(kilni_trace_line_t* line, const char* name,
                                uint64_t value);
void kilni_table_trace_address(kilni_trace_line_t* line, const char* name,
                               uint64_t value);
void kilni_table_trace_real(kilni_trace_line_t* line, const char* name,
                            double value);
void kilni_table_trace_text(kilni_trace_line_t* line, const char* name,
                            const char* value);
void kilni_table_trace_uuid(kilni_trace_line_t* line, const char* name,
                            const kiln_cu_uuid_t* value);
void kilni_table_trace_attribute(kilni_trace_line_t* line, const char* name,
                                 kiln_cu_device_attribute_t value);
void kilni_table_trace_result(kilni_trace_line_t* line, const char* name,
                              kiln_cu_result_t value);
// `name` of the result, NULL where it is not known.
void kilni_table_trace_gave(kilni_trace_line_t* line, const char* name,
                            uint32_t result);
void kilni_table_trace_end(const kilni_trace_line_t* line);
// LIMIT_EXCEEDED: no place is left.
kiln_status_t kilni_table_trace_full(const char* provider);

// ---- Fault ----

// Counts a call; true if it is one to fail.
bool kilni_table_fault_is_due(kilni_fault_slot_t* slot, const char* call);
void kilni_table_fault_arm(kilni_fault_slot_t* slot, uint64_t nth,
                           uint32_t mode, uint32_t result);
uint64_t kilni_table_fault_disarm(kilni_fault_slot_t* slot);
kiln_status_t kilni_table_fault_full(const char* provider);

#endif  // KILN_SRC_TABLE_TABLE_WRAP_H_
