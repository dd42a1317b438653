// SPDX-License-Identifier: Apache-2.0
//
// table: NVRTC's null provider. It compiles nothing and fails nothing: every
// source becomes the same PTX text without a kernel, or a file of another form
// that only begins as one. Its programs are counted
// with the handles of the driver's null provider.
#include <string.h>

#include "table/nvrtc_table.h"
#include "table/table_inside.h"

enum { NULL_MAJOR = 13, NULL_MINOR = 0, NULL_ARCH = 75 };

// What every source becomes; the NUL is counted, as NVRTC does.
static const char kNullPTX[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n";
static const char kNullCUBIN[64] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [16] = 2, [18] = (char)190};
static const char kNullLTOIR[32] = {(char)0xed, 0x43, 0x4e, 0x7f};
static const char kNullOptiXIR[32] = {(char)0xed, 0x43, 0x4e, 0x7f};

static kiln_nvrtc_result_t nvrtc_null_create(uint32_t kind, uint64_t bytes,
                                             uint64_t* out_value) {
  return kilni_table_null_create(kind, bytes, out_value)
             ? KILN_NVRTC_SUCCESS
             : KILN_NVRTC_ERROR_OUT_OF_MEMORY;
}

static kiln_nvrtc_result_t nvrtc_null_destroy(uint32_t kind, uint64_t value) {
  uint64_t bytes = 0;
  return kilni_table_null_take(kind, value, &bytes)
             ? KILN_NVRTC_SUCCESS
             : KILN_NVRTC_ERROR_INVALID_PROGRAM;
}

static const char* null_nvrtcGetErrorString(kiln_nvrtc_result_t result) {
  const char* name = kilni_table_nvrtc_result_name(result);
  return name != NULL ? name : "NVRTC_ERROR unknown";
}

static kiln_nvrtc_result_t null_nvrtcVersion(int* major, int* minor) {
  *major = NULL_MAJOR;
  *minor = NULL_MINOR;
  return KILN_NVRTC_SUCCESS;
}

static kiln_nvrtc_result_t null_nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return KILN_NVRTC_SUCCESS;
}

static kiln_nvrtc_result_t null_nvrtcGetSupportedArchs(int* archs) {
  archs[0] = NULL_ARCH;
  return KILN_NVRTC_SUCCESS;
}

#define NULL_OUTPUT(kind)                                                      \
  static kiln_nvrtc_result_t null_nvrtcGet##kind##Size(                        \
      kiln_nvrtc_program_t program, size_t* bytes) {                           \
    (void)program;                                                             \
    *bytes = sizeof(kNull##kind);                                              \
    return KILN_NVRTC_SUCCESS;                                                 \
  }                                                                            \
  static kiln_nvrtc_result_t null_nvrtcGet##kind(kiln_nvrtc_program_t program, \
                                                 char* data) {                 \
    (void)program;                                                             \
    memcpy(data, kNull##kind, sizeof(kNull##kind));                            \
    return KILN_NVRTC_SUCCESS;                                                 \
  }
NULL_OUTPUT(PTX)
NULL_OUTPUT(CUBIN)
NULL_OUTPUT(LTOIR)
NULL_OUTPUT(OptiXIR)
#undef NULL_OUTPUT

static kiln_nvrtc_result_t null_nvrtcGetProgramLogSize(
    kiln_nvrtc_program_t program, size_t* bytes) {
  (void)program;
  *bytes = 1;
  return KILN_NVRTC_SUCCESS;
}

static kiln_nvrtc_result_t null_nvrtcGetProgramLog(kiln_nvrtc_program_t program,
                                                   char* text) {
  (void)program;
  text[0] = '\0';
  return KILN_NVRTC_SUCCESS;
}

static kiln_nvrtc_result_t null_nvrtcGetLoweredName(
    kiln_nvrtc_program_t program, const char* name, const char** lowered) {
  (void)program;
  *lowered = name;
  return KILN_NVRTC_SUCCESS;
}

#include "table/nvrtc_null_gen.inc"

void kilni_table_nvrtc_table_null(kiln_nvrtc_table_t* out_table) {
  kilni_table_nvrtc_table_init(out_table, "null", "built in");
  out_table->major = NULL_MAJOR;
  out_table->minor = NULL_MINOR;
  fill_null(out_table);
}
