"""YAML in which a key stands once: PyYAML silently takes the last of two."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The safe loader, which refuses a repeated key."""


def load(text: str) -> Any:
    """What a YAML text holds; raises yaml.YAMLError, also for a key that is there twice."""
    return yaml.load(text, _Loader)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
