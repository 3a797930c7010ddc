"""`python -m dreamgym_envs.cli`: the same as `dreamgym`."""

from dreamgym_envs.cli import app

app()
