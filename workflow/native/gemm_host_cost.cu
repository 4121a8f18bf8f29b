// link: -lcublas -lcublasLt
// Host cost of one matrix-vector cuBLAS call (n x 1 x k, bf16, as in decoding one token), and where
// it goes: the same product through cublasGemmEx, through cuBLASLt with a heuristic query a call
// and with the algorithm pinned, as a bare launch of the very kernels that cublasGemmEx launches,
// and an empty kernel beside them. Variants take turns round by round. The kernels of a call and
// their programmatic (PDL) edges are counted in a captured graph.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench.hpp"
#include "captured.hpp"

using namespace graphgain;

namespace {

using Bf16 = __nv_bfloat16;

void check(cublasStatus_t status, const std::string& doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Failure("cuBLAS error " + std::string(cublasGetStatusName(status)) + " (" +
                cublasGetStatusString(status) + ") while " + doing + ".");
}
using graphgain::check;

__global__ void empty() {}

/// Uniform values in [-1, 1) from a hash of the index: the same on every run, never all equal.
__global__ void fill_uniform(Bf16* values, std::size_t count, unsigned seed) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    unsigned long long h = (i + 1) * 0x9e3779b97f4a7c15ull + seed;  // splitmix64's finaliser
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    values[i] = __float2bfloat16(static_cast<float>((h ^ (h >> 31)) >> 40) * 0x1p-23f - 1.0f);
  }
}

/// y[row] = sum over k of w[row][k] x[k] in single precision, one warp a row: the yardstick.
__global__ void multiply(const Bf16* w, const Bf16* x, float* y, long n, long k) {
  const long row = (long{blockIdx.x} * blockDim.x + threadIdx.x) / warpSize;
  const int lane = static_cast<int>(threadIdx.x % warpSize);
  if (row >= n) return;
  float sum = 0;
  for (long i = lane; i < k; i += warpSize) {
    sum += __bfloat162float(w[row * k + i]) * __bfloat162float(x[i]);
  }
  for (int step = warpSize / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (lane == 0) y[row] = sum;
}

struct Shape {
  std::string name;
  long n;
  long k;
  long calls_per_step;
  long calls;  // a round
};

/// Parses "name:n:k:calls per step[:calls per round]" entries.
std::vector<Shape> read_shapes(const Options& options) {
  const std::string option = "--shapes";
  const long calls = options.integer("--calls", 1);
  std::vector<Shape> shapes;
  for (const std::string& entry : options.list(option)) {
    const std::vector<std::string> part = split(entry, ':');
    if (part.size() < 4 || part.size() > 5 || part[0].empty()) {
      throw bad_option(option, entry, "entries name:n:k:calls_per_step[:calls_per_round]");
    }
    shapes.push_back({part[0], parse_integer(option, part[1], 1), parse_integer(option, part[2], 1),
                      parse_integer(option, part[3], 1),
                      part.size() == 5 ? parse_integer(option, part[4], 1) : calls});
  }
  return shapes;
}

template <class T>
T* allocate(std::size_t count, const std::string& what) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)),
        "allocating " + std::to_string(count * sizeof(T)) + " bytes of GPU memory for " + what);
  return static_cast<T*>(memory);
}

/// Weights of one shape are consecutive copies in a common pool, at this distance in elements.
std::size_t weight_stride(const Shape& shape) {
  constexpr std::size_t alignment = 256 / sizeof(Bf16);
  const auto elements = static_cast<std::size_t>(shape.n * shape.k);
  return (elements + alignment - 1) / alignment * alignment;
}

/// So many copies that going round them brings none back into an L2 of `l2_bytes`.
std::size_t weight_copies(const Shape& shape, std::size_t l2_bytes, std::size_t l2_multiple) {
  const std::size_t bytes = weight_stride(shape) * sizeof(Bf16);
  return (l2_multiple * l2_bytes + bytes - 1) / bytes;
}

struct Buffers {
  Bf16* weights;
  Bf16* x;
  Bf16* y;
  float* reference;
  void* workspace;
  std::size_t workspace_bytes;
};

/// Gives the weight copies in turn, without end.
class Rotation {
 public:
  explicit Rotation(std::size_t copies) : copies_(copies) {}
  std::size_t next() {
    const std::size_t now = next_;
    if (++next_ == copies_) next_ = 0;
    return now;
  }

 private:
  std::size_t copies_;
  std::size_t next_ = 0;
};

constexpr float one = 1;
constexpr float zero = 0;

/// y = W x through cublasGemmEx with its defaults; W is n x k by rows, so k x n transposed.
struct GemmEx {
  cublasHandle_t handle;
  Shape shape;
  Buffers buffers;

  cublasStatus_t operator()(const Bf16* w) const {
    const int n = static_cast<int>(shape.n);
    const int k = static_cast<int>(shape.k);
    return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, 1, k, &one, w, CUDA_R_16BF, k,
                        buffers.x, CUDA_R_16BF, k, &zero, buffers.y, CUDA_R_16BF, n,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  }
};

/// The same product through cuBLASLt, its descriptors made once.
struct LtMatmul {
  cublasLtHandle_t handle;
  cudaStream_t stream;
  Buffers buffers;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w_layout = nullptr;
  cublasLtMatrixLayout_t x_layout = nullptr;
  cublasLtMatrixLayout_t y_layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  LtMatmul(cublasLtHandle_t lt, cudaStream_t on, const Shape& shape, const Buffers& with)
      : handle(lt), stream(on), buffers(with) {
    const auto n = static_cast<std::uint64_t>(shape.n);
    const auto k = static_cast<std::uint64_t>(shape.k);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "describing the product");
    check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed),
          "describing the product");
    check(cublasLtMatrixLayoutCreate(&w_layout, CUDA_R_16BF, k, n, shape.k), "describing W");
    check(cublasLtMatrixLayoutCreate(&x_layout, CUDA_R_16BF, k, 1, shape.k), "describing x");
    check(cublasLtMatrixLayoutCreate(&y_layout, CUDA_R_16BF, n, 1, shape.n), "describing y");
    check(cublasLtMatmulPreferenceCreate(&preference), "setting a workspace limit");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &buffers.workspace_bytes,
                                               sizeof buffers.workspace_bytes),
          "setting a workspace limit");
  }

  /// Asks for up to `wanted` algorithms, best first; `found` says how many there are.
  cublasStatus_t query(cublasLtMatmulHeuristicResult_t* results, int wanted, int* found) const {
    return cublasLtMatmulAlgoGetHeuristic(handle, operation, w_layout, x_layout, y_layout, y_layout,
                                          preference, wanted, results, found);
  }

  cublasStatus_t operator()(const Bf16* w, const cublasLtMatmulAlgo_t& algorithm) const {
    return cublasLtMatmul(handle, operation, &one, w, w_layout, buffers.x, x_layout, &zero,
                          buffers.y, y_layout, buffers.y, y_layout, &algorithm, buffers.workspace,
                          buffers.workspace_bytes, stream);
  }
};

/// The nodes of one steady-state call. Two calls are captured and the second is kept: how its first
/// kernel follows the call before shows only there.
template <class Call>
std::vector<CapturedNode> captured_call(cudaStream_t stream, Call call) {
  const cudaGraph_t graph = capture(stream, [&] {
    check(call(), "capturing a matrix product");
    check(call(), "capturing a matrix product");
  });
  std::vector<CapturedNode> both = read_chain(graph);
  check(cudaGraphDestroy(graph), "destroying a graph");
  if (both.empty() || both.size() % 2 != 0) {
    throw Failure("Two equal cuBLAS calls were captured as " + std::to_string(both.size()) +
                  " nodes, so they are not equal.");
  }
  both.erase(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2));
  return both;
}

std::string signature(const std::vector<CapturedNode>& call) {
  std::string out;
  for (const CapturedNode& node : call) out += json::object(node.description()).text;
  return out;
}

cublasStatus_t as_cublas(CUresult status) {
  graphgain::check(status, "launching a captured kernel");
  return CUBLAS_STATUS_SUCCESS;
}

struct Pinned {
  cublasLtMatmulAlgo_t algorithm;
  int rank;           // among the heuristic's proposals, 0 is its first choice
  bool same_kernels;  // as cublasGemmEx
};

/// The best-ranked proposal that launches what cublasGemmEx does, or else the first one.
Pinned pin_algorithm(const LtMatmul& matmul, const Bf16* w, const std::string& gemm_ex_signature) {
  constexpr int most = 32;
  std::vector<cublasLtMatmulHeuristicResult_t> results(most);
  int found = 0;
  check(matmul.query(results.data(), most, &found), "asking for algorithms");
  if (found == 0) throw Failure("cuBLASLt proposes no algorithm for this product.");
  for (int rank = 0; rank < found; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    // A proposal may turn out not to run here; as only the first is ever used without a match,
    // the others may be passed over.
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    if (matmul(w, result.algo) != CUBLAS_STATUS_SUCCESS) continue;
    check(cudaStreamSynchronize(matmul.stream), "waiting for a proposed algorithm");
    const auto call = captured_call(matmul.stream, [&] { return matmul(w, result.algo); });
    if (signature(call) == gemm_ex_signature) return {result.algo, rank, true};
  }
  return {results[0].algo, 0, false};
}

/// Poisons y, runs `call`, and returns y; throws unless it is W x to bf16's precision.
template <class Call>
std::vector<Bf16> checked_output(cudaStream_t stream, const Shape& shape, const Buffers& buffers,
                                 const Bf16* w, const std::string& what, Call call) {
  const auto n = static_cast<std::size_t>(shape.n);
  constexpr unsigned threads = 256;
  const auto blocks = static_cast<unsigned>((n * 32 + threads - 1) / threads);
  multiply<<<blocks, threads, 0, stream>>>(w, buffers.x, buffers.reference, shape.n, shape.k);
  check(cudaGetLastError(), "launching the reference product");
  check(cudaMemsetAsync(buffers.y, 0xff, n * sizeof(Bf16), stream), "poisoning y");  // all NaN
  check(call(), "running " + what);
  check(cudaStreamSynchronize(stream), "waiting for " + what);

  std::vector<Bf16> y(n);
  std::vector<float> expected(n);
  check(cudaMemcpy(y.data(), buffers.y, n * sizeof(Bf16), cudaMemcpyDeviceToHost), "reading y");
  check(cudaMemcpy(expected.data(), buffers.reference, n * sizeof(float), cudaMemcpyDeviceToHost),
        "reading the reference");
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double wanted = expected[i];
    const double difference = static_cast<double>(__bfloat162float(y[i])) - wanted;
    error += difference * difference;
    norm += wanted * wanted;
  }
  if (!(error <= 1e-4 * norm)) {  // also where an element is NaN
    throw Failure("The output of " + what + " for shape " + shape.name +
                  " differs from the reference product by more than 1 %.");
  }
  return y;
}

bool equal_bits(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Bf16)) == 0;
}

/// A variant whose round times `shape.calls` calls of `call(copy)` on the host.
template <class Call>
Variant timed_calls(cudaStream_t stream, const Shape& shape, const char* what, std::size_t copies,
                    Call call) {
  const json::Value axes = json::object({{"shape", shape.name}, {"call", what}});
  return {{{axes, "host_us", "call", shape.calls}},
          [stream, calls = shape.calls, what, rotation = Rotation(copies), call]() mutable {
            cublasStatus_t worst{};  // zero is success
            const double us = elapsed_us([&] {
              for (long i = 0; i < calls; ++i) worst = std::max(worst, call(rotation.next()));
            });
            check(worst, "running " + std::string(what));
            check(cudaGetLastError(), "launching " + std::string(what));
            check(cudaStreamSynchronize(stream), "waiting for " + std::string(what));
            return std::vector<double>{us / static_cast<double>(calls)};
          }};
}

void describe_call(Document& document, const Shape& shape, const char* what,
                   const std::vector<CapturedNode>& call) {
  const json::Value axes = json::object({{"shape", shape.name}, {"call", what}});
  long kernels = 0;
  long programmatic = 0;
  for (const CapturedNode& node : call) {
    json::Members members{{"axes", axes}, {"index", kernels}};
    const json::Members description = node.description();
    members.insert(members.end(), description.begin(), description.end());
    document.kernels.push_back(json::object(members));
    kernels += node.is_kernel() ? 1 : 0;
    programmatic += node.programmatic() ? 1 : 0;
  }
  const auto nodes = static_cast<long>(call.size());
  document.counts.push_back(count_of(axes, "kernels_per_call", kernels));
  document.counts.push_back(count_of(axes, "memsets_per_call", nodes - kernels));
  document.counts.push_back(count_of(axes, "programmatic_edges_per_call", programmatic));
  document.counts.push_back(count_of(axes, "launches_per_round", nodes * shape.calls));
}

struct Handles {
  cudaStream_t stream;
  cublasHandle_t as_created;      // cuBLAS's own workspace, as a caller who sets nothing gets it
  cublasHandle_t with_workspace;  // captured without memory nodes, so it can be issued again
  cublasLtHandle_t lt;
};

void measure_shape(Document& document, const Rounds& rounds, const Handles& handles,
                   const Buffers& buffers, const Shape& shape, std::size_t copies) {
  const cudaStream_t stream = handles.stream;
  const std::size_t stride = weight_stride(shape);
  const auto weights = [=](std::size_t copy) { return buffers.weights + copy * stride; };
  const GemmEx gemm_ex{handles.as_created, shape, buffers};
  const GemmEx gemm_ex_to_capture{handles.with_workspace, shape, buffers};
  const LtMatmul matmul(handles.lt, stream, shape, buffers);

  const std::vector<Bf16> output = checked_output(stream, shape, buffers, weights(0), "gemm_ex",
                                                  [&] { return gemm_ex(weights(0)); });

  // What a first call sets up must not happen in a capture.
  checked_output(stream, shape, buffers, weights(0), "gemm_ex with a workspace",
                 [&] { return gemm_ex_to_capture(weights(0)); });
  // A captured call holds the address of its weights, so there is one for every copy.
  std::vector<std::vector<CapturedNode>> bare_calls;
  bool equals_default = true;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    bare_calls.push_back(
        captured_call(stream, [&] { return gemm_ex_to_capture(weights(copy)); }));
  }
  const auto bare = [&](std::size_t copy) {
    CUresult worst = CUDA_SUCCESS;
    for (CapturedNode& node : bare_calls[copy]) worst = std::max(worst, node.issue(stream));
    return worst == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : as_cublas(worst);
  };
  for (const std::size_t copy : {std::size_t{0}, copies - 1}) {
    const auto captured = checked_output(stream, shape, buffers, weights(copy), "captured gemm_ex",
                                         [&] { return gemm_ex_to_capture(weights(copy)); });
    const auto reissued = checked_output(stream, shape, buffers, weights(copy), "bare",
                                         [&] { return bare(copy); });
    if (!equal_bits(captured, reissued)) {
      throw Failure("Issuing the kernels of cublasGemmEx for shape " + shape.name +
                    " again does not give its output bit by bit.");
    }
    if (copy == 0) equals_default = equal_bits(captured, output);
  }

  const std::string kernels = signature(bare_calls[0]);
  for (const auto& call : bare_calls) {
    if (signature(call) != kernels) {
      throw Failure("cublasGemmEx launches different kernels for different weights of shape " +
                    shape.name + ".");
    }
  }
  const Pinned pinned = pin_algorithm(matmul, weights(0), kernels);
  checked_output(stream, shape, buffers, weights(0), "lt_pinned",
                 [&] { return matmul(weights(0), pinned.algorithm); });
  const auto pinned_call =
      captured_call(stream, [&] { return matmul(weights(0), pinned.algorithm); });

  describe_call(document, shape, "gemm_ex", bare_calls[0]);
  describe_call(document, shape, "lt_pinned", pinned_call);
  const json::Value axes = json::object({{"shape", shape.name}});
  document.counts.push_back(count_of(axes, "calls_per_step", shape.calls_per_step));
  document.counts.push_back(count_of(axes, "weight_copies", copies));
  document.counts.push_back(
      count_of(axes, "captured_output_equals_default_workspace", equals_default ? 1 : 0));
  document.counts.push_back(count_of(axes, "lt_pinned_rank", pinned.rank));
  document.counts.push_back(
      count_of(axes, "lt_pinned_same_kernels_as_gemm_ex", pinned.same_kernels ? 1 : 0));

  document.add(measure(
      rounds,
      {timed_calls(stream, shape, "empty", copies,
                   [stream](std::size_t) {
                     empty<<<1, 32, 0, stream>>>();
                     return CUBLAS_STATUS_SUCCESS;  // the last error is asked for once a round
                   }),
       timed_calls(stream, shape, "gemm_ex", copies,
                   [&](std::size_t copy) { return gemm_ex(weights(copy)); }),
       timed_calls(stream, shape, "lt_heuristic", copies,
                   [&](std::size_t copy) {
                     // The query is made and paid for; what is launched is the pinned algorithm,
                     // so that the query is all that this variant has more.
                     cublasLtMatmulHeuristicResult_t result;
                     int found = 0;
                     const cublasStatus_t status = matmul.query(&result, 1, &found);
                     return std::max(status, matmul(weights(copy), pinned.algorithm));
                   }),
       timed_calls(stream, shape, "lt_pinned", copies,
                   [&](std::size_t copy) { return matmul(weights(copy), pinned.algorithm); }),
       timed_calls(stream, shape, "bare", copies, bare)}));
}

Document body(int argc, char** argv) {
  const Options options(
      argc, argv,
      with_round_options({{"--shapes",
                           "in_proj_ba:96:5120:48,o_proj/out_proj:5120:6144:64,"
                           "down_proj:5120:17408:64,qkv_proj:14336:5120:16,"
                           "in_proj_qkvz:16384:5120:48,gate_up:34816:5120:64,"
                           "lm_head:248320:5120:1"},
                          {"--calls", "256"},
                          {"--l2-multiple", "8"},
                          {"--workspace-mib", "32"}},
                         "180", "540", "20", "60"));
  const Rounds rounds = read_rounds(options);
  const std::vector<Shape> shapes = read_shapes(options);
  const auto l2_multiple = static_cast<std::size_t>(options.integer("--l2-multiple", 1));
  const auto workspace_bytes =
      static_cast<std::size_t>(options.integer("--workspace-mib", 1)) << 20;

  const Device device = open_device();
  const auto l2_bytes = static_cast<std::size_t>(device.properties.l2CacheSize);
  std::size_t pool = 0;
  std::size_t longest_x = 0;
  std::size_t longest_y = 0;
  std::vector<json::Value> described;
  for (const Shape& shape : shapes) {
    pool = std::max(pool, weight_stride(shape) * weight_copies(shape, l2_bytes, l2_multiple));
    longest_x = std::max(longest_x, static_cast<std::size_t>(shape.k));
    longest_y = std::max(longest_y, static_cast<std::size_t>(shape.n));
    described.push_back(json::object({{"shape", shape.name},
                                      {"n", shape.n},
                                      {"k", shape.k},
                                      {"calls_per_step", shape.calls_per_step},
                                      {"calls", shape.calls}}));
  }

  Handles handles{open_stream(), nullptr, nullptr, nullptr};
  Buffers buffers{allocate<Bf16>(pool, "the weights"),
                  allocate<Bf16>(longest_x, "x"),
                  allocate<Bf16>(longest_y, "y"),
                  allocate<float>(longest_y, "the reference product"),
                  allocate<char>(workspace_bytes, "the workspace"),
                  workspace_bytes};
  fill_uniform<<<1024, 256, 0, handles.stream>>>(buffers.weights, pool, 1);
  fill_uniform<<<1024, 256, 0, handles.stream>>>(buffers.x, longest_x, 2);
  check(cudaGetLastError(), "launching the fill kernels");
  check(cudaStreamSynchronize(handles.stream), "filling the weights");

  check(cublasCreate(&handles.as_created), "starting cuBLAS");
  check(cublasSetStream(handles.as_created, handles.stream), "giving cuBLAS a stream");
  check(cublasCreate(&handles.with_workspace), "starting cuBLAS");
  check(cublasSetStream(handles.with_workspace, handles.stream), "giving cuBLAS a stream");
  // After the stream, which resets the workspace.
  check(cublasSetWorkspace(handles.with_workspace, buffers.workspace, workspace_bytes),
        "giving cuBLAS a workspace");
  check(cublasLtCreate(&handles.lt), "starting cuBLASLt");
  int cublas_version = 0;
  check(cublasGetVersion(handles.as_created, &cublas_version), "reading cuBLAS's version");

  Document document{
      "gemm_host_cost", device.as_json(),
      parameters(rounds,
                 {{"shapes", json::array(described)},
                  {"dtype", "bf16"},
                  {"compute", "f32"},
                  {"m", 1},
                  {"l2_multiple", l2_multiple},
                  {"workspace_bytes", workspace_bytes},
                  {"cublas_version", cublas_version},
                  {"order", "shape by shape; within a shape the variants take turns, as listed, "
                            "round by round"},
                  {"host_us", "steady clock around the issuing, idle stream before, "
                              "synchronisation after and outside the clock"},
                  {"gemm_ex", "cublasGemmEx, default algorithm, cuBLAS's own workspace"},
                  {"lt_heuristic", "one algorithm query and lt_pinned's call"},
                  {"lt_pinned", "cublasLtMatmul, descriptors and algorithm made once"},
                  {"bare", "the kernels of one captured cublasGemmEx call with a workspace of "
                           "workspace_bytes, through cuLaunchKernelEx"},
                  {"empty", "one empty kernel of one block of 32 threads through the runtime"}})};
  for (const Shape& shape : shapes) {
    measure_shape(document, rounds, handles, buffers, shape,
                  weight_copies(shape, l2_bytes, l2_multiple));
  }
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  return run("gemm_host_cost", [&] { return body(argc, argv); });
}
