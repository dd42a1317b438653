// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the registry of raw handles.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/registry.h"

enum { KIND_A = 1, KIND_B = 2 };

// An object with a handle. thread-safe
typedef struct thing_t {
  kilni_base_registry_entry_t entry;
  atomic_uint references;
  uint64_t handle;
} thing_t;

static kilni_base_registry_key_t key_of(uint64_t handle, uint32_t kind) {
  kilni_base_registry_key_t key = {handle, kind, 0};
  return key;
}

static void thing_init(thing_t* thing, uint64_t handle) {
  memset(thing, 0, sizeof(*thing));
  thing->handle = handle;
  atomic_init(&thing->references, 1);
}

static void put(kilni_base_registry_t* registry, thing_t* thing,
                uint32_t kind) {
  kilni_base_registry_put(registry, &thing->entry, key_of(thing->handle, kind),
                          thing, &thing->references);
}

static void what_is_put_is_found(void** state) {
  (void)state;
  kilni_base_registry_t registry;
  assert_null(kilni_base_registry_init(&registry));
  static thing_t things[500];
  for (uint64_t i = 0; i < 500; i++) {
    thing_init(&things[i], i * 16);
    put(&registry, &things[i], i % 2 ? KIND_A : KIND_B);
  }
  assert_int_equal(kilni_base_registry_count(&registry), 500);
  for (uint64_t i = 0; i < 500; i++) {
    uint32_t kind = i % 2 ? KIND_A : KIND_B;
    uint32_t other = i % 2 ? KIND_B : KIND_A;
    assert_ptr_equal(kilni_base_registry_find(&registry, key_of(i * 16, kind)),
                     &things[i]);
    assert_int_equal(things[i].references, 2);
    assert_null(kilni_base_registry_find(&registry, key_of(i * 16, other)));
    assert_null(kilni_base_registry_find(&registry, key_of(i * 16 + 1, kind)));
  }
  for (int i = 499; i >= 0; i--) {
    kilni_base_registry_remove(&registry, &things[i].entry);
    kilni_base_registry_remove(&registry,
                               &things[i].entry);  // in none: accepted
  }
  assert_int_equal(kilni_base_registry_count(&registry), 0);
  assert_null(kilni_base_registry_find(&registry, key_of(16, KIND_A)));
  kilni_base_registry_deinit(&registry);
}

static void what_is_ending_is_not_found(void** state) {
  (void)state;
  kilni_base_registry_t registry;
  assert_null(kilni_base_registry_init(&registry));
  thing_t ending;
  thing_t next;
  thing_init(&ending, 7);
  thing_init(&next, 7);
  put(&registry, &ending, KIND_A);
  atomic_store(&ending.references, 0);
  assert_null(kilni_base_registry_find(&registry, key_of(7, KIND_A)));
  assert_int_equal(ending.references, 0);
  // Another object takes its place before it has left.
  assert_null(kilni_base_registry_add(&registry, &next.entry, key_of(7, KIND_A),
                                      &next, &next.references));
  assert_ptr_equal(kilni_base_registry_find(&registry, key_of(7, KIND_A)),
                   &next);
  kilni_base_registry_remove(&registry, &ending.entry);
  assert_ptr_equal(kilni_base_registry_find(&registry, key_of(7, KIND_A)),
                   &next);
  kilni_base_registry_remove(&registry, &next.entry);
  assert_int_equal(kilni_base_registry_count(&registry), 0);
  kilni_base_registry_deinit(&registry);
}

static void a_living_object_is_the_one(void** state) {
  (void)state;
  kilni_base_registry_t registry;
  assert_null(kilni_base_registry_init(&registry));
  thing_t first;
  thing_t second;
  thing_init(&first, 7);
  thing_init(&second, 7);
  assert_null(kilni_base_registry_add(
      &registry, &first.entry, key_of(7, KIND_A), &first, &first.references));
  assert_ptr_equal(
      kilni_base_registry_add(&registry, &second.entry, key_of(7, KIND_A),
                              &second, &second.references),
      &first);
  assert_int_equal(first.references, 2);
  assert_int_equal(kilni_base_registry_count(&registry), 1);
  // A handle that the driver has just made is nobody else's.
  put(&registry, &second, KIND_A);
  assert_int_equal(kilni_base_registry_count(&registry), 1);
  assert_ptr_equal(kilni_base_registry_find(&registry, key_of(7, KIND_A)),
                   &second);
  kilni_base_registry_remove(&registry, &first.entry);  // was put out
  assert_ptr_equal(kilni_base_registry_find(&registry, key_of(7, KIND_A)),
                   &second);
  kilni_base_registry_remove(&registry, &second.entry);
  kilni_base_registry_deinit(&registry);
}

// ---- Threads ----

enum { WORKERS = 4, ROUNDS = 4000, HANDLES = 8 };

// A driver that gives out a few handles again and again. thread-safe
typedef struct driver_t {
  kilni_base_registry_t registry;
  atomic_bool taken[HANDLES];  // the handle exists
  atomic_uint wrong;
  atomic_uint met;  // found on another thread's object
} driver_t;

static void release(driver_t* driver, thing_t* thing) {
  if (atomic_fetch_sub_explicit(&thing->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kilni_base_registry_remove(&driver->registry, &thing->entry);
  uint64_t handle = thing->handle;
  thing->handle = UINT64_MAX;
  kilni_base_free(kiln_allocator_libc(), thing, sizeof(*thing));
  atomic_store(&driver->taken[handle], false);  // the driver's destroy
}

static thing_t* create(driver_t* driver, uint64_t handle) {
  if (atomic_exchange(&driver->taken[handle], true)) return NULL;
  void* block = NULL;
  assert_null(kilni_base_alloc(kiln_allocator_libc(), sizeof(thing_t), &block));
  thing_t* thing = block;
  thing_init(thing, handle);
  put(&driver->registry, thing, KIND_A);
  return thing;
}

static void make_and_meet(void* user) {
  driver_t* driver = user;
  uint64_t random = kilni_base_thread_self() * 2 + 1;
  for (int i = 0; i < ROUNDS; i++) {
    random = random * UINT64_C(6364136223846793005) + 1;
    uint64_t handle = (random >> 33) % HANDLES;
    thing_t* own = create(driver, handle);
    uint64_t other = (random >> 43) % HANDLES;
    thing_t* met =
        kilni_base_registry_find(&driver->registry, key_of(other, KIND_A));
    if (met != NULL) {
      // Held by a reference: neither freed nor another's.
      if (met->handle != other) atomic_fetch_add(&driver->wrong, 1);
      atomic_fetch_add(&driver->met, 1);
      release(driver, met);
    }
    if (own != NULL) release(driver, own);
  }
}

static void many_threads(void** state) {
  (void)state;
  static driver_t driver;
  assert_null(kilni_base_registry_init(&driver.registry));
  kilni_base_thread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    assert_null(
        kilni_base_thread_start(&threads[i], "meet", make_and_meet, &driver));
  }
  for (int i = 0; i < WORKERS; i++) kilni_base_thread_join(&threads[i]);
  assert_int_equal(driver.wrong, 0);
  assert_true(driver.met > 0);
  assert_int_equal(kilni_base_registry_count(&driver.registry), 0);
  for (int i = 0; i < HANDLES; i++) assert_false(driver.taken[i]);
  kilni_base_registry_deinit(&driver.registry);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_put_is_found),
      cmocka_unit_test(what_is_ending_is_not_found),
      cmocka_unit_test(a_living_object_is_the_one),
      cmocka_unit_test(many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
