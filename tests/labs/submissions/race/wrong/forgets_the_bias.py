"""Fails `one network`: takes the bias for waste, because it is a constant."""

from dataclasses import replace


def rewrite(graph):
    same, kept = {}, []
    for node in graph.nodes:
        node = replace(node, operands=tuple(same.get(name, name) for name in node.operands))
        if node.op == "add" and graph[node.operands[1]].op == "constant":
            same[node.name] = node.operands[0]
        else:
            kept.append(node)
    return graph.with_nodes(kept) if graph.outputs[0].node not in same else replace(graph, nodes=tuple(kept), outputs=moved(graph, same))


def moved(graph, same):
    return tuple(replace(output, node=same.get(output.node, output.node)) for output in graph.outputs)
