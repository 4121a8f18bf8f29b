"""Graphs of many kinds taken apart and issued again on a GPU: the same bits, and little more host
time than bare launches."""

import ctypes
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

from graphgain.errors import MeasureError  # noqa: E402
from graphgain.measuring.native import build_program  # noqa: E402
from graphgain.measuring.nvcc import find_nvcc  # noqa: E402
from graphgain.unroll import Unrolled  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_nvcc() is None, reason="no nvcc on the PATH or in CUDA_HOME"),
]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture(scope="session")
def probe(build: Path) -> ctypes.CDLL:
    native = HERE.parent / "workflow" / "native"
    flags = ["-shared", "-Xcompiler=-fPIC", f"-I{native}"]
    path = build_program(HERE / "native" / "unroll_probe.cu", build, "native", flags, suffix=".so")
    library = ctypes.CDLL(str(path))
    library.probe_empty_kernels.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    library.probe_launch_ex_us.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.probe_launch_ex_us.restype = ctypes.c_double
    return library


def capture(
    work: Callable[[], Any], build: Path, *, warmup: bool = True
) -> tuple[Unrolled, Any, Any]:
    """A graph of `work`, what it returned, and the graph unrolled."""
    stream = torch.cuda.Stream()
    if warmup:
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        output = work()
    graph.instantiate()
    return Unrolled.from_graph(graph.raw_cuda_graph(), build=build, owner=graph), graph, output


def assert_same_bits(work: Callable[[], Any], build: Path) -> Unrolled:
    """Replay, then the C++ loop with and without PDL, each after the output was poisoned."""
    unrolled, graph, output = capture(work, build)
    graph.replay()
    torch.cuda.synchronize()
    expected = output.clone()
    assert expected.float().isfinite().all()
    stream = torch.cuda.current_stream()
    for pdl in (True, False):
        output.fill_(float("nan"))
        unrolled.launch(stream.cuda_stream, pdl=pdl)
        stream.synchronize()
        assert torch.equal(output, expected)
    return unrolled


def mlp(width: int = 512, tokens: int = 8) -> tuple[Any, Any]:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
    ).to("cuda", torch.bfloat16)
    return layers, torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)


@torch.no_grad()
def test_mlp(build: Path) -> None:
    layers, x = mlp()
    unrolled = assert_same_bits(lambda: layers(x), build)
    assert unrolled.summary().launches >= 3


@torch.no_grad()
def test_compiled_mlp(build: Path) -> None:
    layers, x = mlp()
    compiled = torch.compile(layers)
    assert_same_bits(lambda: compiled(x), build)


@torch.no_grad()
def test_split_k_of_cublas(build: Path) -> None:
    """Few outputs and a long sum: cuBLAS adds partial sums up in a second kernel."""
    x = torch.randn(1, 17408, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(5120, 17408, device="cuda", dtype=torch.bfloat16)
    unrolled = assert_same_bits(lambda: torch.nn.functional.linear(x, weight), build)
    print(unrolled.summary())
    assert unrolled.summary().launches >= 1


def test_memcpys(build: Path) -> None:
    x = torch.randn(64, 100, device="cuda")

    def work() -> Any:
        y = torch.empty(64, 100, device="cuda")
        y.copy_(x)
        z = torch.empty(100, 64, device="cuda")
        z.copy_(y.t())
        return z.add_(torch.zeros(100, 64, device="cuda"))

    unrolled = assert_same_bits(work, build)
    assert unrolled.summary().memcpys >= 1


def test_triton_kernels_keep_pdl(build: Path) -> None:
    pytest.importorskip("triton")
    from graphgain.models import kernels

    residual = torch.randn(1, 5120, device="cuda").to(torch.bfloat16)
    weight = torch.randn(5120, device="cuda").to(torch.bfloat16)
    out = torch.empty_like(residual)

    def work() -> Any:
        for _ in range(100):
            kernels.gemma_norm(residual, weight, out, 1e-6, pdl=True)
        return out

    unrolled = assert_same_bits(work, build)
    assert unrolled.summary().launches == 100
    assert unrolled.summary().pdl == 99


@torch.no_grad()
def test_transformers_model(build: Path) -> None:
    pytest.importorskip("transformers")
    from graphgain.models import reference
    from graphgain.models.shapes import Shapes
    from graphgain.models.weights import random_weights
    from graphgain.unroll import hosts

    shapes = Shapes(
        layers=4, hidden=512, intermediate=1024, vocabulary=1024, heads=6, kv_heads=2,
        head_dim=128, rotary_dim=32, linear_key_heads=4, linear_value_heads=12,
    )  # fmt: skip
    model = reference.build_model(random_weights(shapes, torch.device("cuda")))
    ids = torch.randint(1024, (1, 33), device="cuda")
    for tokens, cached in ((33, 0), (33, 70), (1, 70)):
        step = reference.forward(model, ids[:, :tokens], cached)
        captured = hosts.capture(step, build)
        same = hosts.identical_outputs(captured)
        assert same["cpp_eager"]
        assert same["cpp_eager_no_pdl"]


def test_demangled_names_and_argument_bytes(build: Path) -> None:
    x = torch.randn(1000, device="cuda")
    unrolled, _, _ = capture(lambda: x * 2, build)
    (node,) = unrolled.nodes
    assert "at::native" in node.name
    assert node.argument_bytes > 8
    assert node.grid is not None and node.grid[0] >= 1


def test_a_graph_with_branches_is_refused(build: Path) -> None:
    x, side = torch.randn(1000, device="cuda"), torch.cuda.Stream()

    def work() -> Any:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 3
        z = x * 2
        torch.cuda.current_stream().wait_stream(side)
        return y + z

    with pytest.raises(MeasureError, match="has branches"):
        capture(work, build)


def driver() -> ctypes.CDLL:
    torch.cuda.init()
    return ctypes.CDLL("libcuda.so.1")


def new_graph(cuda: ctypes.CDLL) -> ctypes.c_void_p:
    graph = ctypes.c_void_p()
    assert cuda.cuGraphCreate(ctypes.byref(graph), 0) == 0
    return graph


def test_a_host_function_is_refused_by_name(build: Path) -> None:
    cuda = driver()
    graph, node = new_graph(cuda), ctypes.c_void_p()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    params = (ctypes.c_void_p * 2)(ctypes.cast(function, ctypes.c_void_p), None)
    assert cuda.cuGraphAddHostNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), params) == 0
    with pytest.raises(MeasureError, match="holds a host function"):
        Unrolled.from_graph(graph.value or 0, build=build)


def test_a_child_graph_is_refused_by_name(build: Path) -> None:
    cuda = driver()
    graph, child, node = new_graph(cuda), new_graph(cuda), ctypes.c_void_p()
    size = ctypes.c_size_t(0)
    assert cuda.cuGraphAddChildGraphNode(ctypes.byref(node), graph, None, size, child) == 0
    with pytest.raises(MeasureError, match="holds a child graph"):
        Unrolled.from_graph(graph.value or 0, build=build)


def test_the_issue_loop_costs_little_more_than_bare_launches(
    build: Path, probe: ctypes.CDLL
) -> None:
    """At most 1.15 times the launch floor's `cuLaunchKernelEx`, both in turns in this run."""
    count, stream = 512, torch.cuda.Stream()
    pointer = stream.cuda_stream

    def work() -> None:
        handle = torch.cuda.current_stream().cuda_stream
        assert probe.probe_empty_kernels(handle, count, 0) == 0

    unrolled, _, _ = capture(work, build)
    assert len(unrolled.nodes) == count
    ours, bare = [], []
    for _ in range(100):
        bare.append(probe.probe_launch_ex_us(pointer, count))
        stream.synchronize()
        ours.append(unrolled.launch(pointer))
        stream.synchronize()
    ratio = statistics.median(ours[20:]) / statistics.median(bare[20:])
    print(f"issue loop {statistics.median(ours) / count:.3f} µs a launch, {ratio:.3f} × bare")
    assert min(bare) > 0
    assert ratio <= 1.15


def test_issue_in_parts_issues_everything(build: Path) -> None:
    x = torch.zeros(1, device="cuda")

    def work() -> Any:
        for _ in range(10):
            x.add_(1)
        return x

    unrolled, _, _ = capture(work, build, warmup=False)
    x.zero_()
    stream = torch.cuda.current_stream()
    assert unrolled.issue_us(stream.cuda_stream, stream.synchronize, chunk=3) > 0
    assert x.item() == 10


def test_a_conditional_node_is_refused_by_its_name(build: Path) -> None:
    runtime = pytest.importorskip("cuda.bindings.runtime", reason="cuda-bindings is not installed")

    def checked(answer: tuple[Any, ...]) -> Any:
        error, *values = answer
        assert error == runtime.cudaError_t.cudaSuccess, error
        return values[0] if values else None

    graph = checked(runtime.cudaGraphCreate(0))
    parameters = runtime.cudaGraphNodeParams()
    parameters.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
    parameters.conditional.handle = checked(runtime.cudaGraphConditionalHandleCreate(graph, 1, 0))
    parameters.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
    parameters.conditional.size = 1
    checked(runtime.cudaGraphAddNode(graph, None, None, 0, parameters))
    try:
        with pytest.raises(MeasureError, match="conditional node"):
            Unrolled.from_graph(int(graph), build=build, owner=graph)
    finally:
        checked(runtime.cudaGraphDestroy(graph))
