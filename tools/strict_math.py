# SPDX-License-Identifier: Apache-2.0
"""Strict math: every function in the program's own operators.

tools/gen_program_math.py turns these into src/program/math/. Each is under
1 ULP everywhere, results that are subnormal included (test_program_math).

f64 works with pairs (h, l) of doubles whose sum is the value, l below half an
ULP of h, where the last rounding alone would not leave space. f32 works in f64
throughout, and is rounded once at the end: that costs time on a GPU with few
units for f64, and buys half an ULP plus a hair with no special cases near the
ends; inverse_sqrt needs none and stays in f32. Coefficients are
tools/fit_strict.py's.
"""

from strict_words import (Function, Var, absolute, binary, bits, cast, fma,
                          high, is_nan, lit, loop, low, mul_high, nearest,
                          select, sqrt, unary, when)

INF = float("inf")
NAN = float("nan")
# Numbers of more than 53 bits: the parts add up. LN2's first has 43 bits, so
# that a multiple of it by 11 bits is exact.
LN2 = ("0x1.62e42fefa3800p-1", "0x1.ef35793c76730p-45")
LN2_WHOLE = ("0x1.62e42fefa39efp-1", "0x1.abc9e3b39803fp-56")
LOG2_E = ("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56")
TWO_OVER_PI = "0x1.45f306dc9c883p-1"
HALF_PI = ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54",
           "-0x1.f1976b7ed8fbcp-110")
TWO_THIRDS = ("0x1.5555555555555p-1", "0x1.5555555555555p-55")
TWO_FIFTHS = ("0x1.999999999999ap-2", "-0x1.999999999999ap-56")
# 2/pi behind the point, 64 bits each.
TWO_OVER_PI_BITS = (
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
    0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab, 0xf0cfbc209af4361d)

# -- coefficients, lowest first, and what they leave ------------------------

EXP_EVEN = [  # 2^-64.7
    "0x1.0000000000000p-1",
    "0x1.5555555555555p-5",
    "0x1.6c16c16c16c18p-10",
    "0x1.a01a01a0192e7p-16",
    "0x1.27e4fb7c718e6p-22",
    "0x1.1eed71103b79dp-29",
    "0x1.944c7538ddd87p-37",
]
EXP_ODD = [  # 2^-59.6
    "0x1.5555555555555p-3",
    "0x1.1111111111111p-7",
    "0x1.a01a01a01a01bp-13",
    "0x1.71de3a556c0fep-19",
    "0x1.ae645683f1e3ap-26",
    "0x1.6124450ed4623p-33",
    "0x1.af29bd2251762p-41",
]
EXP_EVEN_32 = [  # 2^-44.2
    "0x1.fffffffffe062p-2",
    "0x1.55555565c7e0ep-5",
    "0x1.6c166bde96885p-10",
    "0x1.a136bf03ec612p-16",
]
EXP_ODD_32 = [  # 2^-47.7
    "0x1.5555555554f96p-3",
    "0x1.111111170bc08p-7",
    "0x1.a019c36bc053cp-13",
    "0x1.72ad458027fbcp-19",
]
LOG = [  # 2^-60.7
    "0x1.5555555555555p-1",
    "0x1.9999999999998p-2",
    "0x1.249249249295bp-2",
    "0x1.c71c71c64c4b9p-3",
    "0x1.745d17d378427p-3",
    "0x1.3b137b291cc0dp-3",
    "0x1.111d29291fef6p-3",
    "0x1.debe85c9b376dp-4",
    "0x1.e6b2d29e10ceap-4",
]
LOG_32 = [  # 2^-43.2
    "0x1.5555555564ed7p-1",
    "0x1.999998cad0ef1p-2",
    "0x1.2493240725728p-2",
    "0x1.c67ac8fe30812p-3",
    "0x1.8c8d5c6b0f530p-3",
]
LOG_TAIL = [  # 2^-66.5; 2^-72 with TWO_FIFTHS for the first
    "0x1.999999999999ap-2",
    "0x1.2492492492492p-2",
    "0x1.c71c71c71c705p-3",
    "0x1.745d1745d3f21p-3",
    "0x1.3b13b138eee95p-3",
    "0x1.11111220099cep-3",
    "0x1.e1e13f3cb1a76p-4",
    "0x1.af468ce273408p-4",
    "0x1.82bd7e64110f7p-4",
    "0x1.986e846c18482p-4",
]
SIN = [  # 2^-57.3
    "-0x1.5555555555555p-3",
    "0x1.1111111111110p-7",
    "-0x1.a01a01a019936p-13",
    "0x1.71de3a54605eep-19",
    "-0x1.ae64541266378p-26",
    "0x1.61217ec01749dp-33",
    "-0x1.ab17a79237a19p-41",
]
COS = [  # 2^-60.0
    "0x1.5555555555555p-5",
    "-0x1.6c16c16c16c16p-10",
    "0x1.a01a01a019d0ap-16",
    "-0x1.27e4fb7712bdfp-22",
    "0x1.1eed8deb6d561p-29",
    "-0x1.9394b9c9c20a4p-37",
    "0x1.ab783376962cfp-45",
]
SIN_32 = [  # 2^-45.9
    "-0x1.555555555516ap-3",
    "0x1.1111110fd3935p-7",
    "-0x1.a019fd9a9838bp-13",
    "0x1.71d9a97cd3c34p-19",
    "-0x1.aa28204b8cc64p-26",
]
COS_32 = [  # 2^-50.4
    "0x1.5555555555437p-5",
    "-0x1.6c16c16b612abp-10",
    "0x1.a019ff534c684p-16",
    "-0x1.27e25f0776cc1p-22",
    "0x1.1c81a3b8d462fp-29",
]
ASIN = [  # 2^-58.9
    "0x1.5555555555555p-3",
    "0x1.3333333333389p-4",
    "0x1.6db6db6dac0eap-5",
    "0x1.f1c71c7a5e151p-6",
    "0x1.6e8ba121b9d5fp-6",
    "0x1.1c4efd20ebb99p-6",
    "0x1.c990a42b32b03p-7",
    "0x1.7b02ef007d23ep-7",
    "0x1.3b462d121c5d2p-7",
    "0x1.31777489dfd29p-7",
    "0x1.8dcdf11997e0fp-9",
    "0x1.40c91fa8deb7ep-6",
    "-0x1.3bd7e353ddbc2p-6",
    "0x1.e58a4f278e007p-6",
]
ASIN_32 = [  # 2^-38.0
    "0x1.55555554ede81p-3",
    "0x1.333334d009e10p-4",
    "0x1.6db5cef583cefp-5",
    "0x1.f20913ba8d370p-6",
    "0x1.6a9c2ffd8a6d0p-6",
    "0x1.3c5d44991a0f2p-6",
    "0x1.64157dc57bfb9p-8",
    "0x1.e055c6ab71d4cp-6",
]
ATAN = [  # 2^-58.0
    "-0x1.5555555555555p-2",
    "0x1.9999999999997p-3",
    "-0x1.24924924920a3p-3",
    "0x1.c71c71c6dd2d8p-4",
    "-0x1.745d173542f7ap-4",
    "0x1.3b13aea53b18fp-4",
    "-0x1.1110ce80547d7p-4",
    "0x1.e1d8ddf459f4dp-5",
    "-0x1.aebcad6415c5dp-5",
    "0x1.829a09d7f37d9p-5",
    "-0x1.5030c28013685p-5",
    "0x1.f5ba271a2a8e8p-6",
    "-0x1.c7a6bc6dde7f9p-7",
]
ATAN_32 = [  # 2^-38.4
    "-0x1.55555555018d3p-2",
    "0x1.9999982386384p-3",
    "-0x1.2491bfec7eaaap-3",
    "0x1.c6f664c251f89p-4",
    "-0x1.71d214eaeb143p-4",
    "0x1.2439d1666cb6dp-4",
    "-0x1.4b107f787f967p-5",
]

# -- pieces -----------------------------------------------------------------

def poly(coefficients, z):
    p = lit("F64", coefficients[-1])
    for c in reversed(coefficients[:-1]):
        p = fma(p, z, lit("F64", c))
    return p


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def quick_sum(a, b):
    """Where |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


def two_product(a, b):
    p = a * b
    return p, fma(a, b, -p)


def quotient(nh, nl, dh, dl):
    q = nh / dh
    return q, (fma(-q, dh, nh) + (nl - q * dl)) / dh


def d(text):
    return lit("F64", text)


def pair(parts, count=2):
    return [d(p) for p in parts[:count]]


UINT = {"F32": "U32", "F64": "U64"}
SINT = {"F32": "I32", "F64": "I64"}
TOP = {"F32": 31, "F64": 63}
FRACTION = {"F32": 23, "F64": 52}
BIAS = {"F32": 127, "F64": 1023}


def sign_bits(x):
    return bits(UINT[x.type], x) & (1 << TOP[x.type])


def with_sign(x, signs):
    """x, which is not negative, with a sign's bits."""
    return bits(x.type, bits(UINT[x.type], x) | signs)


def flip(x, signs):
    return bits(x.type, bits(UINT[x.type], x) ^ signs)


def is_negative(x):
    """By the sign bit."""
    return bits(SINT[x.type], x) < 0


def power_of_2(k):
    """2^k as f64, k an I64 in -1022 to 1023."""
    return bits("F64", (k + 1023) << 52)


def scale(x, k):
    """x * 2^k, rounded once where it is subnormal; k an I64 in +-2040."""
    half = k >> 1
    return x * power_of_2(half) * power_of_2(k - half)


def split(x):
    """x = 2^k * m, m from sqrt(1/2) to sqrt(2): k (I64), m. x is above 0."""
    tiny = x < d("0x1p-1022")
    u = bits("I64", select(tiny, x * d("0x1p54"), x))
    k = (u - 0x3fe6a09e667f3bcd) >> 52
    m = bits("F64", u - (k << 52))
    return k - select(tiny, lit("I64", 54), lit("I64", 0)), m


# -- exp and its kin --------------------------------------------------------

def reduce_exp(x):
    """x = k * ln 2 + h + l, k whole, |h| below 0.347."""
    c1, c2 = pair(LN2)
    k = nearest(x * d(LOG2_E[0]))
    h, l = two_sum(fma(-k, c1, x), -(k * c2))
    return k, h, l


def exp_parts(h, l):
    """cosh(h + l) = 1 + c, sinh(h + l) = h + s: c and s."""
    z = h * h
    c = fma(z, poly(EXP_EVEN, z), h * l)
    s = fma(h * z, poly(EXP_ODD, z), fma(l, c, l))
    return c, s


def exp_of(k, h, l):
    """2^k * e^(h + l)."""
    c, s = exp_parts(h, l)
    high_, e = quick_sum(d(1.0), h)
    return scale(high_ + (e + (c + s)), cast("I64", k))


def clamp(x, size):
    return low(high(x, -size), size)


def exp_64(x):
    k, h, l = reduce_exp(clamp(x, 800.0))
    return select(is_nan(x), x, exp_of(k, h, l))


def exp2_64(x):
    v = clamp(x, 1100.0)
    k = nearest(v)
    f = v - k
    c1, c2 = pair(LN2_WHOLE)
    h, l = two_product(f, c1)
    return select(is_nan(x), x, exp_of(k, h, fma(f, c2, l)))


def exp_32_of(power, r):
    """power * e^r in f64, for f32."""
    z = r * r
    c = z * poly(EXP_EVEN_32, z)
    s = fma(r * z, poly(EXP_ODD_32, z), r)
    return (1.0 + (c + s)) * power


def nearest_small(v):
    """nearest(v), v far below 2^51, and 2 to its power, without conversions:
    1.5 * 2^52 and v round to an integer, whose bits are the last ones."""
    moved = v + d("0x1.8p52")
    last = bits("I64", moved) + (1023 - 0x4338000000000000)
    return moved - d("0x1.8p52"), bits("F64", last << 52)


def exp_32(x):
    v = cast("F64", clamp(x, 200.0))
    k, power = nearest_small(v * d(LOG2_E[0]))
    r = fma(-k, d(LN2_WHOLE[0]), v)
    return select(is_nan(x), x, cast("F32", exp_32_of(power, r)))


def exp2_32(x):
    v = cast("F64", clamp(x, 200.0))
    k, power = nearest_small(v)
    r = (v - k) * d(LN2_WHOLE[0])
    return select(is_nan(x), x, cast("F32", exp_32_of(power, r)))


def hyperbolic_64(a):
    """Of a >= 0, up to 800: k, then e^r and e^-r as pairs, the latter times
    2^-2k, and twice the sinh of r, for a = k * ln 2 + r."""
    k, h, l = reduce_exp(a)
    c, s = exp_parts(h, l)
    ph, pe = quick_sum(d(1.0), h)
    nh, ne = quick_sum(d(1.0), -h)
    n = cast("I64", k)
    small = power_of_2(-2 * low(n, lit("I64", 200)))
    return (n, ph, pe + (c + s), nh * small, (ne + (c - s)) * small,
            2.0 * h, 2.0 * s)


def sinh_pair(parts):
    n, ph, pl, nh, nl, sh, sl = parts
    h, e = two_sum(ph, -nh)
    near = n.equals(0)
    return select(near, sh, h), select(near, sl, e + (pl - nl))


def cosh_pair(parts):
    _, ph, pl, nh, nl, _, _ = parts
    h, e = two_sum(ph, nh)
    return h, e + (pl + nl)


def sinh_64(x):
    parts = hyperbolic_64(low(absolute(x), 800.0))
    h, l = sinh_pair(parts)
    return select(is_nan(x), x,
                  with_sign(scale(h + l, parts[0] - 1), sign_bits(x)))


def cosh_64(x):
    parts = hyperbolic_64(low(absolute(x), 800.0))
    h, l = cosh_pair(parts)
    return select(is_nan(x), x, scale(h + l, parts[0] - 1))


def tanh_64(x):
    parts = hyperbolic_64(low(absolute(x), 40.0))
    q, e = quotient(*quick_sum(*sinh_pair(parts)),
                    *quick_sum(*cosh_pair(parts)))
    return select(is_nan(x), x, with_sign(q + e, sign_bits(x)))


def hyperbolic_32(a):
    """2 sinh and 2 cosh of a >= 0, up to 200, in f64."""
    k = nearest(a * d(LOG2_E[0]))
    r = fma(-k, d(LN2_WHOLE[0]), a)
    z = r * r
    c = fma(z, poly(EXP_EVEN_32, z), 1.0)
    s = fma(r * z, poly(EXP_ODD_32, z), r)
    n = cast("I64", k)
    up, down = power_of_2(n), power_of_2(-n)
    p, m = (c + s) * up, (c - s) * down
    return select(n.equals(0), 2.0 * s, p - m), p + m


def odd_32(x, limit, f):
    v = f(low(cast("F64", absolute(x)), limit))
    return select(is_nan(x), x, with_sign(cast("F32", v), sign_bits(x)))


def sinh_32(x):
    return odd_32(x, 200.0, lambda a: 0.5 * hyperbolic_32(a)[0])


def tanh_32(x):
    def f(a):
        s, c = hyperbolic_32(a)
        return s / c
    return odd_32(x, 40.0, f)


def cosh_32(x):
    _, c = hyperbolic_32(low(cast("F64", absolute(x)), 200.0))
    return select(is_nan(x), x, cast("F32", 0.5 * c))


# -- log and pow ------------------------------------------------------------

def log_ends(x, result):
    """What a logarithm is where it is none of a number above 0."""
    zero = lit(x.type, 0.0)
    result = select(x.equals(zero), lit(x.type, -INF), result)
    result = select(x < zero, lit(x.type, NAN), result)
    return select(is_nan(x) | x.equals(lit(x.type, INF)), x, result)


def log_ratio(m):
    """s + e = (m - 1) / (m + 1)."""
    f = m - 1.0
    dh = m + 1.0
    s = f / dh
    return s, (fma(-s, dh, f) - s * (m - (dh - 1.0))) / dh


def log_parts(m):
    """log(m) = h + l."""
    s, e = log_ratio(m)
    z = s * s
    return 2.0 * s, fma(s * z, poly(LOG, z), 2.0 * e)


def log_64(x):
    k, m = split(x)
    h, l = log_parts(m)
    n = cast("F64", k)
    c1, c2 = pair(LN2)
    a, e = two_sum(n * c1, h)
    return log_ends(x, a + (e + fma(n, c2, l)))


def log2_64(x):
    k, m = split(x)
    h, l = log_parts(m)
    c1, c2 = pair(LOG2_E)
    p, e = two_product(h, c1)
    a, f = two_sum(cast("F64", k), p)
    return log_ends(x, a + (f + fma(l, c1, fma(h, c2, e))))


def log_32_of(m):
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return fma(s * z, poly(LOG_32, z), 2.0 * s)


def log_32(x):
    k, m = split(cast("F64", x))
    v = fma(cast("F64", k), d(LN2_WHOLE[0]), log_32_of(m))
    return log_ends(x, cast("F32", v))


def log2_32(x):
    k, m = split(cast("F64", x))
    v = fma(log_32_of(m), d(LOG2_E[0]), cast("F64", k))
    return log_ends(x, cast("F32", v))


def log_long(x):
    """log(x) = h + l to some 67 bits. x is above 0 and finite."""
    k, m = split(x)
    s, e = log_ratio(m)
    zh, zl = two_product(s, s)
    zl = fma(2.0 * s, e, zl)
    th, tl = two_product(s, zh)
    tl = tl + fma(s, zl, e * zh)
    c1, c2 = pair(TWO_THIRDS)
    uh, ul = two_product(th, c1)
    ul = fma(th, c2, fma(tl, c1, ul))
    wh, wl = two_product(th, zh)
    wl = wl + fma(th, zl, tl * zh)
    c1, c2 = pair(TWO_FIFTHS)
    vh, vl = two_product(wh, c1)
    vl = fma(wh, c2, fma(wl, c1, vl)) + wh * zh * poly(LOG_TAIL[1:], zh)
    h, l = quick_sum(2.0 * s, uh)
    h, t = quick_sum(h, vh)
    l = (l + t) + (ul + fma(2.0, e, vl))
    n = cast("F64", k)
    b1, b2 = pair(LN2)
    a, f = two_sum(n * b1, h)
    return quick_sum(a, f + fma(n, b2, l))


def pow_ends(x, y, size):
    """pow(x, y), `size` being |x|^y for every ordinary pair."""
    t = x.type
    zero, one, inf = lit(t, 0.0), lit(t, 1.0), lit(t, INF)
    a = absolute(x)
    whole = unary("TRUNC", y).equals(y)
    half = y * 0.5
    odd = whole & unary("TRUNC", half).differs(half) & (absolute(y) < inf)
    ends = a.equals(zero) | a.equals(inf) | absolute(y).equals(inf)
    size = select(ends, select((a > one).differs(y > zero), zero, inf), size)
    size = select(a.equals(one), one, size)
    signs = select(odd, sign_bits(x), lit(UINT[t], 0))
    result = with_sign(size, signs)
    no_root = (x < zero) & (a < inf) & ~whole & (absolute(y) < inf)
    result = select(no_root | is_nan(x) | is_nan(y), lit(t, NAN), result)
    return select(y.equals(zero) | x.equals(one), one, result)


def pow_64(x, y):
    a = absolute(x)
    ok = (a > 0.0) & (a < INF)
    h, l = log_long(select(ok, a, d(1.0)))
    p = y * h
    e = fma(y, h, -p) + y * l
    inside = absolute(p) < 800.0
    v = select(inside, p, clamp(p, 800.0))
    k, rh, rl = reduce_exp(v)
    rh, rl = two_sum(rh, rl + select(inside, e, d(0.0)))
    return pow_ends(x, y, exp_of(k, rh, rl))


def pow_32(x, y):
    a = cast("F64", absolute(x))
    ok = (a > 0.0) & (a < INF)
    k, m = split(select(ok, a, d(1.0)))
    v = fma(cast("F64", k), d(LN2_WHOLE[0]), log_32_of(m))
    p = clamp(cast("F64", y) * v, 200.0)
    n = nearest(p * d(LOG2_E[0]))
    size = exp_32_of(power_of_2(cast("I64", n)), fma(-n, d(LN2_WHOLE[0]), p))
    return pow_ends(x, y, cast("F32", size))


# -- sin, cos and tan -------------------------------------------------------

def words_from(words, j, count):
    """words[j] to words[j + count - 1], j a U64: one bit of it at a time."""
    now = [lit("U64", w) for w in words]
    step = 1
    while step * 2 < len(words):
        step *= 2
    while step >= 1:
        bit = (j & step).differs(0)
        need = count + step - 1
        pad = now + [lit("U64", 0)] * (need + step)
        now = [select(bit, pad[i + step], pad[i]) if i < len(now) else pad[i]
               for i in range(need)]
        step //= 2
    return now[:count]


def turned(x, words, count):
    """The fraction of x * 2/pi / 4 as words of 64 bits, |x| beyond 2^19.

    `words` is 2/pi behind one word of zeroes.
    """
    if x.type == "F32":
        u = cast("U64", bits("U32", absolute(x)))
        e, m = u >> 23, (u & 0x7fffff) | 0x800000
        start = e - (150 + 2 - 64)
    else:
        u = bits("U64", absolute(x))
        e, m = u >> 52, (u & ((1 << 52) - 1)) | (1 << 52)
        start = e - (1075 + 2 - 64)
    by = cast("U32", start) & 63
    t = words_from(words, start >> 6, count + 1)
    v = [(t[i] << by) | ((t[i + 1] >> 1) >> (63 - by)) for i in range(count)]
    # m * v, of which only what is behind the point is kept.
    result, carry = [], None
    for i in reversed(range(count)):
        p = m * v[i]
        if carry is not None:
            p = p + carry
            over = select(p < carry, lit("U64", 1), lit("U64", 0))
            carry = mul_high(m, v[i]) + over
        else:
            carry = mul_high(m, v[i])
        result.insert(0, p)
    return result


def quarter(p):
    """The nearest quarter of a turn (I64) and what is left (U64)."""
    q = (p + (1 << 61)) >> 62
    return bits("I64", q), p - (q << 62)


def reduce_far_64(x):
    p = turned(x, (0,) + TWO_OVER_PI_BITS, 3)
    q, g = quarter(p[0])
    down = bits("I64", g) < 0
    mask = select(down, lit("U64", -1), lit("U64", 0))
    g, g1, g2 = g ^ mask, p[1] ^ mask, p[2] ^ mask
    zeroes = low(unary("CLZ", g), lit("U32", 63))
    rest = 63 - zeroes
    n0 = (g << zeroes) | ((g1 >> 1) >> rest)
    n1 = (g1 << zeroes) | ((g2 >> 1) >> rest)
    unit = power_of_2(lit("I64", -51) - cast("I64", zeroes))
    h = cast("F64", n0 >> 11) * unit
    l = cast("F64", (n0 << 53) | (n1 >> 11)) * (unit * d("0x1p-64"))
    c1, c2 = pair(HALF_PI)
    r, e = two_product(h, c1)
    r, e = quick_sum(r, e + fma(h, c2, l * c1))
    signs = sign_bits(x) ^ (mask & (1 << 63))
    return (select(is_negative(x), -q, q), flip(r, signs), flip(e, signs))


def reduce_64(x):
    """x = q * pi/2 + h + l: q (I64), h, l; |h| below 0.7855."""
    near = absolute(x) < 1000000.0
    v = select(near, x, d(0.0))
    k = nearest(v * d(TWO_OVER_PI))
    c1, c2, c3 = pair(HALF_PI, 3)
    p, e = two_product(k, c2)
    h, l = two_sum(fma(-k, c1, v), -p)
    h, l = quick_sum(h, fma(-k, c3, l - e))
    q, rh, rl = Var(cast("I64", k)), Var(h), Var(l)
    with when(~near):
        far = reduce_far_64(x)
        q.set(far[0])
        rh.set(far[1])
        rl.set(far[2])
    return q.get(), rh.get(), rl.get()


def sin_pair(h, l, z):
    return quick_sum(h, fma(h * z, poly(SIN, z), fma(l * z, -0.5, l)))


def cos_pair(h, l, z):
    half = 0.5 * z
    w = 1.0 - half
    e = (1.0 - w) - half
    lost = fma(h, h, -z)
    e = e + fma(z * z, poly(COS, z), -fma(h, l, 0.5 * lost))
    return quick_sum(w, e)


def sin_or_cos(x, turn, reduce, kernels):
    """sin(x + turn * pi/2); NaN for what is not finite."""
    q, h, l = reduce(x)
    q = q + turn if turn else q
    s, c = kernels(h, l)
    v = select((q & 1).differs(0), c, s)
    v = select((q & 2).differs(0), -v, v)
    return v


def kernels_64(h, l):
    z = h * h
    return sin_pair(h, l, z)[0], cos_pair(h, l, z)[0]


def finite_only(x, v):
    return select(absolute(x) < INF, v, lit(x.type, NAN))


def sin_64(x):
    v = sin_or_cos(x, 0, reduce_64, kernels_64)
    return finite_only(x, select(absolute(x) < d("0x1p-27"), x, v))


def cos_64(x):
    return finite_only(x, sin_or_cos(x, 1, reduce_64, kernels_64))


def tan_64(x):
    q, h, l = reduce_64(x)
    z = h * h
    s, c = sin_pair(h, l, z), cos_pair(h, l, z)
    odd = (q & 1).differs(0)
    nh, nl = select(odd, c[0], s[0]), select(odd, c[1], s[1])
    dh, dl = select(odd, s[0], c[0]), select(odd, s[1], c[1])
    v, e = quotient(nh, nl, dh, dl)
    v = v + e
    v = select(odd, -v, v)
    return finite_only(x, select(absolute(x) < d("0x1p-27"), x, v))


def reduce_far_32(x):
    p = turned(x, (0,) + TWO_OVER_PI_BITS[:4], 2)
    q, g = quarter(p[0])
    r = cast("F64", bits("I64", g)) * d("0x1.921fb54442d18p-62")
    signs = cast("U64", sign_bits(x)) << 32
    return select(is_negative(x), -q, q), flip(r, signs)


def reduce_32(x):
    near = absolute(x) < lit("F32", 134217728.0)
    v = cast("F64", select(near, x, lit("F32", 0.0)))
    k = nearest(v * d(TWO_OVER_PI))
    c1, c2 = pair(HALF_PI)
    q, r = Var(cast("I64", k)), Var(fma(-k, c2, fma(-k, c1, v)))
    with when(~near):
        far = reduce_far_32(x)
        q.set(far[0])
        r.set(far[1])
    return q.get(), r.get(), None


def kernels_32(r, _):
    z = r * r
    s = fma(r * z, poly(SIN_32, z), r)
    c = fma(z * z, poly(COS_32, z), fma(z, -0.5, 1.0))
    return s, c


def sin_32(x):
    v = cast("F32", sin_or_cos(x, 0, reduce_32, kernels_32))
    return finite_only(x, select(absolute(x) < lit("F32", 2.0**-13), x, v))


def cos_32(x):
    return finite_only(x, cast("F32", sin_or_cos(x, 1, reduce_32, kernels_32)))


def tan_32(x):
    q, r, _ = reduce_32(x)
    s, c = kernels_32(r, None)
    odd = (q & 1).differs(0)
    v = select(odd, -c, s) / select(odd, s, c)
    v = cast("F32", v)
    return finite_only(x, select(absolute(x) < lit("F32", 2.0**-14), x, v))


# -- their inverses ---------------------------------------------------------

def arc_parts_64(a):
    """Of a in 0 to 1: whether above 0.5, and asin of a or of
    sqrt((1 - a) / 2) = s as s + l."""
    far = a > 0.5
    z = select(far, (1.0 - a) * 0.5, a * a)
    s = select(far, sqrt(z), a)
    lost = select(far & (z > 0.0), fma(-s, s, z) / (2.0 * s), d(0.0))
    return far, s, fma(s * z, poly(ASIN, z), lost)


def from_corner(corner, s, l):
    """corner - s - l, the corner a pair."""
    h, e = quick_sum(d(corner[0]), -s)
    return h + (e - (l - d(corner[1])))


PI = ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53")


def asin_64(x):
    far, s, l = arc_parts_64(absolute(x))
    v = select(far, from_corner(HALF_PI, 2.0 * s, 2.0 * l), s + l)
    v = with_sign(v, sign_bits(x))
    return select(absolute(x) <= 1.0, v, d(NAN))


def acos_64(x):
    far, s, l = arc_parts_64(absolute(x))
    signs = sign_bits(x)
    near = from_corner(HALF_PI, flip(s, signs), flip(l, signs))
    s, l = 2.0 * s, 2.0 * l
    v = select(is_negative(x), from_corner(PI, s, l), s + l)
    return select(absolute(x) <= 1.0, select(far, v, near), d(NAN))


def arc_parts_32(x):
    a = cast("F64", absolute(x))
    far = a > 0.5
    z = select(far, (1.0 - a) * 0.5, a * a)
    s = select(far, sqrt(z), a)
    return far, fma(s * z, poly(ASIN_32, z), s)


def asin_32(x):
    far, v = arc_parts_32(x)
    v = cast("F32", select(far, fma(v, -2.0, d(HALF_PI[0])), v))
    v = with_sign(v, sign_bits(x))
    return select(absolute(x) <= 1.0, v, lit("F32", NAN))


def acos_32(x):
    far, v = arc_parts_32(x)
    negative = is_negative(x)
    near = d(HALF_PI[0]) - select(negative, -v, v)
    v = 2.0 * v
    v = select(far, select(negative, d(PI[0]) - v, v), near)
    return select(absolute(x) <= 1.0, cast("F32", v), lit("F32", NAN))


# Eighths of a turn: k * pi / 4.
EIGHTHS = ((0.0, 0.0), ("0x1.921fb54442d18p-1", "0x1.1a62633145c07p-55"),
           HALF_PI, ("0x1.2d97c7f3321d2p+1", "0x1.a79394c9e8a0ap-54"), PI)


def arc_tangent(num, den, left, long_):
    """The angle of (den, num), both >= 0 and finite, den above 0 if num is;
    `left`: of (-den, num). As f64; with a tail only if `long_`."""
    steep = num > den
    n, m = select(steep, den, num), select(steep, num, den)
    middle = n > d("0x1.a827999fcef32p-2") * m
    if long_:
        nh, nl = two_sum(n, -m)
        dh, dl = two_sum(n, m)
        nh, nl = select(middle, nh, n), select(middle, nl, d(0.0))
        dh, dl = select(middle, dh, m), select(middle, dl, d(0.0))
        t, e = quotient(nh, nl, dh, dl)
        z = t * t
        tail = fma(t * z, poly(ATAN, z), fma(-e, z, e))
    else:
        t = select(middle, n - m, n) / select(middle, n + m, m)
        z = t * t
        tail = t * z * poly(ATAN_32, z)
    # The corner it is counted from: 0, 1 if middle; 2 or 1 if steep, less;
    # left: 4 minus that.
    def corner(part):
        e = [d(c[part]) for c in EIGHTHS]
        near = select(middle, e[1], e[0])
        up = select(middle, e[1], e[2])
        near_left = select(middle, e[3], e[4])
        up_left = select(middle, e[3], e[2])
        return select(left, select(steep, up_left, near_left),
                      select(steep, up, near))
    back = steep.differs(left)
    t, tail = select(back, -t, t), select(back, -tail, tail)
    if not long_:
        return corner(0) + (t + tail)
    h, e = two_sum(corner(0), t)
    return h + (e + (tail + corner(1)))


def atan_64(x):
    a = low(absolute(x), d("0x1p60"))
    v = arc_tangent(a, d(1.0), lit("BOOL", 0), True)
    return select(is_nan(x), x, with_sign(v, sign_bits(x)))


def atan_32(x):
    a = low(cast("F64", absolute(x)), d("0x1p60"))
    v = arc_tangent(a, d(1.0), lit("BOOL", 0), False)
    return select(is_nan(x), x, with_sign(cast("F32", v), sign_bits(x)))


def atan2_sides(y, x):
    """|y| and |x| as f64 with the same angle, both finite, not both 0."""
    ay, ax = absolute(y), absolute(x)
    # Two zeroes lie on the axis, two infinities on the diagonal.
    flat = ay.equals(lit(y.type, 0.0))
    y_inf, x_inf = ay.equals(lit(y.type, INF)), ax.equals(lit(y.type, INF))
    n, m = cast("F64", ay), cast("F64", ax)
    n = select(y_inf, d(1.0), select(x_inf, d(0.0), n))
    m = select(x_inf | flat, d(1.0), select(y_inf, d(0.0), m))
    return n, m


def atan2_ends(y, x, v):
    v = with_sign(v, sign_bits(y))
    return select(is_nan(y) | is_nan(x), lit(y.type, NAN), v)


def atan2_64(y, x):
    n, m = atan2_sides(y, x)
    most = high(n, m)
    by = select(most > d("0x1p900"), d("0x1p-200"),
                select(most < d("0x1p-500"), d("0x1p400"), d(1.0)))
    v = arc_tangent(n * by, m * by, is_negative(x), True)
    return atan2_ends(y, x, v)


def atan2_32(y, x):
    n, m = atan2_sides(y, x)
    v = arc_tangent(n, m, is_negative(x), False)
    return atan2_ends(y, x, cast("F32", v))


# -- inverse_sqrt and rem ---------------------------------------------------

def inverse_sqrt(t, limit, up, back):
    def f(x):
        tiny = x < lit(t, limit)
        v = select(tiny, x * lit(t, up), x)
        s = sqrt(v)
        y = 1.0 / s
        lost = fma(-s, s, v)
        e = fma(-y, s, 1.0)
        better = fma(y, e - (lost * 0.5) * (y * y), y)
        better = better * select(tiny, lit(t, back), lit(t, 1.0))
        plain = (x > 0.0) & (x < INF)
        return select(plain, better, y)
    return f


def rem(t):
    u, fraction, top = UINT[t], FRACTION[t], TOP[t]
    space = 63 - fraction

    def f(x, y):
        ux, uy = (cast("U64", bits(u, absolute(v))) for v in (x, y))

        def parts(v):
            e = v >> fraction
            m = v & ((1 << fraction) - 1)
            normal = e > 0
            return (select(normal, e, lit("U64", 1)),
                    select(normal, m | (1 << fraction), m))
        (ex, mx), (ey, my) = parts(ux), parts(uy)
        plain = (ux > uy) & (uy > 0) & (absolute(x) < INF) & \
            (absolute(y) < INF)
        r = Var(mx)
        left = Var(select(plain, ex - ey, lit("U64", 0)))
        with when(plain):
            r.set(mx % my)
        with loop(lambda: left.get() > 0):
            now = left.get()
            by = low(now, lit("U64", space))
            r.set((r.get() << cast("U32", by)) % my)
            left.set(now - by)
        rest = r.get()
        lead = cast("U64", unary("CLZ", rest)) - (63 - fraction)
        by = low(lead, ey - 1)
        made = (rest << cast("U32", by)) + (((ey - by) - 1) << fraction)
        made = select(rest.equals(0), lit("U64", 0), made)
        v = bits(t, cast(u, made))
        v = select(plain, v, select(ux.equals(uy), lit(t, 0.0), absolute(x)))
        v = with_sign(v, sign_bits(x))
        bad = is_nan(x) | is_nan(y) | uy.equals(0) | \
            absolute(x).equals(lit(t, INF))
        return select(bad, lit(t, NAN), v)
    return f


def functions():
    """All of them, in the order of the library."""
    one = {"EXP": (exp_32, exp_64), "EXP2": (exp2_32, exp2_64),
           "LOG": (log_32, log_64), "LOG2": (log2_32, log2_64),
           "SIN": (sin_32, sin_64), "COS": (cos_32, cos_64),
           "TAN": (tan_32, tan_64), "ASIN": (asin_32, asin_64),
           "ACOS": (acos_32, acos_64), "ATAN": (atan_32, atan_64),
           "SINH": (sinh_32, sinh_64), "COSH": (cosh_32, cosh_64),
           "TANH": (tanh_32, tanh_64),
           "INVERSE_SQRT": (
               inverse_sqrt("F32", "0x1p-100", "0x1p48", "0x1p24"),
               inverse_sqrt("F64", "0x1p-960", "0x1p108", "0x1p54"))}
    two = {"REM": (rem("F32"), rem("F64")), "POW": (pow_32, pow_64),
           "ATAN2": (atan2_32, atan2_64)}
    made = []
    for kind, table, count in (("UNARY", one, 1), ("BINARY", two, 2)):
        for op, traces in table.items():
            for type_, trace in zip(("F32", "F64"), traces):
                f = Function(f"strict_{op.lower()}_{type_.lower()}", type_,
                             trace, count)
                f.kind, f.op = kind, op
                made.append(f)
    return made
