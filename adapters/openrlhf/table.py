"""Where the adapter holds on to OpenRLHF on any machine, as data: what it changes, and what it watches."""

from adapters.openrlhf.patch import Patch
from harness.probe.hooks import HookPoint

PINS = "adapters.openrlhf.pins"
WATCH = "adapters.openrlhf.watch"
STRATEGY = "openrlhf.utils.deepspeed.deepspeed"
ENGINES = "openrlhf.trainer.ray.vllm_engine"
CONTROLLER = "openrlhf.trainer.ppo_trainer"
MAKER = "openrlhf.trainer.ppo_utils.experience_maker"
GENERATOR = "openrlhf.trainer.ppo_utils.samples_generator"
ACTOR = "openrlhf.trainer.ray.ppo_actor"
LAUNCHER = "openrlhf.trainer.ray.launcher"
BASE = f"{CONTROLLER}:BasePPOTrainer"
STEPPER = f"{ACTOR}:ActorPPOTrainer"
STRATEGY_CLASS = f"{STRATEGY}:DeepspeedStrategy"

PINNED = (
    Patch(
        "prompt_order",
        STRATEGY,
        f"{PINS}:keep_prompt_order",
        "OpenRLHF shuffles prompts and has no flag against it; every framework takes them in the task's order",
        (HookPoint(f"{STRATEGY_CLASS}.setup_dataloader", "prompt_prep", "shuffle becomes False", ("shuffle",)),),
    ),
    Patch(
        "engine_arguments",
        ENGINES,
        f"{PINS}:give_engine_arguments",
        "log-probs of the distribution really sampled have no flag but one that changes the loss, nor has a data type",
        (HookPoint(f"{ENGINES}:RolloutRayActor", "tokens", "its constructor's arguments are added to"),),
    ),
    Patch(
        "loop_clock",
        CONTROLLER,
        f"{PINS}:time_loop",
        "says how far the run is and when its loop began and ended, also in a bare twin",
        (
            HookPoint(f"{BASE}.init_checkpoint_states", "window", "is called when the loop begins"),
            HookPoint(f"{BASE}.save_logs_and_checkpoints", "window", "is called last in each turn", ("global_step",)),
        ),
    ),
)

WATCHED = (
    Patch(
        "controller",
        CONTROLLER,
        f"{WATCH}:watch_controller",
        "OpenRLHF has no callback: steps, publications and what is taken from the queue are seen here",
        (
            HookPoint(f"{BASE}.__init__", "startup", "the controller's process", ("vllm_engines",)),
            HookPoint(f"{BASE}.train_step", "batch_assembly", "a batch is handed over", ("rollout_samples",)),
            HookPoint(f"{BASE}.ppo_train", "updates", "the ranks' records come back", ("global_steps",)),
            HookPoint(f"{BASE}.broadcast_to_vllm", "publications", "weights go to the engines"),
        ),
    ),
    Patch(
        "experience_maker",
        MAKER,
        f"{WATCH}:watch_experiences",
        "rewards, advantages and recomputed log-probs meet here and are logged as means only",
        (
            HookPoint(f"{MAKER}:RemoteExperienceMaker.make_experience", "batch_assembly", "forward passes begin"),
            HookPoint(
                f"{MAKER}:RemoteExperienceMaker.compute_advantages_and_returns", "tokens", "the advantages really used"
            ),
        ),
    ),
    Patch(
        "samples_generator",
        GENERATOR,
        f"{WATCH}:watch_generator",
        "prompts are handed out here, and a batch's last sample arrives",
        (
            HookPoint(f"{GENERATOR}:SamplesGenerator.generate_samples", "queue", "a batch is whole"),
            HookPoint(
                f"{GENERATOR}:SamplesGenerator._dispatch_prompts_to_vllm", "prompt_prep", "prompts go out", ("labels",)
            ),
        ),
    ),
    Patch(
        "actor_trainer",
        ACTOR,
        f"{WATCH}:watch_trainer",
        "the training forward pass, its loss and the broadcast live in the policy actor",
        (
            HookPoint(f"{STEPPER}.__init__", "startup", "actor_loss_fn is watched"),
            HookPoint(f"{STEPPER}.training_step", "forward_backward", "a micro-batch", ("experience",)),
            HookPoint(f"{STEPPER}.ppo_train", "updates", "records leave with its result", ("kl_ctl",)),
            HookPoint(f"{STEPPER}.broadcast_to_vllm", "weight_sync", "brackets the broadcast"),
        ),
    ),
    Patch(
        "strategy",
        STRATEGY,
        f"{WATCH}:watch_strategy",
        "optimizer steps and checkpoints are DeepSpeed's, called from here",
        (
            HookPoint(f"{STRATEGY_CLASS}.optimizer_step", "optimizer_step", "ends the backward pass", ("model",)),
            HookPoint(f"{STRATEGY_CLASS}.save_ckpt", "checkpoint", "brackets a checkpoint", ("save_dir", "tag")),
            HookPoint(f"{STRATEGY_CLASS}.load_ckpt", "restore", "brackets a restore", ("load_dir",)),
            HookPoint(f"{STRATEGY_CLASS}.save_model", "window", "is called when training has ended", ("output_dir",)),
        ),
    ),
    Patch(
        "actor_calls",
        LAUNCHER,
        f"{WATCH}:watch_calls",
        "old log-probs are recomputed in the policy actor, one micro-batch after another",
        (HookPoint(f"{LAUNCHER}:BaseModelActor.execute_batch", "logprob_recompute", "brackets it", ("method_name",)),),
    ),
)
