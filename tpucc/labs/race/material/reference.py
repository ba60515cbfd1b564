"""Lab 9, a solution: waste is taken out of the graph, tiles are kept for as many rows as there are accumulators, engines wait for what
they need.
"""

import itertools
from dataclasses import replace

from tpucc.ir import Output
from tpucc.ops.fused import fused_form, with_activation

WASTES = {{wastes}}
ROW_ENGINES = ("HOST", "MATRIX", "ACTIVATION")


def rewrite(graph):
    """The graph without waste, in which a product, its bias and its relu are one node."""
    return fused(fused(simplified(graph), bias), relu)


def simplified(graph):
    """One node after the other; `same` has the earlier node that computes the value of one that is left out."""
    kept, first, same = {}, {}, {}
    for node in graph.nodes:
        node = replace(node, operands=tuple(same.get(name, name) for name in node.operands))
        earlier = waste(node, kept)
        if earlier is None and not node.is_input and "twice" in WASTES:
            earlier = first.setdefault((node.op, node.operands, node.attributes, node.type), node.name)
        if earlier in (None, node.name):
            kept[node.name] = node
        else:
            same[node.name] = earlier
    outputs = tuple(Output(output.name, same.get(output.node, output.node)) for output in graph.outputs)
    return replace(graph, nodes=tuple(kept.values()), outputs=outputs)


def waste(node, kept):
    """The operand that the node only repeats, or None."""
    operands = [kept[name] for name in node.operands]
    if node.op == "relu" and operands[0].op == "relu" and "again" in WASTES:
        return operands[0].name
    if node.op == "mul" and factor(operands[1]) is not None:
        return product_of_one(operands[0], factor(operands[1]), kept)
    if node.op == "add" and factor(operands[1]) == 0 and "zero" in WASTES:
        return operands[0].name
    if node.op == "concat" and all(part.op == "slice" for part in operands) and "halves" in WASTES:
        return whole(node, operands, kept)
    return None


def product_of_one(x, by, kept):
    """The value that was multiplied by factors whose product is 1, the last of which is `by`."""
    if by == 1 and "one" in WASTES:
        return x.name
    if x.op == "mul" and "factors" in WASTES:
        before = factor(kept[x.operands[1]])
        if before is not None and before * by == 1:
            return x.operands[0]
    return None


def factor(node):
    """The number that a constant is, or None."""
    if node.op != "constant" or node.attributes.value.data.size != 1:
        return None
    return node.attributes.value.data.item()


def whole(node, parts, kept):
    """The value of which the parts are slices, all of it in order."""
    sources = {part.operands[0] for part in parts}
    source = kept[parts[0].operands[0]]
    if len(sources) > 1 or source.type.shape != node.type.shape:
        return None
    starts = [part.attributes.starts[node.attributes.axis] for part in parts]
    return source.name if starts == sorted(set(starts)) else None


def fused(graph, rule):
    """The graph in which `rule(node, operands)` has taken a product into the node that is its only reader."""
    nodes = {node.name: node for node in graph.nodes}
    for node in graph.nodes:
        product = nodes.get(node.operands[0]) if node.operands else None
        free = product is not None and len(graph.users[product.name]) == 1 and product.name not in graph.output_nodes
        made = rule(node, product, nodes) if free else None
        if made is not None:
            nodes[node.name] = made
            del nodes[product.name]
    return graph.with_nodes(nodes.values())


def bias(node, product, nodes):
    """`x @ w + b` is `linear(x, w, b)`; a convolution likewise."""
    if node.op != "add" or product.op not in ("matmul", "conv2d"):
        return None
    added = nodes[node.operands[1]]
    if added.op != "constant" or added.type.shape != node.type.shape[-1:]:
        return None
    op, attributes = fused_form(product.op, product.attributes)
    return replace(node, op=op, operands=(*product.operands, added.name), attributes=attributes)


def relu(node, product, nodes):
    """`relu(linear(x, w, b))` is one node, and so is `relu(x + y)`."""
    if node.op != "relu" or product.op not in ("linear", "convolution", "add"):
        return None
    op, attributes = fused_form(product.op, product.attributes)
    return replace(product, name=node.name, op=op, attributes=with_activation(attributes, "relu", node.attributes))


def lower_fc(layer):
    """The lines of a layer: each tile is switched to once for all the rows that the accumulators hold."""
    group, wide = 0, ", wide" if layer.wide else ""
    blocks = chunks(layer)
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for first in range(0, len(blocks), 2):
            pair = blocks[first : first + 2]
            yield f".groups [{' '.join(str(outer * inner) for _, outer, inner in pair)}]"
            more = ""
            for level in (level for level in layer.levels if level.tiles[n] is not None):
                flags = f" tile={level.tiles[n]}, switch{more}"
                for number, block in enumerate(pair):
                    yield f"convolve {walk(level.buffer, level, block)} acc=g{group + number}{flags}{wide}"
                    flags = more
                more = ", accumulate"
            for number, block in enumerate(pair):
                yield f"activate acc=g{group + number} {walk(result, layer, block)}{wide}"
            group += len(pair)


lower_conv = lower_fc


def chunks(layer):
    """Pieces of the result that fit half the accumulators, so that one half is activated while the other is filled: where each begins, and
    its numbers of lines and columns."""
    *outer, lines, columns = (1, *layer.shape)
    most = layer.target.accumulator_rows // 2
    width, height = min(columns, most), max(1, most // columns)
    starts = itertools.product(*map(range, outer), range(0, lines, height), range(0, columns, width))
    return [(start, min(height, lines - start[-2]), min(width, columns - start[-1])) for start in starts]


def walk(buffer, where, block):
    """The rows of a buffer that hold a piece."""
    start, outer, inner = block
    steps = (0, *where.steps)
    row = where.start + sum(index * step for index, step in zip(start, steps, strict=True))
    return f"ub={buffer}+{row} ub_pitch={steps[-2]} ub_stride={steps[-1]} outer={outer} inner={inner}"


def synchronise(listing):
    """For each instruction the last one of each other engine that touches its rows, if the engine hasn't waited for it yet."""
    done = {engine: [] for engine in ROW_ENGINES}
    known, waits = {}, []
    for instruction in listing:
        engine = instruction.engine.name
        if engine not in ROW_ENGINES:
            continue
        for other in ROW_ENGINES:
            needed = max((before.index for before in done[other] if other != engine and conflict(before, instruction)), default=-1)
            if needed > known.get((engine, other), -1):
                own = done[engine][-1].index if done[engine] else -1
                known[engine, other] = max(needed, own)
                waits.append((max(needed, own) + 1, engine, [other]))
        done[engine].append(instruction)
    return waits


def conflict(before, after):
    """Whether one of the two writes rows that the other reads or writes."""
    pairs = ((before.writes, after.reads), (before.reads, after.writes), (before.writes, after.writes))
    return any(meet(one.buffer, other.buffer) or meet(one.accumulators, other.accumulators) for one, other in pairs)


def meet(rows, others):
    return not set(rows.tolist()).isdisjoint(others.tolist())
