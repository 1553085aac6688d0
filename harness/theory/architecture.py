"""Parameters and cache of a transformer from its shape alone: exact counts, no weights [12.2.1, 12.2.3]."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention: `heads` queries share `kv_heads` keys and values of `head_dim` (multi-query with one,
    multi-head with as many as queries)."""

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False

    def parameters(self, hidden: int) -> int:
        """Of one layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        weights = hidden * (queries + 2 * keys) + queries * hidden
        biases = (queries + 2 * keys) * self.qkv_bias + hidden * self.out_bias
        return weights + biases + 2 * self.head_dim * self.qk_norm

    @property
    def kept_per_token(self) -> int:
        """Elements that the cache of one layer holds of a token: its key and its value."""
        return 2 * self.kv_heads * self.head_dim

    def matrices(self, hidden: int) -> Iterator[tuple[int, int]]:
        """Rows and columns of each matrix of one layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield from ((queries, hidden), (keys, hidden), (keys, hidden), (hidden, queries))


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention [DeepSeek-V2, arXiv 2405.04434]: the cache holds one compressed vector of `kv_rank`
    and one rotary key of `rope_dim` a token, for all heads together."""

    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False

    def parameters(self, hidden: int) -> int:
        """Of one layer."""
        norms = self.kv_rank + (self.q_rank or 0)
        biases = (self.kv_rank + self.rope_dim + hidden + (self.q_rank or 0)) * self.bias
        return sum(rows * columns for rows, columns in self.matrices(hidden)) + norms + biases

    @property
    def kept_per_token(self) -> int:
        """Elements that the cache of one layer holds of a token."""
        return self.kv_rank + self.rope_dim

    def matrices(self, hidden: int) -> Iterator[tuple[int, int]]:
        """Rows and columns of each matrix of one layer."""
        queries = self.heads * (self.nope_dim + self.rope_dim)
        if self.q_rank:
            yield from ((self.q_rank, hidden), (queries, self.q_rank))
        else:
            yield queries, hidden
        yield self.kv_rank + self.rope_dim, hidden
        yield self.heads * (self.nope_dim + self.value_dim), self.kv_rank
        yield hidden, self.heads * self.value_dim


@dataclass(frozen=True)
class Mlp:
    """A gated MLP: `up` and `gate` to `inner`, and `down`."""

    inner: int
    bias: bool = False

    def parameters(self, hidden: int) -> int:
        """Of one."""
        return 3 * hidden * self.inner + (2 * self.inner + hidden) * self.bias

    def matrices(self, hidden: int) -> Iterator[tuple[int, int]]:
        """Rows and columns of each of its matrices."""
        yield from ((self.inner, hidden), (self.inner, hidden), (hidden, self.inner))


@dataclass(frozen=True)
class Experts:
    """A mixture: a router over `count` experts, of which `active` see a token, and a `shared` MLP that sees all, with
    a gate of its own or not."""

    count: int
    active: int
    expert: Mlp
    shared: Mlp | None = None
    shared_gate: bool = False

    def parameters(self, hidden: int, experts: int | None = None) -> int:
        """Of one layer, with all experts or so many."""
        number = self.count if experts is None else experts
        shared = self.shared.parameters(hidden) if self.shared else 0
        return self.count * hidden + number * self.expert.parameters(hidden) + shared + hidden * self.shared_gate


@dataclass(frozen=True)
class Layer:
    """One block. `window`: the tokens that its attention looks back on, None for all; `norms`: of the hidden size."""

    attention: Attention | LatentAttention
    feed_forward: Mlp | Experts
    window: int | None = None
    norms: int = 2

    def parameters(self, hidden: int) -> int:
        """Of all."""
        return self.attention.parameters(hidden) + self.feed_forward.parameters(hidden) + self.norms * hidden

    def active(self, hidden: int) -> int:
        """Of those that see a token."""
        mlp = self.feed_forward
        seen = mlp.parameters(hidden, mlp.active) if isinstance(mlp, Experts) else mlp.parameters(hidden)
        return self.attention.parameters(hidden) + seen + self.norms * hidden

    def cached(self, tokens: int) -> int:
        """Elements in the cache of one sequence with so many tokens."""
        kept = tokens if self.window is None else min(tokens, self.window)
        return self.attention.kept_per_token * kept


@dataclass(frozen=True)
class Architecture:
    """A decoder: embedding, blocks, a last norm, and an output head that is the embedding where it is `tied`."""

    model_type: str
    vocabulary: int
    hidden: int
    tied: bool
    layers: Sequence[Layer] = field(repr=False)

    @property
    def parameters(self) -> int:
        """All of them, exactly; tied ones once."""
        blocks = sum(layer.parameters(self.hidden) for layer in self.layers)
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + blocks + self.hidden

    @property
    def active(self) -> int:
        """Those that a token meets, the embedding's whole table among them as is the custom."""
        blocks = sum(layer.active(self.hidden) for layer in self.layers)
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + blocks + self.hidden

    @property
    def largest_module(self) -> int:
        """Parameters of the largest part that a sharded forward pass gathers at once: a block, or the embedding."""
        return max(self.vocabulary * self.hidden, *(layer.parameters(self.hidden) for layer in self.layers))

    def cached(self, tokens: int) -> int:
        """Elements in the cache of one sequence with so many tokens, of all layers."""
        return sum(layer.cached(tokens) for layer in self.layers)

    def adapter(self, rank: int) -> int:
        """Parameters of a LoRA adapter on every matrix of attention and MLPs (of experts: on each): `r (in + out)`."""
        return sum(rank * sum(shape) for layer in self.layers for shape in self._matrices(layer))

    def _matrices(self, layer: Layer) -> Iterator[tuple[int, int]]:
        yield from layer.attention.matrices(self.hidden)
        mlp = layer.feed_forward
        if isinstance(mlp, Mlp):
            yield from mlp.matrices(self.hidden)
            return
        for _ in range(mlp.count):
            yield from mlp.expert.matrices(self.hidden)
        if mlp.shared:
            yield from mlp.shared.matrices(self.hidden)
