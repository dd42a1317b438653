// SPDX-License-Identifier: Apache-2.0
//
// probe: the facts about this machine, each with its origin.
//
// Made by kiln_runtime_probe and never changed afterwards. `kiln doctor` prints
// it. Structs are borrowed from the probe; only the library makes them, and
// fields may be appended in later versions.
#ifndef KILN_PROBE_H_
#define KILN_PROBE_H_

#include "kiln/api.h"
#include "kiln/locate.h"
#include "kiln/status.h"
#include "kiln/toolkit.h"

KILN_EXTERN_C_BEGIN

// Options of a probe. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_probe_options_t {
  uint32_t struct_size;  // sizeof(kiln_probe_options_t)

  // KILN_SWITCH_*: start the driver and query its GPUs (takes up to a second
  // with several). Off: the driver library is opened, not started. Default: on.
  uint32_t devices;

  // The NVRTC to examine: a path, or a name for the system loader. Default:
  // what the runtime's context finds.
  const char* nvrtc_library;
} kiln_probe_options_t;

// All defaults. Since 0.1.
static inline kiln_probe_options_t kiln_probe_options_default(void) {
  kiln_probe_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// The facts. thread-safe
//
// Reference-counted and immutable. Retains its runtime.
typedef struct kiln_probe_t kiln_probe_t;

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_probe_retain(kiln_probe_t* probe);
KILN_API void kiln_probe_release(kiln_probe_t* probe);

// The CUDA driver. thread-safe
typedef struct kiln_probe_driver_t {
  uint32_t found;    // 1: its library was opened and has all that is required
  uint32_t works;    // 1: it was started
  uint32_t version;  // CUDA version, 13000 is 13.0; 0 if not known
  uint32_t reserved;
  const char* path;     // the library; "" if not found
  const char* release;  // "580.159.04", of the display driver; "" if not known
  const char* why;      // why it is not found or does not work; "" otherwise
  // The library with links resolved, and the release in its file name (with a
  // forward compatibility package another than `release`); "".
  const char* real_path;
  const char* library_release;
} kiln_probe_driver_t;

// The operating system. thread-safe
typedef struct kiln_probe_system_t {
  const char* name;     // "Debian GNU/Linux 12 (bookworm)"; "" if not known
  const char* kernel;   // "6.1.0-13-amd64"
  const char* machine;  // "x86_64"
  uint32_t is_wsl;      // 1: Linux inside Windows
  uint32_t is_container;
} kiln_probe_system_t;

// A GPU. thread-safe
typedef struct kiln_probe_device_t {
  const char* name;   // "cuda:0"
  const char* model;  // "NVIDIA H200"
  uint32_t compute_major;
  uint32_t compute_minor;
  uint32_t multiprocessors;
  uint32_t reserved;
  uint64_t memory_bytes;
  const char* uuid;           // "GPU-...", "MIG-..."; "" if not known
  const char* address;        // on the PCI bus, "0000:3b:00.0"; "" if not known
  const int32_t* attributes;  // by the indices of kiln_probe_attribute_name
  const uint8_t* known;       // 1 for each of these that the driver reported
} kiln_probe_device_t;

// The driver's attributes of a device (CU_DEVICE_ATTRIBUTE_*), in the order of
// their numbers: "MAX_THREADS_PER_BLOCK", "threads", 1, and the first CUDA
// version that has it (11070: that or an older one). A unit of "switch" is 0
// or 1. NULL and 0 for an index out of range. Static. Since 0.1.
KILN_API uint32_t kiln_probe_attribute_count(void);
KILN_API const char* kiln_probe_attribute_name(uint32_t index);
KILN_API const char* kiln_probe_attribute_unit(uint32_t index);
KILN_API uint32_t kiln_probe_attribute_number(uint32_t index);
KILN_API uint32_t kiln_probe_attribute_since(uint32_t index);

// A CUDA toolkit. thread-safe
typedef struct kiln_probe_toolkit_t {
  const char* root;         // its folder
  const char* include_dir;  // "" if it has none
  const char* version;      // "13.0.1", "13.0"; "" if not known
  const char* scope;        // kiln_locate_scope_name of how it was found
  const char*
      lines;  // of its components, the commonest first: "13.0 (41), 12.9 (2)"
  const char* has;  // the important ones: "nvcc nvrtc headers"
  uint32_t line;    // of the majority of its components; 0 if unknown
  uint32_t piece_count;
} kiln_probe_toolkit_t;

// A file of a toolkit. thread-safe
typedef struct kiln_probe_copy_t {
  const char* path;
  const char* real_path;  // with links resolved
  const char* scope;      // kiln_locate_scope_name
  const char* root;       // inside the scope; "" for none
  const char* via;        // the source of the path; ""
  const char* version;    // its own, "13.0.88"; "" if not known
  // The source of `line`: kiln_compat_source_word; if unknown, that of
  // `version`: kiln_toolkit_item_release_source; "".
  const char* source;
  const char* evidence;       // the same in words; ""
  uint32_t line;              // 13000 is 13.0; 0 if not known
  uint32_t scope_id;          // KILN_LOCATE_SCOPE_*
  kiln_toolkit_item_t* item;  // all of it; borrowed from the probe
} kiln_probe_copy_t;

// A row of the catalog, and its copies. thread-safe
typedef struct kiln_probe_piece_t {
  const kiln_locate_entry_t* entry;
  const char* kind;  // "lib"
  const char* name;  // "nvrtc"
  const char* why;   // why the search failed: a wrong override; ""
  uint32_t copy_count;
  uint32_t reserved;
  const kiln_probe_copy_t* copies;  // the first is the one that is taken
  kiln_locate_item_t* located;      // with the search log; NULL on failure
} kiln_probe_piece_t;

// Kiln's own cache. thread-safe
typedef struct kiln_probe_store_t {
  const char* path;     // "" if there is none: it is off, or has no folder
  const char* problem;  // why it is kept in memory only; "" otherwise
  uint64_t bytes;       // of its files
  uint64_t limit;       // in bytes, to which it is trimmed
  uint64_t entries;
  uint32_t exists;    // 1: the folder exists
  uint32_t switched;  // 1: on; 0: by KILN_CACHE, or by the options
} kiln_probe_store_t;

// The driver's cache of what it compiled. thread-safe
typedef struct kiln_probe_cache_t {
  const char* path;   // "" if unknown
  uint64_t bytes;     // of its files; at least, where `complete` is 0
  uint64_t limit;     // in bytes
  uint32_t files;     // at least, where `complete` is 0
  uint32_t exists;    // 1: the folder exists
  uint32_t writable;  // 1: it can be written, or made
  uint32_t disabled;  // 1: by CUDA_CACHE_DISABLE
  uint32_t complete;  // 1: all of it was examined
  uint32_t reserved;
} kiln_probe_cache_t;

// A CUDA library. thread-safe
typedef struct kiln_probe_library_t {
  const char* name;   // "nvrtc"
  const char* path;   // "" if not found
  const char* scope;  // kiln_locate_scope_name; "" if not found
  uint32_t found;     // 1: it was opened and has all that is required
  uint32_t version;   // 13000 is 13.0; 0 if not known
  uint32_t tried_count;
  uint32_t reserved;
  const kiln_locate_tried_t* tried;  // `tried_count` of them
  // Its row and every copy; NULL without a search.
  const struct kiln_probe_piece_t* piece;
} kiln_probe_library_t;

// The software device. thread-safe
typedef struct kiln_probe_soft_t {
  const char* lanes;       // lane code it takes: "avx512"
  const char* lanes_have;  // what this CPU can run: "plain avx2 avx512"
  uint32_t workers;        // threads
  uint32_t page_check;     // 1: addresses are checked by page
  uint64_t seed;
  // How this CPU makes an access of 16 bytes atomic: "vector", by one move, or
  // "lock".
  const char* wide;
} kiln_probe_soft_t;

// A variable that Kiln reads. thread-safe
typedef struct kiln_probe_variable_t {
  const char* name;
  const char* value;     // NULL where it is not set or does not count
  const char* type;      // "path", "number", "switch", "text"
  const char* fallback;  // the default
  const char* module;    // the module that reads it
  const char* text;      // what it does
} kiln_probe_variable_t;

// The severity of a problem.
enum {
  KILN_PROBE_SEVERITY_NOTE = 1,     // worth knowing
  KILN_PROBE_SEVERITY_WARNING = 2,  // something will not work as intended
  KILN_PROBE_SEVERITY_ERROR = 3,    // something that was requested is broken
};

// A note or a problem. thread-safe
typedef struct kiln_probe_problem_t {
  const char* id;  // stable word: "driver-not-found"
  uint32_t severity;
  uint32_t reserved;
  const char* message;  // one line
  const char* fix;      // one line: what to do
} kiln_probe_problem_t;

// Borrowed; NULL for an index out of range. Since 0.1.
KILN_API const kiln_probe_driver_t* kiln_probe_driver(
    const kiln_probe_t* probe);
KILN_API const kiln_probe_soft_t* kiln_probe_soft(const kiln_probe_t* probe);
KILN_API const kiln_probe_system_t* kiln_probe_system(
    const kiln_probe_t* probe);
KILN_API const kiln_probe_cache_t* kiln_probe_cache(const kiln_probe_t* probe);
// NULL if the runtime has no cache. Since 0.1.
KILN_API const kiln_probe_store_t* kiln_probe_store(const kiln_probe_t* probe);
KILN_API uint32_t kiln_probe_device_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_device_t* kiln_probe_device(const kiln_probe_t* probe,
                                                      uint32_t index);
KILN_API uint32_t kiln_probe_toolkit_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_toolkit_t* kiln_probe_toolkit(
    const kiln_probe_t* probe, uint32_t index);
KILN_API uint32_t kiln_probe_library_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_library_t* kiln_probe_library(
    const kiln_probe_t* probe, uint32_t index);
KILN_API uint32_t kiln_probe_piece_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_piece_t* kiln_probe_piece(const kiln_probe_t* probe,
                                                    uint32_t index);
KILN_API uint32_t kiln_probe_variable_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_variable_t* kiln_probe_variable(
    const kiln_probe_t* probe, uint32_t index);
KILN_API uint32_t kiln_probe_problem_count(const kiln_probe_t* probe);
KILN_API const kiln_probe_problem_t* kiln_probe_problem(
    const kiln_probe_t* probe, uint32_t index);

// Whether the selected components are compatible with each other and the
// driver, by use; NULL without a search. Borrowed. Since 0.1.
KILN_API const kiln_compat_report_t* kiln_probe_report(
    const kiln_probe_t* probe);

// "note", "warning", "error"; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_probe_severity_name(uint32_t severity);

KILN_EXTERN_C_END

#endif  // KILN_PROBE_H_
