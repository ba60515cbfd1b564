"""The check that runs after every pass on an operator graph: each node's type is the one that its operator's rule gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from tpucc.diagnostics import Diagnostic, ProgramError, did_you_mean
from tpucc.ir import Graph, Node
from tpucc.ops import OPS
from tpucc.ops.opdef import OpDef, RuleError, Types


def verify_operators(graph: Graph, others: Collection[str] = (), changed: Collection[str] | None = None) -> None:
    """Raises `ProgramError` with each node whose operator, operands, attributes or type is wrong.

    `others` are names of operators of other packages (layers), which are passed over. `changed` has the names of the nodes to check; None
    means all nodes. Definitions must come before uses (the graph's own check). Ranges of values, which a type may have, aren't compared.

    Codes: E0780 unknown operator, E0781 number of operands, E0782 attributes, E0783 type or quantisation; a rule that is broken has a code
    of its own.
    """
    nodes = graph.nodes if changed is None else (node for node in graph.nodes if node.name in changed)
    found = [d for node in nodes if node.op not in others for d in _faults(graph, node)]
    if found:
        raise ProgramError(found)


def _faults(graph: Graph, node: Node) -> Iterable[Diagnostic]:
    operator = OPS.get(node.op)
    if operator is None:
        yield _fault("E0780", node, f"there is no operator {node.op}", did_you_mean(node.op, OPS))
    elif not operator.takes(len(node.operands)):
        yield _fault("E0781", node, f"{node.op} can't have {len(node.operands)} operands")
    elif not isinstance(node.attributes, operator.attributes):
        yield _fault("E0782", node, f"the attributes of {node.op} are {operator.attributes.__name__}, not {type(node.attributes).__name__}")
    else:
        types = (node.type,) if operator.declared else [graph[name].type for name in node.operands]
        yield from _type_faults(operator, node, types)


def _type_faults(operator: OpDef[Any], node: Node, types: Types) -> Iterable[Diagnostic]:
    try:
        inferred = operator.infer(node.attributes, types)
    except RuleError as error:
        message, mend = error.named(node.operands or (node.name,))
        yield _fault(error.code, node, message, mend)
        return
    if inferred.plain() != node.type.plain():
        yield _fault("E0783", node, f"its type is {node.type.brief}, and the rule of {node.op} gives {inferred.brief}")
    elif inferred.quantisation is not None and node.type.quantisation != inferred.quantisation:
        held = node.type.quantisation or "no scale"
        yield _fault("E0783", node, f"its type has {held}, and its {node.op} gives {inferred.quantisation}")


def _fault(code: str, node: Node, message: str, mend: str = "") -> Diagnostic:
    labels = node.origin.labels()
    return Diagnostic(code, f"{node.name}: {message}", labels, (mend,))
