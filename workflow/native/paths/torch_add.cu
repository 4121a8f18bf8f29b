// An elementwise add as a torch operator compiled ahead of time, and the same with stages left out.
// A shared library for torch.ops.load_library.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "add.cuh"

namespace {

constexpr int kBlock = 256;

void check(const at::Tensor& tensor, int64_t elements) {
  TORCH_CHECK(tensor.dim() == 1 && tensor.size(0) == elements &&
                  tensor.scalar_type() == at::kFloat && tensor.is_cuda(),
              "add takes three float32 vectors of one length on the GPU.");
}

void check_all(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  const int64_t elements = x.size(0);
  check(x, elements);
  check(y, elements);
  check(out, elements);
}

void add_tensors(const at::Tensor& x, const at::Tensor& y, at::Tensor& out) {
  check_all(x, y, out);
  const int elements = static_cast<int>(x.size(0));
  add<<<(elements + kBlock - 1) / kBlock, kBlock, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), y.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      elements);
  TORCH_CHECK(cudaPeekAtLastError() == cudaSuccess, "CUDA error: ",
              cudaGetErrorString(cudaGetLastError()));
}

/// The same without the launch.
void accept_tensors(const at::Tensor& x, const at::Tensor& y, at::Tensor& out) {
  check_all(x, y, out);
}

/// The same without arguments as well: the call through the dispatcher alone.
void nothing() {}

}  // namespace

TORCH_LIBRARY(graphgain_aot, library) {
  library.def("add(Tensor x, Tensor y, Tensor(a!) out) -> ()");
  library.def("accept(Tensor x, Tensor y, Tensor(a!) out) -> ()");
  library.def("nothing() -> ()", &nothing);
}

TORCH_LIBRARY_IMPL(graphgain_aot, CUDA, library) {
  library.impl("add", &add_tensors);
  library.impl("accept", &accept_tensors);
}
