// SPDX-License-Identifier: Apache-2.0
//
// cli: whether data and the shape of a launch fit a kernel.
#include "cli/run_fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/run_element.h"
#include "cli/run_entry.h"

void kilni_cli_param_words(const kilni_cli_kernel_t* kernel, uint32_t index,
                           char out[256]) {
  const char* name =
      index < kernel->param_count ? kernel->params[index].name : "";
  (void)snprintf(out, 256,
                 name[0] != 0 ? "%" PRIu32 " (\"%.100s\")" : "%" PRIu32 "%s",
                 index, name);
}

// ---- Data ----

// Raw bytes fit every kernel.
static void fix_element(const char* types, kilni_cli_error_t* error) {
  bool is_u8 = strcmp(types, "u8") == 0;
  kilni_cli_error_fix(
      error, "give it elements of %s %s (of a .npy file by numpy's astype%s)%s",
      strstr(types, " or ") == NULL ? "type" : "the kernel's own type,", types,
      is_u8 ? "" : ", or by its view where they are the bits of that type",
      is_u8 ? "" : ", or the bytes of whatever it is in a .bin file as u8");
}

bool kilni_cli_fit_data(const kilni_cli_kernel_t* kernel, uint32_t index,
                        const kilni_cli_shape_t* shape, bool is_bytes,
                        kilni_cli_error_t* error) {
  char taken[KILNI_CLI_TAKEN_TEXT], types[KILNI_CLI_TAKEN_TEXT];
  char what[256], holds[256];
  kilni_cli_type_t type;
  bool fits = kilni_cli_element_fits(kernel->name, index, shape->type, is_bytes,
                                     taken, &type);
  if (fits && type != KILNI_CLI_TYPE_NONE) return true;
  bool is_named =
      !fits || !kilni_cli_vector_fits(kernel->name, index, kernel->use,
                                      shape->type, is_bytes, taken, &type);
  if (is_named) {
    (void)snprintf(types, sizeof(types), "%s", kilni_cli_type_info(type)->text);
  } else if (kilni_cli_access_fits(kernel->use, index, shape->type, is_bytes,
                                   taken, types)) {
    return true;
  }
  kilni_cli_param_words(kernel, index, what);
  kilni_cli_shape_text(shape, holds, sizeof(holds));
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       is_named ? "parameter %s points to %s, and its buffer "
                                  "is %s"
                                : "the kernel uses what parameter %s points to "
                                  "as %s, and its buffer is %s",
                       what, taken, holds);
  fix_element(types, error);
  return false;
}

bool kilni_cli_fit_half(const kilni_cli_kernel_t* kernel, uint32_t index,
                        kilni_cli_type_t given) {
  kilni_cli_type_t type = kilni_cli_value_type(kernel->name, index);
  return type == given || kilni_cli_type_info(given)->kind != 'f' ||
         type == KILNI_CLI_TYPE_NONE;
}

// ---- The launch ----

static uint32_t default_block(uint32_t max_threads) {
  enum { WARP = 32, DEFAULT = 256 };
  if (max_threads == 0 || max_threads >= DEFAULT) return DEFAULT;
  return max_threads < WARP ? max_threads : max_threads / WARP * WARP;
}

// A buffer has no row length, and no mapping of threads to its elements: a
// launch of several dimensions must be given.
static bool fail_dimensions(const kilni_cli_kernel_t* kernel,
                            const kilni_cli_asked_t* asked,
                            kilni_cli_error_t* error) {
  bool three = kernel->thread_dimensions > 2 || kernel->block_dimensions > 2;
  const char* d = asked->dashes;
  const char* letters = three ? "X,Y,Z" : "X,Y";
  char shown[KILNI_CLI_ENTRY_SHOWN];
  (void)kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, NULL,
      "the kernel \"%s\" counts in %s dimensions, and the number of %s in "
      "each is unknown",
      kilni_cli_entry_shown(kernel->name, shown), three ? "three" : "two",
      asked->block != NULL  ? "blocks"
      : asked->grid != NULL ? "threads"
                            : "blocks and threads");
  kilni_cli_error_fix(
      error,
      "give both %sgrid %s and %sblock %s, as the kernel was written for: %s "
      "with one thread each are %sgrid %s %sblock %s",
      d, letters, d, letters,
      three ? "12 planes of 48 rows and 64 columns" : "48 rows of 64 columns",
      d, three ? "8,6,3" : "4,3", d, three ? "8,8,4" : "16,16");
  return false;
}

bool kilni_cli_fit_launch(const kilni_cli_kernel_t* kernel,
                          const kilni_cli_asked_t* asked, uint32_t out_grid[3],
                          uint32_t out_block[3], kilni_cli_error_t* error) {
  const uint32_t* required = kernel->required_block;
  bool is_required = required[0] != 0;
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    out_block[i] = asked->block != NULL ? asked->block[i]
                   : is_required        ? (required[i] == 0 ? 1 : required[i])
                   : i == 0             ? default_block(kernel->max_threads)
                                        : 1;
    out_grid[i] = asked->grid != NULL ? asked->grid[i] : 1;
    if (threads <= UINT32_MAX && out_block[i] != 0) threads *= out_block[i];
  }
  bool is_block_said = asked->block != NULL || is_required;
  if (asked->grid != NULL) {
    bool is_line = asked->grid[1] == 1 && asked->grid[2] == 1;
    return is_block_said ||
           (kernel->thread_dimensions < 2 &&
            (kernel->block_dimensions < 2 || !is_line)) ||
           fail_dimensions(kernel, asked, error);
  }
  uint64_t blocks =
      asked->longest == 0 ? 1 : (asked->longest - 1) / threads + 1;
  if (blocks > INT32_MAX) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "a grid for %" PRIu64 " elements has too many blocks",
                         asked->longest);
    kilni_cli_error_fix(error, "give %sgrid and %sblock", asked->dashes,
                        asked->dashes);
    return false;
  }
  out_grid[0] = (uint32_t)blocks;
  // A single block of several dimensions covers everything.
  bool is_one =
      blocks == 1 && (is_required || (is_block_said && threads > out_block[0]));
  bool counts_more = kernel->block_dimensions > 1 ||
                     (asked->block == NULL && kernel->thread_dimensions > 1);
  return is_one || !counts_more || fail_dimensions(kernel, asked, error);
}
