// SPDX-License-Identifier: Apache-2.0
//
// live: fixpoints on a real driver: every strategy comes to the same results
// and counts the same rounds, on streams and in replays; limits, traps, nothing
// to do, bodies of several steps and inside of each other, eight threads.
//
//   live_fixpoint             everything on cuda:0; exit 77 without a GPU
//   live_fixpoint soft        the same on the software device
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"
#include "live_check.h"

enum { THREADS = 8, MOST = 5000, RUNS = 3 };

// Minima go one element further in each round, from one half of `x` to the
// other: what a round reads was written by the one before, so that the count of
// rounds is the same however threads are ordered.
static const char kSpread[] =
    "program spread(age: inout u32[], x: inout u32[2 * length(age)],\n"
    "    changed: inout u32[1], reach: u32)\n"
    "  work length(age) block 128\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  let n = length(age);\n"
    "  let now = (age[i] & 1) * n;\n"
    "  age[i] += 1;\n"
    "  let mine = x[now + i];\n"
    "  var least = mine;\n"
    "  for k in 1..reach + 1 { if k <= i { least = min(least, x[now + i - "
    "k]);\n"
    "  } }\n"
    "  x[n - now + i] = least;\n"
    "  if least != mine { changed[0] = 1; }\n"
    "}\n";

// The same by two dispatches: from x to y, and back.
static const char kForth[] =
    "program forth(x: in u32[], y: out u32[length(x)], reach: u32)\n"
    "  work length(x)\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  var least = x[i];\n"
    "  for k in 1..reach + 1 { if k <= i { least = min(least, x[i - k]); } }\n"
    "  y[i] = least;\n"
    "}\n";
static const char kBack[] =
    "program back(y: in u32[], x: inout u32[length(y)],\n"
    "    changed: inout u32[1])\n"
    "  work length(y)\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  if y[i] != x[i] { changed[0] = 1; }\n"
    "  x[i] = y[i];\n"
    "}\n";

static const char kFalls[] =
    "program falls(x: inout u32[], changed: inout u32[1])\n"
    "  work length(x) block 64\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  x[i] += 1;\n"
    "  if i == 700 && x[i] == 5 { trap(9, u64(i)); }\n"
    "  changed[0] = 1;\n"
    "}\n";

// Reads its flag, which one launch for all rounds cannot.
static const char kReads[] =
    "program reads(x: inout u32[], changed: inout u32[1])\n"
    "  work length(x)\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  if x[i] > 0 {\n"
    "    x[i] -= 1;\n"
    "    if changed[0] == 0 { changed[0] = 1; }\n"
    "  }\n"
    "}\n";

// One device and what is made on it. thread-safe once it is filled
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* spread;
  bool soft;
} live_t;

static const uint32_t kStrategies[] = {KILN_FIXPOINT_AUTO,
                                       KILN_FIXPOINT_COOPERATIVE,
                                       KILN_FIXPOINT_WHILE, KILN_FIXPOINT_POLL};

static kiln_pipeline_t* pipeline_of(const live_t* live, const char* text) {
  kiln_program_t* program = NULL;
  kiln_pipeline_t* pipeline = NULL;
  kiln_string_view_t view = {text, strlen(text)};
  if (!OK(kiln_program_parse(view, NULL, NULL, &program))) return NULL;
  OK(kiln_pipeline_create(live->dispatcher, program, NULL, &pipeline));
  kiln_program_release(program);
  return pipeline;
}

static kiln_resident_t words(const live_t* live, uint32_t count) {
  kiln_resident_t out = {0};
  kiln_resident_range_t all = {0, 0};
  OK(kiln_resident_allocate(live->dispatcher, count * 4ull, &out));
  OK(kiln_resident_fill(live->dispatcher, NULL, out, all, 0, 4));
  return out;
}

// ---- One task ----

// What is spread, and what must come of it.
typedef struct task_t {
  const live_t* live;
  kiln_sequence_t* sequence;
  kiln_resident_t age, x, changed;
  uint32_t n, reach, limit;
  uint32_t step;      // the fixpoint's
  uint32_t dispatch;  // the body's
  uint32_t rounds;
  bool settles;
  uint32_t first[2 * MOST];
  uint32_t want[MOST];
} task_t;

static void expect(task_t* task) {
  uint32_t now[MOST], then[MOST];
  memcpy(now, task->first, task->n * sizeof(now[0]));
  task->rounds = 0;
  task->settles = false;
  while (!task->settles && task->rounds < task->limit) {
    task->settles = true;
    task->rounds++;
    for (uint32_t i = 0; i < task->n; i++) {
      then[i] = now[i];
      for (uint32_t k = 1; k <= task->reach && k <= i; k++) {
        if (now[i - k] < then[i]) then[i] = now[i - k];
      }
      if (then[i] != now[i]) task->settles = false;
    }
    memcpy(now, then, task->n * sizeof(now[0]));
  }
  memcpy(task->want, now, task->n * sizeof(now[0]));
}

static void make_buffers(task_t* task) {
  task->age = words(task->live, task->n);
  task->x = words(task->live, 2 * task->n);
  task->changed = words(task->live, 1);
  for (uint32_t i = 0; i < task->n; i++) {
    task->first[i] = task->n - i + (i * 2654435761u) % 16;
    task->first[task->n + i] = 12345;
  }
  expect(task);
}

static bool make_task(task_t* task, const live_t* live, uint32_t n,
                      uint32_t reach, uint32_t limit, uint32_t strategy) {
  memset(task, 0, sizeof(*task));
  task->live = live;
  task->n = n, task->reach = reach, task->limit = limit;
  make_buffers(task);
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  options.strategy = strategy;
  options.limit = limit;
  options.flag = kiln_bind_resident(task->changed);
  const kiln_binding_t bindings[] = {
      kiln_bind_resident(task->age), kiln_bind_resident(task->x),
      kiln_bind_resident(task->changed), kiln_bind_u32(reach)};
  bool good =
      OK(kiln_sequence_create(live->dispatcher, NULL, &task->sequence)) &&
      OK(kiln_sequence_begin_fixpoint(task->sequence, &options, &task->step)) &&
      OK(kiln_sequence_add_dispatch(task->sequence, live->spread, bindings, 4,
                                    NULL, &task->dispatch)) &&
      OK(kiln_sequence_end_body(task->sequence)) &&
      OK(kiln_sequence_finish(task->sequence));
  return good;
}

static void end_task(task_t* task) {
  kiln_dispatcher_t* dispatcher = task->live->dispatcher;
  kiln_sequence_release(task->sequence);
  OK(kiln_resident_free(dispatcher, task->age));
  OK(kiln_resident_free(dispatcher, task->x));
  OK(kiln_resident_free(dispatcher, task->changed));
}

// As it is before a run; the flag is left as something else.
static void reset(task_t* task, kiln_stream_t* stream) {
  kiln_dispatcher_t* d = task->live->dispatcher;
  kiln_resident_range_t all = {0, 0};
  OK(kiln_resident_fill(d, stream, task->age, all, 0, 4));
  OK(kiln_resident_fill(d, stream, task->changed, all, 77, 4));
  OK(kiln_resident_upload(d, stream, task->x, 0, task->n * 8ull, task->first));
}

static void judge(task_t* task, kiln_stream_t* stream,
                  kiln_pending_t* pending) {
  static _Thread_local uint32_t age[MOST], x[2 * MOST];
  kiln_dispatcher_t* d = task->live->dispatcher;
  uint32_t flag = 99, wrong = 0;
  if (task->settles) {
    OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  } else {
    REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), NOT_CONVERGED,
            "rounds");
  }
  kiln_pending_release(pending);
  OK(kiln_resident_download(d, stream, task->age, 0, task->n * 4ull, age));
  OK(kiln_resident_download(d, stream, task->x, 0, task->n * 8ull, x));
  OK(kiln_resident_download(d, stream, task->changed, 0, 4, &flag));
  IS((flag == 0) == task->settles);
  for (uint32_t i = 0; i < task->n; i++) {
    wrong += age[i] != task->rounds;
    wrong += x[(age[i] & 1) * task->n + i] != task->want[i];
  }
  if (wrong != 0) {
    printf("%u of %u elements wrong after %u rounds, should be %u\n", wrong,
           task->n, age[0], task->rounds);
  }
  IS(wrong == 0);
}

static void run_task(task_t* task, kiln_stream_t* stream) {
  for (int run = 0; run < RUNS; run++) {
    kiln_pending_t* pending = NULL;
    uint32_t rounds = 0;
    reset(task, stream);
    if (!OK(kiln_sequence_run(task->sequence, stream, &pending))) return;
    judge(task, stream, pending);
    OK(kiln_sequence_rounds(task->sequence, task->step, &rounds));
    IS(rounds == task->rounds);
  }
}

static void replay_task(task_t* task, kiln_stream_t* stream) {
  kiln_replay_t* replay = NULL;
  if (!OK(kiln_sequence_instantiate(task->sequence, NULL, &replay))) return;
  for (int run = 0; run < RUNS; run++) {
    kiln_pending_t* pending = NULL;
    uint32_t rounds = 0;
    reset(task, stream);
    if (!OK(kiln_replay_run(replay, stream, &pending))) break;
    judge(task, stream, pending);
    OK(kiln_replay_rounds(replay, task->step, &rounds));
    IS(rounds == task->rounds);
    // Another reach: fewer rounds, and the graph is told.
    task->reach += 2;
    expect(task);
    OK(kiln_replay_set_scalar(replay, task->dispatch, 3, task->reach));
  }
  kiln_replay_release(replay);
}

// ---- Stages ----

static void strategies(live_t* live) {
  static const struct {
    uint32_t n, reach, limit;
  } kTasks[] = {{1, 1, 4},     {130, 3, 1000}, {MOST, 250, 1000}, {300, 1, 7},
                {300, 3, 100}, {2000, 40, 51}, {2000, 40, 50},    {64, 1, 1}};
  task_t* task = malloc(sizeof(*task));
  if (task == NULL) return;
  for (size_t t = 0; t < sizeof(kTasks) / sizeof(kTasks[0]); t++) {
    for (size_t s = 0; s < sizeof(kStrategies) / sizeof(kStrategies[0]); s++) {
      uint32_t strategy = kStrategies[s];
      if (!make_task(task, live, kTasks[t].n, kTasks[t].reach, kTasks[t].limit,
                     strategy)) {
        printf("strategy %u\n", strategy);
        continue;
      }
      kiln_sequence_step_t step;
      IS(kiln_sequence_step(task->sequence, task->step, &step));
      IS(step.strategy == (strategy == KILN_FIXPOINT_AUTO
                               ? KILN_FIXPOINT_COOPERATIVE
                               : strategy));
      run_task(task, NULL);
      if (strategy == KILN_FIXPOINT_POLL) {
        kiln_replay_t* replay = NULL;
        REFUSED(kiln_sequence_instantiate(task->sequence, NULL, &replay),
                UNSUPPORTED, "host");
      } else {
        replay_task(task, NULL);
      }
      end_task(task);
    }
  }
  free(task);
}

static void trapping(live_t* live) {
  kiln_pipeline_t* falls = pipeline_of(live, kFalls);
  if (falls == NULL) return;
  for (size_t s = 0; s < sizeof(kStrategies) / sizeof(kStrategies[0]); s++) {
    kiln_sequence_t* sequence = NULL;
    kiln_resident_t x = words(live, 1000), changed = words(live, 1);
    kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
    options.strategy = kStrategies[s];
    options.limit = 1000;
    options.flag = kiln_bind_resident(changed);
    const kiln_binding_t bindings[] = {kiln_bind_resident(x),
                                       kiln_bind_resident(changed)};
    uint32_t number = 0, rounds = 0, at = 0;
    OK(kiln_sequence_create(live->dispatcher, NULL, &sequence));
    OK(kiln_sequence_begin_fixpoint(sequence, &options, &number));
    OK(kiln_sequence_add_dispatch(sequence, falls, bindings, 2, NULL, NULL));
    OK(kiln_sequence_end_body(sequence));
    if (OK(kiln_sequence_finish(sequence))) {
      kiln_pending_t* pending = NULL;
      kiln_trap_t trap;
      OK(kiln_sequence_run(sequence, NULL, &pending));
      REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), LAUNCH_FAILED,
              "trapped");
      IS(kiln_pending_trap(pending, &trap) && trap.tag == 9 &&
         trap.address == 700 && trap.block[0] == 10 && trap.thread[0] == 60);
      kiln_pending_release(pending);
      OK(kiln_sequence_rounds(sequence, number, &rounds));
      IS(rounds == 5);
      REFUSED(kiln_sequence_check(sequence, &trap, &at), LAUNCH_FAILED,
              "trapped");
      IS(trap.tag == 9 && at == 1);
      // What was told is forgotten, and nothing is left where blocks meet.
      kiln_resident_range_t all = {0, 0};
      OK(kiln_resident_fill(live->dispatcher, NULL, x, all, 20, 4));
      OK(kiln_sequence_run(sequence, NULL, &pending));
      REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), NOT_CONVERGED,
              "1000 rounds");
      kiln_pending_release(pending);
      OK(kiln_sequence_check(sequence, NULL, NULL));
    }
    kiln_sequence_release(sequence);
    OK(kiln_resident_free(live->dispatcher, x));
    OK(kiln_resident_free(live->dispatcher, changed));
  }
  kiln_pipeline_release(falls);
}

// Two dispatches in the body, and all of that again and again in another one.
static void bodies(live_t* live) {
  kiln_pipeline_t* forth = pipeline_of(live, kForth);
  kiln_pipeline_t* back = pipeline_of(live, kBack);
  task_t* task = calloc(1, sizeof(*task));
  // A live program that has not what it needs ends; what it holds goes with it.
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
  if (task == NULL || forth == NULL || back == NULL) return;
  task->live = live;
  task->n = 1000, task->reach = 9, task->limit = 1000;
  make_buffers(task);
  for (size_t s = 0; s < sizeof(kStrategies) / sizeof(kStrategies[0]); s++) {
    uint32_t strategy = kStrategies[s];
    kiln_sequence_t* sequence = NULL;
    kiln_resident_t outer = words(live, 1);
    const kiln_binding_t half = kiln_bind_resident_range(task->x, 0, 4000);
    const kiln_binding_t other = kiln_bind_resident_range(task->x, 4000, 4000);
    const kiln_binding_t flag = kiln_bind_resident(task->changed);
    const kiln_binding_t there[] = {half, other, kiln_bind_u32(task->reach)};
    const kiln_binding_t again[] = {other, half, flag};
    const kiln_binding_t whole = kiln_bind_resident(outer);
    kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
    options.strategy =
        strategy == KILN_FIXPOINT_COOPERATIVE ? KILN_FIXPOINT_AUTO : strategy;
    uint32_t numbers[2], rounds = 0;
    OK(kiln_sequence_create(live->dispatcher, NULL, &sequence));
    options.limit = 4;
    options.flag = whole;
    OK(kiln_sequence_begin_fixpoint(sequence, &options, &numbers[0]));
    options.limit = task->limit;
    options.flag = flag;
    if (strategy == KILN_FIXPOINT_COOPERATIVE) options.strategy = strategy;
    OK(kiln_sequence_begin_fixpoint(sequence, &options, &numbers[1]));
    OK(kiln_sequence_add_dispatch(sequence, forth, there, 3, NULL, NULL));
    OK(kiln_sequence_add_dispatch(sequence, back, again, 3, NULL, NULL));
    OK(kiln_sequence_end_body(sequence));
    OK(kiln_sequence_end_body(sequence));
    if (strategy == KILN_FIXPOINT_COOPERATIVE) {
      REFUSED(kiln_sequence_finish(sequence), UNSUPPORTED,
              "more than one dispatch");
    } else if (OK(kiln_sequence_finish(sequence))) {
      for (int replayed = 0; replayed < 2; replayed++) {
        kiln_pending_t* pending = NULL;
        kiln_replay_t* replay = NULL;
        uint32_t out[1000], wrong = 0;
        reset(task, NULL);
        if (replayed == 0) {
          OK(kiln_sequence_run(sequence, NULL, &pending));
        } else if (strategy == KILN_FIXPOINT_POLL) {
          continue;
        } else if (OK(kiln_sequence_instantiate(sequence, NULL, &replay))) {
          OK(kiln_replay_run(replay, NULL, &pending));
        }
        OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
        kiln_pending_release(pending);
        OK(kiln_resident_download(live->dispatcher, NULL, task->x, 0,
                                  sizeof(out), out));
        for (uint32_t i = 0; i < task->n; i++) wrong += out[i] != task->want[i];
        IS(wrong == 0);
        // The inner one's flag is zero behind it, the outer one's at once.
        for (int k = 0; k < 2; k++) {
          OK(replay != NULL
                 ? kiln_replay_rounds(replay, numbers[k], &rounds)
                 : kiln_sequence_rounds(sequence, numbers[k], &rounds));
          IS(rounds == (k == 0 ? 1 : task->rounds));
        }
        kiln_replay_release(replay);
      }
    }
    kiln_sequence_release(sequence);
    OK(kiln_resident_free(live->dispatcher, outer));
  }
  end_task(task);
  free(task);
  kiln_pipeline_release(forth);
  kiln_pipeline_release(back);
}

// What one launch cannot repeat is done by a WHILE node, or the host.
static void choices(live_t* live) {
  kiln_pipeline_t* reads = pipeline_of(live, kReads);
  if (reads == NULL) return;
  for (size_t s = 0; s < sizeof(kStrategies) / sizeof(kStrategies[0]); s++) {
    kiln_sequence_t* sequence = NULL;
    kiln_sequence_step_t step;
    kiln_resident_t x = words(live, 500), changed = words(live, 1);
    kiln_resident_range_t all = {0, 0};
    const kiln_binding_t bindings[] = {kiln_bind_resident(x),
                                       kiln_bind_resident(changed)};
    kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
    uint32_t rounds = 0;
    options.strategy = kStrategies[s];
    options.limit = 100;
    options.flag = kiln_bind_resident(changed);
    OK(kiln_sequence_create(live->dispatcher, NULL, &sequence));
    OK(kiln_sequence_begin_fixpoint(sequence, &options, NULL));
    OK(kiln_sequence_add_dispatch(sequence, reads, bindings, 2, NULL, NULL));
    OK(kiln_sequence_end_body(sequence));
    if (options.strategy == KILN_FIXPOINT_COOPERATIVE) {
      REFUSED(kiln_sequence_finish(sequence), UNSUPPORTED, "reads its flag");
    } else if (OK(kiln_sequence_finish(sequence))) {
      OK(kiln_resident_fill(live->dispatcher, NULL, x, all, 6, 4));
      OK(kiln_sequence_run(sequence, NULL, NULL));
      OK(kiln_dispatcher_synchronize(live->dispatcher));
      OK(kiln_sequence_rounds(sequence, 0, &rounds));
      IS(rounds == 7);
      IS(kiln_sequence_step(sequence, 0, &step));
      if (options.strategy == KILN_FIXPOINT_AUTO) {
        IS(step.strategy == KILN_FIXPOINT_WHILE);
        IS(step.why != NULL && strstr(step.why, "COOPERATIVE") != NULL);
      } else {
        IS(step.strategy == options.strategy && step.why == NULL);
      }
    }
    kiln_sequence_release(sequence);
    OK(kiln_resident_free(live->dispatcher, x));
    OK(kiln_resident_free(live->dispatcher, changed));
  }
  kiln_pipeline_release(reads);
}

// ---- Threads ----

typedef struct worker_t {
  live_t* live;
  uint32_t number;
} worker_t;

static void* work(void* user) {
  const worker_t* worker = user;
  task_t* task = malloc(sizeof(*task));
  kiln_stream_t* stream = NULL;
  if (task == NULL) return NULL;
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t n = 100 + 150 * worker->number, strategy = kStrategies[i];
    if (!make_task(task, worker->live, n, 3 + worker->number, 1000, strategy)) {
      continue;
    }
    OK(kiln_stream_create(worker->live->device, NULL, &stream));
    OK(kiln_dispatcher_synchronize(worker->live->dispatcher));
    run_task(task, stream);
    if (strategy != KILN_FIXPOINT_POLL) replay_task(task, stream);
    kiln_stream_release(stream);
    end_task(task);
  }
  free(task);
  return NULL;
}

static void threads(live_t* live) {
  pthread_t all[THREADS];
  worker_t workers[THREADS];
  uint32_t begun = 0;
  for (; begun < THREADS; begun++) {
    workers[begun].live = live;
    workers[begun].number = begun;
    if (pthread_create(&all[begun], NULL, work, &workers[begun]) != 0) break;
  }
  IS(begun == THREADS);
  for (uint32_t i = 0; i < begun; i++) (void)pthread_join(all[i], NULL);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(live_t* live);
  } kStages[] = {{"strategies", strategies},
                 {"traps", trapping},
                 {"bodies", bodies},
                 {"choices", choices},
                 {"threads", threads}};
  static live_t live;
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  if (!OK(kiln_runtime_create(NULL, &live.runtime))) return 1;
  kiln_status_t status =
      kiln_runtime_open_device(live.runtime, device, &live.device);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  live.soft = kiln_device_info(live.device)->kind == KILN_DEVICE_KIND_SOFT;
  if (OK(kiln_dispatcher_create(live.device, NULL, &live.dispatcher))) {
    live.spread = pipeline_of(&live, kSpread);
    for (size_t i = 0; i < sizeof(kStages) / sizeof(kStages[0]); i++) {
      int before = failures;
      if (live.spread != NULL) kStages[i].run(&live);
      printf("%s on %s: %d failures\n", kStages[i].name, device,
             failures - before);
    }
    kiln_pipeline_release(live.spread);
  }
  kiln_dispatcher_release(live.dispatcher);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return failures == 0 ? 0 : 1;
}
