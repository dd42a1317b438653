// SPDX-License-Identifier: Apache-2.0
//
// contract: the driver's linker, and libraries.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

enum { LOG_BYTES = 8192 };

// clang-format off
// What another text defines is used: a function, a variable, one that is weak
// in both, one that is common; `own` and `hidden` are two of each.
static char kUser[] =
".version 7.0\n.target sm_70\n.address_size 64\n"
".extern .func (.param .b32 out) twice(.param .b32 in);\n"
".extern .global .align 4 .u32 offset;\n"
".weak .global .align 4 .u32 weak_one = 3;\n"
".common .global .align 4 .u32 common_one;\n"
".global .align 4 .u32 own = 100;\n"
".func (.param .b32 out) hidden(.param .b32 in) {\n"
"  .reg .b32 %r<3>;\n  ld.param.u32 %r1, [in];\n"
"  add.u32 %r2, %r1, 1;\n  st.param.b32 [out], %r2;\n  ret;\n}\n"
// *p = hidden(twice(v)) + offset + weak_one + own
".visible .entry use(.param .u64 p, .param .u32 v) {\n"
"  .reg .b32 %r<9>;\n  .reg .b64 %d<3>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [v];\n"
"  {\n  .param .b32 a;\n  .param .b32 b;\n"
"  st.param.b32 [a], %r1;\n  call.uni (b), twice, (a);\n"
"  ld.param.b32 %r2, [b];\n  }\n"
"  {\n  .param .b32 a;\n  .param .b32 b;\n"
"  st.param.b32 [a], %r2;\n  call.uni (b), hidden, (a);\n"
"  ld.param.b32 %r2, [b];\n  }\n"
"  ld.global.u32 %r3, [offset];\n  ld.global.u32 %r4, [weak_one];\n"
"  ld.global.u32 %r5, [own];\n"
"  add.u32 %r6, %r2, %r3;\n  add.u32 %r6, %r6, %r4;\n"
"  add.u32 %r6, %r6, %r5;\n"
"  st.global.u32 [common_one], %r6;\n"
"  cvta.to.global.u64 %d2, %d1;\n  st.global.u32 [%d2], %r6;\n  ret;\n}\n";

static char kMaker[] =
".version 7.0\n.target sm_70\n.address_size 64\n"
".visible .global .align 4 .u32 offset = 1000;\n"
".weak .global .align 4 .u32 weak_one = 3;\n"
".common .global .align 4 .u32 common_one;\n"
".global .align 4 .u32 own = 2;\n"
".func (.param .b32 out) hidden(.param .b32 in) {\n"
"  .reg .b32 %r<4>;\n  ld.param.u32 %r1, [in];\n"
"  ld.global.u32 %r2, [own];\n"
"  mul.lo.u32 %r3, %r1, %r2;\n  st.param.b32 [out], %r3;\n  ret;\n}\n"
".visible .func (.param .b32 out) twice(.param .b32 in) {\n"
"  .reg .b32 %r<3>;\n  ld.param.u32 %r1, [in];\n"
"  {\n  .param .b32 a;\n  .param .b32 b;\n"
"  st.param.b32 [a], %r1;\n  call.uni (b), hidden, (a);\n"
"  ld.param.b32 %r2, [b];\n  }\n"
"  st.param.b32 [out], %r2;\n  ret;\n}\n"
// *p = common_one
".visible .entry tell(.param .u64 p) {\n"
"  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
"  ld.param.u64 %d1, [p];\n  cvta.to.global.u64 %d2, %d1;\n"
"  ld.global.u32 %r1, [common_one];\n  st.global.u32 [%d2], %r1;\n  ret;\n}\n";

static char kLacking[] =
".version 7.0\n.target sm_70\n.address_size 64\n"
".extern .func nowhere();\n"
".visible .entry lost() {\n  call.uni nowhere, ();\n  ret;\n}\n";

static char kBad[] =
".version 7.0\n.target sm_70\n.address_size 64\n"
".visible .entry wrong() {\n  frobnicate.u32 %r1;\n  ret;\n}\n";

static const char kLibrary[] =
".version 7.0\n.target sm_70\n.address_size 64\n"
".visible .global .align 4 .u32 number = 11;\n"
".visible .entry put(.param .u64 p, .param .u32 v) {\n"
"  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [v];\n"
"  cvta.to.global.u64 %d2, %d1;\n  st.global.u32 [%d2], %r1;\n  ret;\n}\n";
// clang-format on

// A link with both logs; everything outlives it. one-thread
typedef struct linking_t {
  kiln_cu_link_state_t link;
  kiln_cu_jit_option_t options[4];
  void* values[4];
  char errors[LOG_BYTES];
  char infos[LOG_BYTES];
} linking_t;

static linking_t shared;

static linking_t* begin(contract_t* t) {
  linking_t* l = &shared;
  memset(l, 0, sizeof(*l));
  l->options[0] = KILN_CU_JIT_INFO_LOG_BUFFER;
  l->values[0] = l->infos;
  l->options[1] = KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
  l->values[1] = (void*)(uintptr_t)sizeof(l->infos);
  l->options[2] = KILN_CU_JIT_ERROR_LOG_BUFFER;
  l->values[2] = l->errors;
  l->options[3] = KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  l->values[3] = (void*)(uintptr_t)sizeof(l->errors);
  OK(t->cu->cuLinkCreate(4, l->options, l->values, &l->link));
  CHECK(l->link != NULL);
  return l;
}

static kiln_cu_result_t add(contract_t* t, linking_t* l, char* text,
                            size_t bytes, const char* name) {
  return t->cu->cuLinkAddData(l->link, KILN_CU_JIT_INPUT_PTX, text, bytes, name,
                              0, NULL, NULL);
}

static void link_life(contract_t* t) {
  kiln_cu_link_state_t link = NULL;
  OK(t->cu->cuLinkCreate(0, NULL, NULL, &link));
  CHECK(link != NULL);
  OK(t->cu->cuLinkDestroy(link));
  IS(INVALID_VALUE, t->cu->cuLinkCreate(0, NULL, NULL, NULL));
}

static uint32_t run_on(contract_t* t, kiln_cu_module_t module, const char* name,
                       uint32_t argument) {
  kiln_cu_deviceptr_t memory = 0;
  uint32_t value = 0;
  OK(t->cu->cuMemAlloc(&memory, sizeof(value)));
  void* params[] = {&memory, &argument};
  OK(contract_one(t, module, name, NULL, params));
  OK(t->cu->cuMemcpyDtoH(&value, memory, sizeof(value)));
  OK(t->cu->cuMemFree(memory));
  return value;
}

static void link_two(contract_t* t) {
  linking_t* l = begin(t);
  OK(add(t, l, kUser, sizeof(kUser), "user"));
  OK(add(t, l, kMaker, sizeof(kMaker), "maker"));
  void* image = NULL;
  size_t bytes = 0;
  OK(t->cu->cuLinkComplete(l->link, &image, &bytes));
  CHECK(image != NULL && bytes > 0);
  kiln_cu_module_t module = NULL;
  OK(t->cu->cuModuleLoadData(&module, image));
  OK(t->cu->cuLinkDestroy(l->link));
  memset(l, 0, sizeof(*l));  // only now
  // (2 * 21 + 1) + 1000 + 3 + 100
  CHECK(run_on(t, module, "use", 21) == 1146);
  CHECK(run_on(t, module, "tell", 0) == 1146);
  kiln_cu_deviceptr_t address = 0;
  OK(t->cu->cuModuleGetGlobal(&address, &bytes, module, "offset"));
  CHECK(bytes == 4);
  OK(t->cu->cuModuleUnload(module));
}

static void link_undefined(contract_t* t) {
  linking_t* l = begin(t);
  void* image = NULL;
  size_t bytes = 0;
  kiln_cu_result_t added = add(t, l, kLacking, sizeof(kLacking), "lacking");
  kiln_cu_result_t result = added == KILN_CU_SUCCESS
                                ? t->cu->cuLinkComplete(l->link, &image, &bytes)
                                : added;
  CHECK(result != KILN_CU_SUCCESS);
  CHECK(strstr(l->errors, "Undefined reference to 'nowhere' in 'lacking'") !=
        NULL);
  OK(t->cu->cuLinkDestroy(l->link));
}

static void link_twice_defined(contract_t* t) {
  linking_t* l = begin(t);
  void* image = NULL;
  size_t bytes = 0;
  kiln_cu_result_t result = add(t, l, kMaker, sizeof(kMaker), "one");
  if (result == KILN_CU_SUCCESS) {
    result = add(t, l, kMaker, sizeof(kMaker), "two");
  }
  if (result == KILN_CU_SUCCESS) {
    result = t->cu->cuLinkComplete(l->link, &image, &bytes);
  }
  CHECK(result != KILN_CU_SUCCESS);
  CHECK(l->errors[0] != '\0');
  OK(t->cu->cuLinkDestroy(l->link));
}

static void link_refusals(contract_t* t) {
  linking_t* l = begin(t);
  IS(INVALID_PTX, add(t, l, kBad, sizeof(kBad), "bad"));
  CHECK(l->errors[0] != '\0');
  CHECK(memchr(l->errors, '\0', sizeof(l->errors)) != NULL);
  OK(t->cu->cuLinkDestroy(l->link));
  l = begin(t);
  IS(FILE_NOT_FOUND, t->cu->cuLinkAddFile(l->link, KILN_CU_JIT_INPUT_PTX,
                                          "no/such/file.ptx", 0, NULL, NULL));
  OK(t->cu->cuLinkDestroy(l->link));
}

// ---- Libraries ----

static kiln_cu_library_t load(contract_t* t) {
  kiln_cu_library_t library = NULL;
  OK(t->cu->cuLibraryLoadData(&library, kLibrary, NULL, NULL, 0, NULL, NULL,
                              0));
  CHECK(library != NULL);
  return library;
}

static void library_life(contract_t* t) {
  kiln_cu_library_t library = load(t);
  kiln_cu_module_t module = NULL;
  OK(t->cu->cuLibraryGetModule(&module, library));
  CHECK(module != NULL);
  OK(t->cu->cuLibraryUnload(library));
}

static void library_kernels(contract_t* t) {
  kiln_cu_library_t library = load(t);
  kiln_cu_kernel_t kernel = NULL;
  kiln_cu_kernel_t again = NULL;
  kiln_cu_function_t function = NULL;
  OK(t->cu->cuLibraryGetKernel(&kernel, library, "put"));
  OK(t->cu->cuLibraryGetKernel(&again, library, "put"));
  CHECK(kernel != NULL && kernel == again);
  IS(NOT_FOUND, t->cu->cuLibraryGetKernel(&again, library, "absent"));
  OK(t->cu->cuKernelGetFunction(&function, kernel));
  if (kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuKernelGetLibrary)) {
    kiln_cu_library_t owner = NULL;
    OK(t->cu->cuKernelGetLibrary(&owner, kernel));
    CHECK(owner == library);
  }
  kiln_cu_deviceptr_t memory = 0;
  uint32_t value = 5;
  OK(t->cu->cuMemAlloc(&memory, sizeof(value)));
  void* params[] = {&memory, &value};
  OK(t->cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, memory, sizeof(value)));
  CHECK(value == 5);
  // A kernel that was cast stands for its function.
  kiln_cu_function_t cast = (kiln_cu_function_t)(void*)kernel;
  value = 6;
  OK(t->cu->cuLaunchKernel(cast, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, memory, sizeof(value)));
  CHECK(value == 6);
  value = 7;
  kiln_cu_launch_config_t config = {.grid_x = 1,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = 1,
                                    .block_y = 1,
                                    .block_z = 1};
  OK(t->cu->cuLaunchKernelEx(&config, cast, params, NULL));
  value = 8;
  OK(t->cu->cuLaunchCooperativeKernel(cast, 1, 1, 1, 1, 1, 1, 0, NULL, params));
  value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, memory, sizeof(value)));
  CHECK(value == 8);
  int of_cast = 0;
  int of_function = -1;
  OK(t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_cast, cast, 64, 0));
  OK(t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_function, function,
                                                        64, 0));
  CHECK(of_cast == of_function);
  OK(t->cu->cuMemFree(memory));
  int number = -1;
  OK(t->cu->cuKernelGetAttribute(&number,
                                 KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                 kernel, t->device));
  CHECK(number == 1024);
  OK(t->cu->cuKernelSetAttribute(
      KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, kernel,
      t->device));
  OK(t->cu->cuKernelGetAttribute(
      &number, KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel,
      t->device));
  CHECK(number == 2048);
  size_t most = 0;
  OK(t->cu->cuOccupancyAvailableDynamicSMemPerBlock(&most, function, 1, 128));
  CHECK(most >= 2048);  // what the kernel was set to; a driver says no more
  OK(t->cu->cuLibraryUnload(library));
}

static void library_listing(contract_t* t) {
  kiln_cu_library_t library = load(t);
  kiln_cu_kernel_t kernel = NULL;
  if (kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuLibraryEnumerateKernels) &&
      kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuLibraryGetKernelCount) &&
      kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuKernelGetParamInfo) &&
      kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuKernelGetName)) {
    unsigned int count = 0;
    OK(t->cu->cuLibraryGetKernelCount(&count, library));
    CHECK(count == 1);
    OK(t->cu->cuLibraryEnumerateKernels(&kernel, count, library));
    const char* name = NULL;
    OK(t->cu->cuKernelGetName(&name, kernel));
    CHECK(strcmp(name, "put") == 0);
    size_t offset = 0;
    size_t bytes = 0;
    OK(t->cu->cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    CHECK(offset == 8 && bytes == 4);
    IS(INVALID_VALUE, t->cu->cuKernelGetParamInfo(kernel, 2, &offset, &bytes));
  }
  OK(t->cu->cuLibraryUnload(library));
}

static void library_globals(contract_t* t) {
  kiln_cu_library_t library = load(t);
  kiln_cu_deviceptr_t address = 0;
  size_t bytes = 0;
  uint32_t value = 0;
  OK(t->cu->cuLibraryGetGlobal(&address, &bytes, library, "number"));
  CHECK(bytes == 4);
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  CHECK(value == 11);
  IS(NOT_FOUND, t->cu->cuLibraryGetGlobal(&address, &bytes, library, "absent"));
  IS(NOT_FOUND,
     t->cu->cuLibraryGetManaged(&address, &bytes, library, "absent"));
  OK(t->cu->cuLibraryUnload(library));
}

static void library_refusals(contract_t* t) {
  kiln_cu_library_t library = NULL;
  kiln_cu_kernel_t kernel = NULL;
  // A driver that loads late (580) finds out when a kernel is asked for.
  kiln_cu_result_t result =
      t->cu->cuLibraryLoadData(&library, kBad, NULL, NULL, 0, NULL, NULL, 0);
  if (result == KILN_CU_SUCCESS) {
    CHECK(t->cu->cuLibraryGetKernel(&kernel, library, "put") !=
          KILN_CU_SUCCESS);
    OK(t->cu->cuLibraryUnload(library));
  } else {
    CHECK(result == KILN_CU_ERROR_INVALID_PTX);
  }
  IS(FILE_NOT_FOUND,
     t->cu->cuLibraryLoadFromFile(&library, "no/such/file.ptx", NULL, NULL, 0,
                                  NULL, NULL, 0));
}

static const contract_case_t kCases[] = {
    {"link_life", link_life, CONTRACT_PLAIN},
    {"link_two", link_two, CONTRACT_PLAIN},
    {"link_undefined", link_undefined, CONTRACT_PLAIN},
    {"link_twice_defined", link_twice_defined, CONTRACT_PLAIN},
    {"link_refusals", link_refusals, CONTRACT_PLAIN},
    {"library_life", library_life, CONTRACT_PLAIN},
    {"library_kernels", library_kernels, CONTRACT_PLAIN},
    {"library_listing", library_listing, CONTRACT_PLAIN},
    {"library_globals", library_globals, CONTRACT_PLAIN},
    {"library_refusals", library_refusals, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_link, kCases);
