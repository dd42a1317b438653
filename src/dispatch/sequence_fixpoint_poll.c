// SPDX-License-Identifier: Apache-2.0
//
// dispatch: fixpoints whose rounds the host starts one by one.
//
// After each round a kernel of one thread writes its number and the flag to
// pinned memory, which the host polls: it waits for no stream. A round is
// started when the previous one is known to have changed something, so that no
// body is run more often than necessary.
#include "base/status_make.h"
#include "dispatch/sequence_fixpoint.h"

// How often the host looks before it asks the driver whether all is well.
enum { LOOKS = 64 };

kiln_status_t kilni_dispatch_fixpoint_make_poll(
    kilni_dispatch_fixpoint_t* fixpoint) {
  if (fixpoint->instance->is_replay) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            UNSUPPORTED,
            "a graph cannot contain a fixpoint whose rounds the host starts"),
        "run the sequence on a stream");
  }
  return kilni_dispatch_fixpoint_kernel(fixpoint->dispatcher,
                                        KILNI_FIXPOINT_TELL, &fixpoint->round);
}

// What round `number` has reported, or what prevented the report.
static kiln_status_t fixpoint_poll_wait_for(kilni_dispatch_fixpoint_t* fixpoint,
                                            kiln_stream_t* stream,
                                            uint32_t number,
                                            bool* out_changed) {
  const uint64_t* told = (const void*)kilni_dispatch_fixpoint_host(fixpoint);
  bool ready = false;
  for (;;) {
    uint64_t word = 0;
    for (int i = 0; i < LOOKS; i++) {
      word = __atomic_load_n(told, __ATOMIC_ACQUIRE);
      if ((uint32_t)word != number) continue;
      *out_changed = word >> 32 != 0;
      return kiln_ok();
    }
    if (ready) {
      return KILNI_FAIL(INTERNAL, "round %u of a fixpoint reported no result",
                        (unsigned)number);
    }
    KILNI_RETURN_IF_ERROR(kiln_stream_query(stream, &ready));
  }
}

static bool fixpoint_poll_has_trapped(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  for (uint32_t i = 1; i <= step->body; i++) {
    const kiln_prepared_t* prepared =
        fixpoint->instance->prepared[fixpoint->step + i];
    if (prepared != NULL && prepared->record != NULL &&
        kilni_dispatch_trap_is_set(prepared->record)) {
      return true;
    }
  }
  return false;
}

static kiln_status_t put_round(kilni_dispatch_fixpoint_t* fixpoint,
                               kiln_stream_t* stream, uint32_t number) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  uint32_t first = fixpoint->step + 1;
  const kiln_argument_t arguments[] = {
      kiln_arg_u64(step->to.address),
      kiln_arg_u64(kilni_dispatch_fixpoint_told(fixpoint)),
      kiln_arg_u32(number), kiln_arg_u32(number < fixpoint->limit)};
  KILNI_RETURN_IF_ERROR(kilni_dispatch_steps_put(fixpoint->instance, first,
                                                 first + step->body, stream));
  KILNI_RETURN_IF_ERROR(kiln_launch_set_all(fixpoint->round, arguments, 4));
  return kiln_launch_run(fixpoint->round, stream);
}

kiln_status_t kilni_dispatch_fixpoint_put_poll(
    kilni_dispatch_fixpoint_t* fixpoint, kiln_stream_t* stream) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  kiln_program_rounds_t* host = kilni_dispatch_fixpoint_host(fixpoint);
  uint32_t number = 0;
  bool changed = true;
  memset(host, 0, sizeof(*host));
  KILNI_RETURN_IF_ERROR(kiln_buffer_fill_async(step->to.buffer, stream,
                                               step->to.offset, 4, 0, 4));
  while (changed && number < fixpoint->limit &&
         !fixpoint_poll_has_trapped(fixpoint)) {
    number++;
    KILNI_RETURN_IF_ERROR(put_round(fixpoint, stream, number));
    KILNI_RETURN_IF_ERROR(
        fixpoint_poll_wait_for(fixpoint, stream, number, &changed));
  }
  host->end = fixpoint_poll_has_trapped(fixpoint) ? KILN_PROGRAM_ROUNDS_TRAPPED
              : changed                           ? KILN_PROGRAM_ROUNDS_LIMIT
                                                  : KILN_PROGRAM_ROUNDS_SETTLED;
  return kiln_ok();
}
