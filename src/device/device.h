// SPDX-License-Identifier: Apache-2.0
//
// device: the public header. What runtime/ opens a device with.
#ifndef KILN_SRC_DEVICE_DEVICE_H_
#define KILN_SRC_DEVICE_DEVICE_H_

#include <stdatomic.h>

#include "base/host.h"
#include "base/keep.h"
#include "base/thread.h"
#include "compile/link_backend.h"
#include "image/ptx.h"
#include "kiln/device.h"
#include "kiln/fault.h"
#include "table/table.h"

typedef struct kilni_device_peer_pair_t kilni_device_peer_pair_t;

// Which devices of one driver have access to which, and how often that was
// asked for: all of them are opened with the same book. thread-safe
typedef struct kilni_device_peer_book_t {
  kiln_allocator_t allocator;
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  bool is_there;
  kilni_device_peer_pair_t* first;
} kilni_device_peer_book_t;

kiln_status_t kilni_device_peer_book_init(kilni_device_peer_book_t* book,
                                          kiln_allocator_t allocator);
// When no device is open any more. Of zeroes too.
void kilni_device_peer_book_deinit(kilni_device_peer_book_t* book);

// What a device is opened over. Everything it points at outlives the device,
// by `keep` where by nothing else. thread-compatible
typedef struct kilni_device_source_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  const kiln_cuda_table_t* table;
  const char* name;  // "cuda:0"; copied
  const char* note;  // NULL is ""; copied
  uint32_t kind;     // KILN_DEVICE_KIND_*
  uint32_t ordinal;
  // What the driver API has no call for; NULL where the provider has none.
  void (*fault)(uint32_t device, kiln_fault_t* out_fault);
  // What a node of a graph is called in faults; false where it is not kept.
  bool (*name_node)(void* node, const char* name);
  uint64_t (*executed)(void);
  // Sets the owner of the calling thread's work on default streams from now on,
  // and of the streams that it makes.
  void (*act_for)(uint64_t owner);
  // Says what the text at `text` was read to, for the calling thread's next
  // load of it, which then reads nothing; NULL, NULL takes that back. The tree
  // is retained by who uses it.
  void (*offer)(const void* text, kilni_image_ptx_module_t* tree);
  // Ends what runs on it for `owner`; where that was.
  void (*give_up)(uint32_t device, uint64_t owner, kiln_fault_t* out_place);
  // Set once the device is lost: its driver may still run and must not be taken
  // down. NULL if the caller does not need it.
  atomic_bool* lost;
  kilni_device_peer_book_t* peers;
} kilni_device_source_t;

// The device's driver as a way to link. Borrows `device` until its last session
// has begun; a session retains it. The context is made current for each call
// and restored after it.
void kilni_device_link_backend(kiln_device_t* device,
                               kilni_compile_link_backend_t* out_backend);

kiln_status_t kilni_device_open(const kilni_device_source_t* source,
                                kiln_device_t** out_device);

#endif  // KILN_SRC_DEVICE_DEVICE_H_
