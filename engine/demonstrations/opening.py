"""Finds demonstrations by their path, and opens them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rl_tui.engine.demonstrations.demonstration_file import SUFFIX, open_file
from rl_tui.engine.demonstrations.file_sensors import ImageOrder
from rl_tui.engine.demonstrations.misfit import require_fit
from rl_tui.engine.demonstrations.opened import OpenedDemonstrations
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.sampling.environments.unity.wire.image_decoder import ImageDecoder
from rl_tui.engine.specs import BehaviorSpec

MINARI = "minari:"
KEEP_BYTES = 512 * 2**20  # of decoded observations


def open_demonstrations(
    path: str | Path,
    behavior: BehaviorSpec | None = None,
    *,
    keep_bytes: int = KEEP_BYTES,
    image_order: ImageOrder | None = None,
) -> OpenedDemonstrations:
    """The steps of a .demo file, of all such files in a folder by name, or of `minari:NAME`. Raises DemonstrationError.

    behavior: which is to learn from them: they must fit it, and images are of its dtypes. keep_bytes: how much memory
    decoded observations may take from one call to the next. image_order: of the floats of images that were not
    compressed, which depends on the version of the game's package and is not written in the file: that of the behavior,
    else CHW as ML-Agents reads them.
    """
    if str(path).startswith(MINARI):
        from rl_tui.engine.demonstrations.minari_dataset import open_minari  # imports gymnasium

        return open_minari(str(path).removeprefix(MINARI), behavior, keep_bytes)
    return open_files(Path(path), behavior, keep_bytes, image_order)


def require_found(path: str) -> None:
    """There are files at this path; what they hold is not looked at. Raises DemonstrationError."""
    if not path.startswith(MINARI):
        _files(Path(path))


def open_files(
    path: Path, behavior: BehaviorSpec | None, keep_bytes: int, image_order: ImageOrder | None
) -> RecordedDemonstrations:
    """The steps of .demo files, see open_demonstrations."""
    if image_order is None:
        package = None if behavior is None else behavior.unity_package
        image_order = "CHW" if package is None else package.image_order
    decoder = ImageDecoder()
    files = [open_file(each, image_order, decoder) for each in _files(path)]
    spec = files[0].spec
    for file in files[1:]:
        require_fit(file.spec, replace(spec, name=f"{spec.name} in {files[0].path.name}"), str(file.path))
    if behavior is not None:
        require_fit(spec, behavior, str(path))
        observations = zip(spec.observations, behavior.observations, strict=True)
        spec = replace(spec, observations=tuple(replace(one, dtype=other.dtype) for one, other in observations))
    return RecordedDemonstrations(files, spec, keep_bytes)


def _files(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            found = sorted(each for each in path.iterdir() if each.suffix == SUFFIX and each.is_file())
            if not found:
                raise DemonstrationError(f"{path}: the folder must hold {SUFFIX} files, got none")
            return found
        exists = path.exists()
    except OSError as error:
        raise DemonstrationError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not exists:
        raise DemonstrationError(f"{path}: must be a {SUFFIX} file or a folder of them, got no such file")
    if path.suffix != SUFFIX or not path.is_file():
        raise DemonstrationError(f"{path}: must be a {SUFFIX} file or a folder of them, got another")
    return [path]
