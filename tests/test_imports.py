"""What is imported when: the promises that reading one file at a time cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rl_tui.engine import registry
from tests.deadline import DEADLINE_SECONDS

ROOT = Path(__file__).parent.parent

RUN_THE_COMMAND = """
import sys
from rl_tui.tui.cli import main
try:
    main({words!r})
except SystemExit:
    pass
print(*sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def imported_by(program: str) -> set[str]:
    """Top-level names in sys.modules of a fresh interpreter after it ran `program`, which prints them on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_SECONDS,
    )
    return set(done.stderr.splitlines()[-1].split())


def imported_modules(module: str) -> set[str]:
    """Full names in sys.modules of a fresh interpreter that imported one module."""
    return imported_by(f"import sys, {module}\nprint(*sys.modules, file=sys.stderr)")


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["demo", "--help"], ["replay", "--help"], ["ls", "--help"]], ids=" ".join
)
def test_question_about_the_program_imports_nothing_but_it(words: list[str]) -> None:
    ours_and_python = {*sys.stdlib_module_names, "__main__", "rl_tui", "sitecustomize", "usercustomize"}
    imported = {name for name in imported_by(RUN_THE_COMMAND.format(words=words)) if not name.startswith("_")}
    assert imported - ours_and_python == set()


@pytest.mark.parametrize(
    "words",
    [
        ["schema"],
        ["presets"],
        ["plugins"],
        ["presets", "ppo/CartPole"],
        ["upgrade-config", "config/ppo/CartPole.yaml", "nowhere/new.yaml"],
    ],
)
def test_question_about_configurations_imports_neither_screen_nor_torch(words: list[str]) -> None:
    heavy = {"gymnasium", "onnx", "onnxruntime", "rich", "tensorboard", "textual", "torch"}
    assert imported_by(RUN_THE_COMMAND.format(words=words)) & heavy == set()


def test_reading_a_configuration_imports_no_algorithm() -> None:
    """Only the settings of its trainers, which need neither torch nor numpy."""
    text = "behaviors: {A: {trainer_type: sac}, B: {trainer_type: ppo}}"
    program = f"""
import sys
from rl_tui.engine.config.loading import parse_config
parse_config({text.encode()!r}, "a.yaml")
print(*sys.modules, file=sys.stderr)
"""
    imported = imported_by(program)
    assert imported & {"gymnasium", "numpy", "torch"} == set()
    learning = {name for name in imported if name.startswith("rl_tui.engine.learning.")}
    folders = {f"rl_tui.engine.learning.{folder}" for folder in ("encoders", "ppo", "rewards", "sac")}
    assert learning == folders | {f"{folder}.settings" for folder in folders}


def test_no_other_file_names_the_settings_of_an_algorithm() -> None:
    for folder in sorted((ROOT / "engine/learning").glob("*/settings.py")):
        name = f"{folder.parent.name.upper()}Settings"
        others = [path for path in python_files("engine", "tui") if folder.parent not in path.parents]
        assert [path for path in others if name in path.read_text() and path.name != "registry.py"] == []


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
        "engine/running/writers/timers.py": {"mlagents"},  # the package
        "engine/running/training_analytics.py": {"extrinsic", "gail", "curiosity", "rnd"},  # fields of a message
        "engine/config/presets.py": {"gymnasium"},  # the name of every profile
        "engine/config/environment_name.py": {"gymnasium", "unity"},  # whose ids may have dots; that of a path alone
        "tui/command_line/configuration.py": {"ppo"},  # what trains where neither a file nor a flag says it
        "tui/demo/script.py": {"ppo", "sac"},  # the cast
        "tui/panes/detail.py": {"extrinsic"},  # the short form of a metric
    }
    kinds = ("trainers", "reward_signals", "encoders", "environments")
    names = {name for kind in kinds for name in registry.BUILT_IN[kind]}
    for path in python_files("engine", "tui"):
        place = path.relative_to(ROOT).as_posix()
        if place == "engine/registry.py":
            continue
        literals = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        also = next((words for start, words in allowed.items() if place.startswith(start)), set())
        assert literals & names <= also, place


def test_question_whether_a_run_would_start_imports_neither_screen_nor_torch() -> None:
    heavy = {"onnx", "onnxruntime", "rich", "safetensors", "tensorboard", "textual", "torch"}
    assert imported_by(RUN_THE_COMMAND.format(words=["ppo/CartPole", "--dry-run"])) & heavy == set()


def test_list_of_runs_imports_neither_screen_nor_numbers(tmp_path: Path) -> None:
    """As JSON it has settings, which take pydantic."""
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk/configuration.yaml").write_text("behaviors: {}\n")
    heavy = {"numpy", "textual", "torch"}
    assert imported_by(RUN_THE_COMMAND.format(words=["ls", str(tmp_path)])) & {*heavy, "pydantic"} == set()
    assert imported_by(RUN_THE_COMMAND.format(words=["ls", str(tmp_path), "--json"])) & heavy == set()


@pytest.mark.parametrize(
    "what",
    [
        "rl_tui.tui.demo.session",
        "rl_tui.tui.runs.playback, rl_tui.engine.storage.archive, rl_tui.engine.storage.run_summary",
    ],
)
def test_screen_without_a_run_needs_no_engine(what: str) -> None:
    """So that it is there at once."""
    imported = imported_modules(f"rl_tui.tui.command_line.run_screen, rl_tui.engine.running.threads, {what}")
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
    assert imported & heavy == set()


def test_headless_run_never_imports_the_screen(tmp_path: Path) -> None:
    settings = ["--set", "behaviors.CartPole.max_steps=100", "--results-dir", str(tmp_path)]
    imported = imported_by(RUN_THE_COMMAND.format(words=["ppo/CartPole", "--no-ui", *settings]))
    assert "torch" in imported
    assert imported & {"textual", "rich"} == set()


def test_public_package_imports_nothing_until_a_name_is_used() -> None:
    """Names are there for completion, and none leads nowhere."""
    public = "import rl_tui, sys; assert {name for name in dir(rl_tui) if name[:1] != '_'} == set(rl_tui.__all__)"
    imported = imported_by(f"{public}\nprint(*sys.modules, file=sys.stderr)")
    ours_and_python = {*sys.stdlib_module_names, "__main__", "rl_tui", "sitecustomize", "usercustomize"}
    assert {name.partition(".")[0] for name in imported if not name.startswith("_")} <= ours_and_python
    assert {name for name in imported if name.startswith("rl_tui")} == {"rl_tui"}
    every = imported_by("import rl_tui, sys\nfrom rl_tui import *\nprint(*sys.modules, file=sys.stderr)")
    assert "rl_tui.engine.api.learner" in every
    assert "textual" not in every


def test_session_imports_nothing_but_python() -> None:
    imported = imported_modules("rl_tui.engine.session.view, rl_tui.engine.session.bus")
    ours = {name for name in imported if name.partition(".")[0] == "rl_tui"}
    assert all(
        name in ("rl_tui", "rl_tui.engine", "rl_tui.engine.session") or name.startswith("rl_tui.engine.session.")
        for name in ours
    )
    assert imported & {"numpy", "torch", "yaml", "pydantic"} == set()


def test_launch_of_a_run_waits_with_torch_until_it_starts() -> None:
    """So the screen paints before torch is there."""
    assert imported_modules("rl_tui.engine.running.launch") & {"torch", "gymnasium", "textual"} == set()


def test_first_picture_needs_no_numbers() -> None:
    """There is no curve in it yet, and numpy would come before it."""
    shown_at_once = "rl_tui.tui.command_line.run_screen, rl_tui.engine.config.loading, rl_tui.engine.running.launch"
    assert imported_modules(shown_at_once) & {"numpy", "plotext"} == set()


def test_only_the_engine_of_workers_and_what_workers_run_make_threads() -> None:
    makers = {path for path in python_files("engine", "tui") if makes_thread(ast.parse(path.read_text()))}
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
            statements = ast.parse(path.read_text()).body
            assert all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in statements), path


def test_engine_reads_no_pickle() -> None:
    for path in python_files("engine", "tui"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {"pickle", "cPickle", "dill", "marshal", "shelve"} & set(names), path


def python_files(*folders: str) -> list[Path]:
    """Every Python file below these folders of the project."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def import_graph(package: str) -> dict[str, list[str]]:
    """Each module of the package with those of the package that it names in an import, wherever that is."""
    trees = {
        ".".join(("rl_tui", *path.relative_to(ROOT).with_suffix("").parts)): ast.parse(path.read_text())
        for path in python_files(package)
    }
    graph: dict[str, list[str]] = {}
    for module, tree in trees.items():
        named: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                named |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        graph[module] = sorted(named & trees.keys())
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


def makes_thread(tree: ast.Module) -> bool:
    """Whether a file makes a thread: through a module that can, or by a name imported from one."""
    makers = {"Thread", "Timer", "ThreadPool", "ThreadPoolExecutor", "start_new_thread"}
    modules = {"threading", "_thread", "concurrent.futures", "multiprocessing.pool"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules and makers & {a.name for a in node.names}:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in makers:
            return True
    return False
