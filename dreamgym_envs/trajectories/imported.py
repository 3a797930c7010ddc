"""What was read of a file that others have recorded in a format of their own, and what was not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dreamgym_envs.core.types import JSON, Trajectory

__all__ = ["Imported", "Skipped"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An episode, or the end of one, that was not taken over.

    Attributes:
        record: Its record in the file, from 1; in a file of JSON lines, its line.
        episode: Its name.
        step: The first step that is missing, from 1; 0 if nothing was taken over.
        reason: Why, in words that episodes share.
        detail: What was found, if it says more.
    """

    record: int
    episode: str
    step: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was read of a file, and what was not.

    Attributes:
        trajectories: Episodes with at least one step.
        skipped: Episodes that are missing, and ends of episodes that are cut off.
        unanswered: Episodes whose last action has no answer in the file; it is in their metadata as "unanswered".
    """

    trajectories: tuple[Trajectory, ...]
    skipped: tuple[Skipped, ...]
    unanswered: int

    @property
    def steps(self) -> int:
        """Steps of all trajectories."""
        return sum(len(trajectory.steps) for trajectory in self.trajectories)

    def document(self) -> dict[str, JSON]:
        """Return the report as a JSON document: how many episodes and steps were read, and for each reason what not."""
        return {
            "episodes": len(self.trajectories),
            "steps": self.steps,
            "successes": sum(trajectory.success for trajectory in self.trajectories),
            "unanswered": self.unanswered,
            "skipped": [
                {
                    "reason": reason,
                    "episodes": len(skips),
                    "whole": sum(skip.step == 0 for skip in skips),
                    "first": {"record": skips[0].record, "episode": skips[0].episode, "detail": skips[0].detail},
                }
                for reason, skips in self._by_reason().items()
            ],
        }

    def report(self) -> str:
        """Return what was read and what was not, for a person; one line for every reason."""
        lines = [f"read {len(self.trajectories)} episodes with {self.steps} steps"]
        lines += [f"without what came of the last action: {self.unanswered} episodes"] * (self.unanswered > 0)
        for reason, skips in self._by_reason().items():
            first, whole = skips[0], sum(skip.step == 0 for skip in skips)
            lines.append(
                f"{reason}: {whole} episodes skipped, {len(skips) - whole} cut there, "
                f"the first in record {first.record} ({first.episode})"
            )
        return "\n".join(lines)

    def _by_reason(self) -> Mapping[str, Sequence[Skipped]]:
        found: dict[str, list[Skipped]] = {}
        for skip in self.skipped:
            found.setdefault(skip.reason, []).append(skip)
        return found
