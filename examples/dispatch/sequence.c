// SPDX-License-Identifier: Apache-2.0
//
// examples: a sequence: steps that are checked once and run often, on a stream
// or as a CUDA graph. Here a bar cools down for 100 steps of time. Give a
// device, e.g. "soft", or none.
#include "example_check.h"

enum { N = 1024, STEPS = 100, BYTES = N * 4 };
static float start[N], on_stream[N], as_graph[N];
static const char text[] =
    "program cool(t: in f32[], next: out f32[length(t)], rate: f32)\n"
    "    work length(t) {\n"
    "  let i = global_id.x;\n"
    "  let last = u32(length(t)) - 1u32;\n"
    "  let left = t[select(i > 0u32, i - 1u32, 0u32)];\n"
    "  let right = t[select(i < last, i + 1u32, last)];\n"
    "  next[i] = t[i] + rate * (left - 2.0 * t[i] + right);\n"
    "}\n";

int main(int argc, char** argv) {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_program_t* program;
  kiln_pipeline_t* cool;
  const char* label = argc > 1 ? argv[1] : "auto";
  check(kiln_runtime_create(NULL, &runtime));
  check(kiln_runtime_open_device(runtime, label, &device));
  check(kiln_dispatcher_create(device, NULL, &dispatcher));
  kiln_string_view_t view = {text, sizeof(text) - 1};
  check(kiln_program_parse(view, NULL, NULL, &program));
  check(kiln_pipeline_create(dispatcher, program, NULL, &cool));

  kiln_resident_t a, b;
  check(kiln_resident_allocate(dispatcher, BYTES, &a));
  check(kiln_resident_allocate(dispatcher, BYTES, &b));
  for (int i = N / 4; i < N / 2; i++) start[i] = 100;

  // There and back again: two dispatches a round leave the bar in `a`.
  const kiln_binding_t there[] = {kiln_bind_resident(a), kiln_bind_resident(b),
                                  kiln_bind_f32(0.25f)};
  const kiln_binding_t back[] = {kiln_bind_resident(b), kiln_bind_resident(a),
                                 kiln_bind_f32(0.25f)};
  kiln_sequence_t* sequence;
  check(kiln_sequence_create(dispatcher, NULL, &sequence));
  check(kiln_sequence_begin_loop(sequence, STEPS / 2, NULL));
  check(kiln_sequence_add_dispatch(sequence, cool, there, 3, NULL, NULL));
  check(kiln_sequence_add_dispatch(sequence, cool, back, 3, NULL, NULL));
  check(kiln_sequence_end_body(sequence));
  check(kiln_sequence_finish(sequence));  // all that can be wrong, once

  check(kiln_resident_upload(dispatcher, NULL, a, 0, BYTES, start));
  check(kiln_sequence_run(sequence, NULL, NULL));
  check(kiln_resident_download(dispatcher, NULL, a, 0, BYTES, on_stream));

  // The same as a graph: one call of the driver for all 100 kernels.
  kiln_replay_t* replay;
  check(kiln_sequence_instantiate(sequence, NULL, &replay));
  check(kiln_resident_upload(dispatcher, NULL, a, 0, BYTES, start));
  check(kiln_replay_run(replay, NULL, NULL));
  check(kiln_resident_download(dispatcher, NULL, a, 0, BYTES, as_graph));

  int differ = 0;
  double sum = 0;
  for (int i = 0; i < N; i++) {
    differ += on_stream[i] != as_graph[i];
    sum += as_graph[i];
  }
  printf("%d steps on \"%s\", mean %.3f, %d of %d differ\n", STEPS,
         kiln_device_name(device), sum / N, differ, N);
  check(kiln_resident_free(dispatcher, a));
  check(kiln_resident_free(dispatcher, b));
  kiln_replay_release(replay);
  kiln_sequence_release(sequence);
  kiln_pipeline_release(cool);
  kiln_program_release(program);
  kiln_dispatcher_release(dispatcher);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return differ != 0 || sum / N < 24.99 || sum / N > 25.01;
}
