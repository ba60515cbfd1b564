"""`tpucc export MODEL.tpu -o MODEL.onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.places import beside, keep_inputs, refuse_others
from tpucc.cli.progress import Progress, told
from tpucc.cli.work import compiled
from tpucc.diagnostics import counted, printable
from tpucc.interop.export import exported, require_onnx_name
from tpucc.output_files import write_file
from tpucc.passes.divide_batch import divide_batch
from tpucc.passes.place import place as placement

ROUNDING = (
    "the source's quantize and dequantize are QuantizeLinear and DequantizeLinear of float32 values, and ONNX Runtime's optimizer leaves "
    "some of them out: the level ORT_DISABLE_ALL of its graph_optimization_level keeps them, and --quantized writes the integers"
)


@click.command("export")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="MODEL.onnx", help="Where to write it (default: MODEL.onnx, or MODEL.int8.onnx).")
@click.option("--quantized", is_flag=True, help="Write the layers that the device computes, in its integers.")
@compile_options
@like_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, quantized: bool, quiet: bool, **given: Any) -> None:
    """Write MODEL as an ONNX file, with its weights: in float32, or in the device's integers.

    Inputs and outputs have MODEL's names, layout and batch: images are channels last. Without -o nothing else is written over.
    """
    place = output or beside(model, ".int8.onnx" if quantized else ".onnx")
    keep_inputs(place)
    require_onnx_name(place)
    with Progress(not quiet) as progress:
        in_floats = placement.name if given.get("keep") else "weights"  # which layer is kept changes nothing there, but one must have it
        made = compiled(model, given, quiet, progress, stop_after=divide_batch.name if quantized else in_floats)
        progress.stage("export")
        written, data = exported(made, quantized)
        if output is None:
            refuse_others(place.parent, {place.name: data})
        write_file(place, data)
        named = zip(made.graph.outputs if made.graph else (), written.outputs, strict=False)
        renamed = [f"{output.name} is an input too: ONNX's output is {name}" for output, name in named if output.name != name]
        rounds = not quantized and any(node.op == "QuantizeLinear" for node in written.nodes)
        told([*renamed, *[ROUNDING] * rounds], progress, quiet)
    if not quiet:
        parts = [counted(len(written.nodes), "node"), counted(len(written.initializers), "initializer"), counted(len(data), "byte")]
        click.echo(f"{printable(str(place))}: {', '.join(parts)}")
