"""Prints what MLflow's own client reads from a store: `read_mlflow.py FOLDER EXPERIMENT`."""

import json
import sys

from mlflow import MlflowClient

client = MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow.db")
experiment = client.get_experiment_by_name(sys.argv[2])
found = {}
for run in client.search_runs([experiment.experiment_id]):
    history = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
    found[run.info.run_name] = {
        "id": run.info.run_id,
        "status": run.info.status,
        "params": run.data.params,
        "tags": run.data.tags,
        "metrics": {key: [[m.step, m.value, m.timestamp] for m in points] for key, points in history.items()},
        "artifacts": [one.path for one in client.list_artifacts(run.info.run_id)],
    }
sys.stdout.write(json.dumps(found))
