#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes everything that follows from src/table/cuda_rows.inc and nvrtc_rows.inc:
# function types, absent, null, trace and fault thunks, the comparison with
# NVIDIA's headers and the reference page.
#
#   tools/gen_tables.py           writes the files
#   tools/gen_tables.py --check   exit 1 if a committed file differs
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEEDS = ('REQUIRED', 'OPTIONAL')
CONTEXTS = ('NONE', 'FROM_STREAM', 'CURRENT')
CAPTURES = ('SAFE', 'UNSAFE')
EFFECTS = ('QUERY', 'CREATE', 'DESTROY', 'ACT')
HANDLES = ('NONE', 'PRIMARY_CONTEXT', 'MEMORY', 'HOST_MEMORY',
           'HOST_REGISTRATION', 'STREAM', 'EVENT', 'MODULE', 'PROGRAM')


class RowError(Exception):
    pass


class Param:
    """One parameter: its way (IN, OUT ...), its pointee or value type, name."""

    ONE = ('TEXT', 'OUT_TEXT')
    TWO = ('IN', 'MADE', 'ENDED', 'OUT', 'POINTER')
    SIZED = ('OUT_CHARS', 'FROM_BYTES', 'TO_BYTES')
    LISTS = ('LIST', 'OUT_LIST')

    def __init__(self, way, args):
        self.way, self.count = way, None
        if way in self.ONE and len(args) == 1:
            self.type, self.name = None, args[0]
        elif way in self.TWO and len(args) == 2:
            self.type, self.name = args
        elif way in self.SIZED and len(args) == 2:
            self.type, (self.name, self.count) = None, args
        elif way in self.LISTS and len(args) == 3:
            self.type, self.name, self.count = args
        else:
            raise RowError(f'{way}({", ".join(args)}) is no parameter')

    def declared(self):
        return {
            'TEXT': 'const char*', 'OUT_TEXT': 'const char**',
            'OUT_CHARS': 'char*', 'FROM_BYTES': 'const void*',
            'TO_BYTES': 'void*', 'IN': self.type, 'ENDED': self.type,
            'MADE': f'{self.type}*', 'OUT': f'{self.type}*',
            'POINTER': f'{self.type}*', 'LIST': f'const {self.type}*',
            'OUT_LIST': f'{self.type}*'}[self.way]

    def text(self):
        return f'{self.declared()} {self.name}'


class Row:
    def __init__(self, api, fields, params):
        self.api, self.says = api, False
        self.suffix, self.context, self.capture = '', 'NONE', 'SAFE'
        self.handle = 'NONE'
        if api == 'CUDA':
            (self.name, self.suffix, self.version, self.need, self.context,
             self.capture, self.effect, self.handle, self.feature) = fields
        else:
            (self.name, self.version, self.need, self.effect,
             self.feature) = fields
            if self.effect in ('CREATE', 'DESTROY'):
                self.handle = 'PROGRAM'
        self.params = []
        for way, args in params:
            if way == 'SAYS':
                self.says = True
            elif way != 'NONE':
                self.params.append(Param(way, args))
        self.check()

    def check(self):
        for value, known in ((self.need, NEEDS), (self.context, CONTEXTS),
                             (self.capture, CAPTURES), (self.effect, EFFECTS),
                             (self.handle, HANDLES)):
            if value not in known:
                raise RowError(f'{self.name}: "{value}" is none of {known}')
        if not re.fullmatch(r'\d{4,5}', self.version):
            raise RowError(f'{self.name}: version "{self.version}"')
        if (self.handle != 'NONE') != (self.effect in ('CREATE', 'DESTROY')):
            raise RowError(f'{self.name}: handle and effect disagree')
        if (self.need == 'OPTIONAL') != bool(self.feature):
            raise RowError(f'{self.name}: an OPTIONAL row, and only such a '
                           'one, names its feature')
        if self.api == 'CUDA' and self.need == 'OPTIONAL' and \
                int(self.version) <= 12000:
            raise RowError(f'{self.name}: CUDA 12.0 has it: REQUIRED')
        if self.need == 'REQUIRED' and int(self.version) > 12000:
            raise RowError(f'{self.name}: newer than CUDA 12.0: OPTIONAL')

    def result(self):
        if self.says:
            return 'const char*'
        return f'kiln_{"cu" if self.api == "CUDA" else "nvrtc"}_result_t'

    def signature(self):
        return ', '.join(p.text() for p in self.params) or 'void'

    def names(self):
        return ', '.join(p.name for p in self.params)

    def made(self):
        for p in self.params:
            if p.way == 'MADE':
                return p
        return None

    def ended(self):
        for p in self.params:
            if p.way == 'ENDED':
                return p
        return None


def split_args(text):
    """Splits at commas outside parentheses and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted and c == '(':
            depth += 1
        elif not quoted and c == ')':
            depth -= 1
        elif not quoted and c == ',' and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def read_rows(api, path):
    with open(path, encoding='utf-8') as f:
        text = re.sub(r'^\s*//.*$', '', f.read(), flags=re.M)
    rows, at, macro = [], 0, f'KILNI_{api}_ROW('
    while True:
        at = text.find(macro, at)
        if at < 0:
            return rows
        at += len(macro)
        end, depth = at, 1
        while depth:
            depth += {'(': 1, ')': -1}.get(text[end], 0)
            end += 1
        fields = split_args(' '.join(text[at:end - 1].split()))
        count = 9 if api == 'CUDA' else 5
        params = re.findall(r'([A-Z_]+)\(([^()]*)\)', ', '.join(fields[count:]))
        fields = [f.strip('"') for f in fields[:count]]
        rows.append(Row(api, fields, [(w, split_args(a) if a else [])
                                      for w, a in params]))
        at = end


def head(file_purpose, source):
    return ('// SPDX-License-Identifier: Apache-2.0\n//\n'
            f'// table: {file_purpose} Generated by tools/gen_tables.py from\n'
            f'// {source}: never edit it.\n')


def types_header(cuda, nvrtc):
    out = [head('the function types.', 'cuda_rows.inc and nvrtc_rows.inc')]
    out.append('#ifndef KILN_SRC_TABLE_TABLE_TYPES_GEN_H_\n'
               '#define KILN_SRC_TABLE_TABLE_TYPES_GEN_H_\n\n'
               '#include "table/cuda_abi.h"\n#include "table/nvrtc_abi.h"\n\n'
               '// clang-format off\n')
    for row in cuda + nvrtc:
        out.append(f'typedef {row.result()} (*kilni_{row.name}_fn_t)('
                   f'{row.signature()});\n')
    out.append('// clang-format on\n\n'
               '#endif  // KILN_SRC_TABLE_TABLE_TYPES_GEN_H_\n')
    return ''.join(out)


def unused(row, used=()):
    return ''.join(f'  (void){p.name};\n' for p in row.params
                   if p.name not in used)


def absent_thunks(cuda, nvrtc):
    out = [head('thunks of absent rows.', 'cuda_rows.inc and nvrtc_rows.inc')]
    out.append('// clang-format off\n')
    for row in cuda + nvrtc:
        answer = 'KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER'
        if row.says:
            answer = 'NULL'
        elif row.api == 'NVRTC':
            answer = 'KILN_NVRTC_ERROR_INTERNAL_ERROR'
        out.append(f'static {row.result()} absent_{row.name}'
                   f'({row.signature()}) {{\n{unused(row)}'
                   f'  return {answer};\n}}\n')
    for api, rows in (('cuda', cuda), ('nvrtc', nvrtc)):
        out.append(f'\nstatic void fill_{api}_absent(kiln_{api}_table_t* table)'
                   ' {\n')
        out += [f'  table->{row.name} = absent_{row.name};\n' for row in rows]
        out.append('}\n')
    return ''.join(out)


# ---- Trace ----

SIGNED = ('int', 'kiln_cu_device_t')
UNSIGNED = ('unsigned int', 'unsigned char', 'unsigned short', 'size_t',
            'uint64_t', 'kiln_cu_limit_t', 'kiln_cu_function_attribute_t',
            'kiln_cu_pointer_attribute_t', 'kiln_cu_jit_option_t',
            'kiln_cu_proc_address_query_t')
POINTERS = ('void*', 'kiln_cu_context_t', 'kiln_cu_stream_t',
            'kiln_cu_event_t', 'kiln_cu_module_t', 'kiln_cu_function_t')
FUNCTIONS = ('kiln_cu_host_fn_t', 'kiln_cu_occupancy_fn_t')


def say(kind, value, name):
    if kind in SIGNED:
        return f'trace_signed(&line, "{name}", {value});'
    if kind in UNSIGNED:
        return f'trace_unsigned(&line, "{name}", {value});'
    if kind in POINTERS:
        return f'trace_address(&line, "{name}", (uintptr_t){value});'
    if kind in FUNCTIONS:
        return f'trace_address(&line, "{name}", (uintptr_t){value});'
    if kind == 'kiln_cu_deviceptr_t':
        return f'trace_address(&line, "{name}", {value});'
    if kind == 'kiln_cu_result_t':
        return f'trace_result(&line, "{name}", {value});'
    if kind == 'kiln_cu_device_attribute_t':
        return f'trace_attribute(&line, "{name}", {value});'
    if kind == 'kiln_cu_uuid_t':
        return f'trace_uuid(&line, "{name}", &{value});'
    if kind == 'float':
        return f'trace_real(&line, "{name}", (double){value});'
    raise RowError(f'trace does not know how to print the type "{kind}"')


def trace_thunk(row):
    before, after = [], []
    for p in row.params:
        if p.way in ('IN', 'ENDED'):
            before.append(say(p.type, p.name, p.name))
        elif p.way == 'TEXT':
            before.append(f'trace_text(&line, "{p.name}", {p.name});')
        elif p.way in ('FROM_BYTES', 'TO_BYTES', 'POINTER', 'LIST',
                       'OUT_LIST'):
            before.append('trace_address(&line, "%s", (uintptr_t)%s);' %
                          (p.name, p.name))
        elif p.way in ('MADE', 'OUT'):
            after.append(f'if ({p.name} != NULL) ' +
                         say(p.type, f'*{p.name}', p.name))
        elif p.way == 'OUT_TEXT':
            after.append(f'if ({p.name} != NULL) '
                         f'trace_text(&line, "{p.name}", *{p.name});')
        elif p.way == 'OUT_CHARS':
            after.append(f'if ({p.count} > 0) '
                         f'trace_text(&line, "{p.name}", {p.name});')
    out = [f'static kiln_cu_result_t KILNI_THUNK({row.name})'
           f'({row.signature()}) {{\n',
           f'  trace_line_t line = trace_begin(KILNI_SLOT, "{row.name}");\n']
    out += [f'  {text}\n' for text in before]
    out.append('  const kiln_cu_result_t result =\n'
               f'      trace_wrapped(KILNI_SLOT)->{row.name}({row.names()});\n'
               '  trace_gave(&line, result);\n')
    if after:
        out.append('  if (result == KILN_CU_SUCCESS) {\n')
        out += [f'    {text}\n' for text in after]
        out.append('  }\n')
    out.append('  trace_end(&line);\n  return result;\n}\n')
    return ''.join(out)


def set_all(function, rows):
    """The function that puts the thunks over the rows that are present."""
    out = [f'\nstatic void KILNI_THUNK({function})(kiln_cuda_table_t* table) '
           '{\n']
    for row in rows:
        out.append(f'  if (kilni_cuda_has(table, KILNI_CUDA_ROW_{row.name})) '
                   f'table->{row.name} = KILNI_THUNK({row.name});\n')
    out.append('}\n')
    return ''.join(out)


def trace_thunks(cuda):
    return (head('thunks of the trace wrapper.', 'cuda_rows.inc') +
            '// Included once for each KILNI_SLOT.\n// clang-format off\n' +
            ''.join(trace_thunk(row) for row in cuda) + set_all('cover', cuda))


# ---- Fault ----

NOT_COUNTED = ('cuGetErrorName', 'cuGetErrorString')


def fault_thunk(row):
    through = f'      fault_wrapped(KILNI_SLOT)->{row.name}({row.names()});\n'
    fail = '    return fault_result(KILNI_SLOT);\n'
    if row.effect == 'DESTROY':
        fail = f'    (void){through.strip()}\n' + fail
    return (f'static kiln_cu_result_t KILNI_THUNK({row.name})'
            f'({row.signature()}) {{\n'
            f'  if (fault_is_due(KILNI_SLOT, "{row.name}")) {{\n{fail}  }}\n'
            f'  return {through.strip()}\n}}\n')


def fault_thunks(cuda):
    rows = [row for row in cuda if row.name not in NOT_COUNTED]
    return (head('thunks of the fault wrapper.', 'cuda_rows.inc') +
            '// Included once for each KILNI_SLOT.\n// clang-format off\n' +
            ''.join(fault_thunk(row) for row in rows) + set_all('cover', rows))


# ---- Null ----

# Written by hand in cuda_null.c.
NULL_BY_HAND = (
    'cuDriverGetVersion', 'cuGetErrorName', 'cuGetErrorString',
    'cuGetProcAddress', 'cuDeviceGet', 'cuDeviceGetCount', 'cuDeviceGetName',
    'cuDeviceGetUuid', 'cuDeviceTotalMem', 'cuDeviceGetAttribute',
    'cuDeviceGetPCIBusId', 'cuDevicePrimaryCtxRetain',
    'cuDevicePrimaryCtxRelease', 'cuDevicePrimaryCtxGetState',
    'cuCtxGetCurrent', 'cuCtxSetCurrent', 'cuCtxPushCurrent',
    'cuCtxPopCurrent', 'cuCtxGetApiVersion', 'cuMemGetInfo', 'cuMemAlloc',
    'cuMemAllocAsync', 'cuMemHostAlloc', 'cuMemFreeHost',
    'cuMemHostGetDevicePointer', 'cuMemHostRegister', 'cuPointerGetAttribute',
    'cuPointerGetAttributes', 'cuStreamGetCtx', 'cuLaunchHostFunc',
    'cuModuleGetFunction', 'cuModuleGetGlobal', 'cuFuncGetAttribute',
    'cuFuncGetModule', 'cuFuncGetName', 'cuFuncGetParamInfo',
    'cuOccupancyMaxActiveBlocksPerMultiprocessor',
    'cuOccupancyMaxPotentialBlockSize')


def null_thunk(row):
    body, used, answer = [], set(), 'KILN_CU_SUCCESS'
    for p in row.params:
        if p.way == 'MADE':
            used.add(p.name)
            body.append('uint64_t made = 0;')
            answer = f'null_create(KILNI_HANDLE_{row.handle}, 0, &made)'
            body.append(f'if ({p.name} == NULL) '
                        'return KILN_CU_ERROR_INVALID_VALUE;')
            body.append(f'const kiln_cu_result_t result = {answer};')
            body.append(f'*{p.name} = ({p.type})(uintptr_t)made;')
            answer = 'result'
        elif p.way == 'ENDED':
            used.add(p.name)
            answer = (f'null_destroy(KILNI_HANDLE_{row.handle}, '
                      f'(uint64_t)(uintptr_t){p.name})')
        elif p.way == 'OUT':
            used.add(p.name)
            body.append(f'if ({p.name} != NULL) '
                        f'memset({p.name}, 0, sizeof(*{p.name}));')
        elif p.way == 'OUT_TEXT':
            used.add(p.name)
            body.append(f'if ({p.name} != NULL) *{p.name} = "";')
        elif p.way == 'OUT_CHARS':
            used |= {p.name, p.count}
            body.append(f'if ({p.name} != NULL && {p.count} > 0) '
                        f'{p.name}[0] = 0;')
        elif p.way == 'TO_BYTES':
            used |= {p.name, p.count}
            body.append(f'if ({p.name} != NULL) '
                        f'memset({p.name}, 0, {p.count});')
        elif p.way == 'OUT_LIST':
            used |= {p.name, p.count}
            body.append(f'if ({p.name} != NULL) '
                        f'memset({p.name}, 0, {p.count} * sizeof(*{p.name}));')
    text = unused(row, used) + ''.join(f'  {line}\n' for line in body)
    return (f'static kiln_cu_result_t null_{row.name}({row.signature()}) {{\n'
            f'{text}  return {answer};\n}}\n')


def null_thunks(cuda):
    unknown = set(NULL_BY_HAND) - {row.name for row in cuda}
    if unknown:
        raise RowError(f'NULL_BY_HAND names no row: {sorted(unknown)}')
    out = [head('thunks of the null provider.', 'cuda_rows.inc') +
           '// clang-format off\n']
    out += [null_thunk(row) for row in cuda if row.name not in NULL_BY_HAND]
    out.append('\nstatic void fill_null(kiln_cuda_table_t* table) {\n')
    out += [f'  KILNI_CUDA_SET(table, {row.name}, null_{row.name});\n'
            for row in cuda]
    out.append('}\n')
    return ''.join(out)


# ---- The comparison with NVIDIA's headers ----

# Struct types cannot be the same in two headers: there the signature is
# compared with our name replaced, and the struct itself field by field.
STRUCTS = {'kiln_cu_uuid_t': 'CUuuid',
           'kiln_cu_launch_config_t': 'CUlaunchConfig'}


def abi_check(cuda, nvrtc):
    out = [head('the comparison of every signature with cuda.h and nvrtc.h.',
                'cuda_rows.inc and nvrtc_rows.inc')]
    out.append('// clang-format off\n#if defined(TEST_HAVE_CUDA_H)\n')
    for row in cuda:
        ours, text = f'kilni_{row.name}_fn_t', ''
        signature = row.signature()
        for mine, theirs in STRUCTS.items():
            if mine in signature:
                ours = f'compared_{row.name}_fn_t'
                signature = signature.replace(mine, theirs)
                text = (f'typedef {row.result()} (*{ours})({signature});\n')
        out.append(f'#if CUDA_VERSION >= {row.version}\n{text}'
                   f'SAME_TYPE({ours}, PFN_{row.name}_v{row.version});\n'
                   '#endif\n')
    out.append('#endif\n#if defined(TEST_HAVE_NVRTC_H)\n')
    for row in nvrtc:
        guard = int(row.version) > 12000
        if guard:
            out.append(f'#if TEST_NVRTC_VERSION >= {row.version}\n')
        out.append(f'SAME_TYPE(kilni_{row.name}_fn_t, __typeof__(&{row.name})'
                   ');\n')
        if guard:
            out.append('#endif\n')
    out.append('#endif\n')
    return ''.join(out)


def fakes(cuda, nvrtc):
    """Rows for the libraries that tests load in place of the real ones."""
    out = [head('rows of the fake libraries.',
                'cuda_rows.inc and nvrtc_rows.inc')]
    out.append('// Included once for each thing that is made of it.\n'
               '// clang-format off\n')
    own = ('cuDriverGetVersion', 'cuGetProcAddress')
    out.append('#if defined(FAKE_CUDA_ROW)\n')
    for row in cuda:
        if row.name in own:
            continue
        unused_names = ' '.join(f'(void){p.name};' for p in row.params)
        out.append(f'#if {row.version} <= FAKE_VERSION\n'
                   f'FAKE_CUDA_ROW({row.name}, {row.name}{row.suffix}, '
                   f'{row.version}, ({row.signature()}), {unused_names})\n'
                   '#endif\n')
    out.append('#endif\n#if defined(FAKE_NVRTC_ROW)\n')
    for row in nvrtc:
        if row.name == 'nvrtcVersion' or row.says:
            continue
        unused_names = ' '.join(f'(void){p.name};' for p in row.params)
        out.append(f'#if {row.version} <= FAKE_VERSION\n'
                   f'FAKE_NVRTC_ROW({row.name}, ({row.signature()}), '
                   f'{unused_names})\n#endif\n')
    out.append('#endif\n')
    return ''.join(out)


# ---- The reference page ----

def yes(text):
    return text.lower().replace('_', ' ')


def reference(cuda, nvrtc):
    out = ['<!-- SPDX-License-Identifier: Apache-2.0 -->\n'
           '<!-- Generated by tools/gen_tables.py from src/table/*_rows.inc: '
           'never edit it. -->\n\n'
           '# The entry points that Kiln calls\n\n'
           'Kiln links no CUDA library. It opens the driver and NVRTC at run '
           'time and takes\nexactly these entry points from them, each with '
           'one pinned signature.\n\n'
           '## The CUDA driver\n\n'
           '*Symbol* is the export with the pinned signature, *since* the '
           'CUDA version that\nbrought it. A driver without a *required* row '
           'is refused as a whole; without an\n*optional* one the feature in '
           'the last column is absent. *Context*: what must be\ncurrent. '
           '*Capture*: whether the call is allowed while a stream is captured '
           'in\nglobal mode. *Effect*: what the call does to handles.\n\n'
           '| Symbol | Since | Need | Context | Capture | Effect | Handle | '
           'Without it |\n|---|---|---|---|---|---|---|---|\n']
    for row in cuda:
        version = int(row.version)
        handle = '' if row.handle == 'NONE' else yes(row.handle)
        out.append(f'| `{row.name}{row.suffix}` | '
                   f'{version // 1000}.{version % 1000 // 10} | '
                   f'{yes(row.need)} | {yes(row.context)} | '
                   f'{yes(row.capture)} | {yes(row.effect)} | {handle} | '
                   f'{row.feature and "no " + row.feature} |\n')
    out.append('\n## NVRTC\n\n| Symbol | Since | Need | Effect | Without it '
               '|\n|---|---|---|---|---|\n')
    for row in nvrtc:
        version = int(row.version)
        out.append(f'| `{row.name}` | '
                   f'{version // 1000}.{version % 1000 // 10} | '
                   f'{yes(row.need)} | {yes(row.effect)} | '
                   f'{row.feature and "no " + row.feature} |\n')
    return ''.join(out)


def outputs():
    table = os.path.join(ROOT, 'src', 'table')
    cuda = read_rows('CUDA', os.path.join(table, 'cuda_rows.inc'))
    nvrtc = read_rows('NVRTC', os.path.join(table, 'nvrtc_rows.inc'))
    return {
        'src/table/table_types_gen.h': types_header(cuda, nvrtc),
        'src/table/absent_thunks_gen.inc': absent_thunks(cuda, nvrtc),
        'src/table/null_thunks_gen.inc': null_thunks(cuda),
        'src/table/trace_thunks_gen.inc': trace_thunks(cuda),
        'src/table/fault_thunks_gen.inc': fault_thunks(cuda),
        'tests/unit/table/abi_check_gen.inc': abi_check(cuda, nvrtc),
        'tests/support/fake_rows_gen.inc': fakes(cuda, nvrtc),
        'docs/reference/driver-rows.md': reference(cuda, nvrtc),
    }


def main(argv):
    check = argv[1:] == ['--check']
    if argv[1:] and not check:
        print('usage: gen_tables.py [--check]', file=sys.stderr)
        return 2
    try:
        files = outputs()
    except RowError as error:
        print(f'gen_tables: {error}', file=sys.stderr)
        return 1
    different = 0
    for name, text in files.items():
        path = os.path.join(ROOT, name)
        if check:
            try:
                with open(path, encoding='utf-8') as f:
                    same = f.read() == text
            except OSError:
                same = False
            if not same:
                print(f'{name} differs: run tools/gen_tables.py')
                different += 1
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
    return 1 if different else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
