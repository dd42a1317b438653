# SPDX-License-Identifier: Apache-2.0
"""The words that tools/strict_math.py is written in.

A function is traced: each operation makes a node, in order; what is used more
than once becomes a let, the rest stays an expression. The tree that results
is written out as tables of the IR or, for trying it on a host, as C.
"""

import struct

FLOATS = ("F32", "F64")
SIGNED = ("I32", "I64")
BYTES = {"BOOL": 1, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "F32": 4, "F64": 8}
BOOL_RESULT = ("EQ", "NE", "LT", "GT", "LE", "GE")

_function = None


def literal_bits(type_, value):
    if type_ == "F64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if type_ == "F32":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    return int(value) & ((1 << 8 * BYTES[type_]) - 1)


class Node:
    """A value. `op` is a table's word, `args` are nodes."""

    def __init__(self, op, type_, args=(), extra=None):
        self.op, self.type, self.args, self.extra = op, type_, args, extra
        self.uses = 0
        self.name = None
        if op not in ("LITERAL", "PARAMETER") and _function is not None:
            _function.block.append(("node", self))

    def _two(self, name, other, swap=False):
        other = coerce(self.type, other)
        a, b = (other, self) if swap else (self, other)
        return binary(name, a, b)

    def __add__(self, o): return self._two("ADD", o)
    def __radd__(self, o): return self._two("ADD", o, True)
    def __sub__(self, o): return self._two("SUB", o)
    def __rsub__(self, o): return self._two("SUB", o, True)
    def __mul__(self, o): return self._two("MUL", o)
    def __rmul__(self, o): return self._two("MUL", o, True)
    def __truediv__(self, o): return self._two("DIV", o)
    def __rtruediv__(self, o): return self._two("DIV", o, True)
    def __mod__(self, o): return self._two("REM", o)
    def __xor__(self, o): return self._two("BIT_XOR", o)
    def __neg__(self): return unary("NEGATE", self)
    def __invert__(self): return unary("NOT" if self.type == "BOOL"
                                       else "BIT_NOT", self)
    def __lt__(self, o): return self._two("LT", o)
    def __gt__(self, o): return self._two("GT", o)
    def __le__(self, o): return self._two("LE", o)
    def __ge__(self, o): return self._two("GE", o)
    def equals(self, o): return self._two("EQ", o)
    def differs(self, o): return self._two("NE", o)

    def __and__(self, o):
        return self._two("AND" if self.type == "BOOL" else "BIT_AND", o)

    def __or__(self, o):
        return self._two("OR" if self.type == "BOOL" else "BIT_OR", o)

    def __lshift__(self, o):
        return binary("SHL", self, coerce("U32", o))

    def __rshift__(self, o):
        return binary("SHR", self, coerce("U32", o))


def lit(type_, value):
    if isinstance(value, str):
        value = float.fromhex(value)
    return Node("LITERAL", type_, extra=literal_bits(type_, value))


def coerce(type_, value):
    return value if isinstance(value, Node) else lit(type_, value)


def unary(name, x):
    type_ = x.type
    if name in ("CLZ", "CTZ", "POPCOUNT"):
        type_ = "U32"
    elif name in ("IS_NAN", "IS_INF", "IS_FINITE"):
        type_ = "BOOL"
    return Node("UNARY", type_, (x,), name)


def binary(name, x, y):
    type_ = "BOOL" if name in BOOL_RESULT else x.type
    assert name in ("SHL", "SHR") or x.type == y.type, (name, x.type, y.type)
    return Node("BINARY", type_, (x, y), name)


def select(c, a, b):
    if not isinstance(a, Node):
        a = coerce(b.type, a)
    b = coerce(a.type, b)
    assert c.type == "BOOL" and a.type == b.type
    return Node("SELECT", a.type, (c, a, b))


def fma(a, b, c):
    type_ = next(x.type for x in (a, b, c) if isinstance(x, Node))
    return Node("FMA", type_, tuple(coerce(type_, x) for x in (a, b, c)))


def cast(type_, x):
    return x if x.type == type_ else Node("CAST", type_, (x,))


def bits(type_, x):
    return x if x.type == type_ else Node("BITCAST", type_, (x,))


def absolute(x): return unary("ABS", x)
def nearest(x): return unary("ROUND", x)
def sqrt(x): return unary("SQRT", x)
def is_nan(x): return unary("IS_NAN", x)
def low(x, y): return binary("MIN", x, coerce(x.type, y))
def high(x, y): return binary("MAX", x, coerce(x.type, y))
def mul_high(x, y): return binary("MUL_HIGH", x, coerce(x.type, y))


class Var:
    """A variable that is assigned more than once."""

    def __init__(self, value):
        self.type = value.type
        self.name = None
        _function.block.append(("var", self, value))

    def set(self, value):
        _function.block.append(("set", self, value))

    def get(self):
        return Node("GET", self.type, extra=self)


class when:
    """with when(condition): what is done where it holds."""

    def __init__(self, condition):
        self.item = ["if", condition, []]

    def __enter__(self):
        _function.block.append(self.item)
        self.outer, _function.block = _function.block, self.item[2]

    def __exit__(self, *_):
        _function.block = self.outer


class loop:
    """with loop(lambda: condition): repeated while it holds."""

    def __init__(self, condition):
        outer, _function.block = _function.block, []
        node = condition()
        _function.block = outer
        self.item = ["while", node, []]

    __enter__ = when.__enter__
    __exit__ = when.__exit__


class Function:
    """A function of the library, traced from a function of Python."""

    def __init__(self, name, type_, trace, parameters):
        global _function
        self.name, self.type = name, type_
        self.block = []
        self.parameters = [Node("PARAMETER", type_) for _ in range(parameters)]
        _function = self
        result = trace(*self.parameters)
        assert result.type == type_, name
        self.block.append(("return", result))
        _function = None
        self._count(self.block)
        self.lets = 0

    def _use(self, node):
        node.uses += 1
        if node.uses == 1:
            for a in node.args:
                self._use(a)

    def _count(self, block):
        for item in block:
            if item[0] in ("var", "set"):
                self._use(item[2])
            elif item[0] == "return":
                self._use(item[1])
            elif item[0] == "if":
                self._use(item[1])
                self._count(item[2])
            elif item[0] == "while":
                item[1].inline = True
                self._use(item[1])
                self._count(item[2])

    @staticmethod
    def is_let(node):
        return node.uses > 1 or (node.op == "GET" and node.uses > 0)
