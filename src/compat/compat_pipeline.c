// SPDX-License-Identifier: Apache-2.0
//
// compat: the rules about uses: what one component makes and another takes.
//
// A declared use counts. An undeclared use that the components allow is checked
// too, and reported without failing anything.
#include <string.h>

#include "base/fix_words.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compat/compat_report.h"
#include "compat/compat_rules.h"
#include "kiln/compat.h"

// A use between two facts, or between a fact and the driver. thread-compatible
typedef struct pipeline_t {
  const kiln_compat_fact_t* producer;
  const kiln_compat_fact_t* consumer;  // NULL: the driver
  uint32_t artifact;
  bool declared;
} pipeline_t;

static uint32_t use_of_artifact(uint32_t artifact) {
  static const uint32_t uses[] = {KILN_COMPAT_USE_ANY,   KILN_COMPAT_USE_LTO,
                                  KILN_COMPAT_USE_PTX,   KILN_COMPAT_USE_ELF,
                                  KILN_COMPAT_USE_CUBIN, KILN_COMPAT_USE_NVVM};
  return uses[artifact];
}

static void pipeline_add_word(kilni_base_str_t* str,
                              const pipeline_t* pipeline) {
  static const char* const words[] = {"?",      "LTO-IR",  "PTX",
                                      "an ELF", "a cubin", "NVVM IR"};
  kilni_base_str_add_cstr(str, words[pipeline->artifact]);
}

// "PTX made by X goes to Y", in one sentence that the rule goes on with.
static void pipeline_start(kilni_base_str_t* message,
                           const kilni_compat_check_t* check,
                           const pipeline_t* pipeline) {
  pipeline_add_word(message, pipeline);
  kilni_base_str_add_cstr(message, " from ");
  kilni_compat_fact_describe(message, pipeline->producer);
  kilni_base_str_add_cstr(message, " to ");
  if (pipeline->consumer != NULL) {
    kilni_compat_fact_describe(message, pipeline->consumer);
  } else if (check->driver.state == KILN_COMPAT_DRIVER_KNOWN) {
    kilni_compat_driver_describe(message, &check->driver);
  } else {
    kilni_base_str_add_cstr(message, "the driver");
  }
}

static void init(kilni_compat_finding_t* finding,
                 const kilni_compat_check_t* check, const pipeline_t* pipeline,
                 uint32_t rule, uint32_t verdict) {
  kilni_compat_finding_init(finding, check->allocator, rule,
                            use_of_artifact(pipeline->artifact), verdict,
                            pipeline->declared);
  finding->parties[0] = pipeline->producer;
  finding->parties[1] = pipeline->consumer;
  finding->names_driver = pipeline->consumer == NULL;
  pipeline_start(&finding->message, check, pipeline);
}

static kiln_status_t pipeline_add(kilni_compat_check_t* check,
                                  kilni_compat_finding_t* finding) {
  return kilni_compat_report_add(check->report, finding, &check->driver);
}

// ---- Linking ----

// How the consumer compares to the producer.
enum { OLDER_MAJOR, OLDER, SAME, NEWER, NEWER_MAJOR, STANDING_COUNT };

static uint32_t standing(uint32_t producer, uint32_t consumer) {
  if (producer == consumer) return SAME;
  uint32_t from = kiln_compat_line_major(producer);
  uint32_t to = kiln_compat_line_major(consumer);
  if (from == to) return consumer > producer ? NEWER : OLDER;
  return to > from ? NEWER_MAJOR : OLDER_MAJOR;
}

#define YES  KILN_COMPAT_VERDICT_COMPATIBLE
#define OPEN KILN_COMPAT_VERDICT_UNKNOWN
#define NO   KILN_COMPAT_VERDICT_INCOMPATIBLE

// A linker at least as new as what it is given links it. LTO-IR into a newer
// major worked where it was tried, but is not documented to. Relocatable code
// went into an older linker of an older major, and into none of its own. An ELF
// may be relocatable code or finished code, which every linker omits from its
// output while it reports success (before 12.8 nvJitLink refuses it).
static const uint8_t kLinkerVerdicts[][STANDING_COUNT] = {
    [KILN_COMPAT_ARTIFACT_LTOIR] = {NO, NO, YES, YES, OPEN},
    [KILN_COMPAT_ARTIFACT_PTX] = {NO, NO, YES, YES, YES},
    [KILN_COMPAT_ARTIFACT_ELF] = {OPEN, OPEN, OPEN, OPEN, OPEN},
    [KILN_COMPAT_ARTIFACT_CUBIN] = {OPEN, OPEN, YES, YES, YES},
};

// What takes objects and links them, and what it takes.
static const struct {
  uint32_t kind;
  const char* name;
  bool ptx_only;
} kLinkers[] = {
    {KILN_COMPAT_KIND_LIB, "nvJitLink", false},
    {KILN_COMPAT_KIND_BINARY, "nvlink", false},
    {KILN_COMPAT_KIND_BINARY, "ptxas", true},
    {KILN_COMPAT_KIND_STATIC, "nvptxcompiler", true},
};

static bool is_linker_of(const kiln_compat_fact_t* fact, uint32_t artifact) {
  for (size_t i = 0; i < sizeof(kLinkers) / sizeof(kLinkers[0]); i++) {
    if (kilni_compat_fact_is(fact, kLinkers[i].kind, kLinkers[i].name)) {
      return !kLinkers[i].ptx_only || artifact == KILN_COMPAT_ARTIFACT_PTX;
    }
  }
  return false;
}

static bool same_isa(uint32_t a, uint32_t b) {
  uint32_t isa = kiln_compat_line_ptx_isa(a);
  return isa != 0 && isa == kiln_compat_line_ptx_isa(b);
}

static void advise_linker(kilni_base_str_t* fix, const pipeline_t* pipeline,
                          uint32_t how) {
  const kiln_compat_fact_t* producer = pipeline->producer;
  const kiln_compat_fact_t* consumer = pipeline->consumer;
  unsigned major = (unsigned)kiln_compat_line_major(producer->line);
  unsigned minor = (unsigned)kiln_compat_line_minor(producer->line);
  if (how == NEWER_MAJOR) {
    kilni_base_str_add_cstr(fix, "use the producer of the linker's toolkit: ");
    kilni_compat_fact_install(fix, producer, consumer->line);
    kilni_base_str_add_cstr(fix, ", or pass PTX or a cubin instead");
  } else if (kilni_compat_fact_is(consumer, KILN_COMPAT_KIND_LIB,
                                  "nvJitLink")) {
    kilni_base_str_addf(
        fix,
        "`python3 -m pip install "
        "\"nvidia-nvjitlink%s>=%u.%u,<%u\"`" KILNI_FIX_ENVIRONMENT,
        major < 13 ? "-cu12" : "", major, minor, major + 1);
  } else {
    kilni_compat_fact_install(fix, consumer, producer->line);
  }
}

uint32_t kiln_compat_linker_verdict(uint32_t artifact, uint32_t producer_line,
                                    uint32_t linker_line) {
  if (artifact < KILN_COMPAT_ARTIFACT_LTOIR ||
      artifact > KILN_COMPAT_ARTIFACT_CUBIN) {
    return NO;
  }
  if (producer_line == 0 || linker_line == 0) return OPEN;
  uint32_t verdict =
      kLinkerVerdicts[artifact][standing(producer_line, linker_line)];
  if (artifact == KILN_COMPAT_ARTIFACT_PTX &&
      same_isa(producer_line, linker_line)) {
    verdict = YES;
  }
  return verdict;
}

uint32_t kiln_compat_driver_verdict(const kiln_compat_driver_t* driver,
                                    uint32_t artifact, uint32_t line) {
  if (artifact < KILN_COMPAT_ARTIFACT_PTX ||
      artifact > KILN_COMPAT_ARTIFACT_CUBIN) {
    return NO;
  }
  if (driver == NULL || driver->state != KILN_COMPAT_DRIVER_KNOWN ||
      line == 0) {
    return OPEN;
  }
  if (artifact == KILN_COMPAT_ARTIFACT_PTX) {
    return driver->line >= line || same_isa(line, driver->line) ? YES : NO;
  }
  uint32_t runs = kilni_compat_driver_runs(driver, line);
  if (runs == KILNI_DRIVER_RUNS) return YES;
  return runs == KILNI_DRIVER_NO_BRANCH ? OPEN : NO;
}

static kiln_status_t link_range(kilni_compat_check_t* check,
                                const pipeline_t* pipeline) {
  uint32_t from = pipeline->producer->line;
  uint32_t to = pipeline->consumer->line;
  uint32_t how = standing(from, to);
  uint32_t verdict = kiln_compat_linker_verdict(pipeline->artifact, from, to);
  if (verdict == YES) return kiln_ok();
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_LINKER_RANGE, verdict);
  if (how >= SAME && pipeline->artifact == KILN_COMPAT_ARTIFACT_ELF) {
    kilni_base_str_add_cstr(&finding.message,
                            ": linkers link relocatable code; they omit "
                            "finished code from the result and report success");
    kilni_base_str_add_cstr(
        &finding.fix,
        "compile it with -rdc=true and declare a cubin, or pass PTX or LTO-IR");
    return pipeline_add(check, &finding);
  }
  if (how == NEWER_MAJOR) {
    kilni_base_str_add_cstr(&finding.message,
                            ": LTO-IR is not guaranteed to link across majors, "
                            "not even where the linker is the newer one");
  } else {
    kilni_base_str_addf(&finding.message,
                        ": %s must be >= the producer version",
                        pipeline->consumer->name);
    if (verdict == OPEN) {
      kilni_base_str_add_cstr(
          &finding.message,
          ", and the behaviour of an older one is not documented");
    }
  }
  advise_linker(&finding.fix, pipeline, how);
  return pipeline_add(check, &finding);
}

// ---- NVVM IR ----

static bool reads_ir(uint32_t from, uint32_t to) {
  return from / 1000 == to / 1000 && to % 1000 >= from % 1000;
}

// The same release, unless both sides state their IR version. `out_settled` if
// this use needs no further check.
static kiln_status_t nvvm_ir(kilni_compat_check_t* check,
                             const pipeline_t* pipeline, bool* out_settled) {
  const kiln_compat_fact_t* producer = pipeline->producer;
  const kiln_compat_fact_t* consumer = pipeline->consumer;
  bool knows_both = producer->nvvm_ir != 0 && consumer->nvvm_ir != 0;
  bool carries_ir = pipeline->artifact == KILN_COMPAT_ARTIFACT_NVVM ||
                    pipeline->artifact == KILN_COMPAT_ARTIFACT_LTOIR;
  *out_settled = true;
  if (producer->line == consumer->line) return kiln_ok();
  if (knows_both &&
      (!carries_ir || reads_ir(producer->nvvm_ir, consumer->nvvm_ir))) {
    *out_settled = pipeline->artifact == KILN_COMPAT_ARTIFACT_NVVM;
    return kiln_ok();
  }
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_NVVM_IR, NO);
  if (knows_both) {
    kilni_base_str_addf(&finding.message,
                        ": NVVM IR %u.%u goes to a reader of %u.%u",
                        (unsigned)(producer->nvvm_ir / 1000),
                        (unsigned)(producer->nvvm_ir % 1000),
                        (unsigned)(consumer->nvvm_ir / 1000),
                        (unsigned)(consumer->nvvm_ir % 1000));
  } else {
    kilni_base_str_add_cstr(&finding.message,
                            ": a pipeline with NVVM needs one release on both "
                            "sides where the IR versions are unknown");
  }
  kilni_base_str_add_cstr(&finding.fix, "take both from one toolkit, e.g. ");
  kilni_compat_fact_install(
      &finding.fix, producer->line > consumer->line ? consumer : producer,
      producer->line > consumer->line ? producer->line : consumer->line);
  return pipeline_add(check, &finding);
}

static bool has_nvvm(const pipeline_t* pipeline) {
  return pipeline->artifact == KILN_COMPAT_ARTIFACT_NVVM ||
         kilni_compat_fact_is(pipeline->producer, KILN_COMPAT_KIND_LIB,
                              "nvvm") ||
         kilni_compat_fact_is(pipeline->consumer, KILN_COMPAT_KIND_LIB, "nvvm");
}

// ---- The driver ----

static kiln_status_t not_for_driver(kilni_compat_check_t* check,
                                    const pipeline_t* pipeline) {
  bool is_lto = pipeline->artifact == KILN_COMPAT_ARTIFACT_LTOIR;
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline,
       is_lto ? KILN_COMPAT_RULE_LTO_DRIVER : KILN_COMPAT_RULE_NVVM_IR, NO);
  kilni_base_str_add_cstr(&finding.message, ": no driver loads it");
  kilni_base_str_add_cstr(
      &finding.fix, is_lto ? "link it with nvJitLink first, and load the "
                             "cubin: `lib:nvrtc>lib:nvJitLink:ltoir` and "
                             "`lib:nvJitLink>lib:cuda:cubin`"
                           : "compile it with libNVVM first, and load the "
                             "PTX: `lib:nvvm>lib:cuda:ptx`");
  return pipeline_add(check, &finding);
}

static kiln_status_t driver_unknown(kilni_compat_check_t* check,
                                    const pipeline_t* pipeline) {
  bool is_ptx = pipeline->artifact == KILN_COMPAT_ARTIFACT_PTX;
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline,
       is_ptx ? KILN_COMPAT_RULE_PTX_DRIVER : KILN_COMPAT_RULE_CUBIN_DRIVER,
       OPEN);
  kilni_base_str_add_cstr(&finding.message,
                          check->driver.state == KILN_COMPAT_DRIVER_NONE
                              ? ": there is no driver here"
                              : ": the driver's version is unknown");
  kilni_base_str_add_cstr(&finding.fix,
                          "name the driver: `--driver 13.0,580.65.06`");
  return pipeline_add(check, &finding);
}

static kiln_status_t ptx_driver(kilni_compat_check_t* check,
                                const pipeline_t* pipeline) {
  uint32_t from = pipeline->producer->line;
  uint32_t to = check->driver.line;
  if (kiln_compat_driver_verdict(&check->driver, pipeline->artifact, from) ==
      YES) {
    return kiln_ok();
  }
  uint32_t isa = kiln_compat_line_ptx_isa(from);
  uint32_t known = kiln_compat_line_ptx_isa(to);
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_PTX_DRIVER, NO);
  if (isa != 0 && known != 0) {
    kilni_base_str_addf(
        &finding.message,
        ": it is PTX %u.%u, and that driver knows PTX up to %u.%u",
        (unsigned)(isa / 10), (unsigned)(isa % 10), (unsigned)(known / 10),
        (unsigned)(known % 10));
  } else {
    kilni_base_str_addf(&finding.message, ": PTX needs a driver of %s or newer",
                        kilni_compat_line_text(from).text);
  }
  kilni_base_str_addf(
      &finding.fix, "pass the driver a cubin instead, use the compiler of %s (",
      kilni_compat_line_text(to).text);
  kilni_compat_fact_install(&finding.fix, pipeline->producer, to);
  kilni_base_str_addf(&finding.fix, "), or install a driver of %s or newer",
                      kilni_compat_line_text(from).text);
  return pipeline_add(check, &finding);
}

static kiln_status_t cubin_driver(kilni_compat_check_t* check,
                                  const pipeline_t* pipeline) {
  uint32_t from = pipeline->producer->line;
  uint32_t major = kiln_compat_line_major(from);
  uint32_t runs = kilni_compat_driver_runs(&check->driver, from);
  if (runs == KILNI_DRIVER_RUNS) return kiln_ok();
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_CUBIN_DRIVER,
       runs == KILNI_DRIVER_NO_BRANCH ? OPEN : NO);
  if (runs == KILNI_DRIVER_OLDER_MAJOR) {
    kilni_base_str_add_cstr(&finding.message,
                            ": machine code of a newer major is not loaded");
  } else {
    kilni_base_str_addf(
        &finding.message,
        ": machine code of CUDA %u.x needs branch %u of the display "
        "driver",
        (unsigned)major, (unsigned)kilni_compat_driver_least_branch(major));
  }
  kilni_base_str_addf(&finding.fix, "install display driver %u or newer, or ",
                      (unsigned)kilni_compat_driver_least_branch(major));
  kilni_base_str_add_cstr(&finding.fix, "compile with an older toolkit: ");
  kilni_compat_fact_install(&finding.fix, pipeline->producer,
                            check->driver.line);
  return pipeline_add(check, &finding);
}

// ---- What no rule decides ----

// A declared use that passes silently would be an unfounded verdict; an
// undeclared one is not a use.
static kiln_status_t no_rule(kilni_compat_check_t* check,
                             const pipeline_t* pipeline) {
  if (!pipeline->declared) return kiln_ok();
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_USE, OPEN);
  kilni_base_str_addf(&finding.message, ": the inputs of %s:%s are unknown",
                      kiln_compat_kind_word(pipeline->consumer->kind),
                      pipeline->consumer->name);
  kilni_base_str_add_cstr(
      &finding.fix,
      "declare it only where one accepts what the other makes: "
      "`lib:nvrtc>lib:nvJitLink:ltoir`, `lib:nvJitLink>lib:cuda:cubin`");
  return pipeline_add(check, &finding);
}

// A toolkit component of unknown release is a finding of its own; a product
// with a number of its own has none that could be compared.
static kiln_status_t pipeline_line_unknown(kilni_compat_check_t* check,
                                           const pipeline_t* pipeline) {
  const kiln_compat_fact_t* fact = pipeline->producer;
  if (fact->line != 0) fact = pipeline->consumer;
  if (!pipeline->declared || fact->class_id == KILN_COMPAT_CLASS_CTK) {
    return kiln_ok();
  }
  kilni_compat_finding_t finding;
  init(&finding, check, pipeline, KILN_COMPAT_RULE_USE, OPEN);
  kilni_base_str_addf(&finding.message,
                      ": %s:%s has a version of its own, not a toolkit's, "
                      "which the rules compare",
                      kiln_compat_kind_word(fact->kind), fact->name);
  kilni_base_str_add_cstr(&finding.fix,
                          "see its documentation for what it accepts, and omit "
                          "the use from the check");
  return pipeline_add(check, &finding);
}

static kiln_status_t to_driver(kilni_compat_check_t* check,
                               const pipeline_t* pipeline) {
  if (pipeline->artifact == KILN_COMPAT_ARTIFACT_LTOIR ||
      pipeline->artifact == KILN_COMPAT_ARTIFACT_NVVM) {
    return not_for_driver(check, pipeline);
  }
  if (check->driver.state != KILN_COMPAT_DRIVER_KNOWN) {
    return pipeline->declared ? driver_unknown(check, pipeline) : kiln_ok();
  }
  // Only a pipeline whose producer is known gets this far.
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  if (pipeline->producer->line == 0) {
    return pipeline_line_unknown(check, pipeline);
  }
  return pipeline->artifact == KILN_COMPAT_ARTIFACT_PTX
             ? ptx_driver(check, pipeline)
             : cubin_driver(check, pipeline);
}

// ---- Which uses there are ----

// Whether there is something to report, even if only that nothing is wrong.
static bool has_verdict(const kilni_compat_check_t* check,
                        const pipeline_t* pipeline) {
  if (pipeline->declared) return true;
  if (pipeline->producer->line == 0) return false;
  if (pipeline->consumer == NULL) {
    return check->driver.state == KILN_COMPAT_DRIVER_KNOWN;
  }
  return pipeline->consumer->line != 0 &&
         (has_nvvm(pipeline) ||
          is_linker_of(pipeline->consumer, pipeline->artifact));
}

static kiln_status_t check_pipeline(kilni_compat_check_t* check,
                                    const pipeline_t* pipeline) {
  const kiln_compat_fact_t* producer = pipeline->producer;
  const kiln_compat_fact_t* consumer = pipeline->consumer;
  if (!kilni_compat_check_asks(check, producer, consumer)) return kiln_ok();
  if (has_verdict(check, pipeline)) {
    kilni_compat_report_judge(
        check->report, use_of_artifact(pipeline->artifact), pipeline->declared);
  }
  if (consumer == NULL) return to_driver(check, pipeline);
  if (producer->line == 0 || consumer->line == 0) {
    return pipeline_line_unknown(check, pipeline);
  }
  if (has_nvvm(pipeline)) {
    bool settled = true;
    KILNI_RETURN_IF_ERROR(nvvm_ir(check, pipeline, &settled));
    if (settled) return kiln_ok();
  }
  if (!is_linker_of(consumer, pipeline->artifact)) {
    return no_rule(check, pipeline);
  }
  return link_range(check, pipeline);
}

static bool is_driver(const kiln_compat_use_t* use) {
  return use->consumer_kind == KILN_COMPAT_KIND_LIB &&
         strcmp(use->consumer, "cuda") == 0;
}

static kiln_status_t pipeline_check_declared(kilni_compat_check_t* check,
                                             const kiln_compat_use_t* use) {
  for (uint32_t i = 0; i < check->fact_count; i++) {
    pipeline_t pipeline = {&check->facts[i], NULL, use->artifact, true};
    if (!kilni_compat_fact_is(pipeline.producer, use->producer_kind,
                              use->producer)) {
      continue;
    }
    if (is_driver(use)) {
      KILNI_RETURN_IF_ERROR(check_pipeline(check, &pipeline));
      continue;
    }
    for (uint32_t j = 0; j < check->fact_count; j++) {
      pipeline.consumer = &check->facts[j];
      if (kilni_compat_fact_is(pipeline.consumer, use->consumer_kind,
                               use->consumer)) {
        KILNI_RETURN_IF_ERROR(check_pipeline(check, &pipeline));
      }
    }
  }
  return kiln_ok();
}

static bool pipeline_is_declared(const kilni_compat_check_t* check,
                                 const pipeline_t* pipeline) {
  for (uint32_t i = 0; i < check->use_count; i++) {
    const kiln_compat_use_t* use = &check->uses[i];
    if (use->artifact != pipeline->artifact ||
        !kilni_compat_fact_is(pipeline->producer, use->producer_kind,
                              use->producer)) {
      continue;
    }
    if (pipeline->consumer == NULL
            ? is_driver(use)
            : kilni_compat_fact_is(pipeline->consumer, use->consumer_kind,
                                   use->consumer)) {
      return true;
    }
  }
  return false;
}

// What makes what, for undeclared uses.
enum { MAKES_LTO = 1, MAKES_PTX = 2, MAKES_CUBIN = 4 };
static const struct {
  uint32_t kind;
  const char* name;
  uint32_t to_linker;
  uint32_t to_driver;
} kMakers[] = {
    {KILN_COMPAT_KIND_LIB, "nvrtc", MAKES_LTO | MAKES_PTX | MAKES_CUBIN,
     MAKES_PTX | MAKES_CUBIN},
    {KILN_COMPAT_KIND_BINARY, "nvcc", MAKES_LTO | MAKES_PTX | MAKES_CUBIN,
     MAKES_PTX | MAKES_CUBIN},
    {KILN_COMPAT_KIND_LIB, "nvvm", 0, MAKES_PTX},
    {KILN_COMPAT_KIND_LIB, "nvJitLink", 0, MAKES_PTX | MAKES_CUBIN},
};

static kiln_status_t check_made(kilni_compat_check_t* check,
                                const kiln_compat_fact_t* producer,
                                const kiln_compat_fact_t* consumer,
                                uint32_t made) {
  static const struct {
    uint32_t bit;
    uint32_t artifact;
  } kinds[] = {{MAKES_LTO, KILN_COMPAT_ARTIFACT_LTOIR},
               {MAKES_PTX, KILN_COMPAT_ARTIFACT_PTX},
               {MAKES_CUBIN, KILN_COMPAT_ARTIFACT_CUBIN}};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    pipeline_t pipeline = {producer, consumer, kinds[i].artifact, false};
    if ((made & kinds[i].bit) == 0 || pipeline_is_declared(check, &pipeline)) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(check_pipeline(check, &pipeline));
  }
  return kiln_ok();
}

static kiln_status_t check_maker(kilni_compat_check_t* check,
                                 const kiln_compat_fact_t* producer) {
  for (size_t i = 0; i < sizeof(kMakers) / sizeof(kMakers[0]); i++) {
    if (!kilni_compat_fact_is(producer, kMakers[i].kind, kMakers[i].name)) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(
        check_made(check, producer, NULL, kMakers[i].to_driver));
    for (uint32_t j = 0; j < check->fact_count; j++) {
      const kiln_compat_fact_t* consumer = &check->facts[j];
      if (!kilni_compat_fact_is(consumer, KILN_COMPAT_KIND_LIB, "nvJitLink")) {
        continue;
      }
      KILNI_RETURN_IF_ERROR(
          check_made(check, producer, consumer, kMakers[i].to_linker));
    }
  }
  return kiln_ok();
}

kiln_status_t kilni_compat_rules_uses(kilni_compat_check_t* check) {
  for (uint32_t i = 0; i < check->use_count; i++) {
    KILNI_RETURN_IF_ERROR(pipeline_check_declared(check, &check->uses[i]));
  }
  for (uint32_t i = 0; i < check->fact_count; i++) {
    KILNI_RETURN_IF_ERROR(check_maker(check, &check->facts[i]));
  }
  return kiln_ok();
}
