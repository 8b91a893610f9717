"""Fingerprints of torch tensors, exactly as docs/fingerprint.md defines them.

torch has no unsigned 32-bit arithmetic on every device, so that lanes are int32 whose products wrap
and whose right shifts are masked to be logical; sums are int64 and cut to 32 bits on the host. A
tensor is read in chunks, so that the temporaries stay bounded whatever its size, and each chunk's
results leave the device in one copy. Nothing is written to the tensor, and nothing of autograd,
autocast or the random generators is touched.
"""

import ctypes
import math

import torch

from joulediff import _abi

_CHUNK = {"cpu": 1 << 18}  # elements: in the CPU's cache; elsewhere bounded temporaries
_CHUNK_ELSEWHERE = 1 << 22
SAMPLE_LIMIT = 512

_CODES = {
    torch.float32: 1, torch.float64: 2, torch.float16: 3, torch.bfloat16: 4,
    torch.int8: 5, torch.int16: 6, torch.int32: 7, torch.int64: 8, torch.uint8: 9, torch.bool: 10,
    torch.complex64: 11, torch.complex128: 12,
}
for _name, _code in (("float8_e4m3fn", 13), ("float8_e5m2", 14)):
    if hasattr(torch, _name):
        _CODES[getattr(torch, _name)] = _code
# Read through a signed type that holds the same value, or the same bits for 64 of them.
_UNSIGNED = {
    getattr(torch, name): (signed, code)
    for name, signed, code in (("uint16", torch.int32, 7), ("uint32", torch.int64, 8),
                               ("uint64", torch.int64, 8))
    if hasattr(torch, name)
}
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _i32(x):
    return x - (1 << 32) if x >= 1 << 31 else x


_M1, _M2, _GOLDEN = _i32(0x85EBCA6B), _i32(0xC2B2AE35), _i32(0x9E3779B1)
_SEEDS = (_i32(0x9E3779B9), _i32(0x7F4A7C15))
_seeds = {}


def _seed(device):
    """[2, 1] int32, one seed a lane."""
    if device not in _seeds:
        _seeds[device] = torch.tensor(_SEEDS, dtype=torch.int32, device=device).reshape(2, 1)
    return _seeds[device]


def _fmix(x):
    """In place; x is an int32 tensor of our own."""
    for shift, factor in ((16, _M1), (13, _M2)):
        x.bitwise_xor_((x >> shift).bitwise_and_((1 << (32 - shift)) - 1)).mul_(factor)
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def _mix32(words):
    """[k, n] int32 -> [k, 2] int64 sums of the lanes."""
    return _fmix(words.unsqueeze(1) ^ _seed(words.device)).sum(-1, dtype=torch.int64)


def _mix64(words):
    """[n] int64 -> [1, 2] int64 sums of the lanes."""
    words = words.contiguous().as_strided(words.shape, (1,))  # one element may have stride 0
    low_high = words.view(torch.int32).reshape(-1, 2)
    low = _fmix(low_high[:, 0] ^ _seed(words.device))
    return _fmix(low.bitwise_xor_(low_high[:, 1] * _GOLDEN)).sum(-1, dtype=torch.int64)[None]


def _bits(values, integer, magnitude, nan):
    """The bits of a float tensor as `integer`, with one zero and one NaN."""
    bits = values.contiguous().view(integer)
    return bits.masked_fill((bits & magnitude) == 0, 0).masked_fill_(torch.isnan(values), nan)


def _real_lanes(x):
    """[n] of a real dtype -> [3, 2]: own, bf16, fp16."""
    single = x.to(torch.float32)
    words = torch.stack([
        _bits(single, torch.int32, 0x7FFFFFFF, 0x7FC00000),
        _bits(single.to(torch.bfloat16), torch.int16, 0x7FFF, 0x7FC0).to(torch.int32) & 0xFFFF,
        _bits(single.to(torch.float16), torch.int16, 0x7FFF, 0x7E00).to(torch.int32) & 0xFFFF,
    ])
    if x.dtype != torch.float64:
        return _mix32(words)
    own = _mix64(_bits(x, torch.int64, 0x7FFFFFFFFFFFFFFF, 0x7FF8000000000000))
    return torch.cat([own, _mix32(words[1:])])


def _chunk_results(x):
    """[n] of a real, integer or boolean dtype -> ([10] int64, [7] float64) on its device."""
    if x.dtype.is_floating_point:
        lanes = _real_lanes(x)
        if x.dtype.itemsize == 1:
            x = x.to(torch.float32)
        finite = torch.isfinite(x)
        counts = [torch.isnan(x).sum(), torch.isposinf(x).sum(), torch.isneginf(x).sum()]
        wide = x.to(torch.float64)
        low = wide.masked_fill(~finite, math.inf).amin()
        high = wide.masked_fill(~finite, -math.inf).amax()
        other = ((wide != low) & (wide != high) & finite).any()
        wide = wide.masked_fill_(~finite, 0) if wide is not x else wide.masked_fill(~finite, 0)
    else:
        words = x.to(torch.int64)
        lanes = torch.cat([_mix64(words), torch.zeros(2, 2, dtype=torch.int64, device=x.device)])
        zero = torch.zeros((), dtype=torch.int64, device=x.device)
        counts = [zero, zero, zero]
        wide = words.to(torch.float64)
        low, high = wide.amin(), wide.amax()
        other = ((wide != low) & (wide != high)).any()
    square = wide * wide
    moments = [wide.sum(), wide.abs().sum(), square.sum(), (square * wide).sum(),
               (square * square).sum(), low, high]
    whole = torch.cat([torch.stack([*counts, other.to(torch.int64)]), lanes.reshape(-1)])
    return whole, torch.stack(moments)


def elements(tensor):
    """The tensor that holds what `tensor` repeats: stride-0 axes at length 1, complex as real pairs.

    None where the elements cannot be read (a meta, sparse or quantised tensor).
    """
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        return None
    x = tensor.detach()
    for axis, (size, stride) in enumerate(zip(x.shape, x.stride(), strict=True)):
        if stride == 0 and size > 1:
            x = x.narrow(axis, 0, 1)
    if x.is_complex():
        x = torch.view_as_real(x.resolve_conj())
    return x.resolve_neg()


def _chunks(x, limit):
    """Flat pieces of at most about `limit` elements, in the order of memory as far as possible."""
    order = sorted(range(x.dim()), key=lambda axis: -x.stride(axis))
    x = x.permute(order)
    if x.is_contiguous():
        yield from x.view(-1).split(limit)
        return
    pending = [x]
    while pending:
        piece = pending.pop()
        if piece.numel() <= limit:
            yield piece.reshape(-1)
            continue
        axis = next(i for i, size in enumerate(piece.shape) if size > 1)
        rows = max(1, limit // (piece.numel() // piece.shape[axis]))
        pending.extend(reversed(piece.split(rows, axis)))


def code(dtype):
    """The format's number for a dtype, 0 where it has none."""
    return _CODES.get(dtype) or _UNSIGNED.get(dtype, (None, 0))[1]


def _flat(x):
    """Its elements one after another, in any order: a view where no others lie between them."""
    reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    return x.as_strided((reach,), (1,)) if reach == x.numel() else x.contiguous()


def fingerprint(tensor, library=None):
    """_abi.Fingerprint of a tensor of any shape, stride, dtype and device.

    library: the recorder, which reads tensors in the host's memory some thirty times as fast. An unreadable
    tensor or an unknown dtype gives dtype 0 and no more.
    """
    result = _abi.Fingerprint()
    number = code(tensor.dtype)
    x = elements(tensor) if number else None
    if x is None:
        return result
    result.dtype, result.count = number, x.numel()
    if x.numel() == 0:
        return result
    if tensor.dtype in _UNSIGNED:
        x = x.to(_UNSIGNED[tensor.dtype][0])
    elif library is not None and x.device.type == "cpu":
        flat = _flat(x)
        library.fingerprint_of(ctypes.byref(result), flat.data_ptr(), flat.nbytes)
        return result
    limit = _CHUNK.get(x.device.type, _CHUNK_ELSEWHERE)
    parts = [_chunk_results(piece) for piece in _chunks(x, limit)]
    whole = torch.stack([w for w, _ in parts]).cpu().tolist()
    moments = torch.stack([m for _, m in parts]).cpu().tolist()

    sums = [sum(column) for column in zip(*whole, strict=True)]
    result.nan, result.positive_infinity, result.negative_infinity = sums[:3]
    for lanes, at in ((result.own, 4), (result.bf16, 6), (result.fp16, 8)):
        lanes[0], lanes[1] = sums[at] & 0xFFFFFFFF, sums[at + 1] & 0xFFFFFFFF
    finite = result.count - sum(sums[:3])
    if finite == 0:
        return result
    columns = list(zip(*moments, strict=True))
    mean, mean_abs, square, cube, fourth = (math.fsum(c) / finite if all(map(math.isfinite, c))
                                            else sum(c) / finite for c in columns[:5])
    result.mean, result.mean_abs, result.m3 = mean, mean_abs, cube
    result.rms, result.l4 = math.sqrt(square), fourth**0.25
    ends = {x for low_high in columns[5:] for x in low_high if math.isfinite(x)}
    result.min, result.max = min(ends), max(ends)
    result.distinct = 3 if sums[3] else min(3, len(ends))
    return result


def _mix_int(x):
    x ^= x >> 16
    x = x * 0x85EBCA6B & 0xFFFFFFFF
    x ^= x >> 13
    x = x * 0xC2B2AE35 & 0xFFFFFFFF
    return x ^ x >> 16


def sample_grid(shape):
    """The chosen indices of each axis of length over 1; the other axes have none."""
    lengths = [n for n in shape if n != 1]
    k = 1
    while k < max(lengths, default=1) and math.prod(min(n, k + 1) for n in lengths) <= SAMPLE_LIMIT:
        k += 1
    grid = []
    for n in lengths:
        if n <= k:
            grid.append(list(range(n)))
            continue
        indices = []
        for j in range(k):
            low, high = j * n // k, (j + 1) * n // k
            step = _mix_int((_mix_int(n) + j * 0x9E3779B1) & 0xFFFFFFFF)
            indices.append(low + step % (high - low))
        grid.append(indices)
    return grid


_offsets = {}


def _grid_offsets(shape, stride, device):
    """int64 offsets of the grid's elements from the tensor's first, row-major."""
    key = shape, stride, device
    if key not in _offsets:
        if len(_offsets) >= 4096:
            _offsets.clear()
        axes = [s for n, s in zip(shape, stride, strict=True) if n != 1]
        total = torch.zeros(1, dtype=torch.int64)
        for indices, s in zip(sample_grid(shape), axes, strict=True):
            step = torch.tensor(indices, dtype=torch.int64) * s
            total = (total[:, None] + step).reshape(-1)
        _offsets[key] = total.to(device)
    return _offsets[key]


def sample(tensor):
    """A ctypes float array of at most 512 values, or None where the tensor cannot be read."""
    x = elements(tensor) if code(tensor.dtype) else None
    if x is None or x.numel() == 0:
        return None
    shape, stride = tuple(x.shape), tuple(x.stride())
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    flat = x.as_strided((reach,), (1,))
    if x.dtype in _UNSIGNED or x.dtype.itemsize == 1 and x.dtype.is_floating_point:
        flat = flat.view(_WORDS[x.dtype.itemsize])  # these are not gathered on every device
    picked = flat[_grid_offsets(shape, stride, x.device)].view(x.dtype)
    picked = picked.cpu().to(torch.float32)
    array = (ctypes.c_float * picked.numel())()
    ctypes.memmove(array, picked.data_ptr(), picked.numel() * 4)
    return array
