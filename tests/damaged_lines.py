"""Files of JSON, one value on each line or one in all, with something wrong."""

from __future__ import annotations

import json
import random
from typing import Any

from damaging import PARTS


def damaged(content: bytes, generator: random.Random) -> bytes:
    """The bytes of a file with one to three things wrong."""
    for _ in range(generator.randint(1, 3)):
        at = generator.randrange(len(content) + 1)
        head, tail = content[:at], content[at:]
        kind = generator.randrange(6)
        if kind == 0:
            content = head + generator.randbytes(generator.randint(1, 4)) + tail
        elif kind == 1:
            content = head + tail[generator.randint(1, 30) :]
        elif kind == 2 and tail:
            content = head + bytes([tail[0] ^ 1 << generator.randrange(8)]) + tail[1:]
        elif kind == 3:
            content += head
        else:
            content = _with_other_value(content, generator)
    return content


def _with_other_value(content: bytes, generator: random.Random) -> bytes:
    """With another value in one place; as it is if it is no JSON any more."""
    for parts in ([content], content.split(b"\n")):
        number = generator.randrange(len(parts))
        try:
            value = json.loads(parts[number])
        except ValueError:
            continue
        _replace_part(value, generator)
        parts[number] = json.dumps(value).encode("utf-8", "surrogatepass")
        return b"\n".join(parts)
    return content


def _replace_part(value: Any, generator: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key = generator.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not isinstance(value[key], dict | list) or generator.random() < 0.3:
            value[key] = generator.choice(PARTS)
            return
        value = value[key]
