// SPDX-License-Identifier: Apache-2.0
//
// cli: the pages of `kiln top`: one line for the GPU itself, one for each kind
// of activity, then its processes.
#include "cli/top_report.h"
#include "kiln/device.h"
#include "kiln/watch.h"

#include <inttypes.h>
#include <string.h>

enum { WORD_BYTES = 32, BAR_CELLS = 20, NAME_BYTES = 160 };

// Names are untrusted; a terminal would obey an escape in them.
static const char* top_report_plain(const char* text, char* out) {
  size_t at = 0;
  for (; text[at] != 0 && at + 1 < NAME_BYTES; at++) {
    unsigned char c = (unsigned char)text[at];
    out[at] = c < 32 || c == 127 ? '?' : (char)c;
  }
  out[at] = 0;
  return out;
}

static bool value(const kilni_cli_top_view_t* view, uint32_t device,
                  uint32_t metric, int64_t* out) {
  return kiln_watch_value(view->watch, device, metric, out);
}

// A number of bytes as "12.3 GiB"; "?" where it is not known.
static const char* bytes_text(bool known, uint64_t bytes, char* out) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double size = (double)bytes;
  size_t unit = 0;
  while (size >= 1024.0 && unit < 4) {
    size /= 1024.0;
    unit++;
  }
  if (!known) {
    (void)snprintf(out, WORD_BYTES, "?");
  } else {
    (void)snprintf(out, WORD_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", size,
                   kUnits[unit]);
  }
  return out;
}

static const char* number_text(bool known, int64_t number, char* out) {
  if (known) {
    (void)snprintf(out, WORD_BYTES, "%" PRId64, number);
  } else {
    (void)snprintf(out, WORD_BYTES, "?");
  }
  return out;
}

// A number as the view has it.
static const char* metric_text(const kilni_cli_top_view_t* view,
                               uint32_t device, uint32_t metric, char* out) {
  int64_t number = 0;
  bool known = value(view, device, metric, &number);
  return number_text(known, number, out);
}

// Milliwatts as watts.
static const char* watts_text(const kilni_cli_top_view_t* view, uint32_t device,
                              uint32_t metric, char* out) {
  int64_t number = 0;
  bool known = value(view, device, metric, &number);
  return number_text(known, (number + 500) / 1000, out);
}

static void print_bar(FILE* out, bool known, int64_t part, int64_t whole) {
  char bar[BAR_CELLS + 1];
  int64_t full = known && whole > 0 ? part * BAR_CELLS / whole : 0;
  for (int64_t i = 0; i < BAR_CELLS; i++) bar[i] = i < full ? '#' : '.';
  bar[BAR_CELLS] = 0;
  (void)fprintf(out, "[%s]", bar);
}

// ---- One device ----

static void print_name(FILE* out, const kilni_cli_top_view_t* view,
                       uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  char major[WORD_BYTES];
  char minor[WORD_BYTES];
  char model[NAME_BYTES];
  if (d->parent != KILN_WATCH_NO_PARENT) {
    (void)fprintf(out,
                  "  MIG %" PRIu32 "  %s  instance %" PRIu32 ".%" PRIu32
                  "  %s multiprocessors  %s\n",
                  d->index, top_report_plain(d->model, model), d->gpu_instance,
                  d->compute_instance,
                  metric_text(view, device, KILN_WATCH_MULTIPROCESSORS, major),
                  d->uuid);
    return;
  }
  (void)fprintf(
      out, "GPU %" PRIu32 "  %s  compute %s.%s  %s  %s\n", d->index,
      d->model[0] != 0 ? top_report_plain(d->model, model) : "(no name)",
      metric_text(view, device, KILN_WATCH_COMPUTE_MAJOR, major),
      metric_text(view, device, KILN_WATCH_COMPUTE_MINOR, minor), d->address,
      d->uuid);
}

static void print_memory(FILE* out, const kilni_cli_top_view_t* view,
                         uint32_t device) {
  char used_text[WORD_BYTES];
  char total_text[WORD_BYTES];
  char free_text[WORD_BYTES];
  int64_t used = 0;
  int64_t total = 0;
  int64_t unused = 0;
  bool has_used = value(view, device, KILN_WATCH_MEMORY_USED, &used);
  bool has_total = value(view, device, KILN_WATCH_MEMORY_TOTAL, &total);
  bool has_free = value(view, device, KILN_WATCH_MEMORY_FREE, &unused);
  (void)fprintf(out, "  memory ");
  print_bar(out, has_used && has_total, used, total);
  (void)fprintf(out, " %s of %s, %s free\n",
                bytes_text(has_used, (uint64_t)used, used_text),
                bytes_text(has_total, (uint64_t)total, total_text),
                bytes_text(has_free, (uint64_t)unused, free_text));
}

static void top_report_print_work(FILE* out, const kilni_cli_top_view_t* view,
                                  uint32_t device) {
  char word[4][WORD_BYTES];
  int64_t percent = 0;
  bool known = value(view, device, KILN_WATCH_UTILIZATION, &percent);
  (void)fprintf(out, "  busy   ");
  print_bar(out, known, percent, 100);
  (void)fprintf(
      out, " %s %%, memory %s %%, encoder %s %%, decoder %s %%\n",
      number_text(known, percent, word[0]),
      metric_text(view, device, KILN_WATCH_MEMORY_UTILIZATION, word[1]),
      metric_text(view, device, KILN_WATCH_ENCODER, word[2]),
      metric_text(view, device, KILN_WATCH_DECODER, word[3]));
}

static void print_heat(FILE* out, const kilni_cli_top_view_t* view,
                       uint32_t device) {
  char word[6][WORD_BYTES];
  int64_t bits = 0;
  bool known = value(view, device, KILN_WATCH_THROTTLE, &bits);
  const char* why =
      known ? kiln_watch_throttle_text(view->watch, bits) : "not known";
  (void)fprintf(
      out,
      "  power  %s of %s W, %s C (slower from %s C), state P%s, fan %s %%\n",
      watts_text(view, device, KILN_WATCH_POWER, word[0]),
      watts_text(view, device, KILN_WATCH_POWER_LIMIT, word[1]),
      metric_text(view, device, KILN_WATCH_TEMPERATURE, word[2]),
      metric_text(view, device, KILN_WATCH_TEMPERATURE_SLOWDOWN, word[3]),
      metric_text(view, device, KILN_WATCH_PERFORMANCE_STATE, word[4]),
      metric_text(view, device, KILN_WATCH_FAN, word[5]));
  (void)fprintf(out, "  clocks SM %s of %s MHz, memory %s of %s MHz%s%s\n",
                metric_text(view, device, KILN_WATCH_CLOCK_SM, word[0]),
                metric_text(view, device, KILN_WATCH_CLOCK_SM_MAX, word[1]),
                metric_text(view, device, KILN_WATCH_CLOCK_MEMORY, word[2]),
                metric_text(view, device, KILN_WATCH_CLOCK_MEMORY_MAX, word[3]),
                why[0] != 0 ? ", limited by: " : "", why);
}

static void print_bus(FILE* out, const kilni_cli_top_view_t* view,
                      uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  char word[6][WORD_BYTES];
  int64_t sent = 0;
  int64_t received = 0;
  bool has_sent = value(view, device, KILN_WATCH_PCIE_SENT, &sent);
  bool has_received = value(view, device, KILN_WATCH_PCIE_RECEIVED, &received);
  (void)fprintf(
      out,
      "  links  PCIe %s x%s, out %s/s, in %s/s; NVLink %s of %" PRIu32 "\n",
      metric_text(view, device, KILN_WATCH_PCIE_GENERATION, word[0]),
      metric_text(view, device, KILN_WATCH_PCIE_LANES, word[1]),
      bytes_text(has_sent, (uint64_t)sent * 1024, word[2]),
      bytes_text(has_received, (uint64_t)received * 1024, word[3]),
      metric_text(view, device, KILN_WATCH_NVLINKS, word[4]), d->link_count);
}

static void print_processes(FILE* out, const kilni_cli_top_view_t* view,
                            uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  for (uint32_t i = 0; i < d->process_count; i++) {
    const kiln_watch_process_t* p = kiln_watch_process(view->watch, device, i);
    char used[WORD_BYTES];
    char percent[WORD_BYTES];
    char name[NAME_BYTES];
    (void)fprintf(out, "  %8" PRIu32 "  %c%c%c  %10s  %3s %%  %s\n", p->pid,
                  (p->kinds & KILN_WATCH_PROCESS_COMPUTE) != 0 ? 'C' : '-',
                  (p->kinds & KILN_WATCH_PROCESS_GRAPHICS) != 0 ? 'G' : '-',
                  (p->kinds & KILN_WATCH_PROCESS_MPS) != 0 ? 'M' : '-',
                  bytes_text(p->used_bytes != UINT64_MAX, p->used_bytes, used),
                  number_text(p->percent >= 0, p->percent, percent),
                  p->name[0] != 0 ? top_report_plain(p->name, name) : "?");
  }
}

static void print_soft(FILE* out, const kilni_cli_top_view_t* view) {
  char total[WORD_BYTES];
  if (view->soft == NULL) return;
  const kiln_device_info_t* info = kiln_device_info(view->soft);
  (void)fprintf(out,
                "soft   %s  compute %" PRIu32 ".%" PRIu32
                "  %s of memory, in each process its own\n",
                info->model, info->compute_major, info->compute_minor,
                bytes_text(true, info->memory_bytes, total));
}

void kilni_cli_top_print(FILE* out, const kilni_cli_top_view_t* view) {
  uint32_t count = kiln_watch_device_count(view->watch);
  uint32_t version = kiln_watch_driver_version(view->watch);
  const char* release = kiln_watch_release(view->watch);
  (void)fprintf(out, "kiln top  %s", view->stamp);
  if (release[0] != 0) (void)fprintf(out, "  driver %s", release);
  if (version != 0) {
    (void)fprintf(out, "  CUDA %" PRIu32 ".%" PRIu32, version / 1000,
                  version % 1000 / 10);
  }
  (void)fprintf(out, "\n");
  for (uint32_t i = 0; i < count; i++) {
    print_name(out, view, i);
    print_memory(out, view, i);
    if (kiln_watch_device(view->watch, i)->parent == KILN_WATCH_NO_PARENT) {
      top_report_print_work(out, view, i);
      print_heat(out, view, i);
      print_bus(out, view, i);
    }
    print_processes(out, view, i);
  }
  if (count == 0) {
    (void)fprintf(out, "no GPU is visible: %s\n", kiln_watch_why(view->watch));
    const char* fix = kiln_watch_fix(view->watch);
    if (fix[0] != 0) (void)fprintf(out, "Fix: %s\n", fix);
  }
  print_soft(out, view);
}

// ---- JSON ----

// Of invalid UTF-8, the ASCII part is shown.
static json_t* name_json(const char* text) {
  json_t* string = json_string(text);
  if (string != NULL) return string;
  char ascii[NAME_BYTES];
  (void)top_report_plain(text, ascii);
  for (char* at = ascii; *at != 0; at++) {
    if ((unsigned char)*at > 126) *at = '?';
  }
  return json_string(ascii);
}

static json_t* values_json(const kilni_cli_top_view_t* view, uint32_t device) {
  json_t* object = json_object();
  for (uint32_t m = 0; m < KILN_WATCH_METRICS; m++) {
    int64_t number = 0;
    bool known = value(view, device, m, &number);
    (void)json_object_set_new(object, kiln_watch_metric_name(m),
                              known ? json_integer(number) : json_null());
  }
  return object;
}

static json_t* processes_json(const kilni_cli_top_view_t* view,
                              uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  json_t* list = json_array();
  for (uint32_t i = 0; i < d->process_count; i++) {
    const kiln_watch_process_t* p = kiln_watch_process(view->watch, device, i);
    json_t* kinds = json_array();
    if ((p->kinds & KILN_WATCH_PROCESS_COMPUTE) != 0) {
      (void)json_array_append_new(kinds, json_string("compute"));
    }
    if ((p->kinds & KILN_WATCH_PROCESS_GRAPHICS) != 0) {
      (void)json_array_append_new(kinds, json_string("graphics"));
    }
    if ((p->kinds & KILN_WATCH_PROCESS_MPS) != 0) {
      (void)json_array_append_new(kinds, json_string("mps"));
    }
    (void)json_array_append_new(
        list,
        json_pack("{s:I,s:o,s:o,s:o,s:o}", "pid", (json_int_t)p->pid, "name",
                  name_json(p->name), "kinds", kinds, "memory_used",
                  p->used_bytes == UINT64_MAX
                      ? json_null()
                      : json_integer((json_int_t)p->used_bytes),
                  "percent",
                  p->percent < 0 ? json_null() : json_integer(p->percent)));
  }
  return list;
}

static json_t* links_json(const kilni_cli_top_view_t* view, uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  json_t* list = json_array();
  for (uint32_t i = 0; i < d->link_count; i++) {
    const kiln_watch_link_t* l = kiln_watch_link(view->watch, device, i);
    (void)json_array_append_new(
        list, json_pack("{s:b,s:I,s:s,s:s,s:b}", "active", l->active, "version",
                        (json_int_t)l->version, "leads_to",
                        kiln_watch_link_name(l->leads_to), "remote", l->remote,
                        "peer", l->peer));
  }
  return list;
}

static json_t* device_json(const kilni_cli_top_view_t* view, uint32_t device) {
  const kiln_watch_device_t* d = kiln_watch_device(view->watch, device);
  bool mig = d->parent != KILN_WATCH_NO_PARENT;
  int64_t bits = 0;
  bool known = value(view, device, KILN_WATCH_THROTTLE, &bits);
  return json_pack("{s:s,s:I,s:o,s:o,s:s,s:s,s:s?,s:o,s:o,s:o}", "kind",
                   mig ? "mig" : "gpu", "index", (json_int_t)d->index, "parent",
                   mig ? json_integer((json_int_t)d->parent) : json_null(),
                   "model", name_json(d->model), "uuid", d->uuid, "address",
                   d->address, "throttled_by",
                   known ? kiln_watch_throttle_text(view->watch, bits) : NULL,
                   "values", values_json(view, device), "processes",
                   processes_json(view, device), "links",
                   links_json(view, device));
}

// The distances between GPUs.
static json_t* paths_json(const kilni_cli_top_view_t* view) {
  json_t* list = json_array();
  uint32_t count = kiln_watch_device_count(view->watch);
  for (uint32_t a = 0; a < count; a++) {
    for (uint32_t b = a + 1; b < count; b++) {
      int32_t peer = -1;
      if (kiln_watch_device(view->watch, a)->parent != KILN_WATCH_NO_PARENT ||
          kiln_watch_device(view->watch, b)->parent != KILN_WATCH_NO_PARENT) {
        continue;
      }
      uint32_t path = kiln_watch_path(view->watch, a, b, &peer);
      (void)json_array_append_new(
          list, json_pack("{s:I,s:I,s:s,s:o}", "from", (json_int_t)a, "to",
                          (json_int_t)b, "path", kiln_watch_path_name(path),
                          "peer", peer < 0 ? json_null() : json_boolean(peer)));
    }
  }
  return list;
}

static json_t* soft_json(const kilni_cli_top_view_t* view) {
  if (view->soft == NULL) return json_null();
  const kiln_device_info_t* info = kiln_device_info(view->soft);
  return json_pack("{s:s,s:I}", "model", info->model, "memory_bytes",
                   (json_int_t)info->memory_bytes);
}

json_t* kilni_cli_top_json(const kilni_cli_top_view_t* view) {
  uint32_t count = kiln_watch_device_count(view->watch);
  const char* release = kiln_watch_release(view->watch);
  json_t* devices = json_array();
  for (uint32_t i = 0; i < count; i++) {
    (void)json_array_append_new(devices, device_json(view, i));
  }
  json_t* problem =
      count > 0 ? json_null()
                : json_pack("{s:s,s:s}", "message", kiln_watch_why(view->watch),
                            "fix", kiln_watch_fix(view->watch));
  return json_pack("{s:s,s:s?,s:I,s:o,s:o,s:o,s:o}", "time", view->stamp,
                   "driver_release", release[0] != 0 ? release : NULL,
                   "driver_version",
                   (json_int_t)kiln_watch_driver_version(view->watch),
                   "devices", devices, "paths", paths_json(view), "software",
                   soft_json(view), "problem", problem);
}
