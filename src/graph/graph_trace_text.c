// SPDX-License-Identifier: Apache-2.0
//
// graph: a trace as trace events in JSON, for Perfetto and chrome://tracing.
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "graph/graph_picture.h"
#include "graph/graph_trace.h"
#include "kiln/picture.h"

enum { PROCESS = 1, STREAM_TRACK = 1, FIRST_LANE = 2 };

// Microseconds, as the format has them, to the nanosecond.
static void add_time(kilni_base_str_t* out, const char* key, uint64_t ns) {
  kilni_base_str_addf(out, ",\"%s\":%llu.%03u", key,
                      (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void add_track(kilni_base_str_t* out, uint32_t track, const char* name,
                      uint32_t number) {
  kilni_base_str_addf(
      out,
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,"
      "\"args\":{\"name\":\"",
      PROCESS, (unsigned)track);
  kilni_graph_picture_add_json(out, name);
  if (track != STREAM_TRACK) kilni_base_str_addf(out, " %u", (unsigned)number);
  // Perfetto sorts tracks by name else, and lane 10 before lane 2.
  kilni_base_str_addf(out,
                      "\"}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\","
                      "\"pid\":%d,\"tid\":%u,\"args\":{\"sort_index\":%u}},\n",
                      PROCESS, (unsigned)track, (unsigned)track);
}

static void trace_text_add_head(kilni_base_str_t* out,
                                const kiln_graph_trace_t* trace) {
  kilni_base_str_addf(
      out,
      "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n"
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
      "\"args\":{\"name\":\"",
      PROCESS);
  kilni_graph_picture_add_json(out, kiln_device_info(trace->device)->model);
  kilni_base_str_add_cstr(out, "\"}},\n");
  add_track(out, STREAM_TRACK, "stream", 0);
  for (uint32_t i = 0; i < trace->lanes; i++) {
    add_track(out, FIRST_LANE + i, "lane", i);
  }
  kilni_base_str_addf(out,
                      "{\"name\":\"launch\",\"cat\":\"graph\",\"ph\":\"X\","
                      "\"pid\":%d,\"tid\":%d",
                      PROCESS, STREAM_TRACK);
  add_time(out, "ts", 0);
  add_time(out, "dur", trace->elapsed_ns);
  kilni_base_str_addf(out, ",\"args\":{\"nodes\":%u}}", (unsigned)trace->count);
}

static void add_slice(kilni_base_str_t* out, const kilni_graph_slice_t* slice) {
  kilni_base_str_add_cstr(out, ",\n{\"name\":\"");
  kilni_graph_picture_add_json(out, slice->name);
  kilni_base_str_addf(out,
                      "\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u",
                      kilni_graph_kind_name(slice->kind), PROCESS,
                      (unsigned)(FIRST_LANE + slice->lane));
  add_time(out, "ts", slice->start_ns);
  add_time(out, "dur", slice->end_ns - slice->start_ns);
  kilni_base_str_addf(out, ",\"args\":{\"kind\":\"%s\"",
                      kilni_graph_kind_name(slice->kind));
  if (slice->kernel != NULL && slice->kernel[0] != 0) {
    kilni_base_str_add_cstr(out, ",\"kernel\":\"");
    kilni_graph_picture_add_json(out, slice->kernel);
    kilni_base_str_add_char(out, '"');
  }
  if (slice->start == NULL) {
    kilni_base_str_add_cstr(out, ",\"start\":\"not known\"");
  }
  kilni_base_str_add_cstr(out, "}}");
}

// The whole text; `out` is ended by the caller.
static kiln_status_t trace_text_write_all(const kiln_graph_trace_t* trace,
                                          kilni_base_str_t* out) {
  kilni_base_str_init(out, trace->allocator, KILNI_PICTURE_MAX_BYTES);
  if (!trace->is_read) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the trace has no times"),
        "launch it, wait for the stream, and call kiln_graph_trace_read");
  }
  trace_text_add_head(out, trace);
  for (uint32_t i = 0; i < trace->count; i++) {
    add_slice(out, &trace->slices[i]);
  }
  kilni_base_str_add_cstr(out, "\n]}\n");
  return kilni_base_str_status(out);
}

kiln_status_t kiln_graph_trace_write(kiln_graph_trace_t* trace,
                                     kiln_write_fn_t write, void* user_data) {
  KILNI_CHECK_ARGUMENT(trace != NULL, "trace");
  KILNI_CHECK_ARGUMENT(write != NULL, "write");
  kilni_base_str_t text;
  kiln_status_t status = trace_text_write_all(trace, &text);
  if (kiln_status_is_ok(status)) {
    status = kilni_graph_picture_give(&text, write, user_data);
  }
  kilni_base_str_deinit(&text);
  return status;
}

kiln_status_t kiln_graph_trace_write_file(kiln_graph_trace_t* trace,
                                          const char* path) {
  KILNI_CHECK_ARGUMENT(trace != NULL, "trace");
  KILNI_CHECK_ARGUMENT(path != NULL, "path");
  kilni_base_str_t text;
  kiln_status_t status = trace_text_write_all(trace, &text);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_file_write(trace->allocator, path,
                                   kilni_base_str_cstr(&text), text.size);
  }
  kilni_base_str_deinit(&text);
  return status;
}
