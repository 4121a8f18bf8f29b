// A gate holds a stream: a one-thread kernel that spins on a flag in mapped host memory, so that
// everything behind it is queued before any of it runs, and the host is out of the way.
//
// Whatever stands behind a closed gate must have been launched once before: with lazy loading the
// first launch of a kernel may wait for the device, and the device waits for the gate. Should the
// host be stuck all the same, the gate kernel gives up by itself and the program ends with a
// sentence.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "driver.hpp"

namespace graphgain {

/// Nanoseconds of the GPU's global timer. Coarse (it may tick once a microsecond).
__device__ inline unsigned long long global_timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

struct GateState {
  volatile unsigned opened;     // the last ticket let through, written by the host
  volatile unsigned timed_out;  // the last ticket that gave up, written by the device
};

__global__ void gate_kernel(GateState* state, unsigned ticket, unsigned long long timeout_ns) {
  const unsigned long long start = global_timer_ns();
  while (state->opened < ticket) {
    if (global_timer_ns() - start > timeout_ns) {
      state->timed_out = ticket;
      return;
    }
    __nanosleep(200);
  }
}

class Gate {
 public:
  explicit Gate(unsigned timeout_s = 5) : timeout_ns_(timeout_s * 1'000'000'000ull) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(GateState), cudaHostAllocMapped),
          "allocating mapped host memory for the gate");
    state_ = static_cast<GateState*>(memory);
    state_->opened = 0;
    state_->timed_out = 0;
    check(cudaHostGetDevicePointer(&memory, state_, 0), "mapping the gate's memory");
    device_state_ = static_cast<GateState*>(memory);
  }

  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Lets a held stream go also where an error unwinds the stack.
  ~Gate() { open(); }

  void close(cudaStream_t stream) {
    gate_kernel<<<1, 1, 0, stream>>>(device_state_, ++ticket_, timeout_ns_);
    check(cudaGetLastError(), "launching the gate kernel");
  }

  /// A store to host memory and no CUDA call: any thread may, whatever the driver waits for.
  void open() { state_->opened = ticket_; }

  /// After a synchronisation: throws if the gate did not hold until it was opened.
  void expect_held(const std::string& behind) const {
    if (state_->timed_out != ticket_) return;
    throw Failure("The gate gave up after " + std::to_string(timeout_ns_ / 1000000000) +
                  " s while the host was still issuing " + behind +
                  ": the work does not fit into the launch queue, make it shorter.");
  }

 private:
  GateState* state_ = nullptr;
  GateState* device_state_ = nullptr;
  unsigned ticket_ = 0;
  unsigned long long timeout_ns_;
};

/// Microseconds on the GPU of what `issue()` puts on a stream, between two events behind a gate.
/// Host and gate are outside; the hand-over from the first event to the work and from the work to
/// the second event are inside.
class GatedTimer {
 public:
  GatedTimer(Gate& gate, cudaStream_t stream) : gate_(gate), stream_(stream) {
    check(cudaEventCreate(&before_), "creating an event");
    check(cudaEventCreate(&after_), "creating an event");
  }

  template <class Issue>
  double gpu_us(Issue issue, const std::string& what) {
    gate_.close(stream_);
    check(cudaEventRecord(before_, stream_), "recording an event");
    issue();
    check(cudaEventRecord(after_, stream_), "recording an event");
    gate_.open();
    check(cudaStreamSynchronize(stream_), "waiting for " + what);
    gate_.expect_held(what);
    float ms = 0;
    check(cudaEventElapsedTime(&ms, before_, after_), "reading the events");
    return 1e3 * static_cast<double>(ms);
  }

 private:
  Gate& gate_;
  cudaStream_t stream_;
  cudaEvent_t before_ = nullptr;
  cudaEvent_t after_ = nullptr;
};

}  // namespace graphgain
