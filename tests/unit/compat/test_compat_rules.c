// SPDX-License-Identifier: Apache-2.0
//
// compat: the rules, by what mixtures really do.
//
// The table of links is what real libraries of 12.9, 13.0 and 13.5 did
// (tests/linking does it again where it has libraries).
#include "compat_kit.h"

#define YES  KILN_COMPAT_VERDICT_COMPATIBLE
#define OPEN KILN_COMPAT_VERDICT_UNKNOWN
#define NO   KILN_COMPAT_VERDICT_INCOMPATIBLE

#define LTOIR KILN_COMPAT_ARTIFACT_LTOIR
#define PTX   KILN_COMPAT_ARTIFACT_PTX
#define ELF   KILN_COMPAT_ARTIFACT_ELF
#define CUBIN KILN_COMPAT_ARTIFACT_CUBIN
#define NVVM  KILN_COMPAT_ARTIFACT_NVVM

static kit_t kit;

static int setup(void** state) {
  (void)state;
  kit_init(&kit);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kit_deinit(&kit);
  return 0;
}

static uint32_t verdict_of_link(uint32_t nvrtc, uint32_t linker,
                                uint32_t artifact) {
  kit_deinit(&kit);
  kit_init(&kit);
  kit_driver(&kit, "none");
  kit_lib(&kit, "nvrtc", nvrtc);
  kit_lib(&kit, "nvJitLink", linker);
  kit_use(&kit, "nvrtc", "nvJitLink", artifact);
  kit_check(&kit);
  return kiln_compat_report_verdict(kit.report);
}

// ---- What mixtures do ----

static void links(void** state) {
  (void)state;
  static const uint32_t lines[] = {12090, 13000, 13050};
  // By producer, then linker. LTO-IR that links into a newer major is open:
  // it worked, and nobody promises it. So is machine code into an older
  // linker: 13.0 into 12.9 worked, 13.5 into 13.0 did not.
  static const uint32_t lto[3][3] = {
      {YES, OPEN, OPEN}, {NO, YES, YES}, {NO, NO, YES}};
  static const uint32_t ptx[3][3] = {
      {YES, YES, YES}, {NO, YES, YES}, {NO, NO, YES}};
  static const uint32_t cubin[3][3] = {
      {YES, YES, YES}, {OPEN, YES, YES}, {OPEN, OPEN, YES}};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      uint32_t from = lines[i];
      uint32_t to = lines[j];
      assert_int_equal(verdict_of_link(from, to, LTOIR), lto[i][j]);
      assert_int_equal(verdict_of_link(from, to, PTX), ptx[i][j]);
      assert_int_equal(verdict_of_link(from, to, CUBIN), cubin[i][j]);
      // Finished code is left out, and success is reported: never YES.
      assert_int_equal(verdict_of_link(from, to, ELF), OPEN);
    }
  }
}

// 12.5 and 12.6 write the same PTX.
static void ptx_of_the_same_isa(void** state) {
  (void)state;
  assert_int_equal(verdict_of_link(12060, 12050, PTX), YES);
  assert_int_equal(verdict_of_link(12060, 12040, PTX), NO);
}

// nvJitLink 12.4 refuses finished code, 12.8 reports success over it and leaves
// it out; relocatable code both link.
static void finished_code_into_a_linker(void** state) {
  (void)state;
  assert_int_equal(verdict_of_link(12040, 12040, ELF), OPEN);
  assert_int_equal(verdict_of_link(12040, 12080, ELF), OPEN);
  assert_int_equal(verdict_of_link(12040, 12040, CUBIN), YES);
  assert_int_equal(verdict_of_link(12040, 12080, CUBIN), YES);
}

static void mixed_wheels(const char* driver) {
  kit_deinit(&kit);
  kit_init(&kit);
  kit_driver(&kit, driver);
  kit_lib(&kit, "nvrtc", 13000);
  kit_lib(&kit, "nvJitLink", 13050);
  kit_lib(&kit, "cudart", 13000);
}

// 13.0 wheels with the nvJitLink of 13.5 that their own toolkit resolves to:
// linking works, a cubin works, PTX works only with a driver of 13.5.
static void official_mixture(void** state) {
  (void)state;
  static const char* const drivers[] = {"none", "13.0,580.65.06", "13.5,600.1"};
  for (int i = 0; i < 3; i++) {
    mixed_wheels(drivers[i]);
    kit_accepts(&kit);
    assert_int_equal(kiln_compat_report_verdict(kit.report), YES);
    assert_int_equal(
        kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_LTO),
        YES);
    assert_int_equal(
        kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_CUBIN),
        YES);
    assert_int_equal(
        kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_PTX),
        i == 1 ? NO : YES);
  }
  // Declared, the PTX counts.
  mixed_wheels("13.0,580.65.06");
  kit_use(&kit, "nvJitLink", "cuda", PTX);
  kit_refuses(&kit, KILN_COMPAT_RULE_PTX_DRIVER, NO, "PTX 9.5");
  mixed_wheels("13.0,580.65.06");
  kit_use(&kit, "nvJitLink", "cuda", CUBIN);
  kit_accepts(&kit);
  // And with an older driver all three pieces are too new.
  mixed_wheels("12.9,575.57");
  kit_refuses(&kit, KILN_COMPAT_RULE_DRIVER, NO, "older major");
}

static uint32_t judged(uint32_t use) {
  return kiln_compat_report_judged_count(kit.report, use, NULL);
}

// That nothing was found against a use is a verdict only where it was judged.
static void verdicts_are_earned(void** state) {
  (void)state;
  uint32_t declared = 7;
  kit_driver(&kit, "none");
  kit_lib(&kit, "nvrtc", 12090);
  kit_accepts(&kit);
  for (uint32_t use = KILN_COMPAT_USE_LTO; use <= KILN_COMPAT_USE_NVVM; use++) {
    assert_int_equal(judged(use), 0);
    assert_int_equal(kiln_compat_report_verdict_of_use(kit.report, use), OPEN);
  }
  assert_int_equal(
      kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_ANY), YES);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_use(&kit, "nvrtc", "nvJitLink", PTX);
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_judged_count(
                       kit.report, KILN_COMPAT_USE_PTX, &declared),
                   1);
  assert_int_equal(declared, 1);
  assert_int_equal(kiln_compat_report_judged_count(
                       kit.report, KILN_COMPAT_USE_LTO, &declared),
                   1);
  assert_int_equal(declared, 0);
  assert_int_equal(
      kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_LTO), YES);
  assert_int_equal(
      kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_NVVM),
      OPEN);
  // No use has these numbers.
  assert_int_equal(judged(KILN_COMPAT_USE_ANY), 0);
  assert_int_equal(judged(99), 0);
}

// A piece of an unknown line takes part in no verdict about a use.
static void unknown_lines_earn_none(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 0);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_check(&kit);
  assert_int_equal(judged(KILN_COMPAT_USE_LTO), 0);
  assert_int_equal(
      kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_LTO), OPEN);
}

// What no rule knows passes nowhere as compatible.
static void uses_without_a_rule(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit_lib(&kit, "cublas", 12090);
  kit_use(&kit, "nvrtc", "cublas", PTX);
  kit_refuses(&kit, KILN_COMPAT_RULE_USE, OPEN, "the inputs of lib:cublas");
}

static void uses_of_products(void** state) {
  (void)state;
  kit_lib(&kit, "nccl", 0);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_use(&kit, "nccl", "nvJitLink", LTOIR);
  kit_refuses(&kit, KILN_COMPAT_RULE_USE, OPEN, "a version of its own");
}

static void product(uint32_t kind, const char* name, const char* release) {
  kit_add(&kit, kind, name, 0)->release = release;
}

// cuDNN's own parts are of one release; what they are built for aside, nothing
// else holds them together.
static void releases_of_products(void** state) {
  (void)state;
  kit_driver(&kit, "none");
  product(KILN_COMPAT_KIND_LIB, "cudnn", "9.19.0");
  product(KILN_COMPAT_KIND_LIB, "cudnn_ops", "9.19.0.56");
  product(KILN_COMPAT_KIND_HEADER, "cudnn", "9.14.0");
  product(KILN_COMPAT_KIND_LIB, "nccl", "2.28.9");
  kit_accepts(&kit);
  product(KILN_COMPAT_KIND_LIB, "cudnn_adv", "9.14.0");
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, OPEN, "release 9.14.0");
}

static void headers_of_products(void** state) {
  (void)state;
  static const struct {
    const char* header;
    const char* lib;
    bool fits;
  } rows[] = {
      {"2.28.9", "2.28.9", true},  {"2.1.0", "2.28.9", true},
      {"2.29.0", "2.28.9", false}, {"1.9.0", "2.28.9", false},
      {"", "2.28.9", true},        {"2", "2.28.9", true},
      {"2.28.9", "x", true},       {"99999999999.1", "2.28.9", true},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kit_deinit(&kit);
    kit_init(&kit);
    product(KILN_COMPAT_KIND_HEADER, "nccl", rows[i].header);
    product(KILN_COMPAT_KIND_LIB, "nccl", rows[i].lib);
    if (rows[i].fits) {
      kit_accepts(&kit);
    } else {
      kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, OPEN, "one product");
    }
  }
}

// The harmful reverse, which the original accepts.
static void reverse_mixture(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 13050);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_lib(&kit, "cudart", 13000);
  kit_accepts(&kit);
  assert_int_equal(
      kiln_compat_report_verdict_of_use(kit.report, KILN_COMPAT_USE_LTO), NO);
  assert_int_equal(
      kit_finding(&kit, KILN_COMPAT_RULE_LINKER_RANGE, KILN_COMPAT_USE_LTO),
      NO);
  kit_use(&kit, "nvrtc", "nvJitLink", LTOIR);
  kit_refuses(&kit, KILN_COMPAT_RULE_LINKER_RANGE, NO, "13.5");
}

// 12.9 wheels, and CUDA 13.0 where the system's loader looks.
static void two_majors(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_lib(&kit, "cudart", 12090);
  kit_accepts(&kit);
  kit_lib(&kit, "cublas", 13000);
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPONENT, NO, "lib:cublas of CUDA 13.0");
  kit.request.fact_count--;
  kit_add(&kit, KILN_COMPAT_KIND_BINARY, "nvcc", 13000);
  kit_add(&kit, KILN_COMPAT_KIND_STATIC, "cudadevrt", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, NO, "toolchain_cuda_nvcc");
  kit.request.fact_count -= 2;
  // The original accepts these headers.
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cccl", 13000);
  kit_refuses(&kit, KILN_COMPAT_RULE_HEADER_COMPILER, NO, "header:cccl");
}

// ---- Headers and their compiler ----

// What motivated the original's guard rails, and what they let through.
static void nvrtc_of_a_wheel_and_headers_of_the_system(void** state) {
  (void)state;
  kiln_compat_fact_t* nvrtc = kit_lib(&kit, "nvrtc", 13020);
  nvrtc->path = "/venv/nvidia/cu13/lib/libnvrtc.so.13";
  nvrtc->evidence = "wheel nvidia-cuda-nvrtc 13.2.78";
  kiln_compat_fact_t* headers =
      kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cudart", 13000);
  headers->path = "/usr/local/cuda-13.0/include/cuda_runtime.h";
  kit_refuses(&kit, KILN_COMPAT_RULE_HEADER_COMPILER, NO,
              "lib:nvrtc of CUDA 13.2 (\"/venv/nvidia/cu13/lib/libnvrtc.so.13\""
              ", by wheel nvidia-cuda-nvrtc 13.2.78)");
  const kiln_compat_finding_t* finding =
      kiln_compat_report_refusal(kit.report, 0);
  assert_non_null(strstr(finding->message, headers->path));
  assert_non_null(strstr(finding->fix, "cuda-toolkit[cudart]==13.2.*"));
  assert_null(strstr(finding->fix, "--use-bundled-headers"));
  assert_int_equal(finding->use, KILN_COMPAT_USE_ANY);
  assert_int_equal(finding->party_count, 2);
  assert_string_equal(finding->parties[0].item, "lib:nvrtc");
  assert_int_equal(finding->parties[0].line, 13020);
  assert_string_equal(finding->parties[1].path, headers->path);
}

static void nvrtc_with_headers_of_its_own(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 13030);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cccl", 13000);
  kit_refuses(&kit, KILN_COMPAT_RULE_HEADER_COMPILER, NO, "header:cccl");
  assert_non_null(strstr(kiln_compat_report_refusal(kit.report, 0)->fix,
                         "--use-bundled-headers"));
}

static void nvcc_and_headers_are_one_finding(void** state) {
  (void)state;
  kit_add(&kit, KILN_COMPAT_KIND_BINARY, "nvcc", 13000);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cudart", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_HEADER_COMPILER, NO, "binary:nvcc");
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 1);
}

// ---- Symbols ----

static const kiln_compat_need_t need_13_0 = {
    "nvJitLink", "symbol __nvJitLinkGetErrorLogSize_13_0", 13000, 0};
static const kiln_compat_need_t need_13_5 = {
    "nvJitLink", "symbol __nvJitLinkGetErrorLogSize_13_5", 13050, 0};

static void needed_symbols(void** state) {
  (void)state;
  kiln_compat_fact_t* cusparse = kit_lib(&kit, "cusparse", 13000);
  cusparse->needs = &need_13_0;
  cusparse->need_count = 1;
  kiln_compat_fact_t* linker = kit_lib(&kit, "nvJitLink", 13050);
  kit_accepts(&kit);
  linker->line = 13000;
  kit_accepts(&kit);
  cusparse->needs = &need_13_5;
  kit_refuses(&kit, KILN_COMPAT_RULE_NEEDED_SYMBOL, NO,
              "__nvJitLinkGetErrorLogSize_13_5");
  assert_non_null(strstr(kiln_compat_report_refusal(kit.report, 0)->fix,
                         "nvidia-nvjitlink>=13.5,<14"));
}

// Another major is another file: whether the right one is there as well is
// not known. If it is, it decides.
static void needed_symbols_of_another_major(void** state) {
  (void)state;
  kiln_compat_fact_t* cusparse = kit_lib(&kit, "cusparse", 13000);
  cusparse->needs = &need_13_0;
  cusparse->need_count = 1;
  kit_lib(&kit, "nvJitLink", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_NEEDED_SYMBOL, OPEN, "lib:nvJitLink");
  kit_lib(&kit, "nvJitLink", 13000);
  kit_accepts(&kit);
}

static void older_linker_and_symbols_unread(void** state) {
  (void)state;
  kit_lib(&kit, "cusparse", 13010);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_refuses(&kit, KILN_COMPAT_RULE_NEEDED_SYMBOL, OPEN, "lib:cusparse");
}

// ---- Products with numbers of their own ----

static void products_of_a_major(void** state) {
  (void)state;
  kiln_compat_fact_t* nccl = kit_lib(&kit, "nccl", 0);
  assert_int_equal(nccl->class_id, KILN_COMPAT_CLASS_OTHER);
  kit_lib(&kit, "cudart", 13000);
  kit_accepts(&kit);
  nccl->toolkit_major = 13;
  kit_accepts(&kit);
  nccl->toolkit_major = 12;
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPONENT, OPEN, "built for CUDA 12");
}

// ---- The driver ----

static void branches_of_each_major(void** state) {
  (void)state;
  static const struct {
    uint32_t line;
    const char* driver;
    uint32_t verdict;
  } rows[] = {
      {11080, "11.0,450.36", YES}, {11080, "11.0,449.1", NO},
      {12090, "12.0,525.60", YES}, {12090, "12.0,524", NO},
      {13050, "13.0,580.1", YES},  {13050, "13.0,579.9.9", NO},
      {13050, "13.0", OPEN},       {10020, "10.0,999.1", NO},
      {14010, "14.0,999.1", NO},   {13000, "12.9,999.1", NO},
      {12090, "13.0", YES},        {13000, "13.0", YES},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kit_deinit(&kit);
    kit_init(&kit);
    kit_driver(&kit, rows[i].driver);
    kit_lib(&kit, "cudart", rows[i].line);
    kit_check(&kit);
    assert_int_equal(kiln_compat_report_verdict(kit.report), rows[i].verdict);
  }
}

static void code_for_the_driver(void** state) {
  (void)state;
  static const struct {
    const char* driver;
    uint32_t artifact;
    uint32_t verdict;
    uint32_t rule;
  } rows[] = {
      {"13.0,580.1", PTX, NO, KILN_COMPAT_RULE_PTX_DRIVER},
      {"13.0,580.1", CUBIN, YES, 0},
      {"13.0,580.1", ELF, YES, 0},
      {"13.5,600.1", PTX, YES, 0},
      {"14.0,600.1", PTX, YES, 0},
      {"13.5,600.1", LTOIR, NO, KILN_COMPAT_RULE_LTO_DRIVER},
      {"13.5,600.1", NVVM, NO, KILN_COMPAT_RULE_NVVM_IR},
      {"unknown", PTX, OPEN, KILN_COMPAT_RULE_PTX_DRIVER},
      {"none", CUBIN, OPEN, KILN_COMPAT_RULE_CUBIN_DRIVER},
      {"12.9,575", CUBIN, NO, KILN_COMPAT_RULE_CUBIN_DRIVER},
      {"13.0,570", CUBIN, NO, KILN_COMPAT_RULE_CUBIN_DRIVER},
      {"13.0", CUBIN, OPEN, KILN_COMPAT_RULE_CUBIN_DRIVER},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kit_deinit(&kit);
    kit_init(&kit);
    kit_driver(&kit, rows[i].driver);
    kit_lib(&kit, "nvrtc", 13050);
    kit_use(&kit, "nvrtc", "cuda", rows[i].artifact);
    kit.request.forward_compat = KILN_SWITCH_ON;  // the driver rule is not it
    kit_check(&kit);
    assert_int_equal(kiln_compat_report_verdict(kit.report), rows[i].verdict);
    if (rows[i].rule == 0) continue;
    assert_int_equal(kiln_compat_report_finding(kit.report, 0)->rule,
                     rows[i].rule);
  }
}

// ---- NVVM ----

static void nvvm_ir_versions(void** state) {
  (void)state;
  kiln_compat_fact_t* from =
      kit_add(&kit, KILN_COMPAT_KIND_BITCODE, "device", 13000);
  kiln_compat_fact_t* to = kit_lib(&kit, "nvvm", 13000);
  kit_use(&kit, "device", "nvvm", NVVM);
  kit.uses[0].producer_kind = KILN_COMPAT_KIND_BITCODE;
  kit_accepts(&kit);
  to->line = 12090;
  to->tag_count = 0;
  from->tag_count = 0;
  kit_refuses(&kit, KILN_COMPAT_RULE_NVVM_IR, NO, "one release on both sides");
  from->nvvm_ir = 2000;
  to->nvvm_ir = 2000;
  kit_accepts(&kit);
  to->nvvm_ir = 1011;
  kit_refuses(&kit, KILN_COMPAT_RULE_NVVM_IR, NO, "NVVM IR 2.0");
  from->nvvm_ir = 1005;
  kit_accepts(&kit);
}

// ---- Evidence ----

static void contested_line(void** state) {
  (void)state;
  kiln_compat_fact_t* nvrtc = kit_lib(&kit, "nvrtc", 0);
  nvrtc->evidence = "its symbols";
  nvrtc->against = "its text";
  nvrtc->against_line = 13050;
  kit_refuses(&kit, KILN_COMPAT_RULE_EVIDENCE, OPEN,
              "its text states CUDA 13.5");
  // With a line it is a remark.
  nvrtc->line = 13000;
  kit_accepts(&kit);
  const kiln_compat_finding_t* finding =
      kiln_compat_report_finding(kit.report, 0);
  assert_non_null(finding);
  assert_int_equal(finding->rule, KILN_COMPAT_RULE_EVIDENCE);
  assert_int_equal(finding->verdict, YES);
  assert_false(finding->counts);
}

// ---- Sets ----

static void fill_many(void) {
  kit_driver(&kit, "12.9,575.1");
  kit_lib(&kit, "nvrtc", 13050);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_lib(&kit, "cudart", 12090);
  kit_lib(&kit, "cublas", 13000);
  kit_lib(&kit, "nvvm", 0);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cudart", 13000);
  kit_use(&kit, "nvrtc", "nvJitLink", LTOIR);
  kit_use(&kit, "nvrtc", "cuda", PTX);
  kit_use(&kit, "nvJitLink", "cuda", CUBIN);
}

static void swap_facts(uint32_t i, uint32_t j) {
  const kiln_compat_fact_t* fact = kit.fact_pointers[i];
  kit.fact_pointers[i] = kit.fact_pointers[j];
  kit.fact_pointers[j] = fact;
}

// Every order of six facts gives the same text, byte for byte.
static void order_changes_nothing(void** state) {
  (void)state;
  static char first[1 << 16];
  static char again[1 << 16];
  fill_many();
  kit_check(&kit);
  kiln_compat_report_format(kit.report, sizeof(first), first, NULL);
  assert_true(kiln_compat_report_finding_count(kit.report) > 8);
  uint32_t counters[6] = {0};
  uint32_t at = 0;
  uint32_t orders = 1;
  while (at < 6) {
    if (counters[at] >= at) {
      counters[at++] = 0;
      continue;
    }
    swap_facts(at % 2 == 0 ? 0 : counters[at], at);
    counters[at]++;
    at = 0;
    orders++;
    const kiln_compat_use_t* use = kit.use_pointers[0];
    kit.use_pointers[0] = kit.use_pointers[orders % 3];
    kit.use_pointers[orders % 3] = use;
    kit_check(&kit);
    kiln_compat_report_format(kit.report, sizeof(again), again, NULL);
    assert_string_equal(first, again);
  }
  assert_int_equal(orders, 720);
}

static void repetition_changes_nothing(void** state) {
  (void)state;
  static char first[1 << 16];
  static char again[1 << 16];
  fill_many();
  kit_check(&kit);
  kiln_compat_report_format(kit.report, sizeof(first), first, NULL);
  uint32_t count = kit.request.fact_count;
  for (uint32_t i = 0; i < count; i++) {
    kit.fact_pointers[count + i] = kit.fact_pointers[i];
  }
  kit.use_pointers[3] = kit.use_pointers[0];
  kit.request.fact_count = 2 * count;
  kit.request.use_count = 4;
  kit_check(&kit);
  kiln_compat_report_format(kit.report, sizeof(again), again, NULL);
  assert_string_equal(first, again);
}

// A check before a load is about the piece that is to be loaded.
static void only_the_subject(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12090);
  kit_lib(&kit, "cusolver", 13000);
  kit_lib(&kit, "nvrtc", 13000);
  kit_check(&kit);
  assert_int_equal(kiln_compat_report_verdict(kit.report), NO);
  kit.request.subject = 3;
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 0);
  kit.request.subject = 1;
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPONENT, NO, "cusolver");
}

static void absent_parties_say_nothing(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 13000);
  kit_use(&kit, "nvrtc", "nvJitLink", LTOIR);
  kit_use(&kit, "nvvm", "nvJitLink", PTX);
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(links),
      CASE(ptx_of_the_same_isa),
      CASE(finished_code_into_a_linker),
      CASE(official_mixture),
      CASE(verdicts_are_earned),
      CASE(unknown_lines_earn_none),
      CASE(uses_without_a_rule),
      CASE(uses_of_products),
      CASE(releases_of_products),
      CASE(headers_of_products),
      CASE(reverse_mixture),
      CASE(two_majors),
      CASE(nvrtc_of_a_wheel_and_headers_of_the_system),
      CASE(nvrtc_with_headers_of_its_own),
      CASE(nvcc_and_headers_are_one_finding),
      CASE(needed_symbols),
      CASE(needed_symbols_of_another_major),
      CASE(older_linker_and_symbols_unread),
      CASE(products_of_a_major),
      CASE(branches_of_each_major),
      CASE(code_for_the_driver),
      CASE(nvvm_ir_versions),
      CASE(contested_line),
      CASE(order_changes_nothing),
      CASE(repetition_changes_nothing),
      CASE(only_the_subject),
      CASE(absent_parties_say_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
