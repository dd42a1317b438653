// SPDX-License-Identifier: Apache-2.0
//
// base: from a raw handle back to its object.
#include "base/registry.h"

#include <string.h>

// Handles are addresses or small numbers: their low bits vary little.
static size_t chain_of(kilni_base_registry_key_t key) {
  uint64_t mixed = key.key ^ ((uint64_t)key.kind << 57);
  mixed *= UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(mixed >> 58) % KILNI_REGISTRY_CHAINS;
}

// A reference more, unless there is none left. The memory exists as long as the
// lock is held: an object leaves the registry before it is freed.
static bool registry_try_retain(atomic_uint* references) {
  unsigned int seen = atomic_load_explicit(references, memory_order_relaxed);
  while (seen != 0) {
    if (atomic_compare_exchange_weak_explicit(references, &seen, seen + 1,
                                              memory_order_acquire,
                                              memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

static bool is_at(const kilni_base_registry_entry_t* entry,
                  kilni_base_registry_key_t key) {
  return entry->key == key.key && entry->kind == key.kind;
}

static void* registry_find(kilni_base_registry_t* registry,
                           kilni_base_registry_key_t key) {
  kilni_base_registry_entry_t* entry = registry->chains[chain_of(key)];
  for (; entry != NULL; entry = entry->next) {
    if (is_at(entry, key) && registry_try_retain(entry->references)) {
      return entry->object;
    }
  }
  return NULL;
}

static void registry_take_out(kilni_base_registry_t* registry,
                              kilni_base_registry_entry_t** at) {
  kilni_base_registry_entry_t* entry = *at;
  *at = entry->next;
  memset(entry, 0, sizeof(*entry));
  registry->count--;
}

static void registry_enter(kilni_base_registry_t* registry,
                           kilni_base_registry_entry_t* entry,
                           kilni_base_registry_key_t key, void* object,
                           atomic_uint* references) {
  kilni_base_registry_entry_t** chain = &registry->chains[chain_of(key)];
  entry->registry = registry;
  entry->key = key.key;
  entry->kind = key.kind;
  entry->object = object;
  entry->references = references;
  entry->next = *chain;
  *chain = entry;
  registry->count++;
}

kiln_status_t kilni_base_registry_init(kilni_base_registry_t* registry) {
  memset(registry, 0, sizeof(*registry));
  return kilni_base_mutex_init(&registry->lock);
}

void kilni_base_registry_deinit(kilni_base_registry_t* registry) {
  kilni_base_mutex_deinit(&registry->lock);
}

void kilni_base_registry_put(kilni_base_registry_t* registry,
                             kilni_base_registry_entry_t* entry,
                             kilni_base_registry_key_t key, void* object,
                             atomic_uint* references) {
  kilni_base_mutex_lock(&registry->lock);
  kilni_base_registry_entry_t** at = &registry->chains[chain_of(key)];
  while (*at != NULL) {
    if (is_at(*at, key)) {
      registry_take_out(registry, at);
    } else {
      at = &(*at)->next;
    }
  }
  registry_enter(registry, entry, key, object, references);
  kilni_base_mutex_unlock(&registry->lock);
}

void* kilni_base_registry_add(kilni_base_registry_t* registry,
                              kilni_base_registry_entry_t* entry,
                              kilni_base_registry_key_t key, void* object,
                              atomic_uint* references) {
  kilni_base_mutex_lock(&registry->lock);
  void* found = registry_find(registry, key);
  if (found == NULL) registry_enter(registry, entry, key, object, references);
  kilni_base_mutex_unlock(&registry->lock);
  return found;
}

void* kilni_base_registry_find(kilni_base_registry_t* registry,
                               kilni_base_registry_key_t key) {
  kilni_base_mutex_lock(&registry->lock);
  void* found = registry_find(registry, key);
  kilni_base_mutex_unlock(&registry->lock);
  return found;
}

void kilni_base_registry_remove(kilni_base_registry_t* registry,
                                kilni_base_registry_entry_t* entry) {
  kilni_base_mutex_lock(&registry->lock);
  if (entry->registry == registry) {
    kilni_base_registry_key_t key = {entry->key, entry->kind, 0};
    kilni_base_registry_entry_t** at = &registry->chains[chain_of(key)];
    while (*at != entry) at = &(*at)->next;
    registry_take_out(registry, at);
  }
  kilni_base_mutex_unlock(&registry->lock);
}

size_t kilni_base_registry_count(kilni_base_registry_t* registry) {
  kilni_base_mutex_lock(&registry->lock);
  size_t count = registry->count;
  kilni_base_mutex_unlock(&registry->lock);
  return count;
}
