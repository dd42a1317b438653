// SPDX-License-Identifier: Apache-2.0
//
// base: from a raw handle back to its object.
//
// A driver returns bare handles; code that meets one again (a host program, a
// graph's node) needs the object with all that it keeps alive, not a second
// one. Entries are inside the objects, so that adding one cannot fail, and a
// look-up takes a reference only where there still is one: an object whose last
// reference has gone is never found again.
//
// An object leaves the registry before it destroys its handle, since the driver
// may give out the same value at once.
#ifndef KILN_SRC_BASE_REGISTRY_H_
#define KILN_SRC_BASE_REGISTRY_H_

#include <stdatomic.h>

#include "base/thread.h"

struct kilni_base_registry_t;

// The place of one object; all zero while it is in no registry. Only the
// registry touches it. thread-compatible
typedef struct kilni_base_registry_entry_t {
  struct kilni_base_registry_entry_t* next;
  struct kilni_base_registry_t* registry;  // NULL: in none
  uint64_t key;
  void* object;
  atomic_uint* references;  // of the object
  uint32_t kind;
  uint32_t reserved;
} kilni_base_registry_entry_t;

enum { KILNI_REGISTRY_CHAINS = 64 };

// Handles of one device. thread-safe
typedef struct kilni_base_registry_t {
  kilni_base_mutex_t lock;  // locked for a few loads, and never during a call
  size_t count;
  kilni_base_registry_entry_t* chains[KILNI_REGISTRY_CHAINS];
} kilni_base_registry_t;

kiln_status_t kilni_base_registry_init(kilni_base_registry_t* registry);
// Nothing may be in it any more.
void kilni_base_registry_deinit(kilni_base_registry_t* registry);

// What an object enters with. thread-compatible
typedef struct kilni_base_registry_key_t {
  uint64_t key;   // the handle
  uint32_t kind;  // of handle: two kinds may use the same values
  uint32_t reserved;
} kilni_base_registry_key_t;

// Enters an object whose handle the driver has just made: any other entry for
// that handle was destroyed by other code and is no longer found.
void kilni_base_registry_put(kilni_base_registry_t* registry,
                             kilni_base_registry_entry_t* entry,
                             kilni_base_registry_key_t key, void* object,
                             atomic_uint* references);

// Enters an object for a handle that existed before, unless a living object has
// it already: then nothing is entered and that one is the result, with a
// reference more. NULL: it was entered.
void* kilni_base_registry_add(kilni_base_registry_t* registry,
                              kilni_base_registry_entry_t* entry,
                              kilni_base_registry_key_t key, void* object,
                              atomic_uint* references);

// The living object under a handle, with a reference more; NULL for none.
void* kilni_base_registry_find(kilni_base_registry_t* registry,
                               kilni_base_registry_key_t key);

// Takes an entry out, whichever registry it is in. One that is in none is
// accepted.
void kilni_base_registry_remove(kilni_base_registry_t* registry,
                                kilni_base_registry_entry_t* entry);

size_t kilni_base_registry_count(kilni_base_registry_t* registry);

#endif  // KILN_SRC_BASE_REGISTRY_H_
