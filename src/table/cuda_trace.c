// SPDX-License-Identifier: Apache-2.0
//
// table: the trace wrapper. One log line for each call:
//
//   cuMemAlloc(bytes=1024) = CUDA_SUCCESS, address=0x7f2c40000000
//
// in the order of the row's parameters: what goes in stands in the brackets,
// what comes out behind the result, and only after success.
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "table/table_inside.h"

enum {
  TRACE_LINE_BYTES = 768,  // a longer line is cut
  TRACE_TEXT_BYTES = 120   // of one text argument
};

// A line being written. one-thread
typedef struct trace_line_t {
  const kilni_trace_slot_t* slot;
  size_t used;
  bool on;
  bool first;  // no argument yet
  char text[TRACE_LINE_BYTES];
} trace_line_t;

static const kiln_cuda_table_t* trace_wrapped(unsigned slot) {
  return &kilni_table_state.trace[slot].wrapped;
}

KILN_PRINTF(2, 3)
static void trace_add(trace_line_t* line, const char* format, ...) {
  if (!line->on || line->used >= sizeof(line->text) - 1) return;
  va_list args;
  va_start(args, format);
  const int wrote = vsnprintf(line->text + line->used,
                              sizeof(line->text) - line->used, format, args);
  va_end(args);
  if (wrote < 0) return;
  line->used += (size_t)wrote;
  if (line->used >= sizeof(line->text)) line->used = sizeof(line->text) - 1;
}

static trace_line_t trace_begin(unsigned slot, const char* call) {
  trace_line_t line;
  line.slot = &kilni_table_state.trace[slot];
  line.on = kilni_log_wants(&line.slot->log, KILN_LOG_TRACE);
  line.used = 0;
  line.first = true;
  line.text[0] = '\0';
  trace_add(&line, "%s(", call);
  return line;
}

static void trace_name(trace_line_t* line, const char* name) {
  trace_add(line, "%s%s=", line->first ? "" : ", ", name);
  line->first = false;
}

static void trace_signed(trace_line_t* line, const char* name, int64_t value) {
  trace_name(line, name);
  trace_add(line, "%lld", (long long)value);
}

static void trace_unsigned(trace_line_t* line, const char* name,
                           uint64_t value) {
  trace_name(line, name);
  trace_add(line, "%llu", (unsigned long long)value);
}

static void trace_address(trace_line_t* line, const char* name,
                          uint64_t value) {
  trace_name(line, name);
  trace_add(line, "0x%llx", (unsigned long long)value);
}

static void trace_real(trace_line_t* line, const char* name, double value) {
  trace_name(line, name);
  trace_add(line, "%g", value);
}

static void trace_text(trace_line_t* line, const char* name,
                       const char* value) {
  trace_name(line, name);
  if (value == NULL) {
    trace_add(line, "NULL");
    return;
  }
  trace_add(line, "\"%.*s\"", (int)TRACE_TEXT_BYTES, value);
}

static void trace_uuid(trace_line_t* line, const char* name,
                       const kiln_cu_uuid_t* value) {
  trace_name(line, name);
  for (size_t i = 0; i < sizeof(value->bytes); ++i) {
    trace_add(line, "%02x", (unsigned)(unsigned char)value->bytes[i]);
  }
}

static void trace_attribute(trace_line_t* line, const char* name,
                            kiln_cu_device_attribute_t value) {
  const char* text = kilni_cuda_attribute_name(value);
  trace_name(line, name);
  if (text != NULL) {
    trace_add(line, "%s", text);
  } else {
    trace_add(line, "%u", value);
  }
}

static void trace_result(trace_line_t* line, const char* name,
                         kiln_cu_result_t value) {
  const char* text = kilni_cuda_result_name(value);
  trace_name(line, name);
  if (text != NULL) {
    trace_add(line, "%s", text);
  } else {
    trace_add(line, "%u", value);
  }
}

static void trace_gave(trace_line_t* line, kiln_cu_result_t result) {
  const char* text = kilni_cuda_result_name(result);
  if (text != NULL) {
    trace_add(line, ") = %s", text);
  } else {
    trace_add(line, ") = %u", result);
  }
  line->first = false;
}

static void trace_end(const trace_line_t* line) {
  if (!line->on) return;
  kilni_log_line(&line->slot->log, KILN_LOG_TRACE, KILNI_ROOM, "%s",
                 line->text);
}

#define KILNI_SLOT        0
#define KILNI_THUNK(name) trace0_##name
#include "table/trace_thunks_gen.inc"
#undef KILNI_SLOT
#undef KILNI_THUNK

#define KILNI_SLOT        1
#define KILNI_THUNK(name) trace1_##name
#include "table/trace_thunks_gen.inc"
#undef KILNI_SLOT
#undef KILNI_THUNK

_Static_assert(KILNI_WRAP_SLOTS == 2, "one set of thunks for each place");

kiln_status_t kilni_cuda_trace_install(const kiln_cuda_table_t* wrapped,
                                       kiln_log_sink_t log,
                                       kiln_cuda_table_t* out_table) {
  for (uint32_t i = 0; i < KILNI_WRAP_SLOTS; ++i) {
    kilni_trace_slot_t* slot = &kilni_table_state.trace[i];
    if (atomic_exchange(&slot->used, true)) continue;
    slot->log = log;
    slot->wrapped = *wrapped;
    *out_table = slot->wrapped;
    snprintf(out_table->provider, sizeof(out_table->provider), "trace(%.*s)",
             (int)sizeof(out_table->provider) - 8, slot->wrapped.provider);
    out_table->slot = i;
    (i == 0 ? trace0_cover : trace1_cover)(out_table);
    return NULL;
  }
  return kilni_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "\"%s\" cannot be traced: %d tables are traced "
                 "already",
                 wrapped->provider, KILNI_WRAP_SLOTS),
      "close a runtime that traces, or set KILN_TRACE=off");
}

void kilni_cuda_trace_remove(const kiln_cuda_table_t* table) {
  atomic_store(&kilni_table_state.trace[table->slot].used, false);
}
