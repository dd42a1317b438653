// SPDX-License-Identifier: Apache-2.0
//
// compile: the files that a compilation depends on.
//
// NVRTC's own rules: a header by name that the caller gave goes before all
// files; "name" is then looked for beside the file that includes it, and both
// forms in the folders in order. Failed lookups are recorded too, since the
// file would be found once it exists. Every included file is read, whatever
// condition guards it. A header that a macro names is looked up last, when all
// values of the macro are known, and again whenever that finds more.
#include "cache/cache.h"
#include "compile/compile_files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "compile/compile_macro.h"
#include "compile/compile_scan.h"

// A time in the last two seconds may come again with other bytes.
static const uint64_t kFreshNs = UINT64_C(2000000000);

void kilni_compile_files_deinit(kilni_compile_files_t* files) {
  for (size_t i = 0; i < files->count; i++) {
    kilni_base_strfree(files->allocator, files->items[i].path);
  }
  kilni_base_free_array(files->allocator, files->items, files->capacity,
                        sizeof(kilni_compile_file_dep_t));
  kilni_base_free_array(files->allocator, files->slots, files->slot_count,
                        sizeof(uint32_t));
  kilni_base_strfree(files->allocator, files->computed);
  kilni_base_strfree(files->allocator, files->timed);
  kilni_base_strfree(files->allocator, files->unclear);
  kiln_allocator_t allocator = files->allocator;
  memset(files, 0, sizeof(*files));
  files->allocator = allocator;
}

// An #include of a macro. one-thread
typedef struct computed_t {
  char* text;   // what is computed
  char* shown;  // verbatim, with file and line
  char* dir;    // of the text that contains it; NULL: none
  bool plain;   // else nothing is known of it
  bool next;
} computed_t;

// Distinct sets of weak tokens; any excess goes into the last of them.
enum { MAX_WEAK = 32 };

// A search in progress. one-thread
typedef struct find_t {
  const kilni_compile_files_how_t* how;
  kilni_compile_files_t* files;
  bool* header_seen;       // of each virtual header
  kiln_status_t status;    // what ended it
  kiln_string_view_t dir;  // of the text that is scanned; no data: none
  const char* file;        // that is scanned, for people
  size_t next_file;        // of files->items, not yet scanned
  kilni_compile_macros_t macros;
  kilni_compile_macros_t words;  // that were used, each without a value
  kilni_base_str_t askers;       // names of macros, with a space after each
  computed_t* computed;
  size_t computed_count;
  size_t computed_capacity;
  bool pastes;
  kilni_compile_scan_pieces_t strong;  // of all texts
  kilni_compile_scan_pieces_t weak[MAX_WEAK];
  size_t weak_count;
  kilni_compile_scan_pieces_t here;  // weak ones of the text that is scanned
  kilni_compile_scan_pieces_t asks;  // weak ones of __has_include, of all texts
  bool asks_here;                    // one text has them all
} find_t;

// ---- The set of paths ----

static uint64_t files_hash_of(kiln_string_view_t text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < text.size; i++) {
    hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(1099511628211);
  }
  return hash;
}

// The slot of a path: empty, or with its index.
static uint32_t* files_slot_of(const kilni_compile_files_t* files,
                               kiln_string_view_t path) {
  size_t mask = files->slot_count - 1;
  for (size_t at = (size_t)files_hash_of(path) & mask;; at = (at + 1) & mask) {
    uint32_t index = files->slots[at];
    if (index == 0 ||
        kilni_base_sv_equal_cstr(path, files->items[index - 1].path)) {
      return &files->slots[at];
    }
  }
}

static kiln_status_t grow_slots(kilni_compile_files_t* files) {
  if (files->count * 2 < files->slot_count) return kiln_ok();
  size_t old_count = files->slot_count;
  uint32_t* old = files->slots;
  size_t wanted = old_count != 0 ? old_count * 2 : 256;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(files->allocator, wanted,
                                               sizeof(uint32_t), &block));
  files->slots = block;
  files->slot_count = wanted;
  for (size_t i = 0; i < files->count; i++) {
    *files_slot_of(files, kilni_base_sv(files->items[i].path)) =
        (uint32_t)(i + 1);
  }
  kilni_base_free_array(files->allocator, old, old_count, sizeof(uint32_t));
  return kiln_ok();
}

static kiln_status_t files_add_path(kilni_compile_files_t* files,
                                    kiln_string_view_t path,
                                    kilni_compile_file_dep_t** out_dep) {
  KILNI_RETURN_IF_ERROR(grow_slots(files));
  uint32_t* slot = files_slot_of(files, path);
  if (*slot != 0) {
    *out_dep = &files->items[*slot - 1];
    return kiln_ok();
  }
  if (files->count == KILNI_FILES_MAX) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "the source may include more than %u files",
                   (unsigned)KILNI_FILES_MAX),
        "compile it without a cache");
  }
  void* items = files->items;
  kiln_status_t status = kilni_base_grow(files->allocator, files->count + 1,
                                         sizeof(kilni_compile_file_dep_t),
                                         &files->capacity, &items);
  files->items = items;
  KILNI_RETURN_IF_ERROR(status);
  kilni_compile_file_dep_t* dep = &files->items[files->count];
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(files->allocator, path, &dep->path));
  kilni_base_file_look_t look = kilni_base_file_look(dep->path);
  if (look.kind == KILNI_FILE_REGULAR) {
    dep->state = KILNI_FILE_PRESENT;
    dep->size = look.size;
    dep->inode = look.inode;
    dep->modified_ns = look.modified_ns;
    uint64_t now = kilni_base_date_ns();
    if (look.modified_ns > 0 && (uint64_t)look.modified_ns + kFreshNs > now) {
      dep->state = KILNI_FILE_FRESH;
    }
  }
  files->count++;
  *slot = (uint32_t)files->count;
  *out_dep = dep;
  return kiln_ok();
}

// ---- Looking for one name ----

static kiln_status_t look_in(find_t* find, kiln_string_view_t dir,
                             kiln_string_view_t name, bool* out_there) {
  kilni_base_str_t path;
  kilni_base_str_init(&path, find->files->allocator, 65536);
  if (name.data[0] != '/') {
    kilni_base_str_add(&path, dir);
    kilni_base_str_add_char(&path, '/');
  }
  kilni_base_str_add(&path, name);
  kiln_status_t status = kilni_base_str_status(&path);
  kilni_compile_file_dep_t* dep = NULL;
  if (kiln_status_is_ok(status)) {
    status = files_add_path(
        find->files, kilni_base_sv_make(kilni_base_str_cstr(&path), path.size),
        &dep);
  }
  *out_there = kiln_status_is_ok(status) && dep->state != KILNI_FILE_ABSENT;
  kilni_base_str_deinit(&path);
  return status;
}

static bool files_is_given(find_t* find, kiln_string_view_t name);

static kiln_status_t look_for(find_t* find,
                              const kilni_compile_scan_found_t* found) {
  kiln_string_view_t name = found->name;
  bool there = files_is_given(find, name);
  if (there && !found->next) return kiln_ok();
  if (name.data[0] == '/') {
    return look_in(find, kilni_base_sv(""), name, &there);
  }
  if (found->kind == KILNI_SCAN_QUOTE && find->dir.data != NULL) {
    KILNI_RETURN_IF_ERROR(look_in(find, find->dir, name, &there));
    if (there && !found->next) return kiln_ok();
  }
  for (size_t i = 0; i < find->how->dir_count; i++) {
    KILNI_RETURN_IF_ERROR(
        look_in(find, kilni_base_sv(find->how->dirs[i]), name, &there));
    if (there && !found->next) return kiln_ok();
  }
  return kiln_ok();
}

// ---- Includes of a macro ----

static void computed_deinit(find_t* find) {
  kiln_allocator_t allocator = find->files->allocator;
  for (size_t i = 0; i < find->computed_count; i++) {
    kilni_base_strfree(allocator, find->computed[i].text);
    kilni_base_strfree(allocator, find->computed[i].shown);
    kilni_base_strfree(allocator, find->computed[i].dir);
  }
  kilni_base_free_array(allocator, find->computed, find->computed_capacity,
                        sizeof(computed_t));
}

static kiln_status_t fill_computed(const find_t* find,
                                   const kilni_compile_scan_found_t* found,
                                   computed_t* computed) {
  kiln_allocator_t allocator = find->files->allocator;
  kiln_string_view_t name = found->name;
  if (name.size > 200) name.size = 200;
  computed->next = found->next;
  computed->plain = found->value.data != NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      allocator, computed->plain ? found->value : name, &computed->text));
  if (find->dir.data != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(allocator, find->dir, &computed->dir));
  }
  kilni_base_str_t shown;
  kilni_base_str_init(&shown, allocator, 65536);
  kilni_base_str_addf(&shown, "%.*s (%s:%u)", KILNI_SV(name), find->file,
                      (unsigned)found->line);
  return kilni_base_str_take(&shown, &computed->shown);
}

static kiln_status_t add_computed(find_t* find,
                                  const kilni_compile_scan_found_t* found) {
  if (find->computed_count == KILNI_FILES_MAX) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "more than %u headers are named by macros",
                   (unsigned)KILNI_FILES_MAX),
        "compile it without a cache");
  }
  void* items = find->computed;
  kiln_status_t status =
      kilni_base_grow(find->files->allocator, find->computed_count + 1,
                      sizeof(computed_t), &find->computed_capacity, &items);
  find->computed = items;
  KILNI_RETURN_IF_ERROR(status);
  computed_t* computed = &find->computed[find->computed_count++];
  memset(computed, 0, sizeof(*computed));
  return fill_computed(find, found, computed);
}

static kiln_status_t look_for_expanded(
    void* user, const kilni_compile_scan_found_t* found) {
  return look_for(user, found);
}

static kiln_status_t look_for_both(void* user,
                                   const kilni_compile_scan_found_t* found) {
  kilni_compile_scan_found_t next = *found;
  next.next = true;
  return look_for(user, &next);
}

// Looks for what each may mean by now.
static kiln_status_t look_for_computed(find_t* find) {
  kilni_base_strfree(find->files->allocator, find->files->computed);
  find->files->computed = NULL;
  for (size_t i = 0; i < find->computed_count; i++) {
    const computed_t* computed = &find->computed[i];
    bool all = false;
    kiln_string_view_t none = {NULL, 0};
    find->dir = computed->dir != NULL ? kilni_base_sv(computed->dir) : none;
    if (computed->plain) {
      KILNI_RETURN_IF_ERROR(kilni_compile_macros_expand(
          &find->macros, kilni_base_sv(computed->text),
          computed->next ? look_for_both : look_for_expanded, find, &all));
    }
    if (all || find->files->computed != NULL) continue;
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(find->files->allocator,
                                            kilni_base_sv(computed->shown),
                                            &find->files->computed));
  }
  return kiln_ok();
}

// Options that the compiler takes as they are may define anything.
static bool defines_unseen(const kiln_compile_options_t* options) {
  for (uint32_t i = 0; i < options->option_count; i++) {
    const char* text = options->options[i];
    if (strncmp(text, "-D", 2) == 0 || strncmp(text, "--define", 8) == 0 ||
        strncmp(text, "-define", 7) == 0) {
      return true;
    }
  }
  return false;
}

static bool take_found(void* user, const kilni_compile_scan_found_t* found);

// Of an option its value is known already, and a time is another's question.
static bool files_take_option(void* user,
                              const kilni_compile_scan_found_t* found) {
  find_t* find = user;
  if (found->kind == KILNI_SCAN_DEFINE || found->kind == KILNI_SCAN_TIME) {
    return true;
  }
  if (found->kind != KILNI_SCAN_PIECE) return take_found(user, found);
  kilni_compile_scan_add_piece(&find->strong, NULL, found->name);
  return true;
}

// "NAME=VALUE" as the #define that it means.
static kiln_status_t scan_option(find_t* find, const char* before,
                                 const char* option) {
  kilni_base_str_t text;
  kilni_base_str_init(&text, find->files->allocator, 2u << 20);
  const char* equal = strchr(option, '=');
  size_t name = equal != NULL ? (size_t)(equal - option) : strlen(option);
  kilni_base_str_addf(&text, "#define %s%.*s", before, (int)name, option);
  if (equal != NULL) kilni_base_str_addf(&text, " %s", equal + 1);
  kiln_status_t status = kilni_base_str_status(&text);
  find->file = "an option";
  find->dir = kilni_base_sv_make(NULL, 0);
  if (kiln_status_is_ok(status)) {
    status = kilni_compile_scan_text(
        find->files->allocator,
        kilni_base_sv_make(kilni_base_str_cstr(&text), text.size),
        files_take_option, find);
  }
  kilni_base_str_deinit(&text);
  if (!kiln_status_is_ok(status)) return status;
  return find->status;
}

static kiln_status_t add_defines(find_t* find) {
  const kiln_compile_options_t* options = find->how->options;
  for (uint32_t i = 0; i < options->define_count; i++) {
    const char* text = options->defines[i];
    KILNI_RETURN_IF_ERROR(kilni_compile_macros_add_option(&find->macros, text));
    KILNI_RETURN_IF_ERROR(scan_option(find, "", text));
  }
  // What a raw one may define, under whatever name.
  for (uint32_t i = 0; i < options->option_count; i++) {
    KILNI_RETURN_IF_ERROR(scan_option(find, "_ ", options->options[i]));
  }
  return kiln_ok();
}

// The first is enough.
static kiln_status_t note_time(find_t* find,
                               const kilni_compile_scan_found_t* found) {
  if (find->files->timed != NULL) return kiln_ok();
  kilni_base_str_t shown;
  kilni_base_str_init(&shown, find->files->allocator, 65536);
  kilni_base_str_addf(&shown, "%.*s (%s)", KILNI_SV(found->name), find->file);
  return kilni_base_str_take(&shown, &find->files->timed);
}

static kiln_status_t note_unclear(find_t* find, const char* what,
                                  kiln_string_view_t name, const char* file) {
  if (find->files->unclear != NULL) return kiln_ok();
  kilni_base_str_t shown;
  kilni_base_str_init(&shown, find->files->allocator, 65536);
  kilni_base_str_addf(&shown, "%s%.*s%s%s%s", what, KILNI_SV(name),
                      file != NULL ? " (" : "", file != NULL ? file : "",
                      file != NULL ? ")" : "");
  return kilni_base_str_take(&shown, &find->files->unclear);
}

// Those of __has_include: whether a text has them all, and what all have.
static void keep_asks(find_t* find) {
  enum { ASKS = KILNI_SCAN_NAMES - 1 };
  static const kilni_compile_scan_pieces_t none;
  kilni_compile_scan_pieces_t alone = {0};
  uint16_t* here = find->here.at[ASKS];
  memcpy(alone.at[ASKS], here, sizeof(alone.at[ASKS]));
  if (kilni_compile_scan_whole(&alone, &none) != NULL) find->asks_here = true;
  for (size_t i = 0; i < sizeof(none.at[0]) / sizeof(*here); i++) {
    find->asks.at[ASKS][i] |= here[i];
  }
  memset(here, 0, sizeof(alone.at[ASKS]));
}

// Weak tokens of a text, apart from those of other texts.
static void keep_weak(find_t* find) {
  static const kilni_compile_scan_pieces_t none;
  keep_asks(find);
  if (memcmp(&find->here, &none, sizeof(none)) == 0) return;
  for (size_t i = 0; i < find->weak_count; i++) {
    if (memcmp(&find->here, &find->weak[i], sizeof(none)) == 0) return;
  }
  if (find->weak_count < MAX_WEAK) {
    find->weak[find->weak_count++] = find->here;
    return;
  }
  uint16_t* last = &find->weak[MAX_WEAK - 1].at[0][0];
  const uint16_t* more = &find->here.at[0][0];
  for (size_t i = 0; i < sizeof(none) / sizeof(*last); i++) last[i] |= more[i];
}

static bool has_part_of_asks(const kilni_compile_scan_pieces_t* pieces) {
  static const kilni_compile_scan_pieces_t none;
  enum { ASKS = KILNI_SCAN_NAMES - 1 };
  return memcmp(pieces->at[ASKS], none.at[ASKS], sizeof(none.at[ASKS])) != 0;
}

// A time or a __has_include whose name is pasted together. Common tokens, T and
// __, combine only with those of their own text, since headers of the toolkit
// have them all; "TI" and "ME__" combine everywhere.
static kiln_status_t note_pasted(find_t* find) {
  static const kilni_compile_scan_pieces_t none;
  const char* whole = NULL;
  if (!find->pastes) return kiln_ok();
  whole = kilni_compile_scan_whole(&find->strong, &none);
  // A token that does not occur by chance, such as __has_, may combine with all
  // others.
  if (whole == NULL && (find->asks_here || has_part_of_asks(&find->strong))) {
    whole = kilni_compile_scan_whole(&find->strong, &find->asks);
  }
  for (size_t i = 0; i < find->weak_count && whole == NULL; i++) {
    whole = kilni_compile_scan_whole(&find->strong, &find->weak[i]);
  }
  if (whole == NULL) return kiln_ok();
  return note_unclear(find, "tokens that ## may make ", kilni_base_sv(whole),
                      NULL);
}

static kiln_status_t add_asker(find_t* find, kiln_string_view_t name) {
  kilni_base_str_add(&find->askers, name);
  kilni_base_str_add_char(&find->askers, ' ');
  return kilni_base_str_status(&find->askers);
}

// A macro that passes its argument to __has_include, where not all its uses are
// known: it is used in another macro, with one, or outside a condition.
static kiln_status_t note_askers(find_t* find) {
  kiln_string_view_t rest = {find->askers.data, find->askers.size};
  kiln_string_view_t name;
  while (rest.size != 0 && kilni_base_sv_split(&rest, ' ', &name)) {
    if (name.size == 0 || !kilni_compile_macros_has(&find->words, name)) {
      continue;
    }
    return note_unclear(find, "a __has_include by the macro ", name, NULL);
  }
  return kiln_ok();
}

static bool take_found(void* user, const kilni_compile_scan_found_t* found) {
  find_t* find = user;
  switch (found->kind) {
    case KILNI_SCAN_WORD:
      find->status = kilni_compile_macros_add(&find->words, found->name,
                                              kilni_base_sv_make(NULL, 0));
      break;
    case KILNI_SCAN_ASKER:
      find->status = add_asker(find, found->name);
      break;
    case KILNI_SCAN_ASKS:
      find->status = note_unclear(find, "a condition in a macro ", found->name,
                                  find->file);
      break;
    case KILNI_SCAN_DEFINE:
      find->status =
          kilni_compile_macros_add(&find->macros, found->name, found->value);
      break;
    case KILNI_SCAN_COMPUTED:
      find->status = add_computed(find, found);
      break;
    case KILNI_SCAN_TIME:
      find->status = note_time(find, found);
      break;
    case KILNI_SCAN_PIECE:
      kilni_compile_scan_add_piece(&find->strong, &find->here, found->name);
      break;
    case KILNI_SCAN_PASTE:
      find->pastes = true;
      break;
    case KILNI_SCAN_TRIGRAPH:
      find->status =
          note_unclear(find, "a trigraph, ", found->name, find->file);
      break;
    default:
      find->status = look_for(find, found);
      break;
  }
  return kiln_status_is_ok(find->status);
}

// ---- Texts ----

static kiln_string_view_t files_folder_of(kiln_string_view_t path) {
  while (path.size > 0 && path.data[path.size - 1] != '/') path.size--;
  if (path.size > 1) path.size--;
  return path;
}

static kiln_status_t files_scan(find_t* find, kiln_string_view_t text,
                                kiln_string_view_t dir, const char* file) {
  find->dir = dir;
  find->file = file;
  memset(&find->here, 0, sizeof(find->here));
  KILNI_RETURN_IF_ERROR(
      kilni_compile_scan_text(find->files->allocator, text, take_found, find));
  keep_weak(find);
  return find->status;
}

// A virtual header: scanned once, from the folder in its name.
static bool files_is_given(find_t* find, kiln_string_view_t name) {
  const kiln_compile_options_t* options = find->how->options;
  for (uint32_t i = 0; i < options->header_count; i++) {
    if (!kilni_base_sv_equal_cstr(name, options->headers[i].name)) continue;
    find->header_seen[i] = true;
    return true;
  }
  return false;
}

static kiln_status_t scan_given(find_t* find, uint32_t index) {
  const kiln_compile_file_t* file = &find->how->options->headers[index];
  kiln_string_view_t folder = files_folder_of(kilni_base_sv(file->name));
  kilni_base_str_t dir;
  kilni_base_str_init(&dir, find->files->allocator, 65536);
  if (folder.size == 0 || folder.data[0] != '/') {
    kilni_base_str_add_cstr(&dir, find->how->working_dir);
    if (folder.size != 0) kilni_base_str_add_char(&dir, '/');
  }
  kilni_base_str_add(&dir, folder);
  kiln_status_t status = kilni_base_str_status(&dir);
  if (kiln_status_is_ok(status)) {
    status = files_scan(
        find,
        kilni_base_sv_make((const char*)file->bytes.data, file->bytes.size),
        kilni_base_sv_make(kilni_base_str_cstr(&dir), dir.size), file->name);
  }
  kilni_base_str_deinit(&dir);
  return status;
}

// Where a header's own quotes look: its folder, without "..", so that headers
// which include each other like that do not create new names endlessly.
static kiln_status_t real_folder(find_t* find, const char* path,
                                 char** out_dir) {
  kiln_allocator_t allocator = find->files->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      allocator, files_folder_of(kilni_base_sv(path)), out_dir));
  if (strstr(*out_dir, "/..") == NULL) return kiln_ok();
  char* real = NULL;
  kiln_status_t status = kilni_base_path_real(allocator, *out_dir, &real);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kiln_ok();
  }
  kilni_base_strfree(allocator, *out_dir);
  *out_dir = real;
  return kiln_ok();
}

static kiln_status_t scan_file(find_t* find, size_t index) {
  kilni_compile_files_t* files = find->files;
  kilni_compile_file_dep_t* dep = &files->items[index];
  if (dep->state == KILNI_FILE_ABSENT) return kiln_ok();
  uint8_t* data = NULL;
  size_t size = 0;
  kiln_status_t status = kilni_base_file_read(
      files->allocator, dep->path, KILNI_FILES_MAX_BYTES, &data, &size);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY ||
      kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED) {
    return status;
  }
  if (!kiln_status_is_ok(status)) {
    // What cannot be read NVRTC cannot read either; it counts once it can.
    kiln_status_free(status);
    dep->size = UINT64_MAX;
    return kiln_ok();
  }
  kilni_cache_digest((kiln_bytes_view_t){data, size}, dep->digest);
  files->bytes += size;
  char* dir = NULL;
  if (files->bytes > KILNI_FILES_MAX_ALL_BYTES) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "the files that the source may include exceed 1 GiB"),
        "compile it without a cache");
  }
  if (kiln_status_is_ok(status)) {
    status = real_folder(find, dep->path, &dir);
  }
  if (kiln_status_is_ok(status)) {
    status = files_scan(find, kilni_base_sv_make((const char*)data, size),
                        kilni_base_sv(dir), dep->path);
  }
  kilni_base_strfree(files->allocator, dir);
  kilni_base_file_free(files->allocator, data, size);
  return status;
}

static kiln_status_t scan_rest(find_t* find, bool* done) {
  uint32_t given = find->how->options->header_count;
  for (bool more = true; more;) {
    more = false;
    for (; find->next_file < find->files->count; find->next_file++) {
      KILNI_RETURN_IF_ERROR(scan_file(find, find->next_file));
      more = true;
    }
    for (uint32_t i = 0; i < given; i++) {
      if (!find->header_seen[i] || done[i]) continue;
      done[i] = true;
      more = true;
      KILNI_RETURN_IF_ERROR(scan_given(find, i));
    }
  }
  return kiln_ok();
}

static kiln_status_t find_all(find_t* find, bool* done) {
  const kilni_compile_files_how_t* how = find->how;
  for (uint32_t i = 0; i < how->options->pre_include_count; i++) {
    kilni_compile_scan_found_t first = {.kind = KILNI_SCAN_QUOTE};
    first.name = kilni_base_sv(how->options->pre_includes[i]);
    if (first.name.size == 0) continue;
    find->dir = kilni_base_sv(how->working_dir);
    KILNI_RETURN_IF_ERROR(look_for(find, &first));
  }
  kiln_string_view_t none = {NULL, 0};
  KILNI_RETURN_IF_ERROR(files_scan(
      find, how->source,
      how->source_dir != NULL ? kilni_base_sv(how->source_dir) : none,
      how->name));
  KILNI_RETURN_IF_ERROR(scan_rest(find, done));
  // What the macros lead to may define more of them.
  for (size_t seen = SIZE_MAX; find->computed_count != 0;) {
    size_t known = find->macros.count + find->files->count;
    if (known == seen) break;
    seen = known;
    KILNI_RETURN_IF_ERROR(look_for_computed(find));
    KILNI_RETURN_IF_ERROR(scan_rest(find, done));
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_files_find(const kilni_compile_files_how_t* how,
                                       kilni_compile_files_t* files) {
  find_t find = {.how = how, .files = files};
  uint32_t given = how->options->header_count;
  void* flags = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(files->allocator, (size_t)given * 2 + 1, &flags));
  find.header_seen = flags;
  kilni_compile_macros_init(&find.macros, files->allocator);
  kilni_compile_macros_init(&find.words, files->allocator);
  kilni_base_str_init(&find.askers, files->allocator, 64u << 20);
  kiln_status_t status = add_defines(&find);
  if (kiln_status_is_ok(status)) {
    status = find_all(&find, find.header_seen + given);
  }
  if (kiln_status_is_ok(status) && find.computed_count != 0 &&
      files->computed == NULL && defines_unseen(how->options)) {
    status = kilni_base_strdup(files->allocator,
                               kilni_base_sv(find.computed[0].shown),
                               &files->computed);
  }
  if (kiln_status_is_ok(status)) status = note_askers(&find);
  if (kiln_status_is_ok(status)) status = note_pasted(&find);
  computed_deinit(&find);
  kilni_compile_macros_deinit(&find.macros);
  kilni_compile_macros_deinit(&find.words);
  kilni_base_str_deinit(&find.askers);
  kilni_base_free(files->allocator, flags, (size_t)given * 2 + 1);
  return status;
}

// ---- Smaller questions ----

static bool note_quote(void* user, const kilni_compile_scan_found_t* found) {
  bool* has = user;
  *has = found->kind == KILNI_SCAN_QUOTE ||
         found->kind == KILNI_SCAN_COMPUTED || found->kind == KILNI_SCAN_ASKS ||
         found->kind == KILNI_SCAN_TRIGRAPH;
  return !*has;
}

kiln_status_t kilni_compile_files_has_quotes(kiln_allocator_t allocator,
                                             kiln_string_view_t text,
                                             bool* out_has) {
  *out_has = false;
  return kilni_compile_scan_text(allocator, text, note_quote, out_has);
}

static bool content_holds(kiln_allocator_t allocator,
                          const kilni_compile_file_dep_t* dep) {
  uint8_t* data = NULL;
  size_t size = 0;
  kiln_status_t status = kilni_base_file_read(
      allocator, dep->path, KILNI_FILES_MAX_BYTES, &data, &size);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  char digest[KILN_CACHE_NAME_BYTES];
  kilni_cache_digest((kiln_bytes_view_t){data, size}, digest);
  kilni_base_file_free(allocator, data, size);
  return strcmp(digest, dep->digest) == 0;
}

bool kilni_compile_file_dep_holds(kiln_allocator_t allocator,
                                  const kilni_compile_file_dep_t* dep,
                                  bool verify) {
  kilni_base_file_look_t look = kilni_base_file_look(dep->path);
  if (dep->state == KILNI_FILE_ABSENT) {
    return look.kind != KILNI_FILE_REGULAR;
  }
  if (look.kind != KILNI_FILE_REGULAR || look.size != dep->size) return false;
  if (verify) return content_holds(allocator, dep);
  if (look.inode != dep->inode || look.modified_ns != dep->modified_ns) {
    return false;
  }
  return dep->state != KILNI_FILE_FRESH || content_holds(allocator, dep);
}
