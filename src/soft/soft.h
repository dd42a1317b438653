// SPDX-License-Identifier: Apache-2.0
//
// soft: the software devices, a provider of the CUDA driver table.
//
// A thunk with the driver's own signature carries no user pointer, so there is
// one software driver in a process; starts are counted. Only runtime/ and
// tests include this header.
#ifndef KILN_SRC_SOFT_SOFT_H_
#define KILN_SRC_SOFT_SOFT_H_

#include "base/host.h"
#include "image/ptx.h"
#include "kiln/fault.h"
#include "table/table.h"

// How the device behaves; zero is the default of every field. The environment
// snapshot's KILN_SOFT_* fill what is zero.
typedef struct kilni_soft_options_t {
  uint32_t struct_size;
  uint32_t worker_count;  // 0: the host's
  uint64_t seed;
  const char* lanes;    // NULL: "auto"
  uint32_t page_check;  // a kiln_switch: ON checks by page
  // A kiln_switch: ON writes over the log buffers and option values of a link
  // at every later call and at its end, as a driver may.
  uint32_t scribble;
  // Receives what kernels print; NULL: nothing is printed.
  void (*print)(const char* text, size_t size, void* user);
  void* print_user;
  // Errors of the host program to look for, names with commas between:
  // "unwritten" (kernels that read uninitialised memory), "freed" (uses of
  // memory that is freed without waiting for them), or "all". NULL: the
  // variable KILN_SOFT_REPORT, else none.
  const char* report;
  // When work runs: "auto", or "latest": only when a caller waits for it or for
  // work after it. NULL: the variable KILN_SOFT_ORDER, else "auto".
  const char* order;
  // How many devices there are. 0: the variable KILN_SOFT_DEVICES, else 1.
  uint32_t device_count;
  uint32_t reserved;
} kilni_soft_options_t;

// INVALID_ARGUMENT for a `report` or an `order`, or what the environment has in
// their place, that kilni_soft_start would refuse.
kiln_status_t kilni_soft_check_modes(const kiln_host_t* host,
                                     const char* report, const char* order);

// Starts the driver (or counts one more user of it, whose options must then
// agree or be zero) and fills the rows it implements; the others are absent.
kiln_status_t kilni_soft_start(const kiln_host_t* host,
                               const kilni_soft_options_t* options,
                               kiln_cuda_table_t* out_table);
// The last stop ends the workers. A kernel that still runs is cancelled. In a
// forked child nothing runs and there is nothing to stop: this and what follows
// do and find nothing there.
void kilni_soft_stop(void);

// What the driver API has no call for. The fault that ended the device's
// context; kind NONE if there is none.
void kilni_soft_fault_of(uint32_t device, kiln_fault_t* out_fault);

// Sets the owner of the calling thread's work from now on, as far as it puts it
// on a default stream, and of the streams that it makes: work on those belongs
// to their maker. 0: no owner.
void kilni_soft_act_for(uint64_t owner);

// Says what the text at `text` was read to. While that stands, the calling
// thread's loads of it (cuModuleLoadData, cuModuleLoadDataEx,
// cuLibraryLoadData) retain `tree` and read nothing, if its memory lasts as
// long as the driver's own: it is from the same allocator, or from the C
// library's. NULL, NULL takes it back.
void kilni_soft_offer(const void* text, kilni_image_ptx_module_t* tree);

// Stops what runs on a device for `owner`, and skips what waits to run there
// for it, without an error: for a host that has given that up and waits for
// nothing of it. The work of others goes on, but where it was asked to wait for
// what is stopped (an event): the device then fails for all with
// LAUNCH_TIMEOUT. Returns when what ran has stopped, or after half a second.
// `*out_place`: where that was; kind NONE if it is not known.
void kilni_soft_give_up(uint32_t device, uint64_t owner,
                        kiln_fault_t* out_place);

// What a node of a graph (CUgraphNode) is called in faults, there and in what
// is copied or made of the graph from now on; "" removes the name. False for
// what is not a node.
bool kilni_soft_name_node(void* node, const char* name);

// The name of the lane set in use ("avx512"), NULL when not started.
const char* kilni_soft_lanes_name(void);

// The name of the lane set that `lanes` ("auto", "avx2", ...) would take on
// this CPU; NULL where it cannot run. Starts nothing.
const char* kilni_soft_lanes_would(const char* lanes);

// How this CPU makes an access of 16 bytes whole: "vector", one move, or
// "lock". Starts nothing.
const char* kilni_soft_wide_would(void);

// Thread-instructions executed by all kernels that have ended.
uint64_t kilni_soft_executed(void);

#endif  // KILN_SRC_SOFT_SOFT_H_
