"""Rules that don't hold: each with its code, the operands or the attribute to blame, and words that a student can use."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tests.support.rule_errors import Case, require_refused
from tpucc.ir import Constant, NoAttributes, Quantisation, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.argmax import ArgmaxAttributes
from tpucc.ops.arithmetic import ArithmeticAttributes
from tpucc.ops.avg_pool import AvgPoolAttributes
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.ops.clip import ClipAttributes
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.conv_transpose2d import ConvTranspose2dAttributes
from tpucc.ops.convolution import ConvolutionAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.dropout import DropoutAttributes
from tpucc.ops.elu import EluAttributes
from tpucc.ops.full import FullAttributes
from tpucc.ops.gelu import GeluAttributes
from tpucc.ops.layer_norm import LayerNormAttributes
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.lrn import LrnAttributes
from tpucc.ops.one_hot import OneHotAttributes
from tpucc.ops.opdef import OpDef, RuleError
from tpucc.ops.pad import PadAttributes
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.ops.reductions import ReductionAttributes
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.resize import ResizeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.softmax import SoftmaxAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.ops.windows import PoolAttributes
from tpucc.ops.zeros import ShapeAttributes

NONE = NoAttributes()
I32 = TensorType("i32", (4, 3))
I8 = TensorType("i8", (4, 3), quantisation=Quantisation(0.5, 1))
IMAGE = f32(2, 8, 6, 3)
KERNEL = f32(3, 3, 3, 4)
CHANNELS = (f32(3),) * 4

CODES = {f"E03{number:02}" for number in range(1, 16)}
CASES: list[Case] = [
    ("matmul", NONE, (f32(64, 128), f32(256, 10)), "E0301", (0, 1), "128 is not 256"),
    ("matmul", NONE, (f32(8, 3), f32(4, 8)), "E0301", (0, 1), "{1} @ {0} would fit"),
    ("matmul", NONE, (f32(4, 3), f32(5, 3)), "E0301", (0, 1), "transpose({1}, (1, 0)) would fit"),
    ("matmul", NONE, (f32(5, 4), f32(5, 3)), "E0301", (0, 1), "transpose({0}, (1, 0)) would fit"),
    ("matmul", NONE, (f32(), f32(5, 3)), "E0303", (0,), "scalar"),
    ("matmul", NONE, (f32(4, 3), f32(3)), "E0303", (1,), "reshape({1}, (3, 1))"),
    ("matmul", NONE, (f32(4, 3), f32()), "E0303", (1,), "write `*`"),
    ("matmul", NONE, (f32(2, 4, 3), f32(3, 3, 4)), "E0302", (0, 1), "axis -3 are 2 and 3"),
    ("matmul", NONE, (f32(2, 4, 3), f32(2, 5, 3)), "E0301", (0, 1), "last but one of {1}, and 3 is not 5; transpose({1}, (0, 2, 1))"),
    ("matmul", NONE, (I32, f32(3, 4)), "E0305", (0,), "only indices and labels are integers"),
    ("matmul", NONE, (f32(4, 4), I8), "E0305", (1,), "dequantize it first"),
    ("linear", LinearAttributes(), (f32(4, 3), f32(4, 5)), "E0301", (0, 1), "3 is not 4"),
    ("linear", LinearAttributes(), (f32(4, 3), f32(3, 5), f32(3)), "E0302", (2,), "f32[5]"),
    ("linear", LinearAttributes("softmax", (-1,)), (f32(4, 3), f32(3, 5)), "E0307", ("activation",), "function of one value"),
    ("linear", LinearAttributes("opdef"), (f32(4, 3), f32(3, 5)), "E0307", ("activation",), "function of one value"),
    ("linear", LinearAttributes("elu"), (f32(4, 3), f32(3, 5)), "E0307", ("parameters",), "attributes of elu"),
    ("linear", LinearAttributes("elu", (math.nan,)), (f32(4, 3), f32(3, 5)), "E0307", ("alpha",), "finite"),
    ("linear", LinearAttributes("elu", (1.0,), (1.0, -1.0)), (f32(4, 3), f32(3, 5)), "E0307", ("pre",), "range"),
    ("linear", LinearAttributes("elu", (1.0,), (-math.inf, 1.0)), (f32(4, 3), f32(3, 5)), "E0307", ("pre",), "range"),
    ("linear", LinearAttributes("elu", (1.0,), (0.0, 1e39)), (f32(4, 3), f32(3, 5)), "E0307", ("pre",), "range"),
    ("convolution", ConvolutionAttributes(), (IMAGE, f32(3, 3, 5, 4)), "E0311", (0, 1), "3 is not 5"),
    ("convolution", ConvolutionAttributes(stride=0), (IMAGE, KERNEL), "E0307", ("stride",), "at least 1, found 0"),
    ("convolution", ConvolutionAttributes(padding="some"), (IMAGE, KERNEL), "E0306", ("padding",), "found 'some'"),
    ("convolution", ConvolutionAttributes(), (IMAGE, KERNEL, f32(3)), "E0302", (2,), "f32[4], found f32[3]"),
    ("convolution", ConvolutionAttributes(), (IMAGE, KERNEL, f32(1, 4)), "E0302", (2,), "f32[4]"),
    ("convolution", ConvolutionAttributes("conv2d"), (IMAGE, KERNEL), "E0307", ("activation",), "function of one value"),
    ("convolution", ConvolutionAttributes("relu", (1.0,)), (IMAGE, KERNEL), "E0307", ("parameters",), "attributes of relu"),
    ("arithmetic", ArithmeticAttributes(of="matmul"), (f32(3), f32(3)), "E0307", ("of",), "of must be one of add, "),
    ("arithmetic", ArithmeticAttributes("relu", of="sub"), (f32(8, 3), f32(4)), "E0302", (0, 1), "axis -1 are 3 and 4"),
    ("arithmetic", ArithmeticAttributes("relu"), (f32(4, 3), I32), "E0305", (1,), "found i32[4, 3]"),
    ("arithmetic", ArithmeticAttributes("softmax", (-1,)), (f32(3), f32(3)), "E0307", ("activation",), "function of one value"),
    ("arithmetic", ArithmeticAttributes("elu", (1.0,), (1.0, 0.0)), (f32(3), f32(3)), "E0307", ("pre",), "range"),
    ("add", NONE, (f32(8, 3), f32(4)), "E0302", (0, 1), "axis -1 are 3 and 4"),
    ("sub", NONE, (f32(2, 5, 3), f32(4, 3)), "E0302", (0, 1), "axis -2 are 5 and 4"),
    ("mul", NONE, (f32(4, 3), I32), "E0305", (1,), "found i32[4, 3]"),
    ("relu", NONE, (I32,), "E0305", (0,), "f32"),
    ("leaky_relu", LeakyReluAttributes(math.nan), (f32(3),), "E0307", ("alpha",), "found nan"),
    ("leaky_relu", LeakyReluAttributes("x"), (f32(3),), "E0306", ("alpha",), "number, found 'x'"),  # type: ignore[arg-type]
    ("elu", EluAttributes(1e39), (f32(3),), "E0307", ("alpha",), "finite float32"),
    ("elu", EluAttributes(True), (f32(3),), "E0306", ("alpha",), "found True"),
    ("elu", EluAttributes(10**400), (f32(3),), "E0307", ("alpha",), "more than 18 digits"),
    ("gelu", GeluAttributes(1), (f32(3),), "E0306", ("approximate",), "True or False, found 1"),  # type: ignore[arg-type]
    ("softmax", SoftmaxAttributes(2), (f32(4, 3),), "E0304", ("axis",), "axes 0 to 1, or -2 to -1"),
    ("softmax", SoftmaxAttributes(), (f32(),), "E0304", (0,), "scalar"),
    ("softmax", SoftmaxAttributes(10**30), (f32(3),), "E0304", ("axis",), "far out"),
    ("argmax", ArgmaxAttributes(-3), (f32(4, 3),), "E0304", ("axis",), "axis -3"),
    ("argmax", ArgmaxAttributes(1.0), (f32(4, 3),), "E0306", ("axis",), "integer"),  # type: ignore[arg-type]
    ("batch_norm", BatchNormAttributes(), (f32(4, 3), f32(3), f32(4), f32(3), f32(3)), "E0311", (0, 2), "f32[3], found f32[4]"),
    ("batch_norm", BatchNormAttributes(), (f32(), *CHANNELS), "E0303", (0,), "no channels"),
    ("batch_norm", BatchNormAttributes(-0.5), (IMAGE, *CHANNELS), "E0307", ("epsilon",), "found -0.5"),
    ("batch_norm", BatchNormAttributes(momentum=1.5), (IMAGE, *CHANNELS), "E0307", ("momentum",), "between 0 and 1, found 1.5"),
    ("layer_norm", LayerNormAttributes(), (f32(4, 3), f32(3), f32(4)), "E0311", (0, 2), "f32[3], found f32[4]"),
    ("layer_norm", LayerNormAttributes(), (f32(4, 3), f32(4, 3), f32(3)), "E0311", (0, 1), "one value a column"),
    ("layer_norm", LayerNormAttributes(), (f32(), f32(), f32()), "E0303", (0,), "no last axis"),
    ("layer_norm", LayerNormAttributes(-1.0), (f32(3), f32(3), f32(3)), "E0307", ("epsilon",), "found -1.0"),
    ("layer_norm", LayerNormAttributes(), (I32, f32(3), f32(3)), "E0305", (0,), "f32"),
    ("flatten", NONE, (f32(),), "E0303", (0,), "reshape({0}, (1, 1))"),
    ("flatten", NONE, (f32(2, 2**20, 2**20),), "E0308", (0,), "larger than"),
    ("reshape", ReshapeAttributes((5, 3)), (f32(4, 3),), "E0309", (0, "shape"), "12 elements, which (5, 3)"),
    ("reshape", ReshapeAttributes((-1, 5)), (f32(4, 3),), "E0309", (0, "shape"), "(-1, 5)"),
    ("reshape", ReshapeAttributes((-1, -1)), (f32(4, 3),), "E0309", ("shape",), "only one"),
    ("reshape", ReshapeAttributes((0, -1)), (f32(4, 3),), "E0308", ("shape",), "found 0"),
    ("reshape", ReshapeAttributes((-2, 6)), (f32(4, 3),), "E0308", ("shape",), "found -2"),
    ("reshape", ReshapeAttributes((4.0, 3)), (f32(4, 3),), "E0306", ("shape",), "list of integers"),  # type: ignore[arg-type]
    ("reshape", ReshapeAttributes((1,) * 40), (f32(1),), "E0303", ("shape",), "at most 32"),
    ("transpose", TransposeAttributes((0, 1, 2)), (f32(4, 3),), "E0310", ("perm", 0), "(1, 0) reverses"),
    ("transpose", TransposeAttributes((0, 0)), (f32(4, 3),), "E0310", ("perm",), "every axis once"),
    ("transpose", TransposeAttributes((0, -2)), (f32(4, 3),), "E0310", ("perm",), "every axis once"),
    ("concat", ConcatAttributes(), (), "E0314", (), "nothing to join"),
    ("concat", ConcatAttributes(), (f32(4, 3), f32(4, 2), f32(5, 3)), "E0314", (0, 2), "axis 0 differ: 4 and 5"),
    ("concat", ConcatAttributes(), (f32(4, 3), f32(4)), "E0314", (0, 1), "as many dimensions"),
    ("concat", ConcatAttributes(), (f32(4, 3), I32), "E0305", (0, 1), "one data type"),
    ("concat", ConcatAttributes(), (I8, replace(I8, quantisation=Quantisation(0.25, 1))), "E0315", (0, 1), "one scale"),
    ("concat", ConcatAttributes(2), (f32(4, 3),), "E0304", ("axis",), "axis 2"),
    ("concat", ConcatAttributes(), (f32(2**30), f32(2**30)), "E0308", (0,), "larger than"),
    ("pad", PadAttributes(((0, 0),)), (f32(4, 3),), "E0303", ("pads", 0), "2 axes, and pads has 1"),
    ("pad", PadAttributes(((0, 0), (1, -1))), (f32(4, 3),), "E0307", ("pads",), "at least 0, found -1"),
    ("pad", PadAttributes((0, 1)), (f32(4, 3),), "E0306", ("pads",), "pair"),  # type: ignore[arg-type]
    ("pad", PadAttributes(2), (f32(4, 3),), "E0306", ("pads",), "list of pairs"),  # type: ignore[arg-type]
    ("pad", PadAttributes(((2**31 - 1, 1),)), (f32(4),), "E0308", ("pads",), "larger than"),
    ("slice", SliceAttributes((0, 2), (4, 2)), (f32(4, 3),), "E0308", (0,), "nothing of axis 1"),
    ("slice", SliceAttributes((0, 2), (4, 1)), (f32(4, 3),), "E0308", (0,), "nothing of axis 1"),
    ("slice", SliceAttributes((0, 0), (4, 2), steps=(1,)), (f32(4, 3),), "E0303", (0,), "has 1 axes but"),
    ("slice", SliceAttributes((0, 0), (4, 4)), (f32(4, 3),), "E0313", (0,), "0:4 is outside axis 1"),
    ("slice", SliceAttributes((0, 0), (4, 3), (), (1, 0)), (f32(4, 3),), "E0307", ("steps",), "must not be 0"),
    ("slice", SliceAttributes((0, 0), (4, 3), (), (2,)), (f32(4, 3),), "E0303", (0,), "axes"),
    ("slice", SliceAttributes((0, 0), (4, 3), (), (1, -1)), (f32(4, 3),), "E0308", (0,), "nothing of axis 1"),
    ("slice", SliceAttributes((0, 2), (4, -2), (), (1, -1)), (f32(4, 3),), "E0313", (0,), "2:-2:-1 is outside axis 1"),
    ("slice", SliceAttributes((0, 0), (5, 3), (), (2, 1)), (f32(4, 3),), "E0313", (0,), "0:5:2 is outside axis 0"),
    ("slice", SliceAttributes((0, 0), (10**30, 3), (), (2, 1)), (f32(4, 3),), "E0313", (0,), "is outside axis 0"),
    ("slice", SliceAttributes((0,), (4,)), (f32(4, 3),), "E0303", (0,), "1 axes"),
    ("slice", SliceAttributes((0, 0), (4, 2), (1,)), (f32(4, 3),), "E0304", (0,), "can't be dropped"),
    ("slice", SliceAttributes((0, 0), (4, 1), (2,)), (f32(4, 3),), "E0304", (0,), "axis 2"),
    ("embedding", NONE, (f32(4), f32(10, 3)), "E0305", (0,), "i32[...]"),
    ("embedding", NONE, (I32, I32), "E0305", (1,), "indices come first"),
    ("embedding", NONE, (I32, f32(10)), "E0303", (1,), "[rows, columns], found 1"),
    ("zeros", ShapeAttributes((2, 0)), (), "E0308", ("shape",), "at least 1, found 0"),
    ("zeros", ShapeAttributes((2**40, 2**40)), (), "E0308", ("shape",), "2,147,483,647"),
    ("ones", ShapeAttributes((-(10**40),)), (), "E0308", ("shape",), "much less"),
    ("ones", ShapeAttributes("ab"), (), "E0306", ("shape",), "found 'ab'"),  # type: ignore[arg-type]
    ("full", FullAttributes((2,), math.inf), (), "E0307", ("value",), "found inf"),
    ("full", FullAttributes((2,), None), (), "E0306", ("value",), "found None"),  # type: ignore[arg-type]
    ("quantize", QuantizeAttributes(0.0), (f32(3),), "E0307", ("scale",), "positive"),
    ("quantize", QuantizeAttributes(1e-39), (f32(3),), "E0307", ("scale",), "normal"),
    ("quantize", QuantizeAttributes(math.nan), (f32(3),), "E0307", ("scale",), "finite"),
    ("quantize", QuantizeAttributes(0.5, 128), (f32(3),), "E0307", ("zero_point",), "at most 127, found 128"),
    ("quantize", QuantizeAttributes(0.5, 0.5), (f32(3),), "E0306", ("zero_point",), "integer"),  # type: ignore[arg-type]
    ("quantize", QuantizeAttributes(0.5), (I8,), "E0315", (0,), "quantised already"),
    ("quantize", QuantizeAttributes(0.5), (I32,), "E0305", (0,), "i32[4, 3]"),
    ("dequantize", DequantizeAttributes(), (f32(3),), "E0315", (0,), "isn't quantised"),
    ("dequantize", DequantizeAttributes(0.25, 1), (I8,), "E0315", (0,), "scale 0.5 zero 1, not by scale 0.25"),
    ("dequantize", DequantizeAttributes(0.25, 1), (f32(3),), "E0305", (0,), "i8"),
    ("conv2d", Conv2dAttributes(), (f32(8, 6, 3), KERNEL), "E0303", (0,), "[batch, height, width, channels], found 3"),
    ("conv2d", Conv2dAttributes(), (IMAGE, f32(3, 4)), "E0303", (1,), "channels out"),
    ("conv2d", Conv2dAttributes(), (IMAGE, f32(3, 3, 5, 4)), "E0311", (0, 1), "3 is not 5"),
    ("conv2d", Conv2dAttributes(), (f32(2, 3, 8, 6), KERNEL), "E0311", (0, 1), "NHWC"),
    ("conv2d", Conv2dAttributes(), (IMAGE, f32(4, 3, 5, 5)), "E0311", (0, 1), "HWIO"),
    ("conv2d", Conv2dAttributes(), (f32(2, 8, 2, 3), KERNEL), "E0312", (0,), "width of 3 is more than the image's 2"),
    ("conv2d", Conv2dAttributes(0), (IMAGE, KERNEL), "E0307", ("stride",), "at least 1, found 0"),
    ("conv2d", Conv2dAttributes((1, 2, 3)), (IMAGE, KERNEL), "E0306", ("stride",), "pair"),  # type: ignore[arg-type]
    ("conv2d", Conv2dAttributes(1, "some"), (IMAGE, KERNEL), "E0306", ("padding",), "found 'some'"),
    ("conv2d", Conv2dAttributes(1, "{0}"), (IMAGE, KERNEL), "E0306", ("padding",), "padding must be"),
    ("conv2d", Conv2dAttributes(1, (1, 1)), (IMAGE, KERNEL), "E0306", ("padding",), "left, right"),  # type: ignore[arg-type]
    ("conv2d", Conv2dAttributes(1, -1), (IMAGE, KERNEL), "E0307", ("padding",), "at least 0"),
    ("conv2d", Conv2dAttributes(dilation=0), (IMAGE, KERNEL), "E0307", ("dilation",), "at least 1, found 0"),
    ("conv2d", Conv2dAttributes(dilation=(1, 9)), (IMAGE, KERNEL), "E0312", (0,), "width of 19 (3, dilated by 9) is more than"),
    ("conv2d", Conv2dAttributes(groups=0), (IMAGE, KERNEL), "E0307", ("groups",), "at least 1, found 0"),
    ("conv2d", Conv2dAttributes(groups=2), (IMAGE, KERNEL), "E0311", ("groups", 0), "2 groups don't divide the 3 channels of {0}"),
    ("conv2d", Conv2dAttributes(groups=3), (IMAGE, f32(3, 3, 1, 4)), "E0311", ("groups", 1), "3 groups don't divide the 4 filters of {1}"),
    ("conv2d", Conv2dAttributes(groups=3), (IMAGE, f32(3, 3, 3, 6)), "E0311", (0, 1), "the third size of {1} must be 1"),
    ("conv2d", Conv2dAttributes(groups=3), (IMAGE, f32(3, 1, 5, 5)), "E0311", ("groups", 1), "transpose({1}, (2, 3, 1, 0)) turns OIHW"),
    ("conv2d", Conv2dAttributes(groups=3), (IMAGE, f32(6, 1, 5, 6)), "E0311", (0, 1), "must be 1; kernels are HWIO"),
    ("conv2d", Conv2dAttributes(groups=2), (f32(2, 4, 8, 8), f32(6, 2, 3, 4)), "E0311", (0, 1), "turns NCHW, and transpose({1}"),
    ("conv2d", Conv2dAttributes(), (IMAGE, f32(3, 3, 1, 6)), "E0311", (0, 1), "known as depthwise"),
    ("conv2d", Conv2dAttributes(), (f32(2, 1, 6, 8), f32(3, 3, 1, 8)), "E0311", (0, 1), "NHWC"),
    ("conv2d", Conv2dAttributes(), (IMAGE, f32(3, 3, 1, 5)), "E0311", (0, 1), "3 is not 1"),
    ("conv2d", Conv2dAttributes(1, 2**40), (IMAGE, KERNEL), "E0307", ("padding",), "65,535"),
    ("max_pool", PoolAttributes(9), (IMAGE,), "E0312", (0,), "height of 9 is more than the image's 8"),
    ("conv_transpose2d", ConvTranspose2dAttributes(), (f32(8, 6, 3), KERNEL), "E0303", (0,), "[batch, height, width, channels], found 3"),
    ("conv_transpose2d", ConvTranspose2dAttributes(2), (IMAGE, f32(3, 3, 4, 3)), "E0311", (0, 1), "Keras's kernels have the filters first"),
    (
        "conv_transpose2d",
        ConvTranspose2dAttributes(2),
        (IMAGE, f32(3, 4, 5, 5)),
        "E0311",
        (0, 1),
        "transpose({1}, (2, 3, 0, 1)) turns IOHW",
    ),
    ("conv_transpose2d", ConvTranspose2dAttributes(2), (f32(2, 4, 8, 6), f32(3, 3, 4, 5)), "E0311", (0, 1), "turns NCHW into it"),
    ("conv_transpose2d", ConvTranspose2dAttributes(1, 5), (IMAGE, f32(3, 3, 3, 4)), "E0312", ("padding",), "the result's 10×8 pixels"),
    ("conv_transpose2d", ConvTranspose2dAttributes((1, 65)), (IMAGE, f32(3, 3, 3, 4)), "E0307", ("stride",), "at most 64"),
    ("conv_transpose2d", ConvTranspose2dAttributes(1, "full"), (IMAGE, f32(3, 3, 3, 4)), "E0306", ("padding",), "found 'full'"),
    ("resize", ResizeAttributes(4), (f32(8, 6, 3),), "E0303", (0,), "[batch, height, width, channels], found 3"),
    ("resize", ResizeAttributes((4, 0)), (IMAGE,), "E0307", ("size",), "at least 1, found 0"),
    ("resize", ResizeAttributes((2, 4, 4, 3)), (IMAGE,), "E0306", ("size",), "a pair (height, width)"),  # type: ignore[arg-type]
    ("resize", ResizeAttributes(4, "cubic"), (IMAGE,), "E0307", ("mode",), "nearest"),
    ("lrn", LrnAttributes(5), (f32(),), "E0304", (0,), "a scalar"),
    ("lrn", LrnAttributes(0), (IMAGE,), "E0307", ("size",), "at least 1"),
    ("lrn", LrnAttributes(5, bias=0), (IMAGE,), "E0307", ("bias",), "more than 0"),
    ("lrn", LrnAttributes(5, -1.0), (IMAGE,), "E0307", ("alpha",), "at least 0"),
    ("max_pool", PoolAttributes(12, 4, ceil=True), (IMAGE,), "E0312", (0,), "height of 12 is more than the image's 8"),
    ("max_pool", PoolAttributes(ceil=1), (IMAGE,), "E0306", ("ceil",), "True or False"),  # type: ignore[arg-type]
    ("avg_pool", AvgPoolAttributes(count_padding=0), (IMAGE,), "E0306", ("count_padding",), "True or False"),  # type: ignore[arg-type]
    ("max_pool", PoolAttributes(2, 2, 2), (IMAGE,), "E0312", ("padding",), "smaller than the window"),
    ("max_pool", PoolAttributes(2**31), (IMAGE,), "E0307", ("size",), "65,535"),
    ("avg_pool", AvgPoolAttributes(2, 0), (IMAGE,), "E0307", ("stride",), "at least 1"),
    ("avg_pool", AvgPoolAttributes(), (I32,), "E0305", (0,), "f32"),
    ("global_avg_pool", NONE, (f32(4, 3),), "E0303", (0,), "found 2"),
    ("sum", ReductionAttributes(2), (f32(4, 3),), "E0304", ("axis",), "axes 0 to 1, or -2 to -1"),
    ("mean", ReductionAttributes((0, -2)), (f32(4, 3),), "E0304", ("axis",), "named twice"),
    ("max", ReductionAttributes((0, 1.0)), (f32(4, 3),), "E0306", ("axis",), "list of integers"),  # type: ignore[arg-type]
    ("min", ReductionAttributes(None, 1), (f32(4, 3),), "E0306", ("keepdims",), "True or False"),  # type: ignore[arg-type]
    ("sum", ReductionAttributes(), (I32,), "E0305", (0,), "found i32[4, 3]"),
    ("div", NONE, (f32(8, 3), f32(4)), "E0302", (0, 1), "axis -1 are 3 and 4"),
    ("where", NONE, (f32(3), f32(8, 3), f32(4)), "E0302", (1, 2), "axis -1 are 3 and 4"),
    ("where", NONE, (f32(8, 3), f32(4), f32(4)), "E0302", (0, 1, 2), "axis -1 are 3 and 4"),
    ("equal", NONE, (I32, f32(3)), "E0305", (0,), "only indices and labels"),
    ("clip", ClipAttributes(1.0, 0.0), (f32(3),), "E0307", ("low",), "low is above high"),
    ("clip", ClipAttributes(0.0, math.inf), (f32(3),), "E0307", ("high",), "found inf"),
    ("dropout", DropoutAttributes(1.0), (f32(3),), "E0307", ("rate",), "less than 1, found 1.0"),
    ("dropout", DropoutAttributes(-0.5), (f32(3),), "E0307", ("rate",), "at least 0"),
    ("one_hot", OneHotAttributes(0), (I32,), "E0307", ("n",), "at least 1, found 0"),
    ("one_hot", OneHotAttributes(3), (f32(4),), "E0305", (0,), "argmax(x)"),
    ("cross_entropy", NONE, (f32(), TensorType("i32", ())), "E0303", (0,), "no classes"),
    ("cross_entropy", NONE, (f32(4, 3), f32(4, 3)), "E0305", (1,), "argmax({1})"),
    ("cross_entropy", NONE, (f32(4, 3), f32(4)), "E0305", (1,), "declare the labels as i32"),
    ("cross_entropy", NONE, (I32, TensorType("i32", (4,))), "E0305", (0,), "expected f32"),
    ("mean_squared_error", NONE, (f32(4, 1), f32(4)), "E0302", (0, 1), "values of one shape"),
    ("binary_cross_entropy", NONE, (f32(4), I32), "E0305", (1,), "expected f32"),
    ("input", NONE, (f32(4, 0),), "E0308", (0,), "found 0"),
    ("input", NONE, (TensorType("f64", (4,)),), "E0305", (), "f32, i32, i8, i16"),
    ("weight", WeightAttributes("w"), (I32,), "E0305", (0,), "f32"),
    ("constant", ConstantAttributes(Constant(np.zeros((2, 0), np.float32))), (), "E0308", (0,), "found 0"),
]


@each({f"{place}: {case[0]}, {case[5]}": (case,) for place, case in enumerate(CASES)})
def test_a_broken_rule(case: Case) -> None:
    require_refused(case)


def test_every_code_has_a_case() -> None:
    assert {case[3] for case in CASES} == CODES


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just(10**5000),
    st.lists(st.integers(-3, 9), max_size=5).map(tuple),
)


def attribute_names(op: OpDef[Any]) -> list[str]:
    """The attributes that aren't arrays."""
    attributes = op.examples[0].attributes
    return [field.name for field in fields(attributes) if not isinstance(getattr(attributes, field.name), Constant)]


@examples(80, 1_000)
@given(st.sampled_from([name for name in sorted(OPS) if name not in ("weight", "slice") and attribute_names(OPS[name])]), st.data())
def test_no_attribute_value_gets_past_a_rule_or_crashes_it(name: str, data: st.DataObject) -> None:
    """One attribute of an example replaced by anything that a graph's text may hold: a rule error, or a type that the reference has."""
    op = OPS[name]
    example = data.draw(st.sampled_from(op.examples))
    names = attribute_names(op)
    attributes = replace(example.attributes, **{data.draw(st.sampled_from(names)): data.draw(HOSTILE)})
    assert _outcome(op, attributes, example.operands)


def _outcome(op: OpDef[Any], attributes: Any, types: tuple[TensorType, ...]) -> bool:
    """Whether the rule gives a possible type, or an error with a known code."""
    try:
        return all(1 <= size < 2**31 for size in op.infer(attributes, types).shape)
    except RuleError as error:
        return error.code in CODES
