// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln top`: what the GPUs are doing, updated periodically.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli_report.h"
#include "cli/top_report.h"
#include "cli/top_screen.h"
#include "cli/cli_command.h"
#include "kiln/device.h"
#include "kiln/runtime.h"
#include "kiln/watch.h"

enum { STAMP_BYTES = 32, LEAST_MS = 100, MOST_SECONDS = 86400 };

// How it was called. one-thread
typedef struct top_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  int interval_ms;
  uint64_t count;  // pages; 0: until the user ends it
  kiln_runtime_t* runtime;
  kilni_cli_top_view_t view;
  char stamp[STAMP_BYTES];
} top_t;

static bool read_interval(top_t* top) {
  const char* text = kilni_cli_option_value(top->call, "interval");
  char* end = NULL;
  top->interval_ms = 1000;
  if (text == NULL) return true;
  double seconds = strtod(text, &end);
  if (end == text || *end != 0 ||
      !(seconds * 1000.0 >= (double)LEAST_MS && seconds <= MOST_SECONDS)) {
    return kilni_cli_fail(top->error, KILN_STATUS_INVALID_ARGUMENT,
                          "give a number of seconds from 0.1 to 86400",
                          "--interval \"%s\" is not a number from 0.1 to "
                          "86400",
                          text);
  }
  top->interval_ms = (int)(seconds * 1000.0);
  return true;
}

static bool read_count(top_t* top) {
  const char* text = kilni_cli_option_value(top->call, "count");
  char* end = NULL;
  top->count = 0;
  if (text == NULL) return true;
  unsigned long long count = strtoull(text, &end, 10);
  if (text[0] < '1' || text[0] > '9' || *end != 0 || count > UINT32_MAX) {
    return kilni_cli_fail(top->error, KILN_STATUS_INVALID_ARGUMENT,
                          "give a number of at least 1",
                          "--count \"%s\" is not a number of pages", text);
  }
  top->count = count;
  return true;
}

static bool cmd_top_open_all(top_t* top) {
  kiln_watch_options_t options = kiln_watch_options_default();
  options.pcie_traffic = KILN_SWITCH_ON;
  if (!kilni_cli_check(top->error, kiln_runtime_create(NULL, &top->runtime)) ||
      !kilni_cli_check(top->error, kiln_runtime_watch(top->runtime, &options,
                                                      &top->view.watch))) {
    return false;
  }
  // Facts that are unavailable do not keep the others from being shown.
  kiln_status_t status =
      kiln_runtime_open_device(top->runtime, "soft", &top->view.soft);
  kiln_status_free(status);
  return true;
}

static void close_all(top_t* top) {
  kiln_device_release(top->view.soft);
  kiln_watch_close(top->view.watch);
  kiln_runtime_release(top->runtime);
}

static void stamp(top_t* top) {
  time_t now = time(NULL);
  struct tm local;
  top->stamp[0] = 0;
  if (localtime_r(&now, &local) != NULL) {
    (void)strftime(top->stamp, sizeof(top->stamp), "%Y-%m-%d %H:%M:%S", &local);
  }
  top->view.stamp = top->stamp;
}

static bool cmd_top_sample(top_t* top, uint64_t page) {
  stamp(top);
  if (page == 0) return true;  // made with one
  return kilni_cli_check(top->error, kiln_watch_sample(top->view.watch));
}

// ---- Page after page, as text or JSON ----

static bool print_page(top_t* top) {
  FILE* out = top->call->results;
  if (top->call->json) {
    return kilni_cli_json_write(out, kilni_cli_top_json(&top->view),
                                top->error);
  }
  kilni_cli_top_print(out, &top->view);
  return kilni_cli_results_flush(out, top->error);
}

static bool print_pages(top_t* top, uint64_t count) {
  for (uint64_t page = 0; page < count; page++) {
    if (page > 0) (void)poll(NULL, 0, top->interval_ms);
    if (!cmd_top_sample(top, page) || !print_page(top)) return false;
    if (page + 1 < count && !top->call->json) {
      (void)fprintf(top->call->results, "\n");
    }
  }
  return true;
}

// ---- On a terminal ----

static bool show_page(top_t* top, const kilni_cli_screen_t* screen,
                      bool* out_seen) {
  char* text = NULL;
  size_t size = 0;
  *out_seen = true;
  FILE* memory = open_memstream(&text, &size);
  if (memory == NULL) {
    return kilni_cli_fail(top->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "out of memory");
  }
  kilni_cli_top_print(memory, &top->view);
  (void)fprintf(memory, "q ends\n");
  bool whole = fclose(memory) == 0;
  if (whole) *out_seen = kilni_cli_screen_show(screen, text);
  free(text);
  return whole || kilni_cli_fail(top->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                                 "out of memory");
}

// A new size redraws the page at once, from the same sample.
static bool show_pages(top_t* top, kilni_cli_screen_t* screen,
                       int* out_signal) {
  *out_signal = 0;
  for (uint64_t page = 0; top->count == 0 || page < top->count; page++) {
    kilni_cli_event_t event = KILNI_CLI_EVENT_SIZE;
    if (!cmd_top_sample(top, page)) return false;
    while (event == KILNI_CLI_EVENT_SIZE) {
      bool seen;
      if (!show_page(top, screen, &seen)) return false;
      if (!seen) return true;
      event = kilni_cli_screen_wait(screen, top->interval_ms, out_signal);
    }
    if (event != KILNI_CLI_EVENT_TIME) return true;
  }
  return true;
}

static bool run_on_screen(top_t* top) {
  kilni_cli_screen_t screen;
  int signal = 0;
  kilni_cli_screen_hold(&screen);
  bool ok = cmd_top_open_all(top);
  if (ok) {
    kilni_cli_screen_open(&screen, top->call->results);
    ok = show_pages(top, &screen, &signal);
    kilni_cli_screen_close(&screen);
  }
  kilni_cli_screen_let_go(&screen);
  // The sender sees the command end by this signal, as if it had not waited.
  if (signal != 0) (void)raise(signal);
  return ok;
}

static bool run_top(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  top_t top;
  memset(&top, 0, sizeof(top));
  top.call = call;
  top.error = error;
  bool once = kilni_cli_option_value(call, "once") != NULL;
  bool ok = read_interval(&top) && read_count(&top);
  if (ok && !once && !call->json && kilni_cli_screen_is_one(call->results)) {
    ok = run_on_screen(&top);
  } else if (ok) {
    ok = cmd_top_open_all(&top) &&
         print_pages(&top, once || top.count == 0 ? 1 : top.count);
  }
  close_all(&top);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"once", NULL, "Print one page and exit, even on a terminal.", false, NULL},
    {"interval", "S", "Update every S seconds. Default: 1.", false, NULL},
    {"count", "N",
     "Exit after N pages. Default: on a terminal at `q`, elsewhere after one.",
     false, NULL},
    {"json", NULL, "Write each page, or the error, as JSON: one object each.",
     false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_top = {
    "top",
    "",
    "Show what the GPUs are doing: memory, load, power, clocks, links, "
    "processes.",
    "On a terminal the page is updated until `q` or Ctrl-C, and the terminal "
    "is then restored; elsewhere one page is printed. What a GPU does not "
    "report is a question mark.\nThe data comes from NVML, a part of the "
    "driver, and costs the GPUs nothing: no context is created. GPUs are "
    "numbered in the order of their addresses, whatever CUDA_VISIBLE_DEVICES "
    "contains. A program's memory pools are known to that program alone; "
    "their memory counts as in use by its process. A machine without a GPU is "
    "not an error: the page states why none is seen.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    0,
    0,
    NULL,
    "kiln top --once",
    run_top,
};
