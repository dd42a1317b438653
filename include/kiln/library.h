// SPDX-License-Identifier: Apache-2.0
//
// library: programs that come with Kiln, planned once and run many times.
//
// Each entry is one or more programs (lib/*.kiln), whose texts are inside the
// library. A plan has their pipelines and the memory that they need between
// them; a run puts them on a stream, one behind the other.
//
//   // Once: what it is for, and how large its runs are at most.
//   kiln_library_options_t options = kiln_library_options_default();
//   options.type = KILN_PROGRAM_TYPE_U32;
//   options.count = n;
//   kiln_library_plan_create(dispatcher, "scan", &options, &plan);
//
//   // As often as one likes: x and y are resident buffers of 4 n bytes
//   // (kiln/resident.h), kiln_buffer_t or addresses on the device.
//   kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
//   kiln_library_plan_run(plan, NULL, bindings, 2);
//
//   // A run returns before it is done. What comes behind it on the stream sees
//   // what it has made: so does a download on the same one.
//   kiln_resident_download(dispatcher, NULL, y, 0, 4 * n, host);
//   kiln_library_plan_release(plan);
//
// docs/library/ has a page for each entry: what it takes, in which order, which
// options it has, its limits, and what it costs. examples/library/ has a whole
// program; `kiln run lib:NAME` runs an entry on files.
//
// Sizes: a buffer's elements are those of its bytes, so one that is larger than
// a run needs is bound by its part (kiln_bind_resident_range); what results
// need is told by kiln_library_plan_sizes. Buffers begin at a multiple of their
// element's bytes; 0 bytes are allowed everywhere. What a run writes may not
// overlap anything else that it takes, but where the entry's page allows it.
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

// ---- What there is ----

// A program of the library. thread-safe
//
// Static. Fields may be appended in later versions.
typedef struct kiln_library_entry_t {
  const char* name;         // "scan"
  const char* summary;      // one sentence
  kiln_string_view_t text;  // as lib/NAME.kiln; a NUL stands behind it

  // Of a text that is one of several launches of an entry, or one of its
  // forms: that entry's name. Such a part has no plan of its own. NULL of an
  // entry.
  const char* part_of;
} kiln_library_entry_t;

// How many there are, and one of them, in the order of their names; false,
// with all zero, out of range. Since 0.1.
KILN_API uint32_t kiln_library_count(void);
KILN_API bool kiln_library_entry(uint32_t index,
                                 kiln_library_entry_t* out_entry);

// The one of that name; false, with all zero, if there is none. Since 0.1.
KILN_API bool kiln_library_find(const char* name,
                                kiln_library_entry_t* out_entry);

// What a parameter of an entry is by default. thread-safe
//
// Data for those who run entries on files, as `kiln run lib:NAME` does: a plan
// takes no defaults. The grammar of `shape` and `value` stands at the head of
// lib/defaults.txt. Static. The caller allocates it, so it stays as it is.
typedef struct kiln_library_default_t {
  const char* parameter;  // its name
  uint32_t role;          // KILN_PROGRAM_ROLE_*; NONE of a number
  uint32_t is_sample;     // 1: only for a run that is given no input at all
  const char* shape;      // of a buffer: "h, w, 3"; "" if nothing is said
  const char* value;      // "200", "extent(x, -1)", "random 0 999"; of an
                          // output the name of a file for it
} kiln_library_default_t;

// What is said of one parameter of the entry `name`: those of its page, in
// their order. false, with all zero, out of range and for no such entry.
// Since 0.1.
KILN_API bool kiln_library_default(const char* name, uint32_t index,
                                   kiln_library_default_t* out_default);

// ---- Plans ----

// Programs that are loaded, with memory of their own. thread-compatible
//
// Reference-counted. Retains its dispatcher. Its runs share memory: they must
// be ordered behind each other, by one stream or by events, and be made by one
// thread at a time; whoever wants two at once makes two plans. What asks a plan
// something (info, parameter, sizes) may be called from any thread.
typedef struct kiln_library_plan_t kiln_library_plan_t;

// What elements are joined by.
enum {
  KILN_LIBRARY_ADD = 0,  // integers wrap
  KILN_LIBRARY_MIN = 1,  // a NaN only if all are; -0 is below 0
  KILN_LIBRARY_MAX = 2,
};

// What a plan is for. thread-compatible
//
// Zero in any field is its default. A field that an entry has no use for must
// be zero, `count` excepted; its page says which it uses.
typedef struct kiln_library_options_t {
  uint32_t struct_size;  // sizeof(kiln_library_options_t)

  // KILN_PROGRAM_TYPE_* of the elements. Default: what the entry's page says.
  uint32_t type;

  // KILN_PROGRAM_TYPE_* of values that go with keys, of sorts. Default: there
  // are none.
  uint32_t value_type;

  uint32_t operation;   // KILN_LIBRARY_ADD, ...: of fold and segments
  uint32_t exclusive;   // KILN_SWITCH_*: of scans. Default: off, inclusive
  uint32_t descending;  // KILN_SWITCH_*: of sorts. Default: off, ascending
  uint32_t max_ulp;     // kiln_pipeline_options_t.max_ulp. Default: strict

  // KILN_SWITCH_*: of compact: what is not kept stands behind what is, a
  // partition. Default: off.
  uint32_t rest;

  // Most elements of a run, by its first buffer or as the entry's page counts
  // them: fewer than 2^32 - 2^16. What a plan's own memory is for; entries with
  // such memory want it said, others pass it by.
  uint64_t count;

  // About how many elements a segment or a row has, which decides what is fast;
  // of fft and attention how many it has, exactly. Default: 32, of attention
  // 64.
  uint64_t segment;

  // Of bfs and components: most rounds until nothing changes. Default: as many
  // as any input can need.
  uint32_t rounds;

  // KILN_SWITCH_*: of bfs and components: each edge of the graph is there both
  // ways. Default: off.
  uint32_t symmetric;

  uint64_t bins;  // of histogram. Default: 256

  // Of merge_sort: the body of `fn before(a: T, b: T) -> bool`, in Kiln's own
  // language (docs/guide/programs.md): whether a stands in front of b, as
  // "return a % 10 < b % 10;". Read by kiln_library_plan_create, and not kept.
  // Default: the smaller one does.
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
// the machine code. `options` may be NULL. What is bound in a run is not known
// yet, so a plan is for any buffers.
//
//   NOT_FOUND         no entry is called so
//   INVALID_ARGUMENT  a part of an entry; a field that the entry does not use,
//                     or one out of its range; no `count` where it is needed,
//                     or one of 2^32 - 2^16 or more; an `order` with braces
//                     that are not its own
//   COMPILE_FAILED    an `order` that is not valid: the message has its line
//   UNSUPPORTED       a type that the entry does not do; those of
//                     kiln_pipeline_create
//   INCOMPATIBLE, DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY,
//   OUT_OF_MEMORY
//
// The caller owns `*out_plan`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_library_plan_create(
    kiln_dispatcher_t* dispatcher, const char* name,
    const kiln_library_options_t* options, kiln_library_plan_t** out_plan);

// Whether a plan could be made for these options, as far as that needs no
// device: the statuses of kiln_library_plan_create up to UNSUPPORTED of a type.
// For those who take an entry's text (kiln_library_find) with defines of their
// own: what a plan refuses, its text may compute wrongly. `allocator` may be
// NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_check(const char* name, const kiln_library_options_t* options,
                   const kiln_allocator_t* allocator);

// One reference more, one less. NULL is accepted. The last release of a
// plan with memory of its own waits for the device's work. Since 0.1.
KILN_API void kiln_library_plan_retain(kiln_library_plan_t* plan);
KILN_API void kiln_library_plan_release(kiln_library_plan_t* plan);

// Puts a run on `stream` (NULL: the dispatcher's first) and returns; errors of
// the run itself come with what waits for the stream. One binding for each
// parameter, in the order of the entry's page: resident buffers, buffers,
// pointers (which nobody can check) and scalars of the parameter's type. What
// is bound must live until the run is done. Allocates nothing, so that it may
// be captured into a graph (kiln/capture.h), but for entries with rounds.
//
//   INVALID_ARGUMENT  another number of bindings; more elements than the plan
//                     was made for; those of kiln_pipeline_dispatch: a scalar
//                     of another type, a buffer whose size is not what the
//                     others say, or that overlaps one that is written, where
//                     that would spoil a result
//   UNSUPPORTED       host memory
//   INVALID_STATE     rounds on a stream that is being captured
//   DEVICE_LOST, DRIVER_ERROR
//
// A run that fails may have put a part of its work on the stream.
//
// An entry with rounds keeps what they need for the buffers that it has them
// on, and keeps those buffers: a run on the same ones as the one before makes
// nothing and allocates nothing, one on others prepares them first. Statuses
// are those of kiln_sequence_finish and kiln_sequence_run, too; where the
// device has neither cooperative launches nor WHILE nodes it returns when they
// are done. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_run(kiln_library_plan_t* plan, kiln_stream_t* stream,
                      const kiln_binding_t* bindings, uint32_t binding_count);

// The same, with a pending, which the caller owns: it tells when the run is
// done, and how it ended. That of an entry with rounds tells NOT_CONVERGED if
// the last round that `rounds` allows changed something: results are as that
// round left them. INVALID_STATE on a stream that is being captured. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_begin(kiln_library_plan_t* plan, kiln_stream_t* stream,
                        const kiln_binding_t* bindings, uint32_t binding_count,
                        kiln_pending_t** out_pending);

// How many rounds the run that ended last has done: for when it is done; 0 of
// an entry without rounds, and before a run. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_library_plan_rounds(const kiln_library_plan_t* plan, uint32_t* out_rounds);

// What a plan is. thread-compatible
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

// Fills in how many elements parameters have, by those of the others and by
// values of scalars, as the entry's page says them: how large the buffers of
// results must be. `inout_sizes` has one for each parameter; a count that is
// not known is KILN_PROGRAM_COUNT_UNKNOWN, and bytes are the count times
// kiln_pipeline_parameter_t.type_bytes. A host's work: nothing is run. The
// plan's `count` is not looked at.
//
//   INVALID_ARGUMENT  a count that is neither given nor said by the others, or
//                     one that is given as something else than they say: the
//                     message names it
//   OUT_OF_RANGE      those of kiln_program_sizes
//
// Nothing is filled in then. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_library_plan_sizes(
    const kiln_library_plan_t* plan, kiln_program_size_t* inout_sizes);

// ---- Patterns ----

// Many patterns as one automaton. thread-safe
//
// Tables that are made on the host, and that a run of "aho_corasick" takes.
// Reference-counted. Nothing in it changes.
typedef struct kiln_library_patterns_t kiln_library_patterns_t;

// What is bound to a run, in the order of its page. thread-compatible
//
// Counts are of elements, of 4 bytes each but for `kinds`: host memory, to be
// uploaded once to buffers of that size. Only the library fills one; fields may
// be appended in later versions. All is borrowed from the patterns.
typedef struct kiln_library_patterns_tables_t {
  const uint8_t* kinds;  // 256 bytes: the class of each byte
  const uint32_t* next;  // for each state, by classes: the next state
  uint64_t next_count;   // states * classes
  const uint32_t* ends;  // for each state from `quiet` on: where its part of
  uint64_t end_count;    // `patterns` begins; and one more
  const uint32_t* patterns;  // pairs: which one, and its length
  uint64_t pattern_count;    // numbers, two for each pair
  uint32_t longest;          // bytes of the longest pattern
  uint32_t quiet;            // states at which no pattern ends; they are first
} kiln_library_patterns_tables_t;

// Makes the automaton of `count` patterns of any bytes, which may be 0 of them.
// Pattern k is number k; the same one may be there more than once. Patterns are
// not kept. `allocator` may be NULL. A host's work, of as long as there are
// states times classes.
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

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_library_patterns_retain(kiln_library_patterns_t* patterns);
KILN_API void kiln_library_patterns_release(kiln_library_patterns_t* patterns);

// All zero for NULL. Since 0.1.
KILN_API void kiln_library_patterns_tables(
    const kiln_library_patterns_t* patterns,
    kiln_library_patterns_tables_t* out_tables);

KILN_EXTERN_C_END

#endif  // KILN_LIBRARY_H_
