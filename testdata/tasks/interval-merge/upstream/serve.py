"""Serves a stand-in upstream of the demo project; see README.md beside this file."""

import argparse
import functools
import gzip
import hashlib
import http.server
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import zipfile

VERSIONS = {"1.3": 15, "1.4": 17}  # version -> how many patches lead to it
FIX = 16
DATE = (2023, 7, 1, 12, 0, 0)


def git(*args, cwd, data=None):
    """Runs git apart from any configuration, as a fixed committer at a fixed date."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(cwd), "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_COMMITTER_NAME": "Acme Build", "GIT_COMMITTER_EMAIL": "build@acme.test",
        "GIT_COMMITTER_DATE": "2023-07-01T12:00:00Z",
    }
    return subprocess.run(["git", *args], cwd=cwd, env=env, input=data, check=True, stdout=subprocess.PIPE).stdout


def repository(patches, folder):
    """The whole history in folder, with a tag for each version and for the fix."""
    folder.mkdir(parents=True)
    git("init", "-q", "-b", "main", ".", cwd=folder)
    for number, patch in enumerate(patches, 1):
        git("am", "-q", "--committer-date-is-author-date", str(patch), cwd=folder)
        for version, last in VERSIONS.items():
            if number == last:
                git("tag", "v" + version, cwd=folder)
        if number == FIX:
            git("update-ref", "refs/pull/42/head", "HEAD", cwd=folder)


def tree(repo, revision):
    """path -> content of every file of a revision."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", revision, cwd=repo))) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}


def metadata(version):
    return f"Metadata-Version: 2.1\nName: intervals\nVersion: {version}\nRequires-Python: >=3.9\n".encode()


def tarball(prefix, files):
    """A tar.gz with fixed dates and owners."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(f"{prefix}/{name}")
            info.size, info.mtime = len(content), 1688212800
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def wheel(version, files):
    """A wheel of the package alone, with fixed dates."""
    info = f"intervals-{version}.dist-info/"
    content = {n: c for n, c in files.items() if n.startswith("intervals/")}
    content[info + "METADATA"] = metadata(version)
    content[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: acme\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content[info + "RECORD"] = "".join(f"{n},,\n" for n in [*content, info + "RECORD"]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), data)
    return out.getvalue()


def write(site, path, content):
    target = site / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def index(site, packages):
    """A package index in the simple form: one page for the index, one for the package."""
    links = []
    for name, content in sorted(packages.items()):
        write(site, f"packages/{name}", content)
        digest = hashlib.sha256(content).hexdigest()
        links.append(f'<a href="/packages/{name}#sha256={digest}">{name}</a><br>')
    page = "<!DOCTYPE html><html><body>{}</body></html>\n"
    write(site, "simple/index.html", page.format('<a href="/simple/intervals/">intervals</a>').encode())
    write(site, "simple/intervals/index.html", page.format("\n".join(links)).encode())


def build(history, work):
    """Makes the site under work and gives its folder."""
    patches = sorted(pathlib.Path(history).resolve().glob("*.patch"))
    if len(patches) != max(VERSIONS.values()):
        raise SystemExit(f"serve.py: {history} holds {len(patches)} patches, not {max(VERSIONS.values())}")
    repo, site, packages = work / "repo", work / "site", {}
    repository(patches, repo)
    for version in VERSIONS:
        files = tree(repo, "v" + version)
        for name, content in files.items():
            write(site, f"acme/intervals/raw/v{version}/{name}", content)
            write(site, f"acme/intervals/v{version}/{name}", content)
        write(site, f"acme/intervals/archive/v{version}.tar.gz", tarball(f"intervals-{version}", files))
        packages[f"intervals-{version}-py3-none-any.whl"] = wheel(version, files)
        packages[f"intervals-{version}.tar.gz"] = tarball(
            f"intervals-{version}", {**files, "PKG-INFO": metadata(version)})
    index(site, packages)
    fix = "refs/pull/42/head"
    write(site, "acme/intervals/pull/42.patch", git("format-patch", "--stdout", "-1", fix, cwd=repo))
    write(site, "acme/intervals/pull/42.diff", git("diff", fix + "~1", fix, cwd=repo))
    git("clone", "-q", "--mirror", str(repo), str(site / "acme/intervals.git"), cwd=work)
    git("update-server-info", cwd=site / "acme/intervals.git")
    return site


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--history", required=True, help="folder of the patches")
    p.add_argument("--bind", default="0.0.0.0")
    p.add_argument("--port", type=int, default=80, help="0 picks a free one; the choice is printed")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        site = build(args.history, pathlib.Path(work))
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
        with http.server.ThreadingHTTPServer((args.bind, args.port), handler) as server:
            print(f"serving on port {server.server_address[1]}", flush=True)
            server.serve_forever()


if __name__ == "__main__":
    main()
