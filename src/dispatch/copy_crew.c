// SPDX-License-Identifier: Apache-2.0
//
// dispatch: threads that copy host memory together.
//
// A copy in progress has a slot. A thread that works on it first counts itself
// in and then checks that the slot is still open; the caller first closes the
// slot and then waits for those that are counted: one of the two sees the
// other. Threads without work spin for a short while, where there are cores for
// that, and then sleep.
//
// A copy is in slices, one for each thread and the last one for the caller, and
// a slice is in shares. A thread takes the shares of its own slice first:
// pinned memory that is reused is then in its own cache.
#include "dispatch/copy_crew.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/thread.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
  PLACES = 2 * KILNI_CREW_THREADS,
  PAGE = 4096,
  SHARES = 4,  // of a slice
  LEAST_SHARE = 32 << 10,
  LARGEST_SHARE = 128 << 10,  // a thread that is done waits for one of the
                              // others
  ALONE_BYTES = 64 << 10,     // too little to be divided
  STREAMED_BYTES = 32 << 10,
  LOOKS = 64,  // between two looks at the clock
};
#define LOOKING_NS 200000u

// A copy that the threads see. thread-safe
typedef struct place_t {
  atomic_bool taken;
  atomic_bool open;
  atomic_bool awaited;  // its asker sleeps
  atomic_uint workers;
  atomic_ullong number;                      // the older copy first
  atomic_uint left;                          // shares that no thread has taken
  atomic_uint taken_of[KILNI_CREW_THREADS];  // shares of each slice
  uint32_t slices;
  uint32_t shares;  // of a slice
  char* to;
  const char* from;
  size_t bytes;
  size_t slice;
  size_t share;
  bool past_caches;
} place_t;

struct kilni_dispatch_crew_t {
  kiln_allocator_t allocator;
  uint32_t threads;  // to start: all but the caller
  bool looks;        // there are cores for looking round
  bool has_lock;
  bool has_roster;
  bool has_work;
  bool has_done;
  atomic_uint running;
  atomic_bool ends;
  atomic_uint sleepers;
  atomic_uint numbered;  // threads that know which slice is theirs
  atomic_ullong number;
  kilni_base_mutex_t roster;  // over starts and ends
  kilni_base_mutex_t lock;    // over going to sleep
  kilni_base_cond_t work;
  kilni_base_cond_t done;
  kilni_base_thread_t handles[KILNI_CREW_THREADS];
  place_t places[PLACES];
};

// ---- Bytes ----

static inline void pause_a_little(void) {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

// Past the caches: a target as large as those would drive everything out of
// them, and each of its lines would be read before it is written.
static void copy_crew_copy_bytes(char* to, const char* from, size_t bytes,
                                 bool past_caches) {
#if defined(__SSE2__)
  if (past_caches && bytes >= STREAMED_BYTES) {
    size_t head = (64 - ((uintptr_t)to & 63)) & 63;
    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64) {
      const __m128i* source = (const __m128i*)(const void*)from;
      __m128i* target = (__m128i*)(void*)to;
      __m128i a = _mm_loadu_si128(source);
      __m128i b = _mm_loadu_si128(source + 1);
      __m128i c = _mm_loadu_si128(source + 2);
      __m128i d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
      to += 64;
      from += 64;
    }
    _mm_sfence();
  }
#else
  (void)past_caches;
#endif
  memcpy(to, from, bytes);
}

// ---- Places ----

static void work_at(place_t* place, uint32_t first_slice) {
  for (uint32_t k = 0; k < place->slices; k++) {
    uint32_t slice = (first_slice + k) % place->slices;
    size_t end = (slice + 1) * place->slice;
    if (end > place->bytes) end = place->bytes;
    for (;;) {
      uint32_t share = atomic_fetch_add_explicit(&place->taken_of[slice], 1,
                                                 memory_order_relaxed);
      if (share >= place->shares) break;
      atomic_fetch_sub_explicit(&place->left, 1, memory_order_relaxed);
      size_t at = slice * place->slice + share * place->share;
      if (at >= end) continue;
      size_t bytes = end - at < place->share ? end - at : place->share;
      copy_crew_copy_bytes(place->to + at, place->from + at, bytes,
                           place->past_caches);
    }
  }
}

static bool copy_crew_has_work(place_t* place) {
  return atomic_load(&place->open) &&
         atomic_load_explicit(&place->left, memory_order_relaxed) > 0;
}

static void copy_crew_leave(kilni_dispatch_crew_t* crew, place_t* place) {
  if (atomic_fetch_sub(&place->workers, 1) != 1) return;
  if (!atomic_load(&place->awaited)) return;
  kilni_base_mutex_lock(&crew->lock);
  kilni_base_cond_broadcast(&crew->done);
  kilni_base_mutex_unlock(&crew->lock);
}

// The oldest copy with shares left, among those after `above`.
static place_t* copy_crew_find_work(kilni_dispatch_crew_t* crew,
                                    unsigned long long* above) {
  place_t* oldest = NULL;
  unsigned long long number = 0;
  for (uint32_t i = 0; i < PLACES; i++) {
    place_t* place = &crew->places[i];
    if (!copy_crew_has_work(place)) continue;
    unsigned long long its =
        atomic_load_explicit(&place->number, memory_order_relaxed);
    if (its <= *above || (oldest != NULL && its >= number)) continue;
    oldest = place;
    number = its;
  }
  *above = number;
  return oldest;
}

// A place to work at, with the caller counted in; NULL if there is none.
static place_t* copy_crew_enter(kilni_dispatch_crew_t* crew) {
  unsigned long long above = 0;
  for (;;) {
    place_t* place = copy_crew_find_work(crew, &above);
    if (place == NULL) return NULL;
    atomic_fetch_add(&place->workers, 1);
    if (copy_crew_has_work(place)) return place;
    copy_crew_leave(crew, place);
  }
}

// ---- Threads ----

static void sleep_until_work(kilni_dispatch_crew_t* crew) {
  kilni_base_mutex_lock(&crew->lock);
  atomic_fetch_add(&crew->sleepers, 1);
  for (;;) {
    unsigned long long above = 0;
    if (atomic_load(&crew->ends) || copy_crew_find_work(crew, &above) != NULL) {
      break;
    }
    kilni_base_cond_wait(&crew->work, &crew->lock);
  }
  atomic_fetch_sub(&crew->sleepers, 1);
  kilni_base_mutex_unlock(&crew->lock);
}

static void copy_crew_thread_main(void* user) {
  kilni_dispatch_crew_t* crew = user;
  uint32_t number = atomic_fetch_add(&crew->numbered, 1);
  uint64_t since = kilni_base_time_ns();
  for (uint32_t looks = 1; !atomic_load(&crew->ends); looks++) {
    place_t* place = copy_crew_enter(crew);
    if (place != NULL) {
      work_at(place, number);
      copy_crew_leave(crew, place);
      since = kilni_base_time_ns();
    } else if (!crew->looks || (looks % LOOKS == 0 &&
                                kilni_base_time_ns() - since > LOOKING_NS)) {
      sleep_until_work(crew);
      since = kilni_base_time_ns();
    } else {
      pause_a_little();
    }
  }
}

// Under the roster.
static void end_threads(kilni_dispatch_crew_t* crew) {
  atomic_store(&crew->ends, true);
  kilni_base_mutex_lock(&crew->lock);
  kilni_base_cond_broadcast(&crew->work);
  kilni_base_mutex_unlock(&crew->lock);
  for (uint32_t i = 0; i < KILNI_CREW_THREADS; i++) {
    kilni_base_thread_join(&crew->handles[i]);
  }
  atomic_store(&crew->running, 0);
  atomic_store(&crew->numbered, 0);
  atomic_store(&crew->ends, false);
}

kiln_status_t kilni_dispatch_crew_start(kilni_dispatch_crew_t* crew) {
  kiln_status_t status = kiln_ok();
  if (atomic_load(&crew->running) == crew->threads) return kiln_ok();
  kilni_base_mutex_lock(&crew->roster);
  uint32_t running = atomic_load(&crew->running);
  while (running < crew->threads && kiln_status_is_ok(status)) {
    status = kilni_base_thread_start(&crew->handles[running], "kiln-copy",
                                     copy_crew_thread_main, crew);
    if (kiln_status_is_ok(status)) running++;
  }
  if (kiln_status_is_ok(status)) {
    atomic_store(&crew->running, running);
  } else {
    end_threads(crew);
  }
  kilni_base_mutex_unlock(&crew->roster);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_ANNOTATE(status, "starting %u copy threads",
                     (unsigned)crew->threads),
      "ask for fewer `copy_threads`, or allow the process more threads");
}

void kilni_dispatch_crew_rest(kilni_dispatch_crew_t* crew) {
  kilni_base_mutex_lock(&crew->roster);
  if (atomic_load(&crew->running) > 0) end_threads(crew);
  kilni_base_mutex_unlock(&crew->roster);
}

uint32_t kilni_dispatch_crew_running(const kilni_dispatch_crew_t* crew) {
  return atomic_load(&crew->running);
}

// ---- Making and ending ----

static kiln_status_t copy_crew_make_locks(kilni_dispatch_crew_t* crew) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&crew->lock));
  crew->has_lock = true;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&crew->roster));
  crew->has_roster = true;
  KILNI_RETURN_IF_ERROR(kilni_base_cond_init(&crew->work));
  crew->has_work = true;
  KILNI_RETURN_IF_ERROR(kilni_base_cond_init(&crew->done));
  crew->has_done = true;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_crew_create(kiln_allocator_t allocator,
                                         uint32_t threads,
                                         kilni_dispatch_crew_t** out_crew) {
  void* block = NULL;
  *out_crew = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_dispatch_crew_t), &block));
  kilni_dispatch_crew_t* crew = block;
  crew->allocator = allocator;
  crew->threads = threads > 1 ? threads - 1 : 0;
  if (crew->threads > 0) crew->looks = kilni_base_core_count() > crew->threads;
  kiln_status_t status = copy_crew_make_locks(crew);
  if (!kiln_status_is_ok(status)) {
    kilni_dispatch_crew_destroy(crew);
    return status;
  }
  *out_crew = crew;
  return kiln_ok();
}

void kilni_dispatch_crew_destroy(kilni_dispatch_crew_t* crew) {
  if (crew == NULL) return;
  if (crew->has_roster) kilni_dispatch_crew_rest(crew);
  if (crew->has_done) kilni_base_cond_deinit(&crew->done);
  if (crew->has_work) kilni_base_cond_deinit(&crew->work);
  if (crew->has_roster) kilni_base_mutex_deinit(&crew->roster);
  if (crew->has_lock) kilni_base_mutex_deinit(&crew->lock);
  kilni_base_free(crew->allocator, crew, sizeof(*crew));
}

// ---- Copies ----

static uint32_t copy_crew_take_place(kilni_dispatch_crew_t* crew) {
  for (uint32_t i = 0; i < PLACES; i++) {
    bool taken = false;
    if (atomic_compare_exchange_strong(&crew->places[i].taken, &taken, true)) {
      return i + 1;
    }
  }
  return 0;
}

static size_t copy_crew_whole_pages(size_t bytes) {
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void copy_crew_divide(const kilni_dispatch_crew_t* crew,
                             place_t* place) {
  place->slices = crew->threads + 1;
  place->slice =
      copy_crew_whole_pages((place->bytes + place->slices - 1) / place->slices);
  if (place->slice < LEAST_SHARE) place->slice = LEAST_SHARE;
  place->share = copy_crew_whole_pages(place->slice / SHARES);
  if (place->share < LEAST_SHARE) place->share = LEAST_SHARE;
  if (place->share > LARGEST_SHARE) place->share = LARGEST_SHARE;
  place->shares = (uint32_t)((place->slice + place->share - 1) / place->share);
  for (uint32_t i = 0; i < place->slices; i++) {
    atomic_store_explicit(&place->taken_of[i], 0, memory_order_relaxed);
  }
  atomic_store_explicit(&place->left, place->slices * place->shares,
                        memory_order_relaxed);
}

void kilni_dispatch_crew_begin(kilni_dispatch_crew_t* crew,
                               kilni_dispatch_copy_t* copy) {
  copy->place = 0;
  if (copy->bytes < ALONE_BYTES || atomic_load(&crew->running) == 0) return;
  copy->place = copy_crew_take_place(crew);
  if (copy->place == 0) return;
  place_t* place = &crew->places[copy->place - 1];
  place->to = copy->to;
  place->from = copy->from;
  place->bytes = copy->bytes;
  place->past_caches = copy->past_caches;
  copy_crew_divide(crew, place);
  atomic_store_explicit(&place->number, atomic_fetch_add(&crew->number, 1) + 1,
                        memory_order_relaxed);
  atomic_store(&place->open, true);
  if (atomic_load(&crew->sleepers) == 0) return;
  kilni_base_mutex_lock(&crew->lock);
  kilni_base_cond_broadcast(&crew->work);
  kilni_base_mutex_unlock(&crew->lock);
}

static void wait_for_workers(kilni_dispatch_crew_t* crew, place_t* place) {
  uint64_t since = kilni_base_time_ns();
  for (uint32_t looks = 1; atomic_load(&place->workers) != 0; looks++) {
    if (crew->looks &&
        (looks % LOOKS != 0 || kilni_base_time_ns() - since < LOOKING_NS)) {
      pause_a_little();
      continue;
    }
    kilni_base_mutex_lock(&crew->lock);
    atomic_store(&place->awaited, true);
    while (atomic_load(&place->workers) != 0) {
      kilni_base_cond_wait(&crew->done, &crew->lock);
    }
    atomic_store(&place->awaited, false);
    kilni_base_mutex_unlock(&crew->lock);
  }
}

void kilni_dispatch_crew_finish(kilni_dispatch_crew_t* crew,
                                kilni_dispatch_copy_t* copy) {
  if (copy->place == 0) {
    copy_crew_copy_bytes(copy->to, copy->from, copy->bytes, copy->past_caches);
    return;
  }
  place_t* place = &crew->places[copy->place - 1];
  work_at(place, place->slices - 1);
  atomic_store(&place->open, false);
  wait_for_workers(crew, place);
  atomic_store(&place->taken, false);
}
