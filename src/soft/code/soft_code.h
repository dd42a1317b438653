// SPDX-License-Identifier: Apache-2.0
//
// soft: a module made ready to run: decoded functions, globals in device
// memory, entries with what a launch must know.
//
// A module is refused as a whole at load: UNSUPPORTED with the first line whose
// form the engine does not execute (and how many more there are).
#ifndef KILN_SRC_SOFT_CODE_SOFT_CODE_H_
#define KILN_SRC_SOFT_CODE_SOFT_CODE_H_

#include "base/host.h"
#include "image/ptx.h"
#include "soft/code/soft_engine.h"
#include "soft/memory/soft_memory.h"

// A loaded module. thread-compatible
typedef struct kilni_soft_code_t kilni_soft_code_t;

// A parameter of an entry. thread-compatible
typedef struct kilni_soft_param_t {
  uint32_t offset;  // in the packed parameter buffer
  uint32_t bytes;
  uint32_t align;
  uint32_t is_float;
} kilni_soft_param_t;

// A kernel of a module; lives as long as it does. thread-compatible
typedef struct kilni_soft_entry_t {
  const char* name;
  const kilni_soft_code_t* code;
  const kilni_soft_param_t* params;
  uint32_t param_count;
  uint32_t param_bytes;  // exact end of the last parameter
  uint32_t static_shared_bytes;
  uint32_t local_bytes;        // of one thread, without calls
  uint32_t register_count;     // 32-bit registers a GPU would need, estimated
  uint32_t max_threads;        // .maxntid, .reqntid, or 1024
  uint32_t required_block[3];  // .reqntid; zeroes if absent
  uint32_t cluster;            // blocks of one that it is made for, 1; 0: any
  bool explicit_cluster;       // .explicitcluster
  uint32_t line;               // of the entry in the PTX
  uint32_t function;           // index into the decoded functions
} kilni_soft_entry_t;

kiln_status_t kilni_soft_code_create(const kiln_host_t* host,
                                     const kilni_image_ptx_module_t* module,
                                     const kilni_soft_lane_set_t* lanes,
                                     kilni_soft_memory_t* memory,
                                     kilni_soft_code_t** out_code);
// Frees its globals in device memory too.
void kilni_soft_code_destroy(kilni_soft_code_t* code);

uint32_t kilni_soft_code_entry_count(const kilni_soft_code_t* code);
const kilni_soft_entry_t* kilni_soft_code_entry(const kilni_soft_code_t* code,
                                                uint32_t index);
const kilni_soft_entry_t* kilni_soft_code_find(const kilni_soft_code_t* code,
                                               const char* name);
// A .global or .const variable; false if there is none of that name.
bool kilni_soft_code_global(const kilni_soft_code_t* code, const char* name,
                            uint64_t* out_address, uint64_t* out_bytes);

#endif  // KILN_SRC_SOFT_CODE_SOFT_CODE_H_
