// SPDX-License-Identifier: Apache-2.0
//
// contract: the kernels that cases use, by hand, for any GPU since sm_70.
#include "contract.h"
#include "table/cuda_table.h"

// clang-format off
const char* const contract_ptx =
".version 7.0\n"
".target sm_70\n"
".address_size 64\n"
".extern .func (.param .b32 result) vprintf(.param .b64 f, .param .b64 v);\n"
".extern .func __assertfail(.param .b64 message, .param .b64 file,\n"
"  .param .b32 line, .param .b64 function, .param .b64 size);\n"
".visible .global .align 4 .u32 counter = 7;\n"
".visible .global .align 4 .b8 zeroes[64];\n"
".global .align 1 .b8 format[10] = {118,97,108,117,101,32,37,117,10,0};\n"
".global .align 1 .b8 text[4] = {98,97,100,0};\n"
"\n"
// p[i] = v for each thread of the grid
".visible .entry put(.param .u64 p, .param .u32 v) {\n"
"  .reg .b32 %r<6>;\n  .reg .b64 %d<4>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [v];\n"
"  cvta.to.global.u64 %d1, %d1;\n"
"  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"
"  mad.lo.u32 %r5, %r2, %r3, %r4;\n"
"  mul.wide.u32 %d2, %r5, 4;\n  add.u64 %d3, %d1, %d2;\n"
"  st.global.u32 [%d3], %r1;\n  ret;\n}\n"
// *to = *from, one thread
".visible .entry move(.param .u64 to, .param .u64 from) {\n"
"  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
"  ld.param.u64 %d1, [to];\n  ld.param.u64 %d2, [from];\n"
"  ld.volatile.global.u32 %r1, [%d2];\n"
"  st.global.u32 [%d1], %r1;\n  ret;\n}\n"
// reads *p many times, then *p = v, one thread
".visible .entry slow_put(.param .u64 p, .param .u32 v) {\n"
"  .reg .pred %p<2>;\n  .reg .b32 %r<6>;\n  .reg .b64 %d<2>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [v];\n"
"  mov.u32 %r2, 0;\n"
"LOOP:\n"
"  ld.volatile.global.u32 %r3, [%d1];\n"
"  add.u32 %r2, %r2, 1;\n"
"  setp.lt.u32 %p1, %r2, 20000;\n"
"  @%p1 bra LOOP;\n"
"  st.global.u32 [%d1], %r1;\n  ret;\n}\n"
// *p = *p * 3 + v, one thread: what is done in another order is another number
".visible .entry step(.param .u64 p, .param .u32 v) {\n"
"  .reg .b32 %r<4>;\n  .reg .b64 %d<2>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [v];\n"
"  ld.volatile.global.u32 %r2, [%d1];\n"
"  mad.lo.u32 %r3, %r2, 3, %r1;\n"
"  st.global.u32 [%d1], %r3;\n  ret;\n}\n"
// mixed parameters: p[0..2] = a, b, low word of c
".visible .entry mixed(.param .u64 p, .param .u8 a, .param .u16 b,\n"
"    .param .u64 c) {\n"
"  .reg .b16 %h<3>;\n  .reg .b32 %r<4>;\n  .reg .b64 %d<3>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u8 %h1, [a];\n"
"  ld.param.u16 %h2, [b];\n  ld.param.u64 %d2, [c];\n"
"  cvt.u32.u16 %r1, %h1;\n  cvt.u32.u16 %r2, %h2;\n  cvt.u32.u64 %r3, %d2;\n"
"  st.global.u32 [%d1], %r1;\n  st.global.u32 [%d1+4], %r2;\n"
"  st.global.u32 [%d1+8], %r3;\n  ret;\n}\n"
// last word of dynamic shared memory written and read back
".extern .shared .align 4 .b8 dynamic[];\n"
".visible .entry shared(.param .u64 p, .param .u32 offset) {\n"
"  .reg .b32 %r<5>;\n  .reg .b64 %d<2>;\n"
"  ld.param.u64 %d1, [p];\n  ld.param.u32 %r1, [offset];\n"
"  mov.u32 %r2, dynamic;\n  add.u32 %r2, %r2, %r1;\n"
"  mov.u32 %r3, 77;\n  st.volatile.shared.u32 [%r2], %r3;\n"
"  ld.volatile.shared.u32 %r4, [%r2];\n"
"  st.global.u32 [%d1], %r4;\n  ret;\n}\n"
".visible .entry narrow() .maxntid 64, 1, 1 {\n  ret;\n}\n"
".visible .entry bump() {\n"
"  .reg .b32 %r<2>;\n"
"  atom.global.add.u32 %r1, [counter], 1;\n  ret;\n}\n"
// faults
".visible .entry stray(.param .u64 p) {\n"
"  .reg .b32 %r<2>;\n  .reg .b64 %d<2>;\n"
"  ld.param.u64 %d1, [p];\n  mov.u32 %r1, 1;\n"
"  st.global.u32 [%d1], %r1;\n  ret;\n}\n"
".visible .entry trapped() {\n  trap;\n}\n"
".visible .entry asserted() {\n"
"  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
"  mov.u64 %d1, text;\n  cvta.global.u64 %d1, %d1;\n"
"  mov.u32 %r1, 42;\n  mov.u64 %d2, 1;\n"
"  {\n"
"  .param .b64 a0;\n  .param .b64 a1;\n  .param .b32 a2;\n"
"  .param .b64 a3;\n  .param .b64 a4;\n"
"  st.param.b64 [a0], %d1;\n  st.param.b64 [a1], %d1;\n"
"  st.param.b32 [a2], %r1;\n  st.param.b64 [a3], %d1;\n"
"  st.param.b64 [a4], %d2;\n"
"  call.uni __assertfail, (a0, a1, a2, a3, a4);\n"
"  }\n"
"  ret;\n}\n"
// "value %u\n" with the value
".visible .entry say(.param .u32 value) {\n"
"  .local .align 8 .b8 depot[8];\n"
"  .reg .b32 %r<3>;\n  .reg .b64 %d<4>;\n"
"  ld.param.u32 %r1, [value];\n"
"  mov.u64 %d1, depot;\n  st.local.u32 [%d1], %r1;\n"
"  cvta.local.u64 %d2, %d1;\n"
"  mov.u64 %d3, format;\n  cvta.global.u64 %d3, %d3;\n"
"  {\n"
"  .param .b64 a0;\n  .param .b64 a1;\n  .param .b32 r0;\n"
"  st.param.b64 [a0], %d3;\n  st.param.b64 [a1], %d2;\n"
"  call.uni (r0), vprintf, (a0, a1);\n"
"  ld.param.b32 %r2, [r0];\n"
"  }\n"
"  ret;\n}\n";
// clang-format on

kiln_cu_module_t contract_load(contract_t* t) {
  kiln_cu_module_t module = NULL;
  OK(t->cu->cuModuleLoadData(&module, contract_ptx));
  CHECK(module != NULL);
  return module;
}

kiln_cu_function_t contract_function(contract_t* t, kiln_cu_module_t module,
                                     const char* name) {
  kiln_cu_function_t function = NULL;
  OK(t->cu->cuModuleGetFunction(&function, module, name));
  CHECK(function != NULL);
  return function;
}

kiln_cu_result_t contract_one(contract_t* t, kiln_cu_module_t module,
                              const char* name, kiln_cu_stream_t stream,
                              void** params) {
  kiln_cu_function_t function = contract_function(t, module, name);
  return t->cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params,
                               NULL);
}

void contract_slow_put(contract_t* t, kiln_cu_module_t module,
                       kiln_cu_stream_t stream, kiln_cu_deviceptr_t address,
                       uint32_t value) {
  void* params[] = {&address, &value};
  OK(contract_one(t, module, "slow_put", stream, params));
}
