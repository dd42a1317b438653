// SPDX-License-Identifier: Apache-2.0
//
// soft: what a module that is ready to run is made of. The decoder fills it;
// the engine reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_CODE_INSIDE_H_
#define KILN_SRC_SOFT_CODE_SOFT_CODE_INSIDE_H_

#include "soft/code/soft_code.h"
#include "soft/code/soft_function.h"

// A .global, .const or .shared variable of a module. thread-compatible
typedef struct kilni_soft_symbol_t {
  char* name;        // NULL if it cannot be asked for
  uint64_t address;  // 0 in .shared
  uint64_t bytes;
  uint32_t align;
  uint8_t space;        // kilni_image_ptx_space_t
  uint8_t is_dynamic;   // .extern .shared: after the static ones
  uint8_t is_constant;  //
  uint8_t reserved;
} kilni_soft_symbol_t;

// Where the PTX from a line on comes from. thread-compatible
typedef struct kilni_soft_line_t {
  uint32_t ptx_line;
  uint32_t file;       // into the code's; KILNI_SOFT_NONE: not known
  uint32_t line;       //
  uint32_t call_file;  // where its function was inlined, or NONE
  uint32_t call_line;
} kilni_soft_line_t;

struct kilni_soft_code_t {
  const kiln_host_t* host;
  kilni_soft_memory_t* memory;
  const kilni_soft_lane_set_t* lanes;
  kilni_soft_function_t* functions;
  kilni_soft_entry_t* entries;
  kilni_soft_param_t* params;
  kilni_soft_symbol_t* symbols;  // as many as the tree has variables
  uint32_t function_count;
  uint32_t entry_count;
  uint32_t param_count;
  uint32_t symbol_count;
  uint32_t site_count;  // of memory instructions
  // The data of `.loc`, for faults: beside the code, by lines of the PTX.
  uint32_t line_count;
  kilni_soft_line_t* lines;
  char** files;  // that they are of
  uint32_t file_count;
  uint32_t reserved;
};

// soft_lines.c.
kiln_status_t kilni_soft_lines_make(kilni_soft_code_t* code,
                                    const kilni_image_ptx_module_t* module);
void kilni_soft_lines_free(kilni_soft_code_t* code);
// What `.loc` states for a line of the PTX; NULL where it states nothing. Names
// of files are in code->files.
const kilni_soft_line_t* kilni_soft_lines_find(const kilni_soft_code_t* code,
                                               uint32_t ptx_line);

// soft_reach.c.
//
// Sets reached[f] for each function that `entry` can reach.
void kilni_soft_reach(const kilni_soft_code_t* code, uint32_t entry,
                      const kilni_soft_function_t** reached);
// Lays out the .shared variables of those functions: offsets[symbol], or
// KILNI_SOFT_NONE. Dynamic ones follow the others. Returns the bytes.
uint32_t kilni_soft_shared_bytes(const kilni_soft_code_t* code,
                                 const kilni_soft_function_t* const* reached,
                                 uint32_t* offsets);

#endif  // KILN_SRC_SOFT_CODE_SOFT_CODE_INSIDE_H_
