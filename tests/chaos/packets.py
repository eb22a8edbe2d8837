"""Just enough of IPv4 and TCP to refuse a packet with a reset, as a firewall may."""

from __future__ import annotations

import struct

_IP = struct.Struct("!BBHHHBBH4s4s")
_TCP = struct.Struct("!HHIIBBHHH")
_TCP_IN_IP, _RST, _ACK, _SYN = 6, 0x04, 0x10, 0x02


def flow_of(packet: bytes, store: int) -> tuple[int, bool]:
    """Which connection it is of, by the port that is not the store's, and whether it carries data; 0: of none."""
    if packet[0] >> 4 != 4 or packet[9] != _TCP_IN_IP:
        return 0, False
    header = (packet[0] & 15) * 4
    ports = _TCP.unpack_from(packet, header)[:2]
    return next((port for port in ports if port != store), 0), len(packet) > header + (packet[header + 12] >> 4) * 4


def reset_for(packet: bytes) -> bytes:
    """The reset that answers this packet; nothing when it is no TCP over IPv4, or is a reset itself."""
    if packet[0] >> 4 != 4 or packet[9] != _TCP_IN_IP:
        return b""
    header = (packet[0] & 15) * 4
    source, target = packet[12:16], packet[16:20]
    sport, dport, sequence, acknowledged, _, flags, *_ = _TCP.unpack_from(packet, header)
    if flags & _RST:
        return b""
    length = len(packet) - header - (packet[header + 12] >> 4) * 4 + bool(flags & _SYN)
    number, said = (acknowledged, 0) if flags & _ACK else (0, (sequence + length) % 2**32)
    tcp = _TCP.pack(dport, sport, number, said, 5 << 4, _RST | (0 if flags & _ACK else _ACK), 0, 0, 0)
    pseudo = target + source + struct.pack("!BBH", 0, _TCP_IN_IP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", _checksum(pseudo + tcp)) + tcp[18:]
    ip = _IP.pack(0x45, 0, _IP.size + len(tcp), 0, 0, 64, _TCP_IN_IP, 0, target, source)
    return ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:] + tcp


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
