// SPDX-License-Identifier: Apache-2.0
//
// table: our declarations of NVTX against its own headers: what a profiler
// reads of ours, and the numbers by which it gives its entry points. Skipped
// where there are none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table/nvtx_abi.h"

#if defined(TEST_HAVE_NVTX_H)

// With its way in, which is what is compared: no version leaves that away.
#include <nvtx3/nvToolsExt.h>

// NVTX's numbers by our names: one for each row, or it does not compile.
enum {
  ITS_nvtxDomainRangePushEx = NVTX_CBID_CORE2_DomainRangePushEx,
  ITS_nvtxDomainRangePop = NVTX_CBID_CORE2_DomainRangePop,
  ITS_nvtxDomainCreateA = NVTX_CBID_CORE2_DomainCreateA,
};
#define KILNI_NVTX_ROW(name, number, result, params) \
  _Static_assert((int)ITS_##name == (number), #name);
#include "table/nvtx_rows.inc"
#undef KILNI_NVTX_ROW

#define SAME(ours, its) _Static_assert((int)(ours) == (int)(its), #ours)
SAME(KILN_NVTX_VERSION, NVTX_VERSION);
SAME(KILN_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(KILN_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(KILN_NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(KILN_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(KILN_NVTX_CORE2_ENTRIES, NVTX_CBID_CORE2_SIZE);
SAME(sizeof(kiln_nvtx_callbacks_t), sizeof(NvtxExportTableCallbacks));
SAME(sizeof(kiln_nvtx_version_t), sizeof(NvtxExportTableVersionInfo));
SAME(sizeof(kiln_nvtx_attributes_t), NVTX_EVENT_ATTRIB_STRUCT_SIZE);

#define PLACE(ours, field, its, its_field)               \
  SAME(offsetof(ours, field), offsetof(its, its_field)); \
  SAME(sizeof(((ours*)NULL)->field), sizeof(((its*)NULL)->its_field))
#define ATTRIBUTE(field, its_field) \
  PLACE(kiln_nvtx_attributes_t, field, nvtxEventAttributes_t, its_field)
ATTRIBUTE(version, version);
ATTRIBUTE(size, size);
ATTRIBUTE(category, category);
ATTRIBUTE(color_type, colorType);
ATTRIBUTE(color, color);
ATTRIBUTE(payload_type, payloadType);
ATTRIBUTE(payload, payload);
ATTRIBUTE(message_type, messageType);
ATTRIBUTE(message, message);
PLACE(kiln_nvtx_callbacks_t, size, NvtxExportTableCallbacks, struct_size);
PLACE(kiln_nvtx_callbacks_t, entries_of, NvtxExportTableCallbacks,
      GetModuleFunctionTable);
PLACE(kiln_nvtx_version_t, size, NvtxExportTableVersionInfo, struct_size);
PLACE(kiln_nvtx_version_t, version, NvtxExportTableVersionInfo, version);
PLACE(kiln_nvtx_version_t, tell, NvtxExportTableVersionInfo,
      SetInjectionNvtxVersion);
#endif

static void numbers_and_places_are_those_of_nvtx(void** state) {
  (void)state;
#if !defined(TEST_HAVE_NVTX_H)
  print_message("no nvtx3 in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_and_places_are_those_of_nvtx),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
#if !defined(TEST_HAVE_NVTX_H)
  return failed != 0 ? failed : 77;
#else
  return failed;
#endif
}
