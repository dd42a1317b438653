#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the coefficients that tools/strict_math.py holds.

Polynomials through the Chebyshev points of an interval, by mpmath at 60
digits: within a factor of two of the best. Each line: the name, the largest
relative error left (of the whole function, as a power of two) and the
coefficients, lowest first. Run by hand: nothing in the build needs it.
"""
import mpmath as mp

mp.mp.dps = 60


def fit(f, low, high, degree):
    """Coefficients of the polynomial that meets f in degree + 1 points."""
    n = degree + 1
    points = [(low + high) / 2 + (high - low) / 2 *
              mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    matrix = mp.matrix(n, n)
    right = mp.matrix(n, 1)
    for i, x in enumerate(points):
        for j in range(n):
            matrix[i, j] = x**j
        right[i] = f(x)
    return [float(c) for c in mp.lu_solve(matrix, right)]


def tell(name, f, low, high, degree, share):
    """share(x): what part of the whole result the polynomial's value is."""
    low, high = mp.mpf(low), mp.mpf(high)
    c = fit(f, low, high, degree)
    worst = mp.mpf(0)
    for i in range(1, 400):
        x = low + (high - low) * i / 400
        value = sum(mp.mpf(k) * x**j for j, k in enumerate(c))
        worst = max(worst, abs((value - f(x)) * share(x)))
    print(f"{name} = [  # 2^{float(mp.log(worst, 2)):.1f}")
    for k in c:
        print(f'    "{k.hex()}",')
    print("]")


def series(f, order, small):
    """f by its Taylor series where it would cancel."""
    terms = small
    def g(z):
        if z < mp.mpf("1e-3"):
            return sum(c * z**i for i, c in enumerate(terms))
        return f(z)
    return g


def main():
    r = mp.log(2) / 2 * mp.mpf("1.0001")
    rr = r * r
    fac = mp.factorial
    cosh = series(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, 0,
                  [1 / fac(2 * i + 2) for i in range(12)])
    sinh = series(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0,
                  [1 / fac(2 * i + 3) for i in range(12)])
    for bits, dc, ds in (("", 6, 6), ("_32", 3, 3)):
        tell("EXP_EVEN" + bits, cosh, 0, rr, dc, lambda z: z)
        tell("EXP_ODD" + bits, sinh, 0, rr, ds, lambda z: z)
    s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0001")
    atanh = series(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, 0,
                   [mp.mpf(2) / (2 * i + 3) for i in range(20)])
    for bits, d in (("", 8), ("_32", 4)):
        tell("LOG" + bits, atanh, 0, s * s, d, lambda z: z / 2)
    tail = series(lambda z: (atanh(z) - mp.mpf(2) / 3) / z, 0,
                  [mp.mpf(2) / (2 * i + 5) for i in range(20)])
    tell("LOG_TAIL", tail, 0, s * s, 9, lambda z: z * z / 2)
    q = (mp.pi / 4 * mp.mpf("1.0001"))**2
    sin = series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0,
                 [(-1)**(i + 1) / fac(2 * i + 3) for i in range(12)])
    cos = series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, 0,
                 [(-1)**i / fac(2 * i + 4) for i in range(12)])
    for bits, d in (("", 6), ("_32", 4)):
        tell("SIN" + bits, sin, 0, q, d, lambda z: z)
        tell("COS" + bits, cos, 0, q, d, lambda z: z * z)
    asin = series(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0,
                  [fac(2 * i) / (4**i * fac(i)**2 * (2 * i + 1))
                   for i in range(1, 20)])
    for bits, d in (("", 13), ("_32", 7)):
        tell("ASIN" + bits, asin, 0, mp.mpf("0.2501"), d, lambda z: z)
    a = (mp.sqrt(2) - 1)**2 * mp.mpf("1.001")
    atan = series(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0,
                  [mp.mpf(-1)**(i + 1) / (2 * i + 3) for i in range(20)])
    for bits, d in (("", 12), ("_32", 6)):
        tell("ATAN" + bits, atan, 0, a, d, lambda z: z)


if __name__ == "__main__":
    main()
