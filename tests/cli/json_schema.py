# SPDX-License-Identifier: Apache-2.0
"""Checks JSON against the part of JSON Schema that docs/cli uses.

type, properties, additionalProperties (a schema), required, items, enum,
minItems and maxItems. Keys that a schema does not name are allowed: the
command's JSON is only ever added to.
"""

KEYS = {"$schema", "title", "description", "type", "properties", "required",
        "additionalProperties", "items", "enum", "minItems", "maxItems"}
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool,
    "null": type(None),
}


def _is(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, where="$"):
    """One line for each thing in `value` that `schema` does not allow."""
    for key in schema:
        if key not in KEYS:
            yield "%s: the schema uses %s, which is not checked" % (where, key)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is(value, name) for name in names):
        yield "%s: %r is not of type %s" % (where, value, " or ".join(names))
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is none of %r" % (where, value, schema["enum"])
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield "%s: %s is missing" % (where, key)
        named = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        for key, inner in value.items():
            yield from problems(inner, named.get(key, others),
                                where + "." + key)
    if isinstance(value, list):
        if not (schema.get("minItems", 0) <= len(value) <=
                schema.get("maxItems", len(value))):
            yield "%s: %d items" % (where, len(value))
        for i, item in enumerate(value):
            yield from problems(item, schema.get("items", {}),
                                "%s[%d]" % (where, i))
