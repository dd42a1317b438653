// SPDX-License-Identifier: Apache-2.0
//
// table: a fault of a kernel in words: what it did, where, what to do.
//
// Nothing here asks a device, a clock or the call that met the fault, so that
// one fault has one text.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/demangle.h"
#include "base/str.h"
#include "kiln/fault.h"

enum { TEXT_BYTES = 4096, NAME_BYTES = 600, PHRASE_BYTES = 256 };

// one-thread
typedef struct text_t {
  char data[TEXT_BYTES];
  size_t size;
} text_t;

static void fault_text_add(text_t* text, const char* format, ...)
    KILN_PRINTF(2, 3);
static void fault_text_add(text_t* text, const char* format, ...) {
  size_t space = sizeof(text->data) - text->size;
  va_list args;
  va_start(args, format);
  int size = vsnprintf(text->data + text->size, space, format, args);
  va_end(args);
  if (size > 0) text->size += (size_t)size < space ? (size_t)size : space - 1;
}

static void fault_text_give(const text_t* text, size_t capacity, char* buffer,
                            size_t* out_length) {
  if (out_length != NULL) *out_length = text->size;
  if (capacity == 0) return;
  size_t copied = text->size < capacity ? text->size : capacity - 1;
  memcpy(buffer, text->data, copied);
  buffer[copied] = 0;
}

static const char* const kKinds[KILN_FAULT_KIND_COUNT] = {
    [KILN_FAULT_NONE] = "none",
    [KILN_FAULT_OUT_OF_BOUNDS] = "out_of_bounds",
    [KILN_FAULT_NULL_POINTER] = "null_pointer",
    [KILN_FAULT_ILLEGAL_ADDRESS] = "illegal_address",
    [KILN_FAULT_READ_ONLY] = "read_only",
    [KILN_FAULT_MISALIGNED] = "misaligned",
    [KILN_FAULT_USE_AFTER_FREE] = "use_after_free",
    [KILN_FAULT_DOUBLE_FREE] = "double_free",
    [KILN_FAULT_INVALID_FREE] = "invalid_free",
    [KILN_FAULT_UNINITIALIZED] = "uninitialized",
    [KILN_FAULT_ASSERT] = "assert",
    [KILN_FAULT_TRAP] = "trap",
    [KILN_FAULT_DEADLOCK] = "deadlock",
    [KILN_FAULT_STACK_OVERFLOW] = "stack_overflow",
    [KILN_FAULT_ILLEGAL_INSTRUCTION] = "illegal_instruction",
    [KILN_FAULT_HOST_MEMORY] = "host_memory",
    [KILN_FAULT_TIME_LIMIT] = "time_limit",
    [KILN_FAULT_GRAPH_LOOP] = "graph_loop",
    [KILN_FAULT_WORK] = "work",
};

const char* kiln_fault_kind_name(uint32_t kind) {
  return kKinds[kind < KILN_FAULT_KIND_COUNT ? kind : KILN_FAULT_NONE];
}

// A name as its source has it; as it is, if that is not known.
static void write_name(const char* name, char* out) {
  if (kilni_base_demangle(name, true, NAME_BYTES, out)) return;
  (void)snprintf(out, NAME_BYTES, "%s", name);
}

void kiln_fault_kernel(const kiln_fault_t* fault, size_t capacity, char* buffer,
                       size_t* out_length) {
  text_t text = {.size = 0};
  char name[NAME_BYTES];
  write_name(fault->kernel, name);
  fault_text_add(&text, "%s", name);
  fault_text_give(&text, capacity, buffer, out_length);
}

// ---- What it did ----

static const char* plural(uint64_t count) {
  return count == 1 ? "" : "s";
}

static const char* fault_text_access_word(const kiln_fault_t* fault) {
  switch (fault->access) {
    case KILN_FAULT_ACCESS_STORE:
      return "store";
    case KILN_FAULT_ACCESS_ATOMIC:
      return "atomic";
    default:
      return "load";
  }
}

static void fault_text_add_access(text_t* text, const kiln_fault_t* fault) {
  fault_text_add(text, "%s of %" PRIu64 " byte%s",
                 fault_text_access_word(fault), fault->bytes,
                 plural(fault->bytes));
}

// "an" before eight, eleven, eighteen and what begins with them.
static const char* article(uint64_t count) {
  while (count >= 1000) count /= 1000;
  bool is_an = count == 8 || count == 11 || count == 18 ||
               (count >= 80 && count < 90) || (count >= 800 && count < 900);
  return is_an ? "an" : "a";
}

// "p (32 bytes)", "a 32-byte allocation".
static void add_memory(text_t* text, const kiln_fault_t* fault) {
  static const char* const kOne[KILN_FAULT_MEMORY_COUNT] = {
      [KILN_FAULT_MEMORY_ALLOCATION] = "allocation",
      [KILN_FAULT_MEMORY_HOST] = "allocation of the host",
      [KILN_FAULT_MEMORY_VARIABLE] = "variable",
      [KILN_FAULT_MEMORY_HEAP_BLOCK] = "heap block"};
  static const char* const kOwn[KILN_FAULT_MEMORY_COUNT] = {
      [KILN_FAULT_MEMORY_SHARED] = "the block's shared memory",
      [KILN_FAULT_MEMORY_LOCAL] = "the thread's local memory",
      [KILN_FAULT_MEMORY_PARAMETERS] = "the kernel's parameters"};
  uint32_t memory = fault->memory < KILN_FAULT_MEMORY_COUNT ? fault->memory : 0;
  const char* name = fault->buffer_name;
  if (name[0] == 0) name = kOwn[memory];
  if (name != NULL) {
    fault_text_add(text, "%s (%" PRIu64 " byte%s)", name, fault->buffer_bytes,
                   plural(fault->buffer_bytes));
  } else {
    fault_text_add(text, "%s %" PRIu64 "-byte %s", article(fault->buffer_bytes),
                   fault->buffer_bytes,
                   kOne[memory] != NULL ? kOne[memory] : "allocation");
  }
}

static bool fault_text_is_before(const kiln_fault_t* fault) {
  return fault->offset < 0;
}

static bool is_past(const kiln_fault_t* fault) {
  return !fault_text_is_before(fault) &&
         (uint64_t)fault->offset >= fault->buffer_bytes;
}

// How far outside it was, or at which byte.
static void add_position(text_t* text, const kiln_fault_t* fault) {
  if (fault->memory == KILN_FAULT_MEMORY_NONE) return;
  uint64_t bytes = (uint64_t)fault->offset;
  const char* words = "past";
  if (fault_text_is_before(fault)) {
    bytes = 0 - bytes;
    words = "before";
  } else if (is_past(fault)) {
    bytes -= fault->buffer_bytes;
  } else {
    fault_text_add(text, ", at byte %" PRIu64 " of ", bytes);
    add_memory(text, fault);
    return;
  }
  fault_text_add(text, ", %" PRIu64 " byte%s %s ", bytes, plural(bytes), words);
  add_memory(text, fault);
}

static void add_null(text_t* text, const kiln_fault_t* fault) {
  fault_text_add_access(text, fault);
  fault_text_add(text, " through a null pointer");
  if (fault->address == 0) return;
  fault_text_add(text, " plus %" PRIu64 " byte%s", fault->address,
                 plural(fault->address));
}

// What `detail` begins with, for the kinds that have it there.
static void add_first_line(text_t* text, const kiln_fault_t* fault,
                           const char* otherwise) {
  size_t size = strcspn(fault->detail, "\n");
  if (size == 0) {
    fault_text_add(text, "%s", otherwise);
  } else {
    fault_text_add(text, "%.*s", (int)size, fault->detail);
  }
}

static void fault_text_add_instruction(text_t* text,
                                       const kiln_fault_t* fault) {
  switch (fault->cause) {
    case KILN_FAULT_CAUSE_CALL:
      fault_text_add(
          text, "call through a pointer that is not a function of its type");
      break;
    case KILN_FAULT_CAUSE_BRANCH:
      fault_text_add(text, "branch by an index that its table does not have");
      break;
    case KILN_FAULT_CAUSE_BARRIER_NUMBER:
      fault_text_add(text, "barrier with an invalid number or count");
      break;
    case KILN_FAULT_CAUSE_MBARRIER:
      fault_text_add(text, "mbarrier with an invalid count");
      break;
    default:
      fault_text_add(text, "illegal instruction");
      break;
  }
}

static void add_use(text_t* text, const kiln_fault_t* fault) {
  bool heap = fault->memory == KILN_FAULT_MEMORY_HEAP_BLOCK;
  fault_text_add(text,
                 "%s: ", heap ? "use of a freed heap block" : "use after free");
  fault_text_add_access(text, fault);
  add_position(text, fault);
}

static void add_message(text_t* text, const kiln_fault_t* fault) {
  switch (fault->kind) {
    case KILN_FAULT_OUT_OF_BOUNDS:
      fault_text_add(text, "out-of-bounds ");
      fault_text_add_access(text, fault);
      add_position(text, fault);
      break;
    case KILN_FAULT_NULL_POINTER:
      add_null(text, fault);
      break;
    case KILN_FAULT_ILLEGAL_ADDRESS:
      fault_text_add_access(text, fault);
      if (fault->cause == KILN_FAULT_CAUSE_NO_ACCESS) {
        fault_text_add(text, " to memory that this device may not access");
        add_position(text, fault);
      } else {
        fault_text_add(text, " at an address where the device has no memory");
      }
      break;
    case KILN_FAULT_READ_ONLY:
      fault_text_add_access(text, fault);
      fault_text_add(text, " to memory that is read-only");
      add_position(text, fault);
      break;
    case KILN_FAULT_MISALIGNED:
      fault_text_add(text, "misaligned ");
      fault_text_add_access(text, fault);
      add_position(text, fault);
      break;
    case KILN_FAULT_USE_AFTER_FREE:
      add_use(text, fault);
      break;
    case KILN_FAULT_DOUBLE_FREE:
      fault_text_add(text,
                     "free() of a block that was freed already, of %" PRIu64
                     " byte%s",
                     fault->buffer_bytes, plural(fault->buffer_bytes));
      break;
    case KILN_FAULT_INVALID_FREE:
      fault_text_add(text, "free() of an address that malloc() did not return");
      break;
    case KILN_FAULT_UNINITIALIZED:
      fault_text_add(text, "read of uninitialised memory: ");
      fault_text_add_access(text, fault);
      add_position(text, fault);
      break;
    case KILN_FAULT_TRAP:
      fault_text_add(text, "trap: the kernel stopped itself");
      break;
    case KILN_FAULT_DEADLOCK:
      fault_text_add(text,
                     "deadlock: every thread of a block waits for another");
      break;
    case KILN_FAULT_ILLEGAL_INSTRUCTION:
      fault_text_add_instruction(text, fault);
      break;
    case KILN_FAULT_TIME_LIMIT:
      fault_text_add(text, "%s had not ended within its time limit",
                     fault->cause == KILN_FAULT_CAUSE_LOOP ? "a loop of a graph"
                     : fault->cause == KILN_FAULT_CAUSE_WAIT
                         ? "a wait for a value"
                         : "the kernel");
      break;
    default:
      add_first_line(text, fault, kiln_fault_kind_name(fault->kind));
      break;
  }
}

void kiln_fault_message(const kiln_fault_t* fault, size_t capacity,
                        char* buffer, size_t* out_length) {
  text_t text = {.size = 0};
  add_message(&text, fault);
  fault_text_give(&text, capacity, buffer, out_length);
}

// ---- Where ----

static bool says_first_line(const kiln_fault_t* fault) {
  switch (fault->kind) {
    case KILN_FAULT_ASSERT:
    case KILN_FAULT_STACK_OVERFLOW:
    case KILN_FAULT_HOST_MEMORY:
    case KILN_FAULT_GRAPH_LOOP:
    case KILN_FAULT_WORK:
      return true;
    default:
      return false;
  }
}

static void fault_text_add_kernel(text_t* text, const kiln_fault_t* fault) {
  char name[NAME_BYTES];
  if (fault->kernel[0] != 0) {
    write_name(fault->kernel, name);
    fault_text_add(text, "in kernel \"%s\"", name);
    if (fault->function[0] != 0) {
      write_name(fault->function, name);
      fault_text_add(text, ", function \"%s\" (call depth %" PRIu32 ")", name,
                     fault->call_depth);
    }
    fault_text_add(text, "\n");
  }
  if (fault->node[0] == 0) return;
  (void)kilni_base_show(fault->node, sizeof(name), name);
  fault_text_add(text, "in graph node \"%s\"\n", name);
}

static void fault_text_add_lines(text_t* text, const kiln_fault_t* fault) {
  if (fault->source_line != 0) {
    fault_text_add(text, "at %s:%" PRIu32, fault->source, fault->source_line);
    if (fault->call_line != 0) {
      fault_text_add(text, ", called at %s:%" PRIu32, fault->call_source,
                     fault->call_line);
    }
    if (fault->ptx_line != 0) {
      fault_text_add(text, ", PTX line %" PRIu32, fault->ptx_line);
    }
    fault_text_add(text, "\n");
  } else if (fault->ptx_line != 0) {
    fault_text_add(text, "at PTX line %" PRIu32 "\n", fault->ptx_line);
  }
}

static void add_thread(text_t* text, const kiln_fault_t* fault) {
  if (fault->has_thread == 0) return;
  fault_text_add(text,
                 "thread (%" PRIu32 ", %" PRIu32 ", %" PRIu32
                 ") of block (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")\n",
                 fault->thread[0], fault->thread[1], fault->thread[2],
                 fault->block[0], fault->block[1], fault->block[2]);
}

static void add_address(text_t* text, const kiln_fault_t* fault) {
  bool freed = fault->kind == KILN_FAULT_DOUBLE_FREE ||
               fault->kind == KILN_FAULT_INVALID_FREE;
  if (fault->bytes == 0 && !freed) return;
  // The host's memory is at another place at each start; a block's and a
  // thread's own memory has only a position.
  bool steady = fault->memory != KILN_FAULT_MEMORY_HOST &&
                fault->memory < KILN_FAULT_MEMORY_SHARED;
  if (steady) fault_text_add(text, "address 0x%" PRIx64, fault->address);
  if (steady && fault->buffer != 0 && fault->buffer != fault->address) {
    fault_text_add(text, ", of memory at 0x%" PRIx64, fault->buffer);
  }
  if (fault->kind == KILN_FAULT_MISALIGNED) {
    fault_text_add(text, "%snot a multiple of %" PRIu64,
                   steady ? ", which is " : "", fault->bytes);
  }
  if (steady || fault->kind == KILN_FAULT_MISALIGNED) {
    fault_text_add(text, "\n");
  }
}

static void add_detail(text_t* text, const kiln_fault_t* fault) {
  const char* at = fault->detail;
  if (says_first_line(fault)) {
    at += strcspn(at, "\n");
    at += strspn(at, "\n");
  }
  if (at[0] == 0) return;
  fault_text_add(text, "%s%s", at, at[strlen(at) - 1] == '\n' ? "" : "\n");
}

void kiln_fault_notes(const kiln_fault_t* fault, size_t capacity, char* buffer,
                      size_t* out_length) {
  text_t text = {.size = 0};
  fault_text_add_kernel(&text, fault);
  fault_text_add_lines(&text, fault);
  add_thread(&text, fault);
  add_address(&text, fault);
  add_detail(&text, fault);
  if (text.size > 0) text.data[--text.size] = 0;
  fault_text_give(&text, capacity, buffer, out_length);
}

// ---- What to do ----

static void fix_bounds(text_t* text, const kiln_fault_t* fault) {
  uint64_t end = (uint64_t)fault->offset + fault->bytes;
  switch (fault->memory) {
    case KILN_FAULT_MEMORY_SHARED:
      fault_text_add(
          text,
          "compare the index with the size of the shared array, or give the "
          "launch more shared memory (--shared, `shared_bytes`): the access "
          "ends at byte %" PRIu64 ", and the block has %" PRIu64,
          end, fault->buffer_bytes);
      return;
    case KILN_FAULT_MEMORY_LOCAL:
      fault_text_add(text,
                     "compare the index with the size of the local array");
      return;
    case KILN_FAULT_MEMORY_PARAMETERS:
      fault_text_add(
          text, "read no more than the parameters that the kernel declares");
      return;
    default:
      break;
  }
  if (fault_text_is_before(fault)) {
    fault_text_add(text, "compare the index with 0: here it is negative");
    return;
  }
  if (fault->cause == KILN_FAULT_CAUSE_CONSTANT) {
    fault_text_add(
        text,
        "compare the index with the size of the __constant__ variable, or "
        "declare it larger (a module has 64 KiB): the access ends at byte "
        "%" PRIu64 ", and it has %" PRIu64,
        end, fault->buffer_bytes);
    return;
  }
  fault_text_add(
      text,
      "compare the index with the buffer's size before the access, as "
      "`if (i < n)` does, or make the buffer larger: the access ends at byte "
      "%" PRIu64 ", and it has %" PRIu64,
      end, fault->buffer_bytes);
}

static void fix_freed(text_t* text, const kiln_fault_t* fault) {
  if (fault->memory == KILN_FAULT_MEMORY_HEAP_BLOCK) {
    fault_text_add(
        text, "call free() after the last use of the block, of any thread");
  } else if (fault->cause == KILN_FAULT_CAUSE_FREED) {
    fault_text_add(text, "free the memory after all work that uses it");
  } else if (fault->cause == KILN_FAULT_CAUSE_FREED_ORDERED) {
    fault_text_add(
        text,
        "free the memory after the work that uses it last: on the same stream, "
        "or on a stream that waits for it (cuStreamWaitEvent)");
  } else {
    fault_text_add(
        text,
        "let the stream of the free wait for the stream that uses the memory "
        "(cuStreamWaitEvent), or free it on the stream that uses it last");
  }
}

static void fix_deadlock(text_t* text, const kiln_fault_t* fault) {
  switch (fault->cause) {
    case KILN_FAULT_CAUSE_OWN_MASK:
      fault_text_add(text,
                     "name the calling lane in its own mask: 0xffffffff where "
                     "the whole warp arrives, else __ballot_sync() of the "
                     "condition, taken before the lanes diverge");
      break;
    case KILN_FAULT_CAUSE_LANES:
      fault_text_add(
          text,
          "let every lane that a mask names reach the operation with the same "
          "mask, or remove the lanes that do not reach it");
      break;
    default:
      fault_text_add(text,
                     "let every thread of the block reach the same barrier: no "
                     "__syncthreads() in a branch that only some take");
      break;
  }
}

static void fix_instruction(text_t* text, const kiln_fault_t* fault) {
  switch (fault->cause) {
    case KILN_FAULT_CAUSE_CALL:
      fault_text_add(
          text,
          "take the function's address in device code, and call it by its own "
          "type: a host function's address is not a function there");
      break;
    case KILN_FAULT_CAUSE_BRANCH:
      fault_text_add(
          text, "keep the index of brx.idx below the count of its targets");
      break;
    case KILN_FAULT_CAUSE_BARRIER_NUMBER:
      fault_text_add(
          text,
          "use barriers 0 to 15, and counts of threads that are multiples of "
          "32");
      break;
    case KILN_FAULT_CAUSE_MBARRIER:
      fault_text_add(
          text,
          "initialise the mbarrier first (mbarrier.init), with a count from 1 "
          "to 1048575, and arrive at most that many times in one phase");
      break;
    default:
      fault_text_add(
          text, "look at that line: the device cannot execute it in this form");
      break;
  }
}

static void fix_memory(text_t* text, const kiln_fault_t* fault) {
  switch (fault->kind) {
    case KILN_FAULT_OUT_OF_BOUNDS:
      fix_bounds(text, fault);
      break;
    case KILN_FAULT_NULL_POINTER:
      fault_text_add(
          text, "%s",
          fault->cause == KILN_FAULT_CAUSE_HEAP_FULL
              ? "check the result of malloc() in the kernel before using it: "
                "the heap was full; free() blocks that are no longer used"
              : "give each pointer of the kernel an address, and check those "
                "that it loads or computes itself before using them");
      break;
    case KILN_FAULT_ILLEGAL_ADDRESS:
      fault_text_add(
          text, "%s",
          fault->cause == KILN_FAULT_CAUSE_FAR
              ? "look at how that line computes the address: an index that is "
                "uninitialised, or overflows, reaches this far"
          : fault->cause == KILN_FAULT_CAUSE_NO_ACCESS
              ? "enable access to the other device first (kiln_peer_create), "
                "or to the mapping or the pool that the memory belongs to"
              : "pass device memory or page-locked memory, and no other host "
                "pointer; if it is a device address, look at how that line "
                "computes it");
      break;
    case KILN_FAULT_READ_ONLY:
      fault_text_add(text,
                     "do not store to it, or keep the value in a __device__ "
                     "variable");
      break;
    case KILN_FAULT_MISALIGNED:
      fault_text_add(
          text,
          "keep the address a multiple of the %" PRIu64
          " bytes that are accessed, or access it through a smaller type",
          fault->bytes);
      break;
    case KILN_FAULT_USE_AFTER_FREE:
      fix_freed(text, fault);
      break;
    case KILN_FAULT_DOUBLE_FREE:
      fault_text_add(text,
                     "call free() once for each block, in one thread, and then "
                     "set the pointer to NULL");
      break;
    case KILN_FAULT_INVALID_FREE:
      fault_text_add(text,
                     "give free() only what malloc() in a kernel returned, "
                     "unchanged; what the host allocated the host frees");
      break;
    default:  // KILN_FAULT_UNINITIALIZED
      fault_text_add(
          text, "%s",
          fault->memory == KILN_FAULT_MEMORY_SHARED
              ? "store to it first, with a barrier between where another "
                "thread does"
              : "fill the memory first, or wait for the work that writes it");
      break;
  }
}

static void fix_limit(text_t* text, const kiln_fault_t* fault) {
  switch (fault->cause) {
    case KILN_FAULT_CAUSE_LOOP:
      fault_text_add(
          text,
          "give it more time, or let a kernel of the loop set its condition to "
          "0 (cudaGraphSetConditional)");
      break;
    case KILN_FAULT_CAUSE_WAIT:
      fault_text_add(
          text,
          "give it more time, or have the value that it waits for written by "
          "the host or by work that is not ordered after the wait");
      break;
    default:
      fault_text_add(
          text,
          "give it more time, or look for a loop or a wait at that line that "
          "never ends");
      break;
  }
}

static void add_fix(text_t* text, const kiln_fault_t* fault) {
  switch (fault->kind) {
    case KILN_FAULT_NONE:
      break;
    case KILN_FAULT_ASSERT:
      fault_text_add(text,
                     "find out why the condition is false for this thread: "
                     "printf() in the kernel shows its values");
      break;
    case KILN_FAULT_TRAP:
      fault_text_add(
          text, "%s",
          fault->cause == KILN_FAULT_CAUSE_GRID_SYNC
              ? "launch it cooperatively (`cooperative` of the launch's "
                "attributes): the kernel synchronises its grid, which traps "
                "without"
              : "look for __trap(), or a check of a library that fails, at "
                "that line");
      break;
    case KILN_FAULT_DEADLOCK:
      fix_deadlock(text, fault);
      break;
    case KILN_FAULT_STACK_OVERFLOW:
      fault_text_add(text,
                     "end the recursion sooner, or use smaller local arrays");
      break;
    case KILN_FAULT_ILLEGAL_INSTRUCTION:
      fix_instruction(text, fault);
      break;
    case KILN_FAULT_HOST_MEMORY:
      fault_text_add(text,
                     "give the process more memory, or use fewer workers "
                     "(KILN_SOFT_WORKERS)");
      break;
    case KILN_FAULT_TIME_LIMIT:
      fix_limit(text, fault);
      break;
    case KILN_FAULT_GRAPH_LOOP:
      fault_text_add(text,
                     "let a kernel of the loop set its condition to 0 "
                     "(cudaGraphSetConditional)");
      break;
    case KILN_FAULT_WORK:
      if (fault->cause != KILN_FAULT_CAUSE_NONE) {
        fix_freed(text, fault);
      } else {
        fault_text_add(text,
                       "keep the memory until the work on it is done: free it "
                       "on the stream that uses it last, or wait first");
      }
      break;
    default:
      fix_memory(text, fault);
      break;
  }
}

void kiln_fault_fix(const kiln_fault_t* fault, size_t capacity, char* buffer,
                    size_t* out_length) {
  text_t text = {.size = 0};
  add_fix(&text, fault);
  fault_text_give(&text, capacity, buffer, out_length);
}
