// SPDX-License-Identifier: Apache-2.0
//
// table: the columns of the rows, and tables before a provider fills them.
//
// An absent row is never NULL: it is a thunk of the right signature that
// answers that the call needs a newer driver, so that a missing check above is
// an error and not a crash.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fix_words.h"
#include "base/status_make.h"
#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "table/nvml_table.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"
#include "table/table_inside.h"

enum { NAMES_LINE_BYTES = 900 };  // of missing rows in one line of an error

// ---- Columns ----

#define KILNI_CUDA_ROW(name, suffix, version, need, context, capture, effect, \
                       handle, feature, ...)                                  \
  {#name,                                                                     \
   #name suffix,                                                              \
   feature,                                                                   \
   version,                                                                   \
   KILNI_NEED_##need,                                                         \
   KILNI_CONTEXT_##context,                                                   \
   KILNI_CAPTURE_##capture,                                                   \
   KILNI_EFFECT_##effect,                                                     \
   KILNI_HANDLE_##handle,                                                     \
   0,                                                                         \
   offsetof(kiln_cuda_table_t, name)},
static const kilni_table_row_t kCudaRows[] = {
#include "table/cuda_rows.inc"
};
#undef KILNI_CUDA_ROW

// A row of a library that makes one kind of handle, and asks for no context.
#define LIBRARY_ROW(library, name, symbol, version, need, effect, feature, \
                    handle)                                                \
  {#name,                                                                  \
   symbol,                                                                 \
   feature,                                                                \
   version,                                                                \
   KILNI_NEED_##need,                                                      \
   KILNI_CONTEXT_NONE,                                                     \
   KILNI_CAPTURE_SAFE,                                                     \
   KILNI_EFFECT_##effect,                                                  \
   KILNI_EFFECT_##effect == KILNI_EFFECT_CREATE ||                         \
           KILNI_EFFECT_##effect == KILNI_EFFECT_DESTROY                   \
       ? (handle)                                                          \
       : KILNI_HANDLE_NONE,                                                \
   0,                                                                      \
   offsetof(kiln_##library##_table_t, name)},

#define KILNI_NVRTC_ROW(name, version, need, effect, feature, ...) \
  LIBRARY_ROW(nvrtc, name, #name, version, need, effect, feature,  \
              KILNI_HANDLE_PROGRAM)
static const kilni_table_row_t kNvrtcRows[] = {
#include "table/nvrtc_rows.inc"
};
#undef KILNI_NVRTC_ROW

#define KILNI_NVJITLINK_ROW(name, version, need, effect, feature, ...) \
  LIBRARY_ROW(nvjitlink, name, #name, version, need, effect, feature,  \
              KILNI_HANDLE_LINK)
static const kilni_table_row_t kNvjitlinkRows[] = {
#include "table/nvjitlink_rows.inc"
};
#undef KILNI_NVJITLINK_ROW

#define KILNI_NVVM_ROW(name, version, need, effect, feature, ...) \
  LIBRARY_ROW(nvvm, name, #name, version, need, effect, feature,  \
              KILNI_HANDLE_PROGRAM)
static const kilni_table_row_t kNvvmRows[] = {
#include "table/nvvm_rows.inc"
};
#undef KILNI_NVVM_ROW

#define KILNI_NVML_ROW(name, suffix, version, need, effect, feature, ...) \
  LIBRARY_ROW(nvml, name, #name suffix, version, need, effect, feature,   \
              KILNI_HANDLE_SESSION)
static const kilni_table_row_t kNvmlRows[] = {
#include "table/nvml_rows.inc"
};
#undef KILNI_NVML_ROW

_Static_assert(KILNI_CUDA_ROW_COUNT <= 384, "the presence bits have space");
_Static_assert(KILNI_NVRTC_ROW_COUNT <= 64, "the presence bits have space");
_Static_assert(KILNI_NVJITLINK_ROW_COUNT <= 64, "the presence bits have space");
_Static_assert(KILNI_NVVM_ROW_COUNT <= 64, "the presence bits have space");
_Static_assert(KILNI_NVML_ROW_COUNT <= 128, "the presence bits have space");

const kilni_table_row_t* kilni_table_cuda_row(kilni_cuda_row_id_t row) {
  return &kCudaRows[row];
}

const kilni_table_row_t* kilni_table_nvrtc_row(kilni_nvrtc_row_id_t row) {
  return &kNvrtcRows[row];
}

const kilni_table_row_t* kilni_table_nvjitlink_row(
    kilni_nvjitlink_row_id_t row) {
  return &kNvjitlinkRows[row];
}

const kilni_table_row_t* kilni_table_nvvm_row(kilni_nvvm_row_id_t row) {
  return &kNvvmRows[row];
}

const kilni_table_row_t* kilni_table_nvml_row(kilni_nvml_row_id_t row) {
  return &kNvmlRows[row];
}

// ---- Tables ----

#include "table/absent_thunks_gen.inc"

static void set_provider(char* out_provider, size_t size, const char* name) {
  snprintf(out_provider, size, "%s", name);
}

void kilni_table_cuda_table_init(kiln_cuda_table_t* table, const char* provider,
                                 const char* origin) {
  memset(table, 0, sizeof(*table));
  set_provider(table->provider, sizeof(table->provider), provider);
  table->origin = origin;
  fill_cuda_absent(table);
}

void kilni_table_nvrtc_table_init(kiln_nvrtc_table_t* table,
                                  const char* provider, const char* origin) {
  memset(table, 0, sizeof(*table));
  set_provider(table->provider, sizeof(table->provider), provider);
  table->origin = origin;
  fill_nvrtc_absent(table);
}

void kilni_table_nvjitlink_table_init(kiln_nvjitlink_table_t* table,
                                      const char* provider,
                                      const char* origin) {
  memset(table, 0, sizeof(*table));
  set_provider(table->provider, sizeof(table->provider), provider);
  table->origin = origin;
  fill_nvjitlink_absent(table);
}

void kilni_table_nvvm_table_init(kiln_nvvm_table_t* table, const char* provider,
                                 const char* origin) {
  memset(table, 0, sizeof(*table));
  set_provider(table->provider, sizeof(table->provider), provider);
  table->origin = origin;
  fill_nvvm_absent(table);
}

void kilni_table_nvml_table_init(kiln_nvml_table_t* table, const char* provider,
                                 const char* origin) {
  memset(table, 0, sizeof(*table));
  set_provider(table->provider, sizeof(table->provider), provider);
  table->origin = origin;
  fill_nvml_absent(table);
}

static void rows_mark(uint64_t* words, unsigned bit, bool present) {
  const uint64_t mask = UINT64_C(1) << (bit % 64);
  if (present) {
    words[bit / 64] |= mask;
  } else {
    words[bit / 64] &= ~mask;
  }
}

static bool rows_has(const uint64_t* words, unsigned bit) {
  return (words[bit / 64] >> (bit % 64)) & 1;
}

void kilni_table_cuda_mark(kiln_cuda_table_t* table, kilni_cuda_row_id_t row,
                           bool present) {
  rows_mark(table->present, (unsigned)row, present);
}

void kilni_table_nvrtc_mark(kiln_nvrtc_table_t* table, kilni_nvrtc_row_id_t row,
                            bool present) {
  rows_mark(table->present, (unsigned)row, present);
}

void kilni_table_nvjitlink_mark(kiln_nvjitlink_table_t* table,
                                kilni_nvjitlink_row_id_t row, bool present) {
  rows_mark(table->present, (unsigned)row, present);
}

void kilni_table_nvvm_mark(kiln_nvvm_table_t* table, kilni_nvvm_row_id_t row,
                           bool present) {
  rows_mark(table->present, (unsigned)row, present);
}

void kilni_table_nvml_mark(kiln_nvml_table_t* table, kilni_nvml_row_id_t row,
                           bool present) {
  rows_mark(table->present, (unsigned)row, present);
}

// ---- What is missing ----

// The first driver release of each CUDA version.
static const struct {
  uint32_t cuda;
  uint32_t release;
} kReleases[] = {{12000, 525}, {12010, 530}, {12020, 535}, {12030, 545},
                 {12040, 550}, {12050, 555}, {12060, 560}, {12080, 570},
                 {12090, 575}, {13000, 580}};

static uint32_t release_of(uint32_t cuda) {
  for (size_t i = 0; i < sizeof(kReleases) / sizeof(kReleases[0]); i++) {
    if (kReleases[i].cuda >= cuda) return kReleases[i].release;
  }
  return kReleases[sizeof(kReleases) / sizeof(kReleases[0]) - 1].release;
}

kiln_status_t kilni_table_cuda_need(const kiln_cuda_table_t* table,
                                    kilni_cuda_row_id_t row) {
  if (kilni_table_cuda_has(table, row)) return kiln_ok();
  const kilni_table_row_t* columns = kilni_table_cuda_row(row);
  const char* feature =
      columns->feature[0] != '\0' ? columns->feature : columns->name;
  const unsigned version = columns->version;
  if (table->driver_version >= (int)version) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "\"%s\" does not offer %s (its table lacks %s)",
                   table->provider, feature, columns->name),
        "use another device, or do without it");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "%s needs a driver for CUDA %u.%u; \"%s\" is for CUDA %d.%d "
                 "(its table lacks %s)",
                 feature, version / 1000, version % 1000 / 10, table->provider,
                 table->driver_version / 1000,
                 table->driver_version % 1000 / 10, columns->name),
      "install an NVIDIA driver of release %u or newer", release_of(version));
}

kiln_status_t kilni_table_tool_need(const kilni_tool_t* tool,
                                    const kilni_table_row_t* row) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "%s needs the %s of CUDA %u.%u or newer; \"%s\" is %d.%d "
                 "(it lacks %s)",
                 row->feature[0] != '\0' ? row->feature : row->name,
                 tool->title, (unsigned)row->version / 1000,
                 (unsigned)row->version % 1000 / 10, tool->origin, tool->major,
                 tool->minor, row->name),
      "install a newer %s, e.g. `python3 -m pip install "
      "%s`" KILNI_FIX_ENVIRONMENT,
      tool->title, tool->package);
}

kiln_status_t kilni_table_nvml_need(const kiln_nvml_table_t* table,
                                    kilni_nvml_row_id_t row) {
  if (kilni_table_nvml_has(table, row)) return kiln_ok();
  const kilni_table_row_t* columns = kilni_table_nvml_row(row);
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "the NVML \"%s\" does not report %s (it lacks %s)",
                 table->origin,
                 columns->feature[0] != '\0' ? columns->feature : columns->name,
                 columns->symbol),
      "install an NVIDIA driver of release %u or newer, where this GPU has one",
      release_of(columns->version));
}

// Adds the names, cut into lines that fit into an error, to `status`.
static kiln_status_t annotate_missing(kiln_status_t status,
                                      const kilni_rows_t* rows) {
  char line[NAMES_LINE_BYTES];
  size_t used = 0;
  for (uint32_t i = 0; i < rows->count; i++) {
    const kilni_table_row_t* row = &rows->rows[i];
    if (row->need != KILNI_NEED_REQUIRED || rows_has(rows->present, i)) {
      continue;
    }
    if (used + strlen(row->symbol) + 3 > sizeof(line)) {
      status = KILNI_ANNOTATE(status, "missing: %s", line);
      used = 0;
    }
    used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
                             used == 0 ? "" : ", ", row->symbol);
  }
  if (used == 0) return status;
  return KILNI_ANNOTATE(status, "missing: %s", line);
}

static uint32_t rows_count_missing(const kilni_rows_t* rows) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < rows->count; i++) {
    if (rows->rows[i].need == KILNI_NEED_REQUIRED &&
        !rows_has(rows->present, i)) {
      count++;
    }
  }
  return count;
}

kiln_status_t kilni_table_cuda_table_check(const kiln_cuda_table_t* table) {
  const kilni_rows_t rows = {kCudaRows, table->present, KILNI_CUDA_ROW_COUNT};
  const uint32_t count = rows_count_missing(&rows);
  if (count == 0) return kiln_ok();
  kiln_status_t status = KILNI_FAIL(
      INCOMPATIBLE,
      "the driver \"%s\" (%s, for CUDA %d.%d) lacks %u of the entry points "
      "that Kiln needs",
      table->provider, table->origin, table->driver_version / 1000,
      table->driver_version % 1000 / 10, count);
  return kilni_base_status_with_fix(
      annotate_missing(status, &rows),
      "install an NVIDIA driver of release 525 (CUDA 12.0) or newer, or use "
      "the software device `soft`");
}

kiln_status_t kilni_table_tool_check(const kilni_tool_t* tool,
                                     const kilni_rows_t* rows) {
  const uint32_t count = rows_count_missing(rows);
  if (count == 0) return kiln_ok();
  kiln_status_t status = KILNI_FAIL(
      INCOMPATIBLE,
      "the library \"%s\" (%s %d.%d) lacks %u of the entry points that Kiln "
      "needs",
      tool->origin, tool->title, tool->major, tool->minor, count);
  return kilni_base_status_with_fix(
      annotate_missing(status, rows),
      "install the %s of CUDA %s or newer, e.g. `python3 -m pip install "
      "%s`" KILNI_FIX_ENVIRONMENT,
      tool->title, tool->least, tool->package);
}

kiln_status_t kilni_table_nvml_table_check(const kiln_nvml_table_t* table) {
  const kilni_rows_t rows = {kNvmlRows, table->present, KILNI_NVML_ROW_COUNT};
  const uint32_t count = rows_count_missing(&rows);
  if (count == 0) return kiln_ok();
  kiln_status_t status =
      KILNI_FAIL(INCOMPATIBLE,
                 "the NVML \"%s\" lacks %u of the entry points that Kiln needs",
                 table->origin, count);
  return kilni_base_status_with_fix(
      annotate_missing(status, &rows),
      "install an NVIDIA driver of release 525 (CUDA 12.0) or newer");
}

// ---- Filling from a library ----

void kilni_table_rows_fill(const kilni_table_row_t* rows, uint32_t count,
                           const kilni_base_dynlib_t* library, void* table,
                           uint64_t* present) {
  for (uint32_t i = 0; i < count; i++) {
    void* address = kilni_base_dynlib_symbol(library, rows[i].symbol);
    if (address == NULL) continue;
    memcpy((char*)table + rows[i].place, &address, sizeof(address));
    rows_mark(present, i, true);
  }
}

kiln_status_t kilni_table_settle(kiln_status_t filled,
                                 kilni_base_dynlib_t* opened, void* table,
                                 size_t bytes,
                                 kilni_base_dynlib_t** out_library) {
  if (!kiln_status_is_ok(filled)) {
    memset(table, 0, bytes);
    kilni_base_dynlib_close(opened);
    return filled;
  }
  *out_library = opened;
  return kiln_ok();
}

kiln_status_t kilni_table_tool_open(const kiln_host_t* host,
                                    const char* library,
                                    const kilni_tool_t* tool,
                                    kilni_base_dynlib_t** out_library) {
  return kilni_base_status_with_fix(
      kilni_base_dynlib_open(host->allocator, library, out_library),
      "name an existing %s library, or install one, e.g. `python3 -m pip "
      "install %s`" KILNI_FIX_ENVIRONMENT,
      tool->title, tool->package);
}
