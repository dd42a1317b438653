// SPDX-License-Identifier: Apache-2.0
//
// compile: linking device code, with nvJitLink or with the driver.
//
// Which of the two is a question of versions, asked for each link anew. The
// answer is a pure function of facts, which needs neither: kiln_link_choose.
#ifndef KILN_LINK_H_
#define KILN_LINK_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/code.h"
#include "kiln/compat.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Who links. DRIVER is cuLinkCreate and its like.
enum {
  KILN_LINK_BACKEND_AUTO = 0,
  KILN_LINK_BACKEND_NVJITLINK = 1,
  KILN_LINK_BACKEND_DRIVER = 2,
};

// "auto", "nvjitlink", "driver"; "?" for a value that is none. Static.
// Since 0.1.
KILN_API const char* kiln_link_backend_word(uint32_t backend);

// What a linker writes while it links.
enum {
  KILN_LINK_LOG_ERROR = 1,
  KILN_LINK_LOG_INFO = 2,
};

// ---- The choice ----

// The first nvJitLink that has names without a version in them, 12.3. Older
// ones count as absent.
enum { KILN_LINK_NVJITLINK_LEAST = 12030 };

// An nvJitLink whose version cannot be read.
enum { KILN_LINK_NVJITLINK_UNKNOWN = 1 };

enum {
  KILN_LINK_MAX_NVJITLINKS = 64,
  KILN_LINK_MAX_INPUTS = 65536,
};

// One thing that goes into a link. thread-compatible
typedef struct kiln_link_input_fact_t {
  uint32_t format;    // KILN_CODE_FORMAT_*
  uint32_t line;      // of what made it, 13000 is 13.0; 0: not known
  uint32_t ptx_isa;   // of PTX: 10 * major + minor, 90 is 9.0; 0: not known
  uint32_t reserved;  // 0
  const char* name;   // for messages; may be NULL
} kiln_link_input_fact_t;

// What a choice is made from. thread-compatible
//
// Zero in any field is its default. Borrowed during the call.
typedef struct kiln_link_facts_t {
  uint32_t struct_size;  // sizeof(kiln_link_facts_t)
  uint32_t backend;      // KILN_LINK_BACKEND_*: the one that is wanted

  // KILN_CODE_FORMAT_*: CUBIN, PTX, LTOIR or RELOCATABLE. Default: CUBIN.
  uint32_t output;

  uint32_t lto;  // KILN_SWITCH_*: link-time optimisation. Default: as needed.

  // The driver that will load what is linked. Default: unknown.
  kiln_compat_driver_t driver;

  // The lines of the nvJitLinks there are, in the order of preference: 12090 is
  // 12.9. None: absent.
  const uint32_t* nvjitlinks;

  // What is to be linked, in any order.
  const kiln_link_input_fact_t* inputs;

  uint32_t nvjitlink_count;
  uint32_t input_count;
} kiln_link_facts_t;

// All defaults. Since 0.1.
static inline kiln_link_facts_t kiln_link_facts_default(void) {
  kiln_link_facts_t facts = {
      (uint32_t)sizeof(facts),
      0,
      0,
      0,
      {(uint32_t)sizeof(kiln_compat_driver_t), 0, 0, 0, NULL, NULL},
      NULL,
      NULL,
      0,
      0};
  return facts;
}

// What was chosen, and why. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_link_choice_t kiln_link_choice_t;

// Chooses who links. Pure: looks at nothing but `facts`.
//
//   * An nvJitLink not newer than the driver links, whatever its major: what it
//     makes, the driver loads.
//   * A newer one of the driver's major links too: its cubin follows
//     minor-version compatibility. Its PTX has its own ISA version, so PTX is
//     asked of one that the driver is not older than.
//   * One of a newer major makes what the driver cannot load. Without
//     link-time optimisation the driver links; with it another nvJitLink is
//     taken, or the link is refused.
//   * A linker is at least as new as what it is given.
//   * An unknown driver counts as new enough, and so does none at all, where
//     something is linked for another machine.
//
// OK also where the choice is a refusal: ask kiln_link_choice_status.
// INVALID_ARGUMENT: no input, an output that no linker makes, an input that no
// linker takes. LIMIT_EXCEEDED, OUT_OF_MEMORY. `allocator` may be NULL. The
// caller owns `*out_choice`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_choose(
    const kiln_link_facts_t* facts, const kiln_allocator_t* allocator,
    kiln_link_choice_t** out_choice);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_link_choice_retain(kiln_link_choice_t* choice);
KILN_API void kiln_link_choice_release(kiln_link_choice_t* choice);

// KILN_LINK_BACKEND_*; AUTO where the link is refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_backend(const kiln_link_choice_t* choice);

// Which nvJitLink, as an index into the facts; UINT32_MAX where none was
// chosen. Since 0.1.
KILN_API uint32_t kiln_link_choice_nvjitlink(const kiln_link_choice_t* choice);

// KILN_CODE_FORMAT_* of what will come out. Since 0.1.
KILN_API uint32_t kiln_link_choice_output(const kiln_link_choice_t* choice);

// True if link-time optimisation is on. Since 0.1.
KILN_API bool kiln_link_choice_lto(const kiln_link_choice_t* choice);

// COMPATIBLE: it will link and load, as far as versions go. UNKNOWN: chosen,
// and nobody promises it. INCOMPATIBLE: refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_verdict(const kiln_link_choice_t* choice);

// Why, one sentence each, the deciding one last. Borrowed; NULL out of range.
// Since 0.1.
KILN_API uint32_t
kiln_link_choice_reason_count(const kiln_link_choice_t* choice);
KILN_API const char* kiln_link_choice_reason(const kiln_link_choice_t* choice,
                                             uint32_t index);

// What to do about a refusal; NULL where nothing was refused. Borrowed.
// Since 0.1.
KILN_API const char* kiln_link_choice_fix(const kiln_link_choice_t* choice);

// OK, or why the link is refused, each time a new status:
//
//   NOT_FOUND     there is nothing to link with
//   UNSUPPORTED   only nvJitLink does this, and there is none, or it is too old
//   INCOMPATIBLE  the component that is too old is named
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_choice_status(const kiln_link_choice_t* choice);

KILN_EXTERN_C_END

#endif  // KILN_LINK_H_
