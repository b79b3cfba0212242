"""A process with optimizers whose state is whole or sharded: prints a line of JSON at its end.

`train`: the same training in every way, with whole and with sharded state. `optimizers`: all optimizers and options.
`save FOLDER`: training that is saved. `resume FOLDER (whole|sharded)`: the same state, from the files.
"""

import functools
import hashlib
import json
import os
import sys

import numpy as np

import taut as tf
import taut.horovod as hvd

keras = tf.keras
what, *rest = sys.argv[1:]
strategies = {
    kind: tf.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=kind == "sharded")
    for kind in ("whole", "sharded")
}
group = tf.distribute.world()
rank, size = group.rank, group.size
rng = np.random.default_rng(0)
x, y = rng.normal(size=(24, 40)).astype("f"), rng.normal(size=(24, 7)).astype("f")
rows = len(x) // size
own_x, own_y = tf.constant(x[rank * rows : (rank + 1) * rows]), tf.constant(y[rank * rows : (rank + 1) * rows])


def digest(values):
    return hashlib.sha256(b"".join(np.array(value).tobytes() for value in values)).hexdigest()


def model_of():
    """Of odd lengths, so that the last shard has padding; the second kernel and the biases are small."""
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input([40]), keras.layers.Dense(601, "relu"), keras.layers.Dense(7)])


def state_of(optimizer):
    """The whole state of an optimizer, in which all processes take part."""
    return [slot._saved_state() if hasattr(slot, "_saved_state") else slot for slot in optimizer._saved_variables()]


def replica(model, optimizer, x, y):
    weights = model.trainable_variables
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply(tape.gradient(loss, [weight.__taut_variable__() for weight in weights]), weights)


def run(kind, optimizer, steps=20):
    """A loop of one's own."""
    strategy = strategies[kind]
    with strategy.scope():
        model, optimizer = model_of(), optimizer()
        optimizer.build(model.trainable_variables)
    step = tf.function(lambda x, y: strategy.run(functools.partial(replica, model, optimizer), (x, y)))
    found = measured(step, steps)
    found["paper"] = strategy.plan_for(step, own_x, own_y, ranks=size).variable_bytes
    return found | results(model, optimizer)


def horovod(kind, optimizer):
    """The same loop, for Horovod."""
    hvd.init()
    model, optimizer = model_of(), hvd.DistributedOptimizer(optimizer(), op=hvd.Sum, shard_state=kind == "sharded")
    step = tf.function(functools.partial(replica, model, optimizer))
    return measured(step, 20) | results(model, optimizer)


def fit(kind, optimizer):
    """`model.fit`."""
    with strategies[kind].scope():
        model, optimizer = model_of(), optimizer()
        model.compile(optimizer, "mse")
    model.fit(x, y, batch_size=24, epochs=20, shuffle=False, verbose=0)
    return results(model, optimizer)


def measured(step, steps):
    """The bytes of a step, by the plan and by the ledger."""
    step(own_x, own_y)
    plan = step.plan(own_x, own_y)
    before = tf.memory.live_bytes()
    tf.memory.reset_peak()
    step(own_x, own_y)
    peak = tf.memory.peak_bytes() - before + plan.arena_bytes
    for _ in range(steps - 2):
        step(own_x, own_y)
    return {"planned": plan.peak_bytes, "measured": peak, "variables": plan.variable_bytes}


def results(model, optimizer):
    sizes = [int(np.prod(weight.shape)) for weight in model.trainable_variables]
    slots = [slot for slot in optimizer.variables if "momentum" in slot.path or "velocity" in slot.path]
    return {
        "hash": digest(model.weights),
        "state": digest(state_of(optimizer)),
        "values": [float(value) for value in np.array(model.weights[0]).ravel()[:50]],
        "slots": sum(slot.value.nbytes for slot in slots),
        "large": [count for count in sizes if 4 * count >= 64 << 10],
        "small": [count for count in sizes if 4 * count < 64 << 10],
    }


adam = functools.partial(keras.optimizers.Adam, learning_rate=0.01)
OPTIONS = {
    "accumulation": {"gradient_accumulation_steps": 2},
    "decay": {"weight_decay": 0.01},
    "average": {"use_ema": True},
    "clipvalue": {"clipvalue": 0.001},
    "clipnorm": {"clipnorm": 0.01},
    "global_clipnorm": {"global_clipnorm": 0.01},
}
NAMES = ("Adadelta", "Adagrad", "Adamax", "AdamW", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD")


def saved(folder, is_resumed, kind):
    """A run whose state is saved by callbacks and as a checkpoint, or one that goes on from it."""
    backup = keras.callbacks.BackupAndRestore(os.path.join(folder, "backup"), delete_checkpoint=False)
    path = os.path.join(folder, "model.keras")
    callbacks = [backup] if is_resumed else [backup, keras.callbacks.ModelCheckpoint(path)]
    with strategies[kind].scope():
        model, optimizer = model_of(), adam()
        model.compile(optimizer, "mse")
    # The backup is of the end of training: a run that is resumed has nothing left to do.
    model.fit(x, y, batch_size=24, epochs=3, shuffle=False, verbose=0, callbacks=callbacks)
    found = results(model, optimizer)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer)
    if not is_resumed:
        # All processes take part; each writes a file of its own.
        checkpoint.write(os.path.join(folder, f"checkpoint-{rank}"))
        return found
    for slot in optimizer.variables[2:]:
        slot.assign(tf.zeros_like(slot.value))
    assert digest(state_of(optimizer)) != found["state"]
    checkpoint.read(os.path.join(folder, f"checkpoint-{rank % 2}"))
    assert digest(state_of(optimizer)) == found["state"]
    with strategies[kind].scope():
        loaded = keras.models.load_model(path)
    assert digest(state_of(loaded.optimizer)) == found["state"]
    return found


line = {"rank": rank, "size": size}
if what == "train":
    for train in (run, fit, horovod):
        line[train.__name__] = {kind: train(kind, adam) for kind in strategies}
elif what == "optimizers":
    makers = {name: functools.partial(getattr(keras.optimizers, name), learning_rate=0.01) for name in NAMES}
    makers |= {name: functools.partial(adam, **options) for name, options in OPTIONS.items()}
    line["all"] = {name: {kind: run(kind, maker, 5) for kind in strategies} for name, maker in makers.items()}
elif what == "save":
    line |= saved(rest[0], False, "sharded")
else:
    line |= saved(rest[0], True, rest[1])
os.write(1, (json.dumps(line) + "\n").encode())
