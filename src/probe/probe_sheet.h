// SPDX-License-Identifier: Apache-2.0
//
// probe: the sheet while it is written. Not a door.
#ifndef KILN_SRC_PROBE_PROBE_SHEET_H_
#define KILN_SRC_PROBE_PROBE_SHEET_H_

#include <stdatomic.h>

#include "base/status_make.h"
#include "probe/probe.h"

enum { KILNI_PROBE_MAX_ENTRIES = 4096 };

// An array that grows. one-thread
typedef struct kilni_probe_list_t {
  void* items;
  size_t count;
  size_t capacity;
  size_t item_bytes;
} kilni_probe_list_t;

struct kiln_probe_t {
  const kiln_host_t* host;
  kilni_keep_t keep;
  atomic_uint references;
  kilni_probe_list_t texts;  // char*: every string of the sheet
  kilni_probe_list_t devices;
  kilni_probe_list_t toolkits;
  kilni_probe_list_t libraries;
  kilni_probe_list_t tried;  // of the one library
  kilni_probe_list_t variables;
  kilni_probe_list_t problems;
  kiln_probe_driver_t driver;
  kiln_probe_soft_t soft;
};

kiln_status_t kilni_probe_sheet_create(const kilni_probe_source_t* source,
                                       kiln_probe_t** out_probe);

// A zeroed item at the end of a list.
kiln_status_t kilni_probe_add(kiln_probe_t* probe, kilni_probe_list_t* list,
                              void** out_item);
// A copy of `text` (NULL is "") that lives as long as the sheet.
kiln_status_t kilni_probe_text(kiln_probe_t* probe, const char* text,
                               const char** out_text);

// Problems (probe_problem.c).
kiln_status_t kilni_probe_add_problem(kiln_probe_t* probe, const char* id,
                                      uint32_t severity, const char* fix,
                                      const char* format, ...)
    KILN_PRINTF(5, 6);
kiln_status_t kilni_probe_find_problems(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source);

#endif  // KILN_SRC_PROBE_PROBE_SHEET_H_
