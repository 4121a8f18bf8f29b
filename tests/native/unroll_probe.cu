// What the tests of the unroller need from CUDA: empty kernels to capture, and the bare loop of
// cuLaunchKernelEx calls that an issue loop is compared with.

#include <cuda_runtime.h>

#include <chrono>

#include "driver.hpp"

namespace {
__global__ void empty() {}
}  // namespace

extern "C" {

/// Puts `count` empty kernels on a stream, with the PDL attribute or not; 0, or a CUDA error.
int probe_empty_kernels(void* stream, int count, int pdl) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = pdl;
  for (int i = 0; i < count; ++i) {
    const cudaError_t status = cudaLaunchKernelEx(&config, empty);
    if (status != cudaSuccess) return status;
  }
  return 0;
}

/// Host microseconds of `count` cuLaunchKernelEx calls for the empty kernel; negative: they failed.
double probe_launch_ex_us(void* stream, int count) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = static_cast<CUstream>(stream);
  const CUfunction function = graphgain::function_of(empty);
  const auto launch = graphgain::driver().launch_kernel_ex;
  CUresult status = CUDA_SUCCESS;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count && status == CUDA_SUCCESS; ++i) {
    status = launch(&config, function, nullptr, nullptr);
  }
  const auto end = std::chrono::steady_clock::now();
  if (status != CUDA_SUCCESS) return -1;
  return std::chrono::duration<double, std::micro>(end - start).count();
}

}  // extern "C"
