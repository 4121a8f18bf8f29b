// The published launch test, written again from its description and from nothing of ours, so that
// the launch_floor benchmark can be held against it: an empty kernel of one block of 32 threads on
// a non-blocking stream; 200 rounds of 512 launches, the host clock around the issuing and the
// synchronisation outside it; the first 20 rounds dropped; the median. Prints one JSON object.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const int kLaunches = 512;
static const int kRounds = 200;
static const int kDropped = 20;

__global__ void nothing() {}

static void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "launch_reference: CUDA error %s (%s).\n", cudaGetErrorName(status),
               cudaGetErrorString(status));
  std::exit(1);
}

template <class Issue>
static double median_us(cudaStream_t stream, Issue issue) {
  std::vector<double> kept;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    issue();
    const auto end = std::chrono::steady_clock::now();
    must(cudaStreamSynchronize(stream));
    if (round < kDropped) continue;
    kept.push_back(std::chrono::duration<double, std::micro>(end - begin).count() / kLaunches);
  }
  const auto middle = kept.begin() + kept.size() / 2;
  std::nth_element(kept.begin(), middle, kept.end());
  return *middle;
}

int main() {
  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  cudaFunction_t function;
  must(cudaGetFuncBySymbol(&function, (const void*)nothing));
  // Through the runtime, so that the program starts, and can complain, without a driver.
  decltype(&cuLaunchKernel) launch = nullptr;
  cudaDriverEntryPointQueryResult found;
  must(cudaGetDriverEntryPointByVersion("cuLaunchKernel", (void**)&launch, CUDA_VERSION,
                                        cudaEnableDefault, &found));

  const double driver_us = median_us(stream, [&] {
    for (int i = 0; i < kLaunches; ++i) launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
  });
  const double runtime_us = median_us(stream, [&] {
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32, 0, stream>>>();
  });

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32, 0, stream>>>();
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&executable, graph, 0));
  const double graph_us = median_us(stream, [&] { cudaGraphLaunch(executable, stream); });

  must(cudaGetLastError());
  std::printf("{\"driver_us\": %.6g, \"runtime_us\": %.6g, \"graph_us\": %.6g}\n", driver_us,
              runtime_us, graph_us);
  return 0;
}
