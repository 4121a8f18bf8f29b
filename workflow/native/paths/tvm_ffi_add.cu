// An elementwise add as a tvm-ffi module, and the same function with stages left out.
// graphgain.experiments.paths.tvm_ffi_module loads it.
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "add.cuh"

namespace {

namespace ffi = tvm::ffi;

constexpr int kBlock = 256;

void check(const ffi::TensorView& tensor, int64_t elements) {
  if (tensor.ndim() != 1 || tensor.size(0) != elements || tensor.dtype().code != kDLFloat ||
      tensor.dtype().bits != 32 || tensor.device().device_type != kDLCUDA) {
    TVM_FFI_THROW(ValueError) << "add takes three float32 vectors of one length on the GPU.";
  }
}

void check_all(const ffi::TensorView& x, const ffi::TensorView& y, const ffi::TensorView& out) {
  const int64_t elements = x.size(0);
  check(x, elements);
  check(y, elements);
  check(out, elements);
}

/// The whole path: the stream is the one that tvm-ffi took over from torch.
void add_tensors(ffi::TensorView x, ffi::TensorView y, ffi::TensorView out) {
  check_all(x, y, out);
  const DLDevice device = x.device();
  const auto stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  const int elements = static_cast<int>(x.size(0));
  add<<<(elements + kBlock - 1) / kBlock, kBlock, 0, stream>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<const float*>(y.data_ptr()),
      static_cast<float*>(out.data_ptr()), elements);
  if (cudaPeekAtLastError() != cudaSuccess) {
    TVM_FFI_THROW(RuntimeError) << "CUDA error: " << cudaGetErrorString(cudaGetLastError()) << ".";
  }
}

/// The same without the launch.
void accept_tensors(ffi::TensorView x, ffi::TensorView y, ffi::TensorView out) {
  check_all(x, y, out);
}

/// The same without arguments as well: the call alone.
void nothing() {}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, add_tensors);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(accept, accept_tensors);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nothing, nothing);
