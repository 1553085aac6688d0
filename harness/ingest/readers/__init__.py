"""One reader a shape of log; `READERS` are asked in this order whether a file is theirs."""

from harness.ingest.readers.areal_console import ArealConsole
from harness.ingest.readers.json_lines import JsonLines
from harness.ingest.readers.nemo_rl_console import NemoRlConsole
from harness.ingest.readers.nemo_rl_json import NemoRlJson
from harness.ingest.readers.openrlhf_console import OpenRlhfConsole
from harness.ingest.readers.prime_rl_benchmark import PrimeRlBenchmark
from harness.ingest.readers.prime_rl_console import PrimeRlConsole
from harness.ingest.readers.rollout_dump import RolloutDump
from harness.ingest.readers.rollout_parquet import TrlCompletions
from harness.ingest.readers.skyrl_console import SkyRlConsole
from harness.ingest.readers.skyrl_csv import SkyRlCsv
from harness.ingest.readers.tensorboard import TensorBoard
from harness.ingest.readers.trl_console import TrlConsole
from harness.ingest.readers.trl_trainer_state import TrlTrainerState
from harness.ingest.readers.verl_console import VerlConsole
from harness.ingest.readers.wandb_offline import WandbConfig, WandbRun, WandbSummary
from harness.ingest.reading import Reader

READERS: tuple[Reader, ...] = (
    TensorBoard(),
    WandbRun(),
    WandbConfig(),
    WandbSummary(),
    TrlCompletions(),
    RolloutDump(),
    TrlTrainerState(),
    NemoRlConsole(),
    NemoRlJson(),
    PrimeRlBenchmark(),
    PrimeRlConsole(),
    VerlConsole(),
    OpenRlhfConsole(),
    SkyRlConsole(),
    SkyRlCsv(),
    ArealConsole(),
    TrlConsole(),
    JsonLines(),
)
