// SPDX-License-Identifier: Apache-2.0
//
// tests: what PTX leaves to the hardware or says only in a footnote: divisions
// by zero, the bits of NaNs, registers wider than the type, shifts and fields
// out of range. Everything is stored as integers, so that a NaN's bits count.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: integer_edges
// grid: 2 1 1
// block: 64 1 1
// buffer: a in u64 128 edge 131
// buffer: b in u64 128 bits 132
// buffer: out out u64 4096
//
// run: float_edges
// grid: 8 1 1
// block: 64 1 1
// buffer: a in u32 32 bits 141
// buffer: out out u32 16384
//
// run: double_edges
// grid: 8 1 1
// block: 64 1 1
// buffer: a in u64 32 bits 142
// buffer: out out u64 12288

#define R32(at, form, x)                                             \
  do {                                                               \
    unsigned r_;                                                     \
    asm volatile(form " %0, %1;" : "=r"(r_) : "r"(x));               \
    o[at] = r_;                                                      \
  } while (0)
#define R32_2(at, form, x, y)                                        \
  do {                                                               \
    unsigned r_;                                                     \
    asm volatile(form " %0, %1, %2;" : "=r"(r_) : "r"(x), "r"(y));   \
    o[at] = r_;                                                      \
  } while (0)
#define R64_2(at, form, x, y)                                        \
  do {                                                               \
    unsigned long long r_;                                           \
    asm volatile(form " %0, %1, %2;" : "=l"(r_) : "l"(x), "l"(y));   \
    o[at] = r_;                                                      \
  } while (0)
#define R16_2(at, form, x, y)                                        \
  do {                                                               \
    unsigned short r_;                                               \
    asm volatile(form " %0, %1, %2;"                                 \
                 : "=h"(r_)                                          \
                 : "h"((unsigned short)(x)), "h"((unsigned short)(y))); \
    o[at] = r_;                                                      \
  } while (0)

extern "C" __global__ void integer_edges(const unsigned long long* a,
                                         const unsigned long long* b,
                                         unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = a[i];
  unsigned long long y = i & 8 ? a[(i + 3) & 127] : b[i] >> (b[i] & 63);
  unsigned u = (unsigned)x;
  unsigned v = (unsigned)y;
  unsigned long long* o = out + i * 32;
  R32_2(0, "div.u32", u, v);
  R32_2(1, "rem.u32", u, v);
  R32_2(2, "div.s32", u, v);
  R32_2(3, "rem.s32", u, v);
  R64_2(4, "div.u64", x, y);
  R64_2(5, "rem.u64", x, y);
  R64_2(6, "div.s64", x, y);
  R64_2(7, "rem.s64", x, y);
  R16_2(8, "div.u16", u, v);
  R16_2(9, "rem.s16", u, v);
  R32_2(10, "shl.b32", u, v & 127);
  R32_2(11, "shr.s32", u, v & 127);
  R32_2(12, "shr.u32", u, v & 127);
  R32(13, "cvt.s8.s32", u);
  R32(14, "cvt.u8.s32", u);
  R32(15, "cvt.s16.u32", u);
  R32(16, "cvt.u16.s32", u);
  R32(17, "cvt.sat.s8.s32", u);
  R32(18, "cvt.sat.u16.s32", u);
  R32(19, "abs.s32", u);
  R32(20, "neg.s32", u);
  R32(21, "bfind.s32", u);
  R32(22, "bfind.shiftamt.u32", u);
  R32(23, "clz.b32", u);
  unsigned r;
  asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(v >> 8));
  o[24] = r;
  asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(v >> 8));
  o[25] = r;
  asm volatile("bfi.b32 %0, %1, %2, %3, %4;"
               : "=r"(r)
               : "r"(u), "r"(v), "r"(v >> 3), "r"(v >> 11));
  o[26] = r;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(v >> 7));
  o[27] = r;
  asm volatile("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(v & 63));
  o[28] = r;
  asm volatile("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(v & 63));
  o[29] = r;
  asm volatile("sad.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(v), "r"(7));
  o[30] = r;
  asm volatile("mul24.lo.s32 %0, %1, %2;" : "=r"(r) : "r"(u), "r"(v));
  o[31] = r;
}

// The edges of f32, and what the buffer has.
__device__ static float edge32(const unsigned* a, unsigned k) {
  const unsigned edges[16] = {0u,          0x80000000u, 1u,          0x807fffffu,
                              0x00800000u, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                              0x7fc00000u, 0xffc12345u, 0x7f812345u, 0x3f800000u,
                              0xbf800000u, 0x4f000000u, 0xcf000001u, 0x3effffffu};
  return __uint_as_float(k < 16 ? edges[k] : a[k & 31]);
}

#define F32(at, form, x)                                                 \
  do {                                                                   \
    float r_;                                                            \
    asm volatile(form " %0, %1;" : "=f"(r_) : "f"(x));                   \
    o[at] = __float_as_uint(r_);                                         \
  } while (0)
#define F32_2(at, form, x, y)                                            \
  do {                                                                   \
    float r_;                                                            \
    asm volatile(form " %0, %1, %2;" : "=f"(r_) : "f"(x), "f"(y));       \
    o[at] = __float_as_uint(r_);                                         \
  } while (0)
#define F32_INT(at, form, x)                                             \
  do {                                                                   \
    unsigned r_;                                                         \
    asm volatile(form " %0, %1;" : "=r"(r_) : "f"(x));                   \
    o[at] = r_;                                                          \
  } while (0)

extern "C" __global__ void float_edges(const unsigned* a, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = edge32(a, i & 31);
  float y = edge32(a, (i >> 4) & 31);
  unsigned* o = out + i * 32;
  F32_2(0, "add.rn.f32", x, y);
  F32_2(1, "sub.rn.f32", x, y);
  F32_2(2, "mul.rn.f32", x, y);
  F32_2(3, "div.rn.f32", x, y);
  F32_2(4, "min.f32", x, y);
  F32_2(5, "max.f32", x, y);
  F32_2(6, "add.rn.ftz.f32", x, y);
  F32_2(7, "mul.rn.ftz.f32", x, y);
  F32_2(8, "add.rn.sat.f32", x, y);
  F32_2(9, "mul.rz.f32", x, y);
  F32_2(10, "add.rp.f32", x, y);
  F32_2(11, "div.rm.f32", x, y);
  F32(12, "neg.f32", x);
  F32(13, "abs.f32", x);
  F32(14, "sqrt.rn.f32", x);
  F32(15, "rcp.rn.f32", x);
  F32(16, "cvt.rni.f32.f32", x);
  F32(17, "cvt.rmi.ftz.f32.f32", x);
  F32(18, "cvt.sat.f32.f32", x);
  F32_INT(19, "cvt.rzi.s32.f32", x);
  F32_INT(20, "cvt.rzi.u32.f32", x);
  F32_INT(21, "cvt.rni.s32.f32", x);
  F32_INT(22, "cvt.rpi.u32.f32", x);
  F32_2(23, "copysign.f32", x, y);
  F32_2(24, "min.ftz.f32", x, y);
  F32_2(25, "div.rn.ftz.f32", x, y);
  float r;
  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(x));
  o[26] = __float_as_uint(r);
  asm volatile("fma.rz.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(y));
  o[27] = __float_as_uint(r);
  unsigned p;
  asm volatile("{.reg .pred p; setp.lt.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(p) : "f"(x), "f"(y));
  o[28] = p;
  asm volatile("{.reg .pred p; setp.geu.ftz.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(p) : "f"(x), "f"(y));
  o[29] = p;
  asm volatile("set.num.u32.f32 %0, %1, %2;" : "=r"(p) : "f"(x), "f"(y));
  o[30] = p;
  double d;
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(x));
  o[31] = (unsigned)__double2hiint(d);
}

__device__ static double edge64(const unsigned long long* a, unsigned k) {
  const unsigned long long edges[16] = {
      0ull, 1ull << 63, 1ull, 0x800fffffffffffffull, 0x0010000000000000ull,
      0x7fefffffffffffffull, 0x7ff0000000000000ull, 0xfff0000000000000ull,
      0x7ff8000000000000ull, 0xfff8123456789abcull, 0x7ff0123456789abcull,
      0x3ff0000000000000ull, 0xbff0000000000000ull, 0x43e0000000000000ull,
      0xc3e0000000000001ull, 0x36a0000000000000ull};
  return __longlong_as_double((long long)(k < 16 ? edges[k] : a[k & 31]));
}

#define F64(at, form, x)                                                 \
  do {                                                                   \
    double r_;                                                           \
    asm volatile(form " %0, %1;" : "=d"(r_) : "d"(x));                   \
    o[at] = (unsigned long long)__double_as_longlong(r_);                \
  } while (0)
#define F64_2(at, form, x, y)                                            \
  do {                                                                   \
    double r_;                                                           \
    asm volatile(form " %0, %1, %2;" : "=d"(r_) : "d"(x), "d"(y));       \
    o[at] = (unsigned long long)__double_as_longlong(r_);                \
  } while (0)
#define F64_LONG(at, form, x)                                            \
  do {                                                                   \
    unsigned long long r_;                                               \
    asm volatile(form " %0, %1;" : "=l"(r_) : "d"(x));                   \
    o[at] = r_;                                                          \
  } while (0)

extern "C" __global__ void double_edges(const unsigned long long* a,
                                        unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double x = edge64(a, i & 31);
  double y = edge64(a, (i >> 4) & 31);
  unsigned long long* o = out + i * 24;
  F64_2(0, "add.rn.f64", x, y);
  F64_2(1, "sub.rn.f64", x, y);
  F64_2(2, "mul.rn.f64", x, y);
  F64_2(3, "div.rn.f64", x, y);
  F64_2(4, "min.f64", x, y);
  F64_2(5, "max.f64", x, y);
  F64_2(6, "add.rm.f64", x, y);
  F64_2(7, "mul.rp.f64", x, y);
  F64_2(8, "div.rz.f64", x, y);
  F64(9, "neg.f64", x);
  F64(10, "abs.f64", x);
  F64(11, "sqrt.rn.f64", x);
  F64(12, "rcp.rn.f64", x);
  F64(13, "cvt.rni.f64.f64", x);
  F64_LONG(14, "cvt.rzi.s64.f64", x);
  F64_LONG(15, "cvt.rzi.u64.f64", x);
  F64_LONG(16, "cvt.rni.s64.f64", x);
  unsigned r;
  asm volatile("cvt.rzi.s32.f64 %0, %1;" : "=r"(r) : "d"(x));
  o[17] = r;
  asm volatile("cvt.rzi.u32.f64 %0, %1;" : "=r"(r) : "d"(x));
  o[18] = r;
  float f;
  asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(f) : "d"(x));
  o[19] = __float_as_uint(f);
  asm volatile("cvt.rz.ftz.f32.f64 %0, %1;" : "=f"(f) : "d"(x));
  o[20] = __float_as_uint(f);
  F64_2(21, "copysign.f64", x, y);
  double d;
  asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(d) : "d"(x), "d"(y), "d"(x));
  // Of several NaNs any may come out: the factors may be swapped.
  o[22] = d != d ? 1 : (unsigned long long)__double_as_longlong(d);
  asm volatile("fma.rp.f64 %0, %1, %2, %3;" : "=d"(d) : "d"(y), "d"(x), "d"(y));
  o[23] = d != d ? 1 : (unsigned long long)__double_as_longlong(d);
}
