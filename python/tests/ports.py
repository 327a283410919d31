"""Ports for servers that cannot choose their own."""

from __future__ import annotations

import random
import socket


def free_ports(count: int) -> list[int]:
    """Free ports of this machine.

    They lie below those that systems give to outgoing connections: between this look and the server's start
    no connection takes one, not even the one that asks whether the server has started.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"fewer than {count} free ports among a thousand")


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine for devices, which speak QUIC."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{opened.getsockname()[1]}" for opened in sockets]
    for opened in sockets:
        opened.close()
    return addresses
