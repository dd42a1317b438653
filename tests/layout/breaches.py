#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees each layout rule fail: breaches.py RULE --cc CC.

A small tree that keeps every rule is made in a temporary folder. The rule
must pass it. Then each planted breach of that rule is made in a fresh copy,
and the rule must fail with the message that the breach names.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile

import rules_docs  # noqa: F401
import rules_layout  # noqa: F401
import rules_text  # noqa: F401
from layout_tree import RULES, Skip, Tree, run
from rules_binary import compile_object

TOP = "// SPDX-License-Identifier: Apache-2.0\n//\n// %s: a purpose.\n"
PY = "# SPDX-License-Identifier: Apache-2.0\n"
GUARDED = "#ifndef %s\n#define %s\n%s#endif\n"

STATUS_H = TOP % "base" + GUARDED % ("KILN_STATUS_H_", "KILN_STATUS_H_", """
#include <stdint.h>
#define KILN_STATUS_CODES(X) \\
  X(OK, 0, "ok", 0)

// A status. thread-compatible
typedef struct kiln_status_t kiln_status_t;

// Options. thread-compatible
typedef struct kiln_open_options_t {
  uint32_t struct_size;
  uint32_t count;
  const char* name;
} kiln_open_options_t;

static inline kiln_open_options_t kiln_open_options_default(void) {
  kiln_open_options_t options = {sizeof(options), 0, 0};
  return options;
}

int kiln_status_code(const kiln_status_t* status);
""")

GENERATOR = PY + """import sys
text = open("docs/reference/made_gen.txt").read()
sys.exit(0 if "--check" in sys.argv and text == "right" else 1)
"""

CLEAN = {
    "src/LAYERS": "0 base: * ; kiln/status.h ;\n1 left: left.h ; ;\n"
                  "1 right: right.h ; ;\n2 top: top.h ; kiln/top.h ;\n"
                  "2 guest: guest.h ; kiln/guest.h ; ; other\n"
                  "3 cli: ; ;\n"
                  "part right/low:\npart right/high: low\n",
    "src/GLOBALS": "left/left.c state: the driver carries no pointer\n",
    "src/base/base.c": TOP % "base" + '#include "kiln/status.h"\n'
                       '#include "base/str.h"\n'
                       'int kiln_status_code(const kiln_status_t* s);\n'
                       'int kiln_status_code(const kiln_status_t* s) {\n'
                       '  return s != 0;\n}\n',
    "src/base/str.h": TOP % "base",
    "src/base/env_vars.inc": TOP % "base" +
                             'KILNI_ENV_VAR(KILN_X, base, text, "", "x")\n',
    "src/left/left.h": TOP % "left" + '#include "base/str.h"\n',
    "src/left/left_inside.h": TOP % "left",
    "src/left/left.c": TOP % "left" + '#include "left/left_inside.h"\n'
                       'static int state;\nint kilni_left(void);\n'
                       'int kilni_left(void) { return ++state; }\n',
    "src/right/right.h": TOP % "right",
    "src/right/low/right_low.h": TOP % "right",
    "src/right/high/right_high.h": TOP % "right" +
                                   '#include "right/low/right_low.h"\n',
    "src/top/top.c": TOP % "top" + '#include "left/left.h"\n',
    "src/guest/guest.h": TOP % "guest",
    "src/cli/cli_main.c": TOP % "cli" + '#include "kiln/status.h"\n'
                          '#include <png.h>\n'
                          'extern kiln_status_t* kilni_cli_status;\n',
    "include/kiln/status.h": STATUS_H,
    "tests/unit/left/test_left.c": TOP % "left",
    "tests/layout/GENERATORS":
        "tools/gen_made.py: docs/reference/made_gen.txt\n",
    "tools/gen_made.py": GENERATOR,
    "docs/reference/made_gen.txt": "right",
    "docs/reference/environment.md": "`KILN_X`\n",
    "docs/reference/status.md": "`OK`\n",
    "docs/internals/base.md": "[layout](layout.md)\n",
    "docs/internals/left.md": "left\n",
    "docs/internals/top.md": "top\n",
    "docs/internals/cli.md": "cli\n",
    "docs/internals/layout.md": "    3  cli/        the program\n    2  top/ guest/\n"
                     "    1  left/  right/    sides\n    0  base/  all\n",
    "docs/decisions/index.md": "* [one](one.md)\n",
    "docs/decisions/one.md": "one\n",
    "tools/ci_parts.txt": "# a table\nbuild 2.5 cpu all\nlinks 20 later more\n",
    "CONTRIBUTING.md": "| `build` | 2.5 | all |\n"
                       "| `links` | 20 | more (kept for it) |\n",
}

# rule: [({file: its text, None to remove, ("+", text) to append}, message)]
BREACHES = {
    "ci_shares": [
        ({"tools/ci_parts.txt": ("+", "tests 3 cpu half\n")},
         "CONTRIBUTING.md: has no row `| `tests` | 3 | half |`"),
        ({"CONTRIBUTING.md": ("+", "| `more` | 1 | x |\n")},
         "`| `more` | 1 | x |` is not in tools/ci_parts.txt"),
        ({"tools/ci_parts.txt": ("+", "tests 13 cpu half\n")},
         "what runs today has 15.5 minutes, over 15"),
        ({"tools/ci_parts.txt": ("+", "tests 3 later half\n")},
         "all shares together are 25.5 minutes, over 25"),
        ({"tools/ci_parts.txt": ("+", "tests many cpu half\n")},
         "line 4 is not NAME SHARE KIND WHAT"),
    ],
    "layers": [
        ({"src/base/base.c": ("+", '#include "left/left.h"\n')},
         'src/base/base.c:10: "left/left.h" lies on layer 1, not below'),
        ({"src/left/left.c": ("+", '#include "right/right.h"\n')},
         '"right/right.h" lies on layer 1, not below layer 1'),
        ({"src/top/top.c": ("+", '#include "left/left_inside.h"\n')},
         '"left/left_inside.h" is no header of left'),
        ({"src/top/top.c": ("+", '#include "left.h"\n')},
         '"left.h" names no module'),
        ({"src/top/top.c": ("+", '#include "attic/attic.h"\n')},
         "src/LAYERS has no module attic"),
        ({"src/top/top.c": ("+", '#include "left/gone.h"\n')},
         '"left/gone.h" does not exist'),
        ({"src/left/left.c": ("+", '#include "kiln/top.h"\n')},
         "kiln/top.h is a header of top, which is not below"),
        ({"src/cli/cli_main.c": ("+", '#include "guest/guest.h"\n')},
         '"guest/guest.h" may be included by other only'),
        ({"src/attic/attic.c": TOP % "attic"},
         "src/attic/attic.c: its folder is no module"),
        ({"include/kiln/status.h": ("+", '#include "base/str.h"\n')},
         "a public header includes kiln/ only"),
    ],
    "needless_includes": [
        ({"src/base/str.h": ("+", "int kilni_str_length(void);\n")},
         'src/base/base.c:5: uses nothing of "base/str.h"'),
        ({"src/left/left_inside.h": ("+", "enum { LEFT_PLACES = 2 };\n")},
         'src/left/left.c:4: uses nothing of "left/left_inside.h"'),
    ],
    "sources_are_built": [
        ({"lost": "src/left/left.c"},
         "src/left/left.c: no CMakeLists.txt names it"),
        ({"lost": "tests/unit/left/test_left.c"},
         "tests/unit/left/test_left.c: no CMakeLists.txt names it"),
    ],
    "tests_have_modules": [
        ({"build/CTestTestfile.cmake":
          'add_test(one "/one")\nset_tests_properties(one PROPERTIES '
          ' LABELS "unit;left")\nadd_test(two "/two")\n'},
         "two: its labels name no module: it has none"),
        ({"build/CTestTestfile.cmake":
          'add_test(one "/one")\nset_tests_properties(one PROPERTIES '
          ' LABELS "unit;attic")\n'},
         "one: its labels name no module: attic, unit"),
    ],
    "ok_is_named": [
        ({"src/top/top.c":
          ("+", "kiln_status_t top(void) {\n  return NULL;\n}\n")},
         "src/top/top.c:6: `return kiln_ok();` says it"),
        ({"src/top/top.c":
          ("+", "kiln_status_t top(int a, kiln_status_t b) {\n"
                "  return a ? b : NULL;\n}\n")},
         "src/top/top.c:6: `return kiln_ok();` says it"),
    ],
    "parts": [
        ({"src/right/low/right_low.h":
          ("+", '#include "right/high/right_high.h"\n')},
         "src/right/low/right_low.h:4: right/low may not include right/high"),
        ({"src/right/right.h": ("+", '#include "right/low/right_low.h"\n')},
         "src/right/right.h:4: a header may not include right/low"),
        ({"src/right/lost/right_lost.h": TOP % "right"},
         "src/right/lost/right_lost.h: its folder is no part"),
        ({"src/left/low/left_low.h": TOP % "left"},
         "src/left/low/left_low.h: its folder is no part"),
        ({"src/right/right_loose.c": TOP % "right"},
         "src/right/right_loose.c: belongs to a part"),
        ({"src/LAYERS": ("+", "part right/gone: low\n")},
         "there is no folder src/right/gone"),
        ({"src/LAYERS": ("+", "part attic/low:\n")},
         "attic/low is in no module"),
        ({"src/right/mid/right_mid.h": TOP % "right",
          "src/LAYERS": ("+", "part right/mid: end\n")},
         "right/end is no part above this line"),
    ],
    "cli_is_a_user": [
        ({"src/cli/cli_main.c": ("+", '#include "base/str.h"\n')},
         "src/cli/cli_main.c:7: the command includes base/str.h"),
    ],
    "no_toolkit_headers": [
        ({"src/left/left.c": ("+", "#include <cuda.h>\n")},
         "<cuda.h> is a header of the CUDA toolkit"),
        ({"src/left/left.c": ("+", "#include <png.h>\n")},
         "<png.h> belongs to the command"),
    ],
    "header_cycles": [
        ({"src/left/left_inside.h": ("+", '#include "left/left.h"\n'),
          "src/left/left.h": ("+", '#include "left/left_inside.h"\n')},
         "headers in a circle: src/left/left.h -> src/left/left_inside.h -> "
         "src/left/left.h"),
    ],
    "unique_names": [
        ({"tests/unit/base/left.c": TOP % "base"},
         "src/left/left.c and tests/unit/base/left.c have the same name"),
    ],
    "names_have_modules": [
        ({"src/base/util.c": TOP % "base"}, "src/base/util.c: what is in it"),
        ({"tests/helpers.c": TOP % "base"}, "tests/helpers.c: what is in it"),
    ],
    "no_leftovers": [
        ({"crash-0123456789abcdef": ""}, "crash-0123456789abcdef: left"),
        ({"src/base/status.c.orig": ""}, "src/base/status.c.orig: left"),
    ],
    "public_headers_have_modules": [
        ({"include/kiln/lost.h": TOP % "base"},
         "include/kiln/lost.h belongs to no module"),
        ({"src/LAYERS": ("+", "4 more: ; kiln/status.h ;\n")},
         "kiln/status.h belongs to base and to more"),
    ],
    "unit_tests_have_modules": [
        ({"tests/unit/attic/test_attic.c": TOP % "attic"},
         "attic is no module"),
    ],
    "opening": [
        ({"src/left/bare.c": "int kiln_x;\n"}, "src/left/bare.c: does not"),
        ({"src/left/strange.c": TOP % "right"}, "says right, but lies in left"),
        ({"src/left/mute.c": "// SPDX-License-Identifier: Apache-2.0\n//\n"},
         "src/left/mute.c:3: is not"),
        ({"tools/bare.py": "x = 1\n"}, "tools/bare.py: has no SPDX line"),
        ({"tools/bare": "#!/bin/sh\n"}, "tools/bare: has no SPDX line"),
    ],
    "file_size": [
        ({"src/left/long.c": TOP % "left" + "\n" * 1500},
         "src/left/long.c: has 1503 lines, over 1500"),
    ],
    "function_size": [
        ({"src/left/long.c": TOP % "left" + "int f(void) {\n" + "\n" * 120 +
                             "  return 0;\n}\n"},
         "f has 123 lines, over 120"),
    ],
    "unique_functions": [
        ({"src/left/one.c": TOP % "left" + "static int f(void) {}\n",
          "src/right/two.c": TOP % "right" + "int f(void) {\n  return 0;\n}"
                             "\n"},
         "src/left/one.c:4: f is defined in src/right/two.c as well"),
    ],
    "columns": [
        ({"src/left/wide.c": TOP % "left" + "// " + "x" * 78 + "\n"},
         "src/left/wide.c:4: has 81 columns"),
        ({"src/left/tab.c": TOP % "left" + "\tint x;\n"},
         "src/left/tab.c:4: has a tab"),
        ({"src/left/end.c": TOP % "left" + "int x; \n"},
         "src/left/end.c:4: ends in a blank"),
    ],
    "no_loose_ends": [
        ({"src/left/left.c": ("+", "// TO" "DO: the rest\n")},
         "src/left/left.c:8: TO" "DO"),
    ],
    "thread_word": [
        ({"include/kiln/status.h":
              ("+", "// A thing.\ntypedef struct kiln_a_t kiln_a_t;\n")},
         "no thread word in the first comment line"),
        ({"include/kiln/status.h":
              ("+", "// A thing.\n// thread-safe\ntypedef enum kiln_a_t {\n"
                    "  KILN_A\n} kiln_a_t;\n")},
         "no thread word in the first comment line"),
    ],
    "fix_lines": [
        ({"src/left/left.c": ("+", 'int x = kilni_base_status_with_fix(\n'
                                   '    f(1, "a, (b"), "Set X");\n')},
         'src/left/left.c:8: the fix "Set X" begins with a capital'),
        ({"src/cli/cli_main.c": ("+", 'int x = kilni_cli_fail(\n'
                                      '    e, 3, "set " PRIu32\n'
                                      '    "X.", "Not Y.");\n')},
         'the fix "set X." is written as sentences'),
        ({"src/left/left.c": ("+", 'char FIX_IT[] = "set X. Then Y";\n')},
         "is written as sentences"),
        ({"src/left/left.c": ("+", 'int x = kilni_base_str_addf(&finding.fix,\n'
                                   '    "Set X");\n')},
         "begins with a capital"),
        ({"src/left/left.c": ("+", 'void f(int a) {\n'
                                   '  KILNI_CHECK_ARGUMENT_SAYS(a < g(1, 2), '
                                   '"a",\n      "is X", "Set X");\n}\n')},
         'the fix "Set X" begins with a capital'),
        ({"src/left/left.c": ("+", 'LEFT_RESULT(A, 3, 0, "Set X")\n')},
         "begins with a capital"),
    ],
    "operator_blanks": [
        ({"src/left/left.c": ("+", "TWO(mul_lo, uint32_t, LOW16(a* b))\n")},
         'src/left/left.c:8: "LOW16(a* b)" wants blanks about'),
        ({"src/left/left.c": ("+", "#define ROWS(X)  \\\n  ROW(and, a& b)\n")},
         'src/left/left.c:9: "a& b" wants blanks about'),
        ({"src/left/left.c": ("+", "int low(int x) { return (x)&15; }\n")},
         'src/left/left.c:8: ")&1" wants blanks about'),
        ({"src/left/left.c": ("+", "int y = (int)(x)&z;\n")},
         "wants blanks about"),
    ],
    "prefixes": [
        ({"include/kiln/status.h":
              ("+", "// thread-safe\ntypedef struct thing_t thing_t;\n")},
         "the type thing_t is not kiln_*_t"),
        ({"include/kiln/status.h": ("+", "#define MAX_THINGS 3\n")},
         "the macro MAX_THINGS is not KILN_*"),
    ],
    "postfix_steps": [
        ({"src/left/left.c":
          ("+", "void f(int n) {\n  for (int i = 0; i < n; ++i) g(i);\n}\n")},
         "src/left/left.c:9: ++i: write i++"),
        ({"src/left/left.c":
          ("+", "void f(s_t* s) {\n  if (s) --s->at[1].n;\n}\n")},
         "src/left/left.c:9: --s->at[1].n: write s->at[1].n--"),
        ({"src/left/left.c":
          ("+", "void f(int i, int j) {\n  for (; i < j; i--, ++j) g();\n}\n")},
         "src/left/left.c:9: ++j: write j++"),
    ],
    "imports": [
        ({"src/left/left.c": ("+", "void* malloc(unsigned long n);\n"
                                   "void* kilni_m(void);\n"
                                   "void* kilni_m(void) "
                                   "{ return malloc(8); }\n")},
         "left/left.c: uses malloc, which is for base/alloc_libc.c only"),
        ({"src/left/left.c": ("+", "char* getenv(const char* n);\n"
                                   "char* kilni_m(void);\n"
                                   "char* kilni_m(void) "
                                   '{ return getenv("X"); }\n')},
         "left/left.c: uses getenv, which is for base/env.c only"),
        ({"src/left/left.c": ("+", "void* dlopen(const char* n, int f);\n"
                                   "void* kilni_m(void);\n"
                                   "void* kilni_m(void) "
                                   '{ return dlopen("X", 1); }\n')},
         "left/left.c: uses dlopen, which is for base/dynlib_posix.c only"),
        ({"src/left/left.c": ("+", "void abort(void);\nvoid kilni_m(void);\n"
                                   "void kilni_m(void) { abort(); }\n")},
         "left/left.c: uses abort, which the library must not"),
        ({"src/left/left.c": ("+", "int printf(const char* f, ...);\n"
                                   "void kilni_m(void);\n"
                                   "void kilni_m(void) "
                                   '{ printf("%d", 3); }\n')},
         "left/left.c: uses printf, which the library must not"),
    ],
    "symbol_prefixes": [
        ({"src/left/left.c": ("+", "int other(void);\n"
                                   "int other(void) { return 3; }\n")},
         "left/left.c: other is neither kiln_* nor kilni_left_*"),
        ({"src/left/left.c": ("+", "int kilni_right_one(void);\n"
                                   "int kilni_right_one(void) { return 3; }"
                                   "\n")},
         "left/left.c: kilni_right_one is neither kiln_* nor kilni_left_*"),
    ],
    "exports": [
        ({"include/kiln/status.h": ("+", "int kiln_promised(void);\n")},
         "kiln_promised is declared, but libkiln.so does not export it"),
        ({"src/base/base.c": ("+", "int kiln_secret(void);\n"
                                   "int kiln_secret(void) { return 3; }\n")},
         "libkiln.so exports kiln_secret, which include/kiln/ does not"),
        ({"src/base/base.c": ("+", "int kiln_data = 5;\n")},
         "libkiln.so exports kiln_data, which is no function"),
    ],
    "library_pages": [
        ({"docs/library/left.md": "# left\n`lib/left.kiln` **Cost.** **Algorithm.**\n",
          "lib/left.kiln": "// Left.\n",
          "docs/reference/library-cases.md": "| [left](a) |\n| [left](a) |\n"},
         "docs/library/left.md: lacks **Limits.**"),
        ({"docs/library/left.md":
              "# left\n`lib/left.kiln` **Cost.** **Limits.** **Algorithm.**\n"},
         "docs/library/left.md: there is no lib/left.kiln"),
        ({"docs/library/left.md":
              "# left\n`lib/left.kiln` **Cost.** **Limits.** **Algorithm.**\n",
          "lib/left.kiln": "program left() work 1 { }\n"},
         "lib/left.kiln: does not begin with what it is"),
        ({"docs/library/left.md":
              "# left\n`lib/left.kiln` **Cost.** **Limits.** **Algorithm.**\n",
          "lib/left.kiln": "// Left.\n",
          "docs/reference/library-cases.md": "| [left](a) |\n"},
         "left is there 1 times"),
    ],
    "library_is_whole": [
        ({"src/left/left.c": ("+", "int kilni_gone(void);\n"
                                   "int kilni_g(void);\n"
                                   "int kilni_g(void) "
                                   "{ return kilni_gone(); }\n")},
         "libkiln.so calls kilni_gone, which no module has"),
    ],
    "calls_stay_inside": [
        ({"src/base/base.c": ("+", "int kiln_called(void);\n"
                                   "int kiln_called(void) { return 3; }\n"
                                   "int kilni_calls(void);\n"
                                   "int kilni_calls(void) "
                                   "{ return kiln_called(); }\n"),
          "bind": ""},
         "libkiln.so leaves it to the program which kiln_called is called"),
    ],
    "needed_libraries": [
        ({"link": "cuda"}, "libkiln.so needs libcuda.so"),
    ],
    "mutable_globals": [
        ({"src/base/base.c": ("+", "static int count;\nint kilni_c(void);\n"
                                   "int kilni_c(void) "
                                   "{ return ++count; }\n")},
         "base/base.c: count can change, and src/GLOBALS has it not"),
        ({"src/base/base.c": ("+", "int kilni_c(void);\nint kilni_c(void) "
                                   "{ static int n = 4; return ++n; }\n")},
         "base/base.c: n can change, and src/GLOBALS has it not"),
        ({"src/base/base.c": ("+", "static _Thread_local int own = 4;\n"
                                   "int kilni_c(void);\nint kilni_c(void) "
                                   "{ return ++own; }\n")},
         "base/base.c: own can change, and src/GLOBALS has it not"),
        ({"src/GLOBALS": ("+", "left/left.c gone: it was there\n")},
         "left/left.c has no such variable gone"),
        ({"src/GLOBALS": ("+", "left/left.c unreasoned\n")},
         "src/GLOBALS:2: is not `module/file.c name: why`"),
    ],
    "headers_alone": [
        ({"include/kiln/top.h": TOP % "top" + "kiln_status_t* kiln_t;\n"},
         "include/kiln/top.h: not by itself as -std=c11"),
        ({"include/kiln/top.h": TOP % "top" + GUARDED % (
            "K", "K", "static inline int kiln_f(void* class) "
            "{ return class != 0; }\n")},
         "include/kiln/top.h: not by itself as -std=c++17"),
        ({"include/kiln/top.h": TOP % "top" + "enum { KILN_TWICE };\n"},
         "include/kiln/top.h: not by itself as -std=c11"),
    ],
    "options_have_no_padding": [
        ({"include/kiln/top.h": TOP % "top" + "#include <stdint.h>\n"
          "// thread-compatible\ntypedef struct kiln_gap_options_t {\n"
          "  uint32_t struct_size;\n  uint64_t b;\n} kiln_gap_options_t;\n"},
         "kiln_gap_options_t has padding"),
        ({"include/kiln/top.h": TOP % "top" + "#include <stdint.h>\n"
          "// thread-compatible\ntypedef struct kiln_late_options_t {\n"
          "  uint32_t b;\n  uint32_t struct_size;\n} kiln_late_options_t;\n"},
         "struct_size is not the first field of kiln_late_options_t"),
        ({"include/kiln/top.h": TOP % "top" + "#include <stdint.h>\n"
          "// thread-compatible\ntypedef struct kiln_none_options_t {\n"
          "  uint32_t struct_size;\n} kiln_none_options_t;\n"},
         "has no inline kiln_none_options_default()"),
    ],
    "reserved_is_checked": [
        ({"include/kiln/top.h": TOP % "top" + "#include <stdint.h>\n"
          "// thread-compatible\ntypedef struct kiln_wish_t {\n"
          "  uint32_t reserved;\n} kiln_wish_t;\n"
          "int kiln_wish(const kiln_wish_t* wish);\n"},
         "include/kiln/top.h: kiln_wish_t has no row in"),
        ({"include/kiln/top.h": TOP % "top" + "#include <stdint.h>\n"
          "// thread-compatible\ntypedef struct kiln_part_t {\n"
          "  uint64_t reserved[4];\n} kiln_part_t;\n"
          "// thread-compatible\ntypedef struct kiln_whole_options_t {\n"
          "  uint32_t struct_size;\n  uint32_t count;\n"
          "  const struct kiln_part_t* parts;\n} kiln_whole_options_t;\n",
          "tests/unit/runtime/test_runtime_reserved.c":
              "PLAIN(kiln_other_t, other)\n"},
         "include/kiln/top.h: kiln_part_t has no row in"),
    ],
    "compile_flags": [
        ({"flags": "-std=gnu11 -ffp-contract=off"},
         "is not compiled with -std=c11"),
        ({"flags": "-std=c11"}, "is not compiled with -ffp-contract=off"),
        ({"flags": "-std=c11 -ffp-contract=off -ffp-contract=fast"},
         "is not compiled with -ffp-contract=off"),
        ({"flags": "-std=c11 -ffp-contract=off -ffast-math"},
         "is compiled with -ffast-math"),
    ],
    "generated_files": [
        ({"docs/reference/made_gen.txt": "wrong"},
         "tools/gen_made.py --check:"),
        ({"docs/reference/made_gen.txt": None}, "made_gen.txt does not exist"),
        ({"src/left/stray_gen.h": TOP % "left"},
         "src/left/stray_gen.h: is named as generated"),
    ],
    "case_tables": [
        ({"docs/reference/left-cases.md": "| a | `test_gone` |\n"},
         "docs/reference/left-cases.md:1: no test is called test_gone"),
        ({"docs/reference/left-cases.md": "| a | `left: left_alone` |\n",
          "tests/unit/left/CMakeLists.txt": PY + "kiln_test(test_left.c)\n",
          "tests/unit/left/test_left.c":
              ("+", "static void left_alone(void** state) {}\n")},
         "no test is called left_alone"),
        ({"docs/reference/left-cases.md": "| a | `left: it_runs` |\n",
          "tests/unit/left/CMakeLists.txt": PY,
          "tests/unit/left/test_left.c":
              ("+", "static void it_runs(void** state) {}\n"
                    "int main(void) { TEST(it_runs); }\n")},
         "no test is called it_runs"),
        ({"docs/reference/left-cases.md": "| a | `test_lost.c` |\n"},
         "there is no file test_lost.c"),
        ({"docs/reference/left-cases.md": "| a | `layout_lost` |\n"},
         "there is no rule layout_lost"),
    ],
    "reference_is_complete": [
        ({"src/base/env_vars.inc":
              ("+", 'KILNI_ENV_VAR(KILN_Y, base, text, "", "y")\n')},
         "KILN_Y is not in docs/reference/environment.md"),
        ({"docs/reference/status.md": ""},
         "OK is not in docs/reference/status.md"),
    ],
    "modules_have_pages": [
        ({"docs/internals/left.md": None},
         "src/left has code and no page docs/internals/left.md"),
        ({"docs/internals/attic.md": "x"}, "attic.md is the page of no module"),
    ],
    "layout_page": [
        ({"src/LAYERS": ("+", "4 attic: ; ;\n")},
         "attic is on layer None there and 4 in src/LAYERS"),
        ({"docs/internals/layout.md": None}, "base is on layer None there and 0"),
    ],
    "links": [
        ({"docs/internals/left.md": "[x](gone.md)\n"},
         "docs/internals/left.md: links to gone.md, which is not there"),
    ],
    "decisions": [
        ({"docs/decisions/two.md": "two\n"},
         "docs/decisions/two.md: is not in docs/decisions/index.md"),
    ],
}


def write(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        if text is None:
            os.remove(full)
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if isinstance(text, tuple):
            with open(full, encoding="utf-8") as file:
                text = file.read() + text[1]
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def build(tree, flags, link, bind, lost):
    """What CMake and Ninja would leave behind, made by hand."""
    objects = []
    for path in tree.files("src/base", "src/left", ext=".c"):
        _, module, name = path.split("/")
        target = os.path.join(tree.build, "src", module, "CMakeFiles",
                              "kiln_module_%s.dir" % module, name + ".o")
        include = "#define KILN_FIXTURE 1\n"
        text = tree.text(path).replace(
            '"kiln/', '"%s/include/kiln/' % tree.root)
        for name in tree.modules():
            text = text.replace('"%s/' % name, '"%s/src/%s/' % (tree.root,
                                                                name))
        compile_object(tree, include + text, target)
        objects.append(target)
    libraries = []
    if link:
        stub = os.path.join(tree.build, "lib%s.so" % link)
        run(tree.cc, "-shared", "-o", stub, "-x", "c", "/dev/null")
        libraries = ["-Wl,--no-as-needed", "-L" + tree.build, "-l" + link]
    hide = os.path.join(tree.build, "exports.map")
    with open(hide, "w", encoding="utf-8") as file:
        file.write("{ global: kiln_*; local: *; };")
    run(tree.cc, "-shared", *bind.split(), "-Wl,--version-script=" + hide, "-o",
        os.path.join(tree.build, "src", "libkiln.so"), *objects, *libraries)
    commands = [{"file": os.path.join(tree.root, path),
                 "directory": tree.build,
                 "command": "cc %s -c %s" % (flags, os.path.basename(path))}
                for path in tree.files("src", "tests", ext=".c")
                if path != lost]
    with open(os.path.join(tree.build, "compile_commands.json"), "w",
              encoding="utf-8") as file:
        json.dump(commands, file)


def problems(name, breach, cc):
    """What the rule says of the clean tree with a breach planted."""
    breach = dict(breach)
    flags = breach.pop("flags", "-std=c11 -ffp-contract=off")
    link = breach.pop("link", None)
    bind = breach.pop("bind", "-Wl,-Bsymbolic")
    lost = breach.pop("lost", None)
    root = tempfile.mkdtemp(prefix="kiln-layout-")
    try:
        write(root, CLEAN)
        write(root, breach)
        built = RULES[name].__module__ == "rules_binary"
        tree = Tree(root, os.path.join(root, "build"), cc)
        if built:
            build(tree, flags, link, bind, lost)
        return list(RULES[name](tree))
    finally:
        shutil.rmtree(root)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rule", choices=sorted(RULES))
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    failures = 0
    try:
        said = problems(options.rule, {}, options.cc)
        if said:
            print("the clean tree breaks %s: %s" % (options.rule, said))
            failures += 1
        for breach, message in BREACHES[options.rule]:
            said = problems(options.rule, breach, options.cc)
            if not any(message in problem for problem in said):
                print("planted %s\n  expected: %s\n  said: %s" % (
                    sorted(breach), message, said))
                failures += 1
    except Skip as why:
        print("skipped: %s" % why)
        return 77
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
