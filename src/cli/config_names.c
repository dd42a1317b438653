// SPDX-License-Identifier: Apache-2.0
//
// cli: the components of `kiln config`.
#define _POSIX_C_SOURCE 200809L
#include "cli/config_names.h"
#include "kiln/locate_catalog.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// Rows to compare an unknown name with.
enum { MAX_ROWS = 1024 };

#define SYSTEM "-lpthread -ldl -lrt -lm"

// The mathematical libraries call the CUDA runtime, which nvcc adds by itself
// and a C compiler does not.
#define CALLS_CUDART "culibos cudart_static -lstdc++ " SYSTEM

// A static library and all that it needs, transitively: what is named here is
// not looked up again. thread-safe
typedef struct needs_t {
  const char* name;
  const char* needs;
} needs_t;

static const needs_t kNeeds[] = {
    {"cudart_static", "-lpthread -ldl -lrt"},
    {"cudadevrt", "cudart_static -lstdc++ -lpthread -ldl -lrt"},
    {"culibos", "-lpthread -ldl"},
    {"nvptxcompiler_static", "-lpthread -ldl -lm"},
    {"nvrtc_static",
     "nvrtc-builtins_static nvptxcompiler_static -lstdc++ " SYSTEM},
    {"nvJitLink_static", "nvptxcompiler_static -lstdc++ " SYSTEM},
    {"nvfatbin_static", "-lstdc++ " SYSTEM},
    {"cublas_static", "cublasLt_static " CALLS_CUDART},
    {"cublasLt_static", CALLS_CUDART},
    {"cufile_rdma_static", "cufile_static culibos -lstdc++ " SYSTEM},
    {"cusparse_static", "nvJitLink_static nvptxcompiler_static " CALLS_CUDART},
    {"cusolver_static",
     "cusolver_lapack_static cusolver_metis_static metis_static cublas_static "
     "cublasLt_static cusparse_static nvJitLink_static "
     "nvptxcompiler_static " CALLS_CUDART},
    {"cufft_static", CALLS_CUDART},
    {"cufft_static_nocallback", CALLS_CUDART},
    {"cufftw_static", "cufft_static " CALLS_CUDART},
    {"curand_static", CALLS_CUDART},
    {"nppc_static", CALLS_CUDART},
    {"nvjpeg_static", CALLS_CUDART},
};

const char* kilni_cli_config_static_needs(const char* name) {
  for (size_t i = 0; i < sizeof(kNeeds) / sizeof(kNeeds[0]); i++) {
    if (strcmp(kNeeds[i].name, name) == 0) return kNeeds[i].needs;
  }
  if (strncmp(name, "npp", 3) == 0) return "nppc_static " CALLS_CUDART;
  return "culibos -lstdc++ " SYSTEM;
}

// ---- Names ----

// The row of that name, of whatever case: "nvjitlink" is nvJitLink.
static const char* name_in(uint32_t kind, const char* name) {
  uint32_t count = kiln_locate_entry_count();
  const char* near = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    const char* other = kiln_locate_entry_name(entry);
    if (kiln_locate_entry_kind(entry) != kind) continue;
    if (strcmp(other, name) == 0) return other;
    if (strcasecmp(other, name) == 0) near = other;
  }
  return near;
}

// The header set with a library's headers: the one with the longest name that
// is a prefix of the library's, as "cublas" is of "cublasLt".
static const char* headers_of(const char* name) {
  uint32_t count = kiln_locate_entry_count();
  const char* best = NULL;
  size_t size = 2;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    const char* other = kiln_locate_entry_name(entry);
    if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_HEADER) continue;
    if (strlen(other) <= size || strncasecmp(other, name, strlen(other)) != 0) {
      continue;
    }
    best = other;
    size = strlen(other);
  }
  return best;
}

static void config_names_add(kilni_cli_config_component_t* component,
                             uint32_t kind, const char* name) {
  kilni_cli_piece_t* piece = &component->pieces[component->piece_count++];
  piece->kind = kind;
  (void)snprintf(piece->name, sizeof(piece->name), "%s", name);
}

// Compilers and the driver do not need the headers of the runtime.
static bool wants_runtime_headers(const char* name) {
  static const char* const alone[] = {"nvrtc",  "nvjitlink",     "nvfatbin",
                                      "nvvm",   "nvptxcompiler", "nvml",
                                      "culibos"};
  for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
    if (strncasecmp(name, alone[i], strlen(alone[i])) == 0) return false;
  }
  return strcmp(name, "cuda") != 0 && strcmp(name, "cudadevrt") != 0;
}

static void add_linked(kilni_cli_config_component_t* component, uint32_t kind,
                       const char* name) {
  const char* headers = headers_of(name);
  config_names_add(component, kind, name);
  if (headers != NULL && strcmp(name, "culibos") != 0) {
    config_names_add(component, KILN_LOCATE_KIND_HEADER, headers);
  }
  component->wants_runtime_headers = wants_runtime_headers(name);
}

// The nearest name; NULL if none is near.
static const char* nearest_name(const char* text) {
  const char* words[MAX_ROWS];
  uint32_t count = kiln_locate_entry_count();
  if (count > MAX_ROWS) count = MAX_ROWS;
  for (uint32_t i = 0; i < count; i++) {
    words[i] = kiln_locate_entry_name(kiln_locate_entry(i));
  }
  return kilni_cli_nearest(text, words, count);
}

static bool fail_name(const char* text, kilni_cli_error_t* error) {
  bool path = strchr(text, '/') != NULL;
  (void)kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT,
      path ? "write --root=DIR to search a folder first"
           : "write nvrtc, cudart_static, headers or KIND:NAME, for example; "
             "\"kiln find --all\" lists the names",
      "the catalog has no component \"%.200s\"", text);
  const char* near = path ? NULL : nearest_name(text);
  if (near != NULL) {
    kilni_cli_error_fix(
        error, "write \"%s\"; \"kiln find --all\" lists the names", near);
  }
  return false;
}

static bool read_static(kilni_cli_config_component_t* component,
                        const char* lib, kilni_cli_error_t* error) {
  char name[KILNI_CLI_NAME_BYTES + 8];
  (void)snprintf(name, sizeof(name), "%s_static", lib);
  const char* found = name_in(KILN_LOCATE_KIND_STATIC, name);
  if (found == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write it as lib:NAME to take the shared library",
                          "there is no static library of \"%s\"", lib);
  }
  add_linked(component, KILN_LOCATE_KIND_STATIC, found);
  return true;
}

static bool read_bare(kilni_cli_config_component_t* component, const char* text,
                      bool prefer_static, kilni_cli_error_t* error) {
  const char* name = NULL;
  if (strcmp(text, "headers") == 0) {
    config_names_add(component, KILN_LOCATE_KIND_HEADER, "cudart");
    return true;
  }
  if ((name = name_in(KILN_LOCATE_KIND_LIB, text)) != NULL) {
    const kiln_locate_entry_t* entry =
        kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, name);
    bool driver = kiln_locate_entry_class(entry) == KILN_LOCATE_CLASS_DRIVER &&
                  name_in(KILN_LOCATE_KIND_STUB, name) != NULL;
    if (prefer_static && !driver) return read_static(component, name, error);
    add_linked(component, driver ? KILN_LOCATE_KIND_STUB : KILN_LOCATE_KIND_LIB,
               name);
    return true;
  }
  if ((name = name_in(KILN_LOCATE_KIND_STATIC, text)) != NULL) {
    add_linked(component, KILN_LOCATE_KIND_STATIC, name);
    return true;
  }
  static const uint32_t kinds[] = {KILN_LOCATE_KIND_BINARY,
                                   KILN_LOCATE_KIND_HEADER,
                                   KILN_LOCATE_KIND_BITCODE};
  for (size_t i = 0; i < 3; i++) {
    if ((name = name_in(kinds[i], text)) == NULL) continue;
    config_names_add(component, kinds[i], name);
    return true;
  }
  return fail_name(text, error);
}

bool kilni_cli_config_component_read(kilni_cli_config_component_t* component,
                                     const char* text, bool prefer_static,
                                     kilni_cli_error_t* error) {
  memset(component, 0, sizeof(*component));
  if (strchr(text, ':') == NULL) {
    (void)snprintf(component->name, sizeof(component->name), "%s", text);
    return read_bare(component, text, prefer_static, error);
  }
  kilni_cli_piece_t piece;
  if (!kilni_cli_piece_read(&piece, text, strlen(text), 0, error)) return false;
  bool headers = piece.kind == KILN_LOCATE_KIND_HEADER;
  (void)snprintf(component->name, sizeof(component->name), "%.*s%s",
                 KILNI_CLI_NAME_BYTES - 10, piece.name,
                 headers ? "_headers" : "");
  config_names_add(component, piece.kind, piece.name);
  return true;
}
