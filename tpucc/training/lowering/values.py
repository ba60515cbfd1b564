"""The values of a step in vector memory, and the instructions that compute them.

A value is a matrix [rows, columns] of its elements in order: its columns are its last axis, as a rule. It lies as column blocks, one after
the other, of a row of lanes for each row. Lanes past the last column hold anything. What sums of lanes leave is one column, whatever its
shape says.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tpucc.machines.v2.expressions import SOURCES, number_text
from tpucc.machines.v2.functions import Function
from tpucc.numerics import Int64
from tpucc.training.lowering.code import Access, Code, Matrix, Rows
from tpucc.training.lowering.fusion import Fusion, Tree
from tpucc.training.lowering.moves import Moves, emit, moves_of
from tpucc.training.lowering.products import Side, multiply, turn
from tpucc.training.lowering.trace import Kind, Shape, Trace, Untraceable, Value

SIGNED = {Kind.SUM: "a + b", Kind.LARGEST: "max(a, b)"}
"""What makes one of two elements, for sums and largest values."""


def matrix_of(shape: Shape) -> tuple[int, int]:
    """Rows and columns of a value of a shape: its last axis are its columns."""
    return (prod(shape[:-1]), shape[-1]) if shape else (1, 1)


class Values:
    """Computes values on demand, each once."""

    def __init__(self, code: Code, trace: Trace, fusion: Fusion, places: Mapping[int, Rows], names: Mapping[int, str]) -> None:
        """`places` are the rows of values that have some before they are computed; `names` are those of values."""
        self._code, self._trace, self._fusion, self._places, self._names = code, trace, fusion, places, names
        self._known: dict[int, Matrix] = {}
        self._turned: dict[Matrix, Matrix] = {}
        self._reshaped: dict[tuple[int, tuple[int, int]], Matrix] = {}
        self._columns_as_rows: dict[int, Matrix] = {}
        """The transposed matrices of values that are there as these alone."""

    def given(self, value: Value, at: Rows, size: tuple[int, int]) -> None:
        """A value that is there."""
        self._known[value.number] = Matrix(at, *size)

    def matrix(self, value: Value) -> Matrix:
        """Where a value lies. Raises `Untraceable` for what no instruction computes, as far as the machine is built."""
        if (found := self._known.get(value.number)) is None:
            found = self._known[value.number] = self._computed(value)
        return found

    def copied(self, value: Value, at: Rows) -> None:
        """Copies a value to other rows."""
        of = self._sized(value, matrix_of(value.shape))
        rows = of.rows * self._blocks(of.columns)
        self._code.vector("a", (Access(of.at, 0, 1),), Access(at, 0, 1), 1, rows)

    def _computed(self, value: Value) -> Matrix:
        match value.kind:
            case Kind.VIEW:
                return self.matrix(value.operands[0])
            case Kind.NUMBER:
                matrix = self._new(value, 1, 1)
                self._code.vector(number_text(value.what), (), Access(matrix.at, 0, 1), 1, 1)
                return matrix
            case Kind.ELEMENT:
                return self._element(self._fusion.tree(value))
            case Kind.SUM | Kind.LARGEST:
                return self._reduced(value)
            case Kind.PRODUCT:
                return self._product(value)
            case Kind.GATHERED:
                return self._gathered(value)
            case Kind.SCATTERED:
                return self._scattered(value)
            case Kind.TURNED:
                of = value.operands[0]
                return self._transposed(self._sized(of, matrix_of(of.shape)))
            case Kind.MOVED:
                turned = self._columns_as_rows.get(value.number)
                return self._transposed(turned) if turned else self._moved(self._new(value, *matrix_of(value.shape)), value.what)
            case _:
                raise Untraceable(f"moves elements ({value.kind.name.lower()} of {list(value.shape)})")

    def _blocks(self, columns: int) -> int:
        return -(-columns // self._code.lanes)

    def _new(self, value: Value, rows: int, columns: int) -> Matrix:
        """Rows for a value: those that it has already, or new ones."""
        at = self._places.get(value.number)
        if at is None:
            at = self._code.buffer(self._names.get(value.number, f"v{value.number}"), rows * self._blocks(columns))
        return Matrix(at, rows, columns)

    def _scratch(self, rows: int) -> Rows:
        return self._code.buffer(f"t{len(self._code.buffers)}", rows)

    def _element(self, tree: Tree) -> Matrix:
        """The elements of an expression. Where it depends on the numbers of columns, each block has an expression of its own."""
        if not tree.fits:
            raise Untraceable(f"reads {len(tree.sources)} values of other sizes at once")
        root = tree.root
        placed = {source.number: self.matrix(source) for source in tree.sources}
        whole = {placed[source.number].size for source in tree.sources if source.size == root.size}
        size = matrix_of(root.shape)
        if len(root.shape) == 1 and len(whole) == 1 and root.number not in self._places:
            size = whole.pop()
        y = self._new(root, *size)
        repeating = sorted(tree.sources, key=lambda source: source.size == root.size)
        sources = [self._access(source, root.shape, size) for source in repeating]
        letters = {source.number: letter for source, letter in zip(repeating, SOURCES, strict=False)}
        blocks, rows = self._blocks(size[1]), size[0]
        if not tree.by_columns:
            steps = (blocks, rows) if any(1 < source.size < root.size for source in tree.sources) else (1, blocks * rows)
            self._code.vector(tree.text(letters, 0), tuple(sources), Access(y.at, rows, 1), *steps)
            return y
        for block in range(blocks):
            own = tuple(Access(each.rows.after(block * each.pitch), each.pitch, each.stride, each.splat) for each in sources)
            self._code.vector(tree.text(letters, block * self._code.lanes), own, Access(y.at.after(block * rows), rows, 1), 1, rows)
        return y

    def _access(self, source: Value, shape: Shape, size: tuple[int, int]) -> Access:
        """The rows of a source of an expression whose result has a shape, and lies as a matrix of this size."""
        if source.size == 1:
            return Access(self.matrix(source).at, 0, 0, splat=True)
        if source.size == prod(shape):
            return Access(self._sized(source, size).at, size[0], 1)
        own = (1,) * (len(shape) - len(source.shape)) + source.shape
        if own[-1] == 1 and own[:-1] == shape[:-1]:
            return Access(self._sized(source, (size[0], 1)).at, 0, 1, splat=True)
        if prod(own[:-1]) == 1:
            return Access(self._sized(source, (1, size[1])).at, 1, 0)
        raise Untraceable(f"repeats {list(source.shape)} to {list(shape)}")

    def _sized(self, value: Value, size: tuple[int, int]) -> Matrix:
        """A value as a matrix of this size. One row is turned into one column, or the other way round; else elements move."""
        found = self.matrix(value)
        if found.size == size:
            return found
        if 1 in found.size and size == (found.columns, found.rows):
            return self._transposed(found)
        if (known := self._reshaped.get((value.number, size))) is None:
            rows, columns = size
            y = Matrix(self._scratch(rows * self._blocks(columns)), rows, columns)
            known = self._reshaped[value.number, size] = self._moved(y, self._trace.places(value))
        return known

    def _moved(self, y: Matrix, places: Int64) -> Matrix:
        """A matrix of the elements at these places."""
        moves = list(self._moves(places.reshape(y.size)))
        emit(self._code, moves, {value.number: self.matrix(value) for value in self._trace.sources(places)}, y)
        return y

    def _moves(self, places: Int64) -> Moves:
        of = {value.number: (value, *self.matrix(value).size) for value in self._trace.sources(places)}
        return moves_of(places, of, self._code.lanes)

    def _transposed(self, x: Matrix) -> Matrix:
        """Rows as columns, block by block."""
        if (known := self._turned.get(x)) is None:
            known = self._turned[x] = Matrix(self._scratch(x.columns * self._blocks(x.rows)), x.columns, x.rows)
            turn(self._code, x.at, x.rows, x.columns, known.at)
        return known

    def _product(self, value: Value) -> Matrix:
        y = self._new(value, *value.shape)
        left, right = (self._side(operand) for operand in value.operands)
        multiply(self._code, left, right, y.at, self._transposed_side, self._scratch)
        return y

    def _gathered(self, value: Value) -> Matrix:
        """Rows of a table, by their indices, column block by column block."""
        of, chosen = value.operands
        table, indices = self._sized(of, matrix_of(of.shape)), self._sized(chosen, (chosen.size, 1))
        y = self._new(value, indices.rows, table.columns)
        for block in range(self._blocks(y.columns)):
            self._code.gather(indices.at, table.at.after(block * table.rows), table.rows, y.at.after(block * y.rows), y.rows)
        return y

    def _scattered(self, value: Value) -> Matrix:
        """A table of one number, to whose rows other rows are added."""
        chosen, rows = value.operands
        indices, x = self._sized(chosen, (chosen.size, 1)), self._sized(rows, matrix_of(rows.shape))
        table = self._new(value, *value.shape)
        self._code.vector(number_text(value.what), (), Access(table.at, 0, 1), 1, table.rows * self._blocks(table.columns))
        for block in range(self._blocks(x.columns)):
            self._code.scatter_add(x.at.after(block * x.rows), indices.at, table.at.after(block * table.rows), table.rows, x.rows)
        return table

    def _side(self, operand: Value) -> Side:
        """A factor of a product: what is turned is taken as it lies."""
        turned = operand.kind is Kind.TURNED
        value = operand.operands[0] if turned else operand
        if self._lies_turned(value):
            return Side(self._columns_as_rows[value.number], not turned)
        return Side(self._sized(value, matrix_of(value.shape)), turned)

    def _lies_turned(self, value: Value) -> bool:
        """Whether a matrix lies with its columns as rows: one whose elements move, if that takes fewer moves."""
        if value.kind is not Kind.MOVED or value.number in self._known or value.number in self._columns_as_rows:
            return value.number in self._columns_as_rows
        if len(self._moves(value.what.T)) >= len(self._moves(value.what)):
            return False
        rows, columns = value.shape
        y = Matrix(self._scratch(columns * self._blocks(rows)), columns, rows)
        self._columns_as_rows[value.number] = self._moved(y, value.what.T)
        return True

    def _transposed_side(self, side: Side) -> Side:
        """A factor with its rows as columns in memory."""
        return Side(self._transposed(side.matrix), not side.turned)

    def _reduced(self, value: Value) -> Matrix:
        """Sums, or largest values: over the rows, over the lanes, or over both. A tree over both is one over the rows and then one over the
        lanes if the columns are a power of two. If not, all elements must be put into one row first."""
        x, shape = self.matrix(value.operands[0]), value.operands[0].shape
        all_axes, last = len(value.what) == len(shape), value.what == (len(shape) - 1,)
        if x.rows == 1 and all_axes:
            return self._over_lanes(value, x)
        if (x.columns == 1 and all_axes) or (value.what == tuple(range(len(shape) - 1)) and x.size == matrix_of(shape)):
            return self._over_rows(value, x)
        if last and x.size == matrix_of(shape):
            return self._over_lanes(value, x)
        before, after = value.what[0], len(shape) - 1 - value.what[-1]
        if after and len(value.what) == value.what[-1] - before + 1:
            return self._over_middle(value, prod(shape[:before]), prod(shape[before : len(shape) - after]), prod(shape[-after:]))
        if not all_axes:
            raise Untraceable(f"reduces axes {list(value.what)} of {list(shape)}")
        if x.columns & (x.columns - 1) == 0 or value.kind is Kind.LARGEST:
            return self._over_lanes(value, self._over_rows(value, x, self._scratch(self._blocks(x.columns))))
        return self._over_lanes(value, self._sized(value.operands[0], (1, x.rows * x.columns)))

    def _over_middle(self, value: Value, items: int, rows: int, columns: int) -> Matrix:
        """A value [items, rows, columns] without its rows: each item's are added up."""
        x = self._sized(value.operands[0], (items * rows, columns))
        y = self._new(value, items, columns)
        for block in range(self._blocks(columns)):
            self._halve(value.kind, x.at.after(block * x.rows), items, rows, y.at.after(block * items))
        return y

    def _over_rows(self, value: Value, x: Matrix, at: Rows | None = None) -> Matrix:
        """A value without its rows, which are added up."""
        y = Matrix(at, 1, x.columns) if at is not None else self._new(value, 1, x.columns)
        self._halve(value.kind, x.at, self._blocks(x.columns), x.rows, y.at)
        return y

    def _halve(self, kind: Kind, x: Rows, items: int, rows: int, y: Rows) -> None:
        """A halving tree over the rows of each item, which follow one another: the upper half is added to the lower one, until one row is
        left. A sum that is zero is +0."""
        joined = f"({SIGNED[kind]})"
        last = f"({joined} + 0.0)" if kind is Kind.SUM else joined
        if rows == 1:
            self._code.vector("(a + 0.0)" if kind is Kind.SUM else "a", (Access(x, 0, 1),), Access(y, 0, 1), 1, items)
            return
        half = 1 << (rows - 1).bit_length() - 1
        rest, source, pitch, result = rows - half, x, rows, y if half == 1 else self._scratch(items * half)
        if rest < half:
            self._code.vector("a", (Access(source.after(rest), pitch, 1),), Access(result.after(rest), half, 1), items, half - rest)
        height = half
        while True:
            text, to = (last, Access(y, 1, 1)) if half == 1 else (joined, Access(result, height, 1))
            self._code.vector(text, (Access(source, pitch, 1), Access(source.after(half), pitch, 1)), to, items, rest)
            if half == 1:
                return
            half //= 2
            rest, source, pitch = half, result, height

    def _over_lanes(self, value: Value, x: Matrix) -> Matrix:
        """A halving tree over the columns: over the blocks, of which the last may have fewer lanes, and then over the lanes."""
        lanes, function = self._code.lanes, Function.SUM if value.kind is Kind.SUM else Function.LARGEST
        y = self._new(value, x.rows, 1)
        blocks, source = self._blocks(x.columns), x.at
        joined = f"({SIGNED[value.kind]})"
        ragged = x.columns - (blocks - 1) * lanes
        width = min(lanes, x.columns)
        scratch: Rows | None = None
        while blocks > 1:
            half = 1 << (blocks - 1).bit_length() - 1
            to = self._scratch(half * x.rows) if scratch is None else scratch
            for block in range(half):
                own, other = source.after(block * x.rows), source.after((block + half) * x.rows)
                at = Access(to.after(block * x.rows), 0, 1)
                if block + half >= blocks:
                    if scratch is None:
                        self._code.vector("a", (Access(own, 0, 1),), at, 1, x.rows)
                    continue
                whole = block + half < blocks - 1 or ragged == lanes
                text = joined if whole else f"select((lane < {ragged}), {joined}, a)"
                self._code.vector(text, (Access(own, 0, 1), Access(other, 0, 1)), at, 1, x.rows)
            scratch, source, blocks, ragged = to, to, half, lanes
        self._code.reduce(function, source, y.at, x.rows, width)
        return y
