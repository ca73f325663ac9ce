"""HTML text: elements whose every text is escaped unless it is an element itself."""

from __future__ import annotations

from html import escape


class Markup(str):
    """Text that is HTML already; only ``element`` and ``styled`` make it."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """Write one element.

    Args:
        name: The tag.
        children: Texts, which are escaped, and elements, which are not.
        attributes: ``class_`` is written ``class`` and ``stroke_width`` ``stroke-width``; numbers
            are rounded to a tenth, which is finer than a pixel shows.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value_of(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(children: tuple[str, ...]) -> Markup:
    """Put texts and elements one after the other; texts are escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(visible(c)) for c in children))


def visible(text: str) -> str:
    """Show control characters, which HTML may not hold and a server may send, as a mark."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def value_of(value: object) -> str:
    """Write an attribute's value."""
    return f"{value:.1f}" if isinstance(value, float) else visible(str(value))
