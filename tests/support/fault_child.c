// SPDX-License-Identifier: Apache-2.0
//
// support: fault_run with each run in a process of its own.
#define _POSIX_C_SOURCE 200809L
#include "fault_child.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status_make.h"

// What a child says of its run. thread-compatible
typedef struct report_t {
  uint64_t met;
  bool ok;
  bool wrong;
  char text[512];
} report_t;

// The run that is asked for, and what came of the last one. one-thread
typedef struct child_t {
  const fault_points_t* points;
  fault_body_t body;
  void* user;
  uint64_t nth;
  bool from_on;
  report_t report;
} child_t;

static void run_in_child(const child_t* child, report_t* report) {
  const fault_points_t* points = child->points;
  points->arm(points->user, child->nth, child->from_on);
  kiln_status_t status = child->body(child->user);
  report->met = points->disarm(points->user);
  report->ok = kiln_status_is_ok(status);
  if (!report->ok) {
    kiln_status_format(status, sizeof(report->text), report->text, NULL);
  }
  report->wrong = kiln_status_code(status) == KILN_STATUS_INTERNAL;
  kiln_status_free(status);
  const char* problem =
      points->problem != NULL ? points->problem(points->user) : NULL;
  if (problem == NULL) return;
  report->wrong = true;
  snprintf(report->text, sizeof(report->text), "%s", problem);
}

static void fail(report_t* report, const char* text) {
  report->wrong = true;
  snprintf(report->text, sizeof(report->text), "%s", text);
}

static kiln_status_t run(void* user) {
  child_t* child = user;
  report_t* report = &child->report;
  memset(report, 0, sizeof(*report));
  int ends[2];
  fflush(NULL);
  if (pipe(ends) != 0) return fail(report, "no pipe"), NULL;
  pid_t process = fork();
  if (process == 0) {
    run_in_child(child, report);
    bool told =
        write(ends[1], report, sizeof(*report)) == (ssize_t)sizeof(*report);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  ssize_t got = read(ends[0], report, sizeof(*report));
  close(ends[0]);
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process ||
      got != (ssize_t)sizeof(*report) || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0) {
    fail(report, "the child ended without a report");
  }
  if (report->ok) return kiln_ok();
  return kilni_base_status_make(KILN_STATUS_IO_ERROR, "test", __FILE__,
                                __LINE__, "%s", report->text);
}

static void arm(void* user, uint64_t nth, bool from_on) {
  child_t* child = user;
  child->nth = nth;
  child->from_on = from_on;
}

static uint64_t disarm(void* user) {
  return ((const child_t*)user)->report.met;
}

static const char* problem(void* user) {
  const child_t* child = user;
  return child->report.wrong ? child->report.text : NULL;
}

uint64_t fault_run_in_children(const fault_points_t* points, fault_body_t body,
                               void* user, uint32_t flags) {
  child_t child = {.points = points, .body = body, .user = user};
  fault_points_t own = {points->name, arm, disarm, problem, &child};
  return fault_run(&own, run, &child, flags);
}
