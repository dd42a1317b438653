// SPDX-License-Identifier: Apache-2.0
//
// tests: a machine of sixteen instructions, a switch with falls and a jump out;
// each thread runs a program of its own, so lanes part at every step. And a
// branch through a table (brx.idx), which NVRTC makes of no switch here.
//
// other: 12.9 compute_70
//
// run: machine
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// also: 8 1 1 16 1 1
// buffer: programs in u8 4096 bits 521
// buffer: out out u32 128
// scalar: steps i32 200
//
// run: table
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// also: 1 1 1 128 1 1
// buffer: in in u32 128 bits 522
// buffer: out out u32 128

// A program has 32 bytes; the upper half of a byte is what to do it with.
extern "C" __global__ void machine(const unsigned char* programs,
                                   unsigned* out, int steps) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned char* program = programs + i * 32;
  unsigned a = i;
  unsigned b = 1;
  unsigned c = 0;
  unsigned at = 0;
  for (int n = 0; n < steps; ++n) {
    unsigned op = program[at & 31];
    unsigned v = op >> 4;
    ++at;
    switch (op & 15) {
      case 0: a += v; break;
      case 1: a -= b; break;
      case 2: b = a ^ v; break;
      case 3: a = a << (v & 7) | a >> 29; break;
      case 4: c += a & b; break;
      case 5: if (a & 1) at += v; break;
      case 6: { unsigned t = a; a = b; b = t; } break;
      case 7: b *= 2 * v + 1; break;
      case 8: a = __popc(a) + v; break;
      case 9: c = ~c; break;
      case 10: if (b > c) at -= v; break;
      case 11: b += c >> v; break;
      case 12: a |= 1u << v; break;
      case 13: c -= v * a; break;
      case 14: a /= v + 1; break;
      default: if (v == 15 && n > 50) goto done;
    }
  }
done:
  out[i] = a + b * 3 + c * 7 + at;
}

// Case 1 falls into case 2.
__device__ static unsigned by_table(unsigned x) {
  unsigned r;
  asm volatile(
      "{\n"
      "cases: .branchtargets c0, c1, c2, c3, c4;\n"
      "mov.u32 %0, %1;\n"
      "brx.idx %2, cases;\n"
      "c0: add.u32 %0, %0, 7;\n"
      "bra done;\n"
      "c1: mul.lo.u32 %0, %0, 3;\n"
      "c2: xor.b32 %0, %0, 21845;\n"
      "bra done;\n"
      "c3: shr.u32 %0, %0, 3;\n"
      "bra done;\n"
      "c4: not.b32 %0, %0;\n"
      "done: add.u32 %0, %0, 1;\n"
      "}"
      : "=&r"(r)
      : "r"(x), "r"(x % 5));
  return r;
}

extern "C" __global__ void table(const unsigned* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = in[i];
  for (unsigned n = 0; n < 20 + i % 9; ++n) x = by_table(x) ^ n;
  out[i] = x;
}
