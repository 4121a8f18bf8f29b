// Launching an empty kernel from Python through tvm-ffi, with a loop in C++ and a graph beside it.
// A shared library for `tvm_ffi.load_module`; graphgain.experiments.ffi_process drives it.

#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace {

namespace ffi = tvm::ffi;

void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  TVM_FFI_THROW(RuntimeError) << "CUDA error " << cudaGetErrorName(status) << " ("
                              << cudaGetErrorString(status) << ") while " << doing << ".";
}

__global__ void empty() {}
__global__ void empty_with_tensors(const float*, const float*) {}

cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t fresh = nullptr;
    check(cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking), "creating a stream");
    return fresh;
  }();
  return made;
}

// What is measured from Python. Errors of a launch show at `synchronize`, outside the clock.
void launch() { empty<<<1, 32, 0, stream()>>>(); }

void launch_with_tensors(ffi::TensorView x, ffi::TensorView y) {
  empty_with_tensors<<<1, 32, 0, stream()>>>(static_cast<const float*>(x.data_ptr()),
                                             static_cast<const float*>(y.data_ptr()));
}

void synchronize() {
  check(cudaGetLastError(), "launching empty kernels");
  check(cudaStreamSynchronize(stream()), "waiting for empty kernels");
}

template <class Work>
double elapsed_us(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Microseconds that a loop of `count` launches takes the host.
double loop_us(int64_t count) {
  return elapsed_us([count] {
    for (int64_t i = 0; i < count; ++i) launch();
  });
}

cudaGraphExec_t prepared = nullptr;

/// Makes the graph of `count` kernels that `graph_us` launches.
void prepare_graph(int64_t count) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "beginning a capture");
  for (int64_t i = 0; i < count; ++i) launch();
  check(cudaStreamEndCapture(stream(), &graph), "ending a capture");
  check(cudaGraphInstantiate(&prepared, graph, 0), "instantiating a graph");
  check(cudaGraphDestroy(graph), "destroying a graph");
}

/// Microseconds that launching the prepared graph once takes the host.
double graph_us() {
  cudaError_t status = cudaSuccess;
  const double us = elapsed_us([&] { status = cudaGraphLaunch(prepared, stream()); });
  check(status, "launching a graph");
  return us;
}

struct DeviceMemory {
  void AllocData(DLTensor* tensor) {
    check(cudaMalloc(&tensor->data, ffi::GetDataSize(*tensor)), "allocating a tensor");
  }
  void FreeData(DLTensor* tensor) { cudaFree(tensor->data); }
};

/// A float32 vector on the GPU.
ffi::Tensor make_tensor(int64_t elements) {
  return ffi::Tensor::FromNDAlloc(DeviceMemory{}, ffi::Shape{elements},
                                  DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCUDA, 0});
}

std::string runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "reading the runtime's version");
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch, launch);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch_with_tensors, launch_with_tensors);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(synchronize, synchronize);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(loop_us, loop_us);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(prepare_graph, prepare_graph);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(graph_us, graph_us);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(make_tensor, make_tensor);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(runtime_version, runtime_version);
