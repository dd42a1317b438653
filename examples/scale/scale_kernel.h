// SPDX-License-Identifier: Apache-2.0
//
// examples: x = a * x, as CUDA C++ and as the PTX that NVRTC makes of it. Both
// are in the program, which so runs from any folder.
#ifndef KILN_EXAMPLES_SCALE_SCALE_KERNEL_H_
#define KILN_EXAMPLES_SCALE_SCALE_KERNEL_H_

static const char kCuda[] =
    "extern \"C\" __global__ void scale(float* x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] = a * x[i];\n"
    "}\n";

static const char kPtx[] =
    ".version 6.3\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p<2>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [x];\n"
    "  ld.param.f32 %f1, [a];\n"
    "  ld.param.u32 %r2, [n];\n"
    "  mov.u32 %r3, %ctaid.x;\n"
    "  mov.u32 %r4, %ntid.x;\n"
    "  mov.u32 %r5, %tid.x;\n"
    "  mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "  setp.ge.s32 %p1, %r1, %r2;\n"
    "  @%p1 bra done;\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mul.wide.s32 %rd3, %r1, 4;\n"
    "  add.s64 %rd4, %rd2, %rd3;\n"
    "  ld.global.f32 %f2, [%rd4];\n"
    "  mul.f32 %f3, %f2, %f1;\n"
    "  st.global.f32 [%rd4], %f3;\n"
    "done:\n"
    "  ret;\n"
    "}\n";

#endif  // KILN_EXAMPLES_SCALE_SCALE_KERNEL_H_
