// SPDX-License-Identifier: Apache-2.0
//
// cli: compares an output with its expected contents.
#include "cli/run_expect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_number.h"

// One element, as far as it takes to compare it. thread-compatible
typedef struct element_t {
  uint64_t bits;  // of a signed integer: extended to 64
  double number;
} element_t;

static element_t element_at(const kilni_cli_array_t* array, uint64_t index) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(array->shape.type);
  element_t e = {0, 0};
  memcpy(&e.bits, array->data.data + index * info->bytes, info->bytes);
  e.number = kilni_cli_number_of(array->shape.type, e.bits);
  uint32_t unused = 64 - info->bytes * 8;
  if (info->kind == 'i' && unused != 0 &&
      (e.bits >> (info->bytes * 8 - 1)) != 0) {
    e.bits |= UINT64_MAX << (info->bytes * 8);
  }
  return e;
}

static double absolute(double x) {
  return x < 0 ? -x : x;
}

// |a - b|, for integers without rounding them to floats.
static double run_expect_distance(const element_t* a, const element_t* b,
                                  char kind) {
  if (kind == 'f') return absolute(a->number - b->number);
  // Signed ones in the order of unsigned ones.
  uint64_t flip = kind == 'i' ? (uint64_t)1 << 63 : 0;
  bool less = (a->bits ^ flip) < (b->bits ^ flip);
  return (double)(less ? b->bits - a->bits : a->bits - b->bits);
}

// Whether `got` is close enough; otherwise how far off it is.
static bool agrees(const element_t* expected, const element_t* got, char kind,
                   double tolerance, double* out_distance) {
  *out_distance = (double)INFINITY;
  if (kind == 'b') return (expected->bits != 0) == (got->bits != 0);
  if (kind != 'f' && expected->bits == got->bits) return true;
  if (kind == 'f') {
    bool a = isnan(expected->number), b = isnan(got->number);
    if (a || b) return a && b;
    if (expected->number == got->number) return true;
    if (isinf(expected->number) || isinf(got->number)) return false;
  }
  *out_distance = run_expect_distance(expected, got, kind);
  return *out_distance <= tolerance ||
         *out_distance <= tolerance * absolute(expected->number);
}

static void write_number(const element_t* e, kilni_cli_type_t type,
                         char out[KILNI_CLI_NUMBER_BYTES]) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  size_t size = KILNI_CLI_NUMBER_BYTES;
  if (info->kind == 'b') {
    (void)snprintf(out, size, "%s", e->bits != 0 ? "true" : "false");
  } else if (info->kind == 'u') {
    (void)snprintf(out, size, "%" PRIu64, e->bits);
  } else if (info->kind == 'i') {
    int64_t value;
    memcpy(&value, &e->bits, 8);
    (void)snprintf(out, size, "%" PRId64, value);
  } else if (isnan(e->number)) {
    (void)snprintf(out, size, "nan");  // of either sign
  } else {
    int digits = type == KILNI_CLI_TYPE_F64 ? 17 : info->bytes == 4 ? 9 : 6;
    (void)snprintf(out, size, "%.*g", digits, e->number);
  }
}

// For an element of the type: what another order of computation may change.
static double run_expect_rounding_of(kilni_cli_type_t type) {
  return type == KILNI_CLI_TYPE_BF16  ? 3e-2
         : type == KILNI_CLI_TYPE_F16 ? 4e-3
                                      : 1e-3;
}

static double largest_of(const kilni_cli_array_t* array) {
  double largest = 0;
  for (uint64_t i = 0; i < array->shape.count; i++) {
    element_t e = element_at(array, i);
    double size = absolute(e.number);
    if (isfinite(size) && size > largest) largest = size;
  }
  return largest;
}

// The rounding error of cancellation is small relative to the largest operand,
// not to the result.
static double find_rounding(const kilni_cli_array_t* expected,
                            const kilni_cli_array_t* got, double tolerance) {
  kilni_cli_type_t type = got->shape.type;
  if (kilni_cli_type_info(type)->kind != 'f') return 0;
  double limit = run_expect_rounding_of(type), needed = tolerance;
  double lost = largest_of(expected) * limit * 1e-3;
  for (uint64_t i = 0; i < got->shape.count; i++) {
    element_t a = element_at(expected, i), b = element_at(got, i);
    double away, size = absolute(a.number);
    if (agrees(&a, &b, 'f', tolerance, &away)) continue;
    if (!(away <= limit * size) && !(away <= lost)) return 0;
    double enough = size > 1 ? away / size : away;
    if (enough > needed) needed = enough;
  }
  return needed * (1 + 1e-12);
}

void kilni_cli_expect_compare(const kilni_cli_array_t* expected,
                              const kilni_cli_array_t* got, double tolerance,
                              kilni_cli_difference_t* out) {
  kilni_cli_type_t type = got->shape.type;
  char kind = kilni_cli_type_info(type)->kind;
  memset(out, 0, sizeof(*out));
  // Typically they are bitwise equal.
  if (expected->data.size == got->data.size && got->data.size != 0 &&
      memcmp(expected->data.data, got->data.data, got->data.size) == 0) {
    return;
  }
  for (uint64_t i = 0; i < got->shape.count; i++) {
    element_t a = element_at(expected, i), b = element_at(got, i);
    double away;
    if (agrees(&a, &b, kind, tolerance, &away)) continue;
    if (out->count++ == 0) {
      out->first = i;
      write_number(&a, type, out->expected);
      write_number(&b, type, out->got);
    }
    if (away > out->largest) out->largest = away;
  }
  if (out->count != 0) {
    out->rounding = find_rounding(expected, got, tolerance);
  }
}

bool kilni_cli_expect_fits(const kilni_cli_shape_t* expected,
                           const kilni_cli_shape_t* buffer) {
  if (expected->type != buffer->type || expected->count != buffer->count) {
    return false;
  }
  if (expected->rank <= 1 || buffer->rank <= 1) return true;
  return expected->rank == buffer->rank &&
         memcmp(expected->dims, buffer->dims,
                expected->rank * sizeof(expected->dims[0])) == 0;
}

void kilni_cli_expect_place(const kilni_cli_shape_t* shape, uint64_t at,
                            char* out, size_t capacity) {
  uint64_t place[KILNI_CLI_MAX_RANK] = {0};
  size_t used = 0;
  for (uint32_t i = shape->rank; i-- != 0;) {
    uint64_t extent = shape->dims[i] != 0 ? shape->dims[i] : 1;
    place[i] = at % extent;
    at /= extent;
  }
  for (uint32_t i = 0; i < shape->rank && used < capacity; i++) {
    int n = snprintf(out + used, capacity - used, "%s%" PRIu64,
                     i == 0 ? "[" : ",", place[i]);
    used += n > 0 ? (size_t)n : 0;
  }
  if (shape->rank == 0) used += (size_t)snprintf(out, capacity, "[");
  if (used < capacity) (void)snprintf(out + used, capacity - used, "]");
}

void kilni_cli_expect_tolerance(double least,
                                char out[KILNI_CLI_NUMBER_BYTES]) {
  (void)snprintf(out, KILNI_CLI_NUMBER_BYTES, "%.2g", least);
  if (strtod(out, NULL) >= least) return;
  double more = least * 1.1;
  (void)snprintf(out, KILNI_CLI_NUMBER_BYTES, "%.2g",
                 more <= DBL_MAX ? more : DBL_MAX);
  if (strtod(out, NULL) < least) {
    (void)snprintf(out, KILNI_CLI_NUMBER_BYTES, "%.17g", least);
  }
}
