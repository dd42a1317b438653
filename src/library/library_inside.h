// SPDX-License-Identifier: Apache-2.0
//
// library: plans, and how one is made.
#ifndef KILN_SRC_LIBRARY_LIBRARY_INSIDE_H_
#define KILN_SRC_LIBRARY_LIBRARY_INSIDE_H_

#include <stdatomic.h>

#include "device/device_inside.h"
#include "kiln/dispatch.h"
#include "kiln/library.h"
#include "kiln/memory.h"
#include "kiln/pipeline.h"
#include "kiln/program.h"
#include "kiln/sequence.h"

enum {
  KILNI_LIBRARY_STEPS = 48,       // of a plan
  KILNI_LIBRARY_PLACES = 12,      // of a step
  KILNI_LIBRARY_PARAMETERS = 12,  // of a plan
  KILNI_LIBRARY_MEMORIES = 8,     // of a plan
  KILNI_LIBRARY_DEFINES = 12,     // of a step
};

// Elements of a run are fewer, so that no tile's end passes 2^32.
#define KILNI_LIBRARY_COUNT_MOST (UINT64_C(0xffffffff) - 65535)

// What a parameter of a step's program is bound to.
enum {
  KILNI_PLACE_GIVEN = 1,    // the binding `index` of the run
  KILNI_PLACE_MEMORY = 2,   // the plan's own memory `index`
  KILNI_PLACE_VALUE = 3,    // a u32 that never changes
  KILNI_PLACE_NOTHING = 4,  // no elements
  KILNI_PLACE_ALIKE = 5,    // memory `index`, as many bytes as binding 0 has
  KILNI_PLACE_WORDS = 6,    // binding `index` by words of 4 bytes; nothing if
                            // it does not begin at a word's place
};

// Steps that are done until none of them raises a flag. thread-compatible
//
// They and the steps behind them are a sequence, made for the bindings of a run
// and kept for the next one with the same.
typedef struct kilni_library_rounds_t {
  uint32_t first;  // step of the body
  uint32_t count;  // of its steps; 0: there are no rounds
  uint32_t flag;   // the plan's memory, 4 bytes
  uint32_t limit;
  kiln_sequence_t* sequence;  // NULL before the first run
  kiln_binding_t bindings[KILNI_LIBRARY_PARAMETERS];  // that it is for
} kilni_library_rounds_t;

// thread-safe
typedef struct kilni_library_place_t {
  uint32_t kind;  // KILNI_PLACE_*
  uint32_t index;
} kilni_library_place_t;

// One launch. thread-safe
typedef struct kilni_library_step_t {
  kiln_pipeline_t* pipeline;
  kiln_program_t* program;  // of it
  uint32_t place_count;
  uint32_t clears;  // KILN_SWITCH_*: of its outputs, before it
  kilni_library_place_t places[KILNI_LIBRARY_PLACES];
} kilni_library_step_t;

struct kiln_library_plan_t {
  kiln_dispatcher_t* dispatcher;
  kiln_allocator_t allocator;
  atomic_uint references;
  const char* name;  // static
  uint64_t count;
  uint64_t memory_bytes;
  uint32_t step_count;
  uint32_t memory_count;
  uint32_t parameter_count;
  kilni_library_step_t steps[KILNI_LIBRARY_STEPS];
  kilni_library_rounds_t rounds;
  // Two results that different launches write, so that no launch sees that one
  // stands where the other does; 0 and 0: there are none.
  uint32_t apart[2];
  kiln_buffer_t* memories[KILNI_LIBRARY_MEMORIES];
  // Which parameter of which step it is.
  struct {
    bool is_known;
    uint32_t step;
    uint32_t place;
  } parameters[KILNI_LIBRARY_PARAMETERS];
};

// A plan while it is made. one-thread
typedef struct kilni_library_make_t {
  kiln_library_plan_t* plan;
  kiln_library_entry_t entry;
  kiln_library_options_t options;
  kiln_program_define_t defines[KILNI_LIBRARY_DEFINES];  // of the next step
  uint32_t define_count;
} kilni_library_make_t;

// The device that the plan is for; of a plan that is only checked one that has
// as little as any.
const kiln_device_info_t* kilni_library_device(
    const kilni_library_make_t* make);

// Fills a plan by its options.
kiln_status_t kilni_library_recipe(kilni_library_make_t* make);

// A const or type of the next step's text. Both strings must outlive it.
void kilni_library_define(kilni_library_make_t* make, const char* name,
                          const char* value);

// For `place_count`: as many as the program has parameters.
#define KILNI_LIBRARY_EVERY UINT32_MAX

// Adds a launch of the program `name`; its parameters are bound to `places` in
// their order. The plan's parameters are the bindings that the steps name.
kiln_status_t kilni_library_add(kilni_library_make_t* make, const char* name,
                                const kilni_library_place_t* places,
                                uint32_t place_count, uint32_t clears);

// Runs the program `name` now, and waits for it: its one parameter is the
// plan's memory of that number, which it fills.
kiln_status_t kilni_library_once(kilni_library_make_t* make, const char* name,
                                 uint32_t memory);

// Adds another launch of the program of `step`, with other places.
void kilni_library_again(kilni_library_make_t* make, uint32_t step,
                         const kilni_library_place_t* places);

// Adds memory of the plan, which starts at zero.
kiln_status_t kilni_library_memory(kilni_library_make_t* make, uint64_t bytes);

// What is added between these two is a body: it is done until it leaves the
// u32 at the head of memory `flag` zero, at most `limit` times, or as the
// options say. A plan has one.
void kilni_library_begin_rounds(kilni_library_make_t* make, uint32_t flag,
                                uint32_t limit);
void kilni_library_end_rounds(kilni_library_make_t* make);

// Binds the parameters of a step for a run.
kiln_status_t kilni_library_bind(const kiln_library_plan_t* plan,
                                 const kilni_library_step_t* step,
                                 const kiln_binding_t* bindings,
                                 kiln_binding_t* out_bound);

// Runs the steps from the body on. `out_pending` may be NULL.
kiln_status_t kilni_library_run_rounds(kiln_library_plan_t* plan,
                                       kiln_stream_t* stream,
                                       const kiln_binding_t* bindings,
                                       kiln_pending_t** out_pending);

// Fields of the options that an entry uses.
enum {
  KILNI_USES_TYPE = 1,
  KILNI_USES_VALUE = 2,
  KILNI_USES_OPERATION = 4,
  KILNI_USES_EXCLUSIVE = 8,
  KILNI_USES_COUNT = 16,
  KILNI_USES_SEGMENT = 32,
  KILNI_USES_DESCENDING = 64,
  KILNI_USES_ROUNDS = 128,
  KILNI_USES_SYMMETRIC = 256,
  KILNI_USES_BINS = 512,
  KILNI_USES_ORDER = 1024,
  KILNI_USES_REST = 2048,
};

// INVALID_ARGUMENT for a field that is said and not among `what`, for one out
// of its range, and for no `count` where it is among them.
kiln_status_t kilni_library_uses(const kilni_library_make_t* make,
                                 uint32_t what);

// UNSUPPORTED: that type, which is none of `those`.
kiln_status_t kilni_library_alien_type(const kilni_library_make_t* make,
                                       uint32_t type, const char* those);

// The text of an entry with `order` as the body of its function `before`: in a
// block of `*out_bytes`, which the caller frees. Refuses what is no body.
kiln_status_t kilni_library_reorder(const kilni_library_make_t* make,
                                    const kiln_library_entry_t* entry,
                                    char** out_text, size_t* out_bytes);

// The recipe of library_order.c.
kiln_status_t kilni_library_make_merge_sort(kilni_library_make_t* make);

// Recipes of library_graphs.c.
kiln_status_t kilni_library_make_bfs(kilni_library_make_t* make);
kiln_status_t kilni_library_make_components(kilni_library_make_t* make);
kiln_status_t kilni_library_make_spmv(kilni_library_make_t* make);

// Recipes of library_numbers.c.
kiln_status_t kilni_library_make_attention(kilni_library_make_t* make);
kiln_status_t kilni_library_make_convolution(kilni_library_make_t* make);
kiln_status_t kilni_library_make_fft(kilni_library_make_t* make);
kiln_status_t kilni_library_make_histogram(kilni_library_make_t* make);
kiln_status_t kilni_library_make_matmul(kilni_library_make_t* make);

// INVALID_ARGUMENT, unless `options.count` is there and not too large.
kiln_status_t kilni_library_need_count(const kilni_library_make_t* make);

#endif  // KILN_SRC_LIBRARY_LIBRARY_INSIDE_H_
