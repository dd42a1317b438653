// SPDX-License-Identifier: Apache-2.0
//
// locate: a public header. Raw facts about a file that was found.
//
// What the file, its folder and the installer's records state, each verbatim
// and with its source. Nothing here is a conclusion: compat decides which fact
// gives the version of a library. No library is opened, no program is run, and
// no file is read twice by one reader.
//
// A *line* is a CUDA toolkit's major.minor as CUDA encodes it, 1000 * major +
// 10 * minor (13.5 is 13050); 0 where it is not known. A text is NULL where it
// is not known. Everything lives as long as the reader that gave it.
#ifndef KILN_SRC_LOCATE_LOCATE_FACTS_H_
#define KILN_SRC_LOCATE_LOCATE_FACTS_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

enum {
  // Limits. A file beyond one is a problem that the facts name; it ends no
  // read.
  KILNI_FACTS_MAX_CUDA_H = 1 << 20,        // bytes of a header that are read
  KILNI_FACTS_MAX_VERSION_FILE = 1 << 20,  // version.json, version.txt
  KILNI_FACTS_MAX_RECORD = 64 << 20,       // bytes of one RECORD
  KILNI_FACTS_MAX_RECORDS = 512 << 20,     // bytes of all RECORDs of a reader
  KILNI_FACTS_MAX_METADATA = 4 << 20,      // bytes of one METADATA
  KILNI_FACTS_MAX_PACKAGE_RECORD = 16 << 20,  // bytes of one package's record
  KILNI_FACTS_MAX_DPKG_STATUS = 64 << 20,     // bytes of dpkg's status
  KILNI_FACTS_MAX_PACKAGE_BYTES = 256 << 20,  // of all those of a reader
  KILNI_FACTS_MAX_PACKAGES = 1 << 18,  // entries of a folder of such records
  KILNI_FACTS_MAX_SITE_ENTRIES = 4 << 20,  // entries of one site-packages
  // Entries of a site-packages after which CHEAP stops searching the owner of a
  // file that states its own release.
  KILNI_FACTS_CHEAP_ENTRIES = 1024,
  KILNI_FACTS_MAX_CLIMB = 8,      // folders above a file that are looked at
  KILNI_FACTS_MAX_TARGETS = 64,   // targets/* folders of a toolkit
  KILNI_FACTS_MAX_MINOR = 12,     // minors tried for a versioned sibling
  KILNI_FACTS_MAX_PROBLEMS = 64,  // problems that are kept; more are counted
  KILNI_FACTS_TEXT_CHEAP = 64 << 10,  // bytes of .rodata that CHEAP reads
  KILNI_FACTS_TEXT_VERIFY = 64 << 20  // and VERIFY
};

// How much is read.
enum {
  // The first part of CHEAP that gives the release: of a file that states it
  // itself, nothing else, and a file that cannot state it is not opened.
  KILNI_LOCATE_FACTS_LEAST = 1,
  // What costs microseconds: the ELF header, its dynamic part and the build
  // id, versioned symbols where the name has some, the sibling, the first part
  // of .rodata,
  // the owner; and, only while none of these names a line, the version files
  // and headers of the folders above.
  KILNI_LOCATE_FACTS_CHEAP = 2,
  // Everything that can give the release: all of .rodata, the headers and
  // version files above even if they are not needed, METADATA, the pins on the
  // owner. What CHEAP read of a file is not read again. Distributions that
  // neither the catalog nor the path nor NVIDIA's names suggest state no
  // release themselves: they are read only where a header is with the file,
  // which counts if one of them has both.
  KILNI_LOCATE_FACTS_LINE = 3,
  // All of it: every distribution of the site-packages is read.
  KILNI_LOCATE_FACTS_VERIFY = 4
};

// A file that was found, and where it was found. thread-compatible
//
// Only read during the call. `path` is the only field that must be given.
typedef struct kilni_locate_facts_query_t {
  const char* path;       // as found: absolute; of headers, the header itself
  const char* real_path;  // links resolved; NULL: resolved here
  const char* name;       // in the catalog: "nvJitLink"; NULL: none
  // Where walks upward end: the folder that the scope searched (a toolkit's
  // root, a conda prefix). NULL: by the place of the file.
  const char* prefix;
  // Folders whose *.dist-info may own the file, besides any site-packages or
  // dist-packages that the path itself names.
  const char* const* sites;
  uint32_t site_count;
  uint32_t kind;  // KILN_LOCATE_KIND_*; 0: by what the file is
} kilni_locate_facts_query_t;

// Why a fact is missing that should be there. thread-safe
typedef struct kilni_locate_problem_t {
  const char* path;
  const char* why;  // "line 3 is not a RECORD row"
} kilni_locate_problem_t;

// A line and where it was read. thread-safe
typedef struct kilni_locate_line_t {
  uint32_t line;     // 0: not known; the rest is then NULL
  const char* text;  // as read: "__nvJitLinkCreate_13_5", "13.0.1"
  const char* path;  // the file it was read in
} kilni_locate_line_t;

// The installed distribution that a file belongs to. thread-safe
typedef struct kilni_locate_owner_t {
  const char* name;        // normalised (PEP 503): "nvidia-cuda-nvrtc"
  const char* version;     // "13.0.88"
  const char* record;      // the RECORD's path
  const char* row;         // the row's path: "nvidia/cu13/lib/libnvrtc.so.13"
  const char* sha256;      // of that row, URL-safe base64; NULL without
  const char* installer;   // INSTALLER's first line; VERIFY
  const char* direct_url;  // direct_url.json as it is; VERIFY
  uint64_t size;           // of that row; 0 without
  // The row names the file by its path with links resolved, not as found.
  bool by_real_path;
} kilni_locate_owner_t;

enum { KILNI_PACKAGE_CONDA = 1, KILNI_PACKAGE_DPKG = 2 };

// The package of conda or dpkg that a file belongs to. thread-safe
//
// A text is "" where the manager states nothing.
typedef struct kilni_locate_package_t {
  uint32_t manager;  // KILNI_PACKAGE_*
  uint32_t reserved;
  const char* name;            // "cuda-nvrtc", "libcudart12"
  const char* version;         // "12.9.86", "12.4.127~12.4.1-2"
  const char* source;          // dpkg: "nvidia-cuda-toolkit"
  const char* source_version;  // dpkg: "12.4.1-2"
  const char* toolkit;  // conda: what it asks of cuda-version, ">=12.9,<13"
  const char* record;   // the file that lists the path
} kilni_locate_package_t;

// One Requires-Dist line of an installed `cuda-toolkit`. thread-safe
typedef struct kilni_locate_pin_t {
  const char* toolkit_version;  // of the meta that asks: "13.0.3.0"
  const char* name;             // normalised: "nvidia-nvjitlink"
  const char* specifier;        // as written: "<14,>=13.0.88"; "" without
  const char* marker;           // after the `;`, as written; "" without
  const char* metadata;         // the METADATA's path
} kilni_locate_pin_t;

// Facts about one file. thread-safe
typedef struct kilni_locate_facts_t {
  uint32_t depth;  // KILNI_LOCATE_FACTS_* that they were read at
  uint32_t kind;   // of the query
  const char* path;
  const char* real_path;
  uint64_t size;  // of a library or program
  // After ".so." in the name of the file that links lead to: "13.0.88".
  const char* name_version;

  // ELF. `soname` NULL and no machine: it is not ELF, or a problem gives the
  // reason.
  uint32_t machine;  // KILNI_ELF_*
  uint32_t bits;     // 32, 64; 0: no ELF file
  const char* soname;
  const char* rpath;
  const char* runpath;
  const char* build_id;
  const char* const* needed;
  uint32_t needed_count;

  // What the file states of its own release.
  kilni_locate_line_t symbol;   // highest __nvJitLink*_M_m that it defines
  kilni_locate_line_t needs;    // highest __nvJitLink*_M_m that it imports: the
                                // minimum nvJitLink for it
  kilni_locate_line_t sibling;  // libnvrtc-builtins.so.M.m beside it
  kilni_locate_line_t release;  // "Cuda compilation tools, release M.m, V..."
  kilni_locate_line_t built;    // "NCCL version 2.28.9 compiled with CUDA M.m"
  const char* release_version;  // "13.5.37" of `release`
  // Of a product with a number of its own: "9.19.0", as the header at
  // `header_release_path` defines it. CHEAP reads it where nothing nearer
  // states it.
  const char* header_release;
  const char* header_release_path;

  // What installed it; NULL: nothing that keeps a RECORD.
  const kilni_locate_owner_t* owner;
  // The package of conda or dpkg that has it; NULL: none, it has an `owner`, or
  // it was not read yet. CHEAP reads conda's records only, and only where
  // nothing else gives the release.
  const kilni_locate_package_t* package;
  // VERIFY: what the metas of its site-packages require of `owner`, by its
  // name.
  const kilni_locate_pin_t* pins;
  uint32_t pin_count;

  // True if the walk was made, so that no `header` means that there is none.
  bool walked;
  // CUDA_VERSION of the nearest cuda.h belongs to the owner of this file:
  // both in one RECORD, or both in none and below one root. Where that root is
  // a distribution's /usr, both in packages of one source and version, if dpkg
  // knows either.
  bool header_same_owner;
  kilni_locate_line_t header;        // cuda.h, CUDA_VERSION
  kilni_locate_line_t runtime;       // cuda_runtime_api.h, CUDART_VERSION
  kilni_locate_line_t version_json;  // "cuda": {"version": "13.0.1"}
  kilni_locate_line_t version_txt;   // "CUDA Version 10.2.89"
  const char* header_owner;          // distribution of that cuda.h; or NULL
  const char* root;                  // the folder where the walk found them

  const kilni_locate_problem_t* problems;
  uint32_t problem_count;
  uint32_t problems_left_out;
} kilni_locate_facts_t;

// The driver's library and module. thread-safe
typedef struct kilni_locate_driver_t {
  const char* path;             // of libcuda, as found; NULL without
  const char* real_path;        // "/usr/lib/.../libcuda.so.580.159.04"
  const char* library_release;  // "580.159.04", of the file's name; or NULL
  const char* module_release;   // of /proc/driver/nvidia/version; or NULL
  const char* module_text;      // that file's first line
  bool is_stub;                 // the library is in a folder `stubs`
} kilni_locate_driver_t;

// Reads facts and remembers them. thread-safe
//
// Reference-counted. One belongs to each search context; what it read it never
// reads again, so a refreshed context takes a new one.
typedef struct kilni_locate_reader_t kilni_locate_reader_t;

// `system_root` as in the options of the search; NULL is "/".
kiln_status_t kilni_locate_reader_create(kiln_allocator_t allocator,
                                         const char* system_root,
                                         kilni_locate_reader_t** out_reader);
void kilni_locate_reader_retain(kilni_locate_reader_t* reader);
void kilni_locate_reader_release(kilni_locate_reader_t* reader);

// The facts of one file, borrowed from the reader. NOT_FOUND if it is a library
// or program and gone (others are not opened),
// OUT_OF_MEMORY; everything else that is wrong with a file is a problem in the
// facts. CHEAP gives VERIFY's facts where those were read before.
kiln_status_t kilni_locate_facts_read(kilni_locate_reader_t* reader,
                                      const kilni_locate_facts_query_t* query,
                                      uint32_t depth,
                                      const kilni_locate_facts_t** out_facts);

// All pins of the `cuda-toolkit` distributions installed in one site-packages,
// borrowed. A site without any, or none at all, gives none.
kiln_status_t kilni_locate_pins_read(kilni_locate_reader_t* reader,
                                     const char* site,
                                     const kilni_locate_pin_t** out_pins,
                                     uint32_t* out_count);

// Facts about the driver; `libcuda` is a path or NULL. Borrowed.
kiln_status_t kilni_locate_driver_read(
    kilni_locate_reader_t* reader, const char* libcuda,
    const kilni_locate_driver_t** out_driver);

#endif  // KILN_SRC_LOCATE_LOCATE_FACTS_H_
