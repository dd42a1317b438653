// SPDX-License-Identifier: Apache-2.0
//
// soft: graphs: nodes with edges, executables made of them, what keeps user
// objects alive, and captures.
//
// A graph is a list of nodes in the order they were made; each node has the
// edges that lead into it. An executable is a copy of a graph (kilni_soft_graph
// _copy) whose nodes have the numbers of those that they were copied from, in
// an order that its edges allow. A launch makes tasks of it (soft_queue.h).
// Everything here is guarded by the driver's lock.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_GRAPH_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_GRAPH_H_

#include "soft/driver/soft_driver.h"
#include "table/cuda_abi.h"
#include "table/table.h"

typedef struct kilni_soft_graph_t kilni_soft_graph_t;
typedef struct kilni_soft_exec_t kilni_soft_exec_t;
typedef struct kilni_soft_capture_t kilni_soft_capture_t;

// One edge, seen from where it leads. thread-compatible
typedef struct kilni_soft_dependency_t {
  kilni_soft_node_t* from;
  kiln_cu_graph_edge_t data;
} kilni_soft_dependency_t;

// A list of them. thread-compatible
typedef struct kilni_soft_dependencies_t {
  kilni_soft_dependency_t* list;
  size_t count;
  size_t capacity;
} kilni_soft_dependencies_t;

// A kernel and what it is launched with. thread-compatible
typedef struct kilni_soft_kernel_node_t {
  uint64_t function;  // its handle
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t param_bytes;
  uint32_t param_count;
  uint32_t attribute_count;
  uint8_t* packed;  // param_bytes
  void** params;    // into it
  kiln_cu_launch_attribute_t* attributes;
} kilni_soft_kernel_node_t;

// Memory of allocation nodes. It is there from the node's making on, and is
// counted as used from the launch of its allocation to that of its free.
// thread-compatible
typedef struct kilni_soft_store_t {
  uint64_t address;  // 0: ended with its context
  uint64_t bytes;
  uint32_t device;
  uint32_t refs;  // nodes
  bool used;
  struct kilni_soft_store_t* next;
} kilni_soft_store_t;

// The value that conditional nodes read: four bytes of device memory, whose
// address is its handle. thread-compatible
typedef struct kilni_soft_value_t {
  uint64_t address;
  uint32_t device;
  kilni_soft_graph_t* graph;  // the outermost, whose nodes may read it
  uint32_t initial;
  bool assign;
  uint32_t refs;            // graphs and executables
  kilni_soft_task_t* last;  // of the launches that use it
  struct kilni_soft_value_t* next;
} kilni_soft_value_t;

// What a node does. thread-compatible
typedef union kilni_soft_doing_t {
  kilni_soft_kernel_node_t kernel;
  struct {
    kiln_cu_copy_3d_t copy;
    kiln_cu_context_t context;
  } copy;
  struct {
    kiln_cu_memset_node_t fill;
    kiln_cu_context_t context;
  } fill;
  kiln_cu_host_node_t host;
  kilni_soft_graph_t* child;
  uint64_t event;  // its handle
  struct {
    kiln_cu_alloc_node_t params;
    kiln_cu_mem_access_desc_t* access;
    kilni_soft_store_t* store;
  } alloc;
  struct {
    uint64_t address;
    kilni_soft_store_t* store;
  } release;
  kiln_cu_mem_op_node_t values;
  struct {
    uint64_t handle;
    uint32_t type;
    uint32_t count;
    kilni_soft_graph_t** bodies;
    kiln_cu_graph_t* handles;
    kiln_cu_context_t context;
  } condition;
} kilni_soft_doing_t;

// A node. thread-compatible
struct kilni_soft_node_t {
  uint64_t handle;
  kilni_soft_graph_t* graph;
  uint64_t number;   // in its graph and in every copy of it
  uint32_t type;     // KILN_CU_GRAPH_NODE_TYPE_*
  bool disabled;     // of an executable
  const char* call;  // that was captured; NULL: made by hand
  char* label;       // for faults; NULL: none
  kilni_soft_dependencies_t in;
  kilni_soft_doing_t as;
  // While a list is read or sorted or a launch is made.
  size_t at;  // the next edge to follow
  // 0: not met, 1: being followed, 2: in its place, 3: in the list
  uint32_t state;
  bool has_next;            // an edge leads out of it
  kilni_soft_node_t* back;  // that was left to come here
  kilni_soft_task_t* head;
  kilni_soft_task_t* tail;
};

// References of a graph to a user object. thread-compatible
typedef struct kilni_soft_holding_t {
  struct kilni_soft_object_t* object;
  uint64_t count;
} kilni_soft_holding_t;

// A user object. thread-compatible
typedef struct kilni_soft_object_t {
  uint64_t handle;
  uint64_t refs;   // all
  uint64_t owned;  // by the caller
  kiln_cu_host_fn_t destroy;
  void* user;
  struct kilni_soft_object_t* next;
} kilni_soft_object_t;

// A graph. thread-compatible
struct kilni_soft_graph_t {
  uint64_t handle;            // 0: of an executable
  uint64_t serial;            // unlike every other's
  uint64_t origin;            // the serial of what it was copied of; 0: of none
  kilni_soft_node_t* of;      // the node whose child or body it is
  bool is_body;               // of a conditional node
  kilni_soft_node_t** nodes;  // by number
  size_t count;
  size_t capacity;
  kilni_soft_node_t** order;  // of an executable: as the edges allow
  size_t order_count;
  uint64_t next_number;
  kilni_soft_holding_t* holdings;
  size_t holding_count;
  size_t holding_capacity;
  kilni_soft_value_t** values;
  size_t value_count;
  size_t value_capacity;
  kilni_soft_capture_t* capture;  // that adds to it
  kilni_soft_graph_t* next;       // of all that a caller has to destroy
};

// A graph ready to run. thread-compatible
struct kilni_soft_exec_t {
  uint64_t handle;  // 0: destroyed, and still running
  uint64_t serial;
  uint64_t flags;
  uint32_t refs;  // the handle and what runs
  bool has_store;
  kilni_soft_graph_t* graph;
  kilni_soft_task_t* last;  // the end of its last launch
  kilni_soft_exec_t* next;
};

// A launch that runs. thread-compatible
struct kilni_soft_flight_t {
  kilni_soft_exec_t* exec;
};

// A capture. thread-compatible
struct kilni_soft_capture_t {
  uint64_t id;
  kilni_soft_graph_t* graph;
  bool is_own;  // the graph was made for it
  bool invalid;
  kiln_cu_capture_mode_t mode;
  uint64_t thread;                    // that began it
  kilni_soft_stream_t* origin;        // NULL: destroyed meanwhile
  const char* broken_by;              // the call that invalidated it
  bool told;                          // of work from another thread
  kilni_soft_dependencies_t orphans;  // where ended streams were
  kilni_soft_capture_t* next;
};

// What a captured stream knows. thread-compatible
typedef struct kilni_soft_captured_t {
  kilni_soft_capture_t* capture;
  kilni_soft_dependencies_t at;  // what the next node waits for
  kiln_cu_graph_node_t* nodes;   // its access settings
  kiln_cu_graph_edge_t* edges;   // space for `told`
  size_t told;
  const char* forked_by;  // the call; NULL: it began the capture
} kilni_soft_captured_t;

// ---- soft_graph.c: graphs and nodes as objects ----

kiln_cu_result_t kilni_soft_graph_new(kilni_soft_driver_t* driver,
                                      kilni_soft_graph_t** out_graph);
// Gives it a handle, and puts it on the list of those to be destroyed.
kiln_cu_result_t kilni_soft_graph_publish(kilni_soft_driver_t* driver,
                                          kilni_soft_graph_t* graph);
// With everything in it.
void kilni_soft_graph_free(kilni_soft_driver_t* driver,
                           kilni_soft_graph_t* graph);
// A copy with all that is in it; nodes keep their numbers. With `handles` its
// nodes and graphs have some.
kiln_cu_result_t kilni_soft_graph_copy(kilni_soft_driver_t* driver,
                                       const kilni_soft_graph_t* graph,
                                       bool handles,
                                       kilni_soft_graph_t** out_copy);
kilni_soft_graph_t* kilni_soft_graph_find(const kilni_soft_driver_t* driver,
                                          kiln_cu_graph_t graph);
kilni_soft_node_t* kilni_soft_node_find(const kilni_soft_driver_t* driver,
                                        kiln_cu_graph_node_t node);
// The node of a graph with this number, NULL if it has none. Not of an
// executable's.
kilni_soft_node_t* kilni_soft_graph_node(const kilni_soft_graph_t* graph,
                                         uint64_t number);
// The outermost graph that this one is in.
kilni_soft_graph_t* kilni_soft_graph_top(kilni_soft_graph_t* graph);
// Whether a node of the graph, or of one in it, asks for this value.
bool kilni_soft_graph_asks(const kilni_soft_graph_t* graph,
                           const kilni_soft_value_t* value);
// Adds a node that owns `doing` and waits for `in`; both are the caller's still
// if it fails.
kiln_cu_result_t kilni_soft_node_new(kilni_soft_driver_t* driver,
                                     kilni_soft_graph_t* graph, uint32_t type,
                                     const kilni_soft_dependencies_t* in,
                                     bool handles,
                                     const kilni_soft_doing_t* doing,
                                     kilni_soft_node_t** out_node);
// Everything of the driver is about to end.
void kilni_soft_graphs_clear(kilni_soft_driver_t* driver);
// All memory of a device is gone.
void kilni_soft_graphs_forget(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context);

// Dependencies as the rows have them: INVALID_VALUE unless all are nodes of
// `graph`, each once. `edges` may be NULL.
kiln_cu_result_t kilni_soft_dependencies_read(
    kilni_soft_driver_t* driver, const kilni_soft_graph_t* graph,
    const kiln_cu_graph_node_t* nodes, const kiln_cu_graph_edge_t* edges,
    size_t count, kilni_soft_dependencies_t* out_in);
// Adds one unless it is there already.
kiln_cu_result_t kilni_soft_dependencies_add(kilni_soft_driver_t* driver,
                                             kilni_soft_dependencies_t* in,
                                             kilni_soft_node_t* from,
                                             const kiln_cu_graph_edge_t* data);
kiln_cu_result_t kilni_soft_dependencies_copy(
    kilni_soft_driver_t* driver, const kilni_soft_dependencies_t* in,
    kilni_soft_dependencies_t* out_in);
void kilni_soft_dependencies_free(kilni_soft_driver_t* driver,
                                  kilni_soft_dependencies_t* in);

// ---- soft_graph_doing.c: what nodes do ----

// A kernel as it was asked for; INVALID_VALUE, as a launch would give it.
kiln_cu_result_t kilni_soft_doing_kernel(kilni_soft_driver_t* driver,
                                         const kiln_cu_kernel_node_t* params,
                                         kilni_soft_doing_t* out_doing);
kiln_cu_result_t kilni_soft_doing_memcpy(kilni_soft_driver_t* driver,
                                         const kiln_cu_copy_3d_t* copy,
                                         kiln_cu_context_t context,
                                         kilni_soft_doing_t* out_doing);
kiln_cu_result_t kilni_soft_doing_memset(kilni_soft_driver_t* driver,
                                         const kiln_cu_memset_node_t* fill,
                                         kiln_cu_context_t context,
                                         kilni_soft_doing_t* out_doing);
kiln_cu_result_t kilni_soft_doing_values(kilni_soft_driver_t* driver,
                                         const kiln_cu_mem_op_node_t* params,
                                         kilni_soft_doing_t* out_doing);
kiln_cu_result_t kilni_soft_doing_copy(kilni_soft_driver_t* driver,
                                       uint32_t type,
                                       const kilni_soft_doing_t* doing,
                                       bool handles,
                                       kilni_soft_doing_t* out_copy);
void kilni_soft_doing_free(kilni_soft_driver_t* driver, uint32_t type,
                           kilni_soft_doing_t* doing);
kiln_cu_result_t kilni_soft_kernel_set_attribute(
    kilni_soft_driver_t* driver, kilni_soft_kernel_node_t* kernel,
    const kiln_cu_launch_attribute_t* attribute);
const kiln_cu_launch_attribute_t* kilni_soft_kernel_attribute(
    const kilni_soft_kernel_node_t* kernel, kiln_cu_launch_attribute_id_t id);
// soft_launch.c: a kernel and its arguments, kept for later; and its grid, as
// work `number` of `stream`. What is made of `out_kernel` is there also if it
// fails.
kiln_cu_result_t kilni_soft_launch_keep(
    kilni_soft_driver_t* driver, const kiln_cu_kernel_node_t* params,
    const kiln_cu_launch_attribute_t* attributes, unsigned int count,
    kilni_soft_kernel_node_t* out_kernel);
kiln_cu_result_t kilni_soft_launch_kept(kilni_soft_driver_t* driver,
                                        const kilni_soft_stream_t* stream,
                                        const kilni_soft_kernel_node_t* kernel,
                                        uint64_t number,
                                        kilni_soft_grid_t** out_grid);
// The work of a node that is one task; owned by the caller.
kiln_cu_result_t kilni_soft_doing_work(kilni_soft_driver_t* driver,
                                       const kilni_soft_stream_t* stream,
                                       const kilni_soft_node_t* node,
                                       uint64_t number,
                                       kilni_soft_work_t* out_work);

// ---- soft_graph_node.c ----

// What `params` request of a node of `graph`; the driver's answers are stored
// there.
kiln_cu_result_t kilni_soft_doing_read(kilni_soft_driver_t* driver,
                                       kilni_soft_graph_t* graph,
                                       kiln_cu_graph_node_params_t* params,
                                       kilni_soft_doing_t* out_doing);
// The node does this from now on, which it owns.
void kilni_soft_doing_replace(kilni_soft_driver_t* driver,
                              kilni_soft_node_t* node,
                              kilni_soft_doing_t* doing);

// Whether it has a conditional node: such a graph has one executable at a time
// and is never copied into another graph, nor cloned.
bool kilni_soft_graph_chooses(const kilni_soft_graph_t* graph);
// ---- soft_graph_exec.c, soft_graph_launch.c ----

// Sorts the nodes of a graph, and of those in it. INVALID_VALUE with a cycle,
// and then `*out_node` is in it.
kiln_cu_result_t kilni_soft_graph_sort(kilni_soft_driver_t* driver,
                                       kilni_soft_graph_t* graph,
                                       kilni_soft_node_t** out_node);
kilni_soft_exec_t* kilni_soft_exec_find(const kilni_soft_driver_t* driver,
                                        kiln_cu_graph_exec_t exec);
// The executable's own of a node of its graph; NULL: there is none.
kilni_soft_node_t* kilni_soft_exec_node(kilni_soft_exec_t* exec,
                                        const kilni_soft_node_t* node);
// One reference less.
void kilni_soft_exec_release(kilni_soft_driver_t* driver,
                             kilni_soft_exec_t* exec);
kiln_cu_result_t kilni_soft_exec_launch(kilni_soft_driver_t* driver,
                                        kilni_soft_exec_t* exec,
                                        kilni_soft_stream_t* stream);
// For the queue: a launch is over; a conditional node decides.
void kilni_soft_flight_end(kilni_soft_driver_t* driver,
                           kilni_soft_flight_t* flight);
// Whether it is a loop that is to turn and cannot change its own value.
bool kilni_soft_condition_idles(const kilni_soft_driver_t* driver,
                                const kilni_soft_task_t* task);
kiln_cu_result_t kilni_soft_condition_run(kilni_soft_driver_t* driver,
                                          kilni_soft_task_t* task,
                                          kiln_fault_t* out_fault);

// ---- soft_graph_object.c: user objects, values and memory of graphs ----

kiln_cu_result_t kilni_soft_holding_add(kilni_soft_driver_t* driver,
                                        kilni_soft_graph_t* graph,
                                        kilni_soft_object_t* object,
                                        uint64_t count);
// The graph lets go of all.
void kilni_soft_holdings_free(kilni_soft_driver_t* driver,
                              kilni_soft_graph_t* graph);
// Calls the destructors of objects without references. Unlocks meanwhile.
void kilni_soft_objects_end(kilni_soft_driver_t* driver);
// Ends them without a callback.
void kilni_soft_objects_forget(kilni_soft_driver_t* driver);
kilni_soft_value_t* kilni_soft_value_find(const kilni_soft_driver_t* driver,
                                          uint64_t handle);
kiln_cu_result_t kilni_soft_values_copy(kilni_soft_driver_t* driver,
                                        const kilni_soft_graph_t* graph,
                                        kilni_soft_graph_t* copy);
void kilni_soft_values_free(kilni_soft_driver_t* driver,
                            kilni_soft_graph_t* graph);
kiln_cu_result_t kilni_soft_store_new(kilni_soft_driver_t* driver,
                                      uint32_t device, uint64_t bytes,
                                      kilni_soft_store_t** out_store);
kilni_soft_store_t* kilni_soft_store_find(const kilni_soft_driver_t* driver,
                                          uint64_t address);
void kilni_soft_store_release(kilni_soft_driver_t* driver,
                              kilni_soft_store_t* store);
void kilni_soft_store_use(kilni_soft_driver_t* driver,
                          kilni_soft_store_t* store, bool used);

// ---- soft_capture.c ----

// Whether this stream is captured, for a row that would issue to it: SUCCESS
// and `*out_captured`, NULL where it is not; STREAM_CAPTURE_INVALIDATED, or
// STREAM_CAPTURE_IMPLICIT for the legacy stream where a captured one would wait
// for it. `call` is the row, for reports.
kiln_cu_result_t kilni_soft_capture_enter(kilni_soft_driver_t* driver,
                                          kilni_soft_stream_t* stream,
                                          const char* call,
                                          kilni_soft_captured_t** out_captured);
// Adds what `call` does to the capture; owns `doing`, also when it fails.
kiln_cu_result_t kilni_soft_capture_add(kilni_soft_driver_t* driver,
                                        kilni_soft_captured_t* captured,
                                        const char* call, uint32_t type,
                                        kilni_soft_doing_t* doing,
                                        kilni_soft_node_t** out_node);
// The same of memory from a pool, and of its free.
kiln_cu_result_t kilni_soft_capture_alloc(kilni_soft_driver_t* driver,
                                          kilni_soft_captured_t* captured,
                                          const char* call, uint32_t device,
                                          uint64_t bytes,
                                          kiln_cu_deviceptr_t* out_address);
kiln_cu_result_t kilni_soft_capture_free(kilni_soft_driver_t* driver,
                                         kilni_soft_captured_t* captured,
                                         const char* call, uint64_t address);
// A call that a capture forbids: SUCCESS, or STREAM_CAPTURE_UNSUPPORTED, with
// the captures that it breaks.
kiln_cu_result_t kilni_soft_capture_unsafe(kilni_soft_driver_t* driver,
                                           const char* call);
// For cuStreamSynchronize and its like on `stream` itself: SUCCESS, or what a
// capture makes of it.
kiln_cu_result_t kilni_soft_capture_asked(kilni_soft_driver_t* driver,
                                          kilni_soft_stream_t* stream,
                                          const char* call);
// Does that for work that a graph cannot contain: only of a capture `stream` is
// in.
kiln_cu_result_t kilni_soft_capture_refuse(kilni_soft_driver_t* driver,
                                           kilni_soft_stream_t* stream,
                                           const char* call);
// The same of an event.
kiln_cu_result_t kilni_soft_capture_event(kilni_soft_driver_t* driver,
                                          kilni_soft_event_t* event,
                                          const char* call);
// Breaks the capture, and gives `result`.
kiln_cu_result_t kilni_soft_capture_break(kilni_soft_driver_t* driver,
                                          kilni_soft_capture_t* capture,
                                          const char* call,
                                          kiln_cu_result_t result);
// An event is recorded in, or waited for by, a captured stream.
kiln_cu_result_t kilni_soft_capture_record(kilni_soft_driver_t* driver,
                                           kilni_soft_captured_t* captured,
                                           kilni_soft_event_t* event);
kiln_cu_result_t kilni_soft_capture_wait(kilni_soft_driver_t* driver,
                                         kilni_soft_stream_t* stream,
                                         const kilni_soft_event_t* event,
                                         bool* out_done);
// The event has no place in a capture any more.
void kilni_soft_capture_forget(kilni_soft_driver_t* driver,
                               kilni_soft_event_t* event);
// A stream ends: so does its capture.
void kilni_soft_capture_leave(kilni_soft_driver_t* driver,
                              kilni_soft_stream_t* stream);
// A node, or its graph, has been destroyed.
void kilni_soft_capture_lose(kilni_soft_driver_t* driver,
                             const kilni_soft_node_t* node);

// ---- soft_values.c ----

// Goes on with a list of operations on values: false at one that has to wait.
// `*out_gone`: memory of it is there no more.
bool kilni_soft_values_run(kilni_soft_driver_t* driver, kilni_soft_work_t* work,
                           bool* out_gone);

void kilni_soft_fill_graph(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_edge(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_node(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_exec(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_update(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_object(kiln_cuda_table_t* table);
void kilni_soft_fill_graph_dot(kiln_cuda_table_t* table);
void kilni_soft_fill_capture(kiln_cuda_table_t* table);
void kilni_soft_fill_values(kiln_cuda_table_t* table);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_GRAPH_H_
