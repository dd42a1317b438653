// SPDX-License-Identifier: Apache-2.0
//
// compat: the rules about one component and about two.
#include <string.h>

#include "base/fix_words.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compat/compat_report.h"
#include "compat/compat_rules.h"
#include "kiln/compat.h"

// ---- One component ----

static kiln_status_t piece_line_unknown(kilni_compat_check_t* check,
                                        const kiln_compat_fact_t* fact) {
  bool is_contested = fact->against_line != 0;
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(
      &finding, check->allocator,
      is_contested ? KILN_COMPAT_RULE_EVIDENCE : KILN_COMPAT_RULE_LINE,
      KILN_COMPAT_USE_ANY, KILN_COMPAT_VERDICT_UNKNOWN, true);
  finding.parties[0] = fact;
  kilni_compat_fact_describe(&finding.message, fact);
  if (is_contested) {
    kilni_base_str_addf(
        &finding.message, ": the sources of its release disagree, %s states %s",
        fact->against, kilni_compat_line_text(fact->against_line).text);
    kilni_base_str_add_cstr(&finding.fix,
                            "install it again from one source: the file was "
                            "changed without its installer");
  } else {
    kilni_base_str_add_cstr(
        &finding.message,
        ": nothing in the file, its owner or its folder states its release");
    kilni_base_str_add_cstr(
        &finding.fix,
        "install it as a wheel, or take it from a toolkit with its "
        "include/cuda.h; `--verify` reads more of the file");
  }
  return kilni_compat_report_add(check->report, &finding, NULL);
}

static kiln_status_t evidence_disagrees(kilni_compat_check_t* check,
                                        const kiln_compat_fact_t* fact) {
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator,
                            KILN_COMPAT_RULE_EVIDENCE, KILN_COMPAT_USE_ANY,
                            KILN_COMPAT_VERDICT_COMPATIBLE, false);
  finding.parties[0] = fact;
  kilni_compat_fact_describe(&finding.message, fact);
  kilni_base_str_addf(
      &finding.message, "; less certain, and not used: %s states %s",
      fact->against, kilni_compat_line_text(fact->against_line).text);
  kilni_base_str_add_cstr(
      &finding.fix,
      "nothing, if the two were installed apart on purpose; "
      "`kiln doctor` shows which package owns which file");
  return kilni_compat_report_add(check->report, &finding, NULL);
}

static kiln_status_t constraint(kilni_compat_check_t* check,
                                const kiln_compat_fact_t* fact) {
  bool admits = true;
  if (check->constraint == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kiln_compat_spec_admits_line(check->constraint, fact->line, &admits));
  if (admits) return kiln_ok();
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator,
                            KILN_COMPAT_RULE_CONSTRAINT, KILN_COMPAT_USE_ANY,
                            KILN_COMPAT_VERDICT_INCOMPATIBLE, true);
  finding.parties[0] = fact;
  kilni_compat_fact_describe(&finding.message, fact);
  kilni_base_str_addf(&finding.message, " does not satisfy ctk_version%s",
                      check->constraint);
  kilni_base_str_addf(
      &finding.fix,
      "name a toolkit that does (`--root DIR`), run `python3 -m "
      "pip install \"cuda-toolkit%s\"`" KILNI_FIX_ENVIRONMENT
      ", or widen --ctk-version",
      check->constraint);
  return kilni_compat_report_add(check->report, &finding, NULL);
}

kiln_status_t kilni_compat_rules_piece(kilni_compat_check_t* check,
                                       const kiln_compat_fact_t* fact) {
  if (fact->class_id != KILN_COMPAT_CLASS_CTK ||
      !kilni_compat_check_asks(check, fact, NULL)) {
    return kiln_ok();
  }
  if (fact->line == 0) return piece_line_unknown(check, fact);
  if (fact->against_line != 0 && fact->against_line != fact->line) {
    KILNI_RETURN_IF_ERROR(evidence_disagrees(check, fact));
  }
  return constraint(check, fact);
}

// ---- Two components ----

// What reads headers, and the headers that must be of its line.
static const struct {
  uint32_t kind;
  const char* name;
} kCompilers[] = {{KILN_COMPAT_KIND_LIB, "nvrtc"},
                  {KILN_COMPAT_KIND_BINARY, "nvcc"}};

static const char* const kCompiledHeaders[] = {"cudart", "cccl"};

static bool is_compiler(const kiln_compat_fact_t* fact) {
  for (size_t i = 0; i < sizeof(kCompilers) / sizeof(kCompilers[0]); i++) {
    if (kilni_compat_fact_is(fact, kCompilers[i].kind, kCompilers[i].name)) {
      return true;
    }
  }
  return false;
}

static bool is_compiled_header(const kiln_compat_fact_t* fact) {
  size_t count = sizeof(kCompiledHeaders) / sizeof(kCompiledHeaders[0]);
  for (size_t i = 0; i < count; i++) {
    if (kilni_compat_fact_is(fact, KILN_COMPAT_KIND_HEADER,
                             kCompiledHeaders[i])) {
      return true;
    }
  }
  return false;
}

static bool is_linker(const kiln_compat_fact_t* fact) {
  return kilni_compat_fact_is(fact, KILN_COMPAT_KIND_LIB, "nvJitLink");
}

// nvJitLink is newer than its component on purpose: official metas ask for a
// range of it. What it must be at least as new as is the linker's rule and
// that of needed symbols.
static bool same_component(const kiln_compat_fact_t* a,
                           const kiln_compat_fact_t* b) {
  if (a->component == NULL || b->component == NULL) return false;
  if (strcmp(a->component, b->component) != 0) return false;
  return is_linker(a) == is_linker(b);
}

// The tags that both carry, in the order of `a`, quoted.
static uint32_t shared_tags(const kiln_compat_fact_t* a,
                            const kiln_compat_fact_t* b,
                            kilni_base_str_t* out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < a->tag_count; i++) {
    for (uint32_t j = 0; j < b->tag_count; j++) {
      if (strcmp(a->tags[i], b->tags[j]) != 0) continue;
      if (out != NULL) {
        kilni_base_str_addf(out, "%s'%s'", count > 0 ? ", " : "", a->tags[i]);
      }
      count++;
      break;
    }
  }
  return count;
}

// The rule that ties two components together; 0: they may be of any releases.
static uint32_t relation(const kiln_compat_fact_t* a,
                         const kiln_compat_fact_t* b) {
  if ((is_compiler(a) && is_compiled_header(b)) ||
      (is_compiler(b) && is_compiled_header(a))) {
    return KILN_COMPAT_RULE_HEADER_COMPILER;
  }
  if (same_component(a, b)) return KILN_COMPAT_RULE_COMPONENT;
  if (shared_tags(a, b, NULL) > 0) return KILN_COMPAT_RULE_COMPANION;
  return 0;
}

static void explain_pair(kilni_base_str_t* message, uint32_t rule,
                         const kiln_compat_fact_t* a,
                         const kiln_compat_fact_t* b) {
  kilni_compat_fact_describe(message, a);
  kilni_base_str_add_cstr(message, " and ");
  kilni_compat_fact_describe(message, b);
  switch (rule) {
    case KILN_COMPAT_RULE_HEADER_COMPILER:
      kilni_base_str_add_cstr(
          message, ": a compiler's headers must be of its own release");
      return;
    case KILN_COMPAT_RULE_COMPONENT:
      kilni_base_str_addf(message,
                          " are in the same dynamic-link component '%s', whose "
                          "members must be of one release",
                          a->component);
      return;
    default:
      kilni_base_str_addf(message, " share the companion tag ");
      shared_tags(a, b, message);
      kilni_base_str_add_cstr(message, ", and must be of one release");
  }
}

static void advise_pair(kilni_base_str_t* fix, uint32_t rule,
                        const kiln_compat_fact_t* a,
                        const kiln_compat_fact_t* b) {
  // The component to change: the header of a compiler, else the older one.
  const kiln_compat_fact_t* keep = a->line >= b->line ? a : b;
  if (rule == KILN_COMPAT_RULE_HEADER_COMPILER) keep = is_compiler(a) ? a : b;
  const kiln_compat_fact_t* change = keep == a ? b : a;
  kilni_base_str_add_cstr(fix, "take both from one toolkit, e.g. ");
  kilni_compat_fact_install(fix, change, keep->line);
  if (rule == KILN_COMPAT_RULE_HEADER_COMPILER && keep->line >= 13030 &&
      kilni_compat_fact_is(keep, KILN_COMPAT_KIND_LIB, "nvrtc")) {
    kilni_base_str_add_cstr(
        fix,
        ", or compile with the headers that this NVRTC brings: "
        "nvrtcInstallBundledHeaders, then "
        "--use-bundled-headers=DIR");
  }
}

static kiln_status_t differs(kilni_compat_check_t* check, uint32_t rule,
                             const kiln_compat_fact_t* a,
                             const kiln_compat_fact_t* b) {
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator, rule,
                            KILN_COMPAT_USE_ANY,
                            KILN_COMPAT_VERDICT_INCOMPATIBLE, true);
  finding.parties[0] = a;
  finding.parties[1] = b;
  explain_pair(&finding.message, rule, a, b);
  advise_pair(&finding.fix, rule, a, b);
  return kilni_compat_report_add(check->report, &finding, NULL);
}

// The major that a component is for; 0: unknown.
static uint32_t piece_major_of(const kiln_compat_fact_t* fact) {
  if (fact->class_id == KILN_COMPAT_CLASS_CTK || fact->toolkit_major == 0) {
    return kiln_compat_line_major(fact->line);
  }
  return fact->toolkit_major;
}

// A product with a number of its own is checked against the major that it was
// built for, where that is known; it may well bring what it needs.
static kiln_status_t other_majors(kilni_compat_check_t* check,
                                  const kiln_compat_fact_t* a,
                                  const kiln_compat_fact_t* b) {
  uint32_t major_a = piece_major_of(a);
  uint32_t major_b = piece_major_of(b);
  if (major_a == 0 || major_b == 0 || major_a == major_b) return kiln_ok();
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator,
                            KILN_COMPAT_RULE_COMPONENT, KILN_COMPAT_USE_ANY,
                            KILN_COMPAT_VERDICT_UNKNOWN, true);
  finding.parties[0] = a;
  finding.parties[1] = b;
  kilni_compat_fact_describe(&finding.message, a);
  kilni_base_str_addf(&finding.message, " is built for CUDA %u and ",
                      (unsigned)major_a);
  kilni_compat_fact_describe(&finding.message, b);
  kilni_base_str_addf(
      &finding.message,
      " is built for CUDA %u, and both are in the same dynamic-link "
      "component '%s'",
      (unsigned)major_b, a->component);
  kilni_base_str_addf(&finding.fix,
                      "install the one for the other's major: wheels of such "
                      "products end in -cu%u and -cu%u",
                      (unsigned)major_a, (unsigned)major_b);
  return kilni_compat_report_add(check->report, &finding, NULL);
}

enum { RELEASE_NUMBERS = 3 };

// The first numbers of "9.19.0.56"; false where there are no two.
static bool read_release(const char* text, uint32_t out[RELEASE_NUMBERS]) {
  int count = 0;
  memset(out, 0, RELEASE_NUMBERS * sizeof(*out));
  while (count < RELEASE_NUMBERS && *text >= '0' && *text <= '9') {
    for (; *text >= '0' && *text <= '9'; text++) {
      if (out[count] > UINT32_MAX / 10 - 1) return false;
      out[count] = out[count] * 10 + (uint32_t)(*text - '0');
    }
    count++;
    if (*text != '.') break;
    text++;
  }
  return count >= 2;
}

// Libraries of one product are of one release. Its headers may be older than
// its library, and not of another major.
static bool releases_fit(const kiln_compat_fact_t* a,
                         const kiln_compat_fact_t* b) {
  uint32_t one[RELEASE_NUMBERS];
  uint32_t two[RELEASE_NUMBERS];
  if (!read_release(a->release, one) || !read_release(b->release, two)) {
    return true;
  }
  bool header_a = a->kind == KILN_COMPAT_KIND_HEADER;
  bool header_b = b->kind == KILN_COMPAT_KIND_HEADER;
  if (header_a == header_b) return memcmp(one, two, sizeof(one)) == 0;
  const uint32_t* header = header_a ? one : two;
  const uint32_t* lib = header_a ? two : one;
  return header[0] == lib[0] && header[1] <= lib[1];
}

// What a mixture of them does is promised nowhere.
static kiln_status_t other_releases(kilni_compat_check_t* check,
                                    const kiln_compat_fact_t* a,
                                    const kiln_compat_fact_t* b) {
  kilni_compat_finding_t finding;
  if (releases_fit(a, b)) return kiln_ok();
  kilni_compat_finding_init(&finding, check->allocator,
                            KILN_COMPAT_RULE_COMPANION, KILN_COMPAT_USE_ANY,
                            KILN_COMPAT_VERDICT_UNKNOWN, true);
  finding.parties[0] = a;
  finding.parties[1] = b;
  kilni_compat_fact_describe(&finding.message, a);
  kilni_base_str_addf(&finding.message, " is of release %s and ", a->release);
  kilni_compat_fact_describe(&finding.message, b);
  kilni_base_str_addf(&finding.message,
                      " of release %s, and both are of one product (",
                      b->release);
  shared_tags(a, b, &finding.message);
  kilni_base_str_add_cstr(&finding.message, ")");
  kilni_base_str_add_cstr(
      &finding.fix,
      "take both from one installation of that product; `kiln find --trail` "
      "shows where each release comes from");
  return kilni_compat_report_add(check->report, &finding, NULL);
}

static kiln_status_t pair_of_products(kilni_compat_check_t* check,
                                      const kiln_compat_fact_t* a,
                                      const kiln_compat_fact_t* b) {
  if (same_component(a, b)) {
    KILNI_RETURN_IF_ERROR(other_majors(check, a, b));
  }
  return shared_tags(a, b, NULL) > 0 ? other_releases(check, a, b) : kiln_ok();
}

kiln_status_t kilni_compat_rules_pair(kilni_compat_check_t* check,
                                      const kiln_compat_fact_t* a,
                                      const kiln_compat_fact_t* b) {
  if (a->class_id == KILN_COMPAT_CLASS_DRIVER ||
      b->class_id == KILN_COMPAT_CLASS_DRIVER ||
      !kilni_compat_check_asks(check, a, b)) {
    return kiln_ok();
  }
  if (a->class_id == KILN_COMPAT_CLASS_OTHER ||
      b->class_id == KILN_COMPAT_CLASS_OTHER) {
    return pair_of_products(check, a, b);
  }
  if (a->line == 0 || b->line == 0 || a->line == b->line) return kiln_ok();
  // Two nvJitLinks serve two majors side by side; the rest is a use's affair.
  if (is_linker(a) && is_linker(b)) return kiln_ok();
  uint32_t rule = relation(a, b);
  return rule != 0 ? differs(check, rule, a, b) : kiln_ok();
}

// ---- Symbols that one needs of another ----

static kiln_status_t lacks_symbols(kilni_compat_check_t* check,
                                   uint32_t verdict,
                                   const kiln_compat_fact_t* fact,
                                   const kiln_compat_need_t* need,
                                   const kiln_compat_fact_t* lib) {
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator,
                            KILN_COMPAT_RULE_NEEDED_SYMBOL, KILN_COMPAT_USE_ANY,
                            verdict, true);
  finding.parties[0] = fact;
  finding.parties[1] = lib;
  kilni_compat_fact_describe(&finding.message, fact);
  kilni_base_str_addf(&finding.message, " needs %s of %s or newer", need->name,
                      kilni_compat_line_text(need->line).text);
  if (need->text != NULL && need->text[0] != '\0') {
    kilni_base_str_addf(&finding.message, " (%s)", need->text);
  }
  kilni_base_str_add_cstr(&finding.message, ", and it is ");
  kilni_compat_fact_describe(&finding.message, lib);
  unsigned major = (unsigned)kiln_compat_line_major(need->line);
  if (is_linker(lib)) {
    kilni_base_str_addf(
        &finding.fix,
        "`python3 -m pip install "
        "\"nvidia-nvjitlink%s>=%u.%u,<%u\"`" KILNI_FIX_ENVIRONMENT,
        major < 13 ? "-cu12" : "", major,
        (unsigned)kiln_compat_line_minor(need->line), major + 1);
  } else {
    kilni_compat_fact_install(&finding.fix, lib, need->line);
  }
  return kilni_compat_report_add(check->report, &finding, NULL);
}

// A library of another major has another soname: it is not the wanted one,
// unless it is the only one.
static kiln_status_t check_need(kilni_compat_check_t* check,
                                const kiln_compat_fact_t* fact,
                                const kiln_compat_need_t* need) {
  const kiln_compat_fact_t* best = NULL;
  uint32_t major = kiln_compat_line_major(need->line);
  for (uint32_t i = 0; i < check->fact_count; i++) {
    const kiln_compat_fact_t* lib = &check->facts[i];
    if (!kilni_compat_fact_is(lib, KILN_COMPAT_KIND_LIB, need->name)) continue;
    if (lib->line == 0) continue;
    bool is_major = kiln_compat_line_major(lib->line) == major;
    bool best_is = best != NULL && kiln_compat_line_major(best->line) == major;
    if (is_major && lib->line < need->line) {
      if (!kilni_compat_check_asks(check, fact, lib)) continue;
      KILNI_RETURN_IF_ERROR(lacks_symbols(
          check, KILN_COMPAT_VERDICT_INCOMPATIBLE, fact, need, lib));
    }
    if (best == NULL || (is_major && !best_is)) best = lib;
  }
  if (best == NULL || kiln_compat_line_major(best->line) == major ||
      !kilni_compat_check_asks(check, fact, best)) {
    return kiln_ok();
  }
  return lacks_symbols(check, KILN_COMPAT_VERDICT_UNKNOWN, fact, need, best);
}

// Libraries that link against nvJitLink, by name, for facts that do not state
// what they need: they need it of their own release or a little older.
static bool links_linker(const kiln_compat_fact_t* fact) {
  return kilni_compat_fact_is(fact, KILN_COMPAT_KIND_LIB, "cusparse") ||
         kilni_compat_fact_is(fact, KILN_COMPAT_KIND_LIB, "cusolver");
}

kiln_status_t kilni_compat_rules_needs(kilni_compat_check_t* check,
                                       const kiln_compat_fact_t* fact) {
  if (fact->class_id == KILN_COMPAT_CLASS_DRIVER) return kiln_ok();
  for (uint32_t i = 0; i < fact->need_count; i++) {
    if (fact->needs[i].name == NULL || fact->needs[i].line == 0) continue;
    KILNI_RETURN_IF_ERROR(check_need(check, fact, &fact->needs[i]));
  }
  if (fact->need_count > 0 || fact->line == 0 || !links_linker(fact)) {
    return kiln_ok();
  }
  kiln_compat_need_t need = {"nvJitLink", NULL, fact->line, 0};
  for (uint32_t i = 0; i < check->fact_count; i++) {
    const kiln_compat_fact_t* lib = &check->facts[i];
    if (!is_linker(lib) || lib->line == 0 || lib->line >= fact->line) continue;
    if (!kilni_compat_check_asks(check, fact, lib)) continue;
    KILNI_RETURN_IF_ERROR(
        lacks_symbols(check, KILN_COMPAT_VERDICT_UNKNOWN, fact, &need, lib));
  }
  return kiln_ok();
}
