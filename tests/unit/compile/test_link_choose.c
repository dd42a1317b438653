// SPDX-License-Identifier: Apache-2.0
//
// compile: who links, as a table. Needs no GPU, no driver and no CUDA.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/link.h"

enum { NONE = -1, UNKNOWN = 0, TOO_OLD = 12020 };

enum {
  NVJ = KILN_LINK_BACKEND_NVJITLINK,
  DRV = KILN_LINK_BACKEND_DRIVER,
  E_ABSENT = 100 + KILN_STATUS_UNSUPPORTED,
  E_SKEW = 100 + KILN_STATUS_INCOMPATIBLE,
  E_NOTHING = 100 + KILN_STATUS_NOT_FOUND,
};

// ---- Asking ----

typedef struct ask_t {
  int driver;              // a line, UNKNOWN or NONE
  uint32_t nvjitlinks[3];  // 0 ends
  uint32_t inputs[3];      // formats, 0 ends
  uint32_t lines[3];
  uint32_t isas[3];
  uint32_t output;
  uint32_t lto;
  uint32_t backend;
} ask_t;

static kiln_status_t choose(const ask_t* ask, kiln_link_choice_t** out_choice) {
  kiln_link_input_fact_t inputs[3];
  memset(inputs, 0, sizeof(inputs));
  kiln_link_facts_t facts = kiln_link_facts_default();
  facts.backend = ask->backend;
  facts.output = ask->output;
  facts.lto = ask->lto;
  facts.driver.state = ask->driver == UNKNOWN ? KILN_COMPAT_DRIVER_UNKNOWN
                       : ask->driver == NONE  ? KILN_COMPAT_DRIVER_NONE
                                              : KILN_COMPAT_DRIVER_KNOWN;
  if (ask->driver > 0) facts.driver.line = (uint32_t)ask->driver;
  facts.nvjitlinks = ask->nvjitlinks;
  while (facts.nvjitlink_count < 3 &&
         ask->nvjitlinks[facts.nvjitlink_count] != 0) {
    facts.nvjitlink_count++;
  }
  facts.inputs = inputs;
  while (facts.input_count < 3 && ask->inputs[facts.input_count] != 0) {
    uint32_t i = facts.input_count++;
    inputs[i].format = ask->inputs[i];
    inputs[i].line = ask->lines[i];
    inputs[i].ptx_isa = ask->isas[i];
    inputs[i].name = "in";
  }
  return kiln_link_choose(&facts, NULL, out_choice);
}

// The backend, or 100 and the code of the refusal. A refusal has a message, a
// fix, and reasons; every choice has a reason.
static uint32_t answer(const ask_t* ask, uint32_t* out_nvjitlink,
                       uint32_t* out_verdict) {
  kiln_link_choice_t* choice = NULL;
  kiln_status_t status = choose(ask, &choice);
  assert_true(kiln_status_is_ok(status));
  assert_true(kiln_link_choice_reason_count(choice) > 0);
  assert_null(
      kiln_link_choice_reason(choice, kiln_link_choice_reason_count(choice)));
  uint32_t backend = kiln_link_choice_backend(choice);
  status = kiln_link_choice_status(choice);
  kiln_status_code_t code = kiln_status_code(status);
  assert_int_equal(backend == KILN_LINK_BACKEND_AUTO, code != KILN_STATUS_OK);
  assert_int_equal(kiln_link_choice_fix(choice) != NULL,
                   code != KILN_STATUS_OK);
  assert_int_equal(
      kiln_link_choice_verdict(choice) == KILN_COMPAT_VERDICT_INCOMPATIBLE,
      code != KILN_STATUS_OK);
  assert_int_equal(kiln_link_choice_nvjitlink(choice) == UINT32_MAX,
                   backend != NVJ);
  if (out_nvjitlink) *out_nvjitlink = kiln_link_choice_nvjitlink(choice);
  if (out_verdict) *out_verdict = kiln_link_choice_verdict(choice);
  if (code != KILN_STATUS_OK) assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kiln_link_choice_release(choice);
  return backend != KILN_LINK_BACKEND_AUTO ? backend : 100u + (uint32_t)code;
}

// ---- The matrix of cuda.core's pull request 1911 ----

// All 48 rows: three drivers, four nvJitLinks, LTO-IR among the inputs or not,
// link-time optimisation asked for or not. `theirs` is what 1911 answers; the
// four rows where ours differs are those of an nvJitLink older than the driver,
// which is no risk and which 1911 refuses or leaves: the regression of #2351.
static const struct {
  int driver;
  uint32_t nvjitlink;
  uint32_t theirs[4];  // no/no, no/lto, ltoir/no, ltoir/lto
  uint32_t ours[4];
} matrix[] = {
    {UNKNOWN, 0, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {UNKNOWN, TOO_OLD, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {UNKNOWN, 12090, {NVJ, NVJ, NVJ, NVJ}, {0}},
    {UNKNOWN, 13000, {NVJ, NVJ, NVJ, NVJ}, {0}},
    {12090, 0, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {12090, TOO_OLD, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {12090, 12090, {NVJ, NVJ, NVJ, NVJ}, {0}},
    {12090, 13000, {DRV, E_SKEW, E_SKEW, E_SKEW}, {0}},
    {13000, 0, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {13000, TOO_OLD, {DRV, E_ABSENT, E_ABSENT, E_ABSENT}, {0}},
    {13000, 12090, {DRV, E_SKEW, E_SKEW, E_SKEW}, {NVJ, NVJ, NVJ, NVJ}},
    {13000, 13000, {NVJ, NVJ, NVJ, NVJ}, {0}},
};

static void the_matrix_of_48_rows(void** state) {
  (void)state;
  uint32_t rows = 0;
  uint32_t differences = 0;
  for (size_t m = 0; m < sizeof(matrix) / sizeof(matrix[0]); m++) {
    for (uint32_t cell = 0; cell < 4; cell++) {
      ask_t ask = {
          matrix[m].driver, {matrix[m].nvjitlink}, {0}, {0}, {0}, 0, 0, 0};
      ask.inputs[0] =
          cell >= 2 ? KILN_CODE_FORMAT_LTOIR : KILN_CODE_FORMAT_RELOCATABLE;
      ask.lto = cell % 2 ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
      uint32_t wanted = matrix[m].ours[0] != 0 ? matrix[m].ours[cell]
                                               : matrix[m].theirs[cell];
      if (wanted != matrix[m].theirs[cell]) differences++;
      uint32_t got = answer(&ask, NULL, NULL);
      if (got != wanted) {
        print_error("driver %d, nvJitLink %u, cell %u: %u, not %u\n",
                    ask.driver, (unsigned)ask.nvjitlinks[0], (unsigned)cell,
                    (unsigned)got, (unsigned)wanted);
      }
      assert_int_equal(got, wanted);
      rows++;
    }
  }
  assert_int_equal(rows, 48);
  assert_int_equal(differences, 4);
}

// ---- Beyond it ----

#define PTX  KILN_CODE_FORMAT_PTX
#define CUB  KILN_CODE_FORMAT_CUBIN
#define REL  KILN_CODE_FORMAT_RELOCATABLE
#define LTO  KILN_CODE_FORMAT_LTOIR
#define OBJ  KILN_CODE_FORMAT_OBJECT
#define YES  KILN_COMPAT_VERDICT_COMPATIBLE
#define OPEN KILN_COMPAT_VERDICT_UNKNOWN
#define NO   KILN_COMPAT_VERDICT_INCOMPATIBLE

typedef struct row_t {
  const char* what;
  ask_t ask;
  uint32_t wanted;
  uint32_t index;  // of the nvJitLink; UINT32_MAX: none
  uint32_t verdict;
} row_t;

static const row_t minors[] = {
    {"a newer minor: its cubin loads by minor-version compatibility",
     {12040, {12090}, {LTO}, {12040}, {0}, CUB, 0, 0},
     NVJ,
     0,
     YES},
    {"a newer minor: its PTX does not",
     {12040, {12090}, {LTO}, {12040}, {0}, PTX, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"13.0 toolkit beside nvJitLink 13.5, as the meta wheels make it",
     {13000, {13050}, {LTO}, {13000}, {0}, CUB, 0, 0},
     NVJ,
     0,
     YES},
    {"the same, PTX out: it would be PTX 9.5",
     {13000, {13050}, {LTO}, {13000}, {0}, PTX, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"the same, and the driver knows PTX 9.5",
     {13050, {13050}, {LTO}, {13000}, {0}, PTX, 0, 0},
     NVJ,
     0,
     YES},
    {"PTX out, an older nvJitLink is there",
     {13000, {13050, 13000}, {LTO}, {13000}, {0}, PTX, 0, 0},
     NVJ,
     1,
     YES},
    {"an nvJitLink older than what made the LTO-IR",
     {13050, {13000}, {LTO}, {13050}, {0}, CUB, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"the same, and a newer one is there",
     {13050, {13000, 13050}, {LTO}, {13050}, {0}, CUB, 0, 0},
     NVJ,
     1,
     YES},
    {"LTO-IR into a newer major worked, and nobody promises it",
     {13000, {13000}, {LTO}, {12090}, {0}, CUB, 0, 0},
     NVJ,
     0,
     OPEN},
    {"so one of its own major comes first",
     {13000, {13000, 12090}, {LTO}, {12090}, {0}, CUB, 0, 0},
     NVJ,
     1,
     YES},
    {"LTO, nvJitLink of a newer major, another that is not newer",
     {12090, {13000, 12080}, {LTO}, {12080}, {0}, CUB, 0, 0},
     NVJ,
     1,
     YES},
    {"the same, but that one is too old for the input",
     {12090, {13000, 12080}, {LTO}, {12090}, {0}, CUB, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"LTO-IR of a newer major than the driver: only a driver helps",
     {12090, {13000}, {LTO}, {13000}, {0}, CUB, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"PTX says itself what it needs: hand-written 7.8 goes anywhere",
     {12090, {12090}, {PTX}, {0}, {78}, CUB, 0, 0},
     NVJ,
     0,
     YES},
    {"PTX 9.0 is too new for nvJitLink 12.9; the driver links it",
     {13000, {12090}, {PTX}, {13000}, {90}, CUB, 0, 0},
     DRV,
     UINT32_MAX,
     YES},
    {"PTX 9.0 is too new for both",
     {12090, {12090}, {PTX}, {13000}, {90}, CUB, 0, 0},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"libcudadevrt of 13.1 and nvJitLink 13.0: not promised, the driver takes "
     "it",
     {13010, {13000}, {OBJ}, {13010}, {0}, CUB, 0, 0},
     DRV,
     UINT32_MAX,
     YES},
    {"no driver: something is linked for another machine",
     {NONE, {13000}, {REL}, {13000}, {0}, CUB, 0, 0},
     NVJ,
     0,
     YES},
    {"no driver and no nvJitLink",
     {NONE, {0}, {REL}, {13000}, {0}, CUB, 0, 0},
     E_NOTHING,
     UINT32_MAX,
     NO},
    {"a version that cannot be read counts as absent",
     {13000, {KILN_LINK_NVJITLINK_UNKNOWN}, {REL}, {13000}, {0}, CUB, 0, 0},
     DRV,
     UINT32_MAX,
     YES},
    {"relocatable output was promised with 13.2, and 13.0 had it",
     {13000, {13010}, {REL}, {13000}, {0}, REL, 0, 0},
     NVJ,
     0,
     OPEN},
    {"so one from 13.2 on comes first",
     {13000, {13010, 13020}, {REL}, {13000}, {0}, REL, 0, 0},
     NVJ,
     1,
     YES},
    {"relocatable output of LTO-IR came with 13.2",
     {13000, {13010}, {LTO}, {13000}, {0}, REL, 0, 0},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"no nvJitLink of CUDA 12 makes relocatable code",
     {13000, {12090}, {REL}, {12090}, {0}, REL, 0, 0},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"a finished cubin: nvJitLink would leave it out, the driver is tried",
     {13000, {13000}, {REL, CUB}, {13000}, {0}, CUB, 0, 0},
     DRV,
     UINT32_MAX,
     OPEN},
    {"a finished cubin, and nvJitLink is asked for",
     {13000, {13000}, {CUB}, {13000}, {0}, CUB, 0, NVJ},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"a finished cubin beside LTO-IR: nobody links it",
     {13000, {13000}, {LTO, CUB}, {13000}, {0}, CUB, 0, 0},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"relocatable output goes into a link, not into the driver",
     {12090, {13020}, {REL}, {13000}, {0}, REL, 0, 0},
     NVJ,
     0,
     YES},
    {"LTO-IR output came with 13.3",
     {13000, {13020}, {LTO}, {13000}, {0}, LTO, 0, 0},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"LTO-IR output",
     {13000, {13030}, {LTO}, {13000}, {0}, LTO, 0, 0},
     NVJ,
     0,
     YES},
    {"what is known of no input blocks nothing, and promises nothing",
     {13000, {13000}, {OBJ}, {0}, {0}, CUB, 0, 0},
     NVJ,
     0,
     OPEN},
    {"the driver is asked for, and nvJitLink would do",
     {13000, {13000}, {REL}, {13000}, {0}, CUB, 0, DRV},
     DRV,
     UINT32_MAX,
     YES},
    {"the driver is asked for, and cannot",
     {13000, {13000}, {LTO}, {13000}, {0}, CUB, 0, DRV},
     E_ABSENT,
     UINT32_MAX,
     NO},
    {"nvJitLink is asked for, and its cubin would not load",
     {12090, {13000}, {REL}, {12090}, {0}, CUB, 0, NVJ},
     E_SKEW,
     UINT32_MAX,
     NO},
    {"nvJitLink is asked for, and there is none",
     {13000, {0}, {REL}, {13000}, {0}, CUB, 0, NVJ},
     E_ABSENT,
     UINT32_MAX,
     NO},
};

static void minors_outputs_and_wishes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
    uint32_t index = 0;
    uint32_t verdict = 0;
    uint32_t got = answer(&minors[i].ask, &index, &verdict);
    if (got != minors[i].wanted || index != minors[i].index ||
        verdict != minors[i].verdict) {
      print_error("%s: %u, nvJitLink %u, verdict %u\n", minors[i].what,
                  (unsigned)got, (unsigned)index, (unsigned)verdict);
    }
    assert_int_equal(got, minors[i].wanted);
    assert_int_equal(index, minors[i].index);
    assert_int_equal(verdict, minors[i].verdict);
  }
}

// A refusal names the component that is too old and what to install.
static void a_refusal_says_what_to_install(void** state) {
  (void)state;
  static const struct {
    ask_t ask;
    const char* message;
    const char* fix;
  } rows[] = {
      {{13050, {13000}, {LTO}, {13050}, {0}, CUB, 0, 0},
       "nvJitLink 13.0 is too old for \"in\" (ltoir of CUDA 13.5)",
       "\"nvidia-nvjitlink>=13.5,<14.0\""},
      {{12090, {13000}, {LTO}, {12090}, {0}, CUB, 0, 0},
       "the driver of CUDA 12.9 is too old for the cubin that nvJitLink 13.0 "
       "makes",
       "\"nvidia-nvjitlink-cu12>=12.9,<13.0\""},
      {{12090, {13000}, {LTO}, {13000}, {0}, CUB, 0, 0},
       "the driver of CUDA 12.9 is too old",
       "install a driver of CUDA 13.0 or newer"},
      {{13000, {13050}, {LTO}, {13000}, {0}, PTX, 0, 0},
       "the driver of CUDA 13.0 is too old for the ptx that nvJitLink 13.5",
       "\"nvidia-nvjitlink>=13.0,<13.1\""},
      {{13000, {0}, {LTO}, {12090}, {0}, CUB, 0, 0},
       "no usable nvJitLink was found, and the driver's linker does not do "
       "link-time optimisation",
       "\"nvidia-nvjitlink-cu12>=12.9,<13.0\""},
      {{13000, {0}, {REL}, {13000}, {0}, CUB, KILN_SWITCH_ON, 0},
       "no usable nvJitLink",
       "\"nvidia-nvjitlink>=13.0,<14.0\""},
      {{NONE, {13000}, {CUB}, {13000}, {0}, CUB, 0, 0},
       "nvJitLink silently omits finished machine code: \"in\" "
       "(cubin of CUDA 13.0)",
       "compile \"in\" with relocatable device code (`-rdc=true`)"},
      {{12090, {12090}, {PTX}, {0}, {90}, CUB, 0, 0},
       "nvJitLink 12.9 is too old for \"in\" (ptx 9.0)",
       "install a driver of CUDA 13.0 or newer"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_choice_t* choice = NULL;
    assert_null(choose(&rows[i].ask, &choice));
    kiln_status_t status = kiln_link_choice_status(choice);
    const char* message = kiln_status_message(status);
    const char* fix = kiln_link_choice_fix(choice);
    if (strstr(message, rows[i].message) == NULL ||
        strstr(fix, rows[i].fix) == NULL) {
      print_error("row %u: %s\nFix: %s\n", (unsigned)i, message, fix);
    }
    assert_non_null(strstr(message, rows[i].message));
    assert_non_null(strstr(fix, rows[i].fix));
    kiln_status_free(status);
    kiln_link_choice_release(choice);
  }
}

static void expect_refused(const ask_t* ask) {
  kiln_link_choice_t* choice = NULL;
  kiln_status_t status = choose(ask, &choice);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(choice);
  kiln_status_free(status);
}

static void what_is_no_link_is_refused(void** state) {
  (void)state;
  static const ask_t asks[] = {
      {13000, {13000}, {0}, {0}, {0}, CUB, 0, 0},
      {13000, {13000}, {KILN_CODE_FORMAT_NVVM}, {0}, {0}, CUB, 0, 0},
      {13000, {13000}, {REL}, {0}, {0}, KILN_CODE_FORMAT_FATBIN, 0, 0},
      {13000, {13000}, {LTO}, {0}, {0}, CUB, KILN_SWITCH_OFF, 0},
      {13000, {13000}, {REL}, {0}, {0}, PTX, KILN_SWITCH_OFF, 0},
      {13000, {13030}, {LTO, PTX}, {0}, {0}, LTO, 0, 0},
      {13000, {13030}, {LTO, PTX}, {0}, {0}, PTX, 0, 0},
      {13000, {13030}, {CUB}, {0}, {0}, PTX, 0, 0},
      {13000, {13030}, {REL}, {0}, {0}, PTX, 0, 0},
      {13000, {13000}, {REL}, {0}, {0}, CUB, 3, 0},
      {13000, {13000}, {REL}, {0}, {0}, CUB, 0, 3},
  };
  for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
    expect_refused(&asks[i]);
  }
}

// ---- The whole space ----

// Every driver, nvJitLink, producer and output of a grid: nobody newer than the
// driver's major is taken, PTX never leaves an nvJitLink newer than the driver,
// no LTO-IR goes into an older linker, and LTO-IR never to the driver.
static void no_choice_breaks_a_rule(void** state) {
  (void)state;
  static const uint32_t lines[] = {12000, 12030, 12040, 12080,
                                   12090, 13000, 13030, 13050};
  static const uint32_t formats[] = {PTX, CUB, REL, LTO, OBJ};
  static const uint32_t outputs[] = {CUB, PTX};
  uint32_t asked = 0;
  for (uint32_t n = 0; n < 8 * 8 * 8 * 5 * 2; n++) {
    uint32_t driver = lines[n % 8];
    uint32_t tool = lines[n / 8 % 8];
    uint32_t made = lines[n / 64 % 8];
    uint32_t format = formats[n / 512 % 5];
    ask_t ask = {(int)driver,           {tool}, {format}, {made}, {0},
                 outputs[n / 2560 % 2], 0,      0};
    if (ask.output == PTX && format != LTO && format != OBJ) continue;
    uint32_t got = answer(&ask, NULL, NULL);
    asked++;
    if (got == DRV) {
      assert_true(format != LTO && ask.output == CUB);
    } else if (got == NVJ) {
      assert_true(tool / 1000 <= driver / 1000);
      assert_true(ask.output != PTX || tool <= driver);
      assert_true(format != LTO || made <= tool);
      assert_true(tool >= KILN_LINK_NVJITLINK_LEAST);
    } else if (format != LTO && ask.output == CUB && made <= driver) {
      fail_msg("the driver could link this");
    }
  }
  assert_int_equal(asked, 3584);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_matrix_of_48_rows),
      cmocka_unit_test(minors_outputs_and_wishes),
      cmocka_unit_test(a_refusal_says_what_to_install),
      cmocka_unit_test(what_is_no_link_is_refused),
      cmocka_unit_test(no_choice_breaks_a_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
