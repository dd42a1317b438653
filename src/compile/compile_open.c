// SPDX-License-Identifier: Apache-2.0
//
// compile: NVRTC opened: the first candidate of the search that works.
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/str.h"
#include "compile/compile_inside.h"
#include "locate/locate.h"

// An error lists at most this many places; the report has them all.
enum { MAX_LISTED = 24 };

void kiln_compiler_retain(kiln_compiler_t* compiler) {
  if (compiler == NULL) return;
  atomic_fetch_add_explicit(&compiler->references, 1, memory_order_relaxed);
}

static void destroy(kiln_compiler_t* compiler) {
  kiln_allocator_t allocator = compiler->host->allocator;
  kilni_keep_t keep = compiler->keep;
  if (compiler->traced) kilni_nvrtc_trace_remove(&compiler->table);
  kilni_dynlib_close(compiler->library);
  kilni_strfree(allocator, compiler->path);
  kilni_strfree(allocator, compiler->include_dir);
  kilni_free_array(allocator, compiler->archs, compiler->arch_count,
                   sizeof(int));
  kilni_free(allocator, compiler, sizeof(*compiler));
  kilni_keep_release(keep);
}

void kiln_compiler_release(kiln_compiler_t* compiler) {
  if (compiler == NULL || kilni_host_is_forked(compiler->host)) return;
  if (atomic_fetch_sub_explicit(&compiler->references, 1,
                                memory_order_acq_rel) == 1) {
    destroy(compiler);
  }
}

uint32_t kiln_compiler_version(const kiln_compiler_t* compiler) {
  return (uint32_t)(compiler->table.major * 1000 + compiler->table.minor * 10);
}

const char* kiln_compiler_path(const kiln_compiler_t* compiler) {
  return compiler->path;
}

const char* kiln_compiler_include_dir(const kiln_compiler_t* compiler) {
  return compiler->include_dir;
}

uint32_t kilni_compiler_scope(const kiln_compiler_t* compiler) {
  return compiler->scope;
}

bool kiln_compiler_has_arch(const kiln_compiler_t* compiler, uint32_t arch) {
  for (size_t i = 0; i < compiler->arch_count; i++) {
    if ((uint32_t)compiler->archs[i] == arch) return true;
  }
  return false;
}

static kiln_status_t read_archs(kiln_compiler_t* compiler) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  int count = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table, table->nvrtcGetNumSupportedArchs(&count),
                         "nvrtcGetNumSupportedArchs"));
  if (count <= 0 || count > 4096) {
    return kilni_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" says it knows %d architectures",
                   compiler->path, count),
        "install NVRTC again, from one CUDA toolkit");
  }
  void* archs = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(compiler->host->allocator,
                                          (size_t)count, sizeof(int), &archs));
  compiler->archs = archs;
  compiler->arch_count = (size_t)count;
  return KILNI_NVRTC_STATUS(table, table->nvrtcGetSupportedArchs(archs),
                            "nvrtcGetSupportedArchs");
}

// Opens one candidate into `compiler`; on failure `compiler` may hold a part.
static kiln_status_t open_candidate(kiln_compiler_t* compiler,
                                    const kiln_locate_candidate_t* candidate,
                                    bool trace) {
  const kiln_host_t* host = compiler->host;
  KILNI_RETURN_IF_ERROR(kilni_nvrtc_table_open(
      host, candidate->path, &compiler->table, &compiler->library));
  if (trace) {
    KILNI_RETURN_IF_ERROR(kilni_nvrtc_trace_install(&compiler->table, host->log,
                                                    &compiler->table));
    compiler->traced = true;
  }
  const char* path = kilni_dynlib_path(compiler->library);
  if (path[0] == 0) path = candidate->path;
  KILNI_RETURN_IF_ERROR(
      kilni_strdup(host->allocator, kilni_sv(path), &compiler->path));
  if (candidate->include_dir[0] != 0) {
    KILNI_RETURN_IF_ERROR(kilni_strdup(host->allocator,
                                       kilni_sv(candidate->include_dir),
                                       &compiler->include_dir));
  } else {
    KILNI_RETURN_IF_ERROR(kilni_locate_include_dir(
        host->allocator, compiler->path, &compiler->include_dir));
  }
  compiler->scope = candidate->scope;
  return read_archs(compiler);
}

static kiln_status_t create(const kiln_host_t* host, kilni_keep_t keep,
                            kiln_compiler_t** out_compiler) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(host->allocator, sizeof(kiln_compiler_t), &block));
  kiln_compiler_t* compiler = block;
  compiler->host = host;
  compiler->keep = keep;
  kilni_keep_retain(keep);
  atomic_init(&compiler->references, 1);
  *out_compiler = compiler;
  return NULL;
}

static kiln_status_t try_candidate(const kiln_host_t* host, kilni_keep_t keep,
                                   const kiln_locate_candidate_t* candidate,
                                   bool trace, kiln_compiler_t** out_compiler) {
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(create(host, keep, &compiler));
  kiln_status_t status = open_candidate(compiler, candidate, trace);
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return NULL;
}

kiln_status_t kilni_compiler_create(const kiln_host_t* host, kilni_keep_t keep,
                                    const kiln_nvrtc_table_t* table,
                                    kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(create(host, keep, &compiler));
  compiler->table = *table;
  compiler->scope = KILN_LOCATE_SCOPE_EXPLICIT;
  kiln_status_t status =
      kilni_strdup(host->allocator, kilni_sv(table->origin), &compiler->path);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_strdup(host->allocator, kilni_sv(""), &compiler->include_dir);
  }
  if (kiln_status_is_ok(status)) status = read_archs(compiler);
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return NULL;
}

static kiln_status_t nothing_worked(const kiln_locate_report_t* report) {
  kiln_status_t status =
      KILNI_FAIL(NOT_FOUND, "no usable NVRTC on this machine");
  uint32_t count = kiln_locate_report_tried_count(report);
  for (uint32_t i = 0; i < count && i < MAX_LISTED; i++) {
    const kiln_locate_tried_t* tried = kiln_locate_report_tried(report, i);
    status =
        KILNI_ANNOTATE(status, "tried \"%s\": %s", tried->path, tried->why);
  }
  if (count > MAX_LISTED) {
    status =
        KILNI_ANNOTATE(status, "and %u more", (unsigned)(count - MAX_LISTED));
  }
  return kilni_status_with_fix(
      status,
      "install it, e.g. with `pip install nvidia-cuda-nvrtc`, or name the "
      "library in KILN_LIBNVRTC; PTX needs no compiler");
}

static kiln_status_t try_all(const kiln_host_t* host, kilni_keep_t keep,
                             kiln_locate_report_t* report, bool trace,
                             kiln_compiler_t** out_compiler) {
  uint32_t count = kiln_locate_report_candidate_count(report);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_candidate_t* candidate =
        kiln_locate_report_candidate(report, i);
    kiln_status_t status =
        try_candidate(host, keep, candidate, trace, out_compiler);
    if (kiln_status_is_ok(status)) {
      KILNI_LOG(&host->log, INFO, "took NVRTC \"%s\" (%s)",
                kiln_compiler_path(*out_compiler),
                kiln_locate_scope_name(candidate->scope));
      return NULL;
    }
    kiln_status_code_t code = kiln_status_code(status);
    // These are of this process and not of the file.
    if (code == KILN_STATUS_OUT_OF_MEMORY ||
        code == KILN_STATUS_LIMIT_EXCEEDED) {
      return status;
    }
    kiln_status_t noted = kilni_locate_report_reject(
        report, candidate->path, kiln_status_message(status));
    // Something that was named is taken or is an error.
    if (candidate->scope == KILN_LOCATE_SCOPE_EXPLICIT) {
      return kilni_status_join(status, noted);
    }
    kiln_status_free(status);
    KILNI_RETURN_IF_ERROR(noted);
  }
  return nothing_worked(report);
}

kiln_status_t kilni_compiler_open(const kiln_host_t* host, kilni_keep_t keep,
                                  const kilni_compiler_wish_t* wish,
                                  kiln_locate_report_t** out_report,
                                  kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  kiln_locate_report_t* report = NULL;
  kiln_status_t status = kilni_locate_nvrtc(
      host->allocator, host->env, wish->library, wish->system_root, &report);
  if (kiln_status_is_ok(status)) {
    status = try_all(host, keep, report, wish->trace, out_compiler);
  }
  if (out_report != NULL) {
    *out_report = report;
  } else {
    kiln_locate_report_release(report);
  }
  return status;
}
