// SPDX-License-Identifier: Apache-2.0
//
// library: programs that come with Kiln, planned once and run many times.
//
// Each entry is one or more programs (lib/*.kiln), whose texts are inside the
// library. A plan has their pipelines and the memory for intermediate results;
// a run puts them on a stream, one after another.
//
//   // Once: the purpose, and the maximum size of its runs.
//   kiln_library_options_t options = kiln_library_options_default();
//   options.type = KILN_PROGRAM_TYPE_U32;
//   options.count = n;
//   kiln_library_plan_create(dispatcher, "scan", &options, &plan);
//
//   // Any number of times: x and y are resident buffers of 4 n bytes
//   // (kiln/resident.h), kiln_buffer_t or addresses on the device.
//   kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
//   kiln_library_plan_run(plan, NULL, bindings, 2);
//
//   // A run returns before it is done. Later work on the stream sees its
//   // results: so does a download on the same stream.
//   kiln_resident_download(dispatcher, NULL, y, 0, 4 * n, host);
//   kiln_library_plan_release(plan);
//
// docs/library/ has a page for each entry: its parameters and their order, its
// options, its limits, and its cost. examples/library/ has a complete program;
// `kiln run lib:NAME` runs an entry on files.
//
// Sizes: a buffer's elements are those of its bytes, so for one that is larger
// than a run needs, bind a range (kiln_bind_resident_range);
// kiln_library_plan_sizes reports the sizes of results. Buffers begin at a
// multiple of their element's bytes; 0 bytes are allowed everywhere. Written
// buffers may not overlap any other buffer of the run, except where the entry's
// page allows it.
#ifndef KILN_LIBRARY_H_
#define KILN_LIBRARY_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/dispatch.h"
#include "kiln/pipeline.h"
#include "kiln/program.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// ---- Entries ----

// A program of the library. thread-safe
//
// Static. Fields may be appended in later versions.
typedef struct kiln_library_entry_t {
  const char* name;         // "scan"
  const char* summary;      // one sentence
  kiln_string_view_t text;  // as lib/NAME.kiln; followed by a NUL

  // For a text that is one of several launches of an entry, or one of its
  // variants: that entry's name. Such a part has no plan of its own. NULL for
  // an entry.
  const char* part_of;
} kiln_library_entry_t;

// The number of programs, and one of them, sorted by name; false, with all
// zero, out of range. Since 0.1.
KILN_API uint32_t kiln_library_count(void);
KILN_API bool kiln_library_entry(uint32_t index,
                                 kiln_library_entry_t* out_entry);

// The program of that name; false, with all zero, if there is none. Since 0.1.
KILN_API bool kiln_library_find(const char* name,
                                kiln_library_entry_t* out_entry);

// The default of an entry's parameter. thread-safe
//
// Data for programs that run entries on files, as `kiln run lib:NAME` does: a
// plan takes no defaults. The grammar of `shape` and `value` is at the
// beginning of lib/defaults.txt. Static. The caller allocates it, so its layout
// is fixed.
typedef struct kiln_library_default_t {
  const char* parameter;  // its name
  uint32_t role;          // KILN_PROGRAM_ROLE_*; NONE for a number
  uint32_t is_sample;     // 1: only for a run that is given no input at all
  const char* shape;      // of a buffer: "h, w, 3"; "" if unspecified
  const char* value;      // "200", "extent(x, -1)", "random 0 999"; of an
                          // output the name of a file for it
} kiln_library_default_t;

// The default of one parameter of the entry `name`, in the order of its page.
// false, with all zero, out of range and for no such entry. Since 0.1.
KILN_API bool kiln_library_default(const char* name, uint32_t index,
                                   kiln_library_default_t* out_default);

// ---- Plans ----

// Loaded programs, with memory of their own. thread-compatible
//
// Reference-counted. Retains its dispatcher. Its runs share memory: they must
// be ordered one after another, by one stream or by events, and be submitted by
// one thread at a time; for concurrent runs create several plans. Queries of a
// plan (info, parameter, sizes) may be called from any thread.
typedef struct kiln_library_plan_t kiln_library_plan_t;

// How elements are combined.
enum {
  KILN_LIBRARY_ADD = 0,  // integers wrap
  KILN_LIBRARY_MIN = 1,  // a NaN only if all are; -0 is below 0
  KILN_LIBRARY_MAX = 2,
};

// The options of a plan. thread-compatible
//
// Zero in any field is its default. A field that an entry does not use must be
// zero, except `count`; its page lists the fields in use.
typedef struct kiln_library_options_t {
  uint32_t struct_size;  // sizeof(kiln_library_options_t)

  // KILN_PROGRAM_TYPE_* of the elements. Default: see the entry's page.
  uint32_t type;

  // KILN_PROGRAM_TYPE_* of values associated with keys, of sorts. Default:
  // none.
  uint32_t value_type;

  uint32_t operation;   // KILN_LIBRARY_ADD, ...: of fold and segments
  uint32_t exclusive;   // KILN_SWITCH_*: of scans. Default: off, inclusive
  uint32_t descending;  // KILN_SWITCH_*: of sorts. Default: off, ascending
  uint32_t max_ulp;     // kiln_pipeline_options_t.max_ulp. Default: strict

  // KILN_SWITCH_*: of compact: put rejected elements after the kept ones, a
  // partition. Default: off.
  uint32_t rest;

  // Maximum elements of a run, by its first buffer or as the entry's page
  // counts them: fewer than 2^32 - 2^16. Determines the size of a plan's own
  // memory; entries with such memory require it, others ignore it.
  uint64_t count;

  // The approximate number of elements of a segment or a row, for tuning; of
  // fft and attention the exact number. Default: 32, of attention 64.
  uint64_t segment;

  // Of bfs and components: maximum rounds until nothing changes. Default: as
  // many as any input can need.
  uint32_t rounds;

  // KILN_SWITCH_*: of bfs and components: each edge of the graph is present in
  // both directions. Default: off.
  uint32_t symmetric;

  uint64_t bins;  // of histogram. Default: 256

  // Of merge_sort: the body of `fn before(a: T, b: T) -> bool`, in Kiln's own
  // language (docs/guide/programs.md): whether a comes before b, as "return a %
  // 10 < b % 10;". Read by kiln_library_plan_create, and not kept. Default:
  // ascending.
  const char* order;
} kiln_library_options_t;

// All defaults. Since 0.1.
static inline kiln_library_options_t kiln_library_options_default(void) {
  kiln_library_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL};
  return options;
}

// Reads, lowers and loads what the entry `name` needs for these options, and
// allocates its memory: milliseconds, or less where the dispatcher's cache has
// the machine code. `options` may be NULL. A plan does not depend on the
// buffers bound in a run.
//
//   NOT_FOUND         no entry has this name
//   INVALID_ARGUMENT  a part of an entry; a field that the entry does not use,
//                     or one out of its range; no `count` where it is needed,
//                     or one of 2^32 - 2^16 or more; an `order` with braces
//                     that are not its own
//   COMPILE_FAILED    an `order` that is not valid: the message has its line
//   UNSUPPORTED       a type that the entry does not support; those of
//                     kiln_pipeline_create
//   INCOMPATIBLE, DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY,
//   OUT_OF_MEMORY
//
// The caller owns `*out_plan`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_library_plan_create(
    kiln_dispatcher_t* dispatcher, const char* name,
    const kiln_library_options_t* options, kiln_library_plan_t** out_plan);

// Whether a plan could be made for these options, as far as this needs no
// device: the statuses of kiln_library_plan_create up to UNSUPPORTED of a type.
// For code that uses an entry's text (kiln_library_find) with its own defines:
// the text may compute wrong results where a plan refuses. `allocator` may be
// NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_check(const char* name, const kiln_library_options_t* options,
                   const kiln_allocator_t* allocator);

// Adds or releases a reference. NULL is accepted. The last release of a plan
// with memory of its own waits for the device's work. Since 0.1.
KILN_API void kiln_library_plan_retain(kiln_library_plan_t* plan);
KILN_API void kiln_library_plan_release(kiln_library_plan_t* plan);

// Puts a run on `stream` (NULL: the dispatcher's first) and returns; errors of
// the run itself come with what waits for the stream. One binding for each
// parameter, in the order of the entry's page: resident buffers, buffers,
// pointers (which are not checked) and scalars of the parameter's type. Bound
// memory must stay valid until the run is done. Allocates nothing, so that it
// may be captured into a graph (kiln/capture.h), except for entries with
// rounds.
//
//   INVALID_ARGUMENT  another number of bindings; more elements than the plan
//                     was made for; those of kiln_pipeline_dispatch: a scalar
//                     of another type, a buffer whose size contradicts the
//                     others, or that overlaps one that is written, where
//                     that would spoil a result
//   UNSUPPORTED       host memory
//   INVALID_STATE     rounds on a stream that is being captured
//   DEVICE_LOST, DRIVER_ERROR
//
// A failed run may have put part of its work on the stream.
//
// An entry with rounds retains its buffers and the state prepared for them: a
// run on the same buffers as the previous one allocates nothing, one on others
// prepares them first. Statuses are those of kiln_sequence_finish and
// kiln_sequence_run, too; if the device has neither cooperative launches nor
// WHILE nodes, it returns when they are done. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_run(kiln_library_plan_t* plan, kiln_stream_t* stream,
                      const kiln_binding_t* bindings, uint32_t binding_count);

// The same, with a pending, which the caller owns: it reports when the run is
// done, and its outcome. For an entry with rounds it reports NOT_CONVERGED if
// the last round that `rounds` allows changed something: the results are those
// of that round. INVALID_STATE on a stream that is being captured. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_begin(kiln_library_plan_t* plan, kiln_stream_t* stream,
                        const kiln_binding_t* bindings, uint32_t binding_count,
                        kiln_pending_t** out_pending);

// The number of rounds of the last completed run; call it when that is done. 0
// for an entry without rounds, and before a run. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_rounds(const kiln_library_plan_t* plan, uint32_t* out_rounds);

// Properties of a plan. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_library_plan_info_t {
  const char* name;          // of its entry. Static
  uint64_t temporary_bytes;  // of its own memory
  uint32_t parameter_count;  // bindings of a run
  uint32_t launches;         // of a run with one round
} kiln_library_plan_info_t;

// All zero for NULL. Since 0.1.
KILN_API void kiln_library_plan_info(const kiln_library_plan_t* plan,
                                     kiln_library_plan_info_t* out_info);

// One parameter; false, with all zero, out of range. Borrowed from the plan.
// Since 0.1.
KILN_API bool kiln_library_plan_parameter(
    const kiln_library_plan_t* plan, uint32_t index,
    kiln_pipeline_parameter_t* out_parameter);

// Computes the element counts of parameters from those of the others and from
// values of scalars, by the rules of the entry's page: the required sizes of
// result buffers. `inout_sizes` has one for each parameter; a count that is not
// known is KILN_PROGRAM_COUNT_UNKNOWN, and bytes are the count times
// kiln_pipeline_parameter_t.type_bytes. Computed on the host: nothing is run.
// Ignores the plan's `count`.
//
//   INVALID_ARGUMENT  a count neither given nor determined by the others, or
//                     one that contradicts them: the
//                     message names it
//   OUT_OF_RANGE      those of kiln_program_sizes
//
// Nothing is filled in on failure. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_library_plan_sizes(
    const kiln_library_plan_t* plan, kiln_program_size_t* inout_sizes);

// ---- Patterns ----

// Many patterns as one automaton. thread-safe
//
// Tables made on the host, as inputs of a run of "aho_corasick".
// Reference-counted. Immutable.
typedef struct kiln_library_patterns_t kiln_library_patterns_t;

// The tables to bind to a run, in the order of its page. thread-compatible
//
// Counts are in elements, of 4 bytes each except for `kinds`: host memory, to
// be uploaded once to buffers of that size. Only the library fills one; fields
// may be appended in later versions. All is borrowed from the patterns.
typedef struct kiln_library_patterns_tables_t {
  const uint8_t* kinds;  // 256 bytes: the class of each byte
  const uint32_t* next;  // for each state, by classes: the next state
  uint64_t next_count;   // states * classes
  const uint32_t* ends;  // for each state from `quiet` on: where its part of
  uint64_t end_count;    // `patterns` begins; and one more
  const uint32_t* patterns;  // pairs: which one, and its length
  uint64_t pattern_count;    // numbers, two for each pair
  uint32_t longest;          // bytes of the longest pattern
  uint32_t quiet;            // states where no pattern ends; they come first
} kiln_library_patterns_tables_t;

// Makes the automaton of `count` patterns of any bytes; `count` may be 0.
// Pattern k is number k; duplicates are allowed. Patterns are not kept.
// `allocator` may be NULL. Computed on the host, in time proportional to states
// times classes.
//
//   INVALID_ARGUMENT  a pattern is empty: the message has its number
//   LIMIT_EXCEEDED    more than 2^26 entries of `next`, or than 2^24 pairs
//   OUT_OF_MEMORY
//
// The caller owns `*out_patterns`. Since 0.1. Source: Aho and Corasick,
// "Efficient String Matching", 1975.
KILN_API KILN_MUST_USE kiln_status_t kiln_library_patterns_create(
    const kiln_string_view_t* patterns, uint32_t count,
    const kiln_allocator_t* allocator, kiln_library_patterns_t** out_patterns);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_library_patterns_retain(kiln_library_patterns_t* patterns);
KILN_API void kiln_library_patterns_release(kiln_library_patterns_t* patterns);

// All zero for NULL. Since 0.1.
KILN_API void kiln_library_patterns_tables(
    const kiln_library_patterns_t* patterns,
    kiln_library_patterns_tables_t* out_tables);

KILN_EXTERN_C_END

#endif  // KILN_LIBRARY_H_
