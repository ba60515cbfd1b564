"""Fails `race`: right, and hardly faster."""

from dataclasses import replace


def rewrite(graph):
    same, kept = {}, []
    for node in graph.nodes:
        node = replace(node, operands=tuple(same.get(name, name) for name in node.operands))
        if node.op == "relu" and graph[node.operands[0]].op == "relu":
            same[node.name] = node.operands[0]
        else:
            kept.append(node)
    return graph.with_nodes(kept)
