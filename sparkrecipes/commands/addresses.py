"""Where the server is published on the host, and where clients find it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from sparkrecipes.errors import Misuse


def parse_address(bind: str) -> IPv4Address | IPv6Address:
    """Parse an address of the host.

    Raises:
        Misuse: It is none; a name is not looked up, because Docker does not either.
    """
    try:
        address = ip_address(bind)
    except ValueError:
        address = None
    if address is None or "%" in bind:
        raise Misuse(
            f"{bind!r} is no IP address",
            code="bad_address",
            repair="give --bind as an address of this host, e.g. 127.0.0.1",
        )
    return address


def published_address(bind: str, port: int) -> str:
    """Write ``address:port`` as ``-p`` takes it.

    Raises:
        Misuse: A port out of range, or an address that is none.
    """
    if not 1 <= port <= 65535:
        raise Misuse(f"{port} is no port", code="bad_port", repair="give --port from 1 to 65535")
    return f"{bracketed(parse_address(bind))}:{port}"


def base_url(bind: str, port: int) -> str:
    """Say where clients on this host find the server."""
    address = parse_address(bind)
    if address.is_unspecified:
        address = ip_address("::1" if address.version == 6 else "127.0.0.1")
    return f"http://{bracketed(address)}:{port}"


def is_exposed(bind: str) -> bool:
    """Say whether other machines could reach the port."""
    return not parse_address(bind).is_loopback


def bracketed(address: IPv4Address | IPv6Address) -> str:
    """Write an address so that a port can follow it."""
    return f"[{address}]" if address.version == 6 else str(address)
