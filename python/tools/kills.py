"""Kills a process at random moments while it saves checkpoints: whatever it had saved is there, and whole.

The process trains nothing: its variables all hold the number of the save, so that a checkpoint that mixes two saves shows.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile

import taut as tf

#: Elements of the variables: a checkpoint is written in several pieces.
SIZES = (1, 1000, 300_000)


def variables(value: float) -> list[tf.Variable]:
    """Variables of different sizes with one value."""
    return [tf.Variable(tf.fill([size], value)) for size in SIZES]


def save(folder: str) -> None:
    """Saves again and again, each time with the next number, and prints each number that was saved."""
    held = variables(0.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(held=held), folder, max_to_keep=3)
    checkpoint = tf.train.Checkpoint(held=held)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    number = int(held[0].numpy()[0])
    while True:
        number += 1
        for variable in held:
            variable.assign(tf.fill(variable.shape, float(number)))
        manager.save()
        print(number, flush=True)


def restored(folder: str) -> int:
    """The number of the latest checkpoint, after it was read and checked; 0 if there is none."""
    latest = tf.train.latest_checkpoint(folder)
    if latest is None:
        return 0
    held = variables(-1.0)
    tf.train.Checkpoint(held=held).restore(latest).assert_consumed()
    found = {float(value) for variable in held for value in (variable.numpy().min(), variable.numpy().max())}
    if len(found) != 1:
        raise AssertionError(f"the checkpoint {latest} mixes the saves {sorted(found)}")
    return int(found.pop())


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="save checkpoints in this folder until the process is killed")
    options = parser.parse_args()
    if options.save:
        save(options.save)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        last = 0
        for number in range(options.kills):
            command = [sys.executable, __file__, "--save", folder]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                # After a few saves that were reported, at any moment of the next ones.
                for _ in range(rng.randrange(1, 8)):
                    last = int(process.stdout.readline())
                try:
                    process.wait(rng.uniform(0.0, 0.05))
                except subprocess.TimeoutExpired:
                    process.kill()
                rest = process.stdout.read().split()
                last = int(rest[-1]) if rest else last
            found = restored(folder)
            if found < last:
                print(f"kill {number}: save {last} was reported, the latest checkpoint is {found}")
                return 1
            last = found
        print(f"{options.kills} kills, {last} saves: nothing is lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
