"""Writes optimizers.json: what Keras makes of given variables and gradients, step by step.

Keras computes in float64, from values that float32 has too, so that the numbers serve for both types.

Run with an environment that has Keras 3 (KERAS_BACKEND=tensorflow): python optimizers.py
"""

import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

keras.config.set_floatx("float64")
STEPS = 10
SHAPES = [(5, 3), (4,), ()]
random = np.random.default_rng(7)
start = [random.normal(size=shape).astype("float32") for shape in SHAPES]
gradients = [[random.normal(size=shape).astype("float32") for shape in SHAPES] for _ in range(STEPS)]


def rounded(x):
    return float(f"{float(x):.14g}")


def listed(arrays):
    return [[rounded(x) for x in np.ravel(array)] for array in arrays]


def run(optimizer):
    variables = [keras.Variable(value.astype("float64"), name=f"v{i}") for i, value in enumerate(start)]
    if optimizer.weight_decay is not None and getattr(optimizer, "skips_v1", False):
        optimizer.exclude_from_weight_decay(var_list=[variables[1]])
    optimizer.build(variables)
    steps = []
    for given in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(g.astype("float64")) for g in given])
        row = {"values": listed([v.numpy() for v in variables])}
        if optimizer.use_ema:
            row["averages"] = listed([v.numpy() for v in optimizer._model_variables_moving_average])
        steps.append(row)
    return steps


o = keras.optimizers
s = keras.optimizers.schedules
exempting = o.SGD(learning_rate=0.1, weight_decay=0.5)
exempting.skips_v1 = True
cases = {
    "sgd": o.SGD(),
    "sgd rate": o.SGD(learning_rate=0.3),
    "sgd momentum": o.SGD(learning_rate=0.1, momentum=0.9),
    "sgd nesterov": o.SGD(learning_rate=0.1, momentum=0.8, nesterov=True),
    "sgd scheduled": o.SGD(learning_rate=s.ExponentialDecay(0.5, 3, 0.7)),
    "rmsprop": o.RMSprop(),
    "rmsprop momentum": o.RMSprop(learning_rate=0.01, rho=0.8, momentum=0.6, epsilon=1e-5),
    "rmsprop centered": o.RMSprop(learning_rate=0.01, centered=True),
    "rmsprop momentum centered": o.RMSprop(learning_rate=0.01, momentum=0.5, centered=True, epsilon=1e-3),
    "adagrad": o.Adagrad(),
    "adagrad rate": o.Adagrad(learning_rate=0.2, initial_accumulator_value=0.0, epsilon=1e-4),
    "adadelta": o.Adadelta(),
    "adadelta rate": o.Adadelta(learning_rate=1.0, rho=0.8, epsilon=1e-3),
    "adam": o.Adam(),
    "adam rate": o.Adam(learning_rate=0.1, beta_1=0.7, beta_2=0.9, epsilon=1e-3),
    "adam amsgrad": o.Adam(learning_rate=0.05, amsgrad=True),
    "adam scheduled": o.Adam(learning_rate=s.CosineDecay(0.1, 7)),
    "adamw": o.AdamW(learning_rate=0.05),
    "adamw decay": o.AdamW(learning_rate=0.05, weight_decay=0.3, amsgrad=True),
    "adamax": o.Adamax(),
    "adamax rate": o.Adamax(learning_rate=0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-2),
    "nadam": o.Nadam(),
    "nadam rate": o.Nadam(learning_rate=0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3),
    "adafactor": o.Adafactor(),
    "adafactor rate": o.Adafactor(
        learning_rate=0.5, beta_2_decay=-0.6, epsilon_1=1e-3, epsilon_2=0.1, clip_threshold=0.5
    ),
    "adafactor scheduled": o.Adafactor(learning_rate=s.InverseTimeDecay(0.5, 2, 0.5), relative_step=False),
    "lion": o.Lion(),
    "lion rate": o.Lion(learning_rate=0.1, beta_1=0.7, beta_2=0.8),
    "ftrl": o.Ftrl(),
    "ftrl rate": o.Ftrl(
        learning_rate=0.5,
        learning_rate_power=-0.7,
        initial_accumulator_value=0.3,
        l1_regularization_strength=0.2,
        l2_regularization_strength=0.1,
        l2_shrinkage_regularization_strength=0.05,
        beta=0.4,
    ),
    "decay": o.SGD(learning_rate=0.1, weight_decay=0.5),
    "decay exempt": exempting,
    "clip value": o.SGD(learning_rate=0.1, clipvalue=0.4),
    "clip norm": o.SGD(learning_rate=0.1, clipnorm=0.9),
    "clip global norm": o.SGD(learning_rate=0.1, global_clipnorm=1.5),
    "accumulate": o.Adam(learning_rate=0.1, gradient_accumulation_steps=3),
    "accumulate clip value": o.SGD(learning_rate=0.1, gradient_accumulation_steps=2, clipvalue=0.3),
    "accumulate clip norm": o.SGD(learning_rate=0.1, gradient_accumulation_steps=2, clipnorm=0.5),
    "accumulate clip global norm": o.SGD(learning_rate=0.1, gradient_accumulation_steps=4, global_clipnorm=0.5),
    "accumulate nadam decay": o.Nadam(learning_rate=0.1, gradient_accumulation_steps=2, weight_decay=0.2),
    "accumulate scheduled": o.SGD(
        learning_rate=s.InverseTimeDecay(0.5, 2, 0.5), momentum=0.9, gradient_accumulation_steps=2
    ),
    "average": o.SGD(learning_rate=0.3, use_ema=True, ema_momentum=0.7),
    "average adam": o.Adam(learning_rate=0.05, use_ema=True, ema_momentum=0.9),
    "average accumulate": o.Adam(
        learning_rate=0.05, use_ema=True, ema_momentum=0.8, gradient_accumulation_steps=3
    ),
}

at = list(range(0, 45)) + [50, 63, 99, 100, 101, 150, 210, 500, 999, 1000, 1001, 4321]
schedules = {
    "exponential": s.ExponentialDecay(0.1, 20, 0.6),
    "exponential staircase": s.ExponentialDecay(0.1, 7, 0.5, staircase=True),
    "piecewise": s.PiecewiseConstantDecay([3, 10, 40], [1.0, 0.5, 0.1, 0.01]),
    "polynomial": s.PolynomialDecay(0.2, 30, end_learning_rate=0.01),
    "polynomial power": s.PolynomialDecay(0.2, 30, end_learning_rate=0.01, power=2.5),
    "polynomial cycle": s.PolynomialDecay(0.2, 11, end_learning_rate=0.01, power=0.5, cycle=True),
    "inverse time": s.InverseTimeDecay(0.3, 10, 0.7),
    "inverse time staircase": s.InverseTimeDecay(0.3, 4, 0.7, staircase=True),
    "cosine": s.CosineDecay(0.4, 25),
    "cosine alpha": s.CosineDecay(0.4, 60, alpha=0.2),
    "cosine warmup": s.CosineDecay(0.01, 30, alpha=0.1, warmup_target=0.5, warmup_steps=12),
    "restarts": s.CosineDecayRestarts(0.3, 10),
    "restarts even": s.CosineDecayRestarts(0.3, 8, t_mul=1.0, m_mul=0.9, alpha=0.05),
    "restarts lower": s.CosineDecayRestarts(0.3, 6, t_mul=1.5, m_mul=0.7, alpha=0.1),
}

data = {
    "keras": keras.__version__,
    "shapes": [list(shape) for shape in SHAPES],
    "start": [value.ravel().tolist() for value in start],
    "gradients": [[value.ravel().tolist() for value in given] for given in gradients],
    "cases": {name: run(optimizer) for name, optimizer in cases.items()},
    "at": at,
    "schedules": {name: [rounded(schedule(step)) for step in at] for name, schedule in schedules.items()},
}
path = pathlib.Path(__file__).with_name("optimizers.json")
path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
print(f"{path.name}: {len(cases)} optimizers, {len(schedules)} schedules, {path.stat().st_size} bytes")
