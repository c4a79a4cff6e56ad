r"""Keys of records as text: a single one as it is, the parts of a composite one joined by ``|``.

Inside a composite key, ``|`` and ``\`` of a part are escaped by ``\``: no two keys have the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[\\|]")
_PART = re.compile(r"(?:[^\\|]|\\.)+", re.DOTALL)


def key_text(parts: Sequence[object]) -> str:
    """Return a key of these parts as text."""
    if len(parts) == 1:
        return str(parts[0])
    return "|".join(_SPECIAL.sub(r"\\\g<0>", str(part)) for part in parts)


def key_names(text: str, value: object) -> bool:
    """Return whether a key is this value, or has it as one of its parts."""
    return text == str(value) or _SPECIAL.sub(r"\\\g<0>", str(value)) in _PART.findall(text)
