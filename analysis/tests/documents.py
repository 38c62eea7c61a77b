# SPDX-License-Identifier: MIT
"""Changes single values in the documents of a repetition."""

import json

import yaml


def change(directory, name, path, value):
    """Sets the value at a path of keys in <name>.json, or in spec.yaml. A function gets the old value and returns the
    new one; None deletes the key.
    """
    file = directory / ("spec.yaml" if name == "spec" else f"{name}.json")
    read, write = (yaml.safe_load, yaml.safe_dump) if name == "spec" else (json.loads, json.dumps)
    document = read(file.read_text())
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    file.write_text(write(document))


def change_spec(directory, **values):
    """Sets values in spec.yaml."""
    file = directory / "spec.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | values))
