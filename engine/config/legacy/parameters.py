"""Environment parameters of ML-Agents up to 0.18: `parameter_randomization` and `curriculum`."""

from __future__ import annotations

from rl_tui.engine.config.diagnostics import describe, must_be, one_of, visible
from rl_tui.engine.config.environment_parameters import Lesson
from rl_tui.engine.config.legacy.rewriting import Rewriting, Section

_SECTION = "environment_parameters"
_RESAMPLING = ("resampling-interval", "resampling_interval")
_REQUIRED = ("measure", "thresholds", "parameters")
_DEFAULTS: dict[str, object] = {"min_lesson_length": 1, "signal_smoothing": False}  # of then
_PLAN = (*_REQUIRED, *_DEFAULTS)


def rewrite_parameters(rewriting: Rewriting) -> None:
    """Move all of them under `environment_parameters`, in today's form."""
    top = Section(rewriting, (), rewriting.values)
    if randomization := top.inner("parameter_randomization"):
        _rewrite_samplers(top, randomization)
    if curriculum := top.inner("curriculum"):
        _rewrite_curriculum(top, curriculum)
    if parameters := top.inner(_SECTION):
        for parameter in parameters.inners():
            _rewrite_lessons(parameter)


def _rewrite_samplers(top: Section, randomization: Section) -> None:
    """A sampler's arguments were next to its type."""
    top.deprecate(["parameter_randomization"], _SECTION)
    for key in randomization.present(_RESAMPLING):
        randomization.ignore(key, "a number is drawn whenever the environment asks for it")
    parameters = top.within(_SECTION)
    names = list(randomization.keys)
    randomization.move(names, parameters)
    if parameters:
        top.remove(["parameter_randomization"])
        for sampler in filter(None, map(parameters.inner, names)):
            _rewrite_sampler(sampler)


def _rewrite_sampler(sampler: Section) -> None:
    if "sampler-type" in sampler.keys:
        sampler.replace(["sampler-type"], "sampler_type", sampler.keys["sampler-type"])
    if sampler.keys.get("sampler_type") == "multirange_uniform":
        sampler.keys["sampler_type"] = "multirangeuniform"
    arguments = [key for key in sampler.keys if key not in ("sampler_type", "sampler_parameters", "curriculum")]
    sampler.move(arguments, sampler.within("sampler_parameters"))


def _rewrite_curriculum(top: Section, curriculum: Section) -> None:
    """Lessons were grouped by the behavior that decides when they end."""
    top.deprecate(["curriculum"], _SECTION, ".PARAMETER.curriculum")
    parameters = top.within(_SECTION)
    if not parameters:
        return
    for behavior, plan in list(curriculum.keys.items()):
        section = curriculum.inner(behavior)
        if section is None:
            curriculum.refuse(behavior, must_be("a mapping", plan), of_key=False)
        else:
            _rewrite_plan(behavior, section, parameters)
    top.remove(["curriculum"])


def _rewrite_plan(behavior: str, plan: Section, parameters: Section) -> None:
    """One behavior's thresholds, and the values of parameters before, between and after them."""
    for key in [key for key in plan.keys if key not in _PLAN]:
        plan.refuse(key, f"unknown key. Must be one of: {one_of(sorted(_PLAN))}")
    if missing := [key for key in _REQUIRED if key not in plan.keys]:
        plan.miss(missing[0], ": it has no default")
        return
    thresholds, values = plan.keys["thresholds"], plan.inner("parameters")
    if not isinstance(thresholds, list):
        plan.refuse("thresholds", must_be("a list", thresholds), of_key=False)
    elif values is None:
        plan.refuse("parameters", must_be("a mapping", plan.keys["parameters"]), of_key=False)
    else:
        for name, numbers in list(values.keys.items()):
            if isinstance(numbers, list) and len(numbers) == len(thresholds) + 1:
                values.keys[name] = {"curriculum": _lessons(behavior, plan, thresholds, numbers)}
                _trace(values, name, plan, len(numbers), parameters)
                values.move([name], parameters)
            else:
                found = f"a list of {len(numbers)}" if isinstance(numbers, list) else describe(numbers)
                expected = f"a list of {len(thresholds) + 1} values, one more than there are thresholds"
                values.refuse(name, f"must be {expected}, got {found}", of_key=False)


def _lessons(behavior: str, plan: Section, thresholds: list[object], values: list[object]) -> list[object]:
    shared = {"behavior": behavior, "measure": plan.keys["measure"]}
    shared |= {key: plan.keys.get(key, default) for key, default in _DEFAULTS.items()}
    ends = [{"completion_criteria": {**shared, "threshold": threshold}} for threshold in thresholds]
    ends.append({})  # the last lesson does not end
    return [
        {"name": f"Lesson{n}", "value": value, **end} for n, (value, end) in enumerate(zip(values, ends, strict=True))
    ]


def _trace(values: Section, name: str, plan: Section, num_lessons: int, parameters: Section) -> None:
    """Record where each part of a parameter's lessons is in the file."""
    written, origin = values.rewriting.written, values.origin(name)
    curriculum = (*parameters.path, name, "curriculum")
    written[curriculum] = origin
    for number in range(num_lessons):
        written[*curriculum, number, "value"] = (*origin, number)
        criteria = (*curriculum, number, "completion_criteria")
        written[criteria] = written[*criteria, "behavior"] = plan.rewriting.origin(plan.path)
        written[*criteria, "threshold"] = (*plan.origin("thresholds"), number)


def _rewrite_lessons(parameter: Section) -> None:
    """Lessons were written as `- Lesson0: {...}`."""
    lessons = parameter.keys.get("curriculum")
    if not isinstance(lessons, list):
        return
    named = [number for number, lesson in enumerate(lessons) if _is_named_by_key(lesson)]
    for number in named:
        [(name, settings)] = lessons[number].items()
        lessons[number] = {"name": name, **settings}
        place = (*parameter.path, "curriculum", number)
        parameter.rewriting.written[place] = (*parameter.rewriting.origin(place), name)
    if named:
        parameter.deprecate(["curriculum"], f"`- name: {visible(lessons[named[0]]['name'])}`")


def _is_named_by_key(lesson: object) -> bool:
    if not isinstance(lesson, dict) or len(lesson) != 1:
        return False
    [(name, settings)] = lesson.items()
    return isinstance(settings, dict) and name not in Lesson.model_fields and "name" not in settings
