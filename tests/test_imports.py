"""What is imported when: the promises that reading one file at a time cannot see."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rl_tui.engine import registry
from rl_tui.engine.specs import Ending
from tests.deadline import DEADLINE_SECONDS
from tests.demonstrations.recordings import VECTORS, episodes, write

ROOT = Path(__file__).parent.parent

COMMAND = """
from rl_tui.tui.cli import main
try:
    main({words!r})
except SystemExit:
    pass
"""
READ_A_CONFIGURATION = """
from rl_tui.engine.config.loading import parse_config
parse_config(b"behaviors: {A: {trainer_type: sac}, B: {trainer_type: ppo}}", "a.yaml")
"""
IMPORT_THE_PACKAGE = """
import rl_tui
assert {name for name in dir(rl_tui) if name[:1] != '_'} == set(rl_tui.__all__)
"""
NOTE = """
with open({path!r}, "a") as stages:
    print({stage!r}, *sys.modules, sep="\\t", file=stages)
"""

ABOUT_THE_PROGRAM = ("--version", "--help", "demo --help", "replay --help", "ls --help", "demonstrations info --help")
ABOUT_CONFIGURATIONS = (
    "schema",
    "presets",
    "plugins",
    "presets ppo/CartPole",
    "upgrade-config config/ppo/CartPole.yaml nowhere/new.yaml",
)
LIST_RUNS = "ls {folder}"
DRY_RUN = "ppo/CartPole --dry-run"
RUN = "ppo/CartPole --no-ui --set behaviors.CartPole.max_steps=100 --results-dir {folder}/results"

Imported = Mapping[str, set[str]]  # by the end of each stage: the full names of all modules


def imported_after(stages: Mapping[str, str], path: Path, **variables: str) -> Imported:
    """What one new interpreter has imported by the end of each stage, whose code is given. path: a file for that."""
    program = "".join(code + NOTE.format(path=str(path), stage=stage) for stage, code in stages.items())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys\n{program}"],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    noted = [line.split("\t") for line in path.read_text().splitlines()]
    return {stage: set(modules) for stage, *modules in noted}


def packages(modules: set[str]) -> set[str]:
    """The top-level names among these."""
    return {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in it."""
    folder = tmp_path_factory.mktemp("imports")
    (folder / "walk").mkdir()
    (folder / "walk/configuration.yaml").write_text("behaviors: {}\n")
    (folder / "home").mkdir()
    return folder


def commands(*lines: str, folder: Path) -> dict[str, str]:
    """The code that runs each of these command lines."""
    return {line: COMMAND.format(words=line.format(folder=folder).split()) for line in lines}


@pytest.fixture(scope="module")
def without_a_screen(folder: Path) -> Imported:
    """What imports least is first: nothing that it leaves out has been imported before."""
    stages = {
        "import rl_tui": IMPORT_THE_PACKAGE,
        **commands(*ABOUT_THE_PROGRAM, folder=folder),
        "a configuration": READ_A_CONFIGURATION,
        **commands(*ABOUT_CONFIGURATIONS, folder=folder),
        "launch": "import rl_tui.engine.running.launch",
        **commands(DRY_RUN, folder=folder),
        "exporter": "import rl_tui.engine.export.exporter",
        **commands(RUN, folder=folder),
        "from rl_tui import *": "from rl_tui import *",
    }
    return imported_after(stages, folder / "without_a_screen", HOME=str(folder / "home"))


@pytest.fixture(scope="module")
def with_a_screen(folder: Path) -> Imported:
    """What imports least is first: nothing that it leaves out has been imported before."""
    stages = {
        "session": "import rl_tui.engine.session.view, rl_tui.engine.session.bus",
        **commands(LIST_RUNS, folder=folder),
        "screen": "import rl_tui.tui.command_line.run_screen, rl_tui.engine.running.threads",
        "demo": "import rl_tui.tui.demo.session",
        "recording": "import rl_tui.tui.runs.playback, rl_tui.engine.storage.archive",
        "first picture": "import rl_tui.engine.config.loading, rl_tui.engine.running.launch",
    }
    return imported_after(stages, folder / "with_a_screen")


def is_python_or_ours(modules: set[str]) -> bool:
    """Whether there is nothing but this package and Python's standard library."""
    known = {*sys.stdlib_module_names, "__main__", "rl_tui", "sitecustomize", "usercustomize"}
    return {name for name in packages(modules) if not name.startswith("_")} <= known


@pytest.mark.parametrize("line", ABOUT_THE_PROGRAM)
def test_question_about_the_program_imports_nothing_but_it(line: str, without_a_screen: Imported) -> None:
    assert is_python_or_ours(without_a_screen[line])


@pytest.mark.parametrize("line", ABOUT_CONFIGURATIONS)
def test_question_about_configurations_imports_neither_screen_nor_torch(line: str, without_a_screen: Imported) -> None:
    heavy = {"gymnasium", "onnx", "onnxruntime", "rich", "tensorboard", "textual", "torch"}
    assert packages(without_a_screen[line]) & heavy == set()


def test_reading_a_configuration_imports_no_algorithm(without_a_screen: Imported) -> None:
    """Only the settings of its trainers, which need neither torch nor numpy."""
    imported = without_a_screen["a configuration"]
    assert imported & {"gymnasium", "numpy", "torch"} == set()
    learning = {name for name in imported if name.startswith("rl_tui.engine.learning.")}
    folders = {f"rl_tui.engine.learning.{folder}" for folder in ("encoders", "on_policy", "ppo", "rewards", "sac")}
    assert learning == folders | {f"{folder}.settings" for folder in folders}


def test_no_other_file_names_the_settings_of_an_algorithm() -> None:
    for folder in sorted((ROOT / "engine/learning").glob("*/settings.py")):
        name = f"{folder.parent.name.upper()}Settings"
        others = [path for path in python_files("engine", "tui") if folder.parent not in path.parents]
        texts = {path: path.read_text() for path in others if path.name != "registry.py"}
        assert [path for path, text in texts.items() if re.search(rf"\b{name}\b", text)] == []


def test_only_the_registry_names_plug_ins() -> None:
    """Nothing else decides by the name of an algorithm, a reward signal, an encoder or a kind of environment."""
    allowed = {
        "engine/config/behavior.py": {"ppo"},  # defaults
        "engine/config/network.py": {"simple"},
        "engine/config/reward_signals.py": {"extrinsic"},
        "engine/config/legacy/behaviors.py": {"simple"},  # what older files leave out
        "engine/config/legacy/flat_format.py": {"curiosity", "extrinsic"},
        "engine/export": {"unity"},  # a form of the graph
        "engine/sampling/environments/pettingzoo": {"pettingzoo"},  # its messages, and what is installed
        "engine/sampling/environments/base_env": {"mlagents"},  # its messages
        "engine/sampling/environments/choice_names.py": {"simple"},  # an environment of MPE
        "engine/running/writers/timers.py": {"mlagents"},  # the package
        "engine/running/training_analytics.py": {"extrinsic", "gail", "curiosity", "rnd"},  # fields of a message
        "engine/config/presets.py": {"gymnasium"},  # the name of every profile
        # whose ids may have dots; that of a path alone; of those who need no environment
        "engine/config/environment_name.py": {"gymnasium", "unity", "demonstrations"},
        "tui/command_line/commands.py": {"demonstrations"},  # the subcommand
        "tui/command_line/configuration.py": {"ppo"},  # what trains where neither a file nor a flag says it
        "tui/panes/detail.py": {"extrinsic"},  # the short form of a metric
    }
    kinds = ("trainers", "reward_signals", "encoders", "environments")
    names = {name for kind in kinds for name in registry.BUILT_IN[kind]}
    for path in python_files("engine", "tui"):
        place = path.relative_to(ROOT).as_posix()
        if place == "engine/registry.py":
            continue
        literals = {node.value for node in parsed(path) if isinstance(node, ast.Constant)}
        also = next((words for start, words in allowed.items() if place.startswith(start)), set())
        assert literals & names <= also, place


def test_question_whether_a_run_would_start_imports_neither_screen_nor_torch(without_a_screen: Imported) -> None:
    heavy = {"onnx", "onnxruntime", "rich", "safetensors", "tensorboard", "textual", "torch"}
    assert packages(without_a_screen[DRY_RUN]) & heavy == set()


def test_what_demonstrations_hold_needs_no_torch(folder: Path) -> None:
    write(folder / "ball.demo", VECTORS, episodes(VECTORS, [(2, Ending.TERMINATED)]))
    line = f"demonstrations info {folder}/ball.demo"
    imported = packages(imported_after(commands(line, folder=folder), folder / "info")[line])
    assert imported & {"gymnasium", "grpc", "onnx", "pydantic", "textual", "torch"} == set()
    assert "numpy" in imported


def test_list_of_runs_imports_neither_screen_nor_numbers(folder: Path, with_a_screen: Imported) -> None:
    """As JSON it has settings, which take pydantic."""
    heavy = {"numpy", "textual", "torch"}
    assert packages(with_a_screen[LIST_RUNS]) & {*heavy, "pydantic"} == set()
    as_json = f"{LIST_RUNS} --json"
    imported = imported_after(commands(as_json, folder=folder), folder / "as_json")
    assert packages(imported[as_json]) & heavy == set()


@pytest.mark.parametrize("stage", ["demo", "recording"])
def test_screen_without_a_run_needs_no_engine(stage: str, with_a_screen: Imported) -> None:
    """So that it is there at once."""
    heavy = {
        "gymnasium",
        "onnx",
        "pydantic",
        "plotext",
        "safetensors",
        "tensorboard",
        "torch",
        "rl_tui.engine.learning",
    }
    assert "textual" in with_a_screen[stage]
    assert with_a_screen[stage] & heavy == set()


def test_headless_run_never_imports_the_screen(without_a_screen: Imported) -> None:
    assert "torch" in without_a_screen[RUN]
    assert without_a_screen[RUN] & {"textual", "rich"} == set()


def test_onnx_is_imported_for_the_first_export_and_leaves_nothing_at_home(
    folder: Path, without_a_screen: Imported
) -> None:
    """With onnxruntime's reports on, it would keep a number for this machine and a database there."""
    assert packages(without_a_screen["exporter"]) & {"onnx", "onnxruntime"} == set()
    assert {"onnx", "onnxruntime"} <= packages(without_a_screen[RUN])
    assert list((folder / "home").rglob("*")) == []


def test_public_package_imports_nothing_until_a_name_is_used(without_a_screen: Imported) -> None:
    """Names are there for completion, and none leads nowhere."""
    imported, every = without_a_screen["import rl_tui"], without_a_screen["from rl_tui import *"]
    assert is_python_or_ours(imported)
    assert {name for name in imported if name.startswith("rl_tui")} == {"rl_tui"}
    assert "rl_tui.engine.api.learner" in every - without_a_screen[RUN]
    assert "textual" not in every


def test_session_imports_nothing_but_python(with_a_screen: Imported) -> None:
    imported = with_a_screen["session"]
    ours = {name for name in imported if name.partition(".")[0] == "rl_tui"}
    assert all(
        name in ("rl_tui", "rl_tui.engine", "rl_tui.engine.session") or name.startswith("rl_tui.engine.session.")
        for name in ours
    )
    assert imported & {"numpy", "torch", "yaml", "pydantic"} == set()


def test_launch_of_a_run_waits_with_torch_until_it_starts(without_a_screen: Imported) -> None:
    """So the screen paints before torch is there."""
    assert without_a_screen["launch"] & {"torch", "gymnasium", "textual"} == set()


def test_first_picture_needs_no_numbers(with_a_screen: Imported) -> None:
    """There is no curve in it yet, and numpy would come before it."""
    assert with_a_screen["first picture"] & {"numpy", "plotext"} == set()


def test_only_the_engine_of_workers_and_what_workers_run_make_threads() -> None:
    makers = {path for path in python_files("engine", "tui") if makes_thread(path)}
    assert {str(path.relative_to(ROOT)) for path in makers} == {
        "engine/running/threads.py",
        "engine/sampling/environments/unity/exchange.py",
        "engine/sampling/environments/unity/wire/image_decoder.py",
        "engine/sampling/pools/forwarding.py",
    }


@pytest.mark.parametrize("package", ["engine", "tui"])
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    """Neither inside functions nor for type checkers."""
    graph = import_graph(package)
    cycles = [" -> ".join(path) for module in graph if (path := way_back(module, graph))]
    assert cycles == []


def test_packages_hold_nothing_but_a_docstring() -> None:
    """So importing one module imports no other."""
    for path in python_files("engine", "tui"):
        if path.name == "__init__.py":
            (statements,) = (node.body for node in parsed(path) if isinstance(node, ast.Module))
            assert all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in statements), path


def test_engine_reads_no_pickle() -> None:
    for path in python_files("engine", "tui"):
        for node in parsed(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {"pickle", "cPickle", "dill", "marshal", "shelve"} & set(names), path


@functools.cache
def python_files(*folders: str) -> list[Path]:
    """Every Python file below these folders of the project."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@functools.cache
def parsed(path: Path) -> list[ast.AST]:
    """The nodes of a file that these tests look at."""
    kept = (ast.Module, ast.Import, ast.ImportFrom, ast.Call, ast.Constant)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kept)]


def import_graph(package: str) -> dict[str, list[str]]:
    """Each module of the package with those of the package that it names in an import, wherever that is."""
    files = {
        ".".join(("rl_tui", *path.relative_to(ROOT).with_suffix("").parts)): path for path in python_files(package)
    }
    graph: dict[str, list[str]] = {}
    for module, path in files.items():
        named: set[str] = set()
        for node in parsed(path):
            if isinstance(node, ast.ImportFrom):
                named |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        graph[module] = sorted(named & files.keys())
    return graph


def way_back(module: str, graph: dict[str, list[str]]) -> list[str]:
    """The shortest path of imports from a module to itself; empty where there is none."""
    reached, paths = {module}, [[module]]
    for path in paths:
        for imported in graph[path[-1]]:
            if imported == module:
                return [*path, module]
            if imported not in reached:
                reached.add(imported)
                paths.append([*path, imported])
    return []


def makes_thread(path: Path) -> bool:
    """Whether a file makes a thread: through a module that can, or by a name imported from one."""
    makers = {"Thread", "Timer", "ThreadPool", "ThreadPoolExecutor", "start_new_thread"}
    modules = {"threading", "_thread", "concurrent.futures", "multiprocessing.pool"}
    for node in parsed(path):
        if isinstance(node, ast.ImportFrom) and node.module in modules and makers & {a.name for a in node.names}:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in makers:
            return True
    return False
