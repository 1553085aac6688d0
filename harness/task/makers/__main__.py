"""`python -m harness.task.makers JOB.json`: make one bundle. Progress goes to standard output, a line a step.

An error that the user can mend leaves as one line `rlaxes-error KIND MESSAGE` on standard error and exit status 3.
"""

import sys
from pathlib import Path

from harness.errors import PrerequisiteError, RlaxesError, UserError
from harness.task.makers import hf, smollm2, tiny
from harness.task.makers.job import Job, Maker, make_bundle
from harness.task.orphan import exit_with_parent
from harness.task.problem import nearest

MAKERS: dict[str, Maker] = {"hf": hf.make, "smollm2": smollm2.make, "tiny": tiny.make}
EXIT_REFUSED = 3


def main(job_file: Path) -> int:
    """Exit status: 0, or 3 where the job was refused with a reason."""
    exit_with_parent()
    job = Job.read(job_file)
    try:
        make_bundle(job, _maker(str(job.model["name"])))
    except ModuleNotFoundError as error:
        return _refuse(PrerequisiteError(f"{error.name} is missing in the environment {sys.prefix}: rlaxes env sync"))
    except RlaxesError as error:
        return _refuse(error)
    return 0


def _refuse(error: RlaxesError) -> int:
    sys.stderr.write(f"rlaxes-error {type(error).__name__} {' '.join(str(error).split())}\n")
    return EXIT_REFUSED


def _maker(name: str) -> Maker:
    if name not in MAKERS:
        raise UserError(f"no model is called {name!r}; did you mean {nearest(name, MAKERS)!r}?")
    return MAKERS[name]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
