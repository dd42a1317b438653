// SPDX-License-Identifier: Apache-2.0
//
// image: whether a cubin or a fatbin is all there.
//
// Less than reading it: a driver of a newer CUDA knows attributes and entries
// that the readers do not, and those are not a reason to keep a file from it.
#include <string.h>

#include "base/status_make.h"
#include "image/image.h"
#include "image/image_cubin.h"
#include "kiln/api.h"
#include "kiln/status.h"

// The headers that a loader walks; section headers are opened with the file.
static kiln_status_t check_segments(const kilni_image_part_t* part) {
  uint64_t at = kilni_image_u64(part->data + 32);
  uint64_t size = (uint64_t)kilni_image_u16(part->data + 54) *
                  kilni_image_u16(part->data + 56);
  if (kilni_image_part_has(part, at, size)) return kiln_ok();
  return kilni_image_bad(part, 32, "the file ends within its segments");
}

static kiln_status_t check_cubin(const kilni_image_part_t* part) {
  kilni_image_elf_t elf;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_open(part, &elf));
  if (elf.machine != KILNI_IMAGE_ELF_MACHINE_CUDA) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(BAD_DATA, "\"%s\" is an ELF file, but not one for CUDA",
                   part->name),
        "give a cubin, a fatbin or PTX: host objects and libraries cannot be "
        "loaded on a device");
  }
  KILNI_RETURN_IF_ERROR(check_segments(part));
  for (uint32_t i = 1; i < elf.count; i++) {
    kilni_image_section_t section;
    kilni_image_part_t bytes;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_section(&elf, i, &section));
    if (!kilni_image_cubin_has_bytes(section.type)) continue;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&elf, &section, &bytes));
  }
  return kiln_ok();
}

kiln_status_t kilni_image_check_whole(kiln_bytes_view_t bytes,
                                      const char* name) {
  kilni_image_part_t part = {bytes.data, bytes.size, 0, name};
  if (bytes.size >= 4 && memcmp(bytes.data, "\177ELF", 4) == 0) {
    return check_cubin(&part);
  }
  return kilni_image_fatbin_whole(&part);
}
