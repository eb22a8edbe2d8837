"""The 128-bit hash XXH3 without a seed, as PHP's ``hash('xxh128', …)``, which Laravel uses in names of locks.

In pure Python, since it hashes only a few short names: no pool should need a package to find its jobs' locks.
Source: xxhash's specification, doc/xxhash_spec.md (0.8).
"""

from __future__ import annotations

from functools import lru_cache

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_32, _64 = 2**32 - 1, 2**64 - 1
_STRIPE, _SHORT = 64, 240


@lru_cache(maxsize=256)
def hexdigest(text: str) -> str:
    """The hash of the text in UTF-8, as 32 hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass")
    low, high = _long(data) if len(data) > _SHORT else _short(data)
    return f"{high:016x}{low:016x}"


def _short(data: bytes) -> tuple[int, int]:
    """The hash of up to 240 bytes."""
    size = len(data)
    if size > 128:
        return _to_240(data, size)
    if size > 16:
        return _to_128(data, size)
    if size > 8:
        return _to_16(data, size)
    if size > 3:
        return _to_8(data, size)
    return _to_3(data, size) if size else (_avalanche64(_s(64) ^ _s(72)), _avalanche64(_s(80) ^ _s(88)))


def _to_3(data: bytes, size: int) -> tuple[int, int]:
    joined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
    swapped = int.from_bytes(joined.to_bytes(4, "little"), "big")
    turned = (swapped << 13 | swapped >> 19) & _32
    low = joined ^ _int(_SECRET, 0, 4) ^ _int(_SECRET, 4, 4)
    high = turned ^ _int(_SECRET, 8, 4) ^ _int(_SECRET, 12, 4)
    return _avalanche64(low), _avalanche64(high)


def _to_8(data: bytes, size: int) -> tuple[int, int]:
    joined = _int(data, 0, 4) + (_int(data, size - 4, 4) << 32)
    product = (joined ^ _s(16) ^ _s(24)) * (_P64[0] + (size << 2) & _64)
    low, high = product & _64, product >> 64
    high = high + (low << 1) & _64
    low ^= high >> 3
    low = _mixed(low ^ low >> 35, _MX2, 28)
    return low, _avalanche(high)


def _to_16(data: bytes, size: int) -> tuple[int, int]:
    first, last = _int(data, 0), _int(data, size - 8)
    product = (first ^ last ^ _s(32) ^ _s(40)) * _P64[0]
    low, high = product & _64, product >> 64
    low = low + (size - 1 << 54) & _64
    last ^= _s(48) ^ _s(56)
    high = high + last + (last & _32) * (_P32[1] - 1) & _64
    low ^= int.from_bytes(high.to_bytes(8, "little"), "big")
    product = low * _P64[1]
    return _avalanche(product & _64), _avalanche((product >> 64) + high * _P64[1] & _64)


def _to_128(data: bytes, size: int) -> tuple[int, int]:
    low, high = size * _P64[0] & _64, 0
    for turn in range((size - 1) // 32, -1, -1):
        low, high = _mix32(low, high, data, turn * 16, size - turn * 16 - 16, turn * 32)
    return _finished(low, high, size)


def _to_240(data: bytes, size: int) -> tuple[int, int]:
    low, high = size * _P64[0] & _64, 0
    for at in range(0, 128, 32):
        low, high = _mix32(low, high, data, at, at + 16, at)
    low, high = _avalanche(low), _avalanche(high)
    for at in range(128, size - 31, 32):
        low, high = _mix32(low, high, data, at, at + 16, at - 125)
    low, high = _mix32(low, high, data, size - 16, size - 32, 103)
    return _finished(low, high, size)


def _mix32(low: int, high: int, data: bytes, one: int, other: int, at: int) -> tuple[int, int]:
    low = low + _mix16(data, one, at) & _64 ^ _int(data, other) + _int(data, other + 8) & _64
    high = high + _mix16(data, other, at + 16) & _64 ^ _int(data, one) + _int(data, one + 8) & _64
    return low, high


def _mix16(data: bytes, at: int, secret: int) -> int:
    return _folded((_int(data, at) ^ _s(secret)) * (_int(data, at + 8) ^ _s(secret + 8)))


def _finished(low: int, high: int, size: int) -> tuple[int, int]:
    mixed = low * _P64[0] + high * _P64[3] + size * _P64[1]
    return _avalanche(low + high & _64), -_avalanche(mixed & _64) & _64


def _long(data: bytes) -> tuple[int, int]:
    """The hash of more than 240 bytes."""
    lanes = [_P32[2], *_P64[:4], _P32[1], _P64[4], _P32[0]]
    in_block = (len(_SECRET) - _STRIPE) // 8
    stripes = (len(data) - 1) // _STRIPE
    for number in range(stripes):
        _accumulate(lanes, data, number * _STRIPE, number % in_block * 8)
        if number % in_block == in_block - 1:
            _scramble(lanes)
    _accumulate(lanes, data, len(data) - _STRIPE, len(_SECRET) - _STRIPE - 7)
    low = _merged(lanes, 11, len(data) * _P64[0])
    return low, _merged(lanes, len(_SECRET) - _STRIPE - 11, ~(len(data) * _P64[1]))


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    for lane in range(8):
        value = _int(data, at + 8 * lane)
        keyed = value ^ _s(secret + 8 * lane)
        lanes[lane ^ 1] = lanes[lane ^ 1] + value & _64
        lanes[lane] = lanes[lane] + (keyed & _32) * (keyed >> 32) & _64


def _scramble(lanes: list[int]) -> None:
    for lane, value in enumerate(lanes):
        lanes[lane] = (value ^ value >> 47 ^ _s(len(_SECRET) - _STRIPE + 8 * lane)) * _P32[0] & _64


def _merged(lanes: list[int], secret: int, start: int) -> int:
    pairs = range(0, 8, 2)
    parts = (_folded((lanes[n] ^ _s(secret + 8 * n)) * (lanes[n + 1] ^ _s(secret + 8 * n + 8))) for n in pairs)
    return _avalanche(start + sum(parts) & _64)


def _folded(product: int) -> int:
    return product & _64 ^ product >> 64


def _avalanche(value: int) -> int:
    return _mixed(value ^ value >> 37, _MX1, 32)


def _avalanche64(value: int) -> int:
    """The avalanche of the older XXH64."""
    value = (value ^ value >> 33) * _P64[1] & _64
    return _mixed(value ^ value >> 29, _P64[2], 32)


def _mixed(value: int, factor: int, shift: int) -> int:
    value = value * factor & _64
    return value ^ value >> shift


def _s(at: int) -> int:
    return _int(_SECRET, at)


def _int(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")
