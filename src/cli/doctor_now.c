// SPDX-License-Identifier: Apache-2.0
//
// cli: what `kiln doctor` reports about GPUs at this moment: temperature,
// power, clocks. What NVML does not report is omitted.
#include <inttypes.h>
#include <string.h>

#include "cli/cli_error.h"
#include "cli/doctor_report.h"

enum { NAME_BYTES = 96 };

static const uint32_t kMetrics[] = {KILN_WATCH_TEMPERATURE,
                                    KILN_WATCH_TEMPERATURE_SLOWDOWN,
                                    KILN_WATCH_POWER,
                                    KILN_WATCH_POWER_LIMIT,
                                    KILN_WATCH_CLOCK_SM,
                                    KILN_WATCH_CLOCK_SM_MAX,
                                    KILN_WATCH_CLOCK_MEMORY,
                                    KILN_WATCH_CLOCK_MEMORY_MAX,
                                    KILN_WATCH_PERFORMANCE_STATE};

// "A" or, where there is a second number, "A of B".
static void pair(const kiln_watch_t* watch, uint32_t device,
                 const uint32_t metrics[2], int64_t divisor, const char* what,
                 const char* unit, FILE* out, const char** comma) {
  int64_t first = 0;
  int64_t second = 0;
  if (!kiln_watch_value(watch, device, metrics[0], &first)) return;
  (void)fprintf(out, "%s%s%" PRId64, *comma, what,
                (first + divisor / 2) / divisor);
  if (kiln_watch_value(watch, device, metrics[1], &second)) {
    (void)fprintf(out, " of %" PRId64, (second + divisor / 2) / divisor);
  }
  (void)fprintf(out, " %s", unit);
  *comma = ", ";
}

// The UUID, made safe for a terminal.
static void doctor_now_put_name(FILE* out, const kiln_watch_device_t* device) {
  char name[NAME_BYTES];
  kilni_cli_copy_text(name, sizeof(name),
                      device->uuid[0] != 0 ? device->uuid : device->model);
  (void)fprintf(out, "%s: ", name);
}

static void print_one(FILE* out, const kiln_watch_t* watch, uint32_t device) {
  static const uint32_t power[] = {KILN_WATCH_POWER, KILN_WATCH_POWER_LIMIT};
  static const uint32_t sm[] = {KILN_WATCH_CLOCK_SM, KILN_WATCH_CLOCK_SM_MAX};
  static const uint32_t memory[] = {KILN_WATCH_CLOCK_MEMORY,
                                    KILN_WATCH_CLOCK_MEMORY_MAX};
  const char* comma = "";
  int64_t number = 0;
  if (kiln_watch_value(watch, device, KILN_WATCH_TEMPERATURE, &number)) {
    (void)fprintf(out, "%" PRId64 " C", number);
    if (kiln_watch_value(watch, device, KILN_WATCH_TEMPERATURE_SLOWDOWN,
                         &number)) {
      (void)fprintf(out, " (slower from %" PRId64 " C)", number);
    }
    comma = ", ";
  }
  pair(watch, device, power, 1000, "", "W", out, &comma);
  pair(watch, device, sm, 1, "SM ", "MHz", out, &comma);
  pair(watch, device, memory, 1, "memory ", "MHz", out, &comma);
  if (kiln_watch_value(watch, device, KILN_WATCH_PERFORMANCE_STATE, &number)) {
    (void)fprintf(out, "%sstate P%" PRId64, comma, number);
    comma = ", ";
  }
  (void)fputs(comma[0] != 0 ? "\n" : "nothing is known\n", out);
}

void kilni_cli_now_print(FILE* out, const kiln_watch_t* watch, int indent) {
  const char* name = "now";
  for (uint32_t i = 0; watch != NULL && i < kiln_watch_device_count(watch);
       i++) {
    (void)fprintf(out, "%-*s", indent, name);
    doctor_now_put_name(out, kiln_watch_device(watch, i));
    print_one(out, watch, i);
    name = "";
  }
}

static json_t* doctor_now_text_or_empty(const char* text) {
  json_t* string = json_string(text);
  return string != NULL ? string : json_string("?");  // no UTF-8
}

json_t* kilni_cli_now_json(const kiln_watch_t* watch) {
  json_t* list = json_array();
  for (uint32_t i = 0; watch != NULL && i < kiln_watch_device_count(watch);
       i++) {
    const kiln_watch_device_t* device = kiln_watch_device(watch, i);
    json_t* values = json_object();
    for (size_t m = 0; m < sizeof(kMetrics) / sizeof(kMetrics[0]); m++) {
      int64_t number = 0;
      if (kiln_watch_value(watch, i, kMetrics[m], &number)) {
        (void)json_object_set_new(values, kiln_watch_metric_name(kMetrics[m]),
                                  json_integer(number));
      }
    }
    (void)json_array_append_new(
        list,
        json_pack("{s:o,s:o,s:o}", "uuid",
                  doctor_now_text_or_empty(device->uuid), "address",
                  doctor_now_text_or_empty(device->address), "values", values));
  }
  return list;
}
