// SPDX-License-Identifier: Apache-2.0
//
// probe: what is wrong, drawn from the facts, each with what to do.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/debug_assert.h"
#include "base/status_make.h"
#include "probe/probe_sheet.h"
#include "table/nvrtc_table.h"

enum { MESSAGE_BYTES = 2048 };

kiln_status_t kilni_probe_add_problem(kiln_probe_t* probe, const char* id,
                                      uint32_t severity, const char* fix,
                                      const char* format, ...) {
  char message[MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->problems, &item));
  kiln_probe_problem_t* problem = item;
  problem->id = id;
  problem->severity = severity;
  problem->message = "";
  problem->fix = "";
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, message, &problem->message));
  return kilni_probe_text(probe, fix, &problem->fix);
}

const char* kilni_probe_shell_word(const char* path, size_t capacity,
                                   char* out_word) {
  KILNI_ASSERT(capacity >= 4);
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_@%+=:,./-";
  size_t size = 0;
  if (strspn(path, plain) == strlen(path)) return path;
  out_word[size++] = '\'';
  for (; *path != 0; path++) {
    const char* text = *path == '\'' ? "'\\''" : path;
    size_t bytes = *path == '\'' ? 4 : 1;
    if (size + bytes + 2 > capacity) break;
    memcpy(out_word + size, text, bytes);
    size += bytes;
  }
  out_word[size++] = '\'';
  out_word[size] = 0;
  return out_word;
}

static kiln_status_t about_driver(kiln_probe_t* probe,
                                  const kilni_probe_source_t* source) {
  if (source->table != NULL) return kiln_ok();
  kiln_status_t status = source->driver_status;
  bool absent = kiln_status_code(status) == KILN_STATUS_NOT_FOUND;
  // No driver is the normal state of a machine without a GPU.
  return kilni_probe_add_problem(
      probe, absent ? "driver-not-found" : "driver-not-usable",
      absent ? KILN_PROBE_SEVERITY_NOTE : KILN_PROBE_SEVERITY_WARNING,
      kiln_status_fix(status), "%s", kiln_status_message(status));
}

static bool nvrtc_was_named(const kiln_probe_t* probe) {
  return !probe->hermetic &&
         kilni_base_env_member(probe->host->env, "KILN_LOCATE_LIB_NVRTC") !=
             NULL;
}

static kiln_status_t about_nvrtc(kiln_probe_t* probe,
                                 const kilni_probe_source_t* source) {
  if (source->nvrtc_path == NULL) {
    kiln_status_t status = source->nvrtc_status;
    if (kiln_status_is_ok(status)) return kiln_ok();  // it was not requested
    return kilni_probe_add_problem(
        probe, "nvrtc-not-found",
        nvrtc_was_named(probe) ? KILN_PROBE_SEVERITY_ERROR
                               : KILN_PROBE_SEVERITY_WARNING,
        kiln_status_fix(status), "CUDA C++ (.cu) cannot be compiled: %s",
        kiln_status_message(status));
  }
  uint32_t driver = probe->driver.version;
  uint32_t nvrtc = source->nvrtc_version;
  if (driver == 0 || nvrtc <= driver) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "nvrtc-newer-than-driver", KILN_PROBE_SEVERITY_WARNING,
      "use a cubin for the GPU, an older NVRTC (KILN_LOCATE_LIB_NVRTC), or a "
      "newer "
      "driver",
      "NVRTC is %u.%u and the driver CUDA %u.%u: the driver may refuse its PTX",
      (unsigned)(nvrtc / 1000), (unsigned)(nvrtc % 1000 / 10),
      (unsigned)(driver / 1000), (unsigned)(driver % 1000 / 10));
}

static kiln_status_t about_soft(kiln_probe_t* probe,
                                const kilni_probe_source_t* source) {
  if (probe->soft.lanes[0] != 0) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "lanes-not-available", KILN_PROBE_SEVERITY_ERROR,
      "unset KILN_SOFT_LANES, or set it to auto",
      "this CPU cannot run the lane code \"%s\"; it can run %s",
      source->soft_lanes_wanted ? source->soft_lanes_wanted : "",
      probe->soft.lanes_have);
}

// The worst first; otherwise in the order they came.
static void sort(kiln_probe_t* probe) {
  kiln_probe_problem_t* problems = probe->problems.items;
  for (size_t i = 1; i < probe->problems.count; i++) {
    kiln_probe_problem_t one = problems[i];
    size_t at = i;
    for (; at > 0 && problems[at - 1].severity < one.severity; at--) {
      problems[at] = problems[at - 1];
    }
    problems[at] = one;
  }
}

kiln_status_t kilni_probe_find_problems(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(about_driver(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_doubt_driver(probe, source));
  KILNI_RETURN_IF_ERROR(about_nvrtc(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_doubt_pieces(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_doubt_fit(probe));
  KILNI_RETURN_IF_ERROR(kilni_probe_doubt_folders(probe));
  KILNI_RETURN_IF_ERROR(about_soft(probe, source));
  sort(probe);
  return kiln_ok();
}
