"""Prints what trackio's own code reads from a project: `read_trackio.py FOLDER PROJECT`."""

import json
import os
import sys

os.environ["TRACKIO_DIR"] = sys.argv[1]

import trackio
from trackio.sqlite_storage import SQLiteStorage

runs = {run.name: run.config for run in trackio.Api().runs(sys.argv[2])}
logs = {name: SQLiteStorage.get_logs(sys.argv[2], name) for name in runs}
sys.stdout.write(json.dumps({name: {"config": config, "logs": logs[name]} for name, config in runs.items()}))
