# SPDX-License-Identifier: MIT
"""Changes single values in the JSON documents of a repetition."""

import json


def change(directory, name, path, value):
    """Sets the value at a path of keys in <name>.json. A function gets the old value and returns the new one; None
    deletes the key.
    """
    file = directory / f"{name}.json"
    document = json.loads(file.read_text())
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    file.write_text(json.dumps(document))
