// Driver API entry points, fetched through the runtime. Nothing links against libcuda, so that a
// program starts on a machine without a driver and says what is missing instead of failing to load.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "failure.hpp"

#if CUDA_VERSION < 13000
#error "These benchmarks need the CUDA toolkit 13.0 or newer (graph edges carry edge data there)."
#endif

namespace graphgain {

inline void check(cudaError_t status, const std::string& doing) {
  if (status == cudaSuccess) return;
  throw Failure("CUDA error " + std::string(cudaGetErrorName(status)) + " (" +
                cudaGetErrorString(status) + ") while " + doing + ".");
}

/// The entry point `name` in the version of the headers this was compiled with.
template <class Function>
Function driver_entry(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &address, CUDA_VERSION, cudaEnableDefault, &found),
        "looking up " + std::string(name) + " in the driver");
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    throw Failure("The CUDA driver has no " + std::string(name) + " for CUDA " +
                  std::to_string(CUDA_VERSION / 1000) + "." +
                  std::to_string(CUDA_VERSION % 1000 / 10) + ": install a newer driver.");
  }
  return reinterpret_cast<Function>(address);
}

// The member has the type of the declaration (cuda.h maps some names to a _v2); the name that is
// looked up is the plain one, as the lookup asks.
#define GRAPHGAIN_ENTRY(member, name) \
  decltype(&::name) member = driver_entry<decltype(&::name)>(#name)

struct Driver {
  GRAPHGAIN_ENTRY(get_error_name, cuGetErrorName);
  GRAPHGAIN_ENTRY(get_error_string, cuGetErrorString);
  GRAPHGAIN_ENTRY(launch_kernel, cuLaunchKernel);
  GRAPHGAIN_ENTRY(launch_kernel_ex, cuLaunchKernelEx);
  GRAPHGAIN_ENTRY(memset_d8, cuMemsetD8Async);
  GRAPHGAIN_ENTRY(memset_d16, cuMemsetD16Async);
  GRAPHGAIN_ENTRY(memset_d32, cuMemsetD32Async);
  GRAPHGAIN_ENTRY(graph_get_nodes, cuGraphGetNodes);
  GRAPHGAIN_ENTRY(graph_get_edges, cuGraphGetEdges);
  GRAPHGAIN_ENTRY(graph_node_get_type, cuGraphNodeGetType);
  GRAPHGAIN_ENTRY(kernel_node_get_params, cuGraphKernelNodeGetParams);
  GRAPHGAIN_ENTRY(kernel_node_get_attribute, cuGraphKernelNodeGetAttribute);
  GRAPHGAIN_ENTRY(memset_node_get_params, cuGraphMemsetNodeGetParams);
  GRAPHGAIN_ENTRY(func_get_name, cuFuncGetName);
  GRAPHGAIN_ENTRY(func_get_param_info, cuFuncGetParamInfo);
  GRAPHGAIN_ENTRY(kernel_get_name, cuKernelGetName);
  GRAPHGAIN_ENTRY(kernel_get_param_info, cuKernelGetParamInfo);
};

#undef GRAPHGAIN_ENTRY

/// The driver, looked up at first use; call it only where a device is known to exist.
inline const Driver& driver() {
  static const Driver entries;
  return entries;
}

inline void check(CUresult status, const std::string& doing) {
  if (status == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* text = nullptr;
  driver().get_error_name(status, &name);
  driver().get_error_string(status, &text);
  throw Failure("CUDA driver error " + std::string(name ? name : "of unknown name") + " (" +
                (text ? text : "no description") + ") while " + doing + ".");
}

/// The driver's handle of a `__global__` function; this also loads its module.
template <class Kernel>
CUfunction function_of(Kernel* kernel) {
  cudaFunction_t function = nullptr;
  check(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel)),
        "looking up a kernel of this program (was it compiled for this GPU?)");
  return function;
}

/// The attribute that makes a launch programmatic (PDL) in stream order.
inline CUlaunchAttribute programmatic_attribute() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

}  // namespace graphgain
