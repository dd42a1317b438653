// SPDX-License-Identifier: Apache-2.0
//
// table: the driver's library as a provider.
//
// Each row is asked for by its pinned version and for the legacy default
// stream, so that neither the driver's age nor the headers of a host program
// decide which signature answers; where the driver cannot be asked so, by the
// one exported symbol that has exactly the row's signature.
#include <string.h>

#include "base/status_make.h"
#include "table/cuda_table.h"
#include "table/table_inside.h"

enum { NAME_BYTES = 64 };  // of an entry point

static const char kDefaultName[] = "libcuda.so.1";

_Static_assert(sizeof(void*) == sizeof(kilni_cuInit_fn_t),
               "a symbol's address is a function's");

static kiln_status_t stub_error(const char* path) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INCOMPATIBLE,
                 "\"%s\" is the CUDA toolkit's link-time stand-in for the "
                 "driver, not a driver",
                 path),
      "install the NVIDIA driver, and take the toolkit's `stubs` folder out "
      "of LD_LIBRARY_PATH and KILN_LIBCUDA");
}

static bool is_stub_path(const char* path) {
  return strstr(path, "/stubs/") != NULL;
}

// The name that the driver knows a row by: where it has two signatures in use,
// the later one's row ends in a version that is not part of the name.
static void base_name(const char* name, char* out, size_t space) {
  size_t length = strlen(name);
  size_t digits = length;
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') {
    digits--;
  }
  if (digits < length && digits > 2 &&
      memcmp(name + digits - 2, "_v", 2) == 0) {
    length = digits - 2;
  }
  if (length >= space) length = space - 1;
  memcpy(out, name, length);
  out[length] = '\0';
}

static void* row_address(const kilni_base_dynlib_t* library,
                         kilni_cuGetProcAddress_fn_t ask,
                         const kilni_table_row_t* row) {
  if (ask != NULL) {
    void* address = NULL;
    kiln_cu_proc_address_query_t found = 0;
    char name[NAME_BYTES];
    base_name(row->name, name, sizeof(name));
    if (ask(name, &address, (int)row->version,
            KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM,
            &found) == KILN_CU_SUCCESS &&
        found == KILN_CU_GET_PROC_ADDRESS_SUCCESS && address != NULL) {
      return address;
    }
  }
  return kilni_base_dynlib_symbol(library, row->symbol);
}

static kiln_status_t cuda_open_read_version(const kilni_base_dynlib_t* library,
                                            const char* path,
                                            int* out_version) {
  void* symbol = kilni_base_dynlib_symbol(library, "cuDriverGetVersion");
  if (symbol == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is not a CUDA driver library", path),
        "name the driver's own libcuda.so.1, or leave KILN_LIBCUDA unset");
  }
  kilni_cuDriverGetVersion_fn_t ask;
  memcpy(&ask, &symbol, sizeof(ask));
  const kiln_cu_result_t result = ask(out_version);
  if (result == KILN_CU_ERROR_STUB_LIBRARY) return stub_error(path);
  return KILNI_CUDA_STATUS(NULL, result, "cuDriverGetVersion");
}

static void cuda_open_fill(kiln_cuda_table_t* table,
                           const kilni_base_dynlib_t* library) {
  void* symbol = kilni_base_dynlib_symbol(library, "cuGetProcAddress_v2");
  kilni_cuGetProcAddress_fn_t ask;
  memcpy(&ask, &symbol, sizeof(ask));
  for (unsigned row = 0; row < KILNI_CUDA_ROW_COUNT; row++) {
    const kilni_cuda_row_id_t id = (kilni_cuda_row_id_t)row;
    void* address = row_address(library, ask, kilni_table_cuda_row(id));
    if (address == NULL) continue;
    memcpy((char*)table + kilni_table_cuda_row(id)->place, &address,
           sizeof(address));
    kilni_table_cuda_mark(table, id, true);
  }
}

static kiln_status_t fill_checked(const kilni_base_dynlib_t* library,
                                  const char* name, kiln_cuda_table_t* table) {
  const char* path = kilni_base_dynlib_path(library);
  if (path[0] == '\0') path = name;
  if (is_stub_path(path)) return stub_error(path);
  int version = 0;
  KILNI_RETURN_IF_ERROR(cuda_open_read_version(library, path, &version));
  kilni_table_cuda_table_init(table, "libcuda",
                              kilni_base_dynlib_path(library));
  table->driver_version = version;
  cuda_open_fill(table, library);
  return kilni_table_cuda_table_check(table);
}

// Opens the library that was named, unless it is the toolkit's stand-in.
static kiln_status_t cuda_open_open_library(const kiln_host_t* host,
                                            const char* library,
                                            const char** out_name,
                                            kilni_base_dynlib_t** out_library) {
  const char* name = library;
  const char* chosen =
      host->env != NULL ? kilni_base_env_text(host->env, KILNI_ENV_KILN_LIBCUDA)
                        : NULL;
  if (name == NULL && chosen != NULL && chosen[0] != '\0') name = chosen;
  if (name == NULL) name = kDefaultName;
  *out_name = name;
  if (is_stub_path(name)) return stub_error(name);
  kiln_status_t status =
      kilni_base_dynlib_open(host->allocator, name, out_library);
  return kilni_base_status_with_fix(
      status,
      name == kDefaultName
          ? "install the NVIDIA driver (the CUDA toolkit does not contain "
            "it), or use the software device `soft`"
          : "name an existing driver library, or leave KILN_LIBCUDA unset");
}

kiln_status_t kilni_table_cuda_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_cuda_table_t* out_table,
                                          kilni_base_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  kilni_base_dynlib_t* opened = NULL;
  const char* name = NULL;
  KILNI_RETURN_IF_ERROR(cuda_open_open_library(host, library, &name, &opened));
  return kilni_table_settle(fill_checked(opened, name, out_table), opened,
                            out_table, sizeof(*out_table), out_library);
}

kiln_status_t kilni_table_cuda_version_ask(const kiln_host_t* host,
                                           const char* library,
                                           int* out_version,
                                           kilni_base_dynlib_t** out_library) {
  *out_version = 0;
  *out_library = NULL;
  kilni_base_dynlib_t* opened = NULL;
  const char* name = NULL;
  KILNI_RETURN_IF_ERROR(cuda_open_open_library(host, library, &name, &opened));
  const char* path = kilni_base_dynlib_path(opened);
  if (path[0] == '\0') path = name;
  kiln_status_t status = kiln_ok();
  if (is_stub_path(path)) status = stub_error(path);
  if (kiln_status_is_ok(status)) {
    status = cuda_open_read_version(opened, path, out_version);
  }
  if (!kiln_status_is_ok(status)) {
    *out_version = 0;
    kilni_base_dynlib_close(opened);
    return status;
  }
  *out_library = opened;
  return kiln_ok();
}
