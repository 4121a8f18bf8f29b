// A kernel of known duration, launched from Python through tvm-ffi, for the `gil` experiment.
// graphgain.experiments.gil_gpu_process loads it.
#include <cuda_runtime.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <cstdint>

namespace {

namespace ffi = tvm::ffi;

void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  TVM_FFI_THROW(RuntimeError) << "CUDA error " << cudaGetErrorName(status) << " ("
                              << cudaGetErrorString(status) << ") while " << doing << ".";
}

/// Runs for `cycles` of its multiprocessor.
__global__ void spin(int64_t cycles) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t fresh = nullptr;
    check(cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking), "creating a stream");
    return fresh;
  }();
  return made;
}

/// What is measured. Errors of a launch show at `synchronize`.
void launch(int64_t cycles) { spin<<<1, 32, 0, stream()>>>(cycles); }

void synchronize() {
  check(cudaGetLastError(), "launching a kernel");
  check(cudaStreamSynchronize(stream()), "waiting for the GPU");
}

/// Microseconds that the GPU needs from one kernel to the next when they wait in its queue.
double gpu_us(int64_t cycles, int64_t kernels) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "creating an event");
  check(cudaEventCreate(&end), "creating an event");
  launch(100 * cycles);  // so that the host is ahead when the GPU comes to the first event
  check(cudaEventRecord(begin, stream()), "recording an event");
  for (int64_t i = 0; i < kernels; ++i) launch(cycles);
  check(cudaEventRecord(end, stream()), "recording an event");
  synchronize();
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "reading events");
  check(cudaEventDestroy(begin), "destroying an event");
  check(cudaEventDestroy(end), "destroying an event");
  return 1000.0 * ms / static_cast<double>(kernels);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch, launch);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(synchronize, synchronize);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(gpu_us, gpu_us);
