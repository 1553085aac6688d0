"""CPU seconds and memory of a simulation, and how they compare with simpy alone."""

import resource
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Any

import simpy

from harness.simulate.profiles import settings_of
from harness.simulate.simulate import simulate

ROLLOUTS = (100_000, 1_000_000)
PER_SECOND = 25.8
"""Rollouts that the smoke profile trains on in a simulated second."""
MOST_SECONDS = 60


def tell(rollouts: int) -> None:
    """Print CPU seconds, rollouts, events and peak bytes of a simulation in this process."""
    (settings,) = settings_of(["overlap=deep", f"seconds={rollouts / PER_SECOND:.0f}"])
    start = time.process_time()
    done = simulate(settings)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(seconds, done.figures["trained_rollouts"], done.events, peak)


def bare_events(events: int, processes: int) -> float:
    """CPU seconds of so many time-outs of simpy and nothing else, in so many processes side by side."""
    env = simpy.Environment()

    def loop(wait: float) -> Generator[simpy.Event, Any, None]:
        for _ in range(events // processes):
            yield env.timeout(wait)

    for number in range(processes):
        env.process(loop(1 + number / processes))
    start = time.process_time()
    env.run()
    return time.process_time() - start


def bare_loop(rollouts: int, slots: int, workers: int) -> float:
    """CPU seconds of so many rollouts through a slot, a verifier and a store in simpy's own words: one process and two
    resources a rollout, no lengths, no batching, no records, no figures."""
    env = simpy.Environment()
    slot, worker, store = simpy.Resource(env, slots), simpy.Resource(env, workers), simpy.Store(env)

    def rollout() -> Generator[simpy.Event, Any, None]:
        with slot.request() as mine:
            yield mine
            yield env.timeout(0.25)
        with worker.request() as mine:
            yield mine
            yield env.timeout(0.03)
        yield store.put(1)

    def ask() -> Generator[simpy.Event, Any, None]:
        for _ in range(rollouts):
            env.process(rollout())
            yield store.get()

    for _ in range(slots):
        env.process(ask())
    start = time.process_time()
    env.run()
    return time.process_time() - start


def _apart(rollouts: int) -> tuple[float, int, int, float]:
    """In a process of its own, so that its peak is its own."""
    code = f"from benchmarks.simulator import tell; tell({rollouts})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    seconds, trained, events, peak = done.stdout.split()
    return float(seconds), int(trained), int(events), float(peak)


def main() -> None:
    """Print seconds of a million rollouts, the growth of memory, and the ratios to simpy alone, all of one run."""
    small, large = (_apart(rollouts) for rollouts in ROLLOUTS)
    for seconds, trained, events, peak in (small, large):
        print(f"{trained:,} rollouts, {events:,} events: {seconds:.1f} s of CPU, peak {peak / 2**20:.0f} MiB")
    each = large[0] / large[1]
    print(f"seconds of a million over {MOST_SECONDS}: {each * 1e6 / MOST_SECONDS:.2f}; wanted: at most 1")
    print(f"peak of ten times the simulated time over the peak of one: {large[3] / small[3]:.2f}; wanted: about 1")
    loop = bare_loop(small[1] // 8, 8, 4) / (small[1] // 8 * 8)
    print(f"a rollout over the same stages in simpy's own resources: {each / loop:.2f}; wanted: at most 2")
    timeouts = bare_events(small[2], 12) / small[2]
    told = f"{large[2] / large[1]:.1f} events a rollout"
    print(f"an event over a bare time-out of simpy: {large[0] / large[2] / timeouts:.2f} ({told})")


if __name__ == "__main__":
    main()
