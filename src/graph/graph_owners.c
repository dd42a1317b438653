// SPDX-License-Identifier: Apache-2.0
//
// graph: what keeps what alive.
//
// The objects that the nodes of a graph use are retained in segments, each for
// many nodes. While only the graph can have a reference to a segment, what a
// removed node used is released at once. Once others may (it is sealed), it is
// released when the last node of the segment is gone here and no hold refers to
// it: graph_hold.c.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

enum { KNOWN_FEW = 32 };

// Memory of bundles; ends with its segment. thread-compatible
struct kilni_graph_chunk_t {
  struct kilni_graph_chunk_t* next;
  size_t space;
  size_t used;
  size_t reserved;
};

static kiln_allocator_t owners_allocator_of(
    const kilni_graph_segment_t* segment) {
  return segment->device->host->allocator;
}

// ---- Bundles ----

static void retain(const kilni_graph_owned_t* owned) {
  switch (owned->kind) {
    case KILNI_OWNED_KERNEL:
      kiln_kernel_retain(owned->object);
      break;
    case KILNI_OWNED_BUFFER:
      kiln_buffer_retain(owned->object);
      break;
    case KILNI_OWNED_ARRAY:
      kiln_array_retain(owned->object);
      break;
    case KILNI_OWNED_EVENT:
      kiln_event_retain(owned->object);
      break;
    default:
      kilni_graph_hold_retain(owned->object);
      break;
  }
}

static void release(const kilni_graph_owned_t* owned) {
  switch (owned->kind) {
    case KILNI_OWNED_KERNEL:
      kiln_kernel_release(owned->object);
      break;
    case KILNI_OWNED_BUFFER:
      kiln_buffer_release(owned->object);
      break;
    case KILNI_OWNED_ARRAY:
      kiln_array_release(owned->object);
      break;
    case KILNI_OWNED_EVENT:
      kiln_event_release(owned->object);
      break;
    default:
      kilni_graph_hold_release(owned->object);
      break;
  }
}

// Releases all that a bundle retains; its place may then be used again.
static void owners_empty(kilni_graph_bundle_t* bundle) {
  kiln_owner_t owner = bundle->owner;
  memset(&bundle->owner, 0, sizeof(bundle->owner));
  uint32_t count = bundle->count;
  bundle->count = 0;
  for (uint32_t i = 0; i < count; i++) release(&bundle->items[i]);
  kilni_device_owner_release(owner);
  kilni_base_free(owners_allocator_of(bundle->segment), bundle->data,
                  bundle->data_bytes);
  bundle->data = NULL;
  bundle->data_bytes = 0;
}

static bool owners_is_empty(const kilni_graph_bundle_t* bundle) {
  return bundle->uses == 0 && bundle->count == 0 && bundle->data == NULL;
}

static kiln_status_t new_bundle(kilni_graph_segment_t* segment, uint32_t space,
                                kilni_graph_bundle_t** out_bundle) {
  size_t bytes =
      sizeof(kilni_graph_bundle_t) + space * sizeof(kilni_graph_owned_t);
  kilni_graph_chunk_t* chunk = segment->chunks;
  if (chunk == NULL || chunk->space - chunk->used < bytes) {
    size_t size = sizeof(*chunk) + bytes;
    void* block = NULL;
    if (size <= KILNI_SPARE_BYTES) {
      size = KILNI_SPARE_BYTES;
      KILNI_RETURN_IF_ERROR(kilni_device_spare_take(segment->device, &block));
    } else {
      KILNI_RETURN_IF_ERROR(
          kilni_base_alloc_unset(owners_allocator_of(segment), size, &block));
    }
    chunk = block;
    chunk->space = size;
    chunk->used = sizeof(*chunk);
    chunk->next = segment->chunks;
    segment->chunks = chunk;
  }
  kilni_graph_bundle_t* bundle = (void*)((char*)chunk + chunk->used);
  memset(bundle, 0, sizeof(*bundle));
  chunk->used += (bytes + 15) / 16 * 16;
  if (chunk->used > chunk->space) chunk->used = chunk->space;
  bundle->segment = segment;
  bundle->space = space;
  bundle->next = segment->bundles;
  segment->bundles = bundle;
  *out_bundle = bundle;
  return kiln_ok();
}

// One that was emptied and has space, else a new one. The last one emptied is
// found first: giving a node other work again and again takes two places.
static kiln_status_t get_bundle(kilni_graph_segment_t* segment, uint32_t space,
                                kilni_graph_bundle_t** out_bundle) {
  kilni_graph_bundle_t* bundle = segment->bundles;
  for (int i = 0; i < 4 && bundle != NULL; i++, bundle = bundle->next) {
    if (!owners_is_empty(bundle) || bundle->space < space) continue;
    *out_bundle = bundle;
    return kiln_ok();
  }
  return new_bundle(segment, space, out_bundle);
}

// ---- What a work wants ----

static uint32_t wanted_count(const kilni_graph_wanted_t* wanted) {
  uint32_t count = wanted->count;
  if (wanted->launch != NULL) {
    count += 1 + (uint32_t)wanted->launch->buffer_space;
  }
  if (wanted->ops != NULL) count += (uint32_t)wanted->ops->count;
  return count;
}

static bool wants_nothing(const kilni_graph_wanted_t* wanted) {
  return wanted->count == 0 && wanted->launch == NULL && wanted->ops == NULL &&
         wanted->owner.release == NULL && wanted->data_bytes == 0;
}

static const kilni_graph_owned_t* find_known(
    const kilni_graph_segment_t* keeper, const kilni_graph_owned_t* owned,
    size_t* out_at) {
  size_t mask = keeper->known_space - 1;
  size_t at = ((uintptr_t)owned->object >> 4) * 0x9e3779b1u & mask;
  while (keeper->known[at].object != NULL) {
    if (keeper->known[at].object == owned->object) return &keeper->known[at];
    at = (at + 1) & mask;
  }
  *out_at = at;
  return NULL;
}

static void owners_put(kilni_graph_bundle_t* bundle,
                       kilni_graph_owned_t owned) {
  const kilni_graph_segment_t* segment = bundle->segment;
  size_t at = 0;
  if (owned.object == NULL) return;
  if (segment->known != NULL && find_known(segment, &owned, &at) != NULL) {
    return;
  }
  for (uint32_t i = 0; i < bundle->count; i++) {
    if (bundle->items[i].object == owned.object) return;
  }
  retain(&owned);
  bundle->items[bundle->count++] = owned;
}

// A bundle is given its objects; the owner of host data comes last, since it
// is only taken when nothing can fail any more.
static kiln_status_t owners_fill(kilni_graph_bundle_t* bundle,
                                 const kilni_graph_wanted_t* wanted) {
  if (wanted->data_bytes > 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_alloc_unset(owners_allocator_of(bundle->segment),
                               wanted->data_bytes, &bundle->data));
    bundle->data_bytes = wanted->data_bytes;
    memcpy(bundle->data, wanted->data, wanted->data_bytes);
  }
  for (uint32_t i = 0; i < wanted->count; i++) {
    owners_put(bundle, wanted->items[i]);
  }
  if (wanted->launch != NULL) {
    const kiln_launch_t* launch = wanted->launch;
    owners_put(bundle,
               (kilni_graph_owned_t){launch->kernel, KILNI_OWNED_KERNEL, 0});
    for (size_t i = 0; i < launch->buffer_space; i++) {
      owners_put(bundle, (kilni_graph_owned_t){launch->buffers[i],
                                               KILNI_OWNED_BUFFER, 0});
    }
  }
  if (wanted->ops != NULL) {
    for (uint64_t i = 0; i < wanted->ops->count; i++) {
      owners_put(bundle, (kilni_graph_owned_t){wanted->ops->ops[i].buffer,
                                               KILNI_OWNED_BUFFER, 0});
    }
  }
  return kiln_ok();
}

static kiln_status_t make_bundle(kilni_graph_segment_t* segment,
                                 const kilni_graph_wanted_t* wanted,
                                 kilni_graph_bundle_t** out_bundle) {
  kilni_graph_bundle_t* bundle = NULL;
  KILNI_RETURN_IF_ERROR(get_bundle(segment, wanted_count(wanted), &bundle));
  KILNI_RETURN_IF_ERROR(owners_fill(bundle, wanted));
  *out_bundle = bundle;
  return kiln_ok();
}

// ---- Segments ----

static void owners_end(kilni_graph_segment_t* segment) {
  kiln_device_t* device = segment->device;
  kiln_allocator_t allocator = device->host->allocator;
  for (kilni_graph_bundle_t* b = segment->bundles; b != NULL; b = b->next) {
    owners_empty(b);
  }
  while (segment->chunks != NULL) {
    kilni_graph_chunk_t* chunk = segment->chunks;
    segment->chunks = chunk->next;
    if (chunk->space == KILNI_SPARE_BYTES) {
      kilni_device_spare_give(device, chunk);
    } else {
      kilni_base_free(allocator, chunk, chunk->space);
    }
  }
  kilni_base_free_array(allocator, segment->known, segment->known_space,
                        sizeof(*segment->known));
  kilni_base_free(allocator, segment, sizeof(*segment));
  kiln_device_release(device);
}

kiln_status_t kilni_graph_segment_make(kiln_device_t* device,
                                       kilni_graph_segment_t** out_segment) {
  *out_segment = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      device->host->allocator, sizeof(kilni_graph_segment_t), &block));
  kilni_graph_segment_t* segment = block;
  segment->device = device;
  atomic_init(&segment->references, 1);
  kiln_device_retain(device);
  *out_segment = segment;
  return kiln_ok();
}

void kilni_graph_segment_retain(kilni_graph_segment_t* segment) {
  atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
}

void kilni_graph_segment_release(kilni_graph_segment_t* segment) {
  if (segment == NULL) return;
  if (atomic_fetch_sub_explicit(&segment->references, 1,
                                memory_order_acq_rel) == 1) {
    owners_end(segment);
  }
}

// ---- Of graphs ----

static kiln_status_t need_open(kiln_graph_t* root) {
  if (root->open != NULL) return kiln_ok();
  kilni_graph_segment_t* made = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_segment_make(root->device, &made));
  kiln_status_t status =
      root->any_given ? kilni_graph_hold_guard_segment(root, made) : NULL;
  if (!kiln_status_is_ok(status)) {
    kilni_graph_segment_release(made);
    return status;
  }
  root->segments_made++;
  root->open = made;
  return kiln_ok();
}

kiln_status_t kilni_graph_owners_prepare(kiln_graph_t* graph,
                                         const kilni_graph_wanted_t* wanted,
                                         kilni_graph_bundle_t** out_bundle) {
  *out_bundle = NULL;
  if (wants_nothing(wanted)) return kiln_ok();
  kiln_graph_t* root = graph->root;
  const kiln_launch_t* launch = wanted->launch;
  // Launches are numbered, so that another one at the same address is another.
  if (launch != NULL && root->last != NULL &&
      launch->number == root->last_number &&
      launch->version == root->last_version) {
    *out_bundle = root->last;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(need_open(root));
  return make_bundle(root->open, wanted, out_bundle);
}

void kilni_graph_owners_commit(kiln_graph_t* graph,
                               kilni_graph_bundle_t* bundle,
                               const kilni_graph_wanted_t* wanted) {
  if (bundle == NULL) return;
  if (bundle->uses++ > 0) return;
  bundle->segment->live++;
  bundle->owner = wanted->owner;
  const kiln_launch_t* launch = wanted->launch;
  if (launch == NULL) return;
  graph->root->last = bundle;
  graph->root->last_number = launch->number;
  graph->root->last_version = launch->version;
}

void kilni_graph_owners_cancel(kilni_graph_bundle_t* bundle) {
  if (bundle != NULL && bundle->uses == 0) owners_empty(bundle);
}

static void unlink_sealed(kiln_graph_t* root, kilni_graph_segment_t* segment) {
  kilni_graph_segment_t** place = &root->sealed;
  while (*place != segment) place = &(*place)->next;
  *place = segment->next;
}

void kilni_graph_owners_drop(kiln_graph_t* graph,
                             kilni_graph_bundle_t* bundle) {
  if (bundle == NULL || --bundle->uses > 0) return;
  kiln_graph_t* root = graph->root;
  kilni_graph_segment_t* segment = bundle->segment;
  segment->live--;
  if (bundle == root->last) root->last = NULL;
  if (segment == root->open) {
    // Code that has had the handle may have made a copy.
    if (!root->any_given) owners_empty(bundle);
    return;
  }
  if (segment->live > 0) return;
  unlink_sealed(root, segment);
  kilni_graph_segment_release(segment);
}

void kilni_graph_owners_seal(kiln_graph_t* graph) {
  kiln_graph_t* root = graph->root;
  if (root->open == NULL || root->open->live == 0) return;
  root->open->next = root->sealed;
  root->sealed = root->open;
  root->open = NULL;
  root->last = NULL;
}

void kilni_graph_owners_end(kiln_graph_t* root) {
  kilni_graph_segment_t* segment = root->sealed;
  kilni_graph_segment_release(root->open);
  root->open = NULL;
  root->sealed = NULL;
  root->last = NULL;
  while (segment != NULL) {
    kilni_graph_segment_t* next = segment->next;
    kilni_graph_segment_release(segment);
    segment = next;
  }
  kilni_graph_hold_release(root->source);
  root->source = NULL;
}

// ---- Of executables ----

static kiln_status_t need_known(kilni_graph_segment_t* keeper, size_t more) {
  size_t space = keeper->known_space == 0 ? KNOWN_FEW : keeper->known_space;
  while (space / 2 < keeper->known_count + more) space *= 2;
  if (space == keeper->known_space) return kiln_ok();
  kilni_graph_owned_t* before = keeper->known;
  size_t before_space = keeper->known_space;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(owners_allocator_of(keeper),
                                               space, sizeof(*before), &block));
  keeper->known = block;
  keeper->known_space = space;
  for (size_t i = 0; i < before_space; i++) {
    size_t at = 0;
    if (before[i].object == NULL) continue;
    (void)find_known(keeper, &before[i], &at);
    keeper->known[at] = before[i];
  }
  kilni_base_free_array(owners_allocator_of(keeper), before, before_space,
                        sizeof(*before));
  return kiln_ok();
}

kiln_status_t kilni_graph_keeper_prepare(kilni_graph_segment_t* keeper,
                                         const kilni_graph_wanted_t* wanted,
                                         kilni_graph_bundle_t** out_bundle) {
  *out_bundle = NULL;
  if (wants_nothing(wanted)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(need_known(keeper, wanted_count(wanted)));
  return make_bundle(keeper, wanted, out_bundle);
}

void kilni_graph_keeper_commit(kilni_graph_segment_t* keeper,
                               kilni_graph_bundle_t* bundle,
                               const kilni_graph_wanted_t* wanted) {
  if (bundle == NULL) return;
  bundle->owner = wanted->owner;
  if (bundle->count == 0 && bundle->data == NULL &&
      bundle->owner.release == NULL) {
    return;  // it had all of that
  }
  bundle->uses = 1;
  keeper->live++;
  for (uint32_t i = 0; i < bundle->count; i++) {
    size_t at = 0;
    if (find_known(keeper, &bundle->items[i], &at) != NULL) continue;
    keeper->known[at] = bundle->items[i];
    keeper->known_count++;
  }
}
