// SPDX-License-Identifier: Apache-2.0
//
// locate: which users could have put a file where it is, and whether it is
// unchanged since.
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate_digest.h"
#include "locate/locate_inside.h"

enum { WRITABLE_BY_OTHERS = 022 };

static const char* trust_why_not(const kilni_base_file_look_t* look,
                                 uint32_t user) {
  if (look->kind == KILNI_FILE_NONE || look->kind == KILNI_FILE_ERROR) {
    return "cannot be examined";
  }
  if (look->owner != 0 && look->owner != user) {
    return "belongs to another user";
  }
  if ((look->mode & WRITABLE_BY_OTHERS) != 0) {
    return "can be written by others";
  }
  return NULL;
}

kiln_status_t kilni_locate_trust_check(kiln_locate_t* locate, const char* path,
                                       const char** out_why) {
  (void)locate;
  *out_why = NULL;
  uint32_t user = kilni_base_file_user();
  char text[KILNI_DISK_PATH_LIMIT];
  size_t size = strlen(path);
  if (size >= sizeof(text)) {
    *out_why = "its path is too long to be checked";
    return kiln_ok();
  }
  memcpy(text, path, size + 1);
  // From the file up: a user who may write a folder may replace its files.
  bool is_file = true;
  for (;;) {
    kilni_base_file_look_t look = kilni_base_file_look(text[0] ? text : "/");
    const char* why = trust_why_not(&look, user);
    if (why != NULL) {
      *out_why = is_file ? why
                 : look.owner != 0 && look.owner != user
                     ? "is below a folder of another user"
                     : "is below a folder that others can write";
      return kiln_ok();
    }
    if (text[0] == 0) return kiln_ok();
    *strrchr(text, '/') = 0;
    is_file = false;
  }
}

// ---- RECORD ----

static const char* compare_record(const kilni_locate_owner_t* owner,
                                  const char* path) {
  if (owner == NULL || owner->record == NULL) {
    return "no RECORD names it";
  }
  if (owner->sha256 == NULL) return "its RECORD has no SHA-256 for it";
  uint64_t size = 0;
  uint8_t digest[KILNI_SHA256_BYTES];
  char text[KILNI_SHA256_TEXT_BYTES];
  kiln_status_t status = kilni_locate_digest(path, &size, digest);
  bool is_read = kiln_status_is_ok(status);
  kiln_status_free(status);
  if (!is_read) return "cannot be read";
  kilni_base_sha256_text(digest, text);
  if (strcmp(text, owner->sha256) == 0) return NULL;
  return "does not match its RECORD";
}

kiln_status_t kilni_locate_trust_record(kiln_locate_t* locate, const char* site,
                                        const char* path, const char* real,
                                        const char** out_why) {
  *out_why = NULL;
  if (locate->reader == NULL) {
    const char* root = locate->system_root[0] ? locate->system_root : NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_reader_create(locate->allocator, root, &locate->reader));
  }
  kilni_locate_facts_query_t query;
  memset(&query, 0, sizeof(query));
  query.path = path;
  query.real_path = real;
  if (site != NULL) {
    query.sites = &site;
    query.site_count = 1;
  }
  const kilni_locate_facts_t* facts = NULL;
  kiln_status_t status = kilni_locate_facts_read(
      locate->reader, &query, KILNI_LOCATE_FACTS_CHEAP, &facts);
  // One whose name does not suggest that it owns the file is read last.
  if (kiln_status_is_ok(status) && facts->owner == NULL) {
    status = kilni_locate_facts_read(locate->reader, &query,
                                     KILNI_LOCATE_FACTS_VERIFY, &facts);
  }
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  *out_why = facts ? compare_record(facts->owner, real) : "cannot be read";
  return kiln_ok();
}
