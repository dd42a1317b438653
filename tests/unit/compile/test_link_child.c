// SPDX-License-Identifier: Apache-2.0
//
// compile: a link in a process of its own, and each way in which that one can
// end. The test program is that process too: how it ends is in the name that it
// is called by.
#define _XOPEN_SOURCE 700  // mkdtemp, symlink
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "compile/link_inside.h"
#include "compile/link_wire.h"
#include "fault_alloc.h"

enum { PATH_BYTES = 512, WIRE = 3 };

// ---- The other process ----

static bool put(const void* data, size_t size) {
  return send(WIRE, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

// Reads what is asked, so that the other one is not kept.
static void read_all(void) {
  uint64_t head[2] = {0, 0};
  uint8_t block[4096];
  if (recv(WIRE, head, sizeof(head), MSG_WAITALL) != sizeof(head)) return;
  for (uint64_t left = head[1]; left > 0;) {
    size_t size = left < sizeof(block) ? (size_t)left : sizeof(block);
    ssize_t got = recv(WIRE, block, size, 0);
    if (got <= 0) return;
    left -= (uint64_t)got;
  }
}

// An answer as kiln_link_serve would write it.
static void give(uint64_t code, const char* message, const char* code_text) {
  kilni_compile_wire_out_t out = {.allocator = kiln_allocator_libc()};
  (void)kilni_compile_wire_put(&out, code);
  (void)kilni_compile_wire_put_text(&out, message);
  (void)kilni_compile_wire_put_text(&out, "a cure");
  (void)kilni_compile_wire_put(&out, 6);
  (void)kilni_compile_wire_put_text(
      &out, code == 0 ? "" : "NVJITLINK_ERROR_INTERNAL");
  (void)kilni_compile_wire_put_text(&out, "");
  (void)kilni_compile_wire_put_text(&out, "linking");
  if (code == 0) (void)kilni_compile_wire_put_text(&out, code_text);
  uint64_t head[2] = {KILNI_WIRE_ANSWER, out.size};
  (void)put(head, sizeof(head));
  (void)put(out.data, out.size);
  kilni_compile_wire_free(&out);
}

static int serve_as(const char* name) {
  static const char kError[] = "error   : Multiple definition of 'k'\n";
  if (strcmp(name, "serves") == 0) {
    kiln_status_t status = kiln_link_serve(WIRE);
    bool ok = kiln_status_is_ok(status);
    kiln_status_free(status);
    return ok ? 0 : 1;
  }
  if (strcmp(name, "deaf") == 0) return 5;
  if (strcmp(name, "hangs") == 0) {
    while (true) (void)sleep(1);
  }
  read_all();
  if (strcmp(name, "crashes") == 0) {
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
  }
  if (strcmp(name, "works") == 0) give(0, "", "the code");
  if (strcmp(name, "refuses") == 0) {
    give(KILN_STATUS_LINK_FAILED, "it does not link", "");
  }
  if (strcmp(name, "mutters") == 0) {
    if (write(STDERR_FILENO, kError, sizeof(kError) - 1) < 0) return 1;
    give(0, "", "the code");
  }
  if (strcmp(name, "lies") == 0) {
    static const uint64_t kHead[3] = {KILNI_WIRE_ANSWER, 8, 99};
    (void)put(kHead, sizeof(kHead));
  }
  if (strcmp(name, "answers_and_crashes") == 0) {
    give(0, "", "the code");
    (void)signal(SIGABRT, SIG_DFL);
    (void)raise(SIGABRT);
  }
  return 0;
}

// ---- The one that asks ----

// A folder with a name for each way. one-thread
typedef struct world_t {
  fault_alloc_t watch;
  kiln_host_t host;
  kilni_compile_link_nvjitlink_t native;
  kilni_compile_link_child_t child;
  kilni_compile_link_backend_t backend;
  char folder[PATH_BYTES];
  char program[PATH_BYTES];
  char made[64];
  uint32_t puts;
} world_t;

static int make_world(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  fault_alloc_init(&world.watch);
  world.host.allocator = fault_alloc_allocator(&world.watch);
  world.native.host = &world.host;
  kilni_table_nvjitlink_table_null(&world.native.table);
  (void)snprintf(world.folder, sizeof(world.folder), "/tmp/kiln-link-XXXXXX");
  assert_non_null(mkdtemp(world.folder));
  *state = &world;
  return 0;
}

static int end_world(void** state) {
  world_t* world = *state;
  (void)unlink(world->program);
  assert_int_equal(rmdir(world->folder), 0);
  fault_alloc_assert_clean(&world->watch);
  fault_alloc_deinit(&world->watch);
  return 0;
}

static kiln_status_t keep(void* user, kiln_bytes_view_t bytes) {
  world_t* world = user;
  assert_true(bytes.size < sizeof(world->made));
  memcpy(world->made, bytes.data, bytes.size);
  world->made[bytes.size] = 0;
  world->puts++;
  return kiln_ok();
}

static kiln_status_t link_as(world_t* world, const char* name, size_t size,
                             kilni_base_str_t* error) {
  char self[PATH_BYTES];
  ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  assert_true(length > 0);
  self[length] = 0;
  (void)unlink(world->program);
  (void)snprintf(world->program, sizeof(world->program), "%.400s/%s",
                 world->folder, name);
  assert_int_equal(symlink(self, world->program), 0);
  world->child.host = &world->host;
  world->child.program = world->program;
  if (world->child.seconds == 0) world->child.seconds = 60;
  kilni_compile_link_nvjitlink_backend(&world->native, &world->backend);
  kilni_compile_link_child_backend(&world->child, &world->backend);
  kilni_compile_link_setting_t setting = {0, 0, 0, "-arch=sm_90"};
  kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 1, &setting,
                                    "linked"};
  kilni_compile_link_sink_t sink = {world, keep};
  uint8_t* data = calloc(1, size + 1);
  assert_non_null(data);
  kilni_compile_link_input_t inputs[2] = {
      {KILN_CODE_FORMAT_RELOCATABLE, 0, "one.cubin", {data, size}},
      {KILN_CODE_FORMAT_PTX, 0, "two.ptx", {data, 0}}};
  void* session = NULL;
  world->made[0] = 0;
  world->puts = 0;
  const kilni_compile_link_backend_t* backend = &world->backend;
  kiln_status_t status = backend->begin(backend->self, &plan, &session);
  for (size_t i = 0; i < 2 && kiln_status_is_ok(status); i++) {
    status = backend->add(session, &inputs[i]);
  }
  if (kiln_status_is_ok(status)) status = backend->finish(session, &sink);
  if (error != NULL && session != NULL) {
    assert_null(backend->log(session, KILN_LINK_LOG_ERROR, error));
  }
  backend->end(session);
  free(data);
  // Whatever came of it, no process is left.
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  return status;
}

static void expect(kiln_status_t status, kiln_status_code_t code,
                   const char* word) {
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (kiln_status_code(status) != code || strstr(text, word) == NULL) {
    print_message("wanted \"%s\", got %u: %s\n", word,
                  (unsigned)kiln_status_code(status), text);
    fail();
  }
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static uint32_t open_descriptors(void) {
  uint32_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder) != NULL) count++;
  (void)closedir(folder);
  return count;
}

static void what_it_makes_comes_back(void** state) {
  world_t* world = *state;
  uint32_t before = open_descriptors();
  assert_null(link_as(world, "works", 100, NULL));
  assert_string_equal(world->made, "the code");
  assert_int_equal(world->puts, 1);
  // More than a socket holds.
  assert_null(link_as(world, "works", 8 << 20, NULL));
  expect(link_as(world, "refuses", 10, NULL), KILN_STATUS_LINK_FAILED,
         "it does not link");
  assert_int_equal(open_descriptors(), before);
}

static void what_it_writes_is_in_the_log(void** state) {
  world_t* world = *state;
  kilni_base_str_t error;
  kilni_base_str_init(&error, world->host.allocator, 4096);
  assert_null(link_as(world, "mutters", 10, &error));
  assert_string_equal(kilni_base_str_cstr(&error),
                      "error   : Multiple definition of 'k'\n");
  kilni_base_str_deinit(&error);
}

static void a_crash_is_a_status(void** state) {
  world_t* world = *state;
  expect(link_as(world, "crashes", 77, NULL), KILN_STATUS_LINK_FAILED,
         "ended its process with signal 11 (SIGSEGV)");
  expect(link_as(world, "crashes", 77, NULL), KILN_STATUS_LINK_FAILED,
         "input \"one.cubin\" (relocatable, 77 bytes)");
  kilni_base_str_t error;
  kilni_base_str_init(&error, world->host.allocator, 4096);
  kiln_status_free(link_as(world, "crashes", 77, &error));
  assert_non_null(strstr(kilni_base_str_cstr(&error), "error   : nvJitLink"));
  kilni_base_str_deinit(&error);
  expect(link_as(world, "answers_and_crashes", 10, NULL),
         KILN_STATUS_LINK_FAILED, "signal 6 (SIGABRT)");
  assert_int_equal(world->puts, 0);
}

static void no_answer_is_a_status(void** state) {
  world_t* world = *state;
  expect(link_as(world, "says_nothing", 10, NULL), KILN_STATUS_LINK_FAILED,
         "sent no answer and exited with 0");
  expect(link_as(world, "lies", 10, NULL), KILN_STATUS_LINK_FAILED,
         "sent no answer");
  // It never reads what is more than a socket holds.
  expect(link_as(world, "deaf", 8 << 20, NULL), KILN_STATUS_LINK_FAILED,
         "sent no answer and exited with 5");
}

static void a_time_limit_ends_it(void** state) {
  world_t* world = *state;
  world->child.seconds = 1;
  uint64_t from = kilni_base_time_ns();
  expect(link_as(world, "hangs", 8 << 20, NULL), KILN_STATUS_LINK_FAILED,
         "the link took longer than 1 seconds");
  assert_true(kilni_base_time_ns() - from < UINT64_C(30000000000));
}

static void a_program_that_is_not_there(void** state) {
  world_t* world = *state;
  kilni_compile_link_child_t child = {&world->host, NULL, "/nowhere/kiln", 5,
                                      0};
  kilni_compile_link_nvjitlink_backend(&world->native, &world->backend);
  kilni_compile_link_child_backend(&child, &world->backend);
  kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 0, NULL, "linked"};
  kilni_compile_link_sink_t sink = {world, keep};
  void* session = NULL;
  assert_null(world->backend.begin(&child, &plan, &session));
  expect(world->backend.finish(session, &sink), KILN_STATUS_NOT_FOUND,
         "\"/nowhere/kiln\"");
  world->backend.end(session);
}

// The library that it is to open is none: it says so itself.
static void what_it_refuses_is_told(void** state) {
  world_t* world = *state;
  world->native.table.origin = "/nowhere/libnvJitLink.so.13";
  expect(link_as(world, "serves", 10, NULL), KILN_STATUS_NOT_FOUND,
         "/nowhere/libnvJitLink.so.13");
}

int main(int count, char** words) {
  const char* slash = strrchr(words[0], '/');
  if (count == 4 && strcmp(words[1], "link") == 0) {
    return serve_as(slash != NULL ? slash + 1 : words[0]);
  }
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)
  const struct CMUnitTest tests[] = {
      TEST(what_it_makes_comes_back), TEST(what_it_writes_is_in_the_log),
      TEST(a_crash_is_a_status),      TEST(no_answer_is_a_status),
      TEST(a_time_limit_ends_it),     TEST(a_program_that_is_not_there),
      TEST(what_it_refuses_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
