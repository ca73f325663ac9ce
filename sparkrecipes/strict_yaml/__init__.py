"""Strict YAML: one way to write each value, and the place of every key.

What different readers take differently is refused, with its place and what to write
instead: ``no`` (a boolean for YAML 1.1), ``0123`` (octal or not), ``2026-10-06`` (a date or
not), ``1:30`` (base 60). So are duplicate keys, anchors, aliases, tags, merge keys, tabs and
several documents in one file. Nothing is expanded, so no file can grow while it is read.
"""

from sparkrecipes.strict_yaml.document import Document, StrictYamlError
from sparkrecipes.strict_yaml.fix import Fix, PathInTree
from sparkrecipes.strict_yaml.reading import MAX_BYTES, parse, read, read_text

__all__ = [
    "MAX_BYTES",
    "Document",
    "Fix",
    "PathInTree",
    "StrictYamlError",
    "parse",
    "read",
    "read_text",
]
