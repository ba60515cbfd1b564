"""Fails `race`: takes nodes for equal whose constants have one type and different values."""

from dataclasses import replace


def rewrite(graph):
    same, kept, first = {}, [], {}
    for node in graph.nodes:
        node = replace(node, operands=tuple(same.get(name, name) for name in node.operands))
        earlier = node.name if node.is_input else first.setdefault((node.op, node.operands, node.type), node.name)
        if earlier == node.name:
            kept.append(node)
        else:
            same[node.name] = earlier
    return replace(graph, nodes=tuple(kept))
