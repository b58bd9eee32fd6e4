"""JSON merge patches (RFC 7396)."""

from __future__ import annotations


def merged(target: object, patch: object) -> object:
    """What a JSON merge patch makes of a document (RFC 7396): null removes a key, lists are
    replaced whole."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found
