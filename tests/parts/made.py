"""What the tests of parts share: which variants a module has, and a built part with numbers in every parameter."""

import importlib
import inspect
import pkgutil

import torch

import headtohead.parts
from headtohead.initialize import generator_for
from headtohead.spec import Part, Size, diff

SIZE = Size(vocabulary=11, length=8, width=12, embedding_width=12, heads=3, key_value_heads=3, layers=2)
MODULES = [
    importlib.import_module(f"headtohead.parts.{module.name}")
    for module in pkgutil.iter_modules(headtohead.parts.__path__)
]


def finals(*modules):
    """The classes of these modules that no other class of theirs derives from: the variants, found and not listed."""
    found = [
        cls for module in modules for cls in vars(module).values() if inspect.isclass(cls) and issubclass(cls, Part)
    ]
    own = [cls for cls in found if cls.__module__ in {module.__name__ for module in modules}]
    return [cls for cls in own if not any(other is not cls and issubclass(other, cls) for other in own)]


def changed(one, other):
    """(class, field) of the one field in which two settings of a variant differ."""
    (field,) = diff(one, other)
    return type(one), field


@torch.no_grad()
def filled(module):
    """The module in float64, every parameter drawn from its name: a start at zero would hide what a parameter does."""
    for name, parameter in module.double().named_parameters():
        parameter.normal_(generator=generator_for(0, name))
    return module
