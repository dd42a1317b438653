// SPDX-License-Identifier: Apache-2.0
//
// device: objects made, shared and released in random orders by several
// threads, over the null and the software device, some calls made to fail: a
// driver's books say that nothing leaks, nothing is ended twice or used after
// its end, and no thread's current context changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "driver_books.h"
#include "fault_alloc.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"

enum { THREADS = 3, HELD = 10, SHARED = 6, STEPS = 250, ROUNDS = 20 };

typedef enum kind_t { NONE, DEVICE, STREAM, EVENT, BUFFER, KINDS } kind_t;

// A reference to an object. thread-compatible
typedef struct held_t {
  kind_t kind;
  void* object;
} held_t;

// What the threads have in common. thread-safe
typedef struct world_t {
  bool soft;
  bool faults;  // of the main thread's calls
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;  // wrapped
  kiln_runtime_t* runtime;
  kilni_mutex_t lock;  // of the shared references
  held_t shared[SHARED];
  atomic_uint wrong;
  atomic_uint made;
  atomic_uint owners;  // given less released
} world_t;

// One thread. one-thread
typedef struct player_t {
  world_t* world;
  uint64_t random;
  kiln_cu_context_t current;
  bool fails;  // its calls are made to
  held_t held[HELD];
} player_t;

static uint32_t draw(player_t* player, uint32_t below) {
  player->random = player->random * UINT64_C(6364136223846793005) + 1442695041;
  return (uint32_t)((player->random >> 33) % below);
}

static void give_back(held_t* held) {
  switch (held->kind) {
    case DEVICE:
      kiln_device_release(held->object);
      break;
    case STREAM:
      kiln_stream_release(held->object);
      break;
    case EVENT:
      kiln_event_release(held->object);
      break;
    case BUFFER:
      kiln_buffer_release(held->object);
      break;
    default:
      break;
  }
  memset(held, 0, sizeof(*held));
}

static void take_more(const held_t* held) {
  switch (held->kind) {
    case DEVICE:
      kiln_device_retain(held->object);
      break;
    case STREAM:
      kiln_stream_retain(held->object);
      break;
    case EVENT:
      kiln_event_retain(held->object);
      break;
    case BUFFER:
      kiln_buffer_retain(held->object);
      break;
    default:
      break;
  }
}

// One of a kind that the player holds; NULL without.
static void* some(player_t* player, kind_t kind) {
  uint32_t first = draw(player, HELD);
  for (uint32_t i = 0; i < HELD; i++) {
    held_t* held = &player->held[(first + i) % HELD];
    if (held->kind == kind) return held->object;
  }
  return NULL;
}

static void owner_done(void* user) {
  atomic_fetch_sub(&((world_t*)user)->owners, 1);
}

// A handle of ours as a host program has it: with an owner of its own or
// without. It holds the stream itself, which keeps the handle alive.
static kiln_status_t adopt(player_t* player, kiln_stream_t* stream,
                           kiln_stream_t** out_stream) {
  kiln_owner_t owner = {owner_done, player->world};
  bool owned = draw(player, 2) == 0;
  if (owned) atomic_fetch_add(&player->world->owners, 1);
  kiln_status_t status =
      kiln_stream_adopt(kiln_stream_device(stream), kiln_stream_handle(stream),
                        owned ? &owner : NULL, out_stream);
  if (owned && !kiln_status_is_ok(status)) owner_done(player->world);
  return status;
}

static kiln_status_t make_stream(player_t* player, kiln_device_t* device,
                                 kiln_stream_t** out_stream) {
  kiln_stream_t* known = some(player, STREAM);
  kiln_stream_options_t options = kiln_stream_options_default();
  switch (draw(player, 4)) {
    case 0:
      return kiln_stream_default(
          device, draw(player, 2) ? KILN_STREAM_LEGACY : KILN_STREAM_PER_THREAD,
          out_stream);
    case 1:
      if (known != NULL) return adopt(player, known, out_stream);
      break;
    default:
      break;
  }
  options.priority = -(int32_t)draw(player, 3);
  return kiln_stream_create(device, &options, out_stream);
}

static kiln_status_t make(player_t* player, held_t* place) {
  world_t* world = player->world;
  kiln_device_t* device = some(player, DEVICE);
  kiln_status_t status = NULL;
  kiln_stream_t* stream = NULL;
  kiln_event_t* event = NULL;
  kiln_buffer_t* buffer = NULL;
  kind_t kind = device == NULL ? DEVICE : (kind_t)(1 + draw(player, KINDS - 1));
  if (kind == DEVICE) {
    const char* name = world->soft       ? "soft"
                       : draw(player, 2) ? "cuda:0"
                                         : "cuda:1";
    status = kiln_runtime_open_device(world->runtime, name, &device);
    place->object = device;
  } else if (kind == STREAM) {
    status = make_stream(player, device, &stream);
    place->object = stream;
  } else if (kind == EVENT) {
    status = kiln_event_create(device, NULL, &event);
    place->object = event;
  } else {
    kiln_buffer_options_t options = kiln_buffer_options_default();
    kiln_stream_t* on = some(player, STREAM);
    if (on != NULL && kiln_stream_kind(on) != KILN_STREAM_PER_THREAD) {
      options.stream = on;
      device = kiln_stream_device(on);
    }
    status = kiln_buffer_create(device, 256, &options, &buffer);
    place->object = buffer;
  }
  bool ok = kiln_status_is_ok(status);
  if (ok != (place->object != NULL)) atomic_fetch_add(&world->wrong, 1);
  place->kind = ok ? kind : NONE;
  if (ok) atomic_fetch_add(&world->made, 1);
  return status;
}

static kiln_status_t use(player_t* player) {
  kiln_stream_t* stream = some(player, STREAM);
  kiln_stream_t* other = some(player, STREAM);
  kiln_event_t* event = some(player, EVENT);
  if (stream == NULL) return NULL;
  switch (draw(player, 4)) {
    case 0:
      return kiln_stream_synchronize(stream);
    case 1:
      return kiln_stream_wait_stream(stream, other);
    case 2:
      if (event == NULL ||
          kiln_device_context(kiln_event_device(event)) !=
              kiln_device_context(kiln_stream_device(stream))) {
        return NULL;
      }
      return kiln_event_record(event, stream);
    default:
      return event == NULL ? NULL : kiln_stream_wait_event(stream, event);
  }
}

// Leaves a reference for another thread, and takes what lay there: a second
// reference, or the only one here.
static void swap(player_t* player, held_t* held) {
  world_t* world = player->world;
  bool doubled = draw(player, 2) == 0;
  if (doubled) take_more(held);
  held_t more = *held;
  uint32_t at = draw(player, SHARED);
  kilni_mutex_lock(&world->lock);
  held_t there = world->shared[at];
  world->shared[at] = more;
  kilni_mutex_unlock(&world->lock);
  if (doubled) {
    give_back(&there);
  } else {
    *held = there;
  }
}

static void step(player_t* player) {
  held_t* held = &player->held[draw(player, HELD)];
  kiln_status_t status = NULL;
  switch (draw(player, 4)) {
    case 0:
      give_back(held);
      break;
    case 1:
      status = use(player);
      break;
    case 2:
      swap(player, held);
      break;
    default:
      give_back(held);
      status = make(player, held);
      break;
  }
  if (!kiln_status_is_ok(status) && !player->fails) {
    atomic_fetch_add(&player->world->wrong, 1);
    print_error("%s\n", kiln_status_message(status));
  }
  kiln_status_free(status);
}

static void check_thread(player_t* player) {
  const kiln_cuda_table_t* table = &player->world->table;
  bool same = driver_books_current() == player->current &&
              driver_books_mode() == KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (same) return;
  const char* hit = player->fails ? kilni_cuda_fault_hit(table) : NULL;
  // Only where putting it back was itself made to fail.
  if (hit == NULL || (strcmp(hit, "cuCtxSetCurrent") != 0 &&
                      strcmp(hit, "cuThreadExchangeStreamCaptureMode") != 0)) {
    atomic_fetch_add(&player->world->wrong, 1);
  }
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (player->fails) kilni_cuda_fault_disarm(table);
  table->cuThreadExchangeStreamCaptureMode(&mode);
  table->cuCtxSetCurrent(player->current);
}

static void play(void* user) {
  player_t* player = user;
  world_t* world = player->world;
  if (!world->soft) world->table.cuCtxSetCurrent(player->current);
  for (int i = 0; i < STEPS; i++) {
    if (player->fails) {
      kilni_cuda_fault_arm(&world->table, 1 + draw(player, 12),
                           KILNI_FAULT_ONCE, KILN_CU_ERROR_OUT_OF_MEMORY);
    }
    step(player);
    check_thread(player);
    if (player->fails) kilni_cuda_fault_disarm(&world->table);
  }
  while (some(player, STREAM) || some(player, DEVICE) || some(player, EVENT) ||
         some(player, BUFFER)) {
    give_back(&player->held[draw(player, HELD)]);
    check_thread(player);
  }
}

// ---- The world ----

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  world_t* world = user;
  driver_books_open(inout_table);
  driver_books_forgive(world->faults);
  kiln_status_t status = kilni_cuda_fault_install(inout_table, inout_table);
  world->table = *inout_table;
  return status;
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  world_t* world = user;
  driver_books_counts_t counts = driver_books_counts();
  if (counts.live != 0 || counts.wrong != 0) {
    print_error("%llu handles live, %llu wrong: %s\n",
                (unsigned long long)counts.live,
                (unsigned long long)counts.wrong,
                counts.first_wrong ? counts.first_wrong : "");
    atomic_fetch_add(&world->wrong, 1);
  }
  for (uint32_t i = 0; i < KILNI_HANDLE_COUNT; i++) {
    if (counts.made[i] != counts.ended[i]) atomic_fetch_add(&world->wrong, 1);
  }
  kilni_cuda_fault_remove(table);
}

static void open_world(world_t* world, bool soft, bool faults) {
  memset(world, 0, sizeof(*world));
  world->soft = soft;
  world->faults = faults;
  fault_alloc_init(&world->watch);
  world->allocator = fault_alloc_allocator(&world->watch);
  static kiln_allocator_t own;
  own = kiln_allocator_libc();
  kilni_cuda_null_reset();
  kilni_cuda_table_null(&world->null_table);
  assert_null(kilni_mutex_init(&world->lock));
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &world->allocator;
  options.soft_workers = 1;
  options.soft_lanes = "plain";
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &world->null_table;
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = world;
  hooks.soft_allocator = &own;
  assert_null(kilni_runtime_create_with(&options, &hooks, &world->runtime));
}

static void run_world(bool soft, bool faults, uint64_t seed) {
  static world_t world;
  static player_t players[THREADS];
  open_world(&world, soft, faults);
  kiln_device_t* first = NULL;
  assert_null(kiln_runtime_open_device(world.runtime, soft ? "soft" : "cuda:0",
                                       &first));
  memset(players, 0, sizeof(players));
  for (uint32_t i = 0; i < THREADS; i++) {
    players[i].world = &world;
    players[i].random = seed * 1000 + i;
    players[i].fails = faults && i == 0;
    if (!soft && i > 0) {
      players[i].current = (kiln_cu_context_t)(uintptr_t)(0xf04e00 + i);
    }
  }
  kilni_thread_t threads[THREADS];
  for (uint32_t i = 1; i < THREADS; i++) {
    assert_null(kilni_thread_start(&threads[i], "play", play, &players[i]));
  }
  play(&players[0]);
  for (uint32_t i = 1; i < THREADS; i++) kilni_thread_join(&threads[i]);
  kiln_runtime_release(world.runtime);
  kiln_device_release(first);
  for (uint32_t i = 0; i < SHARED; i++) give_back(&world.shared[i]);
  if (world.wrong != 0) fail_msg("seed %llu", (unsigned long long)seed);
  assert_int_equal(world.owners, 0);
  assert_true(world.made > 50);
  if (!soft) {
    assert_int_equal(kilni_cuda_null_live(KILNI_HANDLE_NONE), 0);
    assert_int_equal(kilni_cuda_null_bad_destroys(), 0);
  }
  kilni_mutex_deinit(&world.lock);
  fault_alloc_assert_clean(&world.watch);
  fault_alloc_deinit(&world.watch);
}

static void test_null(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) run_world(false, false, seed);
}

static void test_soft(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) run_world(true, false, seed);
}

static void test_null_with_faults(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) run_world(false, true, seed);
}

static void test_soft_with_faults(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) run_world(true, true, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_null),
      cmocka_unit_test(test_soft),
      cmocka_unit_test(test_null_with_faults),
      cmocka_unit_test(test_soft_with_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
