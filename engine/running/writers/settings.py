"""The settings of the writers that are built in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from rl_tui.engine.config.writers import WriterSettings


class TensorBoardSettings(WriterSettings):
    """TensorBoard's event files, in the folder of each behavior."""

    implementation: ClassVar[str] = "rl_tui.engine.running.writers.tensorboard:TensorBoardWriter"


class WandbSettings(WriterSettings):
    """Weights & Biases. Keys and servers are those of its own environment variables and of `wandb login`."""

    implementation: ClassVar[str] = "rl_tui.engine.running.writers.wandb:WandbWriter"
    needs: ClassVar[Mapping[str, str]] = {"wandb": "wandb"}
    extra: ClassVar[str] = "wandb"

    project: str | None = Field(None, description="null: WANDB_PROJECT, or rl-tui.")
    entity: str | None = Field(None, description="The user or team; null: WANDB_ENTITY, or the user's default.")
    name: str | None = Field(None, description="null: the run's id.")
    group: str | None = None
    tags: list[str] = Field(default_factory=list)
    mode: Literal["online", "offline"] | None = Field(
        None, description="offline: `wandb sync` uploads the run later; null: WANDB_MODE, or online."
    )


class MlflowSettings(WriterSettings):
    """MLflow."""

    implementation: ClassVar[str] = "rl_tui.engine.running.writers.mlflow:MlflowWriter"
    needs: ClassVar[Mapping[str, str]] = {"mlflow": "mlflow-skinny", "sqlalchemy": "sqlalchemy", "alembic": "alembic"}
    extra: ClassVar[str] = "mlflow"

    tracking_uri: str | None = Field(None, description="null: MLFLOW_TRACKING_URI, or mlflow.db in the results folder.")
    experiment: str | None = Field(None, description="null: MLFLOW_EXPERIMENT_NAME, or rl-tui.")
    name: str | None = Field(None, description="null: the run's id.")
    tags: dict[str, str] = Field(default_factory=dict)
