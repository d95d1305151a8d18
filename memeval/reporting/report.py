"""Reports: a notebook is filled with its parameters, executed, and kept with one offline HTML page."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memeval.errors import HarnessError, InputError, nearest
from memeval.shipped import shipped

FITS = {"rows.jsonl": "tool_selection", "retrieval.jsonl": "retrieval_quality"}
"""Which notebook answers what a run holds, by the file it is kept in."""
MANY_DESIGNS = "design_comparison"
"""Which one answers in place of `tool_selection` where a run has more than `SOME` designs."""
SOME = 4
ASKING = "please_remember"
"""Which one is made beside them where a run has turns on the ask-strength ladder, or was blamed."""

_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def notebooks() -> dict[str, Path]:
    """The notebooks that come with memeval, by name."""
    return {path.stem: path for path in sorted(shipped("notebooks").glob("*.ipynb"))}


def report(
    run: Path | str,
    notebook: str | Path | None = None,
    out: Path | str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Execute the notebooks that fit a run, or the one named, and give the paths of their HTML pages.

    Both files, the executed notebook and the page, go to `out` (the run's folder `report` if not given).
    Parameters of another name or type than the notebook's are refused before anything runs. A cell that
    fails raises HarnessError naming it; the executed notebook is kept, so that it can be looked at.
    """
    run = Path(run)
    if not run.is_dir():
        raise InputError(f"There is no folder {run}: give the one that `memeval run` wrote.")
    sources = [_find(notebook)] if notebook else _fitting(run)
    folder = Path(out) if out else run / "report"
    given = dict(parameters or {})
    known = {source: _parameters(source) for source in sources}
    for source, names in known.items():
        if "run" not in names:
            raise InputError(
                f"{source.name} has no parameter 'run': it is not a report; open it in JupyterLab."
            )
    everything = {name for names in known.values() for name in names}
    for name in given:
        if name not in everything:
            which = " and ".join(source.name for source in sources)
            raise InputError(f"{which}: no parameter is called {name!r}{nearest(name, everything)}.")
    # what only one of two notebooks knows is for that one
    checked = [
        (source, _checked({"run": str(run)} | given, names, source.name)) for source, names in known.items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    return [_page(_execute(source, folder / source.name, given)) for source, given in checked]


def _find(notebook: str | Path) -> Path:
    path = Path(notebook)
    if path.suffix == ".ipynb" and path.is_file():
        return path
    known = notebooks()
    if path.stem not in known:
        raise InputError(f"No notebook is called {str(notebook)!r}{nearest(path.stem, known)}.")
    return known[path.stem]


def _fitting(run: Path) -> list[Path]:
    held = [file for file in FITS if (run / file).is_file()]
    if not held:
        raise InputError(f"{run} holds neither {' nor '.join(FITS)}: it is not the folder of a run.")
    found = [
        _find(MANY_DESIGNS if file == "rows.jsonl" and _designs(run) > SOME else FITS[file]) for file in held
    ]
    return [*found, _find(ASKING)] if "rows.jsonl" in held and _asks(run) else found


def _designs(run: Path) -> int:
    """How many designs a run compares; the same design behind another surface is not another one."""
    from memeval.evaluation.results import read_manifest

    cells = read_manifest(run).get("cells", [])
    return len({(cell["design"], cell.get("design_settings")) for cell in cells})


def _asks(run: Path) -> bool:
    """Whether a run asks to remember on some rung of the ladder, or its failures were blamed."""
    from memeval.analysis.blame import BLAME
    from memeval.evaluation.results import load

    return (run / BLAME).is_file() or any(row.get("strength") for row in load(run).rows("turn"))


def _parameters(source: Path) -> dict[str, dict[str, str]]:
    import papermill

    found: dict[str, dict[str, str]] = papermill.inspect_notebook(str(source))
    return found


def _checked(given: dict[str, Any], known: Mapping[str, Mapping[str, str]], notebook: str) -> dict[str, Any]:
    """The parameters with texts, as a command line gives them, turned into the type the notebook states."""
    found = {name: value for name, value in given.items() if name in known}
    for name, value in found.items():
        wanted = known[name]["inferred_type_name"]
        if wanted not in _TYPES:
            continue
        found[name] = _as(value, _TYPES[wanted])
        if found[name] is None:
            raise InputError(f"Parameter {name!r} of {notebook} is {_a(wanted)}, not {value!r}.")
    return found


def _a(kind: str) -> str:
    return {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}[kind]


def _as(value: Any, kind: type) -> Any:
    """The value as `kind`, or None where it is something else."""
    if kind is bool:
        return {"true": True, "false": False}.get(str(value).lower())
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and kind is not str:
        try:
            return kind(value)
        except ValueError:
            return None
    if kind is float and isinstance(value, int):
        return float(value)
    return value if isinstance(value, kind) else None


@contextmanager
def _own_kernel() -> Iterator[None]:
    """Let the kernel name `python3` mean the Python that runs now, whatever kernels a person has installed.

    A kernel of the same name in the user's home may belong to another Python, where memeval is missing.
    """
    if importlib.util.find_spec("ipykernel") is None:
        raise InputError(
            f"Reports run in a Jupyter kernel, and {sys.executable} has none; "
            "install it: uv pip install ipykernel (or: python -m pip install ipykernel)."
        )
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3", "language": "python",
    }  # fmt: skip
    before = os.environ.get("JUPYTER_PATH")
    with tempfile.TemporaryDirectory(prefix="memeval-kernel-") as folder:
        kernel = Path(folder, "kernels", "python3")
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [folder, before]))
        try:
            yield
        finally:
            if before is None:
                del os.environ["JUPYTER_PATH"]
            else:
                os.environ["JUPYTER_PATH"] = before


def _execute(source: Path, target: Path, parameters: Mapping[str, Any]) -> Path:
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    config = Config()
    if os.name == "posix":  # ipykernel warns about TCP on every start; pipes need no port either
        config.KernelManager.transport = "ipc"
    failure = None
    with _own_kernel():
        try:
            papermill.execute_notebook(
                str(source), str(target), dict(parameters), kernel_name="python3", progress_bar=False,
                config=config,
            )  # fmt: skip
        except PapermillExecutionError as error:
            failure = error
        except DeadKernelError as error:
            raise HarnessError(f"The Jupyter kernel died while it ran {source.name}: {error}") from error
    executed = nbformat.read(target, as_version=4)  # type: ignore[no-untyped-call]
    # Papermill notes paths, times and parameters of the machine it ran on; only the parameters' cell stays.
    for part in (executed, *executed.cells):
        part.metadata.pop("papermill", None)
    nbformat.write(executed, target)  # type: ignore[no-untyped-call]
    if failure:
        # a wrong value of a parameter shows only inside; it is still the person's input
        kind = InputError if failure.ename == "InputError" else HarnessError
        raise kind(
            f"Cell {failure.cell_index} of {source.name} failed with {failure.ename}: {failure.evalue} "
            f"(the notebook as far as it came: {target})"
        )
    return target


def _page(executed: Path) -> Path:
    """The executed notebook as one HTML page: no code, no script, nothing loaded from anywhere."""
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_cell_tags = {"remove-cell", "injected-parameters"}
    config.TemplateExporter.exclude_input = True
    config.TemplateExporter.exclude_input_prompt = True
    config.TemplateExporter.exclude_output_prompt = True
    templates = str(Path(__file__).parent / "templates")
    exporter = HTMLExporter(config=config, template_name="memeval", extra_template_basedirs=[templates])
    html, _ = exporter.from_filename(str(executed))
    page = executed.with_suffix(".html")
    page.write_text(html, encoding="utf-8")
    return page
