"""How numba compiles the parts of kernels, so that a cold start takes half as long.

numba optimizes each function that a kernel calls by itself and makes machine code of it, then does
so again in each caller. Ours have no way in from Python: only what they become in kernels runs.

It also hands over a named tuple field by field, and an episode has hundreds of arrays. `reference`
puts one in memory, so that parts take one pointer and load what they use.

And it looks at each index whether it counts from the end of its array. Here only those do that are
written so, as in ``first[-1]``; without that look kernels take a tenth to two fifths less time. An
index below 0 that is worked out is an error, and with ``NUMBA_BOUNDSCHECK=1`` an `IndexError`.
"""

import ctypes
import hashlib
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import models
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import BaseTuple, NamedTuple, Tuple
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, lower_getattr_generic, register_model, type_callable

__all__ = ["KernelCompiler", "PartCompiler", "call_at", "reference"]

_OF_THREE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_double)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplifies what is defined; numba sets up the passes for each mere declaration, too."""
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)


class _NoEnvironment:
    """Takes the environment of a part, which is nowhere: no part of a kernel has Python objects."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """See numba's ``CPUCodegen``."""


class _PartLibrary(_KernelLibrary):
    """The code of a part: it is linked into its callers, and no machine code is made of it."""

    codegen = _NoEnvironment

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        self._ensure_finalized()
        return 0

    def finalize(self) -> None:
        """Links what the part calls itself; kernels optimize all of it."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class _Lowering(Lower):
    """Takes the index of an array for one from its front."""

    def lower_getitem(
        self, result: Any, expression: Any, value: Any, index: Any, signature: Any
    ) -> Any:
        """See numba's ``Lower``."""
        own = self._from_the_front(index, signature)
        return super().lower_getitem(result, expression, value, index, own)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        """See numba's ``Lower``."""
        own = self._from_the_front(index, signature)
        return super().lower_setitem(target, index, value, own)

    def _from_the_front(self, index: Any, signature: Any) -> Any:
        """The signature with an unsigned index, which to numba is one from the front."""
        indexed, kind, *others = signature.args
        if not isinstance(indexed, types.Array):
            return signature
        written = self.typeof(index.name)
        unsigned = (
            Tuple([_unsigned(*pair) for pair in zip(kind, written, strict=True)])
            if isinstance(kind, BaseTuple)
            else _unsigned(kind, written)
        )
        return signature.replace(args=(indexed, unsigned, *others))


def _unsigned(kind: Any, written: Any) -> Any:
    from_the_end = isinstance(written, types.IntegerLiteral) and written.literal_value < 0
    return types.uintp if isinstance(kind, types.Integer) and not from_the_end else kind


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    """Lowers by `_Lowering`."""

    _name = "kernel_lowering"
    lowering_class = _Lowering


class KernelCompiler(Compiler):
    """numba's, with a library and a lowering of our own."""

    library = _KernelLibrary

    def __init__(
        self,
        typing: Any,
        target: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        local_types: Any,
    ) -> None:
        super().__init__(typing, target, library, args, return_type, flags, local_types)
        if library is None:
            self.state.library = self.library(self.state.targetctx.codegen(), "kernel")
            self.state.library.enable_object_caching()

    def define_pipelines(self) -> Any:
        """See numba's ``CompilerBase``."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (_KernelLowering, what) if one is NativeLowering else (one, what)
                for one, what in pipeline.passes
            ]
        return pipelines


class PartCompiler(KernelCompiler):
    """Of parts of kernels, see the head of this module."""

    library = _PartLibrary


def reference(value: Any) -> Any:
    """A named tuple in memory, until the function that calls this returns; its fields stay.

    Fields that are named tuples are references, too. In plain Python it is the tuple itself.
    """
    return value


class Reference(types.Type):
    """The type of a pointer to a named tuple."""

    def __init__(self, target: Any) -> None:
        self.target, self.fields, self.types = target, target.fields, target.types
        content = hashlib.sha256(str(target).encode()).hexdigest()[:12]
        super().__init__(f"{target.instance_class.__name__}_{content}")  # names symbols, so short


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        target = manager.lookup(kind.target).get_value_type()
        super().__init__(manager, kind, target.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name in kind.fields:
            field = kind.types[kind.fields.index(name)]
            return Reference(field) if isinstance(field, NamedTuple) else field
        return None


@lower_getattr_generic(Reference)
def _get_field(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    place = kind.fields.index(name)
    field = cgutils.gep_inbounds(builder, pointer, 0, place)
    return field if isinstance(kind.types[place], NamedTuple) else _load(builder, field)


@type_callable(reference)
def _type_reference(context: Any) -> Any:
    return lambda value: Reference(value) if isinstance(value, NamedTuple) else None


@lower_builtin(reference, NamedTuple)
def _lower_reference(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    pointer = cgutils.alloca_once(builder, values[0].type)
    _store(builder, values[0], pointer)
    return pointer


def call_at(address: int, one: float, two: float, three: float) -> float:
    """Calls a function of three numbers that has been compiled somewhere else, by its address."""
    return float(_OF_THREE(address)(one, two, three))


@type_callable(call_at)
def _type_call(context: Any) -> Any:
    return lambda address, one, two, three: types.float64


@lower_builtin(call_at, types.Integer, types.Float, types.Float, types.Float)
def _lower_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    number = ir.DoubleType()
    kind = ir.FunctionType(number, [number] * 3).as_pointer()
    return builder.call(builder.inttoptr(values[0], kind), values[1:])


def _load(builder: Any, pointer: Any) -> Any:
    """Loads number by number: LLVM keeps those alone that are used, but does not split structs."""
    kind = pointer.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        return builder.load(pointer)
    value = ir.Constant(kind, ir.Undefined)
    for place in range(len(kind)):
        part = _load(builder, cgutils.gep_inbounds(builder, pointer, 0, place))
        value = builder.insert_value(value, part, place)
    return value


def _store(builder: Any, value: Any, pointer: Any) -> None:
    kind = value.type
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        builder.store(value, pointer)
        return
    for place in range(len(kind)):
        part = builder.extract_value(value, place)
        _store(builder, part, cgutils.gep_inbounds(builder, pointer, 0, place))
