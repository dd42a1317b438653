#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: what PyTorch takes for the jobs of bench_library that have no library
of their own in the toolkit: softmax, layer norm, attention, convolution (which
is cuDNN's). Same timing, same names, the same JSON.

    bench_library_torch.py [LOG]     26: 2^26 elements

Products of f32 are of f32: no TF32, unless a row says so. Where PyTorch has
several ways, each has a row, and the fastest one's figure stands under the
name that bench_library has. `how` says which it was, and of f32 how far from
the exact result.
"""
import json
import sys

try:
    import torch
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"PyTorch: {error}", file=sys.stderr)
    sys.exit(77)

ROUNDS, RUNS = 5, 10
# How PyTorch's ways of attention multiply f32, TF32 being off. The second is
# CUTLASS's OpMultiplyAddFastF32.
WAYS = {
    SDPBackend.MATH: " without tensor cores",
    SDPBackend.EFFICIENT_ATTENTION: " by three TF32 products of parts each",
    SDPBackend.FLASH_ATTENTION: "",
    SDPBackend.CUDNN_ATTENTION: "",
}
g_rows = []


def tell(name, unit, value, how):
    g_rows.append({"name": name, "unit": unit, "value": value, "how": how})


def spent(run):
    """The best of several rounds, in nanoseconds for one run."""
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    for _ in range(3):  # cuDNN tries its algorithms in the first one
        run()
    least = float("inf")
    for _ in range(ROUNDS):
        start.record()
        for _ in range(RUNS):
            run()
        end.record()
        end.synchronize()
        least = min(least, start.elapsed_time(end))
    return least * 1e6 / RUNS


def numbers(*shape, dtype=torch.float32):
    """Numbers from -1 to 1, the same ones each time."""
    seeded = torch.Generator("cuda").manual_seed(1)
    return (torch.rand(shape, device="cuda", generator=seeded) * 2 - 1).to(
        dtype)


def bench_rows(log):
    """Rows of x, read and written once."""
    x = numbers(1 << log)
    for width in (1024, 2048, 4096, 8192):
        rows = x.view(-1, width)
        rate = 8 * x.numel() / spent(lambda: torch.softmax(rows, 1))
        for accuracy in ("", " to 67 ULP"):
            tell(f"softmax{accuracy} of {width} 2^{log}", "GB/s", rate,
                 "torch.softmax, expf of CUDA: 2 ULP")
        ones = torch.ones(width, device="cuda")
        rate = 8 * x.numel() / spent(
            lambda: functional.layer_norm(rows, (width,), ones, ones, 1e-5))
        tell(f"normalize of {width} 2^{log}", "GB/s", rate,
             "torch.nn.functional.layer_norm")


def distance(have, want):
    """The largest difference, in units in the last place of f32 at the size
    of the values."""
    size = want.abs().max().item()
    return (have.double() - want).abs().max().item() / size * 2.0 ** 24


def exact_attention(q, k, v):
    scores = q.double() @ k.double().transpose(-1, -2) / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v.double()


def bench_attention(dtype, causal, name):
    """16 heads of 4,096 rows of 64 numbers."""
    heads, n, d = 16, 4096, 64
    q, k, v = (numbers(3, heads, n, d, dtype=dtype)[i:i + 1] for i in range(3))
    flops = (2 if causal else 4) * n * n * d * heads
    ways = []
    for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION,
                    SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        if backend == SDPBackend.MATH and causal:
            continue  # it makes all products, seen or not

        def run():
            return functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal)
        try:
            with sdpa_kernel(backend):
                rate = flops / spent(run)
                how = f"scaled_dot_product_attention, {backend.name}"
                if dtype == torch.float32:
                    how += WAYS[backend]
                    far = distance(run()[:, :1], exact_attention(
                        q[:, :1], k[:, :1], v[:, :1]))
                    how += f", {far:.1f} ULP"
        except RuntimeError as error:
            print(f"{name} by {backend.name}: skipped: "
                  f"{str(error).splitlines()[0]}", file=sys.stderr)
            continue
        ways.append((rate, how))
        tell(f"{name}, {backend.name}", "GFLOP/s", rate, how)
    if ways:
        rate, how = max(ways)
        tell(name, "GFLOP/s", rate, how)
    return max(ways, default=None)


def bench_attentions():
    shape = "of 4096 x 64, 16 heads"
    best = bench_attention(torch.float32, False, f"attention f32 {shape}")
    if best:
        tell(f"attention f32 to 67 ULP {shape}", "GFLOP/s", *best)
    bench_attention(torch.float16, True,
                    "attention f16 to 67 ULP, causal, of 4096 x 64, 16 heads")


def bench_convolution():
    """64 channels of 256 x 256 to as many by filters of 3 x 3."""
    side, channels = 256, 64
    x = numbers(1, channels, side, side)
    filters = numbers(channels, channels, 3, 3)
    flops = 2 * 9 * side * side * channels * channels
    name = f"convolution f32 3 x 3, {channels} channels of {side} x {side}"
    version = torch.backends.cudnn.version()
    exact = functional.conv2d(x.double(), filters.double(), padding=1)
    for tf32 in (False, True):
        torch.backends.cudnn.allow_tf32 = tf32

        def run():
            return functional.conv2d(x, filters, padding=1)
        rate = flops / spent(run)
        how = (f"conv2d, cuDNN {version}, {'TF32' if tf32 else 'f32'}, the "
               f"fastest it found, {distance(run(), exact):.1f} ULP")
        tell(name + (", TF32" if tf32 else ""), "GFLOP/s", rate, how)
    torch.backends.cudnn.allow_tf32 = False


def main():
    log = int(sys.argv[1]) if len(sys.argv) > 1 else 26
    if not torch.cuda.is_available():
        print("PyTorch has no CUDA device", file=sys.stderr)
        sys.exit(77)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with torch.no_grad():
        bench_rows(log)
        bench_attentions()
        bench_convolution()
    print(json.dumps({"device": "cuda:0", "benches": g_rows}))


if __name__ == "__main__":
    main()
