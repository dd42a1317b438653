// SPDX-License-Identifier: Apache-2.0
//
// soft: a launched kernel: what its blocks share, and the loop of a worker.
//
// Blocks start in index order (in another order by the seed, which CUDA leaves
// unspecified) and a block that has started keeps being run. A worker runs one
// block, and starts another only while the first does nothing but wait.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "soft/engine/soft_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum {
  GRID_ALIGN = 64,
  MAX_THREADS = 1024,
  RESIDENT_BYTES = 256 << 20,  // of blocks that wait, per worker
  HELD_BLOCKS = 64,            // that are begun before the kernel in front ends
  WORKSPACE_BYTES = 64,
};

static uint64_t grid_round(uint64_t bytes) {
  return (bytes + GRID_ALIGN - 1) & ~(uint64_t)(GRID_ALIGN - 1);
}

static uint64_t param_value(const kilni_soft_grid_t* grid,
                            const kilni_soft_constant_t* constant) {
  uint64_t value = 0;
  uint32_t end = grid->entry->param_bytes;
  if (constant->value + constant->bytes <= end) {
    memcpy(&value, grid->params + constant->value, constant->bytes);
  }
  if (constant->is_signed && constant->bytes < 8) {
    uint64_t sign = 1ull << (constant->bytes * 8 - 1);
    value = (value ^ sign) - sign;
  }
  if (constant->to_bytes < 8) value &= (1ull << (constant->to_bytes * 8)) - 1;
  return value;
}

static uint64_t constant_value(const kilni_soft_grid_t* grid,
                               const kilni_soft_constant_t* constant,
                               const uint32_t* shared) {
  const kilni_soft_launch_t* launch = &grid->launch;
  switch (constant->kind) {
    case KILNI_SOFT_CONSTANT_PARAM:
      return param_value(grid, constant);
    case KILNI_SOFT_CONSTANT_SHARED:
      return constant->value + shared[constant->index] +
             (constant->generic ? KILNI_SOFT_SHARED_BASE : 0);
    case KILNI_SOFT_CONSTANT_NTID:
      return launch->block[constant->index];
    case KILNI_SOFT_CONSTANT_NCTAID:
      return launch->grid[constant->index];
    case KILNI_SOFT_CONSTANT_DYNAMIC_BYTES:
      return launch->dynamic_shared_bytes;
    case KILNI_SOFT_CONSTANT_TOTAL_BYTES:
      return grid->shared_bytes;
    case KILNI_SOFT_CONSTANT_WORKSPACE:
      return (uint32_t)(grid->workspace >> (constant->index ? 32 : 0));
    default:
      return constant->value;
  }
}

static void fill_constants(const kilni_soft_grid_t* grid,
                           const kilni_soft_function_t* function,
                           const uint32_t* shared, uint8_t* area) {
  for (uint32_t i = 0; i < function->constant_count; i++) {
    const kilni_soft_constant_t* constant = &function->constants[i];
    uint64_t value = constant_value(grid, constant, shared);
    void* slot = area + constant->offset;
    for (uint32_t lane = 0; lane < KILNI_SOFT_LANES; lane++) {
      if (constant->wide) {
        ((uint64_t*)slot)[lane] = value;
      } else {
        ((uint32_t*)slot)[lane] = (uint32_t)value;
      }
    }
  }
}

static bool asks_reserved(const kilni_soft_function_t* function) {
  for (uint32_t i = 0; i < function->constant_count; i++) {
    if (function->constants[i].kind == KILNI_SOFT_CONSTANT_RESERVED) {
      return true;
    }
  }
  return false;
}

static kiln_status_t make_constants(kilni_soft_grid_t* grid,
                                    const kilni_soft_function_t** reached,
                                    uint32_t* shared) {
  const kilni_soft_code_t* code = grid->code;
  kilni_soft_reach(code, grid->entry->function, reached);
  grid->static_shared_bytes = kilni_soft_shared_bytes(code, reached, shared);
  grid->shared_bytes =
      grid->static_shared_bytes + grid->launch.dynamic_shared_bytes;
  for (uint32_t f = 0; f < code->function_count; f++) {
    if (!reached[f]) continue;
    void* area;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc_aligned(
        grid->host->allocator, (size_t)reached[f]->constant_bytes + GRID_ALIGN,
        GRID_ALIGN, &area));
    grid->constants[f] = area;
    fill_constants(grid, reached[f], shared, area);
    if (asks_reserved(reached[f])) {
      grid->reserved_bytes = KILNI_SOFT_RESERVED_BYTES;
    }
  }
  return kiln_ok();
}

static kiln_status_t prepare_constants(kilni_soft_grid_t* grid) {
  kiln_allocator_t allocator = grid->host->allocator;
  size_t functions = grid->code->function_count;
  size_t symbols = grid->code->symbol_count;
  void* reached = NULL;
  void* shared = NULL;
  kiln_status_t status = kilni_base_alloc_array(
      allocator, functions, sizeof(kilni_soft_function_t*), &reached);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_base_alloc_array(allocator, symbols, sizeof(uint32_t), &shared);
  }
  if (kiln_status_is_ok(status)) status = make_constants(grid, reached, shared);
  kilni_base_free_array(allocator, shared, symbols, sizeof(uint32_t));
  kilni_base_free_array(allocator, reached, functions,
                        sizeof(kilni_soft_function_t*));
  return status;
}

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void grid_choose_order(kilni_soft_grid_t* grid) {
  grid->order_step = 1;
  if (!grid->launch.seed || grid->block_count < 2) return;
  if (grid->block_count > UINT32_MAX) return;  // products would not fit
  uint64_t x = grid->launch.seed * 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  grid->order_start = x % grid->block_count;
  uint64_t step = 1 + (x >> 32) % grid->block_count;
  while (gcd(step, grid->block_count) != 1) step++;
  grid->order_step = step % grid->block_count;
}

static void lay_out_block(kilni_soft_grid_t* grid) {
  const kilni_soft_function_t* function = grid->function;
  uint64_t at = grid_round(sizeof(kilni_soft_block_t));
  grid->warps_offset = at;
  at += grid_round(sizeof(kilni_soft_run_t) * (uint64_t)grid->warp_count);
  grid->frames_offset = at;
  grid->frame_stride =
      grid_round((uint64_t)function->pred_count * 4) + function->frame_bytes;
  at += grid->frame_stride * grid->warp_count;
  grid->local_offset = at;
  grid->local_stride = ((uint64_t)function->local_bytes + 15) & ~15ull;
  at += grid_round(grid->local_stride * KILNI_SOFT_LANES * grid->warp_count);
  grid->shared_offset = at;
  at += grid_round(grid->shared_bytes);
  grid->reserved_offset = at;
  at += grid_round(grid->reserved_bytes);
  grid->marks_offset = at;
  if (grid->marks) at += grid_round(KILNI_SOFT_MARKS_SIZE(grid->shared_bytes));
  grid->block_bytes = at;
}

static kiln_status_t check_launch(const kilni_soft_launch_t* launch) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (launch->grid[i] == 0 || launch->block[i] == 0) {
      return KILNI_FAIL(INVALID_ARGUMENT,
                        "grid and block need at least 1 in each dimension");
    }
    threads *= launch->block[i];
    if (threads > MAX_THREADS) {
      return KILNI_FAIL(INVALID_ARGUMENT,
                        "a block of more than %d threads was asked for",
                        MAX_THREADS);
    }
  }
  return kiln_ok();
}

// What grid.sync() counts in: its size, then the barrier's word.
static kiln_status_t make_workspace(kilni_soft_grid_t* grid) {
  KILNI_RETURN_IF_ERROR(kilni_soft_memory_alloc(grid->memory, WORKSPACE_BYTES,
                                                KILNI_SOFT_ALLOC_MODULE,
                                                &grid->workspace));
  uint32_t* host =
      kilni_soft_memory_host(grid->memory, grid->workspace, WORKSPACE_BYTES);
  memset(host, 0, WORKSPACE_BYTES);
  host[0] = WORKSPACE_BYTES;
  return kiln_ok();
}

static kiln_status_t grid_init(kilni_soft_grid_t* grid) {
  const kilni_soft_launch_t* launch = &grid->launch;
  grid->function = &grid->code->functions[grid->entry->function];
  grid->threads = launch->block[0] * launch->block[1] * launch->block[2];
  grid->warp_count = (grid->threads + KILNI_SOFT_LANES - 1) / KILNI_SOFT_LANES;
  grid->block_count = (uint64_t)launch->grid[0] * launch->grid[1];
  grid->block_count *= launch->grid[2];
  grid->stack_bytes = launch->stack_bytes ? launch->stack_bytes : 1024;
  grid->start_ns = kilni_base_time_ns();
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_aligned(
      grid->host->allocator, (size_t)grid->entry->param_bytes + GRID_ALIGN,
      GRID_ALIGN, &memory));
  grid->params = memory;
  if (grid->entry->param_bytes) {
    memcpy(grid->params, launch->params, grid->entry->param_bytes);
  }
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(grid->host->allocator,
                                               grid->code->function_count,
                                               sizeof(uint8_t*), &memory));
  grid->constants = memory;
  if (launch->cooperative) KILNI_RETURN_IF_ERROR(make_workspace(grid));
  KILNI_RETURN_IF_ERROR(prepare_constants(grid));
  grid_choose_order(grid);
  lay_out_block(grid);
  if (!launch->profiled) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      grid->host->allocator, sizeof(kilni_soft_profile_t), &memory));
  grid->profile = memory;
  return kiln_ok();
}

kiln_status_t kilni_soft_grid_create(const kiln_host_t* host,
                                     kilni_soft_memory_t* memory,
                                     const kilni_soft_launch_t* launch,
                                     kilni_soft_grid_t** out_grid) {
  *out_grid = NULL;
  KILNI_RETURN_IF_ERROR(check_launch(launch));
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(kilni_soft_grid_t), &block));
  kilni_soft_grid_t* grid = block;
  grid->host = host;
  grid->memory = memory;
  grid->marks = kilni_soft_memory_marks(memory);
  grid->watched = grid->marks != NULL;
  grid->launch = *launch;
  grid->entry = launch->entry;
  grid->code = launch->entry->code;
  atomic_init(&grid->next_block, 0);
  atomic_init(&grid->executed, 0);
  atomic_init(&grid->stop, KILNI_SOFT_GOES);
  atomic_init(&grid->fault_lock, 0);
  atomic_init(&grid->fault_order, UINT64_MAX);
  atomic_init(&grid->fault_ns, 0);
  atomic_init(&grid->next_worker, 0);
  atomic_init(&grid->fence_word, 0);
  grid->wide_locks = kilni_soft_memory_wide_locks(grid->memory);
  atomic_init(&grid->profile_lock, 0);
  atomic_init(&grid->held, launch->held);
  atomic_init(&grid->followed, 0);
  atomic_init(&grid->said, 0);
  atomic_init(&grid->aside, NULL);
  kiln_status_t status = grid_init(grid);
  if (!kiln_status_is_ok(status)) {
    kilni_soft_grid_destroy(grid);
    return status;
  }
  *out_grid = grid;
  return kiln_ok();
}

kiln_status_t kilni_soft_grid_forbid(kilni_soft_grid_t* grid,
                                     const kilni_soft_freed_t* list,
                                     size_t count) {
  void* copy;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(grid->host->allocator, count,
                                               sizeof(*list), &copy));
  memcpy(copy, list, count * sizeof(*list));
  grid->forbidden = copy;
  grid->forbidden_count = count;
  grid->watched = true;
  return kiln_ok();
}

static void worker_end(kilni_soft_worker_t* worker);

void kilni_soft_grid_destroy(kilni_soft_grid_t* grid) {
  if (!grid) return;
  kilni_soft_worker_t* aside;
  while ((aside = kilni_soft_take_aside(grid)) != NULL) worker_end(aside);
  kiln_allocator_t allocator = grid->host->allocator;
  uint32_t count = grid->code->function_count;
  if (grid->workspace) {
    kiln_status_free(kilni_soft_memory_free(grid->memory, grid->workspace,
                                            KILNI_SOFT_ALLOC_MODULE));
  }
  for (uint32_t f = 0; grid->constants && f < count; f++) {
    if (!grid->constants[f]) continue;
    kilni_base_free_aligned(
        allocator, grid->constants[f],
        (size_t)grid->code->functions[f].constant_bytes + GRID_ALIGN,
        GRID_ALIGN);
  }
  kilni_base_free_array(allocator, grid->constants, count, sizeof(uint8_t*));
  if (grid->params) {
    kilni_base_free_aligned(allocator, grid->params,
                            (size_t)grid->entry->param_bytes + GRID_ALIGN,
                            GRID_ALIGN);
  }
  kilni_base_free_array(allocator, grid->forbidden, grid->forbidden_count,
                        sizeof(*grid->forbidden));
  if (grid->profile) {
    kilni_base_free(allocator, grid->profile, sizeof(*grid->profile));
  }
  kilni_base_free(allocator, grid, sizeof(*grid));
}

// Starts the next block; false when there is none, or no memory for it.
static bool start_next(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  if (atomic_load(&grid->stop) != KILNI_SOFT_GOES) return false;
  uint64_t next = atomic_load(&grid->next_block);
  do {
    if (next >= grid->block_count) return false;
  } while (!atomic_compare_exchange_weak(&grid->next_block, &next, next + 1));
  uint64_t linear =
      (grid->order_start + next * grid->order_step) % grid->block_count;
  kilni_soft_block_t* block;
  kiln_status_t status = kilni_soft_block_start(worker, linear, &block);
  if (kiln_status_is_ok(status)) {
    block->order = next;
    if (worker->profile) block->start_ns = kilni_base_time_ns();
    return true;
  }
  kiln_status_free(status);
  kilni_soft_fault_grid(grid, KILNI_SOFT_FAULT_OUT_OF_MEMORY,
                        "the host has no memory for another block");
  return false;
}

static bool may_hold_more(const kilni_soft_worker_t* worker) {
  if (worker->grid->launch.cooperative) return true;
  if (worker->resident_count >= HELD_BLOCKS &&
      atomic_load(&worker->grid->held)) {
    return false;
  }
  if (worker->resident_count >= KILNI_SOFT_RESIDENT_MAX) return false;
  return worker->resident_count * worker->grid->block_bytes < RESIDENT_BYTES;
}

// A turn for each resident block that nothing stops; ended blocks become idle.
static bool run_resident(kilni_soft_worker_t* worker) {
  bool all_spin = true;
  kilni_soft_block_t** link = &worker->resident;
  while (*link) {
    kilni_soft_block_t* block = *link;
    bool spinning = false;
    bool more = true;
    if (!kilni_soft_is_stopped(worker->grid, block)) {
      more = kilni_soft_block_round(block, &spinning);
    }
    if (!spinning) all_spin = false;
    if (more || kilni_soft_is_stopped(worker->grid, block)) {
      link = &block->next;
      continue;
    }
    kilni_soft_block_say(block);
    if (worker->profile) {
      kilni_soft_profile_block(worker->profile,
                               kilni_base_time_ns() - block->start_ns);
    }
    *link = block->next;
    block->next = worker->idle;
    worker->idle = block;
    worker->resident_count--;
  }
  return all_spin;
}

// Between turns, where a kernel waits to begin after this one: the seed chooses
// whether more blocks begin, so that all may come to allow it, and whether it
// runs meanwhile. True: another block is to begin.
static bool make_way(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  if (!worker->random || !atomic_load(&grid->followed)) return false;
  if (kilni_soft_random(worker) & 1u) return false;
  if (atomic_load(&grid->said) < grid->block_count) return true;
  grid->launch.pause(grid, grid->launch.ahead_user);
  return false;
}

// Whether there is anything to run that nothing stops.
static bool grid_goes_on(const kilni_soft_worker_t* worker) {
  const kilni_soft_grid_t* grid = worker->grid;
  if (atomic_load_explicit(&grid->stop, memory_order_relaxed) ==
      KILNI_SOFT_GOES) {
    return true;
  }
  for (const kilni_soft_block_t* b = worker->resident; b; b = b->next) {
    if (!kilni_soft_is_stopped(grid, b)) return true;
  }
  return false;
}

// True if all of its blocks wait for the kernel in front.
static bool work_loop(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  while (grid_goes_on(worker)) {
    if (!worker->resident && !start_next(worker)) break;
    uint32_t generation = kilni_soft_memory_generation(grid->memory);
    if (generation != worker->generation) {
      memset(worker->ranges, 0, sizeof(worker->ranges));
      worker->generation = generation;
    }
    bool all_spin = run_resident(worker);
    if (!worker->resident) continue;
    if ((make_way(worker) || all_spin) && may_hold_more(worker) &&
        start_next(worker)) {
      continue;
    }
    if (all_spin && atomic_load(&grid->held) &&
        !atomic_load_explicit(&grid->stop, memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

static kiln_status_t worker_create(kilni_soft_grid_t* grid,
                                   kilni_soft_worker_t** out_worker) {
  kiln_allocator_t allocator = grid->host->allocator;
  void* memory;
  *out_worker = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_soft_worker_t), &memory));
  kilni_soft_worker_t* worker = memory;
  worker->grid = grid;
  if (grid->profile) {
    kiln_status_t status =
        kilni_base_alloc(allocator, sizeof(kilni_soft_profile_t), &memory);
    if (!kiln_status_is_ok(status)) {
      kilni_base_free(allocator, worker, sizeof(*worker));
      return status;
    }
    worker->profile = memory;
  }
  worker->looked_at = grid->profile || grid->watched;
  worker->number = atomic_fetch_add(&grid->next_worker, 1);
  worker->random = grid->launch.seed;
  if (worker->random) {
    worker->random ^= (uint64_t)worker->number << 40;
    if (!worker->random) worker->random = 1;
  }
  *out_worker = worker;
  return kiln_ok();
}

static void worker_end(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  kiln_allocator_t allocator = grid->host->allocator;
  kilni_soft_block_free_all(worker);
  kilni_soft_frame_free_all(worker);
  atomic_fetch_add(&grid->executed, worker->executed);
  if (worker->profile) {
    kilni_soft_profile_merge(worker);
    kilni_base_free(allocator, worker->profile, sizeof(*worker->profile));
  }
  kilni_base_free(allocator, worker, sizeof(*worker));
}

static void work(kilni_soft_grid_t* grid) {
  kilni_soft_worker_t* worker = kilni_soft_take_aside(grid);
  if (!worker) {
    if (atomic_load(&grid->next_block) >= grid->block_count) return;
    kiln_status_t status = worker_create(grid, &worker);
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      kilni_soft_fault_grid(grid, KILNI_SOFT_FAULT_OUT_OF_MEMORY,
                            "the host has no memory for a worker");
      return;
    }
  }
  while (worker) {
    if (work_loop(worker)) {
      kilni_soft_put_aside(worker);
      return;
    }
    if (atomic_load(&grid->stop) == KILNI_SOFT_CANCELLED) {
      kilni_soft_fault_place(worker);
    }
    worker_end(worker);
    worker = kilni_soft_take_aside(grid);
  }
}

void kilni_soft_grid_work(kilni_soft_grid_t* grid) {
#if defined(__x86_64__)
  unsigned control = _mm_getcsr();
  _mm_setcsr(0x1f80);  // nearest even, subnormals kept, nothing traps
#endif
  work(grid);
#if defined(__x86_64__)
  _mm_setcsr(control);
#endif
}

bool kilni_soft_grid_wants_work(kilni_soft_grid_t* grid) {
  if (atomic_load(&grid->held) && atomic_load(&grid->aside)) return false;
  return !atomic_load(&grid->stop) &&
         atomic_load(&grid->next_block) < grid->block_count;
}

uint64_t kilni_soft_grid_space(const kilni_soft_grid_t* grid, uint64_t inside) {
  kilni_soft_grid_t* at = (kilni_soft_grid_t*)(uintptr_t)grid;
  uint64_t next = atomic_load(&at->next_block);
  if (next + 1 >= at->block_count || inside >= at->block_count) return 0;
  // The caller's own block is not started yet.
  uint64_t left = at->block_count - next - 1;
  uint64_t others = at->block_count - inside;
  return left < others ? left : others;
}

const kilni_soft_fault_t* kilni_soft_grid_fault(const kilni_soft_grid_t* grid) {
  static const kilni_soft_fault_t kCancelled = {
      .kind = KILNI_SOFT_FAULT_CANCELLED, .what = KILN_FAULT_TIME_LIMIT};
  kilni_soft_grid_t* at = (kilni_soft_grid_t*)(uintptr_t)grid;
  if (grid->fault.kind == KILNI_SOFT_FAULT_NONE &&
      atomic_load(&at->stop) == KILNI_SOFT_CANCELLED) {
    return &kCancelled;  // before any block began, or when all had ended
  }
  return &grid->fault;
}

uint64_t kilni_soft_grid_executed(const kilni_soft_grid_t* grid) {
  return atomic_load(&((kilni_soft_grid_t*)(uintptr_t)grid)->executed);
}

const kilni_soft_profile_t* kilni_soft_grid_profile(
    const kilni_soft_grid_t* grid) {
  return grid->profile;
}

// The arguments of a call follow the registers in a frame; a GPU has them in a
// thread's own memory.
static uint64_t grid_argument_bytes(const kilni_soft_function_t* function) {
  return function->frame_bytes - function->wide_end;
}

void kilni_soft_grid_footprint(const kilni_soft_grid_t* grid,
                               kilni_soft_footprint_t* out_footprint) {
  const kilni_soft_code_t* code = grid->code;
  uint64_t calls = 0;
  uint64_t arguments = grid_argument_bytes(grid->function);
  for (uint32_t f = 0; f < code->function_count; f++) {
    if (!grid->constants[f] || f == grid->entry->function) continue;
    calls += kilni_soft_frame_bytes(&code->functions[f]);
    arguments += grid_argument_bytes(&code->functions[f]);
  }
  uint64_t own = grid->shared_offset - grid->local_offset;
  *out_footprint = (kilni_soft_footprint_t){
      .state = grid->local_offset + (calls - arguments) * grid->warp_count,
      .local = own + arguments * grid->warp_count,
      .shared = grid->marks_offset - grid->shared_offset};
}
