// SPDX-License-Identifier: Apache-2.0
//
// live: generated programs: the evaluator against the software device against
// a GPU, bit for bit.
//
//   live_program_diff                  10,000 programs on soft and cuda:0;
//                                      exit 77 without a GPU
//   live_program_diff soft COUNT [SEED]  on the software device alone
//
// A program that differs is made small and printed with what it runs on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"
#include "program_generate.h"
#include "program_runner.h"

enum { BATCH = 100, COUNT = 10000, SHOWN = 3 };

// What is asked, and of whom. one-thread
typedef struct asked_t {
  kiln_device_t* device;
  kiln_stream_t* stream;
  uint64_t seed;
  program_run_options_t options;
} asked_t;

static const uint32_t WITH[] = {0, PROGRAM_WITH_MATH, PROGRAM_WITH_TRAP,
                                PROGRAM_WITH_MATH | PROGRAM_WITH_GRID_BARRIER};

static void generate(uint64_t seed, char* text) {
  char name[32];
  snprintf(name, sizeof name, "p%llu", (unsigned long long)seed);
  program_generate(seed, WITH[seed % 4U], name, text);
}

static bool still_fails(void* user, const char* text) {
  const asked_t* a = user;
  char reason[PROGRAM_REASON_BYTES];
  return program_try(a->device, a->stream, text, a->seed, &a->options,
                     reason) == 1;
}

static void show(asked_t* a, const char* label) {
  static char text[PROGRAM_TEXT_BYTES];
  char reason[PROGRAM_REASON_BYTES];
  generate(a->seed, text);
  if (still_fails(a, text)) program_shrink(text, still_fails, a);
  (void)program_try(a->device, a->stream, text, a->seed, &a->options, reason);
  printf("-- seed %llu on %s: %s\n%s", (unsigned long long)a->seed, label,
         reason, text);
  program_case_t* c = calloc(1, sizeof *c);
  if (c != NULL) {
    if (program_case_open(c, text, a->seed, &a->options)) {
      program_case_print(c);
    }
    program_case_close(c);
    free(c);
  }
}

// Runs `count` programs from `seed` on a device; how many differ.
static uint32_t run(asked_t* a, const char* label, uint64_t seed,
                    uint32_t count) {
  static char text[PROGRAM_TEXT_BYTES];
  char error[PROGRAM_REASON_BYTES];
  program_case_t* cases = calloc(BATCH, sizeof *cases);
  uint64_t steps = 0;
  uint32_t wrong = 0, done = 0;
  while (cases != NULL && done < count) {
    const uint32_t size = count - done < BATCH ? count - done : BATCH;
    uint32_t open = 0;
    for (uint32_t i = 0; i < size; i++) {
      a->seed = seed + done + i;
      generate(a->seed, text);
      if (program_case_open(&cases[open], text, a->seed, &a->options)) {
        steps += cases[open++].world.steps;
        continue;
      }
      printf("seed %llu: %s\n", (unsigned long long)a->seed,
             cases[open].reason);
      program_case_close(&cases[open]);
      if (wrong++ < SHOWN) show(a, label);
    }
    const bool ran =
        program_batch_run(a->device, a->stream, cases, open, error);
    if (!ran)
      printf("a module from seed %llu on: %s\n",
             (unsigned long long)(seed + done), error);
    for (uint32_t i = 0; i < open; i++) {
      const bool differs = !ran || cases[i].reason[0] != '\0';
      a->seed = cases[i].seed;
      if (!ran) {
        generate(a->seed, text);
        if (!still_fails(a, text)) continue;
      }
      if (differs && wrong++ < SHOWN) show(a, label);
    }
    for (uint32_t i = 0; i < open; i++) program_case_close(&cases[i]);
    done += size;
  }
  free(cases);
  printf("%s: %u programs, %llu statements by the evaluator, %u differ\n",
         label, done, (unsigned long long)steps, wrong);
  return wrong;
}

static bool open_device(kiln_runtime_t* runtime, const char* label,
                        asked_t* a) {
  kiln_status_t status = kiln_runtime_open_device(runtime, label, &a->device);
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_create(a->device, NULL, &a->stream);
  }
  if (kiln_status_is_ok(status)) return true;
  printf("%s: %s\n", label, kiln_status_message(status));
  kiln_status_free(status);
  return false;
}

static void close_device(asked_t* a) {
  kiln_stream_release(a->stream);
  kiln_device_release(a->device);
  *a = (asked_t){.seed = 0};
}

int main(int count, char** words) {
  const bool soft = count > 1 && strcmp(words[1], "soft") == 0;
  const uint32_t programs =
      count > 2 ? (uint32_t)strtoul(words[2], NULL, 0) : COUNT;
  const uint64_t seed = count > 3 ? strtoull(words[3], NULL, 0) : 1;
  kiln_runtime_t* runtime = NULL;
  asked_t asked = {.options = {75, 0, 0}};
  kiln_status_t status = kiln_runtime_create(NULL, &runtime);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 1;
  }
  uint32_t wrong = 0;
  if (!soft) {
    if (!open_device(runtime, "cuda:0", &asked)) {
      kiln_runtime_release(runtime);
      return 77;
    }
    wrong += run(&asked, "cuda:0", seed, programs);
    close_device(&asked);
    asked.options.sm = 75;
  }
  if (open_device(runtime, "soft", &asked)) {
    wrong += run(&asked, "soft", seed, programs);
  } else {
    wrong++;
  }
  close_device(&asked);
  kiln_runtime_release(runtime);
  return wrong != 0U;
}
