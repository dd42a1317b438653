// SPDX-License-Identifier: Apache-2.0
//
// live: generated programs: the evaluator against the software device against
// a GPU, bit for bit.
//
//   live_program_diff [soft | cuda | rows | rows-soft | nests | nests-soft]
//                     [COUNT [SEED [SECONDS [WORKERS]]]]
//
// cuda, as without a word: 10,000 programs, 100 in a module, each on the
// evaluator, on soft and on cuda:0; exit 77 without a GPU. soft: without the
// GPU. Workers are processes (one for each core), because a driver compiles
// one module at a time in each. SECONDS is when no further module is begun;
// fewer programs than asked for is a failure. A program that differs is made
// small and printed with what it runs on.
//
// rows: in the place of generated programs one for each row of the tables of
// operators at each type, on each pair of the types' ends. nests: in the place
// of them programs of operators in operators (program_nests.h), which code
// generators join; `nests-text SEED` prints one.
//
// A program that a GPU faults on takes the GPU from its process: it is looked
// for, and made small, by processes of their own (probe: cuda without that;
// text SEED SM: one program, from standard input).
//
// code SEED SM PROGRAM [DEVICE]: the program's inputs, run by other code: PTX
// or cubins, whose paths come by lines of standard input. For each a line
// says: same, differs, refused or lost, and why; the device's loss is the end.
// tools/shrink_ptx asks by it.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "program_generate.h"
#include "program_nests.h"
#include "program_rows.h"
#include "program_runner.h"

enum {
  BATCH = 100,
  NESTS_BATCH = 5,  // of long programs
  COUNT = 10000,
  SECONDS = 200,
  GRACE_SECONDS = 150,  // for the modules that were begun
  SHRINK_SECONDS = 20,
  HUNT_SECONDS = 90,
  LOST = 3,  // exit code: the device is gone with this process
  SHOWN = 3,
  WORKERS_MAX = 64,
  LINE_BYTES = 4096,
  IMAGE_BYTES = 4 << 20,
  SOFT = 0,
  GPU = 1,
  DEVICES = 2,
};

static const char* const LABELS[DEVICES] = {"soft", "cuda:0"};

// Where programs come from.
typedef enum source_t { GENERATED, ROWS, NESTS } source_t;

// What is asked for. one-thread
typedef struct order_t {
  uint32_t devices;
  uint32_t count;
  uint64_t seed;
  double end;  // on the clock of seconds()
  uint32_t workers;
  bool probe;
  source_t source;
  uint32_t batch;  // programs in a module
} order_t;

// What has been done. one-thread
typedef struct tally_t {
  uint32_t done;
  uint32_t wrong;
  uint64_t steps;
  double open;  // seconds: generating, evaluating, lowering
  program_times_t times[DEVICES];
} tally_t;

// One worker: a device of each kind. one-thread
typedef struct asked_t {
  uint32_t devices;
  kiln_runtime_t* runtime;
  kiln_device_t* device[DEVICES];
  kiln_stream_t* stream[DEVICES];
  uint32_t at;  // the device that is looked at
  bool probe;
  source_t source;
  bool lost;
  uint64_t seed;
  double shrink_end;
  uint32_t shown;
  program_run_options_t options;
  tally_t tally;
} asked_t;

// A worker as the parent sees it. one-thread
typedef struct worker_t {
  pid_t pid;
  int from;
  uint32_t size;  // of what came of a line
  char line[LINE_BYTES];
  tally_t tally;  // of all its processes
  tally_t past;   // of those before the last
  uint32_t batch;
  uint32_t batches;
  int code;
} worker_t;

static double seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// -- a worker ---------------------------------------------------------------

static const uint32_t WITH[] = {0, PROGRAM_WITH_MATH, PROGRAM_WITH_TRAP,
                                PROGRAM_WITH_MATH | PROGRAM_WITH_GRID_BARRIER};
static const uint32_t TARGETS[] = {75, 80, 90};

static void generate(asked_t* a, uint64_t seed, char* text) {
  char name[32];
  a->seed = seed;
  a->options.sm = TARGETS[seed / 4U % 3U];
  snprintf(name, sizeof name, "p%llu", (unsigned long long)seed);
  if (a->source == NESTS) {
    a->options.sm = 90;
    a->options.spread = true;
    program_nest_text((uint32_t)seed - 1U, name, text);
    return;
  }
  if (a->source == ROWS) {
    a->options.edges = true;
    a->options.elements = PROGRAM_EDGES * PROGRAM_EDGES;
    program_row_text((uint32_t)seed - 1U, name, text);
    return;
  }
  program_generate(seed, WITH[seed % 4U], name, text);
}

static bool still_fails(void* user, const char* text) {
  const asked_t* a = user;
  char reason[PROGRAM_REASON_BYTES];
  return seconds() < a->shrink_end &&
         program_try(a->device[a->at], a->stream[a->at], text, a->seed,
                     &a->options, reason) == 1;
}

static void show(asked_t* a, uint64_t seed) {
  static char text[PROGRAM_TEXT_BYTES];
  char reason[PROGRAM_REASON_BYTES];
  a->tally.wrong++;
  if (a->shown++ >= (uint32_t)SHOWN) return;
  generate(a, seed, text);
  a->shrink_end = seconds() + SHRINK_SECONDS;
  if (still_fails(a, text)) program_shrink(text, still_fails, a);
  (void)program_try(a->device[a->at], a->stream[a->at], text, a->seed,
                    &a->options, reason);
  printf("-- seed %llu on %s, sm_%u: %s\n%s", (unsigned long long)a->seed,
         LABELS[a->at], a->options.sm, reason, text);
  program_case_t* c = calloc(1, sizeof *c);
  if (c != NULL) {
    if (program_case_open(c, text, a->seed, &a->options)) {
      program_case_print(c);
    }
    program_case_close(c);
    free(c);
  }
}

static bool open_device(asked_t* a, uint32_t at) {
  kiln_status_t status =
      kiln_runtime_open_device(a->runtime, LABELS[at], &a->device[at]);
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_create(a->device[at], NULL, &a->stream[at]);
  }
  if (kiln_status_is_ok(status)) return true;
  printf("%s: %s\n", LABELS[at], kiln_status_message(status));
  kiln_status_free(status);
  return false;
}

// Runs this program with other words, `text` as its input; its exit code.
static int run_self(const char* const words[], const char* text) {
  FILE* in = tmpfile();
  if (in == NULL) return 0;
  (void)fwrite(text, 1, strlen(text), in);
  (void)fflush(in);
  (void)fseek(in, 0, SEEK_SET);
  (void)fflush(stdout);
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(fileno(in), STDIN_FILENO);
    if (freopen("/dev/null", "w", stdout) == NULL) _exit(0);
    (void)execv("/proc/self/exe", (char* const*)(uintptr_t)words);
    _exit(0);
  }
  (void)fclose(in);
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool fails_apart(uint64_t seed, uint32_t count) {
  char number[32], first[32];
  snprintf(number, sizeof number, "%u", count);
  snprintf(first, sizeof first, "%llu", (unsigned long long)seed);
  const char* const words[] = {
      "live_program_diff", "probe", number, first, "60", "1", NULL};
  return run_self(words, "") == 1;
}

static bool text_fails_apart(void* user, const char* text) {
  const asked_t* a = user;
  char seed[32], sm[16];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)a->seed);
  snprintf(sm, sizeof sm, "%u", a->options.sm);
  const char* const words[] = {"live_program_diff", "text", seed, sm, NULL};
  return seconds() < a->shrink_end && run_self(words, text) == LOST;
}

// Who of `count` programs from `seed` on took the device with it.
static void hunt(asked_t* a, uint64_t seed, uint32_t count) {
  static char text[PROGRAM_TEXT_BYTES];
  a->shrink_end = seconds() + HUNT_SECONDS;
  while (count > 1U && seconds() < a->shrink_end) {
    const uint32_t half = count / 2U;
    if (fails_apart(seed, half)) {
      count = half;
    } else if (fails_apart(seed + half, count - half)) {
      seed += half;
      count -= half;
    } else {
      break;
    }
  }
  generate(a, seed, text);
  printf("-- faults on %s: %u programs from seed %llu, sm_%u\n", LABELS[a->at],
         count, (unsigned long long)seed, a->options.sm);
  if (count != 1U) return;
  if (text_fails_apart(a, text)) {
    program_shrink(text, text_fails_apart, a);
  } else {
    printf("by itself it does not, or there was no time:\n");
  }
  printf("%s", text);
  program_case_t* c = calloc(1, sizeof *c);
  if (c != NULL && program_case_open(c, text, a->seed, &a->options)) {
    program_case_print(c);
    printf("%s", kiln_program_code_text(c->code).data);
  }
  if (c != NULL) program_case_close(c);
  free(c);
}

static int run_text(uint64_t seed, uint32_t sm) {
  static char text[PROGRAM_TEXT_BYTES];
  static asked_t a;
  char reason[PROGRAM_REASON_BYTES];
  text[fread(text, 1, sizeof text - 1U, stdin)] = '\0';
  a.options.sm = sm;
  kiln_status_t status = kiln_runtime_create(NULL, &a.runtime);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 77;
  }
  if (!open_device(&a, GPU)) return 77;
  const int result =
      program_try(a.device[GPU], a.stream[GPU], text, seed, &a.options, reason);
  // A program that differs is another matter than one that takes the device.
  status = kiln_device_synchronize(a.device[GPU]);
  const bool lost = kiln_status_code(status) == KILN_STATUS_DEVICE_LOST;
  kiln_status_free(status);
  if (lost) return LOST;
  return result == 1;
}

static bool read_file(const char* path, char* bytes, size_t space,
                      size_t* out_size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return false;
  *out_size = fread(bytes, 1, space, file);
  (void)fclose(file);
  return *out_size < space;
}

// Runs `c` by the code in a file and says what came of it; true: device lost.
static bool run_code_file(const asked_t* a, program_case_t* c,
                          const char* path) {
  static char image[IMAGE_BYTES];
  char error[PROGRAM_REASON_BYTES];
  if (!read_file(path, image, sizeof image, &c->image_size)) {
    printf("refused: \"%s\" is not there, or too large\n", path);
    return false;
  }
  c->image = (const uint8_t*)image;
  c->reason[0] = '\0';
  const bool ran =
      program_batch_run(a->device[a->at], a->stream[a->at], c, 1, error, NULL);
  kiln_status_t status = kiln_device_synchronize(a->device[a->at]);
  const bool lost = kiln_status_code(status) == KILN_STATUS_DEVICE_LOST;
  kiln_status_free(status);
  for (char* at = error; *at != '\0'; at++) {
    if (*at == '\n') *at = ' ';
  }
  printf("%s%s\n",
         lost                   ? "lost: "
         : !ran                 ? "refused: "
         : c->reason[0] != '\0' ? "differs: "
                                : "same",
         ran ? c->reason : error);
  (void)fflush(stdout);
  return lost;
}

static int run_code(uint64_t seed, uint32_t sm, const char* program,
                    uint32_t at) {
  static char text[PROGRAM_TEXT_BYTES];
  static program_case_t c;
  static asked_t a;
  char path[LINE_BYTES];
  size_t size = 0;
  a.options.sm = sm;
  a.at = at;
  if (!read_file(program, text, sizeof text - 1U, &size)) return 1;
  kiln_status_t status = kiln_runtime_create(NULL, &a.runtime);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 77;
  }
  if (!program_case_open(&c, text, seed, &a.options)) {
    printf("%s\n", c.reason);
    return 1;
  }
  if (!open_device(&a, at)) return 77;
  while (fgets(path, sizeof path, stdin) != NULL) {
    path[strcspn(path, "\n")] = '\0';
    if (run_code_file(&a, &c, path)) return LOST;
  }
  program_case_close(&c);
  kiln_stream_release(a.stream[at]);
  kiln_device_release(a.device[at]);
  kiln_runtime_release(a.runtime);
  return 0;
}

// One module on one device.
static void run_on(asked_t* a, program_case_t* cases, uint32_t open) {
  static char text[PROGRAM_TEXT_BYTES];
  char error[PROGRAM_REASON_BYTES];
  for (uint32_t i = 0; i < open; i++) cases[i].reason[0] = '\0';
  const bool ran = program_batch_run(a->device[a->at], a->stream[a->at], cases,
                                     open, error, &a->tally.times[a->at]);
  if (!ran) {
    printf("a module from seed %llu on %s: %s\n",
           (unsigned long long)cases[0].seed, LABELS[a->at], error);
    a->tally.wrong++;
    a->lost = a->at == (uint32_t)GPU;
    if (a->lost && !a->probe && a->source == GENERATED) {
      hunt(a, cases[0].seed, open);
    }
    if (a->lost) return;
  }
  for (uint32_t i = 0; i < open; i++) {
    bool differs = cases[i].reason[0] != '\0';
    if (!ran) {
      generate(a, cases[i].seed, text);
      a->shrink_end = seconds() + SHRINK_SECONDS;
      differs = still_fails(a, text);
    }
    if (differs) show(a, cases[i].seed);
  }
}

static void run_batch(asked_t* a, program_case_t* cases, uint64_t seed,
                      uint32_t size) {
  static char text[PROGRAM_TEXT_BYTES];
  const double start = seconds();
  uint32_t open = 0;
  for (uint32_t i = 0; i < size; i++) {
    generate(a, seed + i, text);
    if (program_case_open(&cases[open], text, a->seed, &a->options)) {
      a->tally.steps += cases[open++].world.steps;
      continue;
    }
    printf("seed %llu: %s\n%s", (unsigned long long)a->seed, cases[open].reason,
           text);
    program_case_close(&cases[open]);
    a->tally.wrong++;
  }
  a->tally.open += seconds() - start;
  for (a->at = 0; a->at < a->devices && open != 0U; a->at++) {
    run_on(a, cases, open);
  }
  for (uint32_t i = 0; i < open; i++) program_case_close(&cases[i]);
  a->tally.done += size;
}

static void tell(const tally_t* t) {
  printf("@ %u %u %llu %f %f %f %f %f\n", t->done, t->wrong,
         (unsigned long long)t->steps, t->open, t->times[SOFT].load,
         t->times[SOFT].run, t->times[GPU].load, t->times[GPU].run);
  (void)fflush(stdout);
}

// Every WORKERS-th batch behind `batches` of them; the exit code.
static int work(const order_t* order, uint32_t worker, uint32_t batches) {
  static asked_t a;
  program_case_t* cases = calloc(BATCH, sizeof *cases);
  int code = cases == NULL;
  a.devices = order->devices;
  a.probe = order->probe;
  a.source = order->source;
  kiln_status_t status = kiln_runtime_create(NULL, &a.runtime);
  if (!kiln_status_is_ok(status)) {
    printf("%s\n", kiln_status_message(status));
    kiln_status_free(status);
    code = 1;
  }
  for (uint32_t k = order->devices; k-- != 0U && code == 0;) {
    if (!open_device(&a, k)) code = k == (uint32_t)GPU ? 77 : 1;
  }
  const uint32_t batch = order->batch;
  const uint64_t step = (uint64_t)order->workers * batch;
  for (uint64_t first = (uint64_t)worker * batch + batches * step;
       code == 0 && first < order->count && seconds() < order->end;
       first += step) {
    const uint64_t left = order->count - first;
    run_batch(&a, cases, order->seed + first,
              left < batch ? (uint32_t)left : batch);
    tell(&a.tally);
    if (a.lost) code = order->probe ? 1 : LOST;
  }
  free(cases);
  for (uint32_t k = 0; k < order->devices; k++) {
    kiln_stream_release(a.stream[k]);
    kiln_device_release(a.device[k]);
  }
  kiln_runtime_release(a.runtime);
  (void)fflush(stdout);
  return code;
}

// -- all of them ------------------------------------------------------------

static bool start(const order_t* order, worker_t* workers, uint32_t i) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  (void)fflush(stdout);
  workers[i].from = ends[0];
  workers[i].batch = order->batch;
  workers[i].pid = fork();
  if (workers[i].pid == 0) {
    for (uint32_t k = 0; k < order->workers; k++) {
      if (workers[k].from > 0) (void)close(workers[k].from);
    }
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)close(ends[1]);
    exit(work(order, i, workers[i].batches));
  }
  (void)close(ends[1]);
  return workers[i].pid > 0;
}

static void add(tally_t* to, const tally_t* t) {
  to->done += t->done;
  to->wrong += t->wrong;
  to->steps += t->steps;
  to->open += t->open;
  for (uint32_t k = 0; k < (uint32_t)DEVICES; k++) {
    to->times[k].load += t->times[k].load;
    to->times[k].run += t->times[k].run;
  }
}

static void take_line(worker_t* w) {
  tally_t t;
  unsigned long long steps = 0;
  if (sscanf(w->line, "@ %u %u %llu %lf %lf %lf %lf %lf", &t.done, &t.wrong,
             &steps, &t.open, &t.times[SOFT].load, &t.times[SOFT].run,
             &t.times[GPU].load, &t.times[GPU].run) == 8) {
    t.steps = steps;
    w->tally = w->past;
    add(&w->tally, &t);
    w->batches = (w->tally.done + w->batch - 1U) / w->batch;
  } else {
    printf("%s\n", w->line);
  }
  w->size = 0;
}

// Reads what a worker wrote; false at its end.
static bool take(worker_t* w) {
  char bytes[LINE_BYTES];
  const ssize_t got = read(w->from, bytes, sizeof bytes);
  for (ssize_t i = 0; i < got; i++) {
    if (bytes[i] != '\n' && w->size < (uint32_t)LINE_BYTES - 1U) {
      w->line[w->size++] = bytes[i];
      continue;
    }
    w->line[w->size] = '\0';
    take_line(w);
  }
  return got > 0;
}

static tally_t sum(const worker_t* workers, uint32_t count) {
  tally_t all = {.done = 0};
  for (uint32_t i = 0; i < count; i++) add(&all, &workers[i].tally);
  return all;
}

// Behind a worker's end; true: another process goes on with its work.
static bool ended(const order_t* order, worker_t* workers, uint32_t i) {
  worker_t* w = &workers[i];
  int status = 0;
  (void)waitpid(w->pid, &status, 0);
  (void)close(w->from);
  w->from = 0;
  w->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  if (WIFSIGNALED(status)) {
    printf("worker %u ended by signal %d, behind %u of its programs\n", i,
           WTERMSIG(status), w->tally.done);
  }
  if (w->code != LOST) return false;
  w->past = w->tally;
  return start(order, workers, i);
}

// Waits for all workers' ends, with a line for every tenth of the programs.
static void watch(const order_t* order, worker_t* workers, double begin) {
  struct pollfd from[WORKERS_MAX];
  uint32_t open = order->workers, told = 0;
  for (uint32_t i = 0; i < order->workers; i++) {
    from[i] = (struct pollfd){.fd = workers[i].from, .events = POLLIN};
  }
  while (open != 0U) {
    const double left = order->end + GRACE_SECONDS - seconds();
    if (left <= 0.0) break;
    if (poll(from, order->workers, (int)(left * 1e3) + 1) <= 0) continue;
    for (uint32_t i = 0; i < order->workers; i++) {
      if (from[i].fd < 0 || from[i].revents == 0) continue;
      if (take(&workers[i])) continue;
      const bool goes_on = ended(order, workers, i);
      from[i].fd = goes_on ? workers[i].from : -1;
      open -= !goes_on;
    }
    const tally_t all = sum(workers, order->workers);
    if (all.done >= told + (order->count + 9U) / 10U) {
      printf("%6.1f s: %u programs, %u wrong\n", seconds() - begin, all.done,
             all.wrong);
      told = all.done;
    }
    (void)fflush(stdout);
  }
  for (uint32_t i = 0; i < order->workers; i++) {
    if (from[i].fd < 0) continue;
    const uint64_t at = i + (uint64_t)order->workers * workers[i].batches;
    printf("worker %u is late and is ended, at the module from seed %llu\n", i,
           (unsigned long long)(order->seed + at * order->batch));
    (void)kill(workers[i].pid, SIGKILL);
    (void)waitpid(workers[i].pid, NULL, 0);
    workers[i].code = 128;
  }
}

static int verdict(const order_t* order, const worker_t* workers,
                   double begin) {
  const tally_t all = sum(workers, order->workers);
  int code = all.wrong != 0U || all.done < order->count || all.done == 0U;
  bool no_gpu = true;
  for (uint32_t i = 0; i < order->workers; i++) {
    no_gpu = no_gpu && workers[i].code == 77;
    if (workers[i].code != 0) code = 1;
  }
  if (no_gpu) {
    printf("skipped: there is no GPU\n");
    return 77;
  }
  printf(
      "evaluator, %ssoft: %u of %u programs, %llu statements by the "
      "evaluator, %u differ; %.1f s\n",
      order->devices > 1U ? "cuda:0, " : "", all.done, order->count,
      (unsigned long long)all.steps, all.wrong, seconds() - begin);
  printf(
      "of %u workers' seconds: evaluating and lowering %.1f, soft %.1f to "
      "load, %.1f to run, cuda:0 %.1f to load, %.1f to run\n",
      order->workers, all.open, all.times[SOFT].load, all.times[SOFT].run,
      all.times[GPU].load, all.times[GPU].run);
  if (order->source == NESTS) {
    printf("nests: %llu expressions in all %u programs\n",
           (unsigned long long)program_nest_expressions(),
           program_nest_count());
  }
  return code;
}

static uint64_t word(int count, char** words, int at, uint64_t usual) {
  return count > at ? strtoull(words[at], NULL, 0) : usual;
}

// What a word asks for besides: where programs come from, and how many.
static void set_source(order_t* order, const char* said) {
  order->source = strncmp(said, "rows", 4) == 0    ? ROWS
                  : strncmp(said, "nests", 5) == 0 ? NESTS
                                                   : GENERATED;
  order->batch = order->source == NESTS ? NESTS_BATCH : BATCH;
  order->count = order->source == ROWS    ? program_row_count()
                 : order->source == NESTS ? program_nest_count()
                                          : (uint32_t)COUNT;
  if (strstr(said, "-soft") != NULL) order->devices = 1;
}

static int print_nest(uint32_t seed) {
  static char text[PROGRAM_TEXT_BYTES];
  char name[32];
  snprintf(name, sizeof name, "p%u", seed);
  program_nest_text(seed - 1U, name, text);
  printf("%s", text);
  return 0;
}

int main(int count, char** words) {
  static worker_t workers[WORKERS_MAX];
  const double begin = seconds();
  if (count == 4 && strcmp(words[1], "text") == 0) {
    return run_text(word(count, words, 2, 1),
                    (uint32_t)word(count, words, 3, 75));
  }
  if (count == 3 && strcmp(words[1], "nests-text") == 0) {
    return print_nest((uint32_t)word(count, words, 2, 1));
  }
  if (count >= 5 && strcmp(words[1], "code") == 0) {
    (void)setenv("CUDA_CACHE_DISABLE", "1", 1);
    return run_code(word(count, words, 2, 1),
                    (uint32_t)word(count, words, 3, 75), words[4],
                    count > 5 && strcmp(words[5], "soft") == 0 ? SOFT : GPU);
  }
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  order_t order = {.devices = DEVICES};
  if (count > 1 && strcmp(words[1], "soft") == 0) order.devices = 1;
  order.probe = count > 1 && strcmp(words[1], "probe") == 0;
  set_source(&order, count > 1 ? words[1] : "");
  order.count = (uint32_t)word(count, words, 2, order.count);
  order.seed = word(count, words, 3, 1);
  order.end = begin + (double)word(count, words, 4, SECONDS);
  order.workers =
      (uint32_t)word(count, words, 5, cores < 1 ? 1U : (uint64_t)cores);
  if (order.workers > (order.count + order.batch - 1U) / order.batch) {
    order.workers = (order.count + order.batch - 1U) / order.batch;
  }
  if (order.workers > (uint32_t)WORKERS_MAX) order.workers = WORKERS_MAX;
  if (order.workers == 0U) order.workers = 1;
  // Each worker is one thread of work, and nothing is kept for a second time.
  (void)setenv("KILN_SOFT_WORKERS", "1", 1);
  (void)setenv("CUDA_CACHE_DISABLE", "1", 1);
  uint32_t started = 0;
  while (started < order.workers && start(&order, workers, started)) started++;
  const bool all = started == order.workers;
  order.workers = started;
  watch(&order, workers, begin);
  return all ? verdict(&order, workers, begin) : 1;
}
