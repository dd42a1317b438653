// SPDX-License-Identifier: Apache-2.0
//
// graph: work and its order, declared once and run any number of times.
//
// A graph describes work (nodes) and dependencies (edges).
// kiln_graph_exec_create makes an executable of it, which is launched on a
// stream as one unit. Graphs are built explicitly, here, or by capturing work
// put on a stream: kiln/capture.h.
//
//   kiln_graph_work_t fill = kiln_graph_work_fill(buffer, 0, 1024, 0, 4);
//   kiln_graph_work_t kernel = kiln_graph_work_launch(launch);
//   kiln_graph_create(device, &graph);
//   kiln_graph_add(graph, NULL, 0, &fill, &first);
//   kiln_graph_add(graph, &first, 1, &kernel, NULL);  // when `first` has ended
//   kiln_graph_exec_create(graph, NULL, &exec);
//   kiln_graph_exec_launch(exec, stream);             // as often as wanted
//
// Lifetimes. A graph and each executable of it retain what their nodes use: the
// kernel and the events of a launch, the buffers given to it as
// kiln_arg_buffer, buffers and arrays of copies and fills, events, host
// functions' data. They are released when neither the graph nor an executable
// nor a running launch needs them any more. Owners (kiln_owner_t) and objects
// are then released by the thread that ended the last of these, or by a thread
// of the library, since the driver's threads may not call CUDA. The caller
// keeps addresses valid (kiln_arg_pointer, host memory, copied structs). An
// executable also retains the streams that it was launched on, at most four, so
// a stream may live until the executables that ran on it have ended.
#ifndef KILN_GRAPH_H_
#define KILN_GRAPH_H_

#include "kiln/device.h"
#include "kiln/launch.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"
#include "kiln/texture.h"

KILN_EXTERN_C_BEGIN

// A graph. thread-compatible
//
// Reference-counted. Retains its device. The graph inside a child or
// conditional node is a kiln_graph_t too: a view, which retains the graph that
// it is in, and every use of it is INVALID_STATE once its node is removed.
typedef struct kiln_graph_t kiln_graph_t;

// A node of a graph. thread-compatible
//
// Belongs to its graph: borrowed, at one address as long as the graph lives.
// After it was removed every use of it is INVALID_STATE.
typedef struct kiln_graph_node_t kiln_graph_node_t;

// A graph made ready to run. thread-compatible
//
// Reference-counted. Retains its device, but not the graph it was made of,
// which may change or be released.
typedef struct kiln_graph_exec_t kiln_graph_exec_t;

// ---- Work ----

// What a node does. The numbers are the driver's.
enum {
  KILN_GRAPH_KERNEL = 0,
  KILN_GRAPH_COPY = 1,
  KILN_GRAPH_FILL = 2,
  KILN_GRAPH_HOST = 3,
  KILN_GRAPH_CHILD = 4,
  KILN_GRAPH_EMPTY = 5,
  KILN_GRAPH_WAIT = 6,
  KILN_GRAPH_RECORD = 7,
  KILN_GRAPH_SIGNAL_SEMAPHORES = 8,
  KILN_GRAPH_WAIT_SEMAPHORES = 9,
  KILN_GRAPH_ALLOCATE = 10,
  KILN_GRAPH_FREE = 11,
  KILN_GRAPH_MEMORY_OPS = 12,
  KILN_GRAPH_CONDITIONAL = 13,
};

// One side of a copy: exactly one of buffer, array and host. thread-compatible
typedef struct kiln_graph_place_t {
  kiln_buffer_t* buffer;
  kiln_array_t* array;
  union {
    void* to;
    const void* from;
  } host;
  uint64_t offset;     // bytes, in a buffer or from `host` on
  uint64_t row_bytes;  // from one row to the next; 0: rows are packed
  uint64_t rows;       // from one slice to the next; 0: slices are packed
  uint64_t x_bytes;    // where in an array
  uint64_t y;          //
  uint64_t z;          //
} kiln_graph_place_t;

// A copy of one to three dimensions. thread-compatible
typedef struct kiln_graph_copy_t {
  kiln_graph_place_t to;
  kiln_graph_place_t from;
  uint64_t bytes;   // of a row
  uint64_t rows;    // 0 is 1
  uint64_t slices;  // 0 is 1
} kiln_graph_copy_t;

// A fill of one or two dimensions. thread-compatible
typedef struct kiln_graph_fill_t {
  kiln_buffer_t* buffer;
  uint64_t offset;       // bytes, a multiple of `value_bytes`
  uint32_t value;        // its low bytes are repeated
  uint32_t value_bytes;  // 1, 2 or 4
  uint64_t count;        // values in a row
  uint64_t rows;         // 0 is 1
  uint64_t row_bytes;    // from one row to the next; 0: rows are packed
} kiln_graph_fill_t;

// A call of a host function. thread-compatible
//
// The rules of kiln_stream_call_host: short, no CUDA, no releases.
typedef struct kiln_graph_host_t {
  kiln_host_fn_t fn;
  void* user_data;
  // This many bytes at `user_data` are copied, and the function gets the copy,
  // which it may change; 0: it gets `user_data` itself.
  uint64_t copied_bytes;
  // Released once, when no graph, executable or launch needs `user_data` any
  // more, by a thread that may call CUDA. Taken only if the call succeeds.
  kiln_owner_t owner;
} kiln_graph_host_t;

// Memory that a launch of the graph allocates. thread-compatible
//
// Its address is the same in every launch: kiln_graph_node_address. A graph
// that does not free it cannot be launched again before it is freed, unless its
// executable was made with `free_on_launch`.
typedef struct kiln_graph_allocation_t {
  uint64_t bytes;
  kiln_device_t* const* peers;  // that may use it too
  uint64_t peer_count;
} kiln_graph_allocation_t;

// A number of the graph that conditional nodes obey. thread-compatible
//
// A kernel gets `handle` as an argument of 8 bytes (kiln_arg_u64) and sets it:
//
//   extern "C" __device__ void cudaGraphSetConditional(
//       unsigned long long handle, unsigned int value);
//
// in PTX `.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32
// value);`. Belongs to its graph. It is of one conditional
// node at a time: a second one is refused, and a graph with a condition that no
// node uses makes no executable.
typedef struct kiln_graph_condition_t {
  uint64_t handle;
  const kiln_graph_t* graph;
} kiln_graph_condition_t;

enum {
  KILN_GRAPH_IF = 0,      // body 0 where the number is not 0, else body 1
  KILN_GRAPH_WHILE = 1,   // body 0 as long as it is not 0
  KILN_GRAPH_SWITCH = 2,  // the body of this number; none from `bodies` on
};

// A choice between bodies, which are graphs. thread-compatible
typedef struct kiln_graph_conditional_t {
  kiln_graph_condition_t condition;
  uint32_t kind;    // KILN_GRAPH_IF, _WHILE, _SWITCH
  uint32_t bodies;  // of an IF 1 or 2, of a WHILE 1
} kiln_graph_conditional_t;

// What a stream memory operation does.
enum {
  KILN_GRAPH_WRITE_VALUE = 0,   // writes `value`
  KILN_GRAPH_WAIT_EQUAL = 1,    // waits until the word is `value`
  KILN_GRAPH_WAIT_REACHED = 2,  // until it is `value` or beyond, cyclically
  KILN_GRAPH_WAIT_AND = 3,      // until it has one of the bits of `value`
  KILN_GRAPH_WAIT_NOR = 4,      // until ~(word | value) is not 0
};

// One word of device memory, written or waited for. thread-compatible
typedef struct kiln_graph_memory_op_t {
  kiln_buffer_t* buffer;
  uint64_t offset;      // bytes, a multiple of `word_bytes`
  uint64_t value;       //
  uint32_t kind;        // KILN_GRAPH_WRITE_VALUE, KILN_GRAPH_WAIT_*
  uint32_t word_bytes;  // 4 or 8
} kiln_graph_memory_op_t;

// Operations in order. thread-compatible
typedef struct kiln_graph_memory_ops_t {
  const kiln_graph_memory_op_t* ops;
  uint64_t count;  // 1 to 256
} kiln_graph_memory_ops_t;

// An external semaphore (CUexternalSemaphore) and a value. thread-compatible
typedef struct kiln_graph_semaphore_t {
  void* handle;
  uint64_t value;
} kiln_graph_semaphore_t;

// Semaphores that are signalled or waited for together. thread-compatible
typedef struct kiln_graph_semaphores_t {
  const kiln_graph_semaphore_t* list;
  uint64_t count;      // 1 to 256
  kiln_owner_t owner;  // of all their handles; as for a host call
} kiln_graph_semaphores_t;

// The work of a node: `kind` selects the member. thread-compatible
//
// Make one with a kiln_graph_work_... function below. Pointers are read in the
// call that it is passed to.
typedef struct kiln_graph_work_t {
  uint32_t kind;  // KILN_GRAPH_*
  uint32_t reserved;
  union {
    kiln_launch_t* launch;  // KERNEL; as it is now, and may then change
    kiln_graph_copy_t copy;
    kiln_graph_fill_t fill;
    kiln_graph_host_t host;
    kiln_graph_t* child;  // cloned: later changes of it are not seen
    kiln_event_t* event;  // WAIT, RECORD
    kiln_graph_allocation_t allocation;
    uint64_t address;  // FREE: of an ALLOCATE, here or in another graph
    kiln_graph_memory_ops_t memory_ops;
    kiln_graph_semaphores_t semaphores;
    kiln_graph_conditional_t conditional;
  } as;
} kiln_graph_work_t;

// A kernel in a prepared shape, with its arguments. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_launch(kiln_launch_t* launch) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_KERNEL;
  work.reserved = 0;
  work.as.launch = launch;
  return work;
}

// Nothing: a point where edges meet. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_empty(void) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_EMPTY;
  work.reserved = 0;
  work.as.address = 0;
  return work;
}

// Any copy. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_copy(kiln_graph_copy_t copy) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_COPY;
  work.reserved = 0;
  work.as.copy = copy;
  return work;
}

// A place in a buffer, from byte `offset` on. Since 0.1.
static inline kiln_graph_place_t kiln_graph_place_buffer(kiln_buffer_t* buffer,
                                                         uint64_t offset) {
  kiln_graph_place_t place = {buffer, NULL, {NULL}, offset, 0, 0, 0, 0, 0};
  return place;
}

// A place in an array, at its beginning; set `x_bytes`, `y` and `z` for another
// one. Since 0.1.
static inline kiln_graph_place_t kiln_graph_place_array(kiln_array_t* array) {
  kiln_graph_place_t place = {NULL, array, {NULL}, 0, 0, 0, 0, 0, 0};
  return place;
}

// Host memory that is written, or read. Since 0.1.
static inline kiln_graph_place_t kiln_graph_place_host(void* data) {
  kiln_graph_place_t place = {NULL, NULL, {data}, 0, 0, 0, 0, 0, 0};
  return place;
}

// Host memory that is only read. Since 0.1.
static inline kiln_graph_place_t kiln_graph_place_host_read(const void* data) {
  kiln_graph_place_t place = {NULL, NULL, {NULL}, 0, 0, 0, 0, 0, 0};
  place.host.from = data;
  return place;
}

// `bytes` bytes, packed. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_move(kiln_graph_place_t to,
                                                     kiln_graph_place_t from,
                                                     uint64_t bytes) {
  kiln_graph_copy_t copy;
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  copy.rows = 0;
  copy.slices = 0;
  return kiln_graph_work_copy(copy);
}

// `count` values of `value_bytes` bytes. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_fill(kiln_buffer_t* buffer,
                                                     uint64_t offset,
                                                     uint64_t count,
                                                     uint32_t value,
                                                     uint32_t value_bytes) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_FILL;
  work.reserved = 0;
  work.as.fill.buffer = buffer;
  work.as.fill.offset = offset;
  work.as.fill.value = value;
  work.as.fill.value_bytes = value_bytes;
  work.as.fill.count = count;
  work.as.fill.rows = 0;
  work.as.fill.row_bytes = 0;
  return work;
}

// Calls `fn(user_data)`; the caller keeps `user_data` valid. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_host(kiln_host_fn_t fn,
                                                     void* user_data) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_HOST;
  work.reserved = 0;
  work.as.host.fn = fn;
  work.as.host.user_data = user_data;
  work.as.host.copied_bytes = 0;
  work.as.host.owner.release = NULL;
  work.as.host.owner.user_data = NULL;
  return work;
}

// A graph as one node. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_child(kiln_graph_t* child) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_CHILD;
  work.reserved = 0;
  work.as.child = child;
  return work;
}

// Records an event. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_record(kiln_event_t* event) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_RECORD;
  work.reserved = 0;
  work.as.event = event;
  return work;
}

// Waits for what was recorded in an event last; for nothing if nothing was.
// Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_wait(kiln_event_t* event) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_WAIT;
  work.reserved = 0;
  work.as.event = event;
  return work;
}

// Allocates device memory; kiln_graph_node_address returns its address. Since
// 0.1.
static inline kiln_graph_work_t kiln_graph_work_allocate(uint64_t bytes) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_ALLOCATE;
  work.reserved = 0;
  work.as.allocation.bytes = bytes;
  work.as.allocation.peers = NULL;
  work.as.allocation.peer_count = 0;
  return work;
}

// Frees what an ALLOCATE node has allocated. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_free(uint64_t address) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_FREE;
  work.reserved = 0;
  work.as.address = address;
  return work;
}

// Operations on words of device memory, in order. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_memory_ops(
    const kiln_graph_memory_op_t* ops, uint64_t count) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_MEMORY_OPS;
  work.reserved = 0;
  work.as.memory_ops.ops = ops;
  work.as.memory_ops.count = count;
  return work;
}

// A choice between bodies, which kiln_graph_node_inner returns and
// kiln_graph_add fills; `kind` is KILN_GRAPH_IF, _WHILE or _SWITCH. Since 0.1.
static inline kiln_graph_work_t kiln_graph_work_conditional(
    kiln_graph_condition_t condition, uint32_t kind, uint32_t bodies) {
  kiln_graph_work_t work;
  work.kind = KILN_GRAPH_CONDITIONAL;
  work.reserved = 0;
  work.as.conditional.condition = condition;
  work.as.conditional.kind = kind;
  work.as.conditional.bodies = bodies;
  return work;
}

// ---- Graphs ----

// Makes a graph without nodes. DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The
// caller owns `*out_graph`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_create(kiln_device_t* device, kiln_graph_t** out_graph);

// A copy with the same nodes, names and owners, of a view too. Nodes inside its
// nodes have no names in it. Statuses as create; the driver refuses graphs that
// allocate memory or have conditional nodes. The caller owns `*out_graph`.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_clone(kiln_graph_t* graph,
                                                      kiln_graph_t** out_graph);

// Adds or releases a reference. NULL is accepted. The last release may be made
// on any thread; executables of the graph live on. Since 0.1.
KILN_API void kiln_graph_retain(kiln_graph_t* graph);
KILN_API void kiln_graph_release(kiln_graph_t* graph);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_graph_device(const kiln_graph_t* graph);

// The driver's handle (CUgraph), for calls of a host program to the same
// driver. Clones, child nodes and executables made by such calls retain the
// owners too, by user objects of the driver: from then on executables of this
// graph cost more at each launch. NULL for a view whose node was removed, and
// if those objects cannot be made. Nodes that such calls remove must not be
// used here any more; the next listing of nodes or edges (kiln_graph_nodes)
// omits them, and they are removed here too. Borrowed. Since 0.1.
KILN_API void* kiln_graph_handle(const kiln_graph_t* graph);

// The node that contains a view; NULL for an independent graph. Borrowed. Since
// 0.1.
KILN_API kiln_graph_node_t* kiln_graph_inside(const kiln_graph_t* graph);

// Adds a node that waits for the `after_count` nodes at `after`, all of this
// graph. Allocates once for many nodes.
//
//   INVALID_ARGUMENT  what the stream operation of the same kind refuses; a
//                     node of another graph; a launch with attributes that no
//                     node of a graph has (which one); a child that is, or is
//                     around, this graph; an address that no ALLOCATE node has,
//                     or that a FREE node frees already
//   INVALID_STATE     a removed node, a graph that is being captured,
//                     an argument of the launch that was never given
//   UNSUPPORTED       the driver is too old: which version has it; a child
//                     whose nodes allocate, free or choose; a node that does
//                     so with memory, in a body of a conditional node
//   DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// On failure the graph is as it was. `*out_node` is borrowed; `out_node` may be
// NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_add(
    kiln_graph_t* graph, kiln_graph_node_t* const* after, uint32_t after_count,
    const kiln_graph_work_t* work, kiln_graph_node_t** out_node);

// A node that kiln_graph_add_all adds. thread-compatible
typedef struct kiln_graph_addition_t {
  const kiln_graph_work_t* work;

  // The nodes it waits for; read when it is added, so that these may be outputs
  // of earlier additions.
  kiln_graph_node_t* const* after;
  kiln_graph_node_t** out_node;  // may be NULL
  uint32_t after_count;
  uint32_t reserved;  // 0
} kiln_graph_addition_t;

// Adds `count` nodes, one after another, like kiln_graph_add, and queries the
// caller's context once for all of them: faster than separate calls.
//
//   kiln_graph_node_t* nodes[2];
//   kiln_graph_addition_t additions[] = {
//       {&fill, NULL, &nodes[0], 0, 0},
//       {&kernel, &nodes[0], &nodes[1], 1, 0},  // when the fill has ended
//   };
//   kiln_graph_add_all(graph, additions, 2, NULL);
//
// Statuses as kiln_graph_add; the message names the addition. Nodes added
// before a failure stay, and `*out_added`, which may be NULL, receives their
// number: the graph has taken their owners. The others' `*out_node` is NULL.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_add_all(kiln_graph_t* graph, const kiln_graph_addition_t* additions,
                   uint32_t count, uint32_t* out_added);

// Makes a number that conditional nodes obey. `first`, if not NULL, is the
// value that every launch starts with; else only kernels set it, and it keeps
// its value from launch to launch. UNSUPPORTED before CUDA 12.3. DEVICE_LOST,
// DRIVER_ERROR. `*out_condition` belongs to the graph. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_add_condition(kiln_graph_t* graph, const uint32_t* first,
                         kiln_graph_condition_t* out_condition);

// An edge. thread-compatible
typedef struct kiln_graph_edge_t {
  kiln_graph_node_t* from;
  kiln_graph_node_t* to;
  // KILN_GRAPH_PORT_* of `from`: which event of it is waited for. Other than 0
  // from CUDA 12.3 on, and of kernels only.
  uint32_t from_port;
  uint32_t to_port;  // 0
  uint32_t type;     // KILN_GRAPH_EDGE_*
  uint32_t reserved;
} kiln_graph_edge_t;

enum {
  KILN_GRAPH_PORT_END = 0,      // the node has ended
  KILN_GRAPH_PORT_TRIGGER = 1,  // its blocks have triggered or ended
  KILN_GRAPH_PORT_START = 2,    // its blocks have started
};
enum {
  KILN_GRAPH_EDGE_FULL = 0,
  KILN_GRAPH_EDGE_PROGRAMMATIC = 1,  // `to` itself waits for the memory
};

// The plain one: `to` begins when all of `from` has ended. Since 0.1.
static inline kiln_graph_edge_t kiln_graph_edge(kiln_graph_node_t* from,
                                                kiln_graph_node_t* to) {
  kiln_graph_edge_t edge = {from, to, 0, 0, 0, 0};
  return edge;
}

// Adds or removes edges; all or none. INVALID_ARGUMENT: an edge that exists
// already, or does not exist, from a node to itself, or to another graph's
// node; a cycle is found by kiln_graph_exec_create. INVALID_STATE, UNSUPPORTED,
// DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_connect(
    kiln_graph_t* graph, const kiln_graph_edge_t* edges, uint32_t edge_count);
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_disconnect(
    kiln_graph_t* graph, const kiln_graph_edge_t* edges, uint32_t edge_count);

// Lists nodes or edges: at most `capacity` are written to the array, and
// `*out_count` is the total. Nodes are in the order of their addition; the
// order of edges is the driver's. INVALID_STATE, DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. The results are borrowed. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_nodes(kiln_graph_t* graph, uint32_t capacity,
                 kiln_graph_node_t** out_nodes, uint32_t* out_count);
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_edges(kiln_graph_t* graph, uint32_t capacity,
                 kiln_graph_edge_t* out_edges, uint32_t* out_count);

// The node with a name (kiln_graph_node_set_name), the first if several have
// it. NOT_FOUND names it. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_find(
    kiln_graph_t* graph, const char* name, kiln_graph_node_t** out_node);

// ---- Nodes ----

// Whether the node is still in its graph. Since 0.1.
KILN_API bool kiln_graph_node_is_valid(const kiln_graph_node_t* node);

// Borrowed. Since 0.1.
KILN_API kiln_graph_t* kiln_graph_node_graph(const kiln_graph_node_t* node);

// The driver's handle (CUgraphNode); NULL after removal. Since 0.1.
KILN_API void* kiln_graph_node_handle(const kiln_graph_node_t* node);

// KILN_GRAPH_*; a higher number for a kind of a newer driver. Since 0.1.
KILN_API uint32_t kiln_graph_node_kind(const kiln_graph_node_t* node);

// Its name in errors and pictures; "" unless a name was given. Borrowed. Since
// 0.1.
KILN_API const char* kiln_graph_node_name(const kiln_graph_node_t* node);

// Sets a name of at most 255 bytes; NULL removes it. Fault reports of the
// software device use the name at the time when the executable was made.
// INVALID_STATE, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_node_set_name(kiln_graph_node_t* node, const char* name);

// For an ALLOCATE node, the address of its memory; else 0. Since 0.1.
KILN_API uint64_t kiln_graph_node_address(const kiln_graph_node_t* node);

// The graph inside a child node (`index` 0) or a conditional one: one object
// for each. INVALID_ARGUMENT: no such graph in this node; conditional nodes of
// a captured graph do not expose theirs. INVALID_STATE, DRIVER_ERROR,
// OUT_OF_MEMORY. The caller owns `*out_graph`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_node_inner(
    kiln_graph_node_t* node, uint32_t index, kiln_graph_t** out_graph);

// The known number of them. Since 0.1.
KILN_API uint32_t kiln_graph_node_inner_count(const kiln_graph_node_t* node);

// Nodes that it waits for, and nodes that wait for it, as kiln_graph_nodes.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_node_before(kiln_graph_node_t* node, uint32_t capacity,
                       kiln_graph_node_t** out_nodes, uint32_t* out_count);
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_node_after(kiln_graph_node_t* node, uint32_t capacity,
                      kiln_graph_node_t** out_nodes, uint32_t* out_count);

// What a node does, in numbers. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_graph_node_info_t {
  uint32_t kind;          // KILN_GRAPH_*
  uint32_t grid[3];       // of a kernel
  uint32_t block[3];      //
  uint32_t shared_bytes;  //
  uint32_t value;         // of a fill
  uint32_t value_bytes;   //
  uint32_t condition;     // of a conditional node: KILN_GRAPH_IF, ...
  uint32_t inner_count;   // graphs inside
  const char* kernel;     // its name where that is known, else ""
  uint64_t to;            // address that is written; 0: an array
  uint64_t from;          // address that is read
  uint64_t bytes;         // of a row, of an allocation
  uint64_t rows;          //
  uint64_t slices;        //
} kiln_graph_node_info_t;

// Queries the driver for what the node does. Fields of other kinds are 0 or "".
// INVALID_STATE, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. Texts are borrowed
// from the node, until its work is changed. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_node_describe(
    kiln_graph_node_t* node, kiln_graph_node_info_t* out_info);

// Changes the work of the node, keeping its kind, for executables made later.
// On failure node and owners are unchanged.
//
//   INVALID_ARGUMENT  another kind; a kind that cannot change (EMPTY, ALLOCATE,
//                     FREE, CONDITIONAL); what kiln_graph_add refuses
//   INVALID_STATE, UNSUPPORTED, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_node_set(kiln_graph_node_t* node, const kiln_graph_work_t* work);

// Removes the node with its edges and everything inside it; executables keep
// theirs. INVALID_STATE: it was removed before, or the graph is being captured.
// DEVICE_LOST, DRIVER_ERROR: it stays. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_node_remove(kiln_graph_node_t* node);

// ---- Executables ----

// How an executable is made. thread-compatible
typedef struct kiln_graph_exec_options_t {
  uint32_t struct_size;     // sizeof(kiln_graph_exec_options_t)
  uint32_t free_on_launch;  // KILN_SWITCH_*: frees what the launch before left
  uint32_t device_launch;   // KILN_SWITCH_*: kernels may launch it
  uint32_t use_priority;    // KILN_SWITCH_*: that of nodes, not the stream's
  kiln_stream_t* upload;    // put it on the device in this stream's order now
} kiln_graph_exec_options_t;

// All defaults. Since 0.1.
static inline kiln_graph_exec_options_t kiln_graph_exec_options_default(void) {
  kiln_graph_exec_options_t options = {(uint32_t)sizeof(options), 0, 0, 0,
                                       NULL};
  return options;
}

// Makes an executable of the graph as it is now. `options` may be NULL.
//
//   INVALID_ARGUMENT  a cycle, a condition that no node uses, nodes that a
//                     kernel's launch cannot run (the node, where the driver
//                     names it), options that do not go together, a view
//   INVALID_STATE     a graph that is being captured
//   UNSUPPORTED       a second one of a graph whose nodes allocate or free (of
//                     one with choices, if the driver has that rule), while
//                     the first exists; `device_launch`, on a device whose
//                     kernels launch no graphs
//   DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// The caller owns `*out_exec`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_exec_create(
    kiln_graph_t* graph, const kiln_graph_exec_options_t* options,
    kiln_graph_exec_t** out_exec);

// Adds or releases a reference. NULL is accepted. The last release does not
// wait: running launches continue, and what they use is retained until they are
// done. Only if a driver cannot report on them it waits for the device. Since
// 0.1.
KILN_API void kiln_graph_exec_retain(kiln_graph_exec_t* exec);
KILN_API void kiln_graph_exec_release(kiln_graph_exec_t* exec);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_graph_exec_device(const kiln_graph_exec_t* exec);

// The driver's handle (CUgraphExec), for calls of a host program to the same
// driver. Launches through it are waited for like Kiln's, except those made by
// kernels of an executable without `device_launch`. Borrowed. Since 0.1.
KILN_API void* kiln_graph_exec_handle(const kiln_graph_exec_t* exec);

// Puts the graph on a stream and returns. Launches of one executable run one
// after another. Allocates nothing, takes no lock, and makes one call to the
// driver. The first launch on a stream retains the stream.
//
//   INVALID_ARGUMENT  a stream of another device; memory that a launch before
//                     allocated and that was not freed
//   INVALID_STATE     a stream that is being captured, whose capture is broken
//                     by it: embed the graph (kiln_graph_builder_embed)
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_exec_launch(kiln_graph_exec_t* exec, kiln_stream_t* stream);

// Performs, in stream order, the preparation of the first launch. Statuses as
// launch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_exec_upload(kiln_graph_exec_t* exec, kiln_stream_t* stream);

// Why an update was refused; the driver's numbers.
enum {
  KILN_GRAPH_UPDATE_DONE = 0,
  KILN_GRAPH_UPDATE_ERROR = 1,
  KILN_GRAPH_UPDATE_TOPOLOGY = 2,         // other nodes or edges
  KILN_GRAPH_UPDATE_NODE_KIND = 3,        // a node of another kind
  KILN_GRAPH_UPDATE_FUNCTION = 4,         // a kernel of another kind
  KILN_GRAPH_UPDATE_PARAMETERS = 5,       // parameters that must not change
  KILN_GRAPH_UPDATE_NOT_SUPPORTED = 6,    // nothing of the node may change
  KILN_GRAPH_UPDATE_FUNCTION_CHANGE = 7,  // of a kernel's function
  KILN_GRAPH_UPDATE_ATTRIBUTES = 8,       // attributes that must not change
};

// The result of an update. thread-compatible
typedef struct kiln_graph_update_t {
  uint32_t reason;  // KILN_GRAPH_UPDATE_*
  uint32_t reserved;
  kiln_graph_node_t* node;  // of the new graph; NULL: none in particular
  kiln_graph_node_t* from;  // an edge's beginning, where it is an edge
} kiln_graph_update_t;

// Updates the executable to `graph`, which must have the same nodes and edges,
// made in the same order, as the graph that it was made of. Running launches
// are not affected. `out_update` may be NULL.
//
//   INVALID_ARGUMENT  refused, with the reason and the node
//   INVALID_STATE     a graph that is being captured
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// On failure the executable is unchanged. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_exec_update(kiln_graph_exec_t* exec, kiln_graph_t* graph,
                       kiln_graph_update_t* out_update);

// Changes the work of one node of the executable; the graph of `node` is
// unchanged. For KERNEL, COPY (of one dimension), FILL (the same), HOST, CHILD,
// RECORD, WAIT, MEMORY_OPS and semaphores. `node` is of the graph that the
// executable was made of. What it used before is retained until the executable
// is released or updated as a whole.
//
//   INVALID_ARGUMENT  a node that the executable does not have, another kind,
//                     work that the driver does not change this way
//   INVALID_STATE, UNSUPPORTED, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_exec_set(kiln_graph_exec_t* exec, kiln_graph_node_t* node,
                    const kiln_graph_work_t* work);

// Other work for a node, with arguments. thread-compatible
typedef struct kiln_graph_change_t {
  kiln_graph_node_t* node;
  const kiln_graph_work_t* work;

  // Where `argument_count` is not 0, these are given to the launch of `work`
  // first, as kiln_launch_set does, from the parameter `first_argument` on; it
  // keeps them. So one launch serves many nodes that differ in few arguments.
  const kiln_argument_t* arguments;
  uint32_t first_argument;
  uint32_t argument_count;
} kiln_graph_change_t;

// Changes the work of `count` nodes of the executable, one after another, like
// kiln_graph_exec_set, and queries the caller's context once for all of them:
// faster than separate calls.
//
//   for (uint32_t i = 0; i < count; i++) {
//     sizes[i] = kiln_arg_u32(i);
//     changes[i] = (kiln_graph_change_t){nodes[i], &kernel, &sizes[i], 2, 1};
//   }
//   kiln_graph_exec_set_all(exec, changes, count, NULL);
//
// Statuses as kiln_graph_exec_set and kiln_launch_set; the message names the
// change. Those before a failure stay, and `*out_changed`, which may be NULL,
// receives their number. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_exec_set_all(
    kiln_graph_exec_t* exec, const kiln_graph_change_t* changes, uint32_t count,
    uint32_t* out_changed);

// Lets a KERNEL, COPY or FILL node of the executable run or not; one that does
// not run is like an EMPTY one. INVALID_ARGUMENT: any other node.
// INVALID_STATE, DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_exec_enable(
    kiln_graph_exec_t* exec, kiln_graph_node_t* node, bool enabled);
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_exec_is_enabled(
    kiln_graph_exec_t* exec, kiln_graph_node_t* node, bool* out_enabled);

// ---- Memory ----

// Bytes that allocation nodes of all graphs take on a device. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_graph_memory_t {
  // Of executables that allocate; a driver counts whole blocks (of 32 MiB in
  // driver 580) and may count memory that is free between launches too.
  uint64_t used;
  uint64_t used_peak;      // the maximum since the peaks were reset
  uint64_t reserved;       // reserved for them and for later launches
  uint64_t reserved_peak;  //
} kiln_graph_memory_t;

// Queries the driver, from any thread. For a part of a device, the values of
// the whole device. UNSUPPORTED: a provider without such memory. DEVICE_LOST,
// DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_memory_describe(
    kiln_device_t* device, kiln_graph_memory_t* out_memory);

// Resets both peaks to the current values. Statuses as describe. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_memory_reset_peaks(kiln_device_t* device);

// Releases reserved but unused memory: the next launch that allocates takes
// longer. Statuses as describe. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_memory_trim(kiln_device_t* device);

KILN_EXTERN_C_END

#endif  // KILN_GRAPH_H_
