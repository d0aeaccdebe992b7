"""What the code uses of other libraries beyond their documentation: a release that moves such a symbol fails here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORT = "onnxruntime.capi.onnxruntime_pybind11_state"
USED = {  # by the one file that uses them
    "engine/export/onnx_graph.py": [
        (ORT, name) for name in ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException")
    ],
    "engine/running/writers/tensorboard.py": [
        ("tensorboard.compat.proto.event_pb2", "Event"),
        ("tensorboard.compat.proto.summary_pb2", "Summary"),
        ("tensorboard.compat.proto.summary_pb2", "SummaryMetadata"),
        ("tensorboard.compat.proto.summary_pb2", "HistogramProto"),
        ("tensorboard.compat.proto.tensor_pb2", "TensorProto"),
        ("tensorboard.compat.proto.tensor_shape_pb2", "TensorShapeProto"),
        ("tensorboard.summary.writer.record_writer", "RecordWriter"),
    ],
    "engine/running/machine/gpus.py": [
        ("pynvml", "nvmlDeviceGetComputeRunningProcesses_v3"),
        ("pynvml", "nvmlDeviceGetGraphicsRunningProcesses_v3"),
        ("pynvml", "nvmlDeviceGetComputeRunningProcesses_v2"),
        ("pynvml", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
        ("pynvml", "nvmlMemory_v2"),
    ],
}


@pytest.mark.parametrize(("module", "symbol"), [used for symbols in USED.values() for used in symbols])
def test_library_still_has_the_symbol(module: str, symbol: str) -> None:
    assert hasattr(import_module(module), symbol), f"{module} has no {symbol} in this release"


@pytest.mark.parametrize("file", USED)
def test_only_one_file_imports_the_module(file: str) -> None:
    sources = {path: path.read_text() for folder in ("engine", "tui") for path in sorted((ROOT / folder).rglob("*.py"))}
    for module in {module.rpartition(".")[0] or module for module, _ in USED[file]}:
        users = {str(path.relative_to(ROOT)) for path, text in sources.items() if module in text}
        assert users == {file}
