"""Where the asynchronous modes hold on to verl, as data; see `adapters.verl.hooks`."""

from harness.probe.hooks import HookPoint

SEPARATE = "verl.trainer.ppo.v1.trainer_separate_async:PPOTrainerSeparateAsync"
COLOCATED = "verl.trainer.ppo.v1.trainer_colocate_async:PPOTrainerColocateAsync"
BUFFER = "verl.trainer.ppo.v1.replay_buffer:ReplayBufferAsync"
CLIENT = "verl.workers.rollout.llm_server"
MANAGER = "verl.checkpoint_engine:CheckpointEngineManager"
DETACHED = "verl.experimental.separation.engine_workers:DetachActorWorker"
OLDER = "verl.experimental.separation.ray_trainer:SeparateRayPPOTrainer"
ONE_STEP = "verl.experimental.one_step_off_policy"
FULLY = "verl.experimental.fully_async_policy"
PLAIN = "__ray_metadata__.modified_class"
FULLY_TRAINER = f"{FULLY}.fully_async_trainer:FullyAsyncTrainer.{PLAIN}"

HOOKS = (
    HookPoint(f"{COLOCATED}.on_step_end", "weight_sync", "hands the weights over, and lets generation go on"),
    HookPoint(f"{SEPARATE}._setup", "startup", "its manager of hand-overs is replaced by ours"),
    HookPoint(f"{SEPARATE}.on_step_end", "weight_sync", "hands the weights over"),
    HookPoint(f"{SEPARATE}._update_actor", "optimizer_step", "one batch is trained on", ("batch", "metrics")),
    HookPoint(f"{BUFFER}._evict_terminal_groups", "fates", "drops groups", ("partition_id", "eviction_reasons")),
    HookPoint(f"{BUFFER}._sync_metadata_from_transfer_queue", "fates", "what is left when the run ends"),
    HookPoint(f"{CLIENT}:FullyAsyncLLMServerClient.generate", "version", "asks again when aborted", ("request_id",)),
    HookPoint(f"{MANAGER}.update_weights", "weight_sync", "a hand-over to replicas of their own", ("global_steps",)),
    HookPoint(f"{DETACHED}.save_model_to_cpu", "logprob_recompute", "keeps the old policy's weights"),
    HookPoint(f"{OLDER}._fit_compute_advantage", "tokens", "tokens, rewards and advantages are all there", ("batch",)),
    HookPoint(f"{OLDER}._fit_update_actor", "optimizer_step", "one batch is trained on", ("batch",)),
    HookPoint(f"{ONE_STEP}.main_ppo:OneStepOffRayTrainer", "startup", "is replaced by ours", ("role_worker_mapping",)),
    HookPoint(f"{ONE_STEP}.main_ppo:OneStepTaskRunner.{PLAIN}.run", "startup", "builds the trainer", ("config",)),
    HookPoint(f"{ONE_STEP}.ray_trainer:OneStepOffRayTrainer._fit_generate", "queue_wait", "waits for a batch"),
    HookPoint(f"{ONE_STEP}.ray_trainer:OneStepOffRayTrainer.fit", "startup", "the whole of training"),
    HookPoint(f"{FULLY}.fully_async_main:FullyAsyncTrainer", "startup", "is replaced by ours"),
    HookPoint(f"{FULLY}.fully_async_main:MessageQueue.{PLAIN}.put_sample", "fates", "drops the oldest", ("sample",)),
    HookPoint(f"{FULLY}.message_queue:MessageQueueClient.get_sample", "fates", "hands out what is then trained on"),
    HookPoint(f"{FULLY_TRAINER}._fit_generate", "queue_wait", "waits for a batch"),
    HookPoint(f"{FULLY_TRAINER}._fit_update_weights", "weight_sync", "hands over"),
    HookPoint(f"{FULLY_TRAINER}.fit", "startup", "the whole of training"),
)
