// SPDX-License-Identifier: Apache-2.0
//
// table: nvJitLink's null provider. It links nothing and fails nothing: what
// comes out only begins as a cubin, as PTX or as LTO-IR. Its links are counted
// with the handles of the driver's null provider.
#include <string.h>

#include "table/nvjitlink_table.h"
#include "table/table_inside.h"

enum { NULL_MAJOR = 13, NULL_MINOR = 3 };

// What every link becomes; the NUL of PTX is counted, as nvJitLink does.
static const char kNullPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n";
static const char kNullCubin[64] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [16] = 2, [18] = (char)190};
static const char kNullLTOIR[32] = {(char)0xed, 0x43, 0x4e, 0x7f};

static kiln_nvjitlink_result_t nvjitlink_null_create(uint32_t kind,
                                                     uint64_t bytes,
                                                     uint64_t* out_value) {
  return kilni_table_null_create(kind, bytes, out_value)
             ? KILN_NVJITLINK_SUCCESS
             : KILN_NVJITLINK_ERROR_INTERNAL;
}

static kiln_nvjitlink_result_t nvjitlink_null_destroy(uint32_t kind,
                                                      uint64_t value) {
  uint64_t bytes = 0;
  return kilni_table_null_take(kind, value, &bytes)
             ? KILN_NVJITLINK_SUCCESS
             : KILN_NVJITLINK_ERROR_INVALID_INPUT;
}

static kiln_nvjitlink_result_t null_nvJitLinkVersion(unsigned int* major,
                                                     unsigned int* minor) {
  *major = NULL_MAJOR;
  *minor = NULL_MINOR;
  return KILN_NVJITLINK_SUCCESS;
}

#define NULL_OUTPUT(kind, type)                                       \
  static kiln_nvjitlink_result_t null_nvJitLinkGetLinked##kind##Size( \
      kiln_nvjitlink_handle_t link, size_t* bytes) {                  \
    (void)link;                                                       \
    *bytes = sizeof(kNull##kind);                                     \
    return KILN_NVJITLINK_SUCCESS;                                    \
  }                                                                   \
  static kiln_nvjitlink_result_t null_nvJitLinkGetLinked##kind(       \
      kiln_nvjitlink_handle_t link, type* data) {                     \
    (void)link;                                                       \
    memcpy(data, kNull##kind, sizeof(kNull##kind));                   \
    return KILN_NVJITLINK_SUCCESS;                                    \
  }
NULL_OUTPUT(Cubin, void)
NULL_OUTPUT(Ptx, char)
NULL_OUTPUT(LTOIR, void)
#undef NULL_OUTPUT

#define NULL_LOG(kind)                                             \
  static kiln_nvjitlink_result_t null_nvJitLinkGet##kind##LogSize( \
      kiln_nvjitlink_handle_t link, size_t* bytes) {               \
    (void)link;                                                    \
    *bytes = 1;                                                    \
    return KILN_NVJITLINK_SUCCESS;                                 \
  }                                                                \
  static kiln_nvjitlink_result_t null_nvJitLinkGet##kind##Log(     \
      kiln_nvjitlink_handle_t link, char* text) {                  \
    (void)link;                                                    \
    text[0] = '\0';                                                \
    return KILN_NVJITLINK_SUCCESS;                                 \
  }
NULL_LOG(Error)
NULL_LOG(Info)
#undef NULL_LOG

#include "table/nvjitlink_null_gen.inc"

void kilni_table_nvjitlink_table_null(kiln_nvjitlink_table_t* out_table) {
  kilni_table_nvjitlink_table_init(out_table, "null", "built in");
  out_table->major = NULL_MAJOR;
  out_table->minor = NULL_MINOR;
  fill_null(out_table);
}
