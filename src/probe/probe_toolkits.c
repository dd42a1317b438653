// SPDX-License-Identifier: Apache-2.0
//
// probe: toolkits: the components in one root, and their releases.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum { MAX_LINES = 16, VERSION_BYTES = 32 };

// How many components of a root are of a release. thread-compatible
typedef struct tally_t {
  uint32_t line;
  uint32_t count;
} tally_t;

// The components that characterise a toolkit best, and their names.
static const struct {
  uint32_t kind;
  const char* name;
  const char* word;
} kImportant[] = {
    {KILN_LOCATE_KIND_BINARY, "nvcc", "nvcc"},
    {KILN_LOCATE_KIND_BINARY, "ptxas", "ptxas"},
    {KILN_LOCATE_KIND_HEADER, "cudart", "headers"},
    {KILN_LOCATE_KIND_LIB, "cudart", "cudart"},
    {KILN_LOCATE_KIND_LIB, "nvrtc", "nvrtc"},
    {KILN_LOCATE_KIND_LIB, "nvJitLink", "nvJitLink"},
    {KILN_LOCATE_KIND_LIB, "nvvm", "nvvm"},
    {KILN_LOCATE_KIND_BITCODE, "device", "libdevice"},
    {KILN_LOCATE_KIND_STATIC, "cudadevrt", "cudadevrt"},
    {KILN_LOCATE_KIND_LIB, "cublas", "cublas"},
    {KILN_LOCATE_KIND_LIB, "cudnn", "cudnn"},
    {KILN_LOCATE_KIND_LIB, "nccl", "nccl"},
};

size_t kilni_probe_toolkit_of(const kiln_probe_t* probe, const char* root) {
  const kilni_probe_root_t* roots = probe->roots.items;
  for (size_t i = 0; i < probe->roots.count; i++) {
    if (strcmp(roots[i].path, root) == 0) return roots[i].toolkit;
  }
  return SIZE_MAX;
}

static bool toolkits_is_of(const kiln_probe_t* probe,
                           const kiln_probe_copy_t* copy,
                           const kiln_probe_toolkit_t* toolkit) {
  const kiln_probe_toolkit_t* first = probe->toolkits.items;
  return kilni_probe_toolkit_of(probe, copy->root) == (size_t)(toolkit - first);
}

static const kiln_probe_copy_t* toolkits_copy_in(
    const kiln_probe_t* probe, const kiln_probe_toolkit_t* toolkit,
    uint32_t kind, const char* name) {
  const kiln_probe_piece_t* piece = kilni_probe_piece_find(probe, kind, name);
  for (uint32_t i = 0; piece != NULL && i < piece->copy_count; i++) {
    if (toolkits_is_of(probe, &piece->copies[i], toolkit)) {
      return &piece->copies[i];
    }
  }
  return NULL;
}

// ---- Which roots there are ----

// Two spellings of one folder are one toolkit.
static size_t toolkits_same_folder(const kiln_probe_t* probe,
                                   const kilni_base_file_look_t* look) {
  const kilni_probe_root_t* roots = probe->roots.items;
  for (size_t i = 0; i < probe->roots.count; i++) {
    if (look->kind == KILNI_FILE_DIR && roots[i].inode == look->inode &&
        roots[i].device == look->device) {
      return roots[i].toolkit;
    }
  }
  return SIZE_MAX;
}

static kiln_status_t add_toolkit(kiln_probe_t* probe,
                                 const kiln_probe_copy_t* copy) {
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->toolkits, &slot));
  kiln_probe_toolkit_t* toolkit = slot;
  toolkit->root = copy->root;
  toolkit->scope = copy->scope;
  toolkit->include_dir = "";
  toolkit->version = "";
  toolkit->lines = "";
  toolkit->has = "";
  return kiln_ok();
}

static kiln_status_t toolkits_add_root(kiln_probe_t* probe,
                                       const kiln_probe_copy_t* copy) {
  if (kilni_probe_toolkit_of(probe, copy->root) != SIZE_MAX) return kiln_ok();
  kilni_base_file_look_t look = kilni_base_file_look(copy->root);
  size_t toolkit = toolkits_same_folder(probe, &look);
  if (toolkit == SIZE_MAX) {
    toolkit = probe->toolkits.count;
    KILNI_RETURN_IF_ERROR(add_toolkit(probe, copy));
  }
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->roots, &slot));
  kilni_probe_root_t* root = slot;
  root->path = copy->root;
  root->device = look.device;
  root->inode = look.inode;
  root->toolkit = toolkit;
  return kiln_ok();
}

// ---- What is in one ----

static void tally(tally_t* lines, size_t* count, uint32_t line) {
  size_t at = 0;
  while (at < *count && lines[at].line != line) at++;
  if (at == MAX_LINES) return;
  if (at == *count) {
    lines[at].line = line;
    lines[at].count = 0;
    ++*count;
  }
  lines[at].count++;
  while (at > 0 && lines[at - 1].count < lines[at].count) {
    tally_t other = lines[at - 1];
    lines[at - 1] = lines[at];
    lines[at] = other;
    at--;
  }
}

static kiln_status_t count_lines(kiln_probe_t* probe,
                                 kiln_probe_toolkit_t* toolkit) {
  tally_t lines[MAX_LINES];
  size_t count = 0;
  const kiln_probe_copy_t* copies = probe->copies.items;
  for (size_t i = 0; i < probe->copies.count; i++) {
    if (!toolkits_is_of(probe, &copies[i], toolkit)) continue;
    toolkit->piece_count++;
    if (copies[i].line != 0) tally(lines, &count, copies[i].line);
  }
  if (count == 0) return kiln_ok();
  toolkit->line = lines[0].line;
  kilni_base_str_t text;
  kilni_base_str_init(&text, probe->host->allocator, KILNI_PROBE_TEXT_BYTES);
  for (size_t i = 0; i < count; i++) {
    kilni_base_str_addf(&text, "%s%u.%u (%u)", i > 0 ? ", " : "",
                        (unsigned)kiln_compat_line_major(lines[i].line),
                        (unsigned)kiln_compat_line_minor(lines[i].line),
                        (unsigned)lines[i].count);
  }
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_probe_text(probe, kilni_base_str_cstr(&text), &toolkit->lines);
  }
  kilni_base_str_deinit(&text);
  return status;
}

static kiln_status_t list_important(kiln_probe_t* probe,
                                    kiln_probe_toolkit_t* toolkit) {
  kilni_base_str_t text;
  kilni_base_str_init(&text, probe->host->allocator, KILNI_PROBE_TEXT_BYTES);
  size_t count = sizeof(kImportant) / sizeof(kImportant[0]);
  for (size_t i = 0; i < count; i++) {
    if (toolkits_copy_in(probe, toolkit, kImportant[i].kind,
                         kImportant[i].name) == NULL) {
      continue;
    }
    if (text.size > 0) kilni_base_str_add_char(&text, ' ');
    kilni_base_str_add_cstr(&text, kImportant[i].word);
  }
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_text(probe, kilni_base_str_cstr(&text), &toolkit->has);
  }
  kilni_base_str_deinit(&text);
  return status;
}

// Its own release, unless its components contradict it; else theirs.
static kiln_status_t name_version(kiln_probe_t* probe,
                                  kiln_probe_toolkit_t* toolkit) {
  char version[VERSION_BYTES];
  uint32_t line = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_probe_read_version(probe, toolkit->root, version, sizeof(version)));
  bool said = kiln_compat_line_parse(version, &line);
  if (said && toolkit->line == 0) toolkit->line = line;
  if (said && line == toolkit->line) {
    return kilni_probe_text(probe, version, &toolkit->version);
  }
  if (toolkit->line == 0) return kiln_ok();
  return kilni_probe_textf(probe, &toolkit->version, "%u.%u",
                           (unsigned)kiln_compat_line_major(toolkit->line),
                           (unsigned)kiln_compat_line_minor(toolkit->line));
}

kiln_status_t kilni_probe_collect_toolkits(kiln_probe_t* probe) {
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    // The driver is not a toolkit, and a product with a number of its own does
    // not make one.
    bool own =
        kiln_locate_entry_class(pieces[i].entry) == KILN_LOCATE_CLASS_CTK;
    for (uint32_t j = 0; own && j < pieces[i].copy_count; j++) {
      if (pieces[i].copies[j].root[0] == 0) continue;
      KILNI_RETURN_IF_ERROR(toolkits_add_root(probe, &pieces[i].copies[j]));
    }
  }
  kiln_probe_toolkit_t* toolkits = probe->toolkits.items;
  for (size_t i = 0; i < probe->toolkits.count; i++) {
    const kiln_probe_copy_t* headers = toolkits_copy_in(
        probe, &toolkits[i], KILN_LOCATE_KIND_HEADER, "cudart");
    if (headers != NULL) toolkits[i].include_dir = headers->path;
    KILNI_RETURN_IF_ERROR(count_lines(probe, &toolkits[i]));
    KILNI_RETURN_IF_ERROR(list_important(probe, &toolkits[i]));
    KILNI_RETURN_IF_ERROR(name_version(probe, &toolkits[i]));
  }
  return kiln_ok();
}
