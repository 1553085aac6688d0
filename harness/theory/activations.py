"""Activations and logits of a training step: approximations, each with its formula [12.2.1, 12.2.2]."""

from harness.theory.architecture import Architecture, Experts, Layer

RECOMPUTE = ("none", "selective", "full")
FLOAT32 = 4


def activation_bytes(
    shape: Architecture, sequences: int, tokens: int, bytes_per_element: float, recompute: str
) -> float:
    """What one forward pass of a microbatch keeps for its backward pass, of all layers.

    Approximate, after Korthikanti et al. (arXiv 2205.05198) with its terms counted from the layer's own shapes, no
    dropout and a fused attention kernel: a block keeps the inputs of its norms and projections (4 h), queries, keys,
    values and the attention's output, and of its MLP gate, up and their product (3 x inner, of the experts that a token
    meets). `selective` keeps all but the latter product and the norms' outputs; `full` keeps each block's input alone
    and one block whole, which is computed again.

    Args:
        sequences, tokens: of a microbatch, padded; `bytes_per_element`: of the compute type.
    """
    elements = sequences * tokens
    if recompute == "full":
        kept = shape.hidden * len(shape.layers) + max(_block(shape, layer, "none") for layer in shape.layers)
    else:
        kept = sum(_block(shape, layer, recompute) for layer in shape.layers)
    return elements * kept * bytes_per_element


def logits_bytes(shape: Architecture, sequences: int, tokens: int, bytes_per_element: float) -> float:
    """The output of the head in the compute type, its float32 copy, and the gradient of that: `s T V (b + 4 + 4)`.
    Approximate: a loss that works in chunks, or in the compute type, keeps less."""
    return sequences * tokens * shape.vocabulary * (bytes_per_element + 2 * FLOAT32)


def _block(shape: Architecture, layer: Layer, recompute: str) -> int:
    """Elements a token."""
    rows = sum(matrix[0] for matrix in layer.attention.matrices(shape.hidden))
    mlp = layer.feed_forward
    if isinstance(mlp, Experts):
        inner = mlp.active * mlp.expert.inner + (mlp.shared.inner if mlp.shared else 0)
    else:
        inner = mlp.inner
    inputs, product = (2, 2) if recompute == "selective" else (4, 3)
    return inputs * shape.hidden + rows + product * inner
