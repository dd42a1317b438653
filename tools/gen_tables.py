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


def outputs():
    table = os.path.join(ROOT, 'src', 'table')
    cuda = read_rows('CUDA', os.path.join(table, 'cuda_rows.inc'))
    nvrtc = read_rows('NVRTC', os.path.join(table, 'nvrtc_rows.inc'))
    return {'src/table/table_types_gen.h': types_header(cuda, nvrtc)}


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
