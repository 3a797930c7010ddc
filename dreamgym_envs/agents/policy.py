"""A policy that scores candidate actions by what is said about them, for PPO and MaskablePPO.

An index into a list of candidates has no meaning of its own, so the policy never sees one. Every candidate's tokens
(see `wrappers.features`) are summed into a vector c, the tokens of instruction and state into a context h, and

    score(candidate) = w . relu(W2 relu(Wc c + Wh h + Wg (c * gate(h))))

The gate lets instruction and held object decide which of a candidate's features count. The value is a network of its
own over the context.
"""

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn
from torch.nn import functional as F

ABSENT = -1e8
"""Score of no candidate: probability zero, and unlike minus infinity without a NaN in the entropy."""


class CandidateScorer(nn.Module):
    """The network: tokens in, one score a candidate and one value a state out.

    Actor and critic share nothing: with a shared embedding the critic's errors, large while rewards are rare, undo what
    the actor was taught.

    Args:
        buckets: Size of the token vocabulary; 0 is padding.
        embedding: Width of a token's embedding.
        hidden: Width of the hidden layers.
    """

    def __init__(self, buckets: int, embedding: int = 64, hidden: int = 96) -> None:
        super().__init__()
        self.tokens = _bag(buckets, embedding)
        self.context = nn.Sequential(nn.Linear(embedding, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.gate = nn.Linear(hidden, embedding)
        self.from_candidate = nn.Linear(2 * embedding, hidden, bias=False)
        self.from_context = nn.Linear(hidden, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        nn.init.normal_(self.score.weight, std=0.01)
        self.critic_tokens = _bag(buckets, embedding)
        self.critic = nn.Sequential(
            nn.Linear(embedding, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, candidates: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores [B, K], `ABSENT` where there is no candidate, and values [B, 1].

        Args:
            candidates: Token ids [B, K, T]; all zero where there is no candidate.
            context: Token ids [B, S].
        """
        return self.scores(candidates, context), self.values(context)

    def scores(self, candidates: Tensor, context: Tensor) -> Tensor:
        """Return the scores [B, K]."""
        # Only real candidates are computed: most of [B, K] is padding.
        present = candidates[:, :, 0] != 0
        owner, _ = rows = present.nonzero(as_tuple=True)
        features = _sum(self.tokens, candidates[rows])
        told = self.context(_sum(self.tokens, context))
        gated = features * self.gate(told)[owner]
        hidden = F.relu(self.from_candidate(torch.cat([features, gated], 1)) + self.from_context(told)[owner])
        hidden = F.relu(self.mix(hidden))
        scores = hidden.new_full(present.shape, ABSENT)
        scores[rows] = self.score(hidden).squeeze(1)
        return scores

    def values(self, context: Tensor) -> Tensor:
        """Return the values [B, 1]."""
        values: Tensor = self.critic(_sum(self.critic_tokens, context))
        return values


def _bag(buckets: int, embedding: int) -> nn.EmbeddingBag:
    bag = nn.EmbeddingBag(buckets, embedding, mode="sum", padding_idx=0)
    nn.init.normal_(bag.weight, std=0.3)
    with torch.no_grad():
        bag.weight[0] = 0.0
    return bag


def _sum(bag: nn.EmbeddingBag, ids: Tensor) -> Tensor:
    """Return the sum of the embeddings of each row of ids [N, T]; padding costs nothing."""
    used = ids != 0
    offsets = torch.zeros(len(ids), dtype=torch.int32)
    torch.cumsum(used.sum(1)[:-1], 0, out=offsets[1:])
    summed: Tensor = bag(ids[used].int(), offsets)
    return summed


class CandidatePolicy(MaskableActorCriticPolicy):
    """Actor and critic for the arrays of `TextArrays`; pass the class as `policy` to PPO or MaskablePPO.

    Absent candidates are masked by the observation itself, so that PPO, which knows no masks, never picks one.

    Args:
        observation_space: Dict of "candidates" [K, T] and "context" [S], integer token ids.
        action_space: Discrete(K).
        lr_schedule: Learning rate by remaining progress.
        embedding: Width of a token's embedding.
        hidden: Width of the hidden layers.
        use_sde: What PPO passes to every policy; there is no state-dependent exploration of discrete actions.
        **kwargs: Passed on to `MaskableActorCriticPolicy`, such as `optimizer_kwargs`.

    Raises:
        ValueError: The spaces are not those of `TextArrays`.

    Example:
        >>> MaskablePPO(CandidatePolicy, venv, policy_kwargs={"hidden": 128})  # doctest: +SKIP
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        embedding: int = 64,
        hidden: int = 96,
        use_sde: bool = False,
        **kwargs: Any,
    ) -> None:
        if not (isinstance(observation_space, spaces.Dict) and {"candidates", "context"} <= set(observation_space)):
            raise ValueError(
                f"CandidatePolicy reads Dict('candidates', 'context') observations, not {observation_space}; "
                "wrap the environment: TextArrays(CandidateActions(env))"
            )
        # Before super().__init__, which calls _build.
        self.embedding = embedding
        self.hidden = hidden
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert isinstance(self.observation_space, spaces.Dict)
        box = self.observation_space["candidates"]
        assert isinstance(box, spaces.Box)
        self.scorer = CandidateScorer(int(box.high.max()) + 1, self.embedding, self.hidden)
        if self.optimizer_class is torch.optim.Adam:
            # Most parameters are embeddings: one pass over them instead of a dozen makes the step 7 times as fast.
            self.optimizer_kwargs.setdefault("fused", True)
        self.optimizer = self.optimizer_class(
            self.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    def _distribution(self, scores: Tensor, action_masks: Any) -> MaskableDistribution:
        distribution = self.action_dist.proba_distribution(action_logits=scores)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions [B], values [B, 1] and log-probabilities [B]."""
        scores, values = self.scorer(obs["candidates"], obs["context"])
        distribution = self._distribution(scores, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: Tensor, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values [B, 1], log-probabilities [B] of the actions and entropies [B]."""
        scores, values = self.scorer(obs["candidates"], obs["context"])
        distribution = self._distribution(scores, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, action_masks: Any = None) -> MaskableDistribution:
        """Return the distribution over candidates."""
        return self._distribution(self.scorer.scores(obs["candidates"], obs["context"]), action_masks)

    def predict_values(self, obs: Any) -> Tensor:
        """Return the values [B, 1]."""
        return self.scorer.values(obs["context"])

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "embedding": self.embedding,
            "hidden": self.hidden,
        }
