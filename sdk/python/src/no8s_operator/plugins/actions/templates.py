"""Values of a spec put into texts: `{domain}`, `{owner.team}`. Nothing else can be named."""

import re
from collections.abc import Callable
from typing import Any

_FIELD = re.compile(r"\{([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}")


def lookup(values: Any, path: str) -> Any:
    """The member at a dotted path. Raises `ValueError` if there is none."""
    found = values
    for part in path.split("."):
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            raise ValueError(f"{{{path}}} names no field of the spec")
    return found


def text(template: str, spec: dict[str, Any], encode: Callable[[str], str] = str) -> str:
    """`template` with every field replaced by its encoded text. Only single values have one."""

    def value(match: re.Match[str]) -> str:
        found = lookup(spec, match[1])
        if isinstance(found, bool):
            return encode("true" if found else "false")
        if not isinstance(found, (str, int, float)):
            raise ValueError(f"{{{match[1]}}} is no single value of the spec")
        return encode(str(found))

    return _FIELD.sub(value, template)


def tree(template: Any, spec: dict[str, Any]) -> Any:
    """A JSON value with its texts filled in; a text that is one field alone becomes that field's value."""
    if isinstance(template, dict):
        return {key: tree(each, spec) for key, each in template.items()}
    if isinstance(template, list):
        return [tree(each, spec) for each in template]
    if not isinstance(template, str):
        return template
    whole = _FIELD.fullmatch(template)
    return lookup(spec, whole[1]) if whole else text(template, spec)
