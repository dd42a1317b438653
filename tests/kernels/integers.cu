// SPDX-License-Identifier: Apache-2.0
//
// tests: integer intrinsics, divisions of all widths and carry chains.
//
// nvrtc: --device-int128
// other: 12.9 compute_70
//
// run: integers
// grid: 4 1 1
// block: 64 1 1
// buffer: a in u32 256 edge 121
// buffer: b in u32 256 bits 122
// buffer: out out u32 8192
//
// run: wide_integers
// grid: 4 1 1
// block: 64 1 1
// buffer: a in u64 256 edge 123
// buffer: b in u64 256 bits 124
// buffer: out out u64 5120
extern "C" __global__ void integers(const unsigned* a, const unsigned* b,
                                    unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = a[i];
  unsigned y = b[i];
  unsigned z = x ^ (y >> 3);
  unsigned d = y | 1;
  unsigned* o = out + i * 32;
  o[0] = __clz(x);
  o[1] = __popc(x);
  o[2] = __brev(x);
  o[3] = __ffs(x);
  o[4] = __byte_perm(x, y, z & 0x7777);
  o[5] = __byte_perm(x, y, 0x8a4c);
  o[6] = __funnelshift_l(x, y, z);
  o[7] = __funnelshift_r(x, y, z);
  o[8] = __funnelshift_lc(x, y, z & 63);
  o[9] = __funnelshift_rc(x, y, z & 63);
  o[10] = __umulhi(x, y);
  o[11] = (unsigned)__mulhi((int)x, (int)y);
  o[12] = __umul24(x, y);
  o[13] = (unsigned)__mul24((int)x, (int)y);
  o[14] = __usad(x, y, z);
  o[15] = __sad((int)x, (int)y, z);
  o[16] = (unsigned)__dp4a((int)x, (int)y, (int)z);
  o[17] = __dp4a(x, y, z);
  o[18] = (unsigned)__dp2a_lo((int)x, (int)y, (int)z);
  o[19] = __dp2a_hi(x, y, z);
  o[20] = x / d;
  o[21] = x % d;
  o[22] = d == 0xffffffffu ? 0 : (unsigned)((int)x / (int)d);
  o[23] = d == 0xffffffffu ? 0 : (unsigned)((int)x % (int)d);
  o[24] = (unsigned)((unsigned short)x / (unsigned short)d);
  o[25] = (unsigned)((short)x >> (y & 15));
  o[26] = (unsigned)__hadd((int)x, (int)y);
  o[27] = __urhadd(x, y);
  unsigned field;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(x), "r"(y & 63), "r"(z & 63));
  o[28] = field;
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(field) : "r"(x), "r"(y & 63), "r"(z & 63));
  o[29] = field;
  asm("bfi.b32 %0, %1, %2, %3, %4;"
      : "=r"(field)
      : "r"(x), "r"(y), "r"(z & 63), "r"(y & 31));
  o[30] = field;
  asm("bfind.s32 %0, %1;" : "=r"(field) : "r"(x));
  o[31] = field;
}

extern "C" __global__ void wide_integers(const unsigned long long* a,
                                         const unsigned long long* b,
                                         unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = a[i];
  unsigned long long y = b[i];
  unsigned long long d = y | 1;
  unsigned long long* o = out + i * 20;
  o[0] = __clzll(x);
  o[1] = __popcll(x);
  o[2] = __brevll(x);
  o[3] = __ffsll(x);
  o[4] = __umul64hi(x, y);
  o[5] = __mul64hi((long long)x, (long long)y);
  o[6] = x / d;
  o[7] = x % d;
  o[8] = d == ~0ull ? 0 : (unsigned long long)((long long)x / (long long)d);
  o[9] = d == ~0ull ? 0 : (unsigned long long)((long long)x % (long long)d);
  unsigned __int128 product = (unsigned __int128)x * y;
  unsigned __int128 sum = product + x + ((unsigned __int128)y << 64);
  unsigned __int128 difference = sum - product * 3;
  o[10] = (unsigned long long)product;
  o[11] = (unsigned long long)(product >> 64);
  o[12] = (unsigned long long)sum;
  o[13] = (unsigned long long)(sum >> 64);
  o[14] = (unsigned long long)difference;
  o[15] = (unsigned long long)(difference >> 64);
  o[16] = (x << (y & 63)) | ((long long)x >> (y & 63));
  o[17] = x < y ? x - y : y - x;
  unsigned lo = (unsigned)x;
  unsigned hi;
  asm("{ .reg .u32 t;\n"
      "  add.cc.u32 t, %1, %2;\n"
      "  addc.cc.u32 t, t, %3;\n"
      "  madc.hi.u32 %0, t, %2, %3; }"
      : "=r"(hi)
      : "r"(lo), "r"((unsigned)y), "r"((unsigned)(y >> 32)));
  o[18] = hi;
  o[19] = (unsigned long long)(long long)(int)x + (signed char)y;
}
