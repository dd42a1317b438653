// SPDX-License-Identifier: Apache-2.0
//
// table: libNVVM's null provider. It compiles nothing and fails nothing: every
// program becomes the same PTX text without a kernel. Its programs are counted
// with the handles of the driver's null provider.
#include <string.h>

#include "table/nvvm_table.h"
#include "table/table_inside.h"

enum { NULL_MAJOR = 2, NULL_MINOR = 0 };

// What every program becomes; the NUL is counted, as libNVVM does.
static const char kNullCode[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n";

static kiln_nvvm_result_t nvvm_null_create(uint32_t kind, uint64_t bytes,
                                           uint64_t* out_value) {
  return kilni_table_null_create(kind, bytes, out_value)
             ? KILN_NVVM_SUCCESS
             : KILN_NVVM_ERROR_OUT_OF_MEMORY;
}

static kiln_nvvm_result_t nvvm_null_destroy(uint32_t kind, uint64_t value) {
  uint64_t bytes = 0;
  return kilni_table_null_take(kind, value, &bytes)
             ? KILN_NVVM_SUCCESS
             : KILN_NVVM_ERROR_INVALID_PROGRAM;
}

static const char* null_nvvmGetErrorString(kiln_nvvm_result_t result) {
  const char* name = kilni_table_nvvm_result_name(result);
  return name != NULL ? name : "NVVM_ERROR unknown";
}

static kiln_nvvm_result_t null_nvvmVersion(int* major, int* minor) {
  *major = NULL_MAJOR;
  *minor = NULL_MINOR;
  return KILN_NVVM_SUCCESS;
}

static kiln_nvvm_result_t null_nvvmIRVersion(int* major, int* minor,
                                             int* debug_major,
                                             int* debug_minor) {
  *major = NULL_MAJOR;
  *minor = NULL_MINOR;
  *debug_major = 3;
  *debug_minor = 2;
  return KILN_NVVM_SUCCESS;
}

static kiln_nvvm_result_t null_nvvmGetCompiledResultSize(
    kiln_nvvm_program_t program, size_t* bytes) {
  (void)program;
  *bytes = sizeof(kNullCode);
  return KILN_NVVM_SUCCESS;
}

static kiln_nvvm_result_t null_nvvmGetCompiledResult(
    kiln_nvvm_program_t program, char* data) {
  (void)program;
  memcpy(data, kNullCode, sizeof(kNullCode));
  return KILN_NVVM_SUCCESS;
}

static kiln_nvvm_result_t null_nvvmGetProgramLogSize(
    kiln_nvvm_program_t program, size_t* bytes) {
  (void)program;
  *bytes = 1;
  return KILN_NVVM_SUCCESS;
}

static kiln_nvvm_result_t null_nvvmGetProgramLog(kiln_nvvm_program_t program,
                                                 char* text) {
  (void)program;
  text[0] = '\0';
  return KILN_NVVM_SUCCESS;
}

#include "table/nvvm_null_gen.inc"

void kilni_table_nvvm_table_null(kiln_nvvm_table_t* out_table) {
  kilni_table_nvvm_table_init(out_table, "null", "built in");
  out_table->major = NULL_MAJOR;
  out_table->minor = NULL_MINOR;
  fill_null(out_table);
}
