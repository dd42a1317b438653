// SPDX-License-Identifier: Apache-2.0
//
// graph: what the files of this module share; private to it.
#ifndef KILN_SRC_GRAPH_GRAPH_INSIDE_H_
#define KILN_SRC_GRAPH_GRAPH_INSIDE_H_

#include "device/device_inside.h"
#include "device/launch_check.h"
#include "kiln/capture.h"
#include "kiln/graph.h"

enum {
  KILNI_GRAPH_CHUNK_NODES = 128,
  KILNI_GRAPH_NAME_BYTES = 255,  // of a node, without the NUL
  KILNI_GRAPH_FEW = 16,          // dependencies that need no allocation
  KILNI_GRAPH_OPS = 256,         // in one node
  KILNI_GRAPH_BODIES = 1024,     // of one conditional node
  KILNI_GRAPH_BRANCHES = 256,    // of one split
  KILNI_GRAPH_STREAMS = 4,       // of launches that an executable remembers
};

// ---- Owners (graph_owners.c) ----

// What a node keeps alive.
enum {
  KILNI_OWNED_KERNEL = 1,
  KILNI_OWNED_BUFFER = 2,
  KILNI_OWNED_ARRAY = 3,
  KILNI_OWNED_EVENT = 4,
  KILNI_OWNED_HOLD = 5,
};

// thread-compatible
typedef struct kilni_graph_owned_t {
  void* object;
  uint32_t kind;
  uint32_t reserved;
} kilni_graph_owned_t;

typedef struct kilni_graph_segment_t kilni_graph_segment_t;

// What the nodes of one work keep alive together. thread-compatible
typedef struct kilni_graph_bundle_t {
  kilni_graph_segment_t* segment;
  struct kilni_graph_bundle_t* next;  // in its segment
  uint32_t uses;                      // nodes; 0: nothing is retained
  uint32_t count;                     // of `items`
  uint32_t space;                     // for them
  uint32_t reserved;
  kiln_owner_t owner;   // of host data; called once
  void* data;           // copied host data
  uint64_t data_bytes;  //
  kilni_graph_owned_t items[];
} kilni_graph_bundle_t;

// What a work wants kept. one-thread
typedef struct kilni_graph_wanted_t {
  uint32_t count;
  uint32_t reserved;
  kilni_graph_owned_t items[2];
  const kiln_launch_t* launch;         // its kernel and buffers
  const kiln_graph_memory_ops_t* ops;  // their buffers
  kiln_owner_t owner;
  const void* data;  // to be copied
  uint64_t data_bytes;
} kilni_graph_wanted_t;

typedef struct kilni_graph_chunk_t kilni_graph_chunk_t;

// The owners of many nodes. Its references are that of the graph it was made
// for and, once it is sealed, those of holds: of clones, executables, nodes of
// other graphs. thread-compatible, references thread-safe
struct kilni_graph_segment_t {
  kiln_device_t* device;
  atomic_uint references;
  uint32_t live;                // bundles with uses
  kilni_graph_segment_t* next;  // of its graph
  kilni_graph_bundle_t* bundles;
  kilni_graph_chunk_t* chunks;
  // Of an executable: what is retained already, each once.
  kilni_graph_owned_t* known;
  size_t known_count;
  size_t known_space;
};

// With one reference.
kiln_status_t kilni_graph_segment_make(kiln_device_t* device,
                                       kilni_graph_segment_t** out_segment);
void kilni_graph_segment_retain(kilni_graph_segment_t* segment);
void kilni_graph_segment_release(kilni_graph_segment_t* segment);

// Everything that can fail before the driver's call for a node: a bundle with
// the wanted objects, NULL if there are none. Then one of the others.
kiln_status_t kilni_graph_owners_prepare(kiln_graph_t* graph,
                                         const kilni_graph_wanted_t* wanted,
                                         kilni_graph_bundle_t** out_bundle);
void kilni_graph_owners_commit(kiln_graph_t* graph,
                               kilni_graph_bundle_t* bundle,
                               const kilni_graph_wanted_t* wanted);
void kilni_graph_owners_cancel(kilni_graph_bundle_t* bundle);
// A node has it no more. Cannot fail: what the driver refuses is a leak.
void kilni_graph_owners_drop(kiln_graph_t* graph, kilni_graph_bundle_t* bundle);
// From now on the objects that the graph retains may be shared.
void kilni_graph_owners_seal(kiln_graph_t* graph);

// Releases all that the graph retains; none of it may be used through the graph
// any more.
void kilni_graph_owners_end(kiln_graph_t* root);

// The same for an executable's; what it has it keeps.
kiln_status_t kilni_graph_keeper_prepare(kilni_graph_segment_t* keeper,
                                         const kilni_graph_wanted_t* wanted,
                                         kilni_graph_bundle_t** out_bundle);
void kilni_graph_keeper_commit(kilni_graph_segment_t* keeper,
                               kilni_graph_bundle_t* bundle,
                               const kilni_graph_wanted_t* wanted);

// ---- Holds (graph_hold.c) ----

// The segments that a graph had when they were first shared. That of an
// executable may have to outlive it until its launches are done, that of a
// graph with a published handle until the driver no longer needs it: the thread
// for late releases ends them. thread-compatible, references thread-safe
typedef struct kilni_graph_hold_t {
  kilni_device_late_entry_t late;
  kiln_device_t* device;
  kilni_device_late_t* thread;  // its device's
  atomic_uint references;
  uint32_t count;
  uint32_t space;
  uint32_t reserved;
  // Of an executable.
  kilni_graph_segment_t* own;  // what its nodes were given later; NULL: nothing
  bool elsewhere;          // it may have been launched on streams unknown here
  kiln_cu_stream_t waits;  // of the pool: calls back after the launches
  // NULL, or what makes the driver report that it is no longer needed.
  kiln_cu_user_object_t object;
  kilni_graph_segment_t* segments[];
} kilni_graph_hold_t;

// What the graph keeps now, with one reference. Later additions are not in it;
// the caller seals the graph once the hold is in use.
kiln_status_t kilni_graph_hold_make(kiln_graph_t* root,
                                    kilni_graph_hold_t** out_hold);
void kilni_graph_hold_retain(kilni_graph_hold_t* hold);
void kilni_graph_hold_release(kilni_graph_hold_t* hold);
// Attaches it to a driver's graph: that graph, its copies and their launches
// retain it from then on, and own its reference.
kiln_status_t kilni_graph_hold_hang(kilni_graph_hold_t* hold,
                                    kiln_cu_graph_t graph);
// That graph has it no more; others may.
void kilni_graph_hold_unhang(kilni_graph_hold_t* hold, kiln_cu_graph_t graph);
// What a host program may copy by the graph's handle keeps its owners from now
// on. False if that cannot be had.
bool kilni_graph_hold_guard(const kiln_graph_t* graph);
// Does that for one more segment of a graph with published handles.
kiln_status_t kilni_graph_hold_guard_segment(kiln_graph_t* root,
                                             kilni_graph_segment_t* segment);

// What marks the launches of an executable so far. one-thread
typedef struct kilni_graph_marks_t {
  uint32_t count;
  bool certain;  // false: nothing could be asked, and nothing runs any more
  kiln_device_t* devices[KILNI_GRAPH_STREAMS];
  kiln_cu_event_t events[KILNI_GRAPH_STREAMS];
} kilni_graph_marks_t;

// The end of a hold of an executable, in two steps, between which the
// executable may end: the launches so far are marked, and the hold is released
// after them.
void kilni_graph_hold_mark(kilni_graph_hold_t* hold,
                           const kiln_graph_exec_t* exec,
                           kilni_graph_marks_t* out_marks);
void kilni_graph_hold_end_behind(kilni_graph_hold_t* hold,
                                 kilni_graph_marks_t* marks);

// ---- Whether a kernel may take the short path ----

// Whether a call that needs the device's context may be made as things are.
// Copied to where it is asked, next to what else is looked at there.
// thread-safe
typedef struct kilni_graph_current_t {
  kilni_device_alive_t alive;
  kiln_cu_context_t context;
  kilni_cuCtxGetCurrent_fn_t ask;
} kilni_graph_current_t;

// Neither a forked child nor lost, and its context is current already.
static inline bool kilni_graph_is_current(
    const kilni_graph_current_t* current) {
  kiln_cu_context_t is = NULL;
  return kilni_device_is_alive(&current->alive) &&
         current->ask(&is) == KILN_CU_SUCCESS && is == current->context;
}

// ---- Graphs and nodes (graph_make.c, graph_nodes.c) ----

// What few nodes have. thread-compatible
typedef struct kilni_graph_node_more_t {
  struct kilni_graph_node_more_t* next;  // of its graph
  char* name;                            // NULL: none
  uint64_t address;                      // of an allocation
  kilni_device_launch_how_t* how;        // attributes of a kernel; NULL: none
  char* kernel;                          // its name, once it was asked for
  uint64_t asks;                         // of a conditional node: its condition
  uint32_t condition;                    // KILN_GRAPH_IF, ...
  uint32_t inner_count;                  //
  kiln_graph_t** inner;            // views, each NULL before it is asked for
  kiln_cu_graph_t* inner_handles;  // of a conditional node
} kilni_graph_node_more_t;

struct kiln_graph_node_t {
  kiln_graph_t* graph;
  kiln_cu_graph_node_t handle;    // NULL: removed
  kilni_graph_bundle_t* bundle;   // NULL: keeps nothing
  kilni_graph_node_more_t* more;  // NULL: nothing
  uint32_t index;
  uint32_t kind;
};

// Why a graph takes no calls now.
enum {
  KILNI_GRAPH_OPEN = 0,
  KILNI_GRAPH_CAPTURING = 1,
  KILNI_GRAPH_GONE = 2,  // its node was removed, or the capture was thrown away
};

struct kiln_graph_t {
  // What adding a kernel looks at, together.
  kiln_device_t* device;
  kiln_graph_t* root;  // of a view; a graph of its own is its own
  kilni_graph_current_t current;
  kilni_cuGraphAddKernelNode_fn_t add_kernel;  // of the device's table
  uint32_t refuses;                            // KILNI_GRAPH_*
  uint32_t node_count;                         // removed ones too
  uint32_t live_count;
  uint32_t chunk_count;
  kiln_cu_graph_t handle;
  kiln_graph_node_t* free_node;  // of the last chunk; at `free_end`: none
  kiln_graph_node_t* free_end;
  kilni_graph_bundle_t*
      last;  // of a root: that a launch has made, and of which
  uint64_t last_number;
  uint64_t last_version;

  kilni_device_late_t* late;
  kiln_graph_node_t* inside;  // NULL: a graph of its own
  kiln_graph_t* views;        // of a root: all
  kiln_graph_t* next_view;
  atomic_uint references;      // of a root
  uint32_t reserved;           //
  kiln_graph_node_t** chunks;  // of KILNI_GRAPH_CHUNK_NODES each
  size_t chunk_space;
  kilni_graph_node_more_t* mores;

  // From handle to index + 1, of the first `hashed` nodes; handles of removed
  // ones may still be there.
  uint32_t* hash;
  size_t hash_space;
  uint32_t hashed;
  uint32_t segments_made;

  bool given;  // other code has had the handle
  // Of a root.
  bool any_given;                 // of it or a graph inside
  bool allocates;                 // a node was set to
  kilni_graph_segment_t* open;    // takes owners
  kilni_graph_segment_t* sealed;  // list
  kilni_graph_hold_t* source;     // of a clone: what it was made with; or NULL
};

// A root without a handle, and its end. The thread for late releases runs.
kiln_status_t kilni_graph_make(kiln_device_t* device, kiln_graph_t** out_graph);
// The driver has thrown the graph away, or its node is gone.
void kilni_graph_forget(kiln_graph_t* graph);
// A view of a graph inside of a node.
kiln_status_t kilni_graph_make_view(kiln_graph_node_t* node,
                                    kiln_cu_graph_t handle,
                                    kiln_graph_t** out_view);
// OK if a call may use it.
kiln_status_t kilni_graph_check(const kiln_graph_t* graph);
kiln_status_t kilni_graph_refused(const kiln_graph_t* graph);

// Space for one node more, so that kilni_graph_node_take cannot fail.
kiln_status_t kilni_graph_node_reserve(kiln_graph_t* graph);
kiln_graph_node_t* kilni_graph_node_take(kiln_graph_t* graph,
                                         kiln_cu_graph_node_t handle,
                                         uint32_t kind);
kiln_status_t kilni_graph_more_make(kiln_graph_t* graph,
                                    kilni_graph_node_more_t** out_more);
kiln_status_t kilni_graph_node_check(const kiln_graph_node_t* node);
// For messages: its name, or its number, after that of the node that it is
// inside
// ("loop/step"), on one line.
enum { KILNI_NODE_TEXT = 640 };
const char* kilni_graph_node_says(const kiln_graph_node_t* node,
                                  char buffer[KILNI_NODE_TEXT]);
kiln_graph_node_t* kilni_graph_node_at(const kiln_graph_t* graph,
                                       uint32_t index);
// Marks it removed, with what is inside; lets go of what it kept.
void kilni_graph_node_forget(kiln_graph_node_t* node);

// Objects for all nodes that the driver knows.
kiln_status_t kilni_graph_meet_all(kiln_graph_t* graph);
// The node of a handle; NULL if there is none. Needs kilni_graph_meet_all
// where nodes may have come without us.
kiln_status_t kilni_graph_lookup(kiln_graph_t* graph,
                                 kiln_cu_graph_node_t handle,
                                 kiln_graph_node_t** out_node);

// ---- Work (graph_work.c) ----

// Work as the driver takes it. one-thread
typedef struct kilni_graph_work_t {
  const kiln_graph_work_t* given;
  kilni_graph_wanted_t wanted;
  void* allocated;  // for lists; NULL: none
  size_t allocated_bytes;
  union {
    kiln_cu_kernel_node_t kernel;
    kiln_cu_copy_3d_t copy;
    kiln_cu_memset_node_t fill;
    kiln_cu_host_node_t host;
    kiln_cu_mem_op_node_t ops;
    kiln_cu_semaphore_signal_node_t signal;
    kiln_cu_semaphore_wait_node_t wait;
    kiln_cu_alloc_node_t allocation;
    kiln_cu_graph_node_params_t conditional;
    kiln_cu_graph_t child;
    kiln_cu_event_t event;
    kiln_cu_deviceptr_t address;
  } to;
} kilni_graph_work_t;

// What the short paths accept: a launch that is given as it is to run.
static inline bool kilni_graph_work_is_launch(const kiln_graph_work_t* given) {
  return given->kind == KILN_GRAPH_KERNEL && given->reserved == 0 &&
         given->as.launch != NULL;
}

// Checks it, and puts it into the driver's words.
kiln_status_t kilni_graph_work_init(kilni_graph_work_t* work,
                                    kiln_graph_t* graph,
                                    const kiln_graph_work_t* given);
void kilni_graph_work_deinit(kilni_graph_work_t* work,
                             const kiln_graph_t* graph);
// The work's bundle is made: host data moves to its copy.
void kilni_graph_work_use_copy(kilni_graph_work_t* work,
                               const kilni_graph_bundle_t* bundle);
// A node does the work from now on. Its event counts as recorded, since whether
// a launch has recorded it yet only the driver knows; its child shares what it
// keeps.
void kilni_graph_work_taken(const kilni_graph_work_t* work);
// A child is copied, so that what it keeps is wanted too: `*out_hold`, which
// the caller releases once a bundle has it. NULL for other work.
kiln_status_t kilni_graph_work_want_child(kilni_graph_work_t* work,
                                          kilni_graph_hold_t** out_hold);
// A kernel's parameters; the same without the union.
kiln_status_t kilni_graph_work_kernel(const kiln_graph_t* graph,
                                      kiln_launch_t* launch,
                                      kiln_cu_kernel_node_t* out_kernel);
const char* kilni_graph_kind_name(uint32_t kind);
const char* kilni_graph_kind_article(uint32_t kind);  // "a" or "an"
// What a copy, fill, ... of this kind cannot be, with what to do.
kiln_status_t kilni_graph_work_wrong_kind(const kiln_graph_node_t* node,
                                          uint32_t kind);
// OK if a launch has the attributes that a node was made with.
kiln_status_t kilni_graph_work_same_how(const kiln_graph_node_t* node,
                                        const kiln_launch_t* launch);

// Calls a row of the table around which owners may be let go.
#define KILNI_GRAPH_CALL(out_status, graph_, call, ...)                 \
  do {                                                                  \
    kilni_device_late_begin((graph_)->late);                            \
    KILNI_DEVICE_CALL(out_status, (graph_)->device, call, __VA_ARGS__); \
    kilni_device_late_end((graph_)->late);                              \
  } while (0)

// ---- The short path of kernels ----
//
// The node that is made by the thousand is a kernel without attributes, of the
// same launch as the last one. Where all of that is true, a few loads confirm
// it, and only the driver's call is left; everything else takes the long path.

// ---- Adding (graph_add.c) ----

// Adds a conditional node with the driver's own dependencies and edges: its
// parameters come back with the bodies. `inout_more` gets their handles.
kiln_status_t kilni_graph_add_choice(kiln_graph_t* graph,
                                     const kiln_cu_graph_node_t* after,
                                     const kiln_cu_graph_edge_t* edges,
                                     size_t after_count,
                                     const kiln_graph_conditional_t* given,
                                     kiln_graph_node_t** out_node);

// ---- Executables (graph_exec.c) ----

struct kiln_graph_exec_t {
  // What launches and changes of kernels look at, together.
  kiln_device_t* device;
  kiln_cu_graph_exec_t handle;
  kilni_graph_current_t current;
  kilni_cuGraphLaunch_fn_t launch;  // of the device's table
  kilni_cuGraphExecKernelNodeSetParams_fn_t set_kernel;
  // Where it was launched, the last one first: retained, so that what runs can
  // be waited for.
  kiln_stream_t* streams[KILNI_GRAPH_STREAMS];
  // The launch that last gave a node its objects.
  uint64_t last_number;
  uint64_t last_version;
  bool has_last;

  bool device_launch;
  bool allocates;  // a node was set to, by Kiln
  atomic_uint references;
  kilni_device_late_t* late;
  kilni_graph_hold_t* hold;
};

// ---- Why not (graph_why.c) ----

// Each takes the status of a driver's refusal and returns it, with the reason
// where the nodes show it. `what` is copied, since it begins the message; `fix`
// names an alternative.
kiln_status_t kilni_graph_why_no_copy(kiln_graph_t* graph, const char* what,
                                      const char* fix, kiln_status_t status);
kiln_status_t kilni_graph_why_no_exec(kiln_graph_t* graph,
                                      kiln_status_t status);
kiln_status_t kilni_graph_why_no_launch(const kiln_graph_exec_t* exec,
                                        kiln_status_t status);
kiln_status_t kilni_graph_why_no_body(kiln_graph_t* graph, uint32_t kind,
                                      kiln_status_t status);
kiln_status_t kilni_graph_why_no_free(kiln_graph_t* graph, uint64_t address,
                                      kiln_status_t status);
// Of edges that are added or taken away, or of `after` of a node.
kiln_status_t kilni_graph_why_no_edge(kiln_graph_t* graph,
                                      const kiln_graph_edge_t* edges,
                                      uint32_t count, bool add,
                                      kiln_status_t status);
kiln_status_t kilni_graph_why_no_after(kiln_graph_node_t* const* after,
                                       size_t count, kiln_status_t status);
// Of a conditional node with this condition.
kiln_status_t kilni_graph_why_no_choice(const kiln_graph_t* graph,
                                        uint64_t condition,
                                        kiln_status_t status);

// ---- Captures (graph_capture.c) ----

// What the builders of one capture share. thread-compatible
typedef struct kilni_graph_capture_t {
  kilni_device_left_t left;  // once its builder was released on a wrong thread
  atomic_uint references;
  bool active;
  bool body;           // of a conditional node
  bool in_body;        // it counts as one that is captured, where it is inside
  uint32_t forks;      // that were not joined
  uint32_t over;       // what became of it: a state of builders
  atomic_uint bodies;  // inside of it, that are captured now
  uint64_t thread;     // kilni_base_thread_number of the thread that began it
  kiln_device_t* device;
  kiln_graph_t* graph;      // that is captured into; a reference
  kiln_stream_t** streams;  // of forks, until the capture ends
  size_t stream_count;
  size_t stream_space;
  // Of a body: where it is inside, and the stream of that; references.
  struct kilni_graph_capture_t* outer;
  kiln_stream_t* outer_stream;
} kilni_graph_capture_t;

struct kiln_graph_builder_t {
  kiln_device_t* device;
  atomic_uint references;
  uint32_t kind;
  uint32_t state;
  uint32_t reserved;
  kiln_stream_t* stream;           // NULL: closed
  kilni_graph_capture_t* capture;  // NULL: not begun, or over
  kiln_graph_t* graph;             // a reference; NULL: none
  // Of a body: what captured its node; references.
  kilni_graph_capture_t* outer;
  kiln_stream_t* outer_stream;
};

kiln_status_t kilni_graph_builder_make(kiln_device_t* device, uint32_t kind,
                                       kiln_stream_t* stream,
                                       kiln_graph_builder_t** out_builder);
// OK if it is capturing; `doing` is what cannot be done.
kiln_status_t kilni_graph_builder_check_capturing(
    const kiln_graph_builder_t* builder, const char* doing);
// The same, and no conditional body of it is captured now.
kiln_status_t kilni_graph_builder_check_free(
    const kiln_graph_builder_t* builder, const char* doing);
void kilni_graph_capture_retain(kilni_graph_capture_t* capture);

// Calls a row about a builder's own stream, which the builder may ask and
// change while a body of it is captured, and when it was left.
#define KILNI_CAPTURE_CALL(out_status, stream_, call, ...)               \
  KILNI_WAY_CALL(                                                        \
      out_status, (stream_)->device,                                     \
      KILNI_WAY_##call |                                                 \
          (atomic_load_explicit(&(stream_)->way, memory_order_relaxed) & \
           KILNI_WAY_CURRENT),                                           \
      call, __VA_ARGS__)

#endif  // KILN_SRC_GRAPH_GRAPH_INSIDE_H_
