// SPDX-License-Identifier: Apache-2.0
//
// truth: records what a GPU answers to every form, and holds the software
// device to it.
//
//   truth record FOLDER [--soft] [--beside] [--only TEXT] [--unless FOLDER]
//   truth replay FOLDER [--lanes NAME] [--stride N] [--phase N] [--only TEXT]
//   truth missing FOLDER EXCUSES
//   truth binades FOLDER [--soft] [--only TEXT]
//   truth summary FOLDER
//   truth ptx [--only TEXT]
//
// `record` asks the driver's GPU (with --soft the software device, to try it
// out) and writes a file for each family; with --beside the software device
// answers too, and every difference is printed with its inputs; with --unless
// only what that folder has no answers to, which must be whole families, since
// a family is a file. `replay` asks
// the software device and compares; it exits with 1 if anything differs.
// `missing` lists the forms that no file has, and fails for those that no line
// of EXCUSES names. `binades` writes whole binades of the approximate forms
// (truth_binades.h), `summary` prints a table of what is recorded, `ptx` the
// kernels. Exit code 77: no such device.
#define _POSIX_C_SOURCE 200809L

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soft/decode/soft_forms.h"
#include "truth_binades.h"
#include "truth_book.h"
#include "truth_check.h"

// one-thread
typedef struct truth_options_t {
  const char* mode;
  const char* folder;
  const char* excuses;
  const char* lanes;
  const char* only;
  const char* unless;
  bool soft;
  bool beside;
  truth_wish_t wish;
} truth_options_t;

static int usage(void) {
  printf(
      "truth record FOLDER [--soft] [--beside] [--only TEXT] "
      "[--unless FOLDER]\n"
      "truth replay FOLDER [--lanes NAME] [--stride N] [--phase N] "
      "[--only TEXT]\ntruth missing FOLDER EXCUSES\n"
      "truth binades FOLDER [--soft] [--only TEXT]\n"
      "truth summary FOLDER\ntruth ptx [--only TEXT]\n");
  return 2;
}

static bool parse(int argc, char** argv, truth_options_t* out) {
  memset(out, 0, sizeof(*out));
  out->wish.stride = 1;
  for (int i = 1; i < argc; i++) {
    const char* word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(word, "--soft") == 0) {
      out->soft = true;
    } else if (strcmp(word, "--beside") == 0) {
      out->beside = true;
    } else if (strncmp(word, "--", 2) == 0) {
      if (value == NULL) return false;
      i++;
      if (strcmp(word, "--lanes") == 0) {
        out->lanes = value;
      } else if (strcmp(word, "--unless") == 0) {
        out->unless = value;
      } else if (strcmp(word, "--only") == 0) {
        out->only = value;
      } else if (strcmp(word, "--stride") == 0) {
        out->wish.stride = (uint32_t)strtoul(value, NULL, 10);
      } else if (strcmp(word, "--phase") == 0) {
        out->wish.phase = (uint32_t)strtoul(value, NULL, 10);
      } else {
        return false;
      }
    } else if (out->mode == NULL) {
      out->mode = word;
    } else if (out->folder == NULL) {
      out->folder = word;
    } else {
      out->excuses = word;
    }
  }
  return out->mode != NULL;
}

// The entries that --only leaves; NULL without memory.
static size_t* chosen(const truth_list_t* list, const char* only,
                      size_t* out_count) {
  size_t* which = malloc((list->count + 1) * sizeof(*which));
  *out_count = 0;
  for (size_t i = 0; which != NULL && i < list->count; i++) {
    if (only == NULL || strstr(list->entries[i].name, only) != NULL) {
      which[(*out_count)++] = i;
    }
  }
  return which;
}

static bool has_family(const truth_book_t* book, const char* family) {
  for (uint32_t i = 0; i < book->row_count; i++) {
    if (strcmp(book->rows[i].family, family) == 0) return true;
  }
  return false;
}

// Leaves of `which` what the folder has no answers to; false if those are not
// whole families.
static bool leave_missing(const truth_list_t* list, const char* folder,
                          size_t* which, size_t* inout_count) {
  truth_book_t book;
  size_t count = 0;
  memset(&book, 0, sizeof(book));
  bool good = truth_book_read(&book, folder);
  for (size_t i = 0; good && i < *inout_count; i++) {
    const truth_entry_t* entry = &list->entries[which[i]];
    if (truth_book_find(&book, entry) != NULL) continue;
    if (has_family(&book, entry->family)) {
      printf("%s: not recorded, but others of %s are: record the family\n",
             entry->name, entry->family);
      good = false;
    }
    which[count++] = which[i];
  }
  *inout_count = count;
  truth_book_free(&book);
  return good;
}

// ---- Recording ----

// Answers of a batch, kept for comparing. one-thread
typedef struct recording_t {
  const truth_list_t* list;
  truth_book_t* book;
  uint8_t* answers[TRUTH_BATCH];
  size_t entries[TRUTH_BATCH];
  size_t count;  // in the batch
  size_t at;     // which of it the other device answers
  uint64_t inputs;
  uint32_t recorded;
  uint32_t refused;
  uint32_t refused_beside;
  uint32_t exact_wrong;
  uint32_t exact_right;
  bool failed;
} recording_t;

static size_t answer_bytes(const truth_entry_t* entry,
                           const truth_plan_t* plan) {
  return (size_t)plan->inputs * entry->outs * truth_kind_bytes(entry->result);
}

static void take_truth(void* user, size_t index, const truth_plan_t* plan,
                       const uint8_t* answers, const char* refusal) {
  recording_t* r = user;
  const truth_entry_t* entry = &r->list->entries[index];
  if (answers == NULL) {
    printf("refused: %s: %s\n", entry->name, refusal);
    r->refused++;
    return;
  }
  const size_t bytes = answer_bytes(entry, plan);
  uint8_t* copy = malloc(bytes);
  if (copy == NULL || !truth_book_add(r->book, entry, answers)) {
    r->failed = true;
    free(copy);
    return;
  }
  memcpy(copy, answers, bytes);
  r->answers[r->count] = copy;
  r->entries[r->count++] = index;
  r->inputs += plan->inputs;
  r->recorded++;
}

static void print_distances(const truth_entry_t* entry,
                            const truth_finding_t* finding) {
  const truth_kind_t kind = entry->result;
  if (finding->different == 0) return;
  if (kind != TRUTH_F32 && kind != TRUTH_F64 && kind != TRUTH_F16 &&
      kind != TRUTH_BF16) {
    return;
  }
  printf("distance: %-24s", entry->name);
  for (uint32_t i = 0; i < TRUTH_BUCKETS; i++) {
    printf(" %8llu", (unsigned long long)finding->apart[i]);
  }
  printf("  greatest %llu\n", (unsigned long long)finding->greatest);
}

static void take_beside(void* user, size_t index, const truth_plan_t* plan,
                        const uint8_t* answers, const char* refusal) {
  recording_t* r = user;
  const truth_entry_t* entry = &r->list->entries[index];
  truth_finding_t finding;
  memset(&finding, 0, sizeof(finding));
  while (r->at < r->count && r->entries[r->at] != index) r->at++;
  if (answers == NULL) {
    printf("the software device refused: %s: %s\n", entry->name, refusal);
    r->refused_beside++;
    return;
  }
  if (r->at == r->count) return;
  truth_compare(entry, plan, 0, plan->inputs, r->answers[r->at], answers,
                stdout, &finding);
  print_distances(entry, &finding);
  if (finding.different > 0) {
    printf("differs: %s: %llu of %llu\n", entry->name,
           (unsigned long long)finding.different,
           (unsigned long long)finding.compared);
    r->exact_wrong++;
  } else {
    r->exact_right++;
  }
}

static void name_book(truth_book_t* book, const truth_device_t* device) {
  const time_t now = time(NULL);
  struct tm parts;
  (void)snprintf(book->device, sizeof(book->device), "%s", device->name);
  (void)snprintf(book->driver, sizeof(book->driver), "%s", device->driver);
  if (gmtime_r(&now, &parts) == NULL ||
      strftime(book->date, sizeof(book->date), "%Y-%m-%d", &parts) == 0) {
    (void)snprintf(book->date, sizeof(book->date), "unknown");
  }
  book->generator = TRUTH_GENERATOR;
}

static bool record_all(truth_device_t* device, truth_device_t* beside,
                       const size_t* which, size_t count, recording_t* r) {
  for (size_t i = 0; i < count; i += TRUTH_BATCH) {
    const size_t some = count - i < TRUTH_BATCH ? count - i : TRUTH_BATCH;
    r->count = r->at = 0;
    bool done =
        truth_device_run(device, r->list, which + i, some, take_truth, r);
    if (done && beside != NULL) {
      done = truth_device_run(beside, r->list, r->entries, r->count,
                              take_beside, r);
    }
    for (size_t k = 0; k < r->count; k++) free(r->answers[k]);
    if (!done || r->failed) return false;
  }
  return true;
}

static int record(const truth_options_t* options, const truth_list_t* list) {
  static truth_device_t device, beside;
  truth_book_t book;
  recording_t r;
  const truth_wish_t all = {1, 0};
  memset(&book, 0, sizeof(book));
  memset(&r, 0, sizeof(r));
  r.list = list;
  r.book = &book;
  int code = truth_device_open(&device, options->soft, options->lanes, all);
  if (code == 0 && options->beside) {
    code = truth_device_open(&beside, true, options->lanes, all);
  }
  if (code != 0) return code;
  name_book(&book, &device);
  printf("%s, driver %s\n", device.name, device.driver);
  size_t count;
  size_t* which = chosen(list, options->only, &count);
  if (which == NULL ||
      (options->unless != NULL &&
       !leave_missing(list, options->unless, which, &count)) ||
      !record_all(&device, options->beside ? &beside : NULL, which, count,
                  &r) ||
      !truth_book_write(&book, options->folder)) {
    code = 1;
  }
  printf("%u entries recorded in %u streams, %llu inputs; %u refused\n",
         r.recorded, book.stream_count, (unsigned long long)r.inputs,
         r.refused);
  if (options->beside) {
    printf("beside: %u agree, %u differ, %u refused\n", r.exact_right,
           r.exact_wrong, r.refused_beside);
    truth_device_close(&beside);
  }
  truth_device_close(&device);
  truth_book_free(&book);
  free(which);
  return code;
}

// ---- Replaying ----

// one-thread
typedef struct replaying_t {
  const truth_list_t* list;
  const truth_book_t* book;
  uint64_t inputs;
  uint64_t blocks;
  uint32_t compared;
  uint32_t different;
} replaying_t;

// The digests of the plan's blocks behind the raw part; counts those that
// differ and names the first.
static uint32_t wrong_digests(const truth_entry_t* entry,
                              const truth_plan_t* plan, const uint8_t* answers,
                              const truth_stream_t* stream,
                              uint32_t* out_first) {
  const size_t each = (size_t)entry->outs * truth_kind_bytes(entry->result);
  uint32_t wrong = 0;
  size_t at = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    uint32_t first, count;
    const uint32_t block = plan->blocks[i];
    truth_layout_block(&entry->layout, block, &first, &count);
    if (block > 0 && truth_digest(answers + at, count * each) !=
                         stream->digests[block - 1]) {
      if (wrong++ == 0) *out_first = first;
    }
    at += count * each;
  }
  return wrong;
}

static void take_replay(void* user, size_t index, const truth_plan_t* plan,
                        const uint8_t* answers, const char* refusal) {
  replaying_t* r = user;
  const truth_entry_t* entry = &r->list->entries[index];
  const truth_stream_t* stream = truth_book_find(r->book, entry);
  truth_finding_t finding;
  memset(&finding, 0, sizeof(finding));
  r->compared++;
  if (answers == NULL) {
    printf("refused: %s: %s\n", entry->name, refusal);
    r->different++;
    return;
  }
  truth_compare(entry, plan, 0, entry->layout.raw, stream->raw, answers, stdout,
                &finding);
  uint32_t first = 0;
  const uint32_t wrong = wrong_digests(entry, plan, answers, stream, &first);
  r->inputs += plan->inputs;
  r->blocks += plan->count - 1;
  if (wrong > 0) {
    printf("differs: %s: %u of %u digests, the first of the inputs from %u\n",
           entry->name, wrong, plan->count - 1, first);
  }
  if (finding.different == 0 && wrong == 0) return;
  printf("differs: %s: %llu of %llu\n", entry->name,
         (unsigned long long)finding.different,
         (unsigned long long)finding.compared);
  r->different++;
}

static int replay(const truth_options_t* options, const truth_list_t* list) {
  static truth_device_t device;
  truth_book_t book;
  replaying_t r;
  memset(&book, 0, sizeof(book));
  memset(&r, 0, sizeof(r));
  r.list = list;
  r.book = &book;
  int code = truth_book_read(&book, options->folder) ? 0 : 1;
  if (code == 0 && book.row_count == 0) {
    printf("skipped: nothing is recorded in %s\n", options->folder);
    code = 77;
  }
  if (code == 0) {
    code = truth_device_open(&device, true, options->lanes, options->wish);
  }
  if (code != 0) {
    truth_book_free(&book);
    return code;
  }
  size_t count, known = 0;
  size_t* which = chosen(list, options->only, &count);
  for (size_t i = 0; which != NULL && i < count; i++) {
    if (truth_book_find(&book, &list->entries[which[i]]) != NULL) {
      which[known++] = which[i];
    }
  }
  if (which == NULL ||
      !truth_device_run(&device, list, which, known, take_replay, &r)) {
    code = 1;
  }
  printf("recorded by %s, driver %s, on %s\n", book.device, book.driver,
         book.date);
  printf("lanes %s: %u entries, %llu inputs, %llu digests: %u differ\n",
         device.lanes, r.compared, (unsigned long long)r.inputs,
         (unsigned long long)r.blocks, r.different);
  printf("not recorded: %zu entries\n", count - known);
  truth_device_close(&device);
  truth_book_free(&book);
  free(which);
  return code != 0 || r.different > 0 || r.compared == 0;
}

// ---- What is not recorded ----

// Whether all entries of the form are recorded, and there is one.
static bool form_recorded(const truth_book_t* book, const truth_list_t* list,
                          const char* form) {
  bool some = false;
  for (size_t i = 0; i < list->count; i++) {
    if (!truth_entry_asks(&list->entries[i], form)) continue;
    some = true;
    if (truth_book_find(book, &list->entries[i]) == NULL) return false;
  }
  return some;
}

// The pattern of the next line `PATTERN # reason`; false at the end.
static bool next_excuse(const char** inout_text, char* out, size_t capacity) {
  const char* text = *inout_text;
  while (*text) {
    const size_t size = strcspn(text, " \n");
    const size_t line = strcspn(text, "\n");
    const bool reason = memchr(text, '#', line) != NULL;
    const bool good = text[0] != '#' && size > 0 && size < capacity && reason;
    if (good) (void)snprintf(out, capacity, "%.*s", (int)size, text);
    text += line;
    if (*text) text++;
    *inout_text = text;
    if (good) return true;
  }
  return false;
}

static bool excused(const char* text, const char* form) {
  char pattern[128];
  while (next_excuse(&text, pattern, sizeof(pattern))) {
    if (fnmatch(pattern, form, 0) == 0) return true;
  }
  return false;
}

// Excuses that name no form any more; prints them.
static uint32_t stale_excuses(const char* text) {
  char pattern[128];
  uint32_t stale = 0;
  while (next_excuse(&text, pattern, sizeof(pattern))) {
    bool used = false;
    kilni_soft_op_t op;
    const char* form;
    for (size_t i = 0; !used && (form = kilni_soft_form_at(i, &op)) != NULL;
         i++) {
      used = fnmatch(pattern, form, 0) == 0;
    }
    if (used) continue;
    printf("names no form: %s\n", pattern);
    stale++;
  }
  return stale;
}

static char* read_text(const char* path) {
  FILE* file = fopen(path, "rb");
  char* text = calloc(1, 1 << 20);
  if (file != NULL && text != NULL) {
    text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
  }
  if (file == NULL) printf("%s: cannot be read\n", path);
  if (file != NULL) (void)fclose(file);
  return text;
}

static int missing(const truth_options_t* options, const truth_list_t* list) {
  truth_book_t book;
  memset(&book, 0, sizeof(book));
  char* text = read_text(options->excuses);
  uint32_t recorded = 0, reasoned = 0, lost = 0;
  kilni_soft_op_t op;
  const char* form;
  if (text == NULL || !truth_book_read(&book, options->folder)) {
    free(text);
    return 1;
  }
  for (size_t i = 0; (form = kilni_soft_form_at(i, &op)) != NULL; i++) {
    if (form_recorded(&book, list, form)) {
      recorded++;
    } else if (excused(text, form)) {
      reasoned++;
    } else {
      printf("not recorded: %s%s\n", form,
             truth_list_has(list, form) ? "" : " (no kernel asks it)");
      lost++;
    }
  }
  const uint32_t stale = stale_excuses(text);
  printf("%u forms recorded, %u excused, %u neither; %u excuses are stale\n",
         recorded, reasoned, lost, stale);
  if (lost > 0) {
    printf(
        "Fix: record them on a GPU (docs/reference/recorded-truth.md) or "
        "give the reason in %s\n",
        options->excuses);
  }
  free(text);
  const bool empty = book.row_count == 0;
  truth_book_free(&book);
  if (empty) {
    printf("skipped: nothing is recorded in %s\n", options->folder);
    return 77;
  }
  return lost > 0 || stale > 0;
}

static void summarise(const truth_book_t* book, const truth_list_t* list,
                      const char* family) {
  uint64_t inputs = 0, digests = 0;
  uint32_t entries = 0, first = UINT32_MAX, last = 0;
  for (size_t i = 0; i < list->count; i++) {
    const truth_entry_t* entry = &list->entries[i];
    if (strcmp(entry->family, family) != 0 ||
        truth_book_find(book, entry) == NULL) {
      continue;
    }
    entries++;
    inputs += truth_layout_inputs(&entry->layout);
    digests += entry->layout.fine + entry->layout.coarse;
  }
  // The streams of a family lie side by side.
  for (uint32_t i = 0; i < book->row_count; i++) {
    if (strcmp(book->rows[i].family, family) != 0) continue;
    if (book->rows[i].stream < first) first = book->rows[i].stream;
    if (book->rows[i].stream > last) last = book->rows[i].stream;
  }
  printf("| %s | %u | %u | %llu | %llu |\n", family, entries,
         entries == 0 ? 0 : last - first + 1, (unsigned long long)inputs,
         (unsigned long long)digests);
}

static int summary(const truth_options_t* options, const truth_list_t* list) {
  truth_book_t book;
  memset(&book, 0, sizeof(book));
  if (!truth_book_read(&book, options->folder)) return 1;
  printf("%s, driver %s, %s, generator %u\n\n", book.device, book.driver,
         book.date, book.generator);
  printf(
      "| family | entries | different | inputs | digests |\n"
      "|---|--:|--:|--:|--:|\n");
  for (size_t i = 0; i < list->count; i++) {
    bool seen = false;
    for (size_t k = 0; k < i && !seen; k++) {
      seen = strcmp(list->entries[k].family, list->entries[i].family) == 0;
    }
    if (!seen) summarise(&book, list, list->entries[i].family);
  }
  truth_book_free(&book);
  return 0;
}

static int print_ptx(const truth_options_t* options, const truth_list_t* list) {
  size_t count;
  size_t* which = chosen(list, options->only, &count);
  char* text = which == NULL ? NULL : truth_module_text(list, which, count);
  if (text != NULL) (void)fputs(text, stdout);
  free(text);
  free(which);
  return text != NULL ? 0 : 1;
}

// What the environment says of a replay that samples (tests only).
static void sample(truth_wish_t* wish) {
  const char* seed = getenv("KILN_TEST_SEED");
#if defined(KILNI_SANITIZED)
  const uint32_t all = 16;
#else
  const uint32_t all = 1;
#endif
  if (getenv("KILN_FAULT_ALL") != NULL) wish->stride = all;
  if (wish->stride < 2) return;
  if (seed != NULL) wish->phase = (uint32_t)strtoul(seed, NULL, 10);
  wish->phase %= wish->stride;
  printf("of the digests every %u, phase %u\n", wish->stride, wish->phase);
}

int main(int argc, char** argv) {
  truth_options_t options;
  truth_list_t list;
  if (!parse(argc, argv, &options)) return usage();
  if (!truth_list_make(&list)) return 1;
  int code;
  if (strcmp(options.mode, "ptx") == 0) {
    code = print_ptx(&options, &list);
  } else if (strcmp(options.mode, "record") == 0 && options.folder != NULL) {
    code = record(&options, &list);
  } else if (strcmp(options.mode, "replay") == 0 && options.folder != NULL) {
    sample(&options.wish);
    code = replay(&options, &list);
  } else if (strcmp(options.mode, "binades") == 0 && options.folder != NULL) {
    code = truth_binades(options.folder, options.soft, options.only);
  } else if (strcmp(options.mode, "summary") == 0 && options.folder != NULL) {
    code = summary(&options, &list);
  } else if (strcmp(options.mode, "missing") == 0 && options.excuses != NULL) {
    code = missing(&options, &list);
  } else {
    code = usage();
  }
  truth_list_free(&list);
  return code;
}
