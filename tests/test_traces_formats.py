"""Reading traces: every format and packing gives the same, and what is bad is named or listed."""

import gzip
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from graphgain.errors import TraceError
from graphgain.traces import corpus as corpus_module
from graphgain.traces import sources, tokenlog
from graphgain.traces.corpus import Corpus, Plan, match_corpus
from graphgain.traces.sources import SourceFile, find

DATA = Path(__file__).parents[1] / "data" / "traces"
TINY = lzma.decompress((DATA / "weka_tiny.jsonl.xz").read_bytes())
MOONCAKE = lzma.decompress((DATA / "mooncake_conversation.jsonl.xz").read_bytes())


def matched(*paths: Path, jobs: int = 1, **plan: Any) -> Corpus:
    return match_corpus([SourceFile(path, path.name) for path in paths], Plan(**plan), jobs)


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def leads(corpus: Corpus) -> list[int]:
    return corpus.lead["shared"].tolist()


def request(t: float = 0, *ids: int, **changed: Any) -> dict[str, Any]:
    base = {"t": t, "type": "n", "model": "m", "in": 64 * len(ids), "out": 1, "hash_ids": list(ids)}
    return base | changed


def trace(name: str, *requests: dict[str, Any], **changed: Any) -> dict[str, Any]:
    base = {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local"}
    return base | {"requests": list(requests)} | changed


def lines(*objects: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


GOOD = trace("good", request(0, 1, 2), request(1, 1, 2, 3))


# Formats and packings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return matched(write(tmp_path_factory.mktemp("tiny"), "plain", TINY))


PACKED = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "two frames of zstd": lambda text: (
        zstandard.ZstdCompressor().compress(text[:1000])
        + zstandard.ZstdCompressor().compress(text[1000:])
    ),
    "without a last newline": lambda text: text.rstrip(b"\n"),
    "with blank lines": lambda text: text.replace(b"\n", b"\n\n  \n"),
    "with Windows newlines": lambda text: text.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("packing", PACKED)
def test_packing_is_told_by_content_and_changes_nothing(
    tmp_path: Path, tiny: Corpus, packing: str
) -> None:
    found = matched(write(tmp_path, "no-suffix-at-all", PACKED[packing](TINY)))
    assert leads(found) == leads(tiny)
    assert found.ids == tiny.ids == ["trace_0277", "trace_0291", "trace_0504"]


@pytest.mark.parametrize("indent", [None, 0, 1])
def test_one_file_a_conversation_is_the_same(
    tmp_path: Path, tiny: Corpus, indent: int | None
) -> None:
    paths = [
        write(tmp_path, f"{place}.json", json.dumps(json.loads(line), indent=indent))
        for place, line in enumerate(TINY.splitlines())
    ]
    assert leads(matched(*paths)) == leads(tiny)


WRITTEN = {
    "as json.dumps writes it": lambda text: text,
    "without spaces": lambda text: text.replace(": ", ":").replace(", ", ","),
    "a space before the colon": lambda text: text.replace('"hash_ids":', '"hash_ids" :'),
    "in one of two only": lambda text: text.replace('"hash_ids":', '"hash_ids" :', 1),
    "two spaces": lambda text: text.replace('"hash_ids": ', '"hash_ids":  '),
    "spaces within": lambda text: text.replace("[1, 2]", "[ 1 ,\t2 ]").replace("3]", "3 ]"),
    "an escaped key": lambda text: text.replace('"hash_ids"', '"hash\\u005fids"', 1),
    "its name in a value": lambda text: text.replace('"m"', '"\\"hash_ids\\":[7]"'),
    "its name as a value": lambda text: text.replace('"m"', '"hash_ids"'),
    "the same key before": lambda text: text.replace('"hash_ids":', '"hash_ids": [9], "hash_ids":'),
    "a list under another key": lambda text: text.replace('"type"', '"more": [[1], "]"], "type"'),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_the_way_in_which_json_is_written_changes_nothing(tmp_path: Path, how: str) -> None:
    plain = json.dumps(GOOD)
    written = WRITTEN[how](plain)
    found = matched(write(tmp_path, "t.jsonl", written + "\n"))
    assert leads(found) == [0, 2]
    assert found.blocks.tolist() == [2, 3]


@pytest.mark.parametrize("value", ["0", "1", "null", '"[1, 2]"', "[1, [2]]", "[1, 2", "[1,, 2]"])
def test_no_other_value_passes_for_hash_ids(tmp_path: Path, value: str) -> None:
    """Least of all a number, which stands for a list while a conversation is parsed."""
    for key in ('"hash_ids":', '"hash_ids" :'):
        text = json.dumps(GOOD).replace('"hash_ids": [1, 2]', f"{key} {value}")
        path = write(tmp_path, "t.jsonl", text + "\n")
        with pytest.raises(TraceError, match=r"^t.jsonl, line 1.*(hash_ids|not valid JSON)"):
            matched(path)


def parquet(path: Path, row_group_size: int) -> Path:
    import pyarrow
    import pyarrow.parquet

    rows = [json.loads(line) for line in TINY.splitlines()]
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size)
    return path


@pytest.mark.parametrize("row_group_size", [1, 2, 3])
def test_parquet_is_the_same(tmp_path: Path, tiny: Corpus, row_group_size: int) -> None:
    found = matched(parquet(tmp_path / "data", row_group_size))
    assert leads(found) == leads(tiny)
    assert found.ids == tiny.ids
    assert found.reply.tolist() == tiny.reply.tolist()


def test_processes_give_the_same_in_the_same_order(
    tmp_path: Path, tiny: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_SMALL_BYTES", 0)
    for name, content in [("plain", TINY), ("packed", gzip.compress(TINY))]:
        found = matched(write(tmp_path, name, content), jobs=2)
        assert (leads(found), found.ids) == (leads(tiny), tiny.ids)


def test_an_error_in_a_process_is_the_same_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_SMALL_BYTES", 0)
    bad = write(tmp_path, "bad.jsonl", lines(trace("a", request(0, 1)), trace("b")))
    with pytest.raises(TraceError, match=r"bad.jsonl, line 2: .*'b' has no requests"):
        matched(bad, jobs=2)


def test_token_logs_are_hashed_in_chained_blocks(tmp_path: Path) -> None:
    first = list(range(40))
    log = lines(
        {"prompt_token_ids": first, "output_token_ids": [7, 8]},
        {"input_ids": [*first[:32], 99, 98], "output_tokens": 5},
        {"prompt_token_ids": [*first[16:], 1]},  # the same tokens, but not at the beginning
    )
    found = matched(write(tmp_path, "log.jsonl", log))
    assert found.formats == ["token log"]
    assert found.blocks.tolist() == [2, 2, 1]
    assert leads(found) == [0, 2, 0]
    assert found.output_tokens.tolist() == [2, 5, 0]
    finer = matched(tmp_path / "log.jsonl", log_block_tokens=1)
    assert leads(finer) == [0, 32, 0]


def test_token_logs_go_by_session_or_by_time(tmp_path: Path) -> None:
    rows = [
        {"session_id": "a", "timestamp": 2, "input_ids": list(range(16))},
        {"session_id": "b", "timestamp": 1, "input_ids": list(range(16))},
        {"session_id": "a", "timestamp": 3, "input_ids": list(range(32))},
    ]
    path = write(tmp_path, "log.jsonl", lines(*rows))
    by_session = matched(path)
    assert by_session.ids == ["log.jsonl#a", "log.jsonl#b"]
    assert leads(by_session) == [0, 1, 0]
    together = matched(path, seen="global")
    assert leads(together) == [1, 0, 1]  # the second line came first


def test_block_hashes_depend_on_all_before_them() -> None:
    one = tokenlog.hash_blocks([1, 2, 3, 4, 5, 6], 2)
    two = tokenlog.hash_blocks([9, 2, 3, 4, 5, 6], 2)
    assert len(one) == 3 and not set(one) & set(two)
    assert tokenlog.hash_blocks([1, 2, 3, 4, 5], 2) == one[:2]


# Bad input. The name of the file and the line are in every message; with skip_bad the rest counts.

BAD: dict[str, tuple[str, str]] = {
    "not JSON": ('{"id": "x", "requests": [}', "not valid JSON"),
    "cut off": (json.dumps(GOOD)[:-20], "not valid JSON"),
    "another object": ('{"name": "x"}', "missing required field `id`"),
    "no block size": (
        json.dumps({k: v for k, v in GOOD.items() if k != "block_size"}),
        "missing required field `block_size`",
    ),
    "no input": (
        json.dumps(trace("x", {"type": "n", "t": 0, "out": 1})),
        r"missing required field `in` - at `\$.requests\[0\]`",
    ),
    "negative": (json.dumps(trace("x", request(0, 1, out=-1))), r">= 0 - at `\$.requests\[0\].out"),
    "a fraction": (
        json.dumps(trace("x", request(0, 1, **{"in": 64.5}))),
        r"`int`, got `float` - at `\$.requests\[0\].in`",
    ),
    "a number as text": (
        json.dumps(trace("x", request(0, 1), request(0, 1, **{"in": "64"}))),
        r"got `str` - at `\$.requests\[1\].in`",
    ),
    "too few ids": (
        json.dumps(trace("x", request(0, 1), request(1, 1, **{"in": 129}))),
        r"requests\[1\]: 1 hash_ids, where the input needs 2 or 3",
    ),
    "no ids": (
        json.dumps(trace("x", request(0, **{"in": 128}))),
        r"requests\[0\]: 0 hash_ids, where the input needs 2",
    ),
    "too many ids": (
        json.dumps(trace("x", request(0, 1, 2, 3, **{"in": 128}))),
        r"requests\[0\]: 3 hash_ids, where the input needs 2",
    ),
    "ids that are no integers": (
        json.dumps(trace("x", request(0, 1) | {"hash_ids": [1.5]})),
        r"requests\[0\]: hash_ids are not all integers",
    ),
    "ids that are no list": (
        json.dumps(trace("x", request(0, 1) | {"hash_ids": {"1": 2}})),
        r"requests\[0\]: hash_ids is not a list",
    ),
    "an id twice": (
        json.dumps(trace("x", request(0, 5, 5))),
        r"requests\[0\]: a hash id comes twice",
    ),
    "ids that are not chained": (
        json.dumps(trace("x", request(0, 1, 2), request(1, 3, 2))),
        r"requests\[1\]: hash id 2 follows another id than it did before",
    ),
    "an id in another place": (
        json.dumps(trace("x", request(0, 1, 2), request(1, 2))),
        r"requests\[1\]: hash id 2 follows another id than it did before",
    ),
    "an unknown type": (
        json.dumps(trace("x", request(0, 1, type="q"))),
        r"Invalid value 'q' - at `\$.requests\[0\].type`",
    ),
    "an unknown scope": (
        json.dumps(trace("x", request(0, 1), hash_id_scope="file")),
        r"'file' - at `\$.hash_id_scope`",
    ),
    "a subagent in a subagent": (
        json.dumps(
            trace(
                "x",
                request(0, 1),
                {"type": "subagent", "t": 0, "requests": [{"type": "subagent", "t": 0}]},
            )
        ),
        r"'subagent' - at `\$.requests\[1\].requests\[0\].type`",
    ),
    "bad ids in a subagent": (
        json.dumps(
            trace("x", request(0, 1), {"type": "subagent", "t": 0, "requests": [request(0, 7, 7)]})
        ),
        r"requests\[1\].requests\[0\]: a hash id comes twice",
    ),
    "an empty conversation": (json.dumps(trace("x")), "'x' has no requests"),
    "an empty subagent alone": (
        json.dumps(trace("x", {"type": "subagent", "t": 0, "requests": []})),
        "'x' has no requests",
    ),
    "the same conversation again": (json.dumps(GOOD), "'good' is in bad.jsonl, line 1 already"),
    "no UTF-8": ('{"id": "\udcff"}', "not valid JSON|Invalid UTF-8"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_conversation_is_named_by_its_line(tmp_path: Path, what: str) -> None:
    bad, reason = BAD[what]
    content = f"{json.dumps(GOOD)}\n\n{bad}\n{json.dumps(GOOD | {'id': 'last'})}\n"
    path = write(tmp_path, "bad.jsonl", content.encode(errors="surrogateescape"))
    with pytest.raises(TraceError, match=f"^bad.jsonl, line 3: .*({reason})"):
        matched(path)
    rest = matched(path, skip_bad=True)
    assert rest.ids == ["good", "last"]
    assert leads(rest) == [0, 2, 0, 2]
    (skipped,) = rest.skipped
    assert skipped.startswith("bad.jsonl, line 3: ")


def test_a_bad_place_in_a_file_that_is_one_object_is_named_by_its_line(tmp_path: Path) -> None:
    text = json.dumps(GOOD, indent=1)
    broken = text.replace('"block_size": 64,', '"block_size": 64')
    line = 1 + broken[: broken.index('"block_size"')].count("\n")
    path = write(tmp_path, "one.json", broken)
    with pytest.raises(TraceError, match=rf"one.json, line {line + 1}: not valid JSON"):
        matched(path)
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(TraceError, match=r"one.json, line \d+: not valid JSON: .*truncated"):
        matched(path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, PACKED["zstd"]])
def test_a_packed_file_that_is_cut_off_is_no_shorter_file(tmp_path: Path, pack: Any) -> None:
    noise = [trace(f"t{n}", request(0, *range(n * 1000, n * 1000 + 900))) for n in range(60)]
    whole = pack(lines(*noise).encode())
    path = write(tmp_path, "cut.jsonl", whole[: len(whole) * 3 // 4])
    with pytest.raises(TraceError, match=r"cut.jsonl, line \d+: the packed file is cut off"):
        matched(path)
    rest = matched(path, skip_bad=True)
    assert 0 < len(rest.ids) < 60
    assert rest.ids == [f"t{n}" for n in range(len(rest.ids))]
    assert len(rest.skipped) == 1 and "cut off" in rest.skipped[0]


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    path = parquet(tmp_path / "data.parquet", 2)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TraceError, match=r"data.parquet: a broken Parquet file"):
        matched(path)


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": ["x"], "text": ["y"]}), path)
    with pytest.raises(TraceError, match="without the column block_size, requests is no trace"):
        matched(path)


MOONCAKE_ROW = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0, 1]}
BAD_MOONCAKE = {
    "cut off": ('{"timestamp": 0, "input_length"', "not valid JSON"),
    "no length": ('{"timestamp": 1, "hash_ids": []}', "missing required field `input_length`"),
    "negative": (json.dumps(MOONCAKE_ROW | {"input_length": -1}), ">= 0"),
    "too few ids": (json.dumps(MOONCAKE_ROW | {"hash_ids": []}), "0 hash_ids, .* needs 1 or 2"),
    "unchained": (json.dumps(MOONCAKE_ROW | {"hash_ids": [1, 0]}), "follows another id"),
    "multi-turn": (json.dumps(MOONCAKE_ROW | {"session_id": "a"}), "only what is new in a turn"),
}


@pytest.mark.parametrize("what", BAD_MOONCAKE)
def test_a_bad_line_of_a_mooncake_file_is_named(tmp_path: Path, what: str) -> None:
    bad, reason = BAD_MOONCAKE[what]
    path = write(tmp_path, "m.jsonl", f"{lines(MOONCAKE_ROW)}{bad}\n{lines(MOONCAKE_ROW)}")
    with pytest.raises(TraceError, match=f"^m.jsonl, line 2: .*{reason}"):
        matched(path)
    rest = matched(path, skip_bad=True)
    assert leads(rest) == [0, 2]
    assert len(rest.skipped) == 1 and rest.skipped[0].startswith("m.jsonl, line 2: ")


BAD_LOG = {
    "no tokens": ('{"prompt_token_ids": null, "input_ids": null}', "neither prompt_token_ids"),
    "a negative token": ('{"input_ids": [-1]}', ">= 0"),
    "a time in one line only": ('{"input_ids": [1], "timestamp": 3}', "a time, other than"),
}


@pytest.mark.parametrize("what", BAD_LOG)
def test_a_bad_line_of_a_token_log_is_named(tmp_path: Path, what: str) -> None:
    bad, reason = BAD_LOG[what]
    row = {"input_ids": list(range(20))}
    path = write(tmp_path, "log.jsonl", f"{lines(row)}{bad}\n{lines(row)}")
    with pytest.raises(TraceError, match=f"^log.jsonl, line 2: .*{reason}"):
        matched(path)
    rest = matched(path, skip_bad=True)
    assert leads(rest) == [0, 1] and len(rest.skipped) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("hello\n", "not the JSON of a trace"),
        ('{"name": "x", "version": 2}', "it has name, version"),
        ("[1, 2]", "not the JSON of a trace"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = write(tmp_path, "other.json", content)
    with pytest.raises(TraceError, match=f"other.json.*{reason}"):
        matched(path)
    good = write(tmp_path, "good.json", json.dumps(GOOD))
    rest = matched(path, good, skip_bad=True)
    assert rest.ids == ["good"] and len(rest.skipped) == 1


def test_nothing_left_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    path = write(tmp_path, "bad.jsonl", lines(trace("x")))
    with pytest.raises(TraceError, match=r"no conversation to count.*'x' has no requests"):
        matched(path, skip_bad=True)


def test_two_block_sizes_are_not_mixed(tmp_path: Path) -> None:
    other = trace("other", request(0, 1, **{"in": 32}), block_size=32)
    path = write(tmp_path, "two.jsonl", lines(GOOD, other))
    with pytest.raises(TraceError, match=r"two.jsonl, line 2: blocks of 32 tokens, and of 64"):
        matched(path)


# Sources


def test_a_folder_is_searched_and_what_is_no_data_is_listed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    write(tmp_path, ".git/config.json", "{}")
    write(tmp_path, "README.md", "hello")
    write(tmp_path, "b.jsonl.gz", gzip.compress(lines(GOOD).encode()))
    write(tmp_path, "deep/a.json", json.dumps(GOOD | {"id": "other"}))
    found = find(str(tmp_path))
    assert [Path(file.name).name for file in found.files] == ["b.jsonl.gz", "a.json"]
    assert [Path(name).name for name in found.ignored] == ["README.md"]
    assert match_corpus(found.files, Plan()).ids == ["good", "other"]


def test_globs_and_missing_sources(tmp_path: Path) -> None:
    for name in ("x1.json", "x2.json", "y.json"):
        write(tmp_path, name, json.dumps(GOOD | {"id": name}))
    found = find(str(tmp_path / "x*.json"))
    assert [Path(file.name).name for file in found.files] == ["x1.json", "x2.json"]
    with pytest.raises(TraceError, match="no such file, folder or glob match"):
        find(str(tmp_path / "z*.json"))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TraceError, match="no JSON, JSON lines or Parquet file"):
        find(str(empty))
    with pytest.raises(TraceError, match="only https"):
        find("http://example.invalid/x.json")


class Hub:
    """Stands in for huggingface_hub."""

    class HfApi:
        def list_repo_files(self, *, repo_id: str, repo_type: str, revision: str | None) -> Any:
            assert (repo_id, repo_type) == ("org/set.v1", "dataset")
            if revision == "gone":
                raise RuntimeError("404: no such revision")
            return ["README.md", ".gitattributes", "b/traces.jsonl", "a.parquet"]

    folder: Path

    @classmethod
    def hf_hub_download(cls, *, filename: str, **_: Any) -> str:
        return str(write(cls.folder, Path(filename).name, json.dumps(GOOD)))


def test_data_sets_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Hub.folder = tmp_path
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    names = [file.name for file in find("hf://datasets/org/set.v1").files]
    assert names == [
        "hf://datasets/org/set.v1/a.parquet",
        "hf://datasets/org/set.v1/b/traces.jsonl",
    ]
    (one,) = find("hf://datasets/org/set.v1@main/b/*.jsonl").files
    assert match_corpus([one], Plan()).ids == ["good"]
    with pytest.raises(TraceError, match="404: no such revision"):
        find("hf://datasets/org/set.v1@gone")
    with pytest.raises(TraceError, match="no JSON, JSON lines or Parquet file of this name"):
        find("hf://datasets/org/set.v1/c.jsonl")
    with pytest.raises(TraceError, match="write hf://datasets/OWNER/NAME"):
        find("hf://models/org/set")


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("huggingface_hub", lambda folder: find("hf://datasets/org/set")),
        ("zstandard", lambda folder: matched(write(folder, "z", PACKED["zstd"](TINY)))),
        ("pyarrow", lambda folder: matched(write(folder, "p", b"PAR1 and more"))),
    ],
)
def test_a_missing_optional_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, use: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TraceError, match=rf"needs the package {module}.*graphgain\[traces\]"):
        use(tmp_path)


class Response:
    """Stands in for what urlopen returns."""

    def __init__(self, content: bytes, length: int | None = None) -> None:
        self.headers = {"Content-Length": str(len(content) if length is None else length)}
        self._rest = content

    def read(self, count: int = -1) -> bytes:
        part, self._rest = self._rest[:count], self._rest[count:]
        return part

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, *_: object) -> None: ...


def test_an_address_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def urlopen(address: str, timeout: float) -> Response:
        asked.append(address)
        return Response(lines(GOOD).encode())

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sources.urllib.request, "urlopen", urlopen)
    address = "https://example.invalid/../../etc/traces.jsonl"
    for _ in range(2):
        (file,) = find(address).files
        assert match_corpus([file], Plan()).ids == ["good"]
        assert file.name == address
        assert file.path.resolve().is_relative_to(tmp_path.resolve())
    assert asked == [address]


@pytest.mark.parametrize("failure", ["short", "refused"])
def test_half_a_download_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    def urlopen(address: str, timeout: float) -> Response:
        if failure == "refused":
            raise ConnectionRefusedError("refused")
        return Response(b"{", length=10)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sources.urllib.request, "urlopen", urlopen)
    with pytest.raises(TraceError, match=r"https://example.invalid/t.jsonl: could not be fetched"):
        find("https://example.invalid/t.jsonl")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
