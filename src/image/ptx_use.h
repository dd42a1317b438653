// SPDX-License-Identifier: Apache-2.0
//
// image: what a kernel does with its parameters and its thread numbers, as far
// as the text of its PTX shows it. Pure.
//
// Nothing is executed, and the order of instructions does not count: what a
// register may contain is what any instruction may put into it.
#ifndef KILN_SRC_IMAGE_PTX_USE_H_
#define KILN_SRC_IMAGE_PTX_USE_H_

#include "image/ptx.h"
#include "kiln/image.h"

enum {
  KILNI_PTX_USE_PARAMS = 64,   // later ones are ignored
  KILNI_PTX_USE_KINDS = 4,     // KILN_IMAGE_ACCESS_*, 0 unused
  KILNI_PTX_USE_WIDTHS = 5,    // 1, 2, 4, 8, 16 bytes
  KILNI_PTX_USE_MEMBERS = 64,  // of structs by value; more are not looked at
  KILNI_PTX_USE_SWEEPS = 64,   // over a kernel, until nothing is new
  KILNI_PTX_USE_APART = 63     // that nothing is known to be nearer than
};

// How the memory that a parameter points to is read and written.
// thread-compatible
typedef struct kilni_image_ptx_param_use_t {
  // Bit w: there are accesses of 1 << w bytes of that kind.
  uint8_t widths[KILNI_PTX_USE_KINDS];
  // Their places are multiples of 1 << pitch apart; APART: not known.
  uint8_t pitch[KILNI_PTX_USE_KINDS][KILNI_PTX_USE_WIDTHS];
} kilni_image_ptx_param_use_t;

// How a member of a struct that is passed by value is read. thread-compatible
typedef struct kilni_image_ptx_member_use_t {
  uint32_t param;
  uint32_t offset;
  uint32_t kind;  // KILN_IMAGE_ACCESS_*
  uint32_t bytes;
} kilni_image_ptx_member_use_t;

// What is known of a kernel. thread-compatible
typedef struct kilni_image_ptx_use_t {
  kiln_image_threads_t threads;
  uint32_t param_count;  // at most KILNI_PTX_USE_PARAMS
  uint32_t member_count;
  kilni_image_ptx_param_use_t params[KILNI_PTX_USE_PARAMS];
  kilni_image_ptx_member_use_t members[KILNI_PTX_USE_MEMBERS];
} kilni_image_ptx_use_t;

// Of what a launch is sized by, the products that make a thread's rank.
enum {
  KILNI_PTX_SIZE_NONE = 0,
  KILNI_PTX_SIZE_X,        // %ntid.x
  KILNI_PTX_SIZE_Y,        // %ntid.y
  KILNI_PTX_SIZE_XY,       // their product
  KILNI_PTX_SIZE_GRID = 4  // more: the same of %nctaid
};

// Of where a thread is, what has not been scaled by all before it.
enum {
  KILNI_PTX_PLACE_Y = 1,      // %tid.y
  KILNI_PTX_PLACE_Z = 2,      // %tid.z
  KILNI_PTX_PLACE_ZY = 4,     // %tid.z * %ntid.y
  KILNI_PTX_PLACE_BLOCK = 3,  // shifted by so much: the same of %ctaid
  KILNI_PTX_PLACE_ALL = 7
};

// What the values of a register are taken for.
enum {
  KILNI_PTX_VALUE_F32 = 1,
  KILNI_PTX_VALUE_F64 = 2,
  KILNI_PTX_VALUE_BITS = 4,  // of anything else
  KILNI_PTX_VALUE_NUMBER =
      8,                     // an integer that is converted from or to a float
  KILNI_PTX_VALUE_HALF = 16  // f16 or bf16, or two of them in a word
};

// What is known of a register. one-thread
typedef struct kilni_image_ptx_fact_t {
  uint64_t params;  // whose addresses it may derive from
  uint32_t parent;  // a register whose values are the same; itself at the root
  uint8_t pitch;    // its values are multiples of 1 << pitch, but for constants
  uint8_t size;     // KILNI_PTX_SIZE_*
  uint8_t places;   // KILNI_PTX_PLACE_* bits
  uint8_t values;   // KILNI_PTX_VALUE_* bits, at the root
  uint8_t writes;   // 0, 1, or 2 for more
  uint8_t varies;   // 1: it is written with more than constants
  uint8_t mixed;    // places that are in it under others, by OR
  uint8_t reserved;
} kilni_image_ptx_fact_t;

// One look at a kernel. one-thread
typedef struct kilni_image_ptx_look_t {
  const kilni_image_ptx_module_t* module;
  const kilni_image_ptx_function_t* function;
  kilni_image_ptx_fact_t* facts;  // of the registers, then two for .shared and
                                  // two for .local memory of f32 and f64
  kilni_image_ptx_use_t* use;
  uint64_t unknown;  // parameters whose addresses can no longer be tracked
  uint8_t counted;   // places that are more than a rank's
  bool changed;
  bool only_printed;  // what is in .local memory goes to printf alone
} kilni_image_ptx_look_t;

// ---- Between the files ----

// The fact of a register that is an operand as a whole; NULL for others.
kilni_image_ptx_fact_t* kilni_image_ptx_fact(
    const kilni_image_ptx_look_t* look,
    const kilni_image_ptx_operand_t* operand);
// The first and the last type among the modifiers, and how many there are.
uint32_t kilni_image_ptx_form_types(const kilni_image_ptx_form_t* form,
                                    uint32_t out[2]);
bool kilni_image_ptx_form_has(const kilni_image_ptx_form_t* form,
                              uint32_t modifier);
// The address space that a load, store or atomic names; NONE is generic.
uint32_t kilni_image_ptx_form_space(const kilni_image_ptx_form_t* form);

// Where addresses of parameters go (ptx_use_address.c).
void kilni_image_ptx_use_addresses(kilni_image_ptx_look_t* look);
// How far apart they are (ptx_use_pitch.c).
void kilni_image_ptx_use_pitches(kilni_image_ptx_look_t* look);
// What the values of registers are taken for (ptx_use_value.c).
void kilni_image_ptx_use_values(kilni_image_ptx_look_t* look);
uint32_t kilni_image_ptx_values_of(const kilni_image_ptx_look_t* look,
                                   uint32_t index);
// Which dimensions of threads and blocks count (ptx_use_thread.c).
// OUT_OF_MEMORY.
kiln_status_t kilni_image_ptx_use_threads(kilni_image_ptx_look_t* look,
                                          kiln_allocator_t allocator);
// Notes in `look->use` which places and sizes the functions read that a call of
// the kernel may reach, and adds to `inout_counted` the places that count in
// them (ptx_use_call.c). OUT_OF_MEMORY.
kiln_status_t kilni_image_ptx_use_calls(kilni_image_ptx_look_t* look,
                                        kiln_allocator_t allocator,
                                        uint32_t* inout_counted);
// The same of one function, with what is known of its registers, and of all
// that is read so far if that does not come to an end.
uint32_t kilni_image_ptx_use_places(kilni_image_ptx_look_t* look);
void kilni_image_ptx_use_note_reads(kilni_image_ptx_look_t* look);
// How often each register is written, and with what (ptx_use.c).
void kilni_image_ptx_use_writes(const kilni_image_ptx_look_t* look);
// Whether what the kernel stores in .local memory is read by printf alone.
bool kilni_image_ptx_use_only_prints(const kilni_image_ptx_look_t* look);

// ---- The whole ----

// Looks at the kernel `function` of the module. Its time is linear in the
// kernel's instructions. OUT_OF_MEMORY.
kiln_status_t kilni_image_ptx_use_make(const kilni_image_ptx_module_t* module,
                                       uint32_t function,
                                       kiln_allocator_t allocator,
                                       kilni_image_ptx_use_t* out);

#endif  // KILN_SRC_IMAGE_PTX_USE_H_
