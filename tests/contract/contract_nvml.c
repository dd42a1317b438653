// SPDX-License-Identifier: Apache-2.0
//
// contract: what every provider of the NVML table must do.
//
//   contract_nvml --provider null|nvml [--trace]
//
// Cases assert only what NVML's documentation promises. Exit status 0: all
// hold; 1: not; 77: the provider is not on this machine. With --trace, every
// call is a line. NVML changes nothing here, so that no case needs a process
// of its own.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "table/cuda_table.h"
#include "table/nvml_table.h"

enum { SKIPPED = 77, MAX_PROCESSES = 1024 };

// A running case. one-thread
typedef struct nvml_case_t {
  const kiln_nvml_table_t* ml;
  kiln_nvml_device_t device;  // the first one
  jmp_buf failed;
} nvml_case_t;

static void hold(nvml_case_t* t, bool holds, const char* what, int line) {
  if (holds) return;
  printf("# line %d: does not hold: %s\n", line, what);
  longjmp(t->failed, 1);
}

static void result(nvml_case_t* t, const char* call, kiln_nvml_result_t got,
                   kiln_nvml_result_t wanted, kiln_nvml_result_t or_this,
                   int line) {
  if (got == wanted || got == or_this) return;
  const char* name = kilni_table_nvml_result_name(got);
  printf("# line %d: %s gives %s (%u)\n", line, call,
         name != NULL ? name : "an unknown result", got);
  longjmp(t->failed, 1);
}

#define CHECK(condition) hold(t, (condition), #condition, __LINE__)
#define IS_EITHER(one, other, call) \
  result(t, #call, (call), KILN_NVML_##one, KILN_NVML_##other, __LINE__)
#define IS(error, call) IS_EITHER(ERROR_##error, ERROR_##error, call)
#define OK(call)        IS_EITHER(SUCCESS, SUCCESS, call)
// What a GPU need not know it refuses as such.
#define MAY(call) IS_EITHER(SUCCESS, ERROR_NOT_SUPPORTED, call)

static bool has(const nvml_case_t* t, kilni_nvml_row_id_t row) {
  return kilni_table_nvml_has(t->ml, row);
}
#define HAS(name) has(t, KILNI_NVML_ROW_##name)

// ---- Cases without a session ----

static void sessions_are_counted(nvml_case_t* t) {
  unsigned int count = 0;
  IS(UNINITIALIZED, t->ml->nvmlShutdown());
  IS(UNINITIALIZED, t->ml->nvmlDeviceGetCount(&count));
  OK(t->ml->nvmlInit());
  OK(t->ml->nvmlInit());
  OK(t->ml->nvmlShutdown());
  OK(t->ml->nvmlDeviceGetCount(&count));
  OK(t->ml->nvmlShutdown());
  IS(UNINITIALIZED, t->ml->nvmlDeviceGetCount(&count));
  OK(t->ml->nvmlInit());  // and again
  OK(t->ml->nvmlShutdown());
}

static void errors_have_texts(nvml_case_t* t) {
  const char* known = t->ml->nvmlErrorString(KILN_NVML_ERROR_NOT_SUPPORTED);
  CHECK(known != NULL && known[0] != 0);
  CHECK(t->ml->nvmlErrorString(12345) != NULL);
}

// ---- Cases with one ----

static void versions_are_told(nvml_case_t* t) {
  char text[KILN_NVML_VERSION_BYTES];
  char release[KILN_NVML_VERSION_BYTES];
  int version = 0;
  OK(t->ml->nvmlSystemGetDriverVersion(text, sizeof(text)));
  CHECK(strchr(text, '.') != NULL && text[0] >= '1' && text[0] <= '9');
  CHECK(kilni_table_nvml_release_read(t->ml, sizeof(release), release));
  CHECK(strcmp(text, release) == 0);
  IS(INSUFFICIENT_SIZE, t->ml->nvmlSystemGetDriverVersion(text, 2));
  IS(INVALID_ARGUMENT, t->ml->nvmlSystemGetDriverVersion(NULL, 80));
  if (HAS(nvmlSystemGetNVMLVersion)) {
    OK(t->ml->nvmlSystemGetNVMLVersion(text, sizeof(text)));
    CHECK(text[0] != 0);
  }
  if (!HAS(nvmlSystemGetCudaDriverVersion)) return;
  OK(t->ml->nvmlSystemGetCudaDriverVersion(&version));
  CHECK(version >= 7000 && version < 100000);
  IS(INVALID_ARGUMENT, t->ml->nvmlSystemGetCudaDriverVersion(NULL));
}

static void devices_are_numbered(nvml_case_t* t) {
  unsigned int count = 0;
  kiln_nvml_device_t device = NULL;
  IS(INVALID_ARGUMENT, t->ml->nvmlDeviceGetCount(NULL));
  OK(t->ml->nvmlDeviceGetCount(&count));
  CHECK(count >= 1);
  for (unsigned int i = 0; i < count; i++) {
    unsigned int index = 99;
    OK(t->ml->nvmlDeviceGetHandleByIndex(i, &device));
    CHECK(device != NULL);
    if (!HAS(nvmlDeviceGetIndex)) continue;
    OK(t->ml->nvmlDeviceGetIndex(device, &index));
    CHECK(index == i);
  }
  IS(INVALID_ARGUMENT, t->ml->nvmlDeviceGetHandleByIndex(count, &device));
  IS(INVALID_ARGUMENT, t->ml->nvmlDeviceGetHandleByIndex(0, NULL));
}

static void names_lead_back(nvml_case_t* t) {
  char name[KILN_NVML_NAME_BYTES];
  char uuid[KILN_NVML_UUID_BYTES];
  kiln_nvml_device_t device = NULL;
  kiln_nvml_pci_t pci;
  OK(t->ml->nvmlDeviceGetName(t->device, name, sizeof(name)));
  CHECK(name[0] != 0);
  IS(INSUFFICIENT_SIZE, t->ml->nvmlDeviceGetName(t->device, name, 2));
  OK(t->ml->nvmlDeviceGetUUID(t->device, uuid, sizeof(uuid)));
  CHECK(strncmp(uuid, "GPU-", 4) == 0);
  OK(t->ml->nvmlDeviceGetHandleByUUID(uuid, &device));
  CHECK(device == t->device);
  IS_EITHER(ERROR_NOT_FOUND, ERROR_INVALID_ARGUMENT,
            t->ml->nvmlDeviceGetHandleByUUID("GPU-none", &device));
  memset(&pci, 0xff, sizeof(pci));
  OK(t->ml->nvmlDeviceGetPciInfo(t->device, &pci));
  CHECK(memchr(pci.address, 0, sizeof(pci.address)) != NULL);
  CHECK(memchr(pci.legacy_address, 0, sizeof(pci.legacy_address)) != NULL);
  char spelt[32];
  snprintf(spelt, sizeof(spelt), "%08X:%02X:%02X.0", pci.domain, pci.bus,
           pci.device);
  CHECK(strcmp(spelt, pci.address) == 0);
  device = NULL;
  OK(t->ml->nvmlDeviceGetHandleByPciBusId(pci.address, &device));
  CHECK(device == t->device);
}

static void memory_adds_up(nvml_case_t* t) {
  kiln_nvml_memory_t memory = {0, 0, 0};
  kiln_nvml_memory_v2_t more = {.version = KILN_NVML_MEMORY_V2};
  OK(t->ml->nvmlDeviceGetMemoryInfo(t->device, &memory));
  CHECK(memory.total > 0 && memory.free <= memory.total);
  CHECK(memory.used <= memory.total);
  if (!HAS(nvmlDeviceGetMemoryInfo_v2)) return;
  OK(t->ml->nvmlDeviceGetMemoryInfo_v2(t->device, &more));
  CHECK(more.total == memory.total);
  CHECK(more.used + more.reserved + more.free == more.total);
  // The header promises VERSION_MISMATCH; driver 580 has no such function.
  more.version = 1;
  IS(FUNCTION_NOT_FOUND, t->ml->nvmlDeviceGetMemoryInfo_v2(t->device, &more));
}

static void what_it_does_is_told(nvml_case_t* t) {
  kiln_nvml_utilization_t percent = {0, 0};
  unsigned int value = 0;
  unsigned int limit = 0;
  unsigned long long bits = 0;
  int major = 0;
  int minor = 0;
  OK(t->ml->nvmlDeviceGetCudaComputeCapability(t->device, &major, &minor));
  CHECK(major >= 3 && minor >= 0);
  MAY(t->ml->nvmlDeviceGetUtilizationRates(t->device, &percent));
  CHECK(percent.gpu <= 100 && percent.memory <= 100);
  MAY(t->ml->nvmlDeviceGetTemperature(t->device, KILN_NVML_TEMPERATURE_GPU,
                                      &value));
  CHECK(value < 150);
  MAY(t->ml->nvmlDeviceGetPowerUsage(t->device, &value));
  CHECK(value < 10000000);
  MAY(t->ml->nvmlDeviceGetEnforcedPowerLimit(t->device, &limit));
  MAY(t->ml->nvmlDeviceGetClockInfo(t->device, KILN_NVML_CLOCK_SM, &value));
  MAY(t->ml->nvmlDeviceGetMaxClockInfo(t->device, KILN_NVML_CLOCK_SM, &limit));
  CHECK(limit == 0 || value <= limit);
  MAY(t->ml->nvmlDeviceGetCurrentClocksThrottleReasons(t->device, &bits));
  if (!HAS(nvmlDeviceGetTemperatureV)) return;
  kiln_nvml_temperature_t now = {.version = KILN_NVML_TEMPERATURE_V1};
  MAY(t->ml->nvmlDeviceGetTemperatureV(t->device, &now));
  CHECK(now.celsius > -100 && now.celsius < 150);
}

static void processes_are_listed(nvml_case_t* t) {
  static kiln_nvml_process_t processes[MAX_PROCESSES];
  if (!HAS(nvmlDeviceGetComputeRunningProcesses)) return;
  unsigned int count = 0;
  IS_EITHER(
      SUCCESS, ERROR_INSUFFICIENT_SIZE,
      t->ml->nvmlDeviceGetComputeRunningProcesses(t->device, &count, NULL));
  count = MAX_PROCESSES;
  OK(t->ml->nvmlDeviceGetComputeRunningProcesses(t->device, &count, processes));
  CHECK(count <= MAX_PROCESSES);
  for (unsigned int i = 0; i < count; i++) CHECK(processes[i].pid != 0);
}

// A link that is none is refused; those that are there are told.
static void links_have_an_end(nvml_case_t* t) {
  unsigned int active = 0;
  kiln_nvml_result_t last = KILN_NVML_SUCCESS;
  if (!HAS(nvmlDeviceGetNvLinkState)) return;
  for (unsigned int link = 0; link < 256; link++) {
    last = t->ml->nvmlDeviceGetNvLinkState(t->device, link, &active);
    if (last != KILN_NVML_SUCCESS) break;
    CHECK(active <= 1);
  }
  CHECK(last == KILN_NVML_ERROR_INVALID_ARGUMENT ||
        last == KILN_NVML_ERROR_NOT_SUPPORTED);
}

static void mig_is_told(nvml_case_t* t) {
  unsigned int current = 0;
  unsigned int pending = 0;
  unsigned int is = 9;
  kiln_nvml_device_t mig = NULL;
  if (!HAS(nvmlDeviceGetMigMode)) return;
  MAY(t->ml->nvmlDeviceGetMigMode(t->device, &current, &pending));
  CHECK(current <= 1 && pending <= 1);
  OK(t->ml->nvmlDeviceIsMigDeviceHandle(t->device, &is));
  CHECK(is == 0);
  if (current != 0) return;
  CHECK(t->ml->nvmlDeviceGetMigDeviceHandleByIndex(t->device, 0, &mig) !=
        KILN_NVML_SUCCESS);
}

static void fields_fail_by_themselves(nvml_case_t* t) {
  kiln_nvml_field_t fields[1];
  memset(fields, 0, sizeof(fields));
  fields[0].field = 999999;  // no such field
  if (!HAS(nvmlDeviceGetFieldValues)) return;
  OK(t->ml->nvmlDeviceGetFieldValues(t->device, 1, fields));
  CHECK(fields[0].result != KILN_NVML_SUCCESS);
  IS(INVALID_ARGUMENT, t->ml->nvmlDeviceGetFieldValues(t->device, 1, NULL));
}

static const struct {
  const char* name;
  void (*run)(nvml_case_t* t);
  bool in_session;
} kCases[] = {
    {"sessions_are_counted", sessions_are_counted, false},
    {"errors_have_texts", errors_have_texts, false},
    {"versions_are_told", versions_are_told, true},
    {"devices_are_numbered", devices_are_numbered, true},
    {"names_lead_back", names_lead_back, true},
    {"memory_adds_up", memory_adds_up, true},
    {"what_it_does_is_told", what_it_does_is_told, true},
    {"processes_are_listed", processes_are_listed, true},
    {"links_have_an_end", links_have_an_end, true},
    {"mig_is_told", mig_is_told, true},
    {"fields_fail_by_themselves", fields_fail_by_themselves, true},
};
enum { CASES = sizeof(kCases) / sizeof(*kCases) };

// Apart from its caller: what a jump back may lose is not here.
static bool run_body(nvml_case_t* t, void (*run)(nvml_case_t* t)) {
  if (setjmp(t->failed) != 0) return false;
  run(t);
  return true;
}

static bool run_case(const kiln_nvml_table_t* table, int number) {
  static nvml_case_t t;
  memset(&t, 0, sizeof(t));
  t.ml = table;
  bool passed = true;
  if (kCases[number].in_session) {
    passed =
        table->nvmlInit() == KILN_NVML_SUCCESS &&
        table->nvmlDeviceGetHandleByIndex(0, &t.device) == KILN_NVML_SUCCESS;
  }
  passed = passed && run_body(&t, kCases[number].run);
  if (kCases[number].in_session) (void)table->nvmlShutdown();
  printf("%s %d - %s\n", passed ? "ok" : "not ok", number + 1,
         kCases[number].name);
  return passed;
}

// ---- Providers ----

static int skip(const char* why) {
  printf("1..0 # SKIP %s\n", why);
  return SKIPPED;
}

// 0, or the exit status without something to test.
static int start(const char* provider, kiln_nvml_table_t* table,
                 kilni_base_dynlib_t** library) {
  if (strcmp(provider, "null") == 0) {
    kilni_table_nvml_table_null(table);
    return 0;
  }
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = kiln_allocator_libc();
  kiln_status_t status =
      kilni_table_nvml_table_open(&host, NULL, table, library);
  if (!kiln_status_is_ok(status)) {
    int code = skip(kiln_status_message(status));
    kiln_status_free(status);
    return code;
  }
  unsigned int count = 0;
  if (table->nvmlInit() != KILN_NVML_SUCCESS) {
    return skip("NVML does not start here");
  }
  kiln_nvml_result_t counted = table->nvmlDeviceGetCount(&count);
  (void)table->nvmlShutdown();
  if (counted != KILN_NVML_SUCCESS || count == 0) {
    return skip("NVML knows no GPU here");
  }
  return 0;
}

static void print_line(kiln_log_level_t level, const char* space,
                       const char* line, void* user) {
  (void)level;
  (void)space;
  (void)user;
  printf("#   %s\n", line);
}

int main(int argc, char** argv) {
  const char* provider = NULL;
  bool trace = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--trace") == 0) trace = true;
    if (strcmp(argv[i], "--provider") == 0 && i + 1 < argc) {
      provider = argv[++i];
    }
  }
  if (provider == NULL) {
    fprintf(stderr, "usage: contract_nvml --provider null|nvml [--trace]\n");
    return 2;
  }
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = NULL;
  int code = start(provider, &table, &library);
  if (code == 0 && trace) {
    kiln_log_sink_t sink = {print_line, NULL, KILN_LOG_TRACE, 0};
    kiln_status_free(kilni_table_nvml_trace_install(&table, sink, &table));
  }
  if (code == 0) printf("1..%d\n", CASES);
  for (int i = 0; code != SKIPPED && i < CASES; i++) {
    if (!run_case(&table, i)) code = 1;
  }
  if (strcmp(provider, "null") == 0 &&
      kilni_table_cuda_null_live(KILNI_HANDLE_NONE) != 0) {
    printf("# a session was left open\n");
    code = 1;
  }
  kilni_base_dynlib_close(library);
  return code;
}
