// SPDX-License-Identifier: Apache-2.0
//
// image: fatbins: the code of several compilations in one file.
//
// A fatbin is a header and entries; files and sections may contain several,
// with zeroes between. An entry states its kind, architecture and packing.
// Unknown ones are listed and not read.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "image/image_unpack.h"
#include "kiln/image.h"
#include "kiln/status.h"

#define FATBIN_MAGIC  0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u

enum {
  FILE_BYTES = 16,
  WRAPPER_BYTES = 24,
  ENTRY_BYTES = 64,
  VERSION = 1,

  KIND_PTX = 1,
  KIND_ELF = 2,
  KIND_LTOIR = 8,

  FLAG_DEBUG = 0x2,
  FLAG_LZ4 = 0x2000,
  FLAG_ZSTD = 0x8000,
  FLAG_SCRAMBLED = 0x10000,
  FLAG_ACCELERATED = 0x100000,
  FLAG_FAMILY = 0x200000,

  OPTIONS_FIELD = 0x14,
  TEXT_BYTES = 4096,  // of a name or of options; more is cut off
};

// An entry's header. thread-compatible
typedef struct entry_t {
  kilni_image_part_t head;
  kilni_image_part_t body;  // without the padding after it
  uint64_t unpacked;
  uint64_t flags;
  uint32_t kind;
  uint32_t arch;
} entry_t;

// Copies a text out of the header: an offset in it and a size.
static kiln_status_t head_text(const entry_t* entry, uint32_t offset,
                               uint32_t size, char out[TEXT_BYTES]) {
  out[0] = 0;
  if (size == 0) return kiln_ok();
  if (!kilni_image_part_has(&entry->head, offset, size)) {
    return kilni_image_bad(&entry->head, 0,
                           "a text of %u bytes at %u of a header of %" PRIu64,
                           size, offset, entry->head.size);
  }
  if (size >= TEXT_BYTES) size = TEXT_BYTES - 1;
  const char* text = (const char*)entry->head.data + offset;
  const char* end = memchr(text, 0, size);
  if (end != NULL) size = (uint32_t)(end - text);
  while (size > 0 && text[0] == ' ') {
    text++;
    size--;
  }
  while (size > 0 && text[size - 1] == ' ') size--;
  memcpy(out, text, size);
  out[size] = 0;
  return kiln_ok();
}

// The options are described by two numbers, which a field points at.
static kiln_status_t entry_options(const entry_t* entry, char out[TEXT_BYTES]) {
  out[0] = 0;
  uint32_t at = kilni_image_u32(entry->head.data + OPTIONS_FIELD);
  if (at == 0 || entry->kind == KIND_ELF) return kiln_ok();
  if (!kilni_image_part_has(&entry->head, at, 8)) {
    return kilni_image_bad(&entry->head, OPTIONS_FIELD,
                           "options at %u of a header of %" PRIu64, at,
                           entry->head.size);
  }
  const uint8_t* where = entry->head.data + at;
  return head_text(entry, kilni_image_u32(where), kilni_image_u32(where + 4),
                   out);
}

static uint32_t fatbin_format_of(uint32_t kind) {
  switch (kind) {
    case KIND_PTX:
      return KILN_CODE_FORMAT_PTX;
    case KIND_ELF:
      return KILN_CODE_FORMAT_CUBIN;
    case KIND_LTOIR:
      return KILN_CODE_FORMAT_LTOIR;
    default:
      return KILN_CODE_FORMAT_UNKNOWN;
  }
}

static uint32_t packing_of(const entry_t* entry) {
  if (entry->flags & FLAG_ZSTD) return KILN_IMAGE_PACKING_ZSTD;
  return entry->flags & FLAG_LZ4 ? KILN_IMAGE_PACKING_LZ4
                                 : KILN_IMAGE_PACKING_NONE;
}

// Of LTO-IR that cannot be read: its header repeats the version of the
// container, which several lines share; the oldest of them.
static uint32_t ltoir_line(const entry_t* entry) {
  enum { MINOR = 0x18, MAJOR = 0x1a };
  const uint8_t versions[2] = {entry->head.data[MAJOR],
                               entry->head.data[MINOR]};
  return kilni_image_ltoir_line(versions, sizeof(versions));
}

// A member that is listed with the reason why it is not read.
static kiln_status_t list_unread(kiln_image_t* image, const entry_t* entry,
                                 const kilni_image_about_t* about,
                                 const char* why) {
  kiln_image_member_t* member = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_member(
      image, &entry->body, about, fatbin_format_of(entry->kind), &member));
  member->unpacked_bytes = entry->unpacked;
  if (entry->kind == KIND_LTOIR) member->producer_line = ltoir_line(entry);
  return kilni_image_text(image, why, strlen(why), &member->unread);
}

static kiln_status_t unpack_entry(kiln_image_t* image, const entry_t* entry,
                                  const kilni_image_about_t* about,
                                  uint8_t* space) {
  kilni_image_part_t body = entry->body;
  KILNI_RETURN_IF_ERROR(kilni_image_unpack(&body, about->packing, space,
                                           (size_t)entry->unpacked));
  char name[256];
  (void)snprintf(name, sizeof(name),
                 "%.180s, entry at byte %" PRIu64 ", unpacked",
                 entry->head.name, entry->head.base);
  kilni_image_part_t plain = {space, entry->unpacked, 0, name};
  return kilni_image_read_entry(image, &plain, about);
}

static kiln_status_t read_packed(kiln_image_t* image, const entry_t* entry,
                                 const kilni_image_about_t* about) {
  if (!kilni_image_unpack_knows(about->packing)) {
    char why[128];
    (void)snprintf(why, sizeof(why),
                   "packed with %s, which this build of Kiln does not unpack",
                   kiln_image_packing_name(about->packing));
    return list_unread(image, entry, about, why);
  }
  if (entry->unpacked > KILNI_IMAGE_MAX_UNPACKED) {
    return kilni_image_over(entry->head.name, "unpacked bytes in an entry",
                            KILNI_IMAGE_MAX_UNPACKED);
  }
  KILNI_RETURN_IF_ERROR(
      kilni_image_unpack_check(&entry->body, about->packing, entry->unpacked));
  image->unpacked += entry->unpacked;
  if (image->unpacked > KILNI_IMAGE_MAX_UNPACKED_ALL) {
    return kilni_image_over(entry->head.name, "unpacked bytes",
                            KILNI_IMAGE_MAX_UNPACKED_ALL);
  }
  void* space = NULL;
  size_t size = (size_t)entry->unpacked;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(image->allocator, size, &space));
  kiln_status_t status = unpack_entry(image, entry, about, space);
  kilni_base_free(image->allocator, space, size);
  return status;
}

static kiln_status_t fatbin_read_entry(kiln_image_t* image,
                                       const entry_t* entry,
                                       const kilni_image_about_t* outer) {
  char identifier[TEXT_BYTES];
  char options[TEXT_BYTES];
  if (image->producers_only && entry->kind == KIND_PTX) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_image_doubt(
      image->link,
      head_text(entry, kilni_image_u32(entry->head.data + 0x20),
                kilni_image_u32(entry->head.data + 0x24), identifier)));
  KILNI_RETURN_IF_ERROR(
      kilni_image_doubt(image->link, entry_options(entry, options)));
  kilni_image_about_t about = *outer;
  about.identifier = identifier;
  about.options = options;
  about.offset = entry->body.base;
  about.bytes = entry->body.size;
  about.packing = packing_of(entry);
  about.target = entry->arch;
  if (entry->flags & FLAG_ACCELERATED) about.suffix = 'a';
  if (entry->flags & FLAG_FAMILY) about.suffix = 'f';
  if (entry->flags & FLAG_DEBUG && entry->kind != KIND_ELF) {
    about.debug |= KILN_IMAGE_DEBUG_FULL;
  }
  if (fatbin_format_of(entry->kind) == KILN_CODE_FORMAT_UNKNOWN) {
    char why[64];
    (void)snprintf(why, sizeof(why), "an entry of kind %u", entry->kind);
    return list_unread(image, entry, &about, why);
  }
  if (entry->flags & FLAG_SCRAMBLED) {
    return list_unread(image, entry, &about,
                       "scrambled: only NVIDIA's linkers read it");
  }
  if (about.packing != KILN_IMAGE_PACKING_NONE) {
    return read_packed(image, entry, &about);
  }
  return kilni_image_read_entry(image, &entry->body, &about);
}

// The entry at `at` of a fatbin; `*out_next` is where the next begins.
static kiln_status_t open_whole_entry(const kilni_image_link_visit_t* link,
                                      const kilni_image_part_t* fatbin,
                                      uint64_t at, entry_t* out,
                                      uint64_t* out_next) {
  memset(out, 0, sizeof(*out));
  *out_next = at;
  if (!kilni_image_part_has(fatbin, at, ENTRY_BYTES)) {
    return kilni_image_bad(fatbin, at, "an entry's header is cut off");
  }
  const uint8_t* head = fatbin->data + at;
  uint32_t head_size = kilni_image_u32(head + 4);
  uint64_t body = kilni_image_u64(head + 8);
  if (head_size < ENTRY_BYTES || !kilni_image_part_has(fatbin, at, head_size)) {
    return kilni_image_bad(fatbin, at, "an entry's header of %u bytes",
                           head_size);
  }
  if (!kilni_image_part_has(fatbin, at + head_size, body)) {
    KILNI_RETURN_IF_ERROR(kilni_image_doubt(
        link,
        kilni_image_bad(fatbin, at, "an entry of %" PRIu64 " bytes is cut off",
                        body)));
    body = fatbin->size - at - head_size;
  }
  out->head = kilni_image_part_at(fatbin, at, head_size);
  out->kind = kilni_image_u16(head);
  out->arch = kilni_image_u32(head + 0x1c);
  out->flags = kilni_image_u64(head + 0x28);
  out->unpacked = body;
  uint64_t stored = body;
  if (packing_of(out) != KILN_IMAGE_PACKING_NONE) {
    stored = kilni_image_u32(head + 0x10);
    out->unpacked = kilni_image_u64(head + 0x38);
    if (stored > body) {
      KILNI_RETURN_IF_ERROR(kilni_image_doubt(
          link,
          kilni_image_bad(fatbin, at, "%" PRIu64 " packed bytes in %" PRIu64,
                          stored, body)));
      stored = body;
    }
  }
  out->body = kilni_image_part_at(fatbin, at + head_size, stored);
  *out_next = at + head_size + body;
  return kiln_ok();
}

// As above. Of a fatbin whose size is beyond its file, what follows the last
// entry need not be one: it gets no header, and ends the fatbin.
static kiln_status_t open_entry(const kiln_image_t* image,
                                const kilni_image_part_t* fatbin, uint64_t at,
                                entry_t* out, uint64_t* out_next) {
  kiln_status_t wrong =
      open_whole_entry(image->link, fatbin, at, out, out_next);
  if (kiln_status_is_ok(wrong) || !image->is_clipped || at == 0) return wrong;
  memset(out, 0, sizeof(*out));
  *out_next = fatbin->size;
  return kilni_image_doubt(image->link, wrong);
}

// How well an entry suits a linker for `sm`: machine code of the same major,
// the newer the better, then PTX; 0: it is none of the two, or too new.
static uint32_t fatbin_suits(const entry_t* entry, uint32_t sm) {
  enum { BEFORE_PTX = 1 << 16 };
  if (entry->arch > sm || entry->arch >= BEFORE_PTX) return 0;
  if (entry->kind == KIND_PTX) return entry->arch + 1;
  bool fits = entry->kind == KIND_ELF && entry->arch / 10 == sm / 10;
  return fits ? entry->arch + BEFORE_PTX : 0;
}

// Where the entry is that a linker takes; the fatbin's end: it takes none.
static kiln_status_t find_suited(const kiln_image_t* image,
                                 const kilni_image_part_t* fatbin,
                                 uint64_t* out_at) {
  uint32_t best = 0;
  uint64_t at = 0;
  *out_at = fatbin->size;
  while (at < fatbin->size) {
    entry_t entry;
    uint64_t here = at;
    KILNI_RETURN_IF_ERROR(open_entry(image, fatbin, here, &entry, &at));
    uint32_t how = fatbin_suits(&entry, image->link->sm);
    if (how > best) {
      best = how;
      *out_at = here;
    }
  }
  return kiln_ok();
}

// What a fatbin has of which a linker takes nothing. one-thread
typedef struct misfit_t {
  char targets[128];
  bool defines;  // a name that would be missing
} misfit_t;

static kiln_status_t note_defined(void* user, const char* name,
                                  bool is_kernel) {
  (void)name;
  (void)is_kernel;
  ((misfit_t*)user)->defines = true;
  return kiln_ok();
}

static kiln_status_t note_kept(void* user, const char* name, uint32_t kind) {
  (void)name;
  (void)kind;
  ((misfit_t*)user)->defines = true;
  return kiln_ok();
}

static void fatbin_add_target(misfit_t* misfit, const entry_t* entry) {
  size_t used = strlen(misfit->targets);
  (void)snprintf(misfit->targets + used, sizeof(misfit->targets) - used,
                 "%s%s%u", used > 0 ? ", " : "",
                 entry->kind == KIND_PTX   ? "compute_"
                 : entry->kind == KIND_ELF ? "sm_"
                                           : "lto_",
                 (unsigned)entry->arch);
}

// Whether an entry that no linker takes defines something. Damage there is not
// an error: it is not read.
static kiln_status_t look_into(kiln_image_t* image, const entry_t* entry,
                               const kilni_image_about_t* about,
                               misfit_t* misfit) {
  const kilni_image_link_visit_t* asked = image->link;
  const kilni_image_link_visit_t visit = {
      .user = misfit, .define = note_defined, .keep = note_kept};
  image->link = &visit;
  kiln_status_t status = entry->kind == KIND_LTOIR
                             ? note_defined(misfit, "", false)
                             : fatbin_read_entry(image, entry, about);
  image->link = asked;
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  return kiln_ok();
}

// Architectures that were renamed; linkers know which is which.
static bool was_renamed(uint32_t arch) {
  enum { OLD_NAME = 101, NEW_NAME = 110 };
  return arch == OLD_NAME || arch == NEW_NAME;
}

// Nothing of the fatbin suits. LTO-IR for this architecture may.
static kiln_status_t check_misfit(kiln_image_t* image,
                                  const kilni_image_part_t* fatbin,
                                  const kilni_image_about_t* about) {
  misfit_t misfit = {"", false};
  uint64_t at = 0;
  while (at < fatbin->size) {
    entry_t entry;
    KILNI_RETURN_IF_ERROR(open_entry(image, fatbin, at, &entry, &at));
    bool is_code = fatbin_format_of(entry.kind) != KILN_CODE_FORMAT_UNKNOWN;
    if (entry.head.size == 0 || !is_code) continue;
    bool may_suit = entry.kind == KIND_LTOIR && entry.arch <= image->link->sm;
    if (may_suit || was_renamed(entry.arch)) return kiln_ok();
    fatbin_add_target(&misfit, &entry);
    if (misfit.defines) continue;
    KILNI_RETURN_IF_ERROR(look_into(image, &entry, about, &misfit));
  }
  if (!misfit.defines) return kiln_ok();
  return image->link->misfit(image->link->user, fatbin->name, misfit.targets);
}

static kiln_status_t read_one(kiln_image_t* image,
                              const kilni_image_part_t* fatbin,
                              const kilni_image_about_t* about) {
  uint64_t at = 0;
  uint64_t only = fatbin->size;
  kilni_image_link_pieces_t* pieces =
      image->link != NULL ? image->link->inout_pieces : NULL;
  kilni_image_link_pieces_t before = {0};
  bool has_ltoir = false;
  if (pieces != NULL) before = *pieces;
  bool chooses = image->link != NULL && image->link->sm != 0;
  if (chooses) KILNI_RETURN_IF_ERROR(find_suited(image, fatbin, &only));
  if (chooses && only == fatbin->size && image->link->misfit != NULL) {
    KILNI_RETURN_IF_ERROR(check_misfit(image, fatbin, about));
  }
  while (at < fatbin->size) {
    entry_t entry;
    uint64_t here = at;
    KILNI_RETURN_IF_ERROR(open_entry(image, fatbin, here, &entry, &at));
    if (entry.head.size == 0) continue;
    kilni_image_count_part(image->link);
    has_ltoir = has_ltoir || entry.kind == KIND_LTOIR;
    if (chooses && here != only) continue;
    KILNI_RETURN_IF_ERROR(fatbin_read_entry(image, &entry, about));
  }
  if (pieces != NULL && has_ltoir && pieces->takes_ltoir) {
    *pieces = before;
    pieces->ltoir++;
  }
  return kiln_ok();
}

// The fatbin's header at `at`; gives its entries and where it ends.
static kiln_status_t open_file(kiln_image_t* image,
                               const kilni_image_part_t* part, uint64_t at,
                               kilni_image_part_t* out_entries,
                               uint64_t* out_next) {
  memset(out_entries, 0, sizeof(*out_entries));
  *out_next = at;
  if (!kilni_image_part_has(part, at, FILE_BYTES)) {
    return kilni_image_bad(part, at, "a fatbin's header is cut off");
  }
  const uint8_t* head = part->data + at;
  if (kilni_image_u32(head) != FATBIN_MAGIC) {
    return kilni_image_bad(part, at, "no fatbin begins here");
  }
  uint32_t version = kilni_image_u16(head + 4);
  uint32_t size = kilni_image_u16(head + 6);
  uint64_t body = kilni_image_u64(head + 8);
  if (version != VERSION) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "%s: at byte %" PRIu64
                   ": a fatbin of version %u; only version 1 can be read",
                   part->name, part->base + at, version),
        "use a Kiln that reads it, or extract its parts with cuobjdump");
  }
  bool has_head = size >= FILE_BYTES && kilni_image_part_has(part, at, size);
  if (!has_head || !kilni_image_part_has(part, at + size, body)) {
    kiln_status_t wrong = kilni_image_bad(
        part, at, "a fatbin of %" PRIu64 " bytes is cut off", body);
    // Its entries state their lengths.
    KILNI_RETURN_IF_ERROR(has_head && image != NULL
                              ? kilni_image_doubt(image->link, wrong)
                              : wrong);
    body = part->size - at - size;
    image->is_clipped = true;
  }
  *out_entries = kilni_image_part_at(part, at + size, body);
  *out_next = at + size + body;
  return kiln_ok();
}

// Where the fatbin begins: after a wrapper, if there is one.
static kiln_status_t begin_of(const kilni_image_part_t* part,
                              uint64_t* out_at) {
  *out_at = 0;
  if (part->size < 4 || kilni_image_u32(part->data) != WRAPPER_MAGIC) {
    return kiln_ok();
  }
  // In memory it has a pointer; in a file the code can only follow it.
  *out_at = WRAPPER_BYTES;
  if (kilni_image_part_has(part, WRAPPER_BYTES, 4) &&
      kilni_image_u32(part->data + WRAPPER_BYTES) == FATBIN_MAGIC) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "%s: a fatbin's wrapper, which points to code elsewhere",
                 part->name),
      "give the object file or program that contains it");
}

kiln_status_t kilni_image_fatbin_whole(const kilni_image_part_t* part) {
  uint64_t at = 0;
  KILNI_RETURN_IF_ERROR(begin_of(part, &at));
  while (at < part->size) {
    kilni_image_part_t entries;
    KILNI_RETURN_IF_ERROR(open_file(NULL, part, at, &entries, &at));
    uint64_t inner = 0;
    while (inner < entries.size) {
      entry_t entry;
      KILNI_RETURN_IF_ERROR(
          open_whole_entry(NULL, &entries, inner, &entry, &inner));
    }
    while (at < part->size && part->data[at] == 0) at++;
  }
  return kiln_ok();
}

static kiln_status_t fatbin_read_fatbins(kiln_image_t* image,
                                         const kilni_image_part_t* part,
                                         const kilni_image_about_t* about) {
  uint64_t at = 0;
  KILNI_RETURN_IF_ERROR(begin_of(part, &at));
  while (at < part->size) {
    kilni_image_part_t entries;
    uint64_t next = 0;
    bool was_clipped = image->is_clipped;
    kiln_status_t status = open_file(image, part, at, &entries, &next);
    if (!kiln_status_is_ok(status)) {
      return was_clipped && at > 0 ? kilni_image_doubt(image->link, status)
                                   : status;
    }
    status = read_one(image, &entries, about);
    image->is_clipped = was_clipped;
    KILNI_RETURN_IF_ERROR(status);
    at = next;
    while (at < part->size && part->data[at] == 0) at++;
  }
  return kiln_ok();
}

kiln_status_t kilni_image_read_fatbin(kiln_image_t* image,
                                      const kilni_image_part_t* part,
                                      const kilni_image_about_t* about) {
  kiln_status_t status = fatbin_read_fatbins(image, part, about);
  // A newer linker reads what this build does not.
  if (kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
    kilni_image_count_part(image->link);
  }
  return status;
}
