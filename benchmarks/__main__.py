"""`make bench`: every benchmark, or those named: `make bench ARGS="observer ledger"`."""

import sys
from collections.abc import Callable

from benchmarks import (
    asynchrony,
    checkpoint_cost,
    engine,
    ingest_speed,
    kills,
    lag_sweep,
    ledger_write,
    observer,
    publication,
    report_scale,
    simulated_scale,
    simulator,
)

BENCHMARKS: dict[str, Callable[[], None]] = {
    "ledger": ledger_write.main,
    "report": report_scale.main,
    "ingest": ingest_speed.main,
    "observer": observer.main,
    "engine": engine.main,
    "checkpoint": checkpoint_cost.main,
    "kills": kills.main,
    "publication": publication.main,
    "asynchrony": asynchrony.main,
    "lag": lag_sweep.main,
    "simulator": simulator.main,
    "scale": simulated_scale.main,
}


def main() -> None:
    """Run the benchmarks that were named, in the order of the table."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    if unknown := sorted(set(wanted) - set(BENCHMARKS)):
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name, run in BENCHMARKS.items():
        if name in wanted:
            print(f"== {name}")
            run()


if __name__ == "__main__":
    main()
