// SPDX-License-Identifier: Apache-2.0
//
// table: the trace wrapper. One log line for each call:
//
//   cuMemAlloc(bytes=1024) = CUDA_SUCCESS, address=0x7f2c40000000
//
// in the order of the row's parameters: inputs are in the brackets, outputs
// follow the result, and only after success.
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "base/status_make.h"
#include "table/cuda_table.h"
#include "table/table_state.h"
#include "table/table_wrap.h"

enum { TEXT_BYTES = 120 };  // of one text argument

KILN_PRINTF(2, 3)
static void trace_add(kilni_trace_line_t* line, const char* format, ...) {
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

kilni_trace_line_t kilni_table_trace_begin(const kilni_trace_slot_t* slot,
                                           const char* call) {
  kilni_trace_line_t line;
  line.slot = slot;
  line.on = kilni_base_log_wants(&line.slot->log, KILN_LOG_TRACE);
  line.used = 0;
  line.first = true;
  line.text[0] = '\0';
  trace_add(&line, "%s(", call);
  return line;
}

static void trace_name(kilni_trace_line_t* line, const char* name) {
  trace_add(line, "%s%s=", line->first ? "" : ", ", name);
  line->first = false;
}

void kilni_table_trace_signed(kilni_trace_line_t* line, const char* name,
                              int64_t value) {
  trace_name(line, name);
  trace_add(line, "%lld", (long long)value);
}

void kilni_table_trace_unsigned(kilni_trace_line_t* line, const char* name,
                                uint64_t value) {
  trace_name(line, name);
  trace_add(line, "%llu", (unsigned long long)value);
}

void kilni_table_trace_address(kilni_trace_line_t* line, const char* name,
                               uint64_t value) {
  trace_name(line, name);
  trace_add(line, "0x%llx", (unsigned long long)value);
}

void kilni_table_trace_real(kilni_trace_line_t* line, const char* name,
                            double value) {
  trace_name(line, name);
  trace_add(line, "%g", value);
}

void kilni_table_trace_text(kilni_trace_line_t* line, const char* name,
                            const char* value) {
  trace_name(line, name);
  if (value == NULL) {
    trace_add(line, "NULL");
    return;
  }
  trace_add(line, "\"%.*s\"", (int)TEXT_BYTES, value);
}

void kilni_table_trace_uuid(kilni_trace_line_t* line, const char* name,
                            const kiln_cu_uuid_t* value) {
  trace_name(line, name);
  for (size_t i = 0; i < sizeof(value->bytes); i++) {
    trace_add(line, "%02x", (unsigned)(unsigned char)value->bytes[i]);
  }
}

void kilni_table_trace_attribute(kilni_trace_line_t* line, const char* name,
                                 kiln_cu_device_attribute_t value) {
  const char* text = kilni_table_cuda_attribute_name(value);
  trace_name(line, name);
  if (text != NULL) {
    trace_add(line, "%s", text);
  } else {
    trace_add(line, "%u", value);
  }
}

void kilni_table_trace_result(kilni_trace_line_t* line, const char* name,
                              kiln_cu_result_t value) {
  const char* text = kilni_table_cuda_result_name(value);
  trace_name(line, name);
  if (text != NULL) {
    trace_add(line, "%s", text);
  } else {
    trace_add(line, "%u", value);
  }
}

void kilni_table_trace_gave(kilni_trace_line_t* line, const char* name,
                            uint32_t result) {
  if (name != NULL) {
    trace_add(line, ") = %s", name);
  } else {
    trace_add(line, ") = %u", result);
  }
  line->first = false;
}

void kilni_table_trace_end(const kilni_trace_line_t* line) {
  if (!line->on) return;
  kilni_base_log_line(&line->slot->log, KILN_LOG_TRACE, KILNI_MODULE, "%s",
                      line->text);
}

kiln_status_t kilni_table_trace_full(const char* provider) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "\"%s\" cannot be traced: %d tables of its kind are traced "
                 "already",
                 provider, KILNI_WRAP_SLOTS),
      "close a runtime that traces, or set KILN_TRACE=off");
}
