// SPDX-License-Identifier: Apache-2.0
//
// compat: fuzz target: sets of pieces and uses.
//
// Every three bytes are a piece (which, line, extras), behind a head of four:
// driver, its branch, constraint and uses. The same set backwards and twice
// over must give the same report, and a stricter mode never passes what a
// milder one refuses.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/compat.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Rules are about one piece, about two, and about a use and what it needs: more
// pieces only make more pairs, and a run as slow as their number squared.
enum { MAX_PIECES = 4, HEAD = 4, TEXT_BYTES = 1 << 20 };

static const uint32_t lines[] = {0,     11080, 12000, 12040, 12090,
                                 13000, 13020, 13030, 13050, 14000};
static const struct {
  const char* name;
  uint32_t kind;
  uint32_t class_id;
  const char* component;
} pieces[] = {
    {"nvrtc", 1, 1, "nvrtc_mathdx"},
    {"nvJitLink", 1, 1, "blas"},
    {"cublas", 1, 1, "blas"},
    {"cusparse", 1, 1, "blas"},
    {"nccl", 1, 3, "blas"},
    {"nvvm", 1, 1, NULL},
    {"nvml", 1, 2, NULL},
    {"cudart", 2, 1, ""},
    {"cccl", 2, 1, NULL},
    {"nvcc", 5, 1, NULL},
    {"device", 4, 1, NULL},
    {"cudadevrt", 3, 1, NULL},
};
static const char* const tags[] = {"toolchain", "api"};
static const kiln_compat_need_t needs[] = {{"nvJitLink", "symbol", 13020, 0}};
static const char* const constraints[] = {NULL, ">=12.9,<13", "!=13.*",
                                          "~=12.4"};

static kiln_compat_fact_t make_fact(const uint8_t* bytes) {
  kiln_compat_fact_t fact = kiln_compat_fact_default();
  size_t which = bytes[0] % (sizeof(pieces) / sizeof(pieces[0]));
  fact.name = pieces[which].name;
  fact.kind = pieces[which].kind;
  fact.class_id = pieces[which].class_id;
  fact.component = pieces[which].component;
  fact.line = lines[bytes[1] % 10];
  fact.against_line = bytes[2] & 1 ? lines[bytes[1] / 16 % 10] : 0;
  fact.toolkit_major = bytes[2] & 2 ? 12 : 0;
  fact.nvvm_ir = bytes[2] & 4 ? 2000 : 0;
  fact.tags = tags;
  fact.tag_count = (bytes[2] >> 3) & 1;
  fact.needs = needs;
  fact.need_count = (bytes[2] >> 4) & 1;
  fact.path = bytes[2] & 32 ? "/a" : NULL;
  fact.evidence = bytes[2] & 64 ? "a wheel" : NULL;
  return fact;
}

// Writes the report's text, which must fit.
static void check(const kiln_compat_request_t* request, char text[TEXT_BYTES],
                  size_t* length) {
  kiln_compat_report_t* report = NULL;
  if (!kiln_status_is_ok(kiln_compat_check(request, &report))) abort();
  bool strict =
      kiln_compat_report_refusal(report, KILN_COMPAT_MODE_STRICT) != NULL;
  bool best =
      kiln_compat_report_refusal(report, KILN_COMPAT_MODE_BEST_EFFORT) != NULL;
  uint32_t verdict = kiln_compat_report_verdict(report);
  if ((best && !strict) ||
      kiln_compat_report_refusal(report, KILN_COMPAT_MODE_WARN) != NULL ||
      strict != (verdict != KILN_COMPAT_VERDICT_COMPATIBLE) ||
      best != (verdict == KILN_COMPAT_VERDICT_INCOMPATIBLE)) {
    abort();
  }
  kiln_compat_report_format(report, TEXT_BYTES, text, length);
  if (*length >= TEXT_BYTES || strlen(text) != *length) abort();
  kiln_compat_report_release(report);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_compat_fact_t facts[MAX_PIECES];
  const kiln_compat_fact_t* forth[MAX_PIECES];
  const kiln_compat_fact_t* back[2 * MAX_PIECES];
  if (size < HEAD) return 0;
  uint32_t count = (uint32_t)((size - HEAD) / 3);
  if (count > MAX_PIECES) count = MAX_PIECES;
  for (uint32_t i = 0; i < count; i++) {
    facts[i] = make_fact(data + HEAD + 3 * i);
    forth[i] = &facts[i];
    back[2 * (count - 1 - i)] = &facts[i];
    back[2 * (count - 1 - i) + 1] = &facts[i];
  }
  kiln_compat_driver_t driver = kiln_compat_driver_default();
  driver.state = data[0] % 3;
  driver.line = lines[data[0] / 3 % 10];
  driver.branch = data[1] * 3;
  kiln_compat_use_t uses[2] = {kiln_compat_use_default(),
                               kiln_compat_use_default()};
  uses[0].producer = "nvrtc";
  uses[0].consumer = "nvJitLink";
  uses[0].artifact = 1 + data[3] % 5;
  uses[1].producer = data[3] & 64 ? "nvJitLink" : "nvvm";
  uses[1].consumer = data[3] & 128 ? "cuda" : "nvJitLink";
  uses[1].artifact = 1 + data[3] / 8 % 5;
  const kiln_compat_use_t* use_forth[] = {&uses[0], &uses[1]};
  const kiln_compat_use_t* use_back[] = {&uses[1], &uses[0], &uses[1]};
  kiln_compat_request_t request = kiln_compat_request_default();
  request.facts = forth;
  request.fact_count = count;
  request.uses = use_forth;
  request.use_count = data[2] & 4 ? 2 : 0;
  request.driver = &driver;
  request.constraint = constraints[data[2] % 4];
  request.forward_compat = data[2] & 8 ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
  // Static, since a sanitizer marks all of what lies on the stack.
  static char first[TEXT_BYTES];
  static char again[TEXT_BYTES];
  size_t first_length;
  size_t again_length;
  check(&request, first, &first_length);
  request.facts = back;
  request.fact_count = 2 * count;
  request.uses = use_back;
  request.use_count = data[2] & 4 ? 3 : 0;
  check(&request, again, &again_length);
  if (first_length != again_length || memcmp(first, again, first_length) != 0) {
    abort();
  }
  return 0;
}
