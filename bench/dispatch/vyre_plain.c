// SPDX-License-Identifier: Apache-2.0
//
// bench: vyre's release workloads in plain C, for one thread.
#include "vyre_plain.h"

#include <string.h>

enum { LANES = 16, THRESHOLD = 7, GROUP = 64 };

// ---- Masks ----

static uint32_t bits_of(uint32_t mask) {
  uint32_t hits = 0;
  for (uint32_t q = 0; q < LANES; q++) hits += mask >> q & 1u;
  return hits;
}

uint32_t vyre_masks_all(const uint32_t* const* in, uint32_t records) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) {
    count += bits_of(in[0][i] & in[1][i] & in[2][i]) >= THRESHOLD;
  }
  return count;
}

uint32_t vyre_masks_window(const uint32_t* const* in, uint32_t records) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) {
    count += bits_of(in[0][i] & (in[1][i] | in[2][i])) >= THRESHOLD;
  }
  return count;
}

uint32_t vyre_masks_quantified(const uint32_t* const* in, uint32_t records) {
  const uint32_t lanes = (1u << LANES) - 1;
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) {
    count += (in[0][i] & lanes) != 0 && (in[1][i] & lanes) == lanes &&
             bits_of(in[2][i]) >= THRESHOLD;
  }
  return count;
}

uint32_t vyre_masks_killed(const uint32_t* const* in, uint32_t records) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) {
    count += bits_of(in[0][i] & in[1][i] & ~in[2][i]) >= THRESHOLD;
  }
  return count;
}

// ---- Others that count ----

uint32_t vyre_metadata(const uint32_t* const* in, uint32_t records) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) {
    count += in[0][i] > 4096 && in[1][i] == 0x4550 && in[2][i] > 7200;
  }
  return count;
}

uint32_t vyre_compaction(const uint32_t* const* in, uint32_t records) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < records; i++) count += in[0][i] != 0;
  return count;
}

// ---- Outputs ----

void vyre_scatter(const uint32_t* const* in, uint32_t records, uint32_t* out) {
  for (uint32_t i = 0; i < records; i++) {
    if (in[0][i] != 0 && in[1][i] != 0) out[i >> 5] |= 1u << (i & 31);
  }
}

void vyre_callgraph(const uint32_t* const* in, uint32_t nodes, uint32_t* out) {
  const uint32_t* first = in[0];
  const uint32_t* to = in[1];
  const uint32_t* kind = in[2];
  const uint32_t* frontier = in[3];
  for (uint32_t n = 0; n < nodes; n++) {
    if ((frontier[n >> 5] >> (n & 31) & 1u) == 0) continue;
    for (uint32_t e = first[n]; e < first[n + 1]; e++) {
      if ((kind[e] & 1u) != 0) out[to[e] >> 5] |= 1u << (to[e] & 31);
    }
  }
}

void vyre_filter(const uint32_t* const* in, uint32_t records, uint32_t* out) {
  for (uint32_t i = 0; i < records; i++) {
    uint32_t state = in[2][i];
    uint32_t mixed = in[0][i] ^ state * 2654435761u;
    uint32_t least = 500u + (state >> 8 & 127u);
    out[i] = (mixed & 31u) == 0 && (state & 1u) != 0 && in[1][i] >= least &&
                     (mixed >> 5 & 3u) == (state & 3u)
                 ? (mixed & 0xffffu) + in[1][i]
                 : 0;
  }
}

void vyre_routing(const uint32_t* const* in, uint32_t records, uint32_t* out) {
  for (uint32_t i = 0; i < records; i++) {
    uint32_t history = in[1][i];
    uint32_t risk =
        ((in[0][i] ^ history * 0x9e3779b9u) & 0x3ffu) + (history & 0xffu);
    uint32_t hot = risk >= in[2][i];
    uint32_t unstable = (history >> 16 & 7u) >= 4;
    uint32_t route = hot ? 2 + unstable : unstable;
    out[i] = route << 24 | (risk & 0xffffffu);
  }
}

static float value_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

void vyre_linear(const uint32_t* const* in, uint32_t inputs, uint32_t outputs,
                 uint32_t* out) {
  for (uint32_t o = 0; o < outputs; o++) {
    float sum = value_of(in[4][o]);
    for (uint32_t k = 0; k < inputs; k++) {
      uint32_t side = k / GROUP * outputs + o;
      uint32_t word = in[1][k / 8 * outputs + o];
      float weight = (float)(word >> (k % 8 * 4) & 15u) - (float)in[3][side];
      sum += value_of(in[0][k]) * (weight * value_of(in[2][side]));
    }
    memcpy(&out[o], &sum, sizeof(sum));
  }
}
