// SPDX-License-Identifier: Apache-2.0
//
// soft: what other threads may do while a link reads and merges texts.
//
// The first allocation of such work runs on the link's thread: it starts
// another thread, which calls the driver, and waits for its answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "base/thread.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define PATIENCE_NS UINT64_C(5000000000)

static char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry k() { ret; }\n";

// What the other thread asks.
typedef enum question_t { COUNT, ADD, COMPLETE, DESTROY } question_t;

// One driver, and who asks it. thread-safe
typedef struct world_t {
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_cuda_table_t table;
  kiln_allocator_t plain;
  kiln_cu_context_t context;
  kiln_cu_link_state_t link;
  question_t question;
  atomic_bool armed;
  atomic_bool answered;
  atomic_uint answer;
} world_t;

static kiln_cu_result_t add_text(world_t* world) {
  return world->table.cuLinkAddData(world->link, KILN_CU_JIT_INPUT_PTX, text,
                                    sizeof(text), "text", 0, NULL, NULL);
}

static void ask(void* user) {
  world_t* world = user;
  void* image = NULL;
  size_t bytes = 0;
  int count = 0;
  kiln_cu_result_t result = world->table.cuCtxSetCurrent(world->context);
  if (result == KILN_CU_SUCCESS) {
    switch (world->question) {
      case COUNT:
        result = world->table.cuDeviceGetCount(&count);
        break;
      case ADD:
        result = add_text(world);
        break;
      case COMPLETE:
        result = world->table.cuLinkComplete(world->link, &image, &bytes);
        break;
      case DESTROY:
        result = world->table.cuLinkDestroy(world->link);
        break;
    }
  }
  atomic_store(&world->answer, (unsigned int)result);
  atomic_store(&world->answered, true);
}

// Where the driver's lock is held there is no answer, and a test that fails
// is better than one that hangs.
static void* alloc_and_ask(void* old, size_t old_size, size_t new_size,
                           size_t align, void* user) {
  world_t* world = user;
  if (atomic_exchange(&world->armed, false)) {
    kilni_base_thread_t thread;
    assert_null(kilni_base_thread_start(&thread, "asker", ask, world));
    uint64_t until = kilni_base_time_ns() + PATIENCE_NS;
    while (!atomic_load(&world->answered) && kilni_base_time_ns() < until) {
    }
    if (!atomic_load(&world->answered)) fail_msg("a link keeps others waiting");
    kilni_base_thread_join(&thread);
  }
  return world->plain.fn(old, old_size, new_size, align, world->plain.user);
}

static int setup(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  world.plain = kiln_allocator_libc();
  assert_null(kilni_base_env_init(&world.env, kiln_allocator_libc()));
  world.host = (kiln_host_t){.allocator = {alloc_and_ask, &world},
                             .env = &world.env,
                             .worker_count = 1,
                             .process_id = kilni_base_process_id()};
  kilni_soft_options_t soft = {.struct_size = sizeof(soft),
                               .worker_count = 1,
                               .scribble = KILN_SWITCH_ON};
  assert_null(kilni_soft_start(&world.host, &soft, &world.table));
  assert_int_equal(world.table.cuInit(0), KILN_CU_SUCCESS);
  assert_int_equal(world.table.cuDevicePrimaryCtxRetain(&world.context, 0), 0);
  assert_int_equal(world.table.cuCtxSetCurrent(world.context), 0);
  assert_int_equal(world.table.cuLinkCreate(0, NULL, NULL, &world.link), 0);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* world = *state;
  assert_int_equal(world->table.cuCtxSetCurrent(NULL), 0);
  assert_int_equal(world->table.cuDevicePrimaryCtxRelease(0), 0);
  kilni_soft_stop();
  kilni_base_env_deinit(&world->env);
  return 0;
}

static void arm(world_t* world, question_t question) {
  world->question = question;
  atomic_store(&world->answered, false);
  atomic_store(&world->armed, true);
}

static kiln_cu_result_t complete(world_t* world) {
  void* image = NULL;
  size_t bytes = 0;
  kiln_cu_result_t result =
      world->table.cuLinkComplete(world->link, &image, &bytes);
  if (result == KILN_CU_SUCCESS) {
    assert_non_null(image);
    assert_true(bytes > sizeof(text));
  }
  return result;
}

static void test_nobody_waits(void** state) {
  world_t* world = *state;
  arm(world, COUNT);
  assert_int_equal(add_text(world), KILN_CU_SUCCESS);
  assert_true(atomic_load(&world->answered));
  assert_int_equal(atomic_load(&world->answer), KILN_CU_SUCCESS);
  arm(world, COUNT);
  assert_int_equal(complete(world), KILN_CU_SUCCESS);
  assert_true(atomic_load(&world->answered));
  assert_int_equal(complete(world), KILN_CU_SUCCESS);  // once more, the same
  assert_int_equal(world->table.cuLinkDestroy(world->link), KILN_CU_SUCCESS);
}

// One link is used by one thread: the second call is refused and harms nothing.
static void test_one_call_at_a_time(void** state) {
  world_t* world = *state;
  for (question_t question = ADD; question <= COMPLETE; question++) {
    arm(world, question);
    assert_int_equal(question == ADD ? add_text(world) : complete(world),
                     KILN_CU_SUCCESS);
    assert_true(atomic_load(&world->answered));
    assert_int_equal(atomic_load(&world->answer), KILN_CU_ERROR_INVALID_VALUE);
  }
  assert_int_equal(world->table.cuLinkDestroy(world->link), KILN_CU_SUCCESS);
}

// Nothing is leaked, and nothing of the link is touched any more.
static void test_ended_meanwhile(void** state) {
  world_t* world = *state;
  arm(world, DESTROY);
  assert_int_equal(add_text(world), KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(atomic_load(&world->answer), KILN_CU_SUCCESS);
  assert_int_equal(world->table.cuLinkCreate(0, NULL, NULL, &world->link), 0);
  assert_int_equal(add_text(world), KILN_CU_SUCCESS);
  arm(world, DESTROY);
  assert_int_equal(complete(world), KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(world->table.cuLinkDestroy(world->link),
                   KILN_CU_ERROR_INVALID_HANDLE);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_nobody_waits),
      TEST(test_one_call_at_a_time),
      TEST(test_ended_meanwhile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
