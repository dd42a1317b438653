// SPDX-License-Identifier: Apache-2.0
//
// locate: scopes by name, and the orders in which they are looked at.
#include <string.h>

#include "locate/locate_inside.h"

static const char* const kNames[KILNI_SCOPE_COUNT] = {
    "?",           "override", "root",         "loaded",    "wheel",
    "conda",       "product",  "CUDA_PATH",    "CUDA_HOME", "loader",
    "loader-root", "system",   "distribution", "hpc-sdk",   "wsl"};

const char* kiln_locate_scope_name(uint32_t scope) {
  return scope < KILNI_SCOPE_COUNT ? kNames[scope] : kNames[0];
}

uint32_t kiln_locate_scope_parse(kiln_string_view_t word) {
  for (uint32_t i = 1; i < KILNI_SCOPE_COUNT; i++) {
    if (kilni_base_sv_equal_cstr(word, kNames[i])) return i;
  }
  return 0;
}

// Ends with 0. Scopes of cuda-pathfinder come first, in its order; then the
// rest.
static const uint8_t kLibraries[] = {
    KILN_LOCATE_SCOPE_OVERRIDE,  KILN_LOCATE_SCOPE_ROOT,
    KILN_LOCATE_SCOPE_LOADED,    KILN_LOCATE_SCOPE_WHEEL,
    KILN_LOCATE_SCOPE_CONDA,     KILN_LOCATE_SCOPE_LOADER,
    KILN_LOCATE_SCOPE_PRODUCT,   KILN_LOCATE_SCOPE_CUDA_PATH,
    KILN_LOCATE_SCOPE_CUDA_HOME, KILN_LOCATE_SCOPE_LOADER_ROOT,
    KILN_LOCATE_SCOPE_SYSTEM,    KILN_LOCATE_SCOPE_DISTRIBUTION,
    KILN_LOCATE_SCOPE_HPC_SDK,   0};
static const uint8_t kDriver[] = {
    KILN_LOCATE_SCOPE_OVERRIDE,     KILN_LOCATE_SCOPE_LOADED,
    KILN_LOCATE_SCOPE_LOADER,       KILN_LOCATE_SCOPE_WSL,
    KILN_LOCATE_SCOPE_DISTRIBUTION, 0};
static const uint8_t kOthers[] = {
    KILN_LOCATE_SCOPE_OVERRIDE,  KILN_LOCATE_SCOPE_ROOT,
    KILN_LOCATE_SCOPE_WHEEL,     KILN_LOCATE_SCOPE_CONDA,
    KILN_LOCATE_SCOPE_PRODUCT,   KILN_LOCATE_SCOPE_CUDA_PATH,
    KILN_LOCATE_SCOPE_CUDA_HOME, KILN_LOCATE_SCOPE_LOADER_ROOT,
    KILN_LOCATE_SCOPE_SYSTEM,    KILN_LOCATE_SCOPE_DISTRIBUTION,
    KILN_LOCATE_SCOPE_HPC_SDK,   0};

static const uint8_t* usual_order(const kiln_locate_entry_t* entry) {
  if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_LIB) return kOthers;
  bool driver = kiln_locate_entry_class(entry) == KILN_LOCATE_CLASS_DRIVER;
  return driver ? kDriver : kLibraries;
}

// Whether a scope is looked at where none is required.
static bool is_open(const kiln_locate_t* locate, uint32_t scope) {
  if ((locate->forbid & KILN_LOCATE_SCOPE_BIT(scope)) != 0) return false;
  return scope != KILN_LOCATE_SCOPE_LOADED || locate->use_loaded;
}

bool kilni_locate_scope_is_allowed(const kiln_locate_t* locate,
                                   uint32_t scope) {
  uint32_t bit = KILN_LOCATE_SCOPE_BIT(scope);
  if ((locate->forbid & bit) != 0) return false;
  // What is named for one thing is above any policy but an explicit no.
  if (scope == KILN_LOCATE_SCOPE_OVERRIDE) return true;
  uint32_t required = locate->require != 0 ? locate->require : locate->named;
  if (required != 0 && (required & bit) == 0) return false;
  return is_open(locate, scope);
}

size_t kilni_locate_scope_order(const kiln_locate_t* locate,
                                const kiln_locate_entry_t* entry,
                                uint8_t out_scopes[KILNI_SCOPE_COUNT]) {
  const uint8_t* usual = usual_order(entry);
  size_t count = 0;
  // Rounds: the override; what is preferred; the rest.
  for (int round = 0; round < 3; round++) {
    for (const uint8_t* at = usual; *at != 0; at++) {
      bool first = *at == KILN_LOCATE_SCOPE_OVERRIDE;
      bool liked = !first && (locate->prefer & KILN_LOCATE_SCOPE_BIT(*at)) != 0;
      int its_round = first ? 0 : liked ? 1 : 2;
      // Folders that are named are of toolkits, and a driver is in none.
      bool allowed = usual == kDriver && locate->require == 0
                         ? is_open(locate, *at)
                         : kilni_locate_scope_is_allowed(locate, *at);
      if (its_round != round || !allowed) continue;
      out_scopes[count++] = *at;
    }
  }
  return count;
}
