// SPDX-License-Identifier: Apache-2.0
//
// dispatch: a snapshot of telemetry as text: Prometheus' format, and JSON.
//
// Both are written from the same lists of fields, so that both have the same
// fields. Pure: a snapshot in, a text out.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "dispatch/telemetry_fields.h"

enum { MAX_LABELS = 32, MAX_TEXT = 1 << 20, METRIC_BYTES = 96 };

// ---- Characters ----

// The bytes of the UTF-8 character at `text`, 0 if there is none.
static size_t telemetry_text_utf8_length(const unsigned char* text) {
  unsigned first = text[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, half of a pair, or past the last one.
  if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
      (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f)) {
    return 0;
  }
  return length;
}

static void telemetry_text_add_escaped(kilni_base_str_t* out, const char* text,
                                       bool json) {
  while (*text != 0) {
    size_t length = telemetry_text_utf8_length((const unsigned char*)text);
    if (length == 0) {
      kilni_base_str_add_cstr(out, "\xef\xbf\xbd");
      length = 1;
    } else if (*text == '\\' || *text == '"') {
      kilni_base_str_add_char(out, '\\');
      kilni_base_str_add_char(out, *text);
    } else if (*text == '\n') {
      kilni_base_str_add_cstr(out, "\\n");
    } else if (json && (unsigned char)*text < 0x20) {
      kilni_base_str_addf(out, "\\u%04x", (unsigned)(unsigned char)*text);
    } else {
      kilni_base_str_add(out, kilni_base_sv_make(text, length));
    }
    text += length;
  }
}

// ---- Labels ----

static bool is_label_name(const char* name) {
  if (name == NULL || name[0] == 0 || (name[0] == '_' && name[1] == '_')) {
    return false;
  }
  for (const char* at = name; *at != 0; at++) {
    bool letter =
        (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';
    bool digit = *at >= '0' && *at <= '9' && at != name;
    if (!letter && !digit) return false;
  }
  return true;
}

static kiln_status_t check_labels(const kiln_telemetry_format_t* format) {
  KILNI_CHECK_ARGUMENT(format->labels != NULL || format->label_count == 0,
                       "format.labels");
  if (format->label_count > MAX_LABELS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "telemetry with %u labels",
                   (unsigned)format->label_count),
        "give at most %u", (unsigned)MAX_LABELS);
  }
  for (uint32_t i = 0; i < format->label_count; i++) {
    const char* name = format->labels[i].name;
    if (!is_label_name(name) || format->labels[i].value == NULL) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" as a telemetry label",
                     name != NULL ? name : ""),
          "name it with letters, digits and _, not beginning with a digit or "
          "__, and give it a value");
    }
    for (uint32_t j = 0; j < i; j++) {
      if (strcmp(name, format->labels[j].name) != 0) continue;
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "two labels \"%s\" of telemetry", name),
          "give each name once");
    }
  }
  return kiln_ok();
}

// ---- Prometheus ----

// One text in progress. one-thread
typedef struct writer_t {
  kilni_base_str_t* out;
  const kiln_telemetry_format_t* format;
  const char* between;  // of JSON: what comes before the next member
} writer_t;

static bool telemetry_text_ends_with(const char* text, const char* end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

static void add_seconds(kilni_base_str_t* out, uint64_t ns) {
  kilni_base_str_addf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000u,
                      ns % 1000000000u);
}

// kiln_NAME, with seconds for nanoseconds and the suffix _total for a counter.
static void telemetry_text_sample(writer_t* w, const char* field,
                                  const char* what, bool is_counter,
                                  uint64_t value) {
  bool is_time = telemetry_text_ends_with(field, "_ns");
  char metric[METRIC_BYTES];
  kilni_base_str_t* out = w->out;
  size_t size = strlen(field) - (is_time ? 3 : 0);
  (void)snprintf(metric, sizeof(metric), "kiln_%.*s%s%s", (int)size, field,
                 is_time ? "_seconds" : "", is_counter ? "_total" : "");
  kilni_base_str_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s", metric, what,
                      metric, is_counter ? "counter" : "gauge", metric);
  for (uint32_t i = 0; i < w->format->label_count; i++) {
    kilni_base_str_addf(out, "%s%s=\"", i == 0 ? "{" : ",",
                        w->format->labels[i].name);
    telemetry_text_add_escaped(out, w->format->labels[i].value, false);
    kilni_base_str_add_char(out, '"');
  }
  kilni_base_str_add_cstr(out, w->format->label_count != 0 ? "} " : " ");
  if (is_time) {
    add_seconds(out, value);
  } else {
    kilni_base_str_addf(out, "%" PRIu64, value);
  }
  kilni_base_str_add_char(out, '\n');
}

static void write_prometheus(writer_t* w, const kiln_telemetry_t* t) {
  telemetry_text_sample(w, "telemetry_enabled", "1 where a dispatcher counts",
                        false, t->enabled);
#define GAUGE(field, what) \
  telemetry_text_sample(w, #field, what, false, t->field);
  KILNI_TELEMETRY_GAUGES(GAUGE)
#undef GAUGE
#define COUNTER(field, what) \
  telemetry_text_sample(w, #field, what, true, t->field);
  KILNI_TELEMETRY_CACHE(COUNTER)
#undef COUNTER
#define COUNTER(NAME, field, what) \
  telemetry_text_sample(w, #field, what, true, t->field);
  KILNI_TELEMETRY_COUNTERS(COUNTER)
#undef COUNTER
}

// ---- JSON ----

static void open_object(writer_t* w, const char* name) {
  kilni_base_str_addf(w->out, "%s\"%s\":{", w->between, name);
  w->between = "";
}

static void close_object(writer_t* w) {
  kilni_base_str_add_char(w->out, '}');
  w->between = ",";
}

static void member(writer_t* w, const char* name, uint64_t value) {
  kilni_base_str_addf(w->out, "%s\"%s\":%" PRIu64, w->between, name, value);
  w->between = ",";
}

static void rate(writer_t* w, const char* name, uint64_t part, uint64_t whole) {
  kilni_base_str_addf(w->out, "%s\"%s\":", w->between, name);
  w->between = ",";
  if (whole == 0) {
    kilni_base_str_add_cstr(w->out, "null");
    return;
  }
  // In millionths, so that no locale affects it.
  uint64_t share = (uint64_t)((double)part / (double)whole * 1e6 + 0.5);
  kilni_base_str_addf(w->out, "%" PRIu64 ".%06" PRIu64, share / 1000000u,
                      share % 1000000u);
}

static void telemetry_text_write_json(writer_t* w, const kiln_telemetry_t* t) {
  kilni_base_str_addf(w->out, "{\"enabled\":%s", t->enabled ? "true" : "false");
  w->between = ",";
  open_object(w, "labels");
  for (uint32_t i = 0; i < w->format->label_count; i++) {
    kilni_base_str_addf(w->out, "%s\"%s\":\"", w->between,
                        w->format->labels[i].name);
    telemetry_text_add_escaped(w->out, w->format->labels[i].value, true);
    kilni_base_str_add_char(w->out, '"');
    w->between = ",";
  }
  close_object(w);
  open_object(w, "counters");
#define MEMBER(NAME, field, what) member(w, #field, t->field);
  KILNI_TELEMETRY_COUNTERS(MEMBER)
#undef MEMBER
  close_object(w);
#define MEMBER(field, what) member(w, #field, t->field);
  open_object(w, "now");
  KILNI_TELEMETRY_GAUGES(MEMBER)
  close_object(w);
  open_object(w, "cache");
  KILNI_TELEMETRY_CACHE(MEMBER)
  close_object(w);
#undef MEMBER
  open_object(w, "rates");
  rate(w, "transient_hits", t->transient_hits,
       t->transient_hits + t->transient_misses);
  rate(w, "cached_pipelines", t->cached_pipelines,
       t->cached_pipelines + t->linked_pipelines);
  rate(w, "cache_hits", t->cache_memory_hits + t->cache_disk_hits,
       t->cache_memory_hits + t->cache_disk_hits + t->cache_misses);
  rate(w, "used_work_slots", t->work_items, t->work_slots);
  rate(w, "staged_bytes", t->staged_bytes,
       t->uploaded_bytes + t->downloaded_bytes);
  close_object(w);
  kilni_base_str_add_cstr(w->out, "}\n");
}

// ---- All together ----

static void telemetry_text_hand_out(const kilni_base_str_t* text,
                                    size_t capacity, char* buffer,
                                    size_t* out_length) {
  if (out_length != NULL) *out_length = text->size;
  if (capacity == 0) return;
  size_t fits = text->size < capacity ? text->size : capacity - 1;
  if (fits != 0) memcpy(buffer, kilni_base_str_cstr(text), fits);
  buffer[fits] = 0;
}

kiln_status_t kiln_telemetry_format(const kiln_telemetry_t* telemetry,
                                    const kiln_telemetry_format_t* format,
                                    size_t capacity, char* buffer,
                                    size_t* out_length) {
  if (out_length != NULL) *out_length = 0;
  KILNI_CHECK_ARGUMENT(telemetry != NULL, "telemetry");
  KILNI_CHECK_ARGUMENT(buffer != NULL || capacity == 0, "buffer");
  kiln_telemetry_t t;
  kiln_telemetry_format_t given;
  KILNI_RETURN_IF_ERROR(KILNI_OPTIONS_READ(telemetry, kiln_telemetry_t, &t));
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(format, kiln_telemetry_format_t, &given));
  KILNI_CHECK_ARGUMENT(given.format <= KILN_TELEMETRY_JSON, "format.format");
  KILNI_RETURN_IF_ERROR(check_labels(&given));
  kilni_base_str_t text;
  kilni_base_str_init(
      &text, given.allocator != NULL ? *given.allocator : kiln_allocator_libc(),
      MAX_TEXT);
  writer_t writer = {&text, &given, ""};
  if (given.format == KILN_TELEMETRY_JSON) {
    telemetry_text_write_json(&writer, &t);
  } else {
    write_prometheus(&writer, &t);
  }
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    telemetry_text_hand_out(&text, capacity, buffer, out_length);
  }
  kilni_base_str_deinit(&text);
  return status;
}
