// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln doctor`: what this machine has, and what to do about the rest.
//
// Prints the library's fact sheet and adds nothing of its own. What is missing
// is a line in it, never a failure of the command.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli_command.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "kiln/runtime.h"

// A string that may hold what is no UTF-8.
static json_t* text_json(const char* text) {
  char clean[4096];
  if (text == NULL) return json_null();
  kilni_cli_copy_text(clean, sizeof(clean), text);
  return json_string(clean);
}

static void version_text(uint32_t version, char out[32]) {
  (void)snprintf(out, 32, "%" PRIu32 ".%" PRIu32, version / 1000,
                 version % 1000 / 10);
}

static json_t* version_json(uint32_t version) {
  char text[32];
  version_text(version, text);
  return version == 0 ? json_null() : json_string(text);
}

static json_t* maybe(const char* text) {
  return text == NULL || text[0] == 0 ? json_null() : text_json(text);
}

static json_t* driver_json(const kiln_probe_t* probe) {
  const kiln_probe_driver_t* d = kiln_probe_driver(probe);
  return json_pack("{s:b,s:b,s:o,s:o,s:o,s:o}", "found", d->found != 0, "works",
                   d->works != 0, "version", version_json(d->version),
                   "release", maybe(d->release), "path", maybe(d->path), "why",
                   maybe(d->why));
}

static json_t* devices_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_device_count(probe); ++i) {
    const kiln_probe_device_t* d = kiln_probe_device(probe, i);
    char compute[32];
    (void)snprintf(compute, sizeof(compute), "%" PRIu32 ".%" PRIu32,
                   d->compute_major, d->compute_minor);
    (void)json_array_append_new(
        list,
        json_pack("{s:s,s:s,s:o,s:s,s:I,s:I}", "name", d->name, "kind", "cuda",
                  "model", text_json(d->model), "compute", compute,
                  "multiprocessors", (json_int_t)d->multiprocessors,
                  "memory_bytes", (json_int_t)d->memory_bytes));
  }
  const kiln_probe_soft_t* soft = kiln_probe_soft(probe);
  (void)json_array_append_new(
      list, json_pack("{s:s,s:s,s:o,s:o,s:I,s:b,s:I}", "name", "soft", "kind",
                      "soft", "lanes", text_json(soft->lanes), "lanes_have",
                      text_json(soft->lanes_have), "workers",
                      (json_int_t)soft->workers, "page_check",
                      soft->page_check != 0, "seed", (json_int_t)soft->seed));
  return list;
}

static json_t* toolkits_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_toolkit_count(probe); ++i) {
    const kiln_probe_toolkit_t* t = kiln_probe_toolkit(probe, i);
    (void)json_array_append_new(
        list, json_pack("{s:o,s:o,s:o,s:o}", "root", text_json(t->root),
                        "include_dir", maybe(t->include_dir), "version",
                        maybe(t->version), "scope", text_json(t->scope)));
  }
  return list;
}

static json_t* libraries_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_library_count(probe); ++i) {
    const kiln_probe_library_t* l = kiln_probe_library(probe, i);
    json_t* tried = json_array();
    for (uint32_t j = 0; j < l->tried_count; ++j)
      (void)json_array_append_new(
          tried, json_pack("{s:o,s:o}", "path", text_json(l->tried[j].path),
                           "why", text_json(l->tried[j].why)));
    (void)json_array_append_new(
        list, json_pack("{s:s,s:b,s:o,s:o,s:o,s:o}", "name", l->name, "found",
                        l->found != 0, "path", maybe(l->path), "scope",
                        maybe(l->scope), "version", version_json(l->version),
                        "tried", tried));
  }
  return list;
}

static json_t* environment_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); ++i) {
    const kiln_probe_variable_t* v = kiln_probe_variable(probe, i);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:o,s:s,s:o,s:o}", "name", v->name, "value",
                        text_json(v->value), "type", v->type, "default",
                        text_json(v->fallback), "text", text_json(v->text)));
  }
  return list;
}

static json_t* problems_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); ++i) {
    const kiln_probe_problem_t* p = kiln_probe_problem(probe, i);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:s,s:o,s:o}", "id", p->id, "severity",
                        kiln_probe_severity_name(p->severity), "message",
                        text_json(p->message), "fix", maybe(p->fix)));
  }
  return list;
}

static void print_driver(FILE* out, const kiln_probe_t* probe) {
  const kiln_probe_driver_t* d = kiln_probe_driver(probe);
  char version[32];
  version_text(d->version, version);
  (void)fprintf(out, "driver\n");
  if (d->found == 0) {
    (void)fprintf(out, "  none: %s\n", d->why);
  } else {
    (void)fprintf(out, "  %s, CUDA %s%s%s\n", d->path,
                  d->version == 0 ? "?" : version,
                  d->release[0] != 0 ? ", release " : "", d->release);
    if (d->works == 0) (void)fprintf(out, "  does not work: %s\n", d->why);
  }
  (void)fprintf(out, "devices\n");
  for (uint32_t i = 0; i < kiln_probe_device_count(probe); ++i) {
    const kiln_probe_device_t* g = kiln_probe_device(probe, i);
    (void)fprintf(out,
                  "  %s: %s, compute capability %" PRIu32 ".%" PRIu32
                  ", %" PRIu32 " multiprocessors, %" PRIu64 " MiB\n",
                  g->name, g->model, g->compute_major, g->compute_minor,
                  g->multiprocessors, g->memory_bytes >> 20);
  }
  const kiln_probe_soft_t* s = kiln_probe_soft(probe);
  (void)fprintf(out,
                "  soft: the software device, lanes %s (this CPU has %s), "
                "%" PRIu32 " workers\n",
                s->lanes, s->lanes_have, s->workers);
}

static void print_libraries(FILE* out, const kiln_probe_t* probe) {
  (void)fprintf(out, "toolkits\n");
  for (uint32_t i = 0; i < kiln_probe_toolkit_count(probe); ++i) {
    const kiln_probe_toolkit_t* t = kiln_probe_toolkit(probe, i);
    (void)fprintf(out, "  %s%s%s (by %s)\n", t->root,
                  t->version[0] != 0 ? ", CUDA " : "", t->version, t->scope);
  }
  if (kiln_probe_toolkit_count(probe) == 0) (void)fprintf(out, "  none\n");
  (void)fprintf(out, "libraries\n");
  for (uint32_t i = 0; i < kiln_probe_library_count(probe); ++i) {
    const kiln_probe_library_t* l = kiln_probe_library(probe, i);
    char version[32];
    version_text(l->version, version);
    if (l->found != 0) {
      (void)fprintf(out, "  %s %s: %s (by %s)\n", l->name, version, l->path,
                    l->scope);
    } else {
      (void)fprintf(out, "  %s: not found\n", l->name);
    }
    for (uint32_t j = 0; j < l->tried_count; ++j)
      (void)fprintf(out, "    tried %s: %s\n", l->tried[j].path,
                    l->tried[j].why);
  }
}

static void print_rest(FILE* out, const kiln_probe_t* probe) {
  (void)fprintf(out, "environment\n");
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); ++i) {
    const kiln_probe_variable_t* v = kiln_probe_variable(probe, i);
    if (v->value != NULL) (void)fprintf(out, "  %s=%s\n", v->name, v->value);
  }
  uint32_t count = kiln_probe_problem_count(probe);
  (void)fprintf(out, "problems\n");
  if (count == 0) (void)fprintf(out, "  none\n");
  for (uint32_t i = 0; i < count; ++i) {
    const kiln_probe_problem_t* p = kiln_probe_problem(probe, i);
    (void)fprintf(out, "  %s %s: %s\n", kiln_probe_severity_name(p->severity),
                  p->id, p->message);
    if (p->fix != NULL && p->fix[0] != 0)
      (void)fprintf(out, "    Fix: %s\n", p->fix);
  }
}

static bool run_doctor(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  kiln_runtime_t* runtime = NULL;
  kiln_probe_t* probe = NULL;
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "looking at this machine");
  bool ok = kilni_cli_check(error, kiln_runtime_create(NULL, &runtime)) &&
            kilni_cli_check(error, kiln_runtime_probe(runtime, NULL, &probe));
  kilni_cli_progress_stop(&progress);
  if (ok && call->json) {
    ok = kilni_cli_json_write(
        call->results,
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "driver", driver_json(probe),
                  "devices", devices_json(probe), "toolkits",
                  toolkits_json(probe), "libraries", libraries_json(probe),
                  "environment", environment_json(probe), "problems",
                  problems_json(probe)),
        error);
  } else if (ok) {
    print_driver(call->results, probe);
    print_libraries(call->results, probe);
    print_rest(call->results, probe);
  }
  kiln_probe_release(probe);
  kiln_runtime_release(runtime);
  return ok;
}

static const kilni_cli_option_t OPTIONS[] = {
    {"json", NULL, "Write the facts, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_doctor = {
    "doctor",
    "",
    "Say what this machine has for CUDA, what is missing, and what to do.",
    "It looks at the driver, the GPUs, toolkits, NVRTC, the software device "
    "and the environment, and says of each where it was found or what was "
    "tried. Problems come last, each with its fix.\n"
    "The exit code is 0 also when there are problems: the report is the work, "
    "and it was done. Scripts read \"severity\" in the JSON.",
    OPTIONS,
    sizeof(OPTIONS) / sizeof(OPTIONS[0]),
    0,
    0,
    NULL,
    "kiln doctor --json",
    run_doctor,
};
