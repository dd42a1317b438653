// SPDX-License-Identifier: Apache-2.0
//
// locate: what a search found and what it looked at in vain.
#include "locate/locate_report.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"

// A candidate with the strings it owns. one-thread
typedef struct candidate_t {
  kiln_locate_candidate_t view;
  char* path;
  char* include_dir;
  char* real;  // the path with links resolved; NULL for a bare name
} candidate_t;

// A rejected place with the strings it owns. one-thread
typedef struct tried_t {
  kiln_locate_tried_t view;
  char* path;
  char* why;
} tried_t;

struct kiln_locate_report_t {
  kiln_allocator_t allocator;
  atomic_uint references;
  uint32_t candidate_count;
  uint32_t tried_count;
  size_t candidate_capacity;
  size_t tried_capacity;
  void* candidates;  // candidate_t[candidate_capacity]
  void* tried;       // tried_t[tried_capacity]
};

kiln_status_t kilni_locate_report_create(kiln_allocator_t allocator,
                                         kiln_locate_report_t** out_report) {
  *out_report = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(allocator, sizeof(kiln_locate_report_t), &block));
  kiln_locate_report_t* report = block;
  report->allocator = allocator;
  atomic_init(&report->references, 1);
  *out_report = report;
  return NULL;
}

kiln_allocator_t kilni_locate_report_allocator(
    const kiln_locate_report_t* report) {
  return report->allocator;
}

static void candidate_deinit(kiln_allocator_t allocator, candidate_t* item) {
  kilni_strfree(allocator, item->path);
  kilni_strfree(allocator, item->include_dir);
  kilni_strfree(allocator, item->real);
  memset(item, 0, sizeof(*item));
}

static void tried_deinit(kiln_allocator_t allocator, tried_t* item) {
  kilni_strfree(allocator, item->path);
  kilni_strfree(allocator, item->why);
  memset(item, 0, sizeof(*item));
}

static kiln_status_t check_room(uint32_t count) {
  if (count < KILNI_LOCATE_MAX_ENTRIES) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "the search met more than %u places",
                 (unsigned)KILNI_LOCATE_MAX_ENTRIES),
      "name the library file itself, e.g. by KILN_LIBNVRTC");
}

kiln_status_t kilni_locate_report_reject(kiln_locate_report_t* report,
                                         const char* path, const char* why) {
  KILNI_RETURN_IF_ERROR(check_room(report->tried_count));
  KILNI_RETURN_IF_ERROR(kilni_grow(report->allocator, report->tried_count + 1u,
                                   sizeof(tried_t), &report->tried_capacity,
                                   &report->tried));
  tried_t item = {0};
  kiln_status_t status =
      kilni_strdup(report->allocator, kilni_sv(path), &item.path);
  if (kiln_status_is_ok(status)) {
    status = kilni_strdup(report->allocator, kilni_sv(why), &item.why);
  }
  if (!kiln_status_is_ok(status)) {
    tried_deinit(report->allocator, &item);
    return status;
  }
  item.view.path = item.path;
  item.view.why = item.why;
  ((tried_t*)report->tried)[report->tried_count++] = item;
  return NULL;
}

// Resolves links, to know a file that two places lead to. A name without a
// folder is for the loader and stays as it is.
static kiln_status_t resolve(kiln_allocator_t allocator, const char* path,
                             char** out_real) {
  *out_real = NULL;
  if (strchr(path, '/') == NULL) return NULL;
  kiln_status_t status = kilni_path_real(allocator, path, out_real);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);  // it vanished; the opening will say so
  return NULL;
}

static kiln_status_t candidate_init(kiln_locate_report_t* report,
                                    uint32_t scope, const char* path,
                                    const char* include_dir, char* real,
                                    candidate_t* item) {
  memset(item, 0, sizeof(*item));
  item->real = real;
  kiln_status_t status =
      kilni_strdup(report->allocator, kilni_sv(path), &item->path);
  if (kiln_status_is_ok(status)) {
    status = kilni_strdup(report->allocator,
                          kilni_sv(include_dir ? include_dir : ""),
                          &item->include_dir);
  }
  if (!kiln_status_is_ok(status)) {
    candidate_deinit(report->allocator, item);
    return status;
  }
  item->view.path = item->path;
  item->view.include_dir = item->include_dir;
  item->view.scope = scope;
  return NULL;
}

static const char* same_file(const kiln_locate_report_t* report,
                             const char* real) {
  const candidate_t* items = report->candidates;
  for (uint32_t i = 0; real != NULL && i < report->candidate_count; i++) {
    if (items[i].real && strcmp(items[i].real, real) == 0) return items[i].path;
  }
  return NULL;
}

static kiln_status_t reject_same(kiln_locate_report_t* report, const char* path,
                                 const char* other) {
  kilni_str_t why;
  kilni_str_init(&why, report->allocator, 8192);
  kilni_str_addf(&why, "the same file as \"%s\"", other);
  kiln_status_t status = kilni_str_status(&why);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_report_reject(report, path, kilni_str_cstr(&why));
  }
  kilni_str_deinit(&why);
  return status;
}

kiln_status_t kilni_locate_report_add(kiln_locate_report_t* report,
                                      uint32_t scope, const char* path,
                                      const char* include_dir) {
  KILNI_RETURN_IF_ERROR(check_room(report->candidate_count));
  KILNI_RETURN_IF_ERROR(kilni_grow(
      report->allocator, report->candidate_count + 1u, sizeof(candidate_t),
      &report->candidate_capacity, &report->candidates));
  char* real = NULL;
  KILNI_RETURN_IF_ERROR(resolve(report->allocator, path, &real));
  const char* other = same_file(report, real);
  if (other != NULL) {
    kilni_strfree(report->allocator, real);
    return reject_same(report, path, other);
  }
  candidate_t item;
  KILNI_RETURN_IF_ERROR(
      candidate_init(report, scope, path, include_dir, real, &item));
  ((candidate_t*)report->candidates)[report->candidate_count++] = item;
  return NULL;
}

void kiln_locate_report_retain(kiln_locate_report_t* report) {
  if (report == NULL) return;
  atomic_fetch_add_explicit(&report->references, 1, memory_order_relaxed);
}

void kiln_locate_report_release(kiln_locate_report_t* report) {
  if (report == NULL) return;
  if (atomic_fetch_sub_explicit(&report->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_allocator_t allocator = report->allocator;
  candidate_t* candidates = report->candidates;
  for (uint32_t i = 0; i < report->candidate_count; i++) {
    candidate_deinit(allocator, &candidates[i]);
  }
  tried_t* tried = report->tried;
  for (uint32_t i = 0; i < report->tried_count; i++) {
    tried_deinit(allocator, &tried[i]);
  }
  kilni_free_array(allocator, candidates, report->candidate_capacity,
                   sizeof(candidate_t));
  kilni_free_array(allocator, tried, report->tried_capacity, sizeof(tried_t));
  kilni_free(allocator, report, sizeof(*report));
}

uint32_t kiln_locate_report_candidate_count(
    const kiln_locate_report_t* report) {
  return report ? report->candidate_count : 0;
}

const kiln_locate_candidate_t* kiln_locate_report_candidate(
    const kiln_locate_report_t* report, uint32_t index) {
  if (report == NULL || index >= report->candidate_count) return NULL;
  return &((const candidate_t*)report->candidates)[index].view;
}

uint32_t kiln_locate_report_tried_count(const kiln_locate_report_t* report) {
  return report ? report->tried_count : 0;
}

const kiln_locate_tried_t* kiln_locate_report_tried(
    const kiln_locate_report_t* report, uint32_t index) {
  if (report == NULL || index >= report->tried_count) return NULL;
  return &((const tried_t*)report->tried)[index].view;
}
