// SPDX-License-Identifier: Apache-2.0
//
// locate: several items at once: every copy of a thing, or one of each from
// one place.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"

enum { MAX_WANTS = 1024, MAX_MAJORS = 8 };

struct kiln_locate_set_t {
  atomic_uint references;
  uint32_t scope;
  kiln_allocator_t allocator;
  void* items;  // kiln_locate_item_t*
  size_t count;
  size_t capacity;
  uint32_t missing;
  uint32_t tried_count;
  char* root;
  void* trail;  // tried_count kiln_locate_tried_t and their texts
  size_t trail_bytes;
};

// ---- Life ----

static kiln_status_t set_create(kiln_allocator_t allocator,
                                kiln_locate_set_t** out_set) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_locate_set_t), &block));
  kiln_locate_set_t* set = block;
  atomic_init(&set->references, 1);
  set->allocator = allocator;
  *out_set = set;
  return kiln_ok();
}

static void drop_items(kiln_locate_set_t* set) {
  kiln_locate_item_t** items = set->items;
  for (size_t i = 0; i < set->count; i++) kiln_locate_item_release(items[i]);
  set->count = 0;
}

void kiln_locate_set_retain(kiln_locate_set_t* set) {
  if (set == NULL) return;
  atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
}

void kiln_locate_set_release(kiln_locate_set_t* set) {
  if (set == NULL) return;
  if (atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  drop_items(set);
  kilni_base_free_array(set->allocator, set->items, set->capacity,
                        sizeof(kiln_locate_item_t*));
  kilni_base_strfree(set->allocator, set->root);
  kilni_base_free(set->allocator, set->trail, set->trail_bytes);
  kilni_base_free(set->allocator, set, sizeof(*set));
}

static void set_count_missing(kiln_locate_set_t* set) {
  kiln_locate_item_t* const* items = set->items;
  set->missing = 0;
  for (size_t i = 0; i < set->count; i++) {
    set->missing += kiln_locate_item_found(items[i]) ? 0 : 1;
  }
}

// ---- Every copy ----

kiln_status_t kiln_locate_find_all(kiln_locate_t* locate, uint32_t kind,
                                   const char* name,
                                   kiln_locate_set_t** out_set) {
  KILNI_CHECK_ARGUMENT(out_set != NULL, "out_set");
  *out_set = NULL;
  KILNI_CHECK_ARGUMENT(locate != NULL, "locate");
  const kiln_locate_entry_t* entry = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_search_entry(kind, name, &entry));
  kiln_locate_set_t* set = NULL;
  KILNI_RETURN_IF_ERROR(set_create(locate->allocator, &set));
  kilni_locate_search_plan_t plan = {entry, 0, NULL, NULL, 0, 0};
  kilni_base_mutex_lock(&locate->lock);
  kiln_status_t status = kilni_locate_search_all(locate, &plan, &set->items,
                                                 &set->count, &set->capacity);
  kilni_base_mutex_unlock(&locate->lock);
  if (!kiln_status_is_ok(status)) {
    kiln_locate_set_release(set);
    return status;
  }
  set_count_missing(set);
  *out_set = set;
  return kiln_ok();
}

// ---- One place ----

// A set while it is looked for. one-thread
typedef struct looking_t {
  kiln_locate_t* locate;
  const kiln_locate_want_t* wants;
  uint32_t count;
  uint32_t majors[MAX_MAJORS];
  uint32_t major_count;
  kiln_locate_set_t* best;
  kilni_locate_trail_t trail;  // roots, and what each lacks
  kilni_locate_trail_t notes;  // of the scopes: why one has no root
} looking_t;

// True if no toolkit has it: it is found on its own.
static bool set_stands_alone(const looking_t* looking,
                             const kiln_locate_entry_t* entry) {
  return (kiln_locate_entry_class(entry) == KILN_LOCATE_CLASS_DRIVER &&
          kiln_locate_entry_kind(entry) == KILN_LOCATE_KIND_LIB) ||
         kilni_locate_override_is_set(looking->locate, entry);
}

static void add_major(looking_t* looking, uint32_t major) {
  size_t at = looking->major_count;
  for (size_t i = 0; i < looking->major_count; i++) {
    if (looking->majors[i] == major) return;
  }
  if (major == 0 || looking->major_count == MAX_MAJORS) return;
  while (at > 0 && looking->majors[at - 1] < major) {
    looking->majors[at] = looking->majors[at - 1];
    at--;
  }
  looking->majors[at] = major;
  looking->major_count++;
}

static kiln_status_t set_read_wants(looking_t* looking) {
  for (uint32_t i = 0; i < looking->count; i++) {
    const kiln_locate_entry_t* entry = NULL;
    KILNI_CHECK_RESERVED(looking->wants[i].reserved, kiln_locate_want_t);
    KILNI_RETURN_IF_ERROR(kilni_locate_search_entry(
        looking->wants[i].kind, looking->wants[i].name, &entry));
    static const uint32_t lists[] = {KILN_LOCATE_LIST_FILES,
                                     KILN_LOCATE_LIST_WHEEL_DIRS};
    for (size_t j = 0; j < 2; j++) {
      uint32_t count = kiln_locate_entry_list_count(entry, lists[j]);
      for (uint32_t k = 0; k < count; k++) {
        add_major(looking, kiln_locate_entry_list_major(entry, lists[j], k));
      }
    }
  }
  if (looking->major_count == 0) looking->majors[looking->major_count++] = 0;
  return kiln_ok();
}

static kiln_status_t find_one(looking_t* looking,
                              const kiln_locate_entry_t* entry,
                              const kilni_locate_root_t* root, uint32_t scope,
                              uint32_t major, kiln_locate_item_t** out_item) {
  kilni_locate_search_plan_t plan = {entry, 0, NULL, NULL, 0, 0};
  const bool is_of_root = !set_stands_alone(looking, entry);
  if (is_of_root && root == NULL) {
    const kilni_locate_found_t nothing = {0};
    return kilni_locate_item_create(looking->locate->allocator, entry, &nothing,
                                    NULL, 0, &looking->notes, out_item);
  }
  if (is_of_root) {
    plan.major = major;
    plan.root = root->path;
    plan.via = root->via;
    plan.scope = scope;
    plan.layout = root->layout;
  }
  return kilni_locate_search(looking->locate, &plan, out_item);
}

static kiln_status_t set_fill(looking_t* looking,
                              const kilni_locate_root_t* root, uint32_t scope,
                              uint32_t major, kiln_locate_set_t* set,
                              bool* out_any) {
  *out_any = false;
  for (uint32_t i = 0; i < looking->count; i++) {
    const kiln_locate_entry_t* entry =
        kiln_locate_entry_find(looking->wants[i].kind, looking->wants[i].name);
    KILNI_RETURN_IF_ERROR(kilni_base_grow(set->allocator, set->count + 1,
                                          sizeof(kiln_locate_item_t*),
                                          &set->capacity, &set->items));
    kiln_locate_item_t* item = NULL;
    KILNI_RETURN_IF_ERROR(find_one(looking, entry, root, scope, major, &item));
    ((kiln_locate_item_t**)set->items)[set->count++] = item;
    *out_any |=
        kiln_locate_item_found(item) && !set_stands_alone(looking, entry);
  }
  set_count_missing(set);
  return kiln_ok();
}

// True if the search log has that line: a root may be of two scopes.
static bool is_in_trail(const kilni_locate_trail_t* trail, const char* path,
                        const char* why) {
  const uint32_t* marks = trail->marks;
  const char* text = trail->text.data;
  // Without memory the texts are not all there.
  if (!kiln_status_is_ok(trail->status) ||
      trail->text.failed != KILN_STATUS_OK) {
    return false;
  }
  for (size_t i = 0; i < trail->count; i++) {
    if (strcmp(text + marks[2 * i], path) == 0 &&
        strcmp(text + marks[2 * i + 1], why) == 0) {
      return true;
    }
  }
  return false;
}

// "of CUDA 13 lacks lib nvrtc, header cudart"
static kiln_status_t note_missing(looking_t* looking,
                                  const kiln_locate_set_t* set,
                                  const char* root, uint32_t major) {
  kilni_base_str_t why;
  kilni_base_str_init(&why, set->allocator, 65536);
  kiln_locate_item_t* const* items = set->items;
  if (major != 0) kilni_base_str_addf(&why, "of CUDA %u ", (unsigned)major);
  kilni_base_str_add_cstr(&why, "lacks");
  bool first = true;
  for (size_t i = 0; i < set->count; i++) {
    if (kiln_locate_item_found(items[i])) continue;
    const kiln_locate_entry_t* entry = kiln_locate_item_entry(items[i]);
    kilni_base_str_addf(&why, "%s %s %s", first ? "" : ",",
                        kiln_locate_kind_name(kiln_locate_entry_kind(entry)),
                        kiln_locate_entry_name(entry));
    first = false;
  }
  kiln_status_t status = kilni_base_str_status(&why);
  if (kiln_status_is_ok(status) &&
      !is_in_trail(&looking->trail, root, kilni_base_str_cstr(&why))) {
    kilni_locate_trail_add(&looking->trail, root, kilni_base_str_cstr(&why));
  }
  kilni_base_str_deinit(&why);
  return status;
}

// True if something there is of that CUDA major and of no other: headers and
// static libraries have no number in their names and are of any.
static bool has_of_major(const kiln_locate_set_t* set, uint32_t major) {
  kiln_locate_item_t* const* items = set->items;
  for (size_t i = 0; i < set->count; i++) {
    if (kiln_locate_item_major(items[i]) == major) return true;
  }
  return false;
}

// Reports what a root lacks, once, and only of majors that it has something of.
static kiln_status_t note_root(looking_t* looking, const kiln_locate_set_t* set,
                               const kilni_locate_root_t* root, uint32_t major,
                               bool* noted) {
  if (major != 0 && has_of_major(set, major)) {
    *noted = true;
    return note_missing(looking, set, root->path, major);
  }
  if (*noted) return kiln_ok();
  *noted = true;
  return note_missing(looking, set, root->path, 0);
}

// Tries one root, or none at all (NULL); `*out_complete` ends the search.
// `noted`: it was reported before.
static kiln_status_t try_root(looking_t* looking,
                              const kilni_locate_root_t* root, uint32_t scope,
                              uint32_t major, bool* noted, bool* out_complete) {
  kiln_locate_set_t* set = NULL;
  bool any = false;
  KILNI_RETURN_IF_ERROR(set_create(looking->locate->allocator, &set));
  kiln_status_t status = set_fill(looking, root, scope, major, set, &any);
  set->scope = any ? scope : 0;
  if (kiln_status_is_ok(status)) {
    // Only in a root can anything be found.
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    const char* path = any ? root->path : "";
    status = kilni_base_strdup(set->allocator, kilni_base_sv(path), &set->root);
  }
  if (kiln_status_is_ok(status) && any && set->missing > 0) {
    status = note_root(looking, set, root, major, noted);
  }
  const kiln_locate_set_t* best = looking->best;
  bool better =
      best == NULL || set->missing < best->missing || (any && best->scope == 0);
  if (!kiln_status_is_ok(status) || !better) {
    kiln_locate_set_release(set);
    return status;
  }
  kiln_locate_set_release(looking->best);
  looking->best = set;
  *out_complete = set->missing == 0;
  return kiln_ok();
}

static kiln_status_t try_scope(looking_t* looking, uint32_t scope,
                               bool* out_complete) {
  kilni_dispatch_place_t* place = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_get(looking->locate, scope, &place));
  kilni_locate_trail_append(&looking->notes, &place->notes);
  for (size_t i = 0; i < place->count; i++) {
    bool noted = false;
    for (uint32_t j = 0; j < looking->major_count; j++) {
      const kilni_locate_root_t* roots = place->roots;
      KILNI_RETURN_IF_ERROR(try_root(looking, &roots[i], scope,
                                     looking->majors[j], &noted, out_complete));
      if (*out_complete) return kiln_ok();
    }
  }
  return kiln_ok();
}

// The scopes whose roots may contain a toolkit, in their usual order.
static const uint8_t kScopes[] = {
    KILN_LOCATE_SCOPE_ROOT,      KILN_LOCATE_SCOPE_WHEEL,
    KILN_LOCATE_SCOPE_CONDA,     KILN_LOCATE_SCOPE_CUDA_PATH,
    KILN_LOCATE_SCOPE_CUDA_HOME, KILN_LOCATE_SCOPE_LOADER_ROOT,
    KILN_LOCATE_SCOPE_SYSTEM,    KILN_LOCATE_SCOPE_DISTRIBUTION,
    KILN_LOCATE_SCOPE_HPC_SDK};

static kiln_status_t try_scopes(looking_t* looking) {
  const kiln_locate_t* locate = looking->locate;
  bool complete = false;
  for (int liked = 1; liked >= 0 && !complete; liked--) {
    for (size_t i = 0; i < sizeof(kScopes) && !complete; i++) {
      bool its = (locate->prefer & KILN_LOCATE_SCOPE_BIT(kScopes[i])) != 0;
      if (its != (liked == 1) ||
          !kilni_locate_scope_is_allowed(locate, kScopes[i])) {
        continue;
      }
      KILNI_RETURN_IF_ERROR(try_scope(looking, kScopes[i], &complete));
    }
  }
  if (looking->best != NULL) return kiln_ok();
  // No root at all: everything is missing except independent components.
  bool noted = false;
  return try_root(looking, NULL, 0, 0, &noted, &complete);
}

// The other roots; that of the set itself is known from its items.
static kiln_status_t set_keep_trail(looking_t* looking) {
  kiln_locate_set_t* set = looking->best;
  KILNI_RETURN_IF_ERROR(kilni_locate_trail_status(&looking->trail));
  KILNI_RETURN_IF_ERROR(kilni_locate_trail_status(&looking->notes));
  size_t bytes = kilni_locate_trail_bytes(&looking->trail);
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(set->allocator, bytes, &set->trail));
  set->trail_bytes = bytes;
  (void)kilni_locate_trail_copy(&looking->trail, set->trail);
  set->tried_count = (uint32_t)looking->trail.count;
  return kiln_ok();
}

static kiln_status_t set_look(looking_t* looking) {
  KILNI_RETURN_IF_ERROR(set_read_wants(looking));
  kilni_base_mutex_lock(&looking->locate->lock);
  kiln_status_t status = try_scopes(looking);
  kilni_base_mutex_unlock(&looking->locate->lock);
  return kiln_status_is_ok(status) ? set_keep_trail(looking) : status;
}

kiln_status_t kiln_locate_find_set(kiln_locate_t* locate,
                                   const kiln_locate_want_t* wants,
                                   uint32_t count,
                                   kiln_locate_set_t** out_set) {
  KILNI_CHECK_ARGUMENT(out_set != NULL, "out_set");
  *out_set = NULL;
  KILNI_CHECK_ARGUMENT(locate != NULL, "locate");
  KILNI_CHECK_ARGUMENT(wants != NULL, "wants");
  KILNI_CHECK_ARGUMENT_SAYS(count > 0 && count <= MAX_WANTS, "count",
                            "is 0, or over the limit of 1024",
                            "pass 1 to 1024 wants");
  looking_t looking;
  memset(&looking, 0, sizeof(looking));
  looking.locate = locate;
  looking.wants = wants;
  looking.count = count;
  kilni_locate_trail_init(&looking.trail, locate->allocator);
  kilni_locate_trail_init(&looking.notes, locate->allocator);
  kiln_status_t status = set_look(&looking);
  kilni_locate_trail_deinit(&looking.notes);
  kilni_locate_trail_deinit(&looking.trail);
  if (!kiln_status_is_ok(status)) {
    kiln_locate_set_release(looking.best);
    return status;
  }
  *out_set = looking.best;
  return kiln_ok();
}

// ---- Reading ----

// The first item that is missing; there is one.
static const kiln_locate_item_t* set_first_missing(
    const kiln_locate_set_t* set) {
  kiln_locate_item_t* const* items = set->items;
  size_t at = 0;
  while (kiln_locate_item_found(items[at])) at++;
  return items[at];
}

// Where no root has any of it: what was looked at for the first of them.
static kiln_status_t require_nowhere(const kiln_locate_set_t* set) {
  const kiln_locate_item_t* item = set_first_missing(set);
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(item);
  const char* kind = kiln_locate_kind_name(kiln_locate_entry_kind(entry));
  const char* name = kiln_locate_entry_name(entry);
  kiln_status_t status =
      set->missing == 1
          ? KILNI_FAIL(NOT_FOUND, "no place has %s %s", kind, name)
          : KILNI_FAIL(NOT_FOUND,
                       "no place has %s %s or another of the %u components",
                       kind, name, (unsigned)set->missing);
  uint32_t count = kiln_locate_item_tried_count(item);
  for (uint32_t i = 0; i < count && i < KILNI_ITEM_LISTED; i++) {
    const kiln_locate_tried_t* tried = kiln_locate_item_tried(item, i);
    status =
        KILNI_ANNOTATE(status, "tried \"%s\": %s", tried->path, tried->why);
  }
  return kilni_base_status_with_fix(
      status,
      "install a toolkit with all of them, name its folder as a root, or let "
      "the search look in more scopes");
}

kiln_status_t kiln_locate_set_require(const kiln_locate_set_t* set) {
  KILNI_CHECK_ARGUMENT(set != NULL, "set");
  if (set->missing == 0) return kiln_ok();
  const char* root = kiln_locate_set_root(set);
  if (root[0] == 0) return require_nowhere(set);
  kiln_status_t status =
      KILNI_FAIL(NOT_FOUND, "\"%s\" (%s) lacks %u of %u components", root,
                 kiln_locate_scope_name(set->scope), (unsigned)set->missing,
                 (unsigned)set->count);
  const kiln_locate_tried_t* tried = set->trail;
  for (uint32_t i = 0; i < set->tried_count && i < KILNI_ITEM_LISTED; i++) {
    status = KILNI_ANNOTATE(status, "\"%s\" %s", tried[i].path, tried[i].why);
  }
  return kilni_base_status_with_fix(
      status,
      "install the missing components into one of these places, or allow "
      "several places by searching for each component separately");
}

uint32_t kiln_locate_set_count(const kiln_locate_set_t* set) {
  return set ? (uint32_t)set->count : 0;
}

kiln_locate_item_t* kiln_locate_set_item(const kiln_locate_set_t* set,
                                         uint32_t index) {
  if (set == NULL || index >= set->count) return NULL;
  return ((kiln_locate_item_t* const*)set->items)[index];
}

uint32_t kiln_locate_set_missing_count(const kiln_locate_set_t* set) {
  return set ? set->missing : 0;
}

const char* kiln_locate_set_root(const kiln_locate_set_t* set) {
  return set != NULL && set->root != NULL ? set->root : "";
}

uint32_t kiln_locate_set_scope(const kiln_locate_set_t* set) {
  return set ? set->scope : 0;
}

uint32_t kiln_locate_set_tried_count(const kiln_locate_set_t* set) {
  return set ? set->tried_count : 0;
}

const kiln_locate_tried_t* kiln_locate_set_tried(const kiln_locate_set_t* set,
                                                 uint32_t index) {
  if (set == NULL || index >= set->tried_count) return NULL;
  return (const kiln_locate_tried_t*)set->trail + index;
}
