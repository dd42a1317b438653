// SPDX-License-Identifier: Apache-2.0
//
// contract: what every provider of the NVTX table must do: a profiler that
// NVTX_INJECTION64_PATH names, or the toolkit's library.
//
//   contract_nvtx --provider injected|nvtx
//
// Cases assert only what NVTX's documentation promises: levels of ranges, or a
// negative number where nobody counts them. Exit status 0: all hold; 1: not;
// 77: the provider is not on this machine. NVTX has no results, so there is
// nothing more that a row could be held to.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/thread.h"
#include "table/nvtx_table.h"

enum { SKIPPED = 77, DEPTH = 40 };

// A running case. one-thread
typedef struct nvtx_case_t {
  const kiln_nvtx_table_t* tx;
  jmp_buf failed;
} nvtx_case_t;

static void hold(nvtx_case_t* t, bool holds, const char* what, int line) {
  if (holds) return;
  printf("# line %d: does not hold: %s\n", line, what);
  longjmp(t->failed, 1);
}
#define CHECK(condition) hold(t, (condition), #condition, __LINE__)

static int push(const kiln_nvtx_table_t* tx, kiln_nvtx_domain_t domain,
                const char* message) {
  kiln_nvtx_attributes_t attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.version = KILN_NVTX_VERSION;
  attributes.size = sizeof(attributes);
  attributes.message_type = KILN_NVTX_MESSAGE_ASCII;
  attributes.message = message;
  return tx->nvtxDomainRangePushEx(domain, &attributes);
}

// Each begins one level deeper, and ends where it began.
static bool nests(const kiln_nvtx_table_t* tx, kiln_nvtx_domain_t domain) {
  int begun[DEPTH];
  bool good = true;
  for (int i = 0; i < DEPTH; i++) {
    begun[i] = push(tx, domain, "level");
    good &= begun[i] < 0 || begun[i] == i;
    good &= i == 0 || (begun[i] < 0) == (begun[0] < 0);
  }
  for (int i = DEPTH; i-- > 0;) {
    int ended = tx->nvtxDomainRangePop(domain);
    good &= begun[0] < 0 ? ended < 0 : ended == begun[i];
  }
  return good;
}

// ---- Cases ----

static void a_domain_is_made(nvtx_case_t* t) {
  CHECK(t->tx->domain != NULL);
  kiln_nvtx_domain_t other = t->tx->nvtxDomainCreateA("kiln.contract");
  CHECK(other != NULL && other != t->tx->domain);
}

static void ranges_nest(nvtx_case_t* t) {
  CHECK(nests(t->tx, t->tx->domain));
  CHECK(nests(t->tx, t->tx->domain));  // and again from the first level
}

static void domains_are_apart(nvtx_case_t* t) {
  kiln_nvtx_domain_t other = t->tx->nvtxDomainCreateA("kiln.apart");
  int first = push(t->tx, t->tx->domain, "outer");
  CHECK(nests(t->tx, other));
  int ended = t->tx->nvtxDomainRangePop(t->tx->domain);
  CHECK(first < 0 ? ended < 0 : first == 0 && ended == 0);
}

// What another thread sees of them. one-thread
typedef struct nested_t {
  const kiln_nvtx_table_t* tx;
  bool good;
} nested_t;

static void nest(void* user) {
  nested_t* nested = user;
  nested->good = nests(nested->tx, nested->tx->domain);
}

static void threads_are_apart(nvtx_case_t* t) {
  nested_t nested = {t->tx, false};
  kilni_base_thread_t thread;
  int first = push(t->tx, t->tx->domain, "outer");
  CHECK(kiln_status_is_ok(
      kilni_base_thread_start(&thread, "nest", nest, &nested)));
  kilni_base_thread_join(&thread);
  CHECK(nested.good);
  int ended = t->tx->nvtxDomainRangePop(t->tx->domain);
  CHECK(first < 0 ? ended < 0 : first == 0 && ended == 0);
}

// The texts are the caller's again when the call returns.
static void messages_are_taken(nvtx_case_t* t) {
  char message[300];
  memset(message, 'm', sizeof(message));
  message[sizeof(message) - 1] = 0;
  int first = push(t->tx, t->tx->domain, message);
  memset(message, 0, sizeof(message));
  int second = push(t->tx, t->tx->domain, message);  // an empty one
  int ended = t->tx->nvtxDomainRangePop(t->tx->domain);
  CHECK(second < 0 ? ended < 0 : ended == second);
  ended = t->tx->nvtxDomainRangePop(t->tx->domain);
  CHECK(first < 0 ? ended < 0 : ended == first);
}

static const struct {
  const char* name;
  void (*run)(nvtx_case_t* t);
} kCases[] = {
    {"a_domain_is_made", a_domain_is_made},
    {"ranges_nest", ranges_nest},
    {"domains_are_apart", domains_are_apart},
    {"threads_are_apart", threads_are_apart},
    {"messages_are_taken", messages_are_taken},
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

static bool run_case(const kiln_nvtx_table_t* table, int index) {
  nvtx_case_t running;
  memset(&running, 0, sizeof(running));
  running.tx = table;
  bool passed = setjmp(running.failed) == 0;
  if (passed) kCases[index].run(&running);
  printf("%s %d - %s\n", passed ? "ok" : "not ok", index + 1,
         kCases[index].name);
  return passed;
}

static int run_all(const kiln_host_t* host, bool wanted) {
  const kiln_nvtx_table_t* table = kilni_table_nvtx_table_open(host, wanted);
  if (table == NULL) {
    printf("1..0 # SKIP nobody takes ranges here\n");
    return SKIPPED;
  }
  int code = 0;
  printf("1..%d\n", CASES);
  for (int i = 0; i < CASES; i++) {
    if (!run_case(table, i)) code = 1;
  }
  return code;
}

int main(int argc, char** argv) {
  bool injected = argc == 3 && strcmp(argv[2], "injected") == 0;
  bool wanted = argc == 3 && strcmp(argv[2], "nvtx") == 0;
  if ((!injected && !wanted) || strcmp(argv[1], "--provider") != 0) {
    fprintf(stderr, "usage: contract_nvtx --provider injected|nvtx\n");
    return 2;
  }
  kilni_base_env_t env;
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  if (!kiln_status_is_ok(kilni_base_env_init(&env, kiln_allocator_libc()))) {
    return 1;
  }
  host.allocator = kiln_allocator_libc();
  host.env = &env;
  int code = run_all(&host, wanted);
  kilni_base_env_deinit(&env);
  return code;
}
