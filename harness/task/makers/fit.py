"""The short supervised fit that warms the tiny model up: cross-entropy on right answers, stopped half way."""

from typing import Any

from harness.task.kinds import kind_of
from harness.task.makers.job import observations, say, tokenise
from harness.task.problem import Problem
from harness.task.turns import split_turns

BATCH = 64
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.95)
EXAMPLES = 4096
CHECK_EVERY = 10
CHECKED_PROMPTS = 256
IGNORED = -100


def fit(
    model: Any,
    tokenizer: Any,
    task: dict[str, Any],
    prompts: list[Problem],
    seed: int,
    accuracy: float,
    most_steps: int,
) -> dict[str, Any]:
    """Train in place until the expected share of right sampled answers on `prompts` reaches `accuracy`, for at most
    `most_steps` (steps and not seconds: a busy machine must make the same checkpoint).

    That share needs no sampling: it is the mean probability of the right answer and EOS. Returns what was reached.
    """
    import torch

    threads = torch.get_num_threads()
    # The order of a parallel sum depends on the number of threads: one makes the checkpoint the same on every machine.
    torch.set_num_threads(1)
    try:
        examples = kind_of(task["name"]).problems(task["problems"], "fit", EXAMPLES)
        data = encode(tokenizer, examples)
        checked = encode(tokenizer, prompts[:CHECKED_PROMPTS])
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.01)
        step, right = 0, torch.zeros(1)
        while right.mean() < accuracy and step < most_steps:
            rows = torch.randint(len(examples), (BATCH,), generator=generator)
            _train_step(model, optimizer, {name: tensor[rows] for name, tensor in data.items()})
            step += 1
            if step % CHECK_EVERY == 0:
                right = answer_probability(model, checked)
            if step % (10 * CHECK_EVERY) == 0:
                say(f"fit step {step}: {right.mean():.0%} of answers right, until {accuracy:.0%}")
    finally:
        torch.set_num_threads(threads)
    return _result(right, step, accuracy)


def _result(right: Any, step: int, accuracy: float) -> dict[str, Any]:
    reached = float(right.mean())
    informative = float((1 - right**8 - (1 - right) ** 8).mean())
    say(f"fitted in {step} steps: {reached:.0%} of sampled answers right, {informative:.0%} of groups of 8 informative")
    if reached < accuracy:
        say(f"the fit stopped short of {accuracy:.0%}: make the task easier or the model larger")
    return {"fit_steps": step, "sampled_accuracy": reached, "informative_groups_of_8": informative}


def encode(tokenizer: Any, problems: list[Problem]) -> dict[str, Any]:
    """Right-padded `input_ids`, `attention_mask` and `labels` (each turn's answer and EOS only), (problems, longest)
    int64 each."""
    import torch

    rows = [_dialogue(tokenizer, problem) for problem in problems]
    shape = (len(rows), max(len(tokens) for tokens, _ in rows))
    ids = torch.full(shape, tokenizer.pad_token_id)
    labels, mask = torch.full(shape, IGNORED), torch.zeros(shape, dtype=torch.long)
    for index, (tokens, taught) in enumerate(rows):
        ids[index, : len(tokens)] = torch.tensor(tokens)
        labels[index, : len(tokens)] = torch.tensor(taught)
        mask[index, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def _dialogue(tokenizer: Any, problem: Problem) -> tuple[list[int], list[int]]:
    """Prompt, right answers and what the environment says between them; and as labels the answers alone."""
    _, tokens = tokenise(tokenizer, problem)
    labels = [IGNORED] * len(tokens)
    told = [*observations(tokenizer, problem), []]
    for answer, observation in zip(split_turns(problem.answer), told, strict=True):
        said = [*tokenizer(answer, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        tokens = [*tokens, *said, *observation]
        labels = [*labels, *said, *[IGNORED] * len(observation)]
    return tokens, labels


def _train_step(model: Any, optimizer: Any, batch: dict[str, Any]) -> None:
    import torch

    model.train()
    optimizer.zero_grad()
    model(**batch).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def answer_probability(model: Any, data: dict[str, Any]) -> Any:
    """Probability that sampling at temperature 1 gives exactly the right answer and then EOS: float32, (problems,)."""
    import torch

    model.eval()
    with torch.no_grad():
        logits = model(input_ids=data["input_ids"], attention_mask=data["attention_mask"]).logits[:, :-1]
    labels = data["labels"][:, 1:]
    logs = torch.log_softmax(logits.float(), -1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return logs.masked_fill(labels == IGNORED, 0.0).sum(-1).exp()
