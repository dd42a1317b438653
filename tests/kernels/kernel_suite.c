// SPDX-License-Identifier: Apache-2.0
//
// tests: runs every kernel of tests/kernels in both its PTX files and all its
// shapes, compares with the references in C, and prints a line for each run.
//
//   live_kernel_suite [--soft] [--lanes SET] [--seed N] [--workers N]
//                     [--small] [--only NAME] [--spoil] [--profiled]
//
// Without --soft on cuda:0 and the software device side by side; exit status
// 77 without a GPU. --small leaves out shapes, and one of two PTX files by
// turns, and says how much that was. --spoil changes a bit of every answer and
// fails for each run that does not notice. What a run must answer is settled in
// this order: its reference; else the first answer (of the GPU where there is
// one), which all others must repeat.
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln/soft.h"
#include "soft/soft.h"
#include "kernel_compare.h"
#include "kernel_device.h"
#include "test_tree.h"

enum {
  MAX_FILES = 128,
  DEVICES = 2,
  FILES_OF_PTX = 2,
  LIMIT_S = 240,
  GPU_LIMIT_S = 30
};

// What is known of a run after all its launches. one-thread
typedef struct tally_t {
  int launches;
  int differing;  // outputs that were not the reference's bits, yet allowed
  uint64_t ulps[DEVICES];  // of a device from the reference
  uint64_t between;        // of the two devices
  bool bound;              // an output has a bound
  bool open;               // an output is left open
  bool spoiled;            // --spoil changed an answer
  bool judged;             // a judge looked at what is left open
  char fault[KERNEL_MESSAGE + 200];
} tally_t;

// The command line, the devices and the sums. one-thread
typedef struct suite_t {
  const char* only;
  bool small;
  bool spoil;
  bool profiled;
  bool soft_only;
  kernel_options_t options;
  kernel_device_t devices[DEVICES];
  int device_count;
  int equal, bound, open, failed, elsewhere, awaiting, left_out, too_new,
      launches;
  char awaiting_names[2000];
} suite_t;

static char running[2 * KERNEL_NAME + 16];  // both names and a number

static void too_long(int signal_number) {
  (void)signal_number;
  static const char kText[] = "not ok: reached its time limit: ";
  ssize_t ignored = write(1, kText, sizeof(kText) - 1);
  ignored += write(1, running, strlen(running));
  ignored += write(1, "\n", 1);
  (void)ignored;
  _exit(1);
}

static char* read_text(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  size_t size = 0;
  size_t space = 1 << 16;
  char* text = malloc(space);
  for (;;) {
    size_t got = fread(text + size, 1, space - size - 1, file);
    size += got;
    if (got == 0) break;
    if (space - size < 2) text = realloc(text, space *= 2);
  }
  fclose(file);
  text[size] = '\0';
  return text;
}

// ---- One launch ----

static void fault(tally_t* tally, const char* format, const char* a,
                  const char* b) {
  if (tally->fault[0] == '\0') {
    snprintf(tally->fault, sizeof(tally->fault), format, a, b);
  }
}

static void compare_output(tally_t* tally, int d, const kernel_param_t* param,
                           const char* where, const uint8_t* wanted,
                           const uint8_t* got) {
  kernel_apart_t apart = kernel_compare(param, wanted, got);
  if (apart.ulps > tally->ulps[d]) tally->ulps[d] = apart.ulps;
  if (apart.differing == 0) return;
  if (param->ulps != 0 && apart.ulps <= (uint64_t)param->ulps) {
    tally->differing++;
    return;
  }
  char text[300];
  uint64_t a = 0;
  uint64_t b = 0;
  memcpy(&a, wanted + apart.first * param->width, param->width);
  memcpy(&b, got + apart.first * param->width, param->width);
  snprintf(text, sizeof(text),
           "%s: %zu of %zu differ, first [%zu]: 0x%llx, wanted 0x%llx, at most "
           "%llu ulp",
           param->name, apart.differing, param->count, apart.first,
           (unsigned long long)b, (unsigned long long)a,
           (unsigned long long)apart.ulps);
  fault(tally, "%s: %s", where, text);
}

// Compares a device's answer and keeps the first one where nothing says what
// is wanted.
static void look_at(suite_t* suite, tally_t* tally, int d, kernel_case_t* c,
                    const char* where) {
  const kernel_reference_t* reference = kernel_reference_find(c->run);
  for (int i = 0; i < c->run->param_count; i++) {
    const kernel_param_t* param = &c->run->params[i];
    if (c->got[i] == NULL) continue;
    tally->bound = tally->bound || param->ulps != 0;
    tally->open = tally->open || param->open;
    if (param->open) continue;
    if (suite->spoil) {
      // The upper bit of an element in the middle.
      c->got[i][(param->count / 2 + 1) * param->width - 1] ^= 0x80;
      tally->spoiled = true;
    }
    compare_output(tally, d, param, where, c->wanted[i], c->got[i]);
  }
  if (reference != NULL && reference->judge != NULL) {
    tally->judged = true;
    const char* verdict = reference->judge(c);
    if (verdict != NULL) fault(tally, "%s: %s", where, verdict);
  }
  if (suite->devices[d].soft && c->run->prints >= 0 &&
      c->run->prints != suite->devices[d].printed) {
    char text[80];
    snprintf(text, sizeof(text), "%d lines printed, %d wanted",
             suite->devices[d].printed, c->run->prints);
    fault(tally, "%s: %s", where, text);
  }
}

static void free_got(kernel_case_t* c) {
  for (int i = 0; i < KERNEL_PARAMS; i++) {
    free(c->got[i]);
    c->got[i] = NULL;
  }
}

static void compare_devices(tally_t* tally, const kernel_case_t* c,
                            uint8_t* const other[KERNEL_PARAMS]) {
  for (int i = 0; i < c->run->param_count; i++) {
    if (c->got[i] == NULL || other[i] == NULL || c->run->params[i].open) {
      continue;
    }
    kernel_apart_t apart =
        kernel_compare(&c->run->params[i], c->got[i], other[i]);
    if (apart.ulps > tally->between) tally->between = apart.ulps;
  }
}

// A file's PTX on the devices. one-thread
typedef struct loaded_t {
  const char* ending;
  char* text;
  kernel_code_t codes[DEVICES];
  bool there[DEVICES];
} loaded_t;

static void launch_everywhere(suite_t* suite, tally_t* tally,
                              const loaded_t* loaded, kernel_case_t* c,
                              bool* is_settled) {
  uint8_t* other[KERNEL_PARAMS] = {NULL};
  for (int d = 0; d < suite->device_count; d++) {
    if (!loaded->there[d]) continue;
    char where[120];
    snprintf(where, sizeof(where), "%s, %s, %u,%u,%u blocks of %u,%u,%u",
             suite->devices[d].name, loaded->ending, c->shape->grid[0],
             c->shape->grid[1], c->shape->grid[2], c->shape->block[0],
             c->shape->block[1], c->shape->block[2]);
    char message[KERNEL_MESSAGE];
    if (!kernel_device_run(&suite->devices[d], &loaded->codes[d], c, message)) {
      fault(tally, "%s: %s", where, message);
      free_got(c);
      continue;
    }
    tally->launches++;
    for (int i = 0; !*is_settled && i < c->run->param_count; i++) {
      if (c->got[i] == NULL) continue;
      memcpy(c->wanted[i], c->got[i],
             c->run->params[i].count * c->run->params[i].width);
    }
    *is_settled = true;
    look_at(suite, tally, d, c, where);
    if (d + 1 < suite->device_count) {
      memcpy(other, c->got, sizeof(other));
      memset(c->got, 0, sizeof(c->got));
    } else {
      compare_devices(tally, c, other);
      free_got(c);
    }
  }
  free_got(c);
  for (int i = 0; i < KERNEL_PARAMS; i++) free(other[i]);
}

// ---- One run ----

static void prepare(kernel_case_t* c, const kernel_reference_t* reference) {
  for (int i = 0; i < c->run->param_count; i++) {
    const kernel_param_t* param = &c->run->params[i];
    size_t size = param->count * param->width;
    if (c->wanted[i] == NULL) c->wanted[i] = malloc(size);
    memcpy(c->wanted[i], c->made[i], size);
  }
  if (reference != NULL && reference->compute != NULL) reference->compute(c);
}

static void run_shapes(suite_t* suite, tally_t* tally, const kernel_run_t* run,
                       const loaded_t* loaded, int loaded_count) {
  const kernel_reference_t* reference = kernel_reference_find(run);
  kernel_case_t c = {.run = run};
  for (int i = 0; i < run->param_count; i++) {
    c.made[i] = kernel_param_make(&run->params[i]);
  }
  bool is_settled = false;
  for (int s = 0; s < run->shape_count; s++) {
    if (suite->small && s > 0) {
      suite->left_out += loaded_count;
      continue;
    }
    c.shape = &run->shapes[s];
    if (reference != NULL || s == 0) prepare(&c, reference);
    is_settled = is_settled || reference != NULL;
    for (int p = 0; p < loaded_count; p++) {
      launch_everywhere(suite, tally, &loaded[p], &c, &is_settled);
    }
  }
  for (int i = 0; i < KERNEL_PARAMS; i++) {
    free(c.made[i]);
    free(c.wanted[i]);
  }
}

static const char* reason_of(const kernel_run_t* run) {
  for (int i = 0; i < run->param_count; i++) {
    if (run->params[i].reason[0] != '\0') return run->params[i].reason;
  }
  return "";
}

static void apart_text(char out[48], uint64_t ulps) {
  if (ulps == UINT64_MAX) {
    snprintf(out, 48, "a NaN and a number");
  } else {
    snprintf(out, 48, "%llu ulp", (unsigned long long)ulps);
  }
}

// With --spoil: whether the run noticed.
static void report_spoiled(suite_t* suite, const tally_t* tally) {
  bool bad = tally->spoiled && tally->fault[0] == '\0';
  printf("%-6s %-36s %3d launches  %s\n", bad ? "not ok" : "ok", running,
         tally->launches,
         !tally->spoiled ? "nothing to spoil"
         : bad           ? "does not notice a wrong bit"
                         : "notices a wrong bit");
  suite->launches += tally->launches;
  suite->failed += bad;
  suite->equal += !bad;
}

// One line: verdict, name, launches, what was compared and how it came out.
static void report(suite_t* suite, const kernel_run_t* run,
                   const tally_t* tally) {
  bool has_reference = kernel_reference_find(run) != NULL;
  bool bad = tally->fault[0] != '\0' || tally->launches == 0;
  const char* rule = tally->bound ? "bound" : tally->open ? "open" : "equal";
  printf("%-6s %-36s %3d launches  %-5s", bad ? "not ok" : "ok", running,
         tally->launches, rule);
  suite->launches += tally->launches;
  if (bad) {
    suite->failed++;
    printf(" %s\n", tally->fault[0] != '\0' ? tally->fault : "nothing ran");
    return;
  }
  suite->equal += !tally->bound && !tally->open;
  suite->bound += tally->bound;
  suite->open += tally->open && !tally->bound;
  printf(has_reference ? " to the reference" : " to each other");
  if (tally->bound) {
    for (int d = 0; d < suite->device_count; d++) {
      char text[48];
      apart_text(text, tally->ulps[d]);
      printf(", %s %s", suite->devices[d].name, text);
    }
  }
  if (suite->device_count == 2) {
    char text[48];
    apart_text(text, tally->between);
    printf(", soft to GPU %s", tally->between == 0 ? "equal" : text);
  }
  if (tally->judged) printf(", the open part is sound");
  if (reason_of(run)[0] != '\0') printf(" (%s)", reason_of(run));
  printf("\n");
}

// ---- One file ----

static bool load_one(suite_t* suite, const kernel_file_t* file,
                     const char* ending, loaded_t* out) {
  char path[1024];
  *out = (loaded_t){.ending = ending};
  snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu%s", test_tree(),
           file->name, ending);
  out->text = read_text(path);
  if (out->text == NULL) {
    printf("not ok %s cannot be read\n", path);
    suite->failed++;
    return false;
  }
  bool any = false;
  for (int d = 0; d < suite->device_count; d++) {
    char message[KERNEL_MESSAGE];
    out->there[d] = kernel_device_load(&suite->devices[d], out->text,
                                       &out->codes[d], message);
    any = any || out->there[d];
    if (out->there[d]) continue;
    if (out->codes[d].too_new) {
      printf("skip   %s%s: %s\n", file->name, ending, message);
      suite->too_new++;
      continue;
    }
    bool awaited = suite->devices[d].soft && file->awaits[0] != '\0';
    printf("%s %s%s %s%s: %s\n", awaited ? "skip  " : "not ok", file->name,
           ending, awaited ? "awaits " : "", awaited ? file->awaits : "",
           message);
    if (!awaited) suite->failed++;
    if (awaited) {
      size_t used = strlen(suite->awaiting_names);
      suite->awaiting++;
      snprintf(suite->awaiting_names + used,
               sizeof(suite->awaiting_names) - used, " %s%s", file->name,
               ending);
    }
  }
  return any;
}

static void run_file(suite_t* suite, const kernel_file_t* file, int number) {
  static const char* const kEndings[FILES_OF_PTX] = {".ptx", ".other.ptx"};
  loaded_t loaded[FILES_OF_PTX];
  int count = 0;
  snprintf(running, sizeof(running), "%s", file->name);
  alarm(suite->soft_only ? LIMIT_S : GPU_LIMIT_S);
  for (int p = 0; p < FILES_OF_PTX; p++) {
    if (suite->small && p != number % FILES_OF_PTX) {
      suite->left_out += file->run_count;
      continue;
    }
    if (load_one(suite, file, kEndings[p], &loaded[count])) {
      count++;
    } else {
      free(loaded[count].text);
    }
  }
  bool all = count > 0;
  for (int p = 0; p < count; p++) {
    for (int d = 0; d < suite->device_count; d++) all &= loaded[p].there[d];
  }
  if (all && count == FILES_OF_PTX && file->awaits[0] != '\0') {
    printf("not ok %s awaits \"%s\", but runs: remove the line\n", file->name,
           file->awaits);
    suite->failed++;
  }
  for (int r = 0; count > 0 && r < file->run_count; r++) {
    const kernel_run_t* run = &file->runs[r];
    if (run->fails) {
      suite->elsewhere++;  // a fault ends the context
      continue;
    }
    tally_t tally = {.launches = 0};
    snprintf(running, sizeof(running), "%s.%s.%d", run->file, run->entry, r);
    alarm(suite->soft_only ? LIMIT_S : GPU_LIMIT_S);
    run_shapes(suite, &tally, run, loaded, count);
    if (suite->spoil) {
      report_spoiled(suite, &tally);
    } else {
      report(suite, run, &tally);
    }
    fflush(stdout);
  }
  for (int p = 0; p < count; p++) {
    for (int d = 0; d < suite->device_count; d++) {
      kernel_device_unload(&suite->devices[d], &loaded[p].codes[d]);
    }
    free(loaded[p].text);
  }
  alarm(0);
}

static int by_name(const void* a, const void* b) {
  return strcmp(a, b);
}

static int list_files(char names[MAX_FILES][KERNEL_NAME]) {
  char path[1024];
  DIR* folder = opendir(test_tree_path(path, sizeof(path), "tests/kernels"));
  int count = 0;
  struct dirent* entry;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    size_t length = strlen(entry->d_name);
    if (length < 4 || length > KERNEL_NAME - 1 || count == MAX_FILES ||
        strcmp(entry->d_name + length - 3, ".cu") != 0) {
      continue;
    }
    snprintf(names[count++], KERNEL_NAME, "%.*s", (int)(length - 3),
             entry->d_name);
  }
  if (folder != NULL) closedir(folder);
  qsort(names, (size_t)count, KERNEL_NAME, by_name);
  return count;
}

static int run_all(suite_t* suite) {
  static char names[MAX_FILES][KERNEL_NAME];
  static kernel_file_t file;
  int count = list_files(names);
  int files = 0;
  for (int i = 0; i < count; i++) {
    if (suite->only != NULL && strstr(names[i], suite->only) == NULL) continue;
    files++;
    if (!kernel_file_read(test_tree(), names[i], &file)) {
      suite->failed++;
      continue;
    }
    run_file(suite, &file, i);
  }
  printf(
      "%d files, %d launches; runs: %d equal, %d within a bound, %d open in "
      "part, %d failed\n",
      files, suite->launches, suite->equal, suite->bound, suite->open,
      suite->failed);
  if (suite->elsewhere > 0) {
    printf("%d runs that must fail are left to live_kernels.py\n",
           suite->elsewhere);
  }
  if (suite->too_new > 0) {
    printf("%d PTX files skipped, of a compiler newer than the driver\n",
           suite->too_new);
  }
  if (suite->left_out > 0) {
    printf("--small left out %d launches\n", suite->left_out);
  }
  if (suite->awaiting > 0) {
    printf("%d PTX files skipped, awaited on the software device:%s\n",
           suite->awaiting, suite->awaiting_names);
  }
  return suite->failed > 0 || suite->launches == 0;
}

static bool read_arguments(suite_t* suite, int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--soft") == 0) {
      suite->soft_only = true;
      continue;
    }
    if (strcmp(argv[i], "--spoil") == 0) {
      suite->spoil = true;
      continue;
    }
    if (strcmp(argv[i], "--profiled") == 0) {
      suite->profiled = true;
      continue;
    }
    if (strcmp(argv[i], "--small") == 0) {
      suite->small = true;
      continue;
    }
    if (value == NULL) return false;
    if (strcmp(argv[i], "--only") == 0) {
      suite->only = value;
    } else if (strcmp(argv[i], "--lanes") == 0) {
      suite->options.lanes = value;
    } else if (strcmp(argv[i], "--seed") == 0) {
      suite->options.seed = strtoull(value, NULL, 0);
    } else if (strcmp(argv[i], "--workers") == 0) {
      suite->options.workers = (uint32_t)strtoul(value, NULL, 0);
    } else {
      return false;
    }
    i++;
  }
  return true;
}

// Counting by kind must change no answer, and lose no instruction.
static int profile_start(void) {
  kiln_status_t status = kiln_soft_profile_start();
  int code = kiln_status_code_exit(kiln_status_code(status));
  kiln_status_free(status);
  return code;
}

static int profile_check(void) {
  kiln_soft_profile_t profile = kiln_soft_profile_default();
  kiln_status_t status = kiln_soft_profile_read(&profile);
  int code = kiln_status_code_exit(kiln_status_code(status));
  kiln_status_free(status);
  uint64_t total = 0;
  for (int i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    total += profile.instructions[i];
  }
  printf("profiled: %llu thread-instructions by class, %llu in all\n",
         (unsigned long long)total, (unsigned long long)kilni_soft_executed());
  return code != 0 ? code : total != kilni_soft_executed();
}

int main(int argc, char** argv) {
  static suite_t suite;
  if (!read_arguments(&suite, argc, argv)) {
    fprintf(stderr,
            "usage: live_kernel_suite [--soft] [--lanes SET] "
            "[--seed N] [--workers N] [--small] [--only NAME] "
            "[--spoil] [--profiled]\n");
    return 2;
  }
  signal(SIGALRM, too_long);
  int code = 0;
  for (int soft = suite.soft_only; soft < 2 && code == 0; soft++) {
    kernel_device_t* device = &suite.devices[suite.device_count];
    code = kernel_device_open(device, soft, &suite.options);
    if (code == 0) suite.device_count++;
  }
  if (code == 0 && suite.profiled) code = profile_start();
  if (code == 0) code = run_all(&suite);
  if (code == 0 && suite.profiled) code = profile_check();
  for (int d = suite.device_count - 1; d >= 0; d--) {
    kernel_device_close(&suite.devices[d]);
  }
  return code;
}
