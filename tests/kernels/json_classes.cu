// SPDX-License-Identifier: Apache-2.0
//
// tests: the first stage of a JSON reader: 32 bytes a warp become masks of
// quotes, of what is inside strings (a prefix of exclusive ors by doubling),
// and of structural characters outside them.
//
// other: 12.9 compute_75
//
// run: classes
// grid: 4 1 1
// block: 256 1 1
// also: 8 1 1 128 1 1
// also: 32 1 1 32 1 1
// buffer: raw in u8 1024 bits 261
// buffer: quotes out u32 32
// buffer: inside out u32 32
// buffer: structure out u32 32
#define FULL 0xffffffffu

// One of sixteen characters that JSON cares for.
__device__ static char letter(unsigned char raw) {
  return "{}[]:,\"\"\\ \nax01-"[raw & 15];
}

extern "C" __global__ void classes(const unsigned char* raw, unsigned* quotes,
                                   unsigned* inside, unsigned* structure) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  char c = letter(raw[i]);
  unsigned slashes = __ballot_sync(FULL, c == '\\');
  // A character is escaped by an odd run of backslashes before it.
  unsigned before = ~(slashes << (32 - lane));
  int run = lane == 0 ? 0 : min((int)lane, __clz(before));
  unsigned q = __ballot_sync(FULL, c == '"' && (run & 1) == 0);
  unsigned in = q;
  for (int d = 1; d < 32; d *= 2) in ^= in << d;
  bool outside = (in >> lane & 1) == 0;
  bool special = c == '{' || c == '}' || c == '[' || c == ']' || c == ':' ||
                 c == ',';
  unsigned s = __ballot_sync(FULL, special && outside);
  if (lane == 0) {
    quotes[i / 32] = q;
    inside[i / 32] = in;
    structure[i / 32] = s;
  }
}
