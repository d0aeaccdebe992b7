"""What a disk may hold after the power went, given the calls that were made.

A name or a content is certain from its sync on. Before that, each is there or not as the kernel pleases: any subset
of a folder's changes, and of a file nothing, all, a part, or blocks that were allocated and never filled. A rename into
another folder is two changes: the medium may have the one, the other, both or none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rl_tui.engine.storage.disk import Disk


class Killed(BaseException):
    """The process is gone: no handler of it runs any more."""


@dataclass(frozen=True)
class Call:
    """One call of the store, or the promise of a step that it made between two calls."""

    name: str
    path: Path
    target: Path | None = None
    content: bytes = b""
    step: int = 0


class RecordingDisk(Disk):
    """A real disk that records every call, omits chosen syncs, and kills at a given call."""

    def __init__(self, leaves_out: Callable[[Path], bool] = lambda path: False) -> None:
        self.calls: list[Call] = []
        self.kill_at: int | None = None
        self._leaves_out = leaves_out

    def promise(self, step: int) -> None:
        self.calls.append(Call("promise", Path(), step=step))

    def _record(self, call: Call) -> None:
        if self.kill_at is not None and len(self.calls) >= self.kill_at:
            raise Killed
        self.calls.append(call)

    def make_folder(self, path: Path) -> None:
        self._record(Call("make_folder", path))
        super().make_folder(path)

    def write(self, path: Path, content: bytes) -> None:
        self._record(Call("write", path, content=content))
        super().write(path, content)

    def sync(self, path: Path) -> None:
        if not self._leaves_out(path):
            self._record(Call("sync", path))

    def rename(self, source: Path, target: Path) -> None:
        self._record(Call("rename", source, target))
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._record(Call("unlink", path))
        super().unlink(path)

    def remove_folder(self, path: Path) -> None:
        self._record(Call("remove_folder", path))
        super().remove_folder(path)


@dataclass
class File:
    content: bytes
    is_synced: bool = False


@dataclass
class Folder:
    """entries: what a running system sees. durable: what is on the medium. pending: what is not yet, oldest first."""

    entries: dict[str, Folder | File] = field(default_factory=dict)
    durable: dict[str, Folder | File] = field(default_factory=dict)
    pending: list[dict[str, Folder | File | None]] = field(default_factory=list)

    def change(self, change: dict[str, Folder | File | None]) -> None:
        """Apply one change, which a crash keeps whole or drops whole."""
        self.pending.append(change)
        apply(change, self.entries)


Tree = dict[str, "Tree | bytes"]


def apply(change: dict[str, Folder | File | None], entries: dict[str, Folder | File]) -> None:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Machine:
    """A disk as a running kernel sees it; `root` itself is on the medium."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.tree = Folder()

    def _node(self, path: Path) -> Folder | File:
        node: Folder | File = self.tree
        for part in path.relative_to(self._root).parts:
            assert isinstance(node, Folder)
            node = node.entries[part]
        return node

    def _folder(self, path: Path) -> Folder:
        node = self._node(path)
        assert isinstance(node, Folder)
        return node

    def do(self, call: Call) -> None:
        """Follow one recorded call."""
        path = call.path
        if not path.is_relative_to(self._root):
            return  # the name of the root, and promises
        match call.name:
            case "make_folder":
                self._folder(path.parent).change({path.name: Folder()})
            case "write":
                self._folder(path.parent).change({path.name: File(call.content)})
            case "rename":
                assert call.target is not None
                node = self._node(path)
                if call.target.parent == path.parent:
                    self._folder(path.parent).change({path.name: None, call.target.name: node})
                else:
                    self._folder(path.parent).change({path.name: None})
                    self._folder(call.target.parent).change({call.target.name: node})
            case "unlink" | "remove_folder":
                self._folder(path.parent).change({path.name: None})
            case "sync":
                match self._node(path):
                    case Folder() as folder:
                        folder.durable, folder.pending = dict(folder.entries), []
                    case File() as file:
                        file.is_synced = True

    def after_power_loss(self, luck: random.Random) -> Tree:
        """One of the contents that the medium may have when the power goes now."""
        return _surviving_folder(self.tree, luck)


def _surviving_folder(folder: Folder, luck: random.Random) -> Tree:
    entries = dict(folder.durable)
    likelihood = luck.choice((0.0, 0.5, 1.0))
    for change in folder.pending:
        if luck.random() < likelihood:
            apply(change, entries)
    return {
        name: _surviving_folder(node, luck) if isinstance(node, Folder) else _surviving_content(node, luck)
        for name, node in entries.items()
    }


def _surviving_content(file: File, luck: random.Random) -> bytes:
    content = file.content
    if file.is_synced:
        return content
    cut = luck.randrange(len(content) + 1)
    return luck.choice((b"", content, content[:cut], content[:cut] + bytes(len(content) - cut), luck.randbytes(cut)))


def write_tree(tree: Tree, folder: Path) -> None:
    """Make the files of a state, so that the real reader can look at them."""
    folder.mkdir()
    for name, node in tree.items():
        if isinstance(node, bytes):
            (folder / name).write_bytes(node)
        else:
            write_tree(node, folder / name)
