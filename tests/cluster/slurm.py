"""Stand-ins for Slurm's commands, whose jobs are processes of this machine: what Slurm is asked, not what it does."""

import sys
from pathlib import Path

SBATCH = """#!/bin/sh
mkdir -p "{folder}/given"
number=$(ls "{folder}/given" | wc -l)
number=$((number + 1))
cp "$1" "{folder}/given/$number.sh"
export SLURM_JOB_ID=$number SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1
setsid sh -c 'grep -v "^module " "$0" | sh; echo $? > "$1"' "$1" "{folder}/ended-$number" > /dev/null 2>&1 &
echo "Submitted batch job $number"
"""
SRUN = """#!{python}
import os, sys
words = sys.argv[1:]
while words and words[0].startswith("--"):
    words = words[1:] if words[0] == "--unbuffered" else words[2:]
os.execvp(words[0], words)
"""
SACCT = """#!/bin/sh
echo "JobID|State|NodeList"
for file in "{folder}"/given/*.sh; do
  number=$(basename "$file" .sh)
  if [ -e "{folder}/ended-$number" ]; then echo "$number|COMPLETED|node"; else echo "$number|RUNNING|node"; fi
done
"""


def stand_in(folder: Path) -> Path:
    """Write `sbatch`, `srun` and `sacct` into a folder, to be put in front of PATH; scripts go to its `given`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
        path = folder / name
        path.write_text(text.replace("{folder}", str(folder)).replace("{python}", sys.executable), encoding="utf-8")
        path.chmod(0o755)
    return folder
