// SPDX-License-Identifier: Apache-2.0
//
// contract: runs the cases over one provider and prints TAP.
//
//   contract_main --provider soft|cuda|null [--case NAME] [--seed N]
//                 [--workers N] [--listed NAME] [--here] [--list]
//
// Exit status 0: all as listed; 1: not; 77: the provider is not on this
// machine. A case that leaves the process unusable runs in a child, which is
// this program again with --case and --child, ended by an alarm. --listed
// treats a case as one that is listed as failing, to test that rule itself.
// --here leaves out the cases that have a process of their own, because they
// provoke what a tool that watches for faults would tell.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "contract.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

extern char** environ;

enum { CHILD_SECONDS = 60, SKIPPED = 77 };

static const contract_group_t* const kGroups[] = {
    &contract_device,         &contract_memory,  &contract_memory_pool,
    &contract_memory_virtual, &contract_green,   &contract_texture,
    &contract_stream,         &contract_capture, &contract_graph,
    &contract_graph_launch,   &contract_module,  &contract_link,
    &contract_launch,         &contract_fault,   &contract_peer,
};
enum { GROUPS = sizeof(kGroups) / sizeof(*kGroups) };

typedef enum verdict_t {
  FAILS = 1,
  NOT_RUN = 2,
  ONLY = 3,
  MAY_FAIL = 4,
} verdict_t;

typedef struct expect_t {
  const char* provider;
  const char* name;
  verdict_t verdict;
  const char* reason;
} expect_t;

static const expect_t kExpect[] = {
#define CONTRACT_EXPECT(provider, name, verdict, reason) \
  {#provider, #name, verdict, reason},
#define CONTRACT_ONLY(provider, name) {#provider, #name, ONLY, ""},
#include "contract_expect.inc"
#undef CONTRACT_EXPECT
#undef CONTRACT_ONLY
};
enum { EXPECTS = sizeof(kExpect) / sizeof(*kExpect) };

// TAP's word for a case that is known to fail.
static const char kListed[] = {'T', 'O', 'D', 'O', 0};

// The command line, and what it leads to.
typedef struct run_t {
  const char* program;
  const char* provider;
  const char* only;
  const char* seed;
  const char* workers;
  const char* listed;  // a case to treat as listed as failing
  bool child;
  bool here;
  bool list;
  kiln_host_t host;
  kilni_base_env_t env;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  bool inited;
} run_t;

void contract_fail(contract_t* t, const char* file, int line,
                   const char* format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const char* slash = strrchr(file, '/');
  snprintf(t->message, sizeof(t->message), "%s:%d: %s",
           slash != NULL ? slash + 1 : file, line, text);
  longjmp(t->failed, 1);
}

static const char* result_name(kiln_cu_result_t result) {
  if (result == KILN_CU_SUCCESS) return "CUDA_SUCCESS";
  const char* name = kilni_table_cuda_result_name(result);
  return name != NULL ? name : "an unknown result";
}

void contract_result(contract_t* t, const char* file, int line,
                     const char* call, kiln_cu_result_t result,
                     kiln_cu_result_t wanted, kiln_cu_result_t or_this) {
  if (result == wanted || result == or_this) return;
  contract_fail(t, file, line, "%s gives %s (%u), not %s", call,
                result_name(result), result, result_name(wanted));
}

// ---- Expectations ----

static const expect_t* expectation(const char* provider, const char* name) {
  bool has_only = false;
  for (int i = 0; i < EXPECTS; i++) {
    const expect_t* e = &kExpect[i];
    if (strcmp(e->provider, provider) != 0) continue;
    if (strcmp(e->name, name) == 0) return e;
    has_only = has_only || e->verdict == ONLY;
  }
  static const expect_t unlisted = {"", "", NOT_RUN,
                                    "this provider promises nothing about it"};
  return has_only ? &unlisted : NULL;
}

static const contract_case_t* find_case(const char* name) {
  for (int g = 0; g < GROUPS; g++) {
    for (size_t i = 0; i < kGroups[g]->count; i++) {
      if (strcmp(kGroups[g]->cases[i].name, name) == 0) {
        return &kGroups[g]->cases[i];
      }
    }
  }
  return NULL;
}

static bool expectations_are_sound(void) {
  bool sound = true;
  for (int i = 0; i < EXPECTS; i++) {
    if (find_case(kExpect[i].name) == NULL) {
      printf("# contract_expect.inc names no case: %s\n", kExpect[i].name);
      sound = false;
    }
  }
  return sound;
}

// ---- Providers ----

static void print_text(const char* text, size_t size, void* user) {
  (void)user;
  fwrite(text, 1, size, stdout);
}

static kiln_status_t start_provider(run_t* run) {
  if (strcmp(run->provider, "soft") == 0) {
    kilni_soft_options_t options = {
        .struct_size = sizeof(options),
        .seed = run->seed != NULL ? strtoull(run->seed, NULL, 0) : 0,
        .worker_count =
            run->workers != NULL ? (uint32_t)strtoul(run->workers, NULL, 0) : 0,
        .print = print_text,
        .device_count = 2};
    return kilni_soft_start(&run->host, &options, &run->table);
  }
  if (strcmp(run->provider, "null") == 0) {
    kilni_table_cuda_table_null(&run->table);
    return kiln_ok();
  }
  return kilni_table_cuda_table_open(&run->host, NULL, &run->table,
                                     &run->library);
}

static void stop_provider(run_t* run) {
  if (strcmp(run->provider, "soft") == 0) kilni_soft_stop();
  kilni_base_dynlib_close(run->library);
  run->library = NULL;
}

// True if there is something to test; otherwise says why not.
static bool provider_is_here(run_t* run, int* out_exit) {
  kiln_status_t status = start_provider(run);
  if (!kiln_status_is_ok(status)) {
    bool absent = kiln_status_code(status) == KILN_STATUS_NOT_FOUND;
    printf(absent ? "1..0 # SKIP %s\n" : "Bail out! %s\n",
           kiln_status_message(status));
    kiln_status_free(status);
    *out_exit = absent ? SKIPPED : 1;
    return false;
  }
  return true;
}

static bool init_driver(run_t* run, int* out_exit) {
  kiln_cu_result_t result = run->table.cuInit(0);
  int count = 0;
  if (result == KILN_CU_SUCCESS) result = run->table.cuDeviceGetCount(&count);
  if (result == KILN_CU_SUCCESS && count > 0) return true;
  printf("1..0 # SKIP the driver has no device here: %s\n",
         result_name(result));
  *out_exit = SKIPPED;
  return false;
}

// ---- Running one case ----

static void run_body(run_t* run, const contract_case_t* c, contract_t* t) {
  t->cu = &run->table;
  t->message[0] = '\0';
  if (setjmp(t->failed) != 0) return;
  if ((c->flags & CONTRACT_NO_INIT) == 0) {
    OK(run->table.cuDeviceGet(&t->device, 0));
    OK(run->table.cuDevicePrimaryCtxRetain(&t->context, t->device));
    OK(run->table.cuCtxSetCurrent(t->context));
  }
  c->run(t);
}

// In this process. True if it passed; `message` says what did not.
static bool run_here(run_t* run, const contract_case_t* c, char message[512]) {
  static contract_t t;
  memset(&t, 0, sizeof(t));
  run_body(run, c, &t);
  memcpy(message, t.message, sizeof(t.message));
  if (t.context != NULL && !run->child) {
    run->table.cuCtxSetCurrent(NULL);
    run->table.cuDevicePrimaryCtxRelease(t.device);
  }
  return message[0] == '\0';
}

static void read_all(int fd, char* text, size_t space) {
  size_t used = 0;
  ssize_t got;
  char rest[256];
  while ((got = read(fd, used + 1 < space ? text + used : rest,
                     used + 1 < space ? space - 1 - used : sizeof(rest))) > 0) {
    if (used + 1 < space) used += (size_t)got;
  }
  text[used] = '\0';
  char* end = strchr(text, '\n');
  if (end != NULL) *end = '\0';
}

// In a process of its own, which prints its message.
static bool run_child(const run_t* run, const contract_case_t* c,
                      char message[512]) {
  char* argv[12];
  int n = 0;
  const char* words[] = {run->program, "--provider", run->provider,
                         "--case",     c->name,      "--child"};
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
    argv[n++] = (char*)(uintptr_t)words[i];
  }
  char seed_word[] = "--seed";
  char workers_word[] = "--workers";
  if (run->seed != NULL) {
    argv[n++] = seed_word;
    argv[n++] = (char*)(uintptr_t)run->seed;
  }
  if (run->workers != NULL) {
    argv[n++] = workers_word;
    argv[n++] = (char*)(uintptr_t)run->workers;
  }
  argv[n] = NULL;
  int fds[2];
  if (pipe(fds) != 0) return snprintf(message, 512, "no pipe"), false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  pid_t child = -1;
  fflush(stdout);
  int error = posix_spawn(&child, run->program, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  message[0] = '\0';
  if (error == 0) read_all(fds[0], message, 512);
  close(fds[0]);
  int state = 0;
  if (error != 0 || waitpid(child, &state, 0) != child) {
    snprintf(message, 512, "the child could not be started");
    return false;
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return true;
  if (WIFSIGNALED(state)) {
    snprintf(message, 512, "the child was ended by signal %d%s",
             WTERMSIG(state),
             WTERMSIG(state) == SIGALRM ? " (it took too long)" : "");
  }
  return false;
}

static int child_main(run_t* run) {
  const contract_case_t* c = find_case(run->only);
  int status = 1;
  if (c == NULL || !provider_is_here(run, &status)) return 1;
  // The alarm is the one way to end a driver that hangs.
  alarm(CHILD_SECONDS);
  if ((c->flags & CONTRACT_NO_INIT) == 0 && !init_driver(run, &status)) {
    return 1;
  }
  char message[512];
  bool passed = run_here(run, c, message);
  if (!passed) printf("%s\n", message);
  stop_provider(run);
  return passed ? 0 : 1;
}

// ---- Running all ----

static bool has_two(const run_t* run) {
  int count = 0;
  return run->table.cuDeviceGetCount(&count) == KILN_CU_SUCCESS && count > 1;
}

// Prints the line of a case. True if it is as listed.
static bool run_case(run_t* run, const contract_case_t* c, int number) {
  const expect_t* expect = expectation(run->provider, c->name);
  static const expect_t listed_here = {"", "", FAILS, "listed by --listed"};
  if (run->listed != NULL && strcmp(run->listed, c->name) == 0) {
    expect = &listed_here;
  }
  if (expect != NULL && expect->verdict == NOT_RUN) {
    printf("ok %d - %s # SKIP %s\n", number, c->name, expect->reason);
    return true;
  }
  if ((c->flags & CONTRACT_TWO) != 0 && !has_two(run)) {
    printf("ok %d - %s # SKIP there is one device\n", number, c->name);
    return true;
  }
  char message[512] = "";
  bool child = (c->flags & (CONTRACT_CHILD | CONTRACT_NO_INIT)) != 0;
  if (child && run->here) {
    printf("ok %d - %s # SKIP it has a process of its own\n", number, c->name);
    return true;
  }
  bool passed = child ? run_child(run, c, message) : run_here(run, c, message);
  bool listed = expect != NULL && expect->verdict == FAILS;
  bool may = expect != NULL && expect->verdict == MAY_FAIL;
  printf("%s %d - %s", passed ? "ok" : "not ok", number, c->name);
  if (listed || (may && !passed)) printf(" # %s %s", kListed, expect->reason);
  printf("\n");
  if (!passed) printf("# %s\n", message);
  if (listed && passed) printf("# it is listed as failing and passes\n");
  fflush(stdout);
  return may || passed != listed;
}

static int run_all(run_t* run) {
  int status = 1;
  int number = 0;
  bool good = expectations_are_sound();
  if (run->only != NULL && find_case(run->only) == NULL) {
    fprintf(stderr, "no case is called \"%s\"\n", run->only);
    return 2;
  }
  if (!provider_is_here(run, &status)) return status;
  if (!init_driver(run, &status)) {
    stop_provider(run);
    return status;
  }
  for (int g = 0; g < GROUPS; g++) {
    for (size_t i = 0; i < kGroups[g]->count; i++) {
      const contract_case_t* c = &kGroups[g]->cases[i];
      if (run->only != NULL && strcmp(run->only, c->name) != 0) continue;
      good = run_case(run, c, ++number) && good;
    }
  }
  printf("1..%d\n", number);
  stop_provider(run);
  return good ? 0 : 1;
}

static int list_all(void) {
  for (int g = 0; g < GROUPS; g++) {
    for (size_t i = 0; i < kGroups[g]->count; i++) {
      puts(kGroups[g]->cases[i].name);
    }
  }
  return 0;
}

static bool read_arguments(run_t* run, int argc, char** argv) {
  run->program = argv[0];
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    const char** to = NULL;
    if (strcmp(argv[i], "--list") == 0) {
      run->list = true;
    } else if (strcmp(argv[i], "--child") == 0) {
      run->child = true;
    } else if (strcmp(argv[i], "--here") == 0) {
      run->here = true;
    } else if (strcmp(argv[i], "--provider") == 0) {
      to = &run->provider;
    } else if (strcmp(argv[i], "--case") == 0) {
      to = &run->only;
    } else if (strcmp(argv[i], "--seed") == 0) {
      to = &run->seed;
    } else if (strcmp(argv[i], "--listed") == 0) {
      to = &run->listed;
    } else if (strcmp(argv[i], "--workers") == 0) {
      to = &run->workers;
    } else {
      return false;
    }
    if (to == NULL) continue;
    if (value == NULL) return false;
    *to = value;
    i++;
  }
  if (run->list) return true;
  return run->provider != NULL && (!run->child || run->only != NULL) &&
         (strcmp(run->provider, "soft") == 0 ||
          strcmp(run->provider, "cuda") == 0 ||
          strcmp(run->provider, "null") == 0);
}

int main(int argc, char** argv) {
  static run_t run;
  if (!read_arguments(&run, argc, argv)) {
    fprintf(stderr,
            "usage: contract_main --provider soft|cuda|null [--case NAME] "
            "[--seed N] [--workers N] [--here] [--list]\n");
    return 2;
  }
  if (run.list) return list_all();
  run.host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                           .env = &run.env,
                           .worker_count = kilni_base_core_count(),
                           .process_id = kilni_base_process_id()};
  kiln_status_t status = kilni_base_env_init(&run.env, run.host.allocator);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 1;
  }
  int code = run.child ? child_main(&run) : run_all(&run);
  kilni_base_env_deinit(&run.env);
  return code;
}
