// SPDX-License-Identifier: Apache-2.0
//
// image: parts of a file, and errors that name the byte.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/status_make.h"
#include "image/image_inside.h"
#include "kiln/status.h"

// The function itself, and not the one for analyzers.
#undef kilni_image_bad

bool kilni_image_part_has(const kilni_image_part_t* part, uint64_t offset,
                          uint64_t size) {
  return offset <= part->size && size <= part->size - offset;
}

kilni_image_part_t kilni_image_part_at(const kilni_image_part_t* part,
                                       uint64_t offset, uint64_t size) {
  kilni_image_part_t inner = {part->data + offset, size, part->base + offset,
                              part->name};
  return inner;
}

kiln_status_t kilni_image_bad(const kilni_image_part_t* part, uint64_t offset,
                              const char* format, ...) {
  enum { TEXT_BYTES = 256 };
  char text[TEXT_BYTES];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  // Names come from the file, and a message is one line.
  for (char* c = text; *c != 0; c++) {
    if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f) *c = '?';
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA, "%s: at byte %" PRIu64 ": %s", part->name,
                 part->base + offset, text),
      "make the file again: it was cut off or damaged");
}

kiln_status_t kilni_image_over(const char* name, const char* what,
                               uint64_t limit) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "%s: more than %" PRIu64 " %s", name, limit,
                 what),
      "take the file apart (ar x, cuobjdump -xelf) and give its parts");
}

kiln_status_t kilni_image_doubt(const kilni_image_link_visit_t* visit,
                                kiln_status_t wrong) {
  if (visit == NULL || visit->inout_doubt == NULL ||
      kiln_status_code(wrong) != KILN_STATUS_BAD_DATA) {
    return wrong;
  }
  if (kiln_status_is_ok(*visit->inout_doubt)) {
    *visit->inout_doubt = wrong;
  } else {
    kiln_status_free(wrong);
  }
  return kiln_ok();
}

void kilni_image_count_part(const kilni_image_link_visit_t* visit) {
  if (visit != NULL && visit->inout_parts != NULL) (*visit->inout_parts)++;
}

void kilni_image_count_piece(const kilni_image_link_visit_t* visit,
                             uint32_t format) {
  if (visit == NULL || visit->inout_pieces == NULL) return;
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      visit->inout_pieces->ptx++;
      break;
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      visit->inout_pieces->machine++;
      break;
    case KILN_CODE_FORMAT_LTOIR:
      visit->inout_pieces->ltoir++;
      break;
    default:
      break;
  }
}
