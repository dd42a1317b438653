#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes everything that follows from src/table/*_rows.inc: function types,
# absent, null, trace and fault thunks, the comparison with NVIDIA's headers and
# the reference page. A further library is one more list of rows and one more
# entry of make_libraries.
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
           'HOST_REGISTRATION', 'STREAM', 'EVENT', 'MODULE', 'PROGRAM',
           'SESSION', 'LINK', 'LIBRARY', 'MEMORY_POOL', 'ADDRESSES',
           'PHYSICAL', 'MAPPING', 'GREEN_CONTEXT',
           'ARRAY', 'TEXTURE', 'SURFACE', 'OPENED_MEMORY',
           'MIPMAPPED_ARRAY', 'GRAPH', 'GRAPH_EXEC', 'USER_OBJECT',
           'SEMAPHORE')


class RowError(Exception):
    pass


class Library:
    """One table: its list of rows and what its thunks answer with."""

    def __init__(self, api, title, result, prefix, absent, handle='NONE',
                 null_by_hand=(), not_counted=(), fake_by_hand=(),
                 invalid='INPUT', null_guard=None, null_check=None,
                 least=12000):
        self.api, self.lower, self.title = api, api.lower(), title
        self.result = result
        self.success, self.absent = prefix + 'SUCCESS', absent
        self.invalid = prefix + 'ERROR_INVALID_' + invalid
        # (condition, result): what a null thunk answers while that holds.
        self.null_guard = null_guard
        self.least = least  # the oldest version that is taken
        # (type, function): what a null thunk asks of each that goes in.
        self.null_check = null_check
        self.has_suffix = api in ('CUDA', 'NVML')
        self.handle = handle  # of every CREATE and DESTROY; the driver's
        self.null_by_hand = null_by_hand  # rows say it for each
        self.not_counted = not_counted    # by the fault wrapper
        self.fake_by_hand = fake_by_hand
        self.source = f'{self.lower}_rows.inc'
        self.rows = []

    def names_known(self):
        names = {row.name for row in self.rows}
        unknown = set(self.null_by_hand + self.not_counted +
                      self.fake_by_hand) - names
        if unknown:
            raise RowError(f'{self.api} has no row {sorted(unknown)}')


class Param:
    """One parameter: its way (IN, OUT ...), its pointee or value type, name."""

    ONE = ('TEXT', 'OUT_TEXT')
    TWO = ('IN', 'MADE', 'ENDED', 'ENDED_AT', 'OUT', 'INOUT', 'POINTER')
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
            'INOUT': f'{self.type}*',
            'ENDED_AT': f'{self.type}*',
            'POINTER': f'{self.type}*', 'LIST': f'const {self.type}*',
            'OUT_LIST': f'{self.type}*'}[self.way]

    def text(self):
        return f'{self.declared()} {self.name}'


class Row:
    def __init__(self, library, fields, params):
        self.library, self.says = library, False
        self.suffix, self.context, self.capture = '', 'NONE', 'SAFE'
        self.handle = 'NONE'
        if library.api == 'CUDA':
            (self.name, self.suffix, self.version, self.need, self.context,
             self.capture, self.effect, self.handle, self.feature) = fields
        else:
            fields = list(fields)
            self.name = fields.pop(0)
            if library.has_suffix:
                self.suffix = fields.pop(0)
            self.version, self.need, self.effect, self.feature = fields
            if self.effect in ('CREATE', 'DESTROY'):
                self.handle = library.handle
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
        if self.need == 'OPTIONAL' and not self.feature:
            raise RowError(f'{self.name}: an OPTIONAL row names its feature')
        if self.library.api == 'CUDA' and self.need == 'OPTIONAL' and \
                int(self.version) <= 12000:
            raise RowError(f'{self.name}: CUDA 12.0 has it: REQUIRED')
        if self.need == 'REQUIRED' and int(self.version) > self.library.least:
            raise RowError(f'{self.name}: newer than the oldest that is '
                           'taken: OPTIONAL')

    def base(self):
        """The driver's name of it: a row may be a later of two that it has."""
        return re.sub(r'_v\d+$', '', self.name)

    def result(self):
        if self.says:
            return 'const char*'
        return self.library.result

    def signature(self):
        return ', '.join(p.text() for p in self.params) or 'void'

    def names(self):
        return ', '.join(p.name for p in self.params)


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


def read_rows(library, path):
    with open(path, encoding='utf-8') as f:
        text = re.sub(r'^\s*//.*$', '', f.read(), flags=re.M)
    at, macro = 0, f'KILNI_{library.api}_ROW('
    while True:
        at = text.find(macro, at)
        if at < 0:
            library.names_known()
            return
        at += len(macro)
        end, depth = at, 1
        while depth:
            depth += {'(': 1, ')': -1}.get(text[end], 0)
            end += 1
        fields = split_args(' '.join(text[at:end - 1].split()))
        count = 9 if library.api == 'CUDA' else 5 + library.has_suffix
        params = re.findall(r'([A-Z_]+)\(([^()]*)\)', ', '.join(fields[count:]))
        fields = [f.strip('"') for f in fields[:count]]
        library.rows.append(Row(library, fields,
                                [(w, split_args(a) if a else [])
                                 for w, a in params]))
        at = end


def head(file_purpose, source):
    return ('// SPDX-License-Identifier: Apache-2.0\n//\n'
            f'// table: {file_purpose} Generated by tools/gen_tables.py from\n'
            f'// {source}: never edit it.\n')


def sources(libraries):
    return ', '.join(library.source for library in libraries)


def types_header(library):
    guard = f'KILN_SRC_TABLE_{library.api}_TYPES_GEN_H_'
    out = [head(f'the function types of {library.source}.',
                sources([library])),
           f'#ifndef {guard}\n#define {guard}\n\n'
           f'#include "table/{library.lower}_abi.h"\n\n'
           '// clang-format off\n']
    out += [f'typedef {row.result()} (*kilni_{row.name}_fn_t)('
            f'{row.signature()});\n' for row in library.rows]
    out.append(f'// clang-format on\n\n#endif  // {guard}\n')
    return ''.join(out)


def unused(row, used=()):
    return ''.join(f'  (void){p.name};\n' for p in row.params
                   if p.name not in used)


def absent_thunks(libraries):
    out = [head('thunks of absent rows.', sources(libraries))]
    out.append('// clang-format off\n')
    for library in libraries:
        for row in library.rows:
            answer = 'NULL' if row.says else library.absent
            out.append(f'static {row.result()} absent_{row.name}'
                       f'({row.signature()}) {{\n{unused(row)}'
                       f'  return {answer};\n}}\n')
        out.append(f'\nstatic void fill_{library.lower}_absent('
                   f'kiln_{library.lower}_table_t* table) {{\n')
        out += [f'  table->{row.name} = absent_{row.name};\n'
                for row in library.rows]
        out.append('}\n')
    return ''.join(out)


# ---- Trace ----

SIGNED = ('int', 'kiln_cu_device_t')
UNSIGNED = ('unsigned int', 'unsigned char', 'unsigned short',
            'unsigned long', 'unsigned long long', 'size_t', 'uint64_t',
            'uint32_t', 'kiln_cu_limit_t', 'kiln_cu_function_attribute_t',
            'kiln_cu_pointer_attribute_t', 'kiln_cu_jit_option_t',
            'kiln_cu_proc_address_query_t', 'kiln_cu_jit_input_t',
            'kiln_cu_capture_mode_t', 'kiln_cu_mempool_attribute_t',
            'kiln_cu_mem_handle_type_t', 'kiln_cu_mem_access_t',
            'kiln_cu_p2p_attribute_t', 'kiln_cu_mem_advice_t',
            'kiln_cu_mem_range_attribute_t',
            'kiln_cu_capture_status_t',
            'kiln_cu_mem_granularity_t', 'kiln_cu_mem_handle_t',
            'kiln_cu_resource_kind_t', 'kiln_cu_texture_t',
            'kiln_cu_surface_t', 'kiln_cu_launch_attribute_id_t',
            'kiln_cu_graph_node_type_t', 'kiln_cu_graph_mem_attribute_t',
            'kiln_cu_graph_condition_t', 'kiln_nvjitlink_input_t')
POINTERS = ('void*', 'kiln_nvrtc_program_t', 'kiln_nvvm_program_t',
            'kiln_nvjitlink_handle_t', 'kiln_nvml_device_t',
            'kiln_cu_context_t', 'kiln_cu_stream_t',
            'kiln_cu_event_t', 'kiln_cu_module_t', 'kiln_cu_function_t',
            'kiln_cu_library_t', 'kiln_cu_kernel_t', 'kiln_cu_link_state_t',
            'kiln_cu_mempool_t', 'kiln_cu_mipmapped_array_t',
            'kiln_cu_green_context_t',
            'kiln_cu_resource_desc_t', 'kiln_cu_array_t', 'kiln_cu_graph_t',
            'kiln_cu_graph_node_t', 'kiln_cu_graph_exec_t',
            'kiln_cu_user_object_t', 'kiln_cu_semaphore_t')
FUNCTIONS = ('kiln_cu_host_fn_t', 'kiln_cu_occupancy_fn_t',
             'kiln_nvrtc_flow_fn_t')
# Structs of which a line shows members: name, type; 'text' is an array of char.
FIELDS = {
    'kiln_cu_dev_resource_t': (('of.sm.count', 'unsigned int'),),
    'kiln_nvml_pci_t': (('address', 'text'),),
    'kiln_nvml_memory_t': (('total', 'size_t'), ('used', 'size_t')),
    'kiln_nvml_memory_v2_t': (('total', 'size_t'), ('reserved', 'size_t'),
                              ('used', 'size_t')),
    'kiln_nvml_temperature_t': (('celsius', 'int'),),
    'kiln_nvml_bar1_t': (('total', 'size_t'), ('used', 'size_t')),
    'kiln_nvml_utilization_t': (('gpu', 'unsigned int'),
                                ('memory', 'unsigned int')),
    'kiln_nvml_attributes_t': (('multiprocessors', 'unsigned int'),
                               ('memory_mib', 'size_t')),
}


def say_fields(kind, value):
    said = [f'kilni_table_trace_text(&line, "{name}", {value}->{name});'
            if of == 'text' else say(of, f'{value}->{name}', name)
            for name, of in FIELDS[kind]]
    return '{ ' + ' '.join(said) + ' }'


def say_at(kind, value, name):
    """What a pointer leads to, if it is one."""
    text = (say_fields(kind, value) if kind in FIELDS else
            say(kind, f'*{value}', name))
    return f'if ({value} != NULL) {text}'


def say(kind, value, name):
    if kind in SIGNED:
        return f'kilni_table_trace_signed(&line, "{name}", {value});'
    if kind in UNSIGNED:
        return f'kilni_table_trace_unsigned(&line, "{name}", {value});'
    if kind in POINTERS:
        return f'kilni_table_trace_address(&line, "{name}", (uintptr_t){value});'
    if kind in FUNCTIONS:
        return f'kilni_table_trace_address(&line, "{name}", (uintptr_t){value});'
    if kind == 'kiln_cu_deviceptr_t':
        return f'kilni_table_trace_address(&line, "{name}", {value});'
    if kind == 'kiln_cu_result_t':
        return f'kilni_table_trace_result(&line, "{name}", {value});'
    if kind == 'kiln_cu_device_attribute_t':
        return f'kilni_table_trace_attribute(&line, "{name}", {value});'
    if kind == 'kiln_cu_uuid_t':
        return f'kilni_table_trace_uuid(&line, "{name}", &{value});'
    if kind in ('kiln_cu_ipc_event_handle_t', 'kiln_cu_ipc_mem_handle_t',
                'kiln_cu_mempool_export_t'):
        return f'kilni_table_trace_text(&line, "{name}", "of 64 bytes");'
    if kind == 'kiln_cu_mem_location_t':
        return (f'kilni_table_trace_unsigned(&line, "{name}.type", {value}.type); '
                f'kilni_table_trace_signed(&line, "{name}.id", {value}.id);')
    if kind == 'float':
        return f'kilni_table_trace_real(&line, "{name}", (double){value});'
    raise RowError(f'trace does not know how to print the type "{kind}"')


def trace_thunk(row):
    before, after = [], []
    for p in row.params:
        if p.way in ('IN', 'ENDED'):
            before.append(say(p.type, p.name, p.name))
        elif p.way == 'ENDED_AT':
            before.append(say_at(p.type, p.name, p.name))
        elif p.way == 'TEXT':
            before.append(f'kilni_table_trace_text(&line, "{p.name}", {p.name});')
        elif p.way in ('FROM_BYTES', 'TO_BYTES', 'POINTER', 'LIST',
                       'OUT_LIST'):
            before.append('kilni_table_trace_address(&line, "%s", (uintptr_t)%s);' %
                          (p.name, p.name))
        elif p.way in ('MADE', 'OUT', 'INOUT'):
            after.append(say_at(p.type, p.name, p.name))
        elif p.way == 'OUT_TEXT':
            after.append(f'if ({p.name} != NULL) '
                         f'kilni_table_trace_text(&line, "{p.name}", *{p.name});')
        elif p.way == 'OUT_CHARS':
            after.append(f'if ({p.count} > 0) '
                         f'kilni_table_trace_text(&line, "{p.name}", {p.name});')
    library = row.library
    out = [f'static {row.result()} KILNI_THUNK({row.name})'
           f'({row.signature()}) {{\n',
           '  kilni_trace_line_t line = kilni_table_trace_begin(\n'
           f'      &kilni_table_{library.lower}_wrapped->trace[KILNI_SLOT], '
           f'"{row.name}");\n']
    out += [f'  {text}\n' for text in before]
    out.append(f'  const {row.result()} result =\n'
               f'      kilni_table_{library.lower}_wrapped->traced[KILNI_SLOT]'
               f'.{row.name}({row.names()});\n'
               '  kilni_table_trace_gave(&line, '
               f'kilni_table_{library.lower}_result_name(result), result);\n')
    if after:
        out.append(f'  if (result == {library.success}) {{\n')
        out += [f'    {text}\n' for text in after]
        out.append('  }\n')
    out.append('  kilni_table_trace_end(&line);\n  return result;\n}\n')
    return ''.join(out)


def set_all(library, function, rows):
    """The function that puts the thunks over the rows that are present."""
    out = [f'\nstatic void KILNI_THUNK({function})'
           f'(kiln_{library.lower}_table_t* table) {{\n']
    for row in rows:
        out.append(f'  if (kilni_table_{library.lower}_has(table, '
                   f'KILNI_{library.api}_ROW_{row.name})) '
                   f'table->{row.name} = KILNI_THUNK({row.name});\n')
    out.append('}\n')
    return ''.join(out)


def trace_thunks(library):
    # What only says a text is asked while an error is made.
    rows = [row for row in library.rows if not row.says]
    return (head('thunks of the trace wrapper.', library.source) +
            '// Included once for each KILNI_SLOT.\n// clang-format off\n' +
            ''.join(trace_thunk(row) for row in rows) +
            set_all(library, 'cover', rows))


# ---- Fault ----

def fault_thunk(row):
    state = f'kilni_table_{row.library.lower}_wrapped'
    through = (f'{state}->faulted[KILNI_SLOT].{row.name}({row.names()});\n')
    fail = f'    return ({row.result()}){state}->fault[KILNI_SLOT].result;\n'
    if row.effect == 'DESTROY':
        fail = f'    (void){through}' + fail
    return (f'static {row.result()} KILNI_THUNK({row.name})'
            f'({row.signature()}) {{\n'
            f'  if (kilni_table_fault_is_due(&{state}->fault[KILNI_SLOT], '
            f'"{row.name}")) {{\n{fail}  }}\n'
            f'  return {through}}}\n')


def fault_thunks(library):
    rows = [row for row in library.rows
            if not row.says and row.name not in library.not_counted]
    return (head('thunks of the fault wrapper.', library.source) +
            '// Included once for each KILNI_SLOT.\n// clang-format off\n' +
            ''.join(fault_thunk(row) for row in rows) +
            set_all(library, 'cover', rows))


# ---- Null ----

# Handles that nobody ends: the null provider makes numbers of them.
NULL_FRESH = ('kiln_cu_graph_node_t', 'kiln_cu_graph_condition_t')


def null_thunk(row):
    library = row.library
    body, used, answer = [], set(), library.success
    if library.null_guard:
        body.append('if (%s) return %s;' % library.null_guard)
    for p in row.params:
        if library.null_check and (p.way, p.type) == ('IN',
                                                      library.null_check[0]):
            used.add(p.name)
            body.append(f'if (!{library.null_check[1]}({p.name})) '
                        f'return {library.invalid};')
    for p in row.params:
        if p.way == 'MADE':
            used.add(p.name)
            body.append('uint64_t made = 0;')
            answer = f'{row.library.lower}_null_create(KILNI_HANDLE_{row.handle}, 0, &made)'
            body.append(f'if ({p.name} == NULL) '
                        f'return {library.invalid};')
            body.append(f'const {row.result()} result = {answer};')
            body.append(f'*{p.name} = ({p.type})(uintptr_t)made;')
            answer = 'result'
        elif p.way == 'ENDED':
            used.add(p.name)
            answer = (f'{row.library.lower}_null_destroy(KILNI_HANDLE_{row.handle}, '
                      f'(uint64_t)(uintptr_t){p.name})')
        elif p.way == 'ENDED_AT':
            used.add(p.name)
            body.append(f'if ({p.name} == NULL) return {library.invalid};')
            body.append(f'const uint64_t ended = '
                        f'(uint64_t)(uintptr_t)*{p.name};')
            body.append(f'*{p.name} = NULL;')
            answer = f'{row.library.lower}_null_destroy(KILNI_HANDLE_{row.handle}, ended)'
        elif p.way == 'OUT':
            used.add(p.name)
            given = (f'*{p.name} = ({p.type})(uintptr_t)null_number();'
                     if p.type in NULL_FRESH and row.effect == 'ACT' else
                     f'memset({p.name}, 0, sizeof(*{p.name}));')
            body.append(f'if ({p.name} != NULL) {given}')
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
    return (f'static {row.result()} null_{row.name}({row.signature()}) {{\n'
            f'{text}  return {answer};\n}}\n')


def null_thunks(library):
    out = [head('thunks of the null provider.', library.source) +
           '// clang-format off\n']
    out += [null_thunk(row) for row in library.rows
            if row.name not in library.null_by_hand]
    out.append('\nstatic void fill_null('
               f'kiln_{library.lower}_table_t* table) {{\n')
    out += [f'  KILNI_{library.api}_SET(table, {row.name}, '
            f'null_{row.name});\n' for row in library.rows]
    out.append('}\n')
    return ''.join(out)


# ---- The comparison with NVIDIA's headers ----

# Struct types cannot be the same in two headers: there the signature is
# compared with our name replaced, and the struct itself field by field.
STRUCTS = {'kiln_cu_uuid_t': 'CUuuid',
           'kiln_cu_ipc_event_handle_t': 'CUipcEventHandle',
           'kiln_cu_ipc_mem_handle_t': 'CUipcMemHandle',
           'kiln_cu_mempool_export_t': 'CUmemPoolPtrExportData',
           'kiln_cu_launch_config_t': 'CUlaunchConfig',
           'kiln_cu_mempool_props_t': 'CUmemPoolProps',
           'kiln_cu_mem_allocation_prop_t': 'CUmemAllocationProp',
           'kiln_cu_mem_access_desc_t': 'CUmemAccessDesc',
           'kiln_cu_mem_location_t': 'CUmemLocation',
           'kiln_cu_copy_attributes_t': 'CUmemcpyAttributes',
           'kiln_cu_dev_resource_t': 'CUdevResource',
           'kiln_cu_tensor_map_t': 'CUtensorMap',
           'kiln_cu_array_desc_t': 'CUDA_ARRAY3D_DESCRIPTOR',
           'kiln_cu_copy_3d_t': 'CUDA_MEMCPY3D',
           'kiln_cu_texels_t': 'CUDA_RESOURCE_DESC',
           'kiln_cu_sampler_t': 'CUDA_TEXTURE_DESC',
           'kiln_cu_launch_attribute_value_t': 'CUlaunchAttributeValue',
           'kiln_cu_graph_edge_t': 'CUgraphEdgeData',
           'kiln_cu_kernel_node_t': 'CUDA_KERNEL_NODE_PARAMS_v2',
           'kiln_cu_memset_node_t': 'CUDA_MEMSET_NODE_PARAMS_v1',
           'kiln_cu_host_node_t': 'CUDA_HOST_NODE_PARAMS_v1',
           'kiln_cu_alloc_node_t': 'CUDA_MEM_ALLOC_NODE_PARAMS_v1',
           'kiln_cu_mem_op_t': 'CUstreamBatchMemOpParams',
           'kiln_cu_mem_op_node_t': 'CUDA_BATCH_MEM_OP_NODE_PARAMS_v1',
           'kiln_cu_semaphore_signal_node_t':
           'CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1',
           'kiln_cu_semaphore_wait_node_t': 'CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1',
           'kiln_cu_semaphore_desc_t': 'CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC',
           'kiln_cu_graph_node_params_t': 'CUgraphNodeParams',
           'kiln_cu_graph_instantiate_t': 'CUDA_GRAPH_INSTANTIATE_PARAMS',
           'kiln_cu_graph_update_t': 'CUgraphExecUpdateResultInfo',
           'kiln_nvml_pci_t': 'nvmlPciInfo_t',
           'kiln_nvml_memory_t': 'nvmlMemory_t',
           'kiln_nvml_memory_v2_t': 'nvmlMemory_v2_t',
           'kiln_nvml_temperature_t': 'nvmlTemperature_t',
           'kiln_nvml_bar1_t': 'nvmlBAR1Memory_t',
           'kiln_nvml_utilization_t': 'nvmlUtilization_t',
           'kiln_nvml_process_t': 'nvmlProcessInfo_t',
           'kiln_nvml_process_sample_t': 'nvmlProcessUtilizationSample_t',
           'kiln_nvml_attributes_t': 'nvmlDeviceAttributes_t',
           'kiln_nvml_field_t': 'nvmlFieldValue_t'}


def compared_type(row):
    """The name of a row's type with NVIDIA's structs, and its declaration."""
    ours, text = f'kilni_{row.name}_fn_t', ''
    signature = row.signature()
    for mine, theirs in STRUCTS.items():
        if mine in signature:
            ours = f'compared_{row.name}_fn_t'
            signature = signature.replace(mine, theirs)
            text = f'typedef {row.result()} (*{ours})({signature});\n'
    return ours, text


def abi_check_of_driver(row):
    ours, text = compared_type(row)
    return (f'#if CUDA_VERSION >= {row.version}\n{text}'
            f'SAME_TYPE({ours}, PFN_{row.base()}_v{row.version});\n#endif\n')


def abi_check_of_library(row):
    ours, text = compared_type(row)
    text += f'SAME_TYPE({ours}, __typeof__(&{row.name}{row.suffix}));\n'
    if int(row.version) <= 12000:
        return text
    return (f'#if TEST_{row.library.api}_VERSION >= {row.version}\n{text}'
            '#endif\n')


def abi_check(libraries):
    out = [head("the comparison of every signature with NVIDIA's headers.",
                sources(libraries)) + '// clang-format off\n']
    for library in libraries:
        one = (abi_check_of_driver if library.api == 'CUDA' else
               abi_check_of_library)
        out.append(f'#if defined(TEST_HAVE_{library.api}_H)\n')
        out += [one(row) for row in library.rows]
        out.append('#endif\n')
    return ''.join(out)


def fakes(libraries):
    """Rows for the libraries that tests load in place of the real ones."""
    out = [head('rows of the fake libraries.', sources(libraries))]
    out.append('// Included once for each thing that is made of it.\n'
               '// clang-format off\n')
    for library in libraries:
        out.append(f'#if defined(FAKE_{library.api}_ROW)\n')
        for row in library.rows:
            if row.says or row.name in library.fake_by_hand:
                continue
            symbol = ''
            if library.has_suffix:
                symbol = f'{row.name}{row.suffix}, '
            if library.api == 'CUDA':
                symbol += f'{row.base()}, {row.version}, '
            unused_names = ' '.join(f'(void){p.name};' for p in row.params)
            out.append(f'#if {row.version} <= FAKE_VERSION\n'
                       f'FAKE_{library.api}_ROW({row.name}, {symbol}'
                       f'({row.signature()}), {unused_names})\n#endif\n')
        out.append('#endif\n')
    return ''.join(out)


# ---- The reference page ----

def yes(text):
    return text.lower().replace('_', ' ')


def reference(libraries):
    cuda, others = libraries[0], libraries[1:]
    out = ['<!-- SPDX-License-Identifier: Apache-2.0 -->\n'
           '<!-- Generated by tools/gen_tables.py from src/table/*_rows.inc: '
           'never edit it. -->\n\n'
           '# The entry points that Kiln calls\n\n'
           'Kiln links no CUDA library. It opens the driver, NVRTC, libNVVM, nvJitLink and NVML at '
           'run time and\ntakes exactly these entry points from them, each '
           'with one pinned signature.\n\n'
           '## The CUDA driver\n\n'
           '*Symbol* is the export with the pinned signature, *since* the '
           'CUDA version that\nbrought it. A driver without a *required* row '
           'is refused as a whole; without an\n*optional* one, and where the '
           'software device lacks one, the feature in the\nlast column is absent. *Context*: what must be\ncurrent. '
           '*Capture*: whether the call is allowed while a stream is captured '
           'in\nglobal mode. *Effect*: what the call does to handles.\n\n'
           '| Symbol | Since | Need | Context | Capture | Effect | Handle | '
           'Without it |\n|---|---|---|---|---|---|---|---|\n']
    for row in cuda.rows:
        version = int(row.version)
        handle = '' if row.handle == 'NONE' else yes(row.handle)
        out.append(f'| `{row.name}{row.suffix}` | '
                   f'{version // 1000}.{version % 1000 // 10} | '
                   f'{yes(row.need)} | {yes(row.context)} | '
                   f'{yes(row.capture)} | {yes(row.effect)} | {handle} | '
                   f'{row.feature and "no " + row.feature} |\n')
    for library in others:
        out.append(f'\n## {library.title}\n\n| Symbol | Since | Need | '
                   'Effect | Without it |\n|---|---|---|---|---|\n')
        for row in library.rows:
            version = int(row.version)
            out.append(f'| `{row.name}{row.suffix}` | '
                       f'{version // 1000}.{version % 1000 // 10} | '
                       f'{yes(row.need)} | {yes(row.effect)} | '
                       f'{row.feature and "no " + row.feature} |\n')
    return ''.join(out)


# ---- The libraries ----

def make_libraries():
    return [
        Library(
            'CUDA', 'The CUDA driver', 'kiln_cu_result_t', 'KILN_CU_',
            'KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER', invalid='VALUE',
            null_by_hand=(
                'cuDriverGetVersion', 'cuGetErrorName', 'cuGetErrorString',
                'cuGetProcAddress', 'cuDeviceGet', 'cuDeviceGetCount',
                'cuDeviceGetName', 'cuDeviceGetUuid', 'cuDeviceTotalMem',
                'cuDeviceGetAttribute', 'cuDeviceGetPCIBusId',
                'cuDevicePrimaryCtxRetain', 'cuDevicePrimaryCtxRelease',
                'cuDevicePrimaryCtxGetState', 'cuCtxGetCurrent',
                'cuCtxSetCurrent', 'cuCtxPushCurrent', 'cuCtxPopCurrent',
                'cuCtxGetApiVersion', 'cuMemGetInfo', 'cuMemAlloc',
                'cuMemAllocAsync', 'cuMemHostAlloc', 'cuMemFreeHost',
                'cuMemHostGetDevicePointer', 'cuMemHostRegister',
                'cuDeviceGetDevResource', 'cuGreenCtxGetDevResource',
                'cuDevSmResourceSplitByCount', 'cuDevResourceGenerateDesc',
                'cuCtxFromGreenCtx', 'cuMipmappedArrayGetLevel',
                'cuArray3DGetDescriptor',
                'cuMemAllocManaged', 'cuMemAllocFromPoolAsync',
                'cuDeviceGetMemPool', 'cuMemPoolGetAttribute',
                'cuMemGetAllocationGranularity', 'cuMemMap',
                'cuPointerGetAttribute', 'cuPointerGetAttributes',
                'cuStreamGetCtx', 'cuThreadExchangeStreamCaptureMode',
                'cuLaunchHostFunc', 'cuModuleGetFunction',
                'cuModuleGetGlobal', 'cuFuncGetAttribute', 'cuFuncGetModule',
                'cuFuncGetName', 'cuFuncGetParamInfo',
                'cuOccupancyMaxActiveBlocksPerMultiprocessor',
                'cuOccupancyMaxPotentialBlockSize',
                'cuOccupancyAvailableDynamicSMemPerBlock',
                'cuOccupancyMaxPotentialClusterSize',
                'cuOccupancyMaxActiveClusters',
                'cuLibraryGetKernel', 'cuLibraryGetModule',
                'cuLibraryGetGlobal', 'cuLibraryGetManaged',
                'cuLibraryEnumerateKernels', 'cuKernelGetFunction',
                'cuKernelGetLibrary', 'cuKernelGetAttribute', 'cuKernelGetName',
                'cuKernelGetParamInfo', 'cuLinkComplete', 'cuStreamIsCapturing',
                'cuStreamBeginCapture', 'cuStreamBeginCaptureToGraph',
                'cuStreamEndCapture', 'cuStreamGetCaptureInfo',
                'cuStreamGetCaptureInfo_v3', 'cuGraphDestroy', 'cuGraphClone',
                'cuGraphInstantiateWithParams', 'cuGraphExecDestroy',
                'cuGraphExecUpdate', 'cuGraphAddNode', 'cuGraphAddMemAllocNode',
                'cuGraphChildGraphNodeGetGraph',
                'cuUserObjectCreate', 'cuUserObjectRetain',
                'cuUserObjectRelease', 'cuGraphRetainUserObject',
                'cuGraphReleaseUserObject'),
            not_counted=('cuGetErrorName', 'cuGetErrorString'),
            fake_by_hand=('cuDriverGetVersion', 'cuGetProcAddress')),
        Library(
            'NVRTC', 'NVRTC', 'kiln_nvrtc_result_t', 'KILN_NVRTC_',
            'KILN_NVRTC_ERROR_INTERNAL_ERROR', handle='PROGRAM',
            null_by_hand=(
                'nvrtcVersion', 'nvrtcGetErrorString',
                'nvrtcGetNumSupportedArchs', 'nvrtcGetSupportedArchs',
                'nvrtcGetPTXSize', 'nvrtcGetPTX', 'nvrtcGetCUBINSize',
                'nvrtcGetCUBIN', 'nvrtcGetLTOIRSize', 'nvrtcGetLTOIR',
                'nvrtcGetOptiXIRSize', 'nvrtcGetOptiXIR',
                'nvrtcGetProgramLogSize', 'nvrtcGetProgramLog',
                'nvrtcGetLoweredName'),
            fake_by_hand=('nvrtcVersion', 'nvrtcGetNumSupportedArchs')),
        Library(
            'NVVM', 'libNVVM', 'kiln_nvvm_result_t', 'KILN_NVVM_',
            'KILN_NVVM_ERROR_INVALID_PROGRAM', handle='PROGRAM',
            null_by_hand=(
                'nvvmGetErrorString', 'nvvmVersion', 'nvvmIRVersion',
                'nvvmGetCompiledResultSize', 'nvvmGetCompiledResult',
                'nvvmGetProgramLogSize', 'nvvmGetProgramLog'),
            fake_by_hand=('nvvmVersion',)),
        Library(
            'NVJITLINK', 'nvJitLink', 'kiln_nvjitlink_result_t',
            'KILN_NVJITLINK_', 'KILN_NVJITLINK_ERROR_INTERNAL', handle='LINK',
            least=12030,
            null_by_hand=(
                'nvJitLinkVersion', 'nvJitLinkGetLinkedCubinSize',
                'nvJitLinkGetLinkedCubin', 'nvJitLinkGetLinkedPtxSize',
                'nvJitLinkGetLinkedPtx', 'nvJitLinkGetLinkedLTOIRSize',
                'nvJitLinkGetLinkedLTOIR', 'nvJitLinkGetErrorLogSize',
                'nvJitLinkGetErrorLog', 'nvJitLinkGetInfoLogSize',
                'nvJitLinkGetInfoLog'),
            fake_by_hand=('nvJitLinkVersion',)),
        Library(
            'NVML', 'NVML, the management library', 'kiln_nvml_result_t',
            'KILN_NVML_', 'KILN_NVML_ERROR_FUNCTION_NOT_FOUND',
            handle='SESSION', invalid='ARGUMENT',
            null_guard=('!null_is_open()',
                        'KILN_NVML_ERROR_UNINITIALIZED'),
            null_check=('kiln_nvml_device_t', 'null_is_device'),
            null_by_hand=(
                'nvmlInit', 'nvmlShutdown', 'nvmlErrorString',
                'nvmlSystemGetDriverVersion', 'nvmlSystemGetNVMLVersion',
                'nvmlSystemGetCudaDriverVersion', 'nvmlDeviceGetCount',
                'nvmlDeviceGetHandleByIndex', 'nvmlDeviceGetHandleByUUID',
                'nvmlDeviceGetHandleByPciBusId', 'nvmlDeviceGetName',
                'nvmlDeviceGetUUID', 'nvmlDeviceGetPciInfo',
                'nvmlDeviceGetCudaComputeCapability',
                'nvmlDeviceGetMemoryInfo', 'nvmlDeviceGetMemoryInfo_v2',
                'nvmlDeviceGetTemperatureV',
                'nvmlDeviceGetComputeRunningProcesses',
                'nvmlDeviceGetGraphicsRunningProcesses',
                'nvmlDeviceGetMPSComputeRunningProcesses',
                'nvmlDeviceGetProcessUtilization',
                'nvmlDeviceGetNvLinkState', 'nvmlDeviceGetFieldValues',
                'nvmlDeviceGetMigDeviceHandleByIndex',
                'nvmlDeviceGetDeviceHandleFromMigDeviceHandle'),
            fake_by_hand=('nvmlInit', 'nvmlShutdown',
                          'nvmlSystemGetDriverVersion')),
    ]


def outputs():
    table = os.path.join(ROOT, 'src', 'table')
    libraries = make_libraries()
    found = {}
    for library in libraries:
        read_rows(library, os.path.join(table, library.source))
        found[f'src/table/{library.lower}_types_gen.h'] = types_header(library)
        name = f'src/table/{library.lower}_%s_gen.inc'
        found[name % 'null'] = null_thunks(library)
        found[name % 'trace'] = trace_thunks(library)
        found[name % 'fault'] = fault_thunks(library)
    found['src/table/absent_thunks_gen.inc'] = absent_thunks(libraries)
    found['tests/unit/table/abi_check_gen.inc'] = abi_check(libraries)
    found['tests/support/fake_rows_gen.inc'] = fakes(libraries)
    found['docs/reference/driver-rows.md'] = reference(libraries)
    return found


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
