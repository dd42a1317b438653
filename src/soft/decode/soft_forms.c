// SPDX-License-Identifier: Apache-2.0
//
// soft: the table of forms (generated) and its search.
#include "soft/decode/soft_forms.h"

#include <string.h>

// One row of soft_forms_gen.inc. thread-compatible
typedef struct form_row_t {
  const char* text;
  uint16_t size;
  uint16_t op;
} form_row_t;

static const form_row_t kFormRows[] = {
#define KILNI_SOFT_FORM(text, id) {text, sizeof(text) - 1, KILNI_SOFT_OP_##id},
#include "soft/decode/soft_forms_gen.inc"
#undef KILNI_SOFT_FORM
};

enum { FORM_COUNT = sizeof(kFormRows) / sizeof(kFormRows[0]) };

// One operation's columns. thread-compatible
typedef struct op_row_t {
  const char* id;
  const char* family;
  const char* signature;
} op_row_t;

static const op_row_t kOpRows[] = {
#define KILNI_SOFT_OP(id, family, signature, forms) {#id, #family, signature},
#include "soft/code/soft_ops_alu.inc"
#include "soft/code/soft_ops_core.inc"
#undef KILNI_SOFT_OP
};

// Byte order, a prefix before what it begins: the order of the generator.
static int row_compare(const form_row_t* row, const char* text, size_t size) {
  size_t common = row->size < size ? row->size : size;
  int order = memcmp(row->text, text, common);
  if (order) return order;
  return (row->size > size) - (row->size < size);
}

bool kilni_soft_form_find(const char* text, size_t size,
                          kilni_soft_op_t* out_op) {
  size_t low = 0;
  size_t high = FORM_COUNT;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = row_compare(&kFormRows[middle], text, size);
    if (order == 0) {
      *out_op = (kilni_soft_op_t)kFormRows[middle].op;
      return true;
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  *out_op = KILNI_SOFT_OP_COUNT;
  return false;
}

const char* kilni_soft_form_at(size_t index, kilni_soft_op_t* out_op) {
  if (index >= FORM_COUNT) {
    *out_op = KILNI_SOFT_OP_COUNT;
    return NULL;
  }
  *out_op = (kilni_soft_op_t)kFormRows[index].op;
  return kFormRows[index].text;
}

const char* kilni_soft_op_id(kilni_soft_op_t op) {
  return op < KILNI_SOFT_OP_COUNT ? kOpRows[op].id : "";
}

const char* kilni_soft_op_family(kilni_soft_op_t op) {
  return op < KILNI_SOFT_OP_COUNT ? kOpRows[op].family : "";
}

const char* kilni_soft_op_signature(kilni_soft_op_t op) {
  return op < KILNI_SOFT_OP_COUNT ? kOpRows[op].signature : "";
}
