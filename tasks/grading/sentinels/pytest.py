import os
import sys
import types

import pytest


def test_@PASS@():
    assert @A@ + @B@ == @SUM@


def test_@FAIL@():
    assert @A@ * @B@ == @WRONG@


def test_@RAISE@():
    raise ValueError("@A@")


def _file(function):
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return os.path.realpath(code.co_filename) if code is not None and os.path.isabs(code.co_filename) else (
        "<built in>" if code is None else "")


def _homes():
    # Where the runner, its plugins and the standard library lie.
    homes = [os.path.dirname(os.path.dirname(os.path.realpath(pytest.__file__))), os.path.dirname(os.path.realpath(os.__file__))]
    homes += [os.path.realpath(p) for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
    return [home + os.sep for home in homes]


def _ours(file, homes):
    return file == "<built in>" or any(file.startswith(home) for home in homes)


def test_@PROBE@(request):
    homes, strangers = _homes(), []
    hooks = request.config.pluginmanager.hook
    for name in ("pytest_runtest_protocol", "pytest_runtest_call", "pytest_runtest_makereport", "pytest_runtest_logreport",
                 "pytest_pyfunc_call", "pytest_collection_modifyitems", "pytest_sessionfinish", "pytest_report_teststatus"):
        for impl in getattr(hooks, name).get_hookimpls():
            file = _file(impl.function)
            if not _ours(file, homes) and os.path.basename(file) != "conftest.py":
                strangers.append((name, file))
    for module in ("_pytest.runner", "_pytest.reports", "_pytest.junitxml", "_pytest.python", "_pytest.main", "_pytest.terminal",
                   "_pytest.outcomes", "unittest.case"):
        for name, value in list(vars(sys.modules.get(module, types)).items()):
            members = [value] if isinstance(value, types.FunctionType) else [
                m for m in vars(value).values() if isinstance(m, types.FunctionType)] if isinstance(value, type) else []
            for member in members:
                file = _file(member)
                if file and not _ours(file, homes):
                    strangers.append((module, name))
    for name in ("_exit", "write", "open", "replace", "rename"):
        if not isinstance(getattr(os, name), types.BuiltinFunctionType):
            strangers.append(("os", name))
    assert not strangers
