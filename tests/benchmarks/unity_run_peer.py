"""Run by a Python that has mlagents 1.1.0: `mlagents-learn`, without the ONNX files that fail under today's torch."""

from __future__ import annotations

from mlagents.trainers.learn import main
from mlagents.trainers.model_saver.torch_model_saver import TorchModelSaver


def export_nothing(*_):
    """In place of the export of a policy."""


if __name__ == "__main__":
    TorchModelSaver.export = export_nothing
    main()
