"""Networks of Keras, exported as ONNX files by Keras itself, with inputs and its predictions.

    KERAS_BACKEND=torch python tests/support/keras_zoo.py tests/support/keras
    KERAS_BACKEND=tensorflow python tests/support/keras_zoo.py tests/support/keras_tensorflow

Those that are there are Keras 3.15.1's, on PyTorch 2.13.0, and on TensorFlow 2.21.0 with tf2onnx 1.17.0. Each network is trained for one
epoch on random numbers, so that no weight or statistic is what it was initialised with. On TensorFlow there are more networks, and those
that TensorFlow Lite has quantised, in 8 bits, by the examples.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import Model, Sequential, layers

EXAMPLES = 64
"""To train on."""
KEPT = 3
"""Examples that are written, with their predictions."""
WORDS = 20
CLASSES = 3


def dense() -> Any:
    return Sequential([layers.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(CLASSES, activation="softmax")])


def cnn() -> Any:
    """A convolution with batch norm and dropout, and one whose "same" padding is odd."""
    return Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.Conv2D(6, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def depthwise() -> Any:
    return Sequential(
        [
            layers.Input((9, 9, 4)),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.SeparableConv2D(6, 3, strides=2),
            layers.LeakyReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def lstm() -> Any:
    return Sequential([layers.Input((5, 5)), layers.LSTM(6), layers.Dense(CLASSES, activation="softmax")])


def words() -> Any:
    """Keras lets numbers of words below 0 count from the end of the table."""
    return Sequential(
        [
            layers.Input((7,), dtype="int32"),
            layers.Embedding(WORDS, 6),
            layers.Conv1D(8, 3, activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def bidirectional() -> Any:
    """TensorFlow has the steps of a GRU as a loop, and those of the other direction of a sequence in reverse order."""
    return Sequential([layers.Input((5, 3)), layers.Bidirectional(layers.GRU(4)), layers.Dense(CLASSES, activation="softmax")])


def encoder() -> Any:
    words = layers.Input((6,), dtype="int32")
    h = layers.Embedding(WORDS, 8)(words)
    h = layers.LayerNormalization()(layers.Add()([h, layers.MultiHeadAttention(2, 4)(h, h, use_causal_mask=True)]))
    h = layers.GlobalAveragePooling1D()(layers.Dense(8, activation="relu")(h))
    return Model(words, layers.Dense(CLASSES, activation="softmax")(h))


def masked() -> Any:
    """The steps of words with the number 0 leave the state as it is."""
    return Sequential(
        [
            layers.Input((4,), dtype="int32"),
            layers.Embedding(WORDS, 6, mask_zero=True),
            layers.LSTM(5),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def normalised() -> Any:
    """ConvNeXt's normalisation, of each pixel's channels."""
    return Sequential(
        [
            layers.Input((6, 6, 3)),
            layers.Conv2D(8, 3),
            layers.LayerNormalization(),
            layers.Conv2D(4, 1, activation="hard_silu"),
            layers.GlobalMaxPooling2D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


NETWORKS: Mapping[str, Callable[[], Any]] = {made.__name__: made for made in (dense, cnn, depthwise, lstm, words)}
OF_TENSORFLOW: Mapping[str, Callable[[], Any]] = {made.__name__: made for made in (bidirectional, encoder, masked, normalised)}
QUANTISED = ("dense", "cnn", "depthwise")


def quantise(model: Any, x: Any, path: Path) -> None:
    """Writes what TensorFlow Lite makes of a model, from float to float."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([example[None]] for example in x)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    lite = path.with_suffix(".tflite")
    lite.write_bytes(converter.convert())
    words = ("-m", "tf2onnx.convert", "--tflite", str(lite), "--output", str(path), "--opset", "16")
    subprocess.run([sys.executable, *words], check=True)
    lite.unlink()


def main(folder: Path) -> None:
    keras.utils.set_random_seed(0)
    draw = np.random.default_rng(0)
    on_tensorflow = keras.backend.backend() == "tensorflow"
    for name, make in {**NETWORKS, **(OF_TENSORFLOW if on_tensorflow else {})}.items():
        model = make()
        shape = (EXAMPLES, *model.input_shape[1:])
        of_words = model.inputs[0].dtype == "int32"
        x = draw.integers(0, WORDS, shape).astype(np.int32) if of_words else draw.normal(size=shape).astype(np.float32)
        model.compile("adam", "sparse_categorical_crossentropy")
        model.fit(x, draw.integers(0, CLASSES, EXAMPLES), verbose=0)
        model.export(folder / f"{name}.onnx", format="onnx", verbose=False)
        if on_tensorflow and name in QUANTISED:
            quantise(model, x, folder / f"{name}_int8.onnx")
        np.savez(folder / f"{name}.npz", x=x[:KEPT], y=model.predict(x[:KEPT], verbose=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
