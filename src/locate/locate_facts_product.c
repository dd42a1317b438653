// SPDX-License-Identifier: Apache-2.0
//
// locate: the number of a product that has one of its own, by its header.
//
// cuDNN in a toolkit's folder, or NCCL beside a cluster's modules, has neither
// an owner nor a number in its file's name; its header defines three macros.
// The header is sought where the file's own toolkit would be, never beyond.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "kiln/locate_catalog.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

enum { HEADER_BYTES = 256 << 10, MACRO_COUNT = 3, PATH_BYTES = 4200 };

// The products, by the prefix of their components' names in the catalog: the
// header below the folder of headers, and its macros.
#define PLAIN(stem) {#stem "_MAJOR", #stem "_MINOR", #stem "_PATCH"}
static const struct {
  const char* begins;
  const char* header;
  const char* macros[MACRO_COUNT];
} kProducts[] = {
    {"cudnn",
     "cudnn_version.h",
     {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"}},
    {"nccl", "nccl.h", PLAIN(NCCL)},
    {"cutensornet", "cutensornet.h", PLAIN(CUTENSORNET)},
    {"cutensor", "cutensor.h", PLAIN(CUTENSOR)},
    {"cusparseLt", "cusparseLt.h", PLAIN(CUSPARSELT_VER)},
    {"cudss", "cudss.h", PLAIN(CUDSS_VERSION)},
    {"cublasmp", "cublasmp.h", PLAIN(CUBLASMP_VER)},
    {"cusolverMp", "cusolverMp.h", PLAIN(CUSOLVERMP_VER)},
    {"custatevec", "custatevec.h", PLAIN(CUSTATEVEC_VER)},
    {"cudensitymat", "cudensitymat.h", PLAIN(CUDENSITYMAT)},
    {"cupauliprop", "cupauliprop.h", PLAIN(CUPAULIPROP)},
    {"custabilizer", "custabilizer.h", PLAIN(CUSTABILIZER)},
    {"mathdx", "libmathdx.h", PLAIN(LIBMATHDX_VER)},
    {"cutlass", "cutlass/version.h", PLAIN(CUTLASS)},
    {"cute", "cutlass/version.h", PLAIN(CUTLASS)},
    {"nvshmem",
     "non_abi/nvshmem_version.h",
     {"NVSHMEM_VENDOR_MAJOR_VERSION", "NVSHMEM_VENDOR_MINOR_VERSION",
      "NVSHMEM_VENDOR_PATCH_VERSION"}},
};

// The product of a name in the catalog; -1 where it is none of them.
static int facts_product_product_of(const char* name) {
  int count = (int)(sizeof(kProducts) / sizeof(kProducts[0]));
  for (int i = 0; name != NULL && i < count; i++) {
    size_t size = strlen(kProducts[i].begins);
    if (strncmp(name, kProducts[i].begins, size) == 0) return i;
  }
  return -1;
}

// ---- One header ----

static kiln_status_t read_macros(kilni_locate_reader_t* reader, int product,
                                 kilni_locate_facts_header_t* header) {
  uint8_t* data;
  size_t size;
  size_t capacity;
  kiln_status_t status = kilni_locate_facts_front_if(
      reader->allocator, header->path, HEADER_BYTES, &data, &size, &capacity);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status) || data == NULL) {
    kiln_status_free(status);  // one that cannot be read states nothing
    return kiln_ok();
  }
  uint64_t number[MACRO_COUNT] = {0};
  bool found = true;
  kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
  for (int i = 0; i < MACRO_COUNT && found; i++) {
    found = kilni_locate_define_find(text, kProducts[product].macros[i],
                                     &number[i]) &&
            number[i] <= UINT32_MAX;
  }
  kilni_base_free(reader->allocator, data, capacity);
  if (!found) return kiln_ok();
  return kilni_locate_facts_print(&reader->store, &header->version, "%u.%u.%u",
                                  (unsigned)number[0], (unsigned)number[1],
                                  (unsigned)number[2]);
}

// What a header states, read once; a missing one states nothing.
static kiln_status_t facts_product_header_at(
    kilni_locate_reader_t* reader, int product, const char* path,
    const kilni_locate_facts_header_t** out_header) {
  for (kilni_locate_facts_header_t* at = reader->headers; at != NULL;
       at = at->next) {
    if (strcmp(at->path, path) == 0) {
      *out_header = at;
      return kiln_ok();
    }
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_facts_header_t), &memory));
  kilni_locate_facts_header_t* header = memory;
  memset(header, 0, sizeof(*header));
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(
      &reader->store, kilni_base_sv(path), &header->path));
  KILNI_RETURN_IF_ERROR(read_macros(reader, product, header));
  header->next = reader->headers;
  reader->headers = header;
  *out_header = header;
  return kiln_ok();
}

// ---- Where it is ----

// One read of a product's number. one-thread
typedef struct seeking_t {
  kilni_locate_facts_read_t* read;
  int product;
} seeking_t;

// Takes what the header in a folder of headers states, if it exists.
static kiln_status_t try_folder(kiln_string_view_t folder, void* user,
                                bool* out_found) {
  seeking_t* seeking = user;
  kilni_locate_facts_t* facts = seeking->read->facts;
  char path[PATH_BYTES];
  int size = snprintf(path, sizeof(path), "%.*s/%s", KILNI_SV(folder),
                      kProducts[seeking->product].header);
  if (size < 0 || (size_t)size >= sizeof(path)) return kiln_ok();
  const kilni_locate_facts_header_t* header = NULL;
  KILNI_RETURN_IF_ERROR(facts_product_header_at(
      seeking->read->reader, seeking->product, path, &header));
  *out_found = header->version != NULL;
  if (!*out_found) return kiln_ok();
  facts->header_release = header->version;
  facts->header_release_path = header->path;
  return kiln_ok();
}

// Of headers themselves: their own folder, or the one above ("cute/...").
static kiln_status_t try_beside(seeking_t* seeking) {
  kiln_string_view_t folder = kilni_base_sv(seeking->read->facts->path);
  bool found = false;
  for (int i = 0; i < 2 && !found; i++) {
    while (folder.size > 0 && folder.data[folder.size - 1] != '/') {
      folder.size--;
    }
    if (folder.size < 2) return kiln_ok();
    folder.size--;
    KILNI_RETURN_IF_ERROR(try_folder(folder, seeking, &found));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_read_product(kilni_locate_facts_read_t* read) {
  seeking_t seeking = {read, facts_product_product_of(read->query->name)};
  kilni_locate_facts_t* facts = read->facts;
  if (seeking.product < 0) return kiln_ok();
  // Its package, or the file's own name, already states it.
  bool is_told = facts->owner != NULL || facts->name_version != NULL;
  if (is_told && read->depth < KILNI_LOCATE_FACTS_LINE) return kiln_ok();
  if (facts->kind == KILN_LOCATE_KIND_HEADER) return try_beside(&seeking);
  return kilni_locate_facts_each_include(read, try_folder, &seeking);
}
