// SPDX-License-Identifier: Apache-2.0
//
// tests: a machine of sixteen instructions, a switch that becomes a table of
// branches; each thread runs a program of its own, so lanes part at every step.
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
