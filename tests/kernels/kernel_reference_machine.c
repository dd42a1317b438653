// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels about the machine: bits, control flow,
// calls, barriers, locks, memory of its own.
#include <string.h>

#include "kernel_reference.h"

// ---- bit_tricks.cu: a bit at a time ----

static uint64_t reverse(uint64_t x, int width) {
  uint64_t r = 0;
  for (int i = 0; i < width; i++) r |= (x >> i & 1) << (width - 1 - i);
  return r;
}

static uint32_t count(uint64_t x) {
  uint32_t n = 0;
  for (; x != 0; x >>= 1) n += x & 1;
  return n;
}

static uint32_t first_set(uint64_t x) {
  for (uint32_t i = 0; i < 64; i++) {
    if (x >> i & 1) return i + 1;
  }
  return 0;
}

static uint32_t leading_zeros(uint64_t x, uint32_t width) {
  uint32_t n = 0;
  while (n < width && !(x >> (width - 1 - n) & 1)) n++;
  return n;
}

static uint32_t permute(uint32_t x, uint32_t y, uint32_t how) {
  uint64_t both = (uint64_t)y << 32 | x;
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t pick = how >> 4 * i & 7;
    r |= (uint32_t)(both >> 8 * pick & 0xff) << 8 * i;
  }
  return r;
}

static uint32_t dot4(uint32_t x, uint32_t y, uint32_t sum, bool is_signed) {
  for (int i = 0; i < 4; i++) {
    uint32_t a = x >> 8 * i & 0xff;
    uint32_t b = y >> 8 * i & 0xff;
    if (is_signed) a = (a ^ 0x80) - 0x80, b = (b ^ 0x80) - 0x80;
    sum += a * b;
  }
  return sum;
}

// Two shorts of x with two bytes of y.
static uint32_t dot2(uint32_t x, uint32_t y, uint32_t sum, bool is_signed) {
  for (int i = 0; i < 2; i++) {
    uint32_t a = x >> 16 * i & 0xffff;
    uint32_t b = y >> 8 * i & 0xff;
    if (is_signed) a = (a ^ 0x8000) - 0x8000, b = (b ^ 0x80) - 0x80;
    sum += a * b;
  }
  return sum;
}

// The place of the n-th set bit from `base` on: upwards for n > 0, downwards
// for n < 0, the base itself for 0; all ones if there is none.
static uint32_t nth_set(uint32_t x, uint32_t base, int32_t n) {
  int step = n < 0 ? -1 : 1;
  int left = n < 0 ? -n : n;
  if (n == 0) return x >> base & 1 ? base : UINT32_MAX;
  for (int at = (int)base; at >= 0 && at < 32; at += step) {
    left -= x >> at & 1;
    if (left == 0) return (uint32_t)at;
  }
  return UINT32_MAX;
}

static int64_t s32(uint32_t x) {
  return (int32_t)x;
}

static int64_t s24(uint32_t x) {
  return (int32_t)(x << 8) >> 8;
}

static void tricks_of(uint32_t x, uint32_t y, uint32_t i, uint32_t o[32]) {
  uint64_t pair = (uint64_t)y << 32 | x;
  uint32_t by = i < 32 ? i : 32;
  o[0] = (uint32_t)reverse(x, 32);
  o[1] = first_set(x);
  o[2] = count(x ^ y);
  o[3] = leading_zeros(x, 32);
  o[4] = permute(x, y, y >> 8);
  o[5] = (uint32_t)(pair << i % 32 >> 32);
  o[6] = (uint32_t)(pair >> i % 32);
  o[7] = (uint32_t)(pair << by >> 32);
  o[8] = (uint32_t)(pair >> by);
  o[9] = dot4(x, y, i, false);
  o[10] = dot4(x, y, 0 - i, true);
  o[11] = dot2(x, y, i, true);
  o[12] = dot2(x, y >> 16, i, false);
  int64_t apart = s32(x) - s32(y);
  o[13] = (uint32_t)(apart < 0 ? -apart : apart) + i;
  o[14] = (x > y ? x - y : y - x) + i;
  o[15] = (uint32_t)((uint64_t)(s32(x) * s32(y)) >> 32);
  o[16] = (uint32_t)((uint64_t)x * y >> 32);
  o[17] = (uint32_t)(s24(x) * s24(y));
  o[18] = (uint32_t)((uint64_t)(x & 0xffffff) * (y & 0xffffff));
  o[19] = (uint32_t)((uint64_t)(s32(x) + s32(y)) >> 1);
  o[20] = (uint32_t)((uint64_t)(s32(x) + s32(y) + 1) >> 1);
  o[21] = (uint32_t)(((uint64_t)x + y) >> 1);
  o[22] = (uint32_t)(((uint64_t)x + y + 1) >> 1);
  o[23] = nth_set(x, i & 31, (int32_t)(y % 7) - 3);
  o[24] = x & (0 - x);
  o[25] = x & (x - 1);
  o[26] = (x & y) | (~x & i);
  o[27] = x ^ y ^ i;
  o[28] = x >> (y & 31) | y << (i & 31);
  o[29] = (uint32_t)(s32(x) >> (y & 31));
  o[30] = (x >> 5 & 0x1ff) << 7 | (y & 0x7f);
  o[31] = (uint32_t)(int8_t)(y >> 8) + (uint32_t)(int16_t)x;
}

static void bit_tricks(kernel_case_t* c) {
  const uint32_t* a = kernel_in(c, "a");
  const uint32_t* b = kernel_in(c, "b");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) tricks_of(a[i], b[i], i, out + i * 32);
}

static uint64_t high64(uint64_t a, uint64_t b) {
  uint64_t al = a & 0xffffffff, ah = a >> 32;
  uint64_t bl = b & 0xffffffff, bh = b >> 32;
  uint64_t middle = ah * bl + (al * bl >> 32);
  uint64_t other = al * bh + (middle & 0xffffffff);
  return ah * bh + (middle >> 32) + (other >> 32);
}

static void bit_tricks_64(kernel_case_t* c) {
  const uint64_t* a = kernel_in(c, "a");
  const uint64_t* b = kernel_in(c, "b");
  uint64_t* o = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++, o += 8) {
    uint64_t x = a[i];
    uint64_t y = b[i];
    o[0] = reverse(x, 64);
    o[1] = first_set(x);
    o[2] = count(x ^ y);
    o[3] = leading_zeros(x, 64);
    o[4] = high64(x, y);
    o[5] = high64(x, y) - (x >> 63 ? y : 0) - (y >> 63 ? x : 0);
    o[6] = x << i % 64 | y >> (63 - i % 64);
    o[7] = (uint64_t)((int64_t)x >> i % 64);
  }
}

// ---- templates.cu ----

static void total_int(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  for (int i = 0; i < 128; i++) *(int32_t*)kernel_out(c, "out") += in[i];
}

static void total_wide(kernel_case_t* c) {
  const uint64_t* in = kernel_in(c, "in");
  for (int i = 0; i < 128; i++) *(uint64_t*)kernel_out(c, "out") += in[i];
}

static void stride(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 32; i++) {
    out[i] = (in[i * 7] * 7 + in[i * 7 + 1]) * 7 + in[i * 7 + 2];
  }
}

static void larger(kernel_case_t* c) {
  const int16_t* in = kernel_in(c, "in");
  int16_t* out = kernel_out(c, "out");
  for (int i = 0; i < 96; i++) out[i] = in[i] > in[i + 1] ? in[i] : in[i + 1];
}

// ---- clocks.cu ----

static void clocks(kernel_case_t* c) {
  uint32_t* facts = kernel_out(c, "facts");
  uint32_t threads = kernel_blocks(c) * kernel_block_size(c);
  for (uint32_t i = 0; i < threads; i++) facts[i] = 15;
}

static const char* judge_clocks(const kernel_case_t* c) {
  const uint64_t* read = kernel_got(c, "read");
  uint32_t threads = kernel_blocks(c) * kernel_block_size(c);
  for (uint32_t i = 0; i < threads; i++) {
    if (read[i] == 0 || read[i] > (uint64_t)1 << 40) {
      return "a hundred steps take no time, or minutes";
    }
  }
  return NULL;
}

// ---- switch_machine.cu: one program after the other ----

static uint32_t run_program(const uint8_t* program, uint32_t i, int steps) {
  uint32_t a = i;
  uint32_t b = 1;
  uint32_t c = 0;
  uint32_t at = 0;
  for (int n = 0; n < steps; n++) {
    uint32_t op = program[at++ % 32] % 16;
    uint32_t v = program[(at - 1) % 32] / 16;
    uint32_t old = a;
    if (op == 0) a += v;
    if (op == 1) a -= b;
    if (op == 2) b = a ^ v;
    if (op == 3) a = a << v % 8 | a >> 29;
    if (op == 4) c += a & b;
    if (op == 5 && a % 2 == 1) at += v;
    if (op == 6) a = b, b = old;
    if (op == 7) b *= 2 * v + 1;
    if (op == 8) a = count(a) + v;
    if (op == 9) c = ~c;
    if (op == 10 && b > c) at -= v;
    if (op == 11) b += c >> v;
    if (op == 12) a |= (uint32_t)1 << v;
    if (op == 13) c -= v * a;
    if (op == 14) a /= v + 1;
    if (op == 15 && v == 15 && n > 50) break;
  }
  return a + b * 3 + c * 7 + at;
}

static void machine(kernel_case_t* c) {
  const uint8_t* programs = kernel_in(c, "programs");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    out[i] = run_program(programs + i * 32, i, (int)kernel_u32(c, "steps"));
  }
}

static void table(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    uint32_t x = in[i];
    for (uint32_t n = 0; n < 20 + i % 9; n++) {
      const uint32_t results[5] = {x + 7, (x * 3) ^ 0x5555, x ^ 0x5555, x >> 3,
                                   ~x};
      x = (results[x % 5] + 1) ^ n;
    }
    out[i] = x;
  }
}

// ---- early_exit.cu ----

static void loops(kernel_case_t* c) {
  const uint32_t* a = kernel_in(c, "a");
  const uint32_t* b = kernel_in(c, "b");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 192; i++, out += 4) {
    uint32_t x = a[i] >> 4;
    uint32_t y = b[i] >> 8;
    for (; y != 0; out[1]++) {
      uint32_t rest = x % y;
      x = y;
      y = rest;
    }
    out[0] = x;
    uint32_t n = (a[i] & 0xfff) + 1;
    while (n != 1 && out[2] < 150) {
      n = n % 2 == 1 ? 3 * n + 1 : n / 2;
      out[2]++;
    }
    if (n != 1) {
      out[2] = 0xffff;
    } else if (i % 3 != 0) {
      out[3] = out[2] * 2 + out[1];
    }
  }
}

static void search(kernel_case_t* c) {
  const uint8_t* grid = kernel_in(c, "grid");
  int32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 128; i++) {
    out[i] = -1;
    for (int at = i / 4 * 32; at < 1024; at++) {
      uint8_t x = grid[at];
      if (x != 255 && x > 0 && x % (i + 2) == 0) {
        out[i] = at;
        break;
      }
      if (x == 0 && at / 32 > i / 4 + 2) {
        out[i] = -2;
        break;
      }
    }
  }
}

// ---- barrier_exit.cu ----

static void exits_of(uint32_t block, uint32_t size, uint32_t* out) {
  uint32_t turn[128] = {0};
  uint32_t sum[128] = {0};
  bool lives[128];
  uint32_t left = 0;
  for (uint32_t t = 0; t < size; t++) {
    turn[t] = t * 3;
    lives[t] = block == 0 || (block == 1 && t < 32) ||
               (block == 2 && t % 32 <= 20) || (block == 3 && t % 2 == 0);
    left += lives[t];
  }
  for (uint32_t n = 0; n < 5; n++) {
    for (uint32_t t = 0; t < size; t++) {
      if (lives[t]) turn[t] = sum[t] += turn[t] + n;
    }
    turn[0] += left;
    for (uint32_t t = 0; t < size; t++) sum[t] += turn[0];
  }
  for (uint32_t t = 0; t < size; t++) out[t] = lives[t] ? sum[t] : 0;
}

static void exits(kernel_case_t* c) {
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t b = 0; b < 4; b++) {
    exits_of(b, kernel_block_size(c), out + b * kernel_u32(c, "row"));
  }
}

// ---- named_barriers.cu ----

static void ring(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 512; i++) {
    out[i] = in[i / 32 * 32 + 31 - i % 32] * 3 + i / 32 % 8;
  }
}

static void halves(kernel_case_t* c) {
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t b = 0; b < 2; b++) {
    uint32_t s[128];
    uint32_t value[128] = {0};
    for (uint32_t t = 0; t < 128; t++) s[t] = t + b;
    for (uint32_t n = 0; n < 7; n++) {
      uint32_t from = n < 3 ? 0 : 64;
      for (uint32_t t = from; t < 128; t++) {
        value[t] = s[t / 64 * 64 + (t + n + 1) % 64];
      }
      for (uint32_t t = from; t < 128; t++) s[t] = value[t] + n;
    }
    for (uint32_t t = 0; t < 128; t++) out[b * 128 + t] = s[127 - t] + value[t];
  }
}

// ---- match_redux.cu ----

static void by_key_lane(const uint32_t* keys, const int32_t* values,
                        uint32_t lane, int32_t o[5]) {
  uint32_t key = keys[lane] & 7;
  uint32_t same = 0;
  uint32_t all_or = 0;
  uint32_t all_xor = 0;
  int32_t low = INT32_MAX;
  int32_t high = INT32_MIN;
  for (uint32_t n = 0; n < 32; n++) {
    if ((keys[n] & 7) != key) continue;
    same |= (uint32_t)1 << n;
    all_or |= keys[n] >> 8;
    all_xor ^= keys[n];
    o[0] += values[n];
    o[4] += n < lane;
    low = values[n] < low ? values[n] : low;
    high = values[n] > high ? values[n] : high;
  }
  o[1] = key % 2 == 1 ? low : high;
  o[2] = (int32_t)(key % 2 == 1 ? all_xor : all_or);
  o[3] = (int32_t)(same + 1);
}

static void by_key(kernel_case_t* c) {
  const uint32_t* keys = kernel_in(c, "keys");
  const int32_t* values = kernel_in(c, "values");
  int32_t* out = kernel_out(c, "out");
  int32_t* totals = kernel_out(c, "totals");
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t first = i / 32 * 32;
    by_key_lane(keys + first, values + first, i % 32, out + i * 5);
    totals[keys[i] & 7] += values[i];
  }
}

// ---- spin_locks.cu ----

static void between_blocks(kernel_case_t* c) {
  uint32_t* shared = kernel_out(c, "shared");
  uint32_t turns = kernel_blocks(c) * kernel_u32(c, "rounds");
  for (; shared[0] < turns; shared[0]++) shared[1] += shared[0] % 7;
}

static void between_lanes(kernel_case_t* c) {
  uint32_t* values = kernel_out(c, "values");
  for (uint32_t i = 0; i < 128; i++) {
    values[i % 4] += i;
    values[4 + i % 4]++;
  }
  // The sums stay below bit 16, so that the order of the two does not matter.
  for (uint32_t i = 0; i < 128; i++) values[i % 4] ^= 0x10000u << i % 8;
}

static void tickets(kernel_case_t* c) {
  uint32_t* lock = kernel_out(c, "lock");
  uint32_t* log = kernel_out(c, "log");
  lock[0] = lock[1] = 128;
  for (uint32_t n = 0; n < 128; n++) log[n] = n == 0 ? 5 : log[n - 1] * 5 + n;
}

static const char* judge_tickets(const kernel_case_t* c) {
  const uint32_t* order = kernel_got(c, "order");
  uint32_t seen[4] = {0};
  for (int i = 0; i < 128; i++) {
    if (order[i] >= 128) return "a ticket that nobody gave";
    seen[order[i] / 32] |= (uint32_t)1 << order[i] % 32;
  }
  for (int i = 0; i < 4; i++) {
    if (seen[i] != UINT32_MAX) return "two threads have one ticket";
  }
  return NULL;
}

// ---- virtual_calls.cu ----

// A shape: square, or a strip with a width.
typedef struct shape_t {
  bool is_strip;
  int32_t size;
  int32_t width;
} shape_t;

static int32_t grow(shape_t* s, int32_t by) {
  if (!s->is_strip) return s->size += by;
  s->size += 1;
  return s->width += by + s->size;
}

static void virtual_calls(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* out = kernel_out(c, "out");
  for (int32_t i = 0; i < 128; i++) {
    shape_t own = {false, in[i], 0};
    shape_t other = {true, in[i] / 2, i};
    shape_t* all[3] = {i % 3 == 1 ? &other : &own, &other, &own};
    for (int n = 0; n < 3; n++) out[i * 2] += grow(all[n], i % 5) * 3;
    for (int n = 0; n < 3; n++) {
      out[i * 2] +=
          all[n]->size * (all[n]->is_strip ? all[n]->width : all[n]->size);
    }
    uint32_t value = (uint32_t)i;
    for (int32_t n = 0; n < 6; n++) {
      uint32_t with = (uint32_t)(in[i] + n);
      int which = (i + n * n) % 3;
      value = which == 0   ? value + with
              : which == 1 ? value - with
                           : (value * 31) ^ with;
    }
    out[i * 2 + 1] = (int32_t)value;
  }
}

// ---- recursion.cu ----

static uint32_t queens_from(uint32_t row, uint32_t* columns) {
  if (row == 5) return 1;
  uint32_t ways = 0;
  for (uint32_t x = 0; x < 5; x++) {
    bool free = true;
    for (uint32_t r = 0; r < row; r++) {
      uint32_t apart = columns[r] > x ? columns[r] - x : x - columns[r];
      free = free && apart != 0 && apart != row - r;
    }
    columns[row] = x;
    if (free) ways += queens_from(row + 1, columns);
  }
  return ways;
}

static void recursion(kernel_case_t* c) {
  static const uint32_t kAckermann[3][4] = {
      {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 5, 7, 9}};
  uint8_t* sorted = kernel_out(c, "sorted");
  uint32_t* out = kernel_out(c, "out");
  memcpy(sorted, kernel_in(c, "in"), 1024);
  for (uint32_t i = 0; i < 64; i++) {
    uint8_t* s = sorted + i * 16;
    for (int a = 0; a < 16; a++) {
      for (int b = 0; b < 15; b++) {
        uint8_t t = s[b];
        if (t <= s[b + 1]) continue;
        s[b] = s[b + 1];
        s[b + 1] = t;
      }
    }
    uint32_t columns[5] = {i % 5};
    out[i * 2] = kAckermann[i % 3][i % 4];
    out[i * 2 + 1] = queens_from(1, columns);
  }
}

// ---- struct_params.cu ----

static uint32_t weigh(const uint32_t* large, const uint16_t* few) {
  uint32_t table[60];
  uint32_t sum = 0;
  memcpy(table, large + 4, sizeof(table));
  table[few[0] % 5 * 12 + few[1] % 12] += few[2];
  for (uint32_t n = 0; n < 5; n++) {
    sum = sum * 31 + table[n * 12 + (few[3] + n) % 12];
  }
  return sum + large[few[4] & 3];
}

static void by_value(kernel_case_t* c) {
  const uint16_t* few = kernel_in(c, "small");
  const uint32_t* large = kernel_in(c, "large");
  const uint8_t* mixed = kernel_in(c, "mixed");
  uint32_t* out = kernel_out(c, "out");
  uint16_t b;
  uint32_t word;
  int64_t d;
  memcpy(&b, mixed + 2, 2);
  memcpy(&word, mixed + 4, 4);
  memcpy(&d, mixed + 8, 8);
  for (uint32_t i = 0; i < 128; i++) {
    uint16_t own[6];
    memcpy(own, few, sizeof(own));
    own[i % 6] ^= (uint16_t)i;
    out[i * 3] = large[4 + i % 5 * 12 + i % 12] * kernel_u32(c, "factor");
    out[i * 3 + 1] = weigh(large, own);
    out[i * 3 + 2] = mixed[0] + b * 3u + word * 5u + (uint32_t)(d >> (i & 31)) +
                     (uint32_t)(int8_t)mixed[16 + (i & 7)];
  }
}

static void shuffled(const uint32_t x[4], const uint32_t rows[64],
                     const uint16_t order[4], uint32_t out[4]) {
  uint16_t own[4];
  memcpy(own, order, sizeof(own));
  for (uint32_t n = 0; n < 4; n++) {
    own[x[n] & 3] = (uint16_t)(own[x[n] & 3] + n);
    out[n] = x[own[n] & 3] + rows[x[0] % 16 * 4 + n];
  }
}

static void structs(kernel_case_t* c) {
  const uint32_t* x = kernel_in(c, "in");
  uint32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, x += 4, out += 4) {
    uint32_t rows[64];
    uint16_t order[4];
    uint32_t y[4];
    uint32_t z[4];
    for (int n = 0; n < 64; n++) rows[n] = x[n % 4] >> n / 3;
    for (int n = 0; n < 4; n++) order[n] = (uint16_t)(x[n] >> 7);
    shuffled(x, rows, order, y);
    shuffled(y, rows, order, z);
    out[0] = y[0] ^ z[3];
    out[1] = y[1] + z[2];
    out[2] = z[1];
    out[3] = z[0];
  }
}

// ---- int128.cu: by the schoolbook, on 32-bit limbs ----

typedef struct wide_t {
  uint32_t v[4];
} wide_t;

static wide_t wide(uint64_t low, uint64_t high) {
  return (wide_t){{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                   (uint32_t)(high >> 32)}};
}

static void put(uint64_t* o, wide_t x) {
  o[0] = (uint64_t)x.v[1] << 32 | x.v[0];
  o[1] = (uint64_t)x.v[3] << 32 | x.v[2];
}

static int bit_of(const wide_t* x, int i) {
  return i < 128 && i >= 0 ? x->v[i / 32] >> i % 32 & 1 : 0;
}

// To the left by `by`, which may be negative.
static wide_t shift(wide_t x, int by) {
  wide_t r = {{0}};
  for (int i = 0; i < 128; i++) {
    r.v[i / 32] |= (uint32_t)bit_of(&x, i - by) << i % 32;
  }
  return r;
}

static wide_t plus(wide_t a, wide_t b, uint32_t carry) {
  uint64_t sum = carry;
  for (int i = 0; i < 4; i++) {
    sum += (uint64_t)a.v[i] + b.v[i];
    a.v[i] = (uint32_t)sum;
    sum >>= 32;
  }
  return a;
}

static wide_t minus(wide_t a, wide_t b) {
  for (int i = 0; i < 4; i++) b.v[i] = ~b.v[i];
  return plus(a, b, 1);
}

static wide_t product(wide_t a, wide_t b) {
  wide_t r = {{0}};
  for (int i = 0; i < 128; i++) {
    if (bit_of(&b, i)) r = plus(r, shift(a, i), 0);
  }
  return r;
}

static bool is_below(wide_t a, wide_t b) {
  for (int i = 3; i >= 0; i--) {
    if (a.v[i] != b.v[i]) return a.v[i] < b.v[i];
  }
  return false;
}

static wide_t quotient(wide_t a, wide_t b, wide_t* rest) {
  wide_t q = {{0}};
  *rest = (wide_t){{0}};
  for (int i = 127; i >= 0; i--) {
    bool over = bit_of(rest, 127);
    *rest = shift(*rest, 1);
    rest->v[0] |= (uint32_t)bit_of(&a, i);
    if (!over && is_below(*rest, b)) continue;
    *rest = minus(*rest, b);
    q.v[i / 32] |= (uint32_t)1 << i % 32;
  }
  return q;
}

static void wide_division(kernel_case_t* c) {
  const uint64_t* a = kernel_in(c, "a");
  const uint64_t* b = kernel_in(c, "b");
  uint64_t* out = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, out += 4) {
    uint64_t y = b[i] >> b[i] % 64 | 1;
    int64_t half = (int64_t)(y >> 1 | 1);
    if (i % 2 == 1) half = -half;
    out[0] = a[i] / y;
    out[1] = a[i] - out[0] * y;
    out[2] = (uint64_t)((int64_t)a[i] / half);
    out[3] = a[i] - out[2] * (uint64_t)half;
  }
}

static void int128(kernel_case_t* c) {
  const uint64_t* a = kernel_in(c, "a");
  const uint64_t* b = kernel_in(c, "b");
  uint64_t* o = kernel_out(c, "out");
  const wide_t zero = {{0}};
  for (int i = 0; i < 128; i++, o += 12) {
    wide_t x = wide(b[i], a[i]);
    wide_t y = wide(a[127 - i], b[127 - i]);
    wide_t rest;
    put(o, plus(x, y, 0));
    put(o + 2, product(x, y));
    wide_t low = shift(x, -(i & 127));
    wide_t high = shift(y, i * 3 & 127);
    for (int n = 0; n < 4; n++) low.v[n] ^= high.v[n];
    put(o + 4, low);
    y = shift(y, -(int)(b[i] & 127));
    y.v[0] |= 1;
    put(o + 6, quotient(x, y, &rest));
    put(o + 8, rest);
    y = shift(y, -1);
    y.v[0] |= 1;
    bool negative = bit_of(&x, 127) != 0;
    wide_t q = quotient(negative ? minus(zero, x) : x, y, &rest);
    put(o + 10, negative ? minus(zero, q) : q);
  }
}

// ---- device_heap.cu ----

static void lists(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 128; i++) {
    for (uint32_t n = 0; n <= (in[i] & 15); n++) {
      out[i] = out[i] * 33 + (in[i] >> n);
    }
  }
}

static void handed_on(kernel_case_t* c) {
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    uint32_t t = 63 - i % 64;
    for (uint32_t n = 0; n < 16 + 4 * t; n++) out[i] += t * 1000 + n;
  }
  out[128] = out[129] = 1;
}

// ---- print_lanes.cu, shared_parts.cu ----

static void print_lanes(kernel_case_t* c) {
  int32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 80; i++) {
    out[i] = (i % 40 % 8 == 3) + (i % 10 < 5 ? i % 5 : 0) + (i == 17) +
             (i % 40 == 39);
  }
}

static void parts(kernel_case_t* c) {
  double* out = kernel_out(c, "out");
  for (uint32_t b = 0; b < 3; b++) {
    const uint32_t* in = (const uint32_t*)kernel_in(c, "in") + b * 96;
    uint32_t most = 0;
    for (uint32_t t = 0; t < 96; t++) most = in[t] > most ? in[t] : most;
    for (uint32_t t = 0; t < 96; t++) {
      uint32_t u = (t * 5 + 1) % 96;
      out[b * 96 + t] = in[u] * 0.5 + (in[95 - t] ^ 0xffff) * 3.0 -
                        (uint16_t)(in[(t + 7) % 96] >> 3) -
                        (uint8_t)(in[u / 2] >> 11) * 256.0 + most;
    }
  }
}

// ---- warp_reduce.cu ----

static double halves_sum(const double* v, int count_left) {
  // The butterfly adds far halves first: lane 0's order, which all share since
  // a sum of two does not depend on the order of the two.
  double s[32];
  memcpy(s, v, sizeof(s));
  for (int d = count_left / 2; d > 0; d /= 2) {
    for (int i = 0; i < d; i++) s[i] += s[i + d];
  }
  return s[0];
}

static void reductions(kernel_case_t* c) {
  const double* reals = kernel_in(c, "reals");
  const int64_t* longs = kernel_in(c, "longs");
  double* sums = kernel_out(c, "sums");
  int64_t* out = kernel_out(c, "out");
  for (int i = 0; i < 128; i++) {
    const int64_t* warp = longs + i / 32 * 32;
    int64_t* o = out + i * 4;
    sums[i] = halves_sum(reals + i / 32 * 32, 32);
    for (int n = 0; n < 32; n++) {
      if (n == 0 || warp[n] > o[0]) {
        o[0] = warp[n];
        o[1] = n;
      }
      if (n / 8 == i % 32 / 8) o[2] ^= warp[n];
      if ((n < 11) == (i % 32 < 11)) o[3] += warp[n] >> 8;
    }
  }
}

const kernel_reference_t kernel_references_machine[] = {
    {"bit_tricks.bit_tricks", bit_tricks, NULL},
    {"bit_tricks.bit_tricks_64", bit_tricks_64, NULL},
    {"templates.total<int>", total_int, NULL},
    {"templates.total<unsigned long long>", total_wide, NULL},
    {"templates.shapes::stride<7, 3>", stride, NULL},
    {"templates.apply<shapes::larger, short>", larger, NULL},
    {"clocks.clocks", clocks, judge_clocks},
    {"switch_machine.machine", machine, NULL},
    {"switch_machine.table", table, NULL},
    {"early_exit.loops", loops, NULL},
    {"early_exit.search", search, NULL},
    {"barrier_exit.exits", exits, NULL},
    {"named_barriers.ring", ring, NULL},
    {"named_barriers.halves", halves, NULL},
    {"match_redux.by_key", by_key, NULL},
    {"spin_locks.between_blocks", between_blocks, NULL},
    {"spin_locks.between_lanes", between_lanes, NULL},
    {"spin_locks.tickets", tickets, judge_tickets},
    {"virtual_calls.virtual_calls", virtual_calls, NULL},
    {"recursion.recursion", recursion, NULL},
    {"struct_params.by_value", by_value, NULL},
    {"struct_functions.structs", structs, NULL},
    {"int128.wide_division", wide_division, NULL},
    {"int128.int128", int128, NULL},
    {"device_heap.lists", lists, NULL},
    {"device_heap.handed_on", handed_on, NULL},
    {"print_lanes.print_lanes", print_lanes, NULL},
    {"shared_parts.parts", parts, NULL},
    {"warp_reduce.reductions", reductions, NULL},
    {NULL, NULL, NULL},
};
