// link:
// How long the GPU takes from one kernel to the next when the host is out of the way. A gate holds
// the stream while the host issues a chain of equal kernels, each spinning for a set number of SM
// cycles; then the gate opens and two events time the chain. Eager launches against a graph
// captured from the same launches, with and without the programmatic (PDL) attribute, by kernel
// length, grid and size of the argument block. Beside them the length of one such kernel without
// any hand-over: one kernel that does the work of the whole chain, less one that does it once,
// divided by the difference in units.
//
// The kernel is the same in all variants. It triggers its dependents at once and then waits for the
// kernel before it, in front of its work: the next kernel is brought up during the work and none of
// the work overlaps. Without the attribute both instructions do nothing.

#include <algorithm>
#include <string>
#include <vector>

#include "bench.hpp"
#include "captured.hpp"
#include "gate.hpp"

using namespace graphgain;

namespace {

/// An argument block of `Bytes`; the kernel reads the first eight.
template <std::size_t Bytes>
struct Arguments {
  unsigned cycles;  // of one unit of work
  unsigned units;
  char rest[Bytes - 2 * sizeof(unsigned)];
};

template <>
struct Arguments<8> {
  unsigned cycles;
  unsigned units;
};

__device__ void spin_cycles(unsigned long long cycles) {
  const auto start = static_cast<unsigned long long>(clock64());
  while (static_cast<unsigned long long>(clock64()) - start < cycles) {
  }
}

template <std::size_t Bytes>
__global__ void spin(const __grid_constant__ Arguments<Bytes> arguments) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (unsigned unit = 0; unit < arguments.units; ++unit) spin_cycles(arguments.cycles);
}

/// Spins for `cycles` and says how long that was on the global timer.
__global__ void clock_rate(unsigned long long cycles, unsigned long long* elapsed_ns) {
  const unsigned long long start = global_timer_ns();
  spin_cycles(cycles);
  *elapsed_ns = global_timer_ns() - start;
}

/// SM cycles per microsecond under load, over about 10 ms after about 50 ms of warming up.
class ClockRate {
 public:
  explicit ClockRate(cudaStream_t stream) : stream_(stream) {
    check(cudaMallocHost(&elapsed_ns_, sizeof *elapsed_ns_), "allocating pinned memory");
  }

  double cycles_per_us() const {
    constexpr unsigned long long cycles = 20'000'000;
    for (int i = 0; i < 6; ++i) clock_rate<<<1, 1, 0, stream_>>>(cycles, elapsed_ns_);
    check(cudaGetLastError(), "launching the clock kernel");
    check(cudaStreamSynchronize(stream_), "waiting for the clock kernel");
    if (*elapsed_ns_ == 0) throw Failure("The GPU's global timer does not advance.");
    return 1e3 * static_cast<double>(cycles) / static_cast<double>(*elapsed_ns_);
  }

 private:
  cudaStream_t stream_;
  unsigned long long* elapsed_ns_ = nullptr;
};

struct Case {
  long chain;
  double kernel_us;
  unsigned cycles;
  unsigned grid;
  unsigned block;
};

json::Members axes_of(const Case& each, std::size_t argument_bytes) {
  return {{"kernel_us", each.kernel_us},
          {"grid", each.grid},
          {"argument_bytes", argument_bytes},
          {"chain", each.chain}};
}

json::Value with_mode(json::Members axes, const char* mode, bool programmatic) {
  axes.insert(axes.begin(), {{"mode", mode}, {"pdl", programmatic}});
  return json::object(axes);
}

/// Launches of one case: the launch configuration and an argument block that stay where they are.
template <std::size_t Bytes>
class Chain {
 public:
  Chain(cudaStream_t stream, const Case& each) : chain_(each.chain) {
    arguments_.cycles = each.cycles;
    arguments_.units = 1;
    config_.gridDimX = each.grid;
    config_.gridDimY = config_.gridDimZ = 1;
    config_.blockDimX = each.block;
    config_.blockDimY = config_.blockDimZ = 1;
    config_.hStream = stream;
    config_.attrs = &attribute_;
  }

  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  CUresult launch(bool programmatic) {
    config_.numAttrs = programmatic ? 1 : 0;
    return launch_(&config_, function_, pointers_, nullptr);
  }

  CUresult issue(bool programmatic) {
    CUresult worst = CUDA_SUCCESS;
    for (long i = 0; i < chain_; ++i) worst = std::max(worst, launch(programmatic));
    return worst;
  }

  /// One kernel that does `units` kernels' work.
  CUresult issue_one(long units) {
    arguments_.units = static_cast<unsigned>(units);
    const CUresult status = launch(false);
    arguments_.units = 1;
    return status;
  }

 private:
  long chain_;
  Arguments<Bytes> arguments_{};
  void* pointers_[1] = {&arguments_};
  CUlaunchAttribute attribute_ = programmatic_attribute();
  CUlaunchConfig config_{};
  CUfunction function_ = function_of(spin<Bytes>);
  decltype(Driver::launch_kernel_ex) launch_ = driver().launch_kernel_ex;
};

/// One mode: GPU and host microseconds per kernel of a chain behind the gate.
template <class Issue>
Variant timed_chain(GatedTimer& timer, const json::Value& axes, long length, Issue issue) {
  return {{{axes, "gpu_us", "kernel", length}, {axes, "host_us", "kernel", length}},
          [&timer, length, issue] {
            double host_us = 0;
            const double gpu_us = timer.gpu_us(
                [&] {
                  decltype(issue()) status{};
                  host_us = elapsed_us([&] { status = issue(); });
                  check(status, "issuing a chain of kernels");
                },
                "a chain of kernels");
            const auto kernels = static_cast<double>(length);
            return std::vector<double>{gpu_us / kernels, host_us / kernels};
          }};
}

template <std::size_t Bytes>
void measure_case(Document& document, const Rounds& rounds, cudaStream_t stream, Gate& gate,
                  const Case& each) {
  const json::Members axes = axes_of(each, Bytes);
  Chain<Bytes> chain(stream, each);
  GatedTimer timer(gate, stream);

  // Also the first launch of everything that will stand behind the gate.
  std::vector<cudaGraphExec_t> graphs;
  for (const bool programmatic : {false, true}) {
    const cudaGraph_t graph = capture(
        stream, [&] { check(chain.issue(programmatic), "capturing a chain of kernels"); });
    const long found = programmatic_edges(graph);
    const long expected = programmatic ? each.chain - 1 : 0;
    if (found != expected) {
      throw Failure("A graph captured from " + std::to_string(each.chain) + " launches " +
                    (programmatic ? "with" : "without") + " the PDL attribute has " +
                    std::to_string(found) + " programmatic edges, expected " +
                    std::to_string(expected) + ".");
    }
    document.counts.push_back(
        count_of(with_mode(axes, "graph", programmatic), "programmatic_edges", found));
    graphs.push_back(instantiate(graph));
    check(cudaGraphDestroy(graph), "destroying a graph");
    check(chain.issue(programmatic), "launching a chain of kernels");
    check(cudaGraphLaunch(graphs.back(), stream), "launching a graph");
    check(cudaStreamSynchronize(stream), "running the chain once");
  }

  std::vector<Variant> variants;
  for (const bool programmatic : {false, true}) {
    variants.push_back(timed_chain(timer, with_mode(axes, "eager", programmatic), each.chain,
                                   [&chain, programmatic] { return chain.issue(programmatic); }));
    variants.push_back(timed_chain(timer, with_mode(axes, "graph", programmatic), each.chain,
                                   [stream, graph = graphs[programmatic ? 1 : 0]] {
                                     return cudaGraphLaunch(graph, stream);
                                   }));
  }
  const long more = each.chain - 1;
  const auto one_kernel_us = [&timer, &chain](long units) {
    return timer.gpu_us(
        [&] { check(chain.issue_one(units), "launching one long kernel"); }, "one long kernel");
  };
  variants.push_back({{{with_mode(axes, "bare", false), "gpu_us", "kernel", more}},
                      [one_kernel_us, more] {
                        const double whole = one_kernel_us(more + 1);
                        const double single = one_kernel_us(1);
                        return std::vector<double>{(whole - single) / static_cast<double>(more)};
                      }});
  document.add(measure(rounds, variants));
  for (const cudaGraphExec_t graph : graphs) {
    check(cudaGraphExecDestroy(graph), "destroying an instantiated graph");
  }
}

/// Parses grids: a number of blocks, or with a trailing x a multiple of the number of SMs.
std::vector<long> read_grids(const Options& options, long sm_count) {
  const std::string option = "--grids";
  std::vector<long> grids;
  for (const std::string& entry : options.list(option)) {
    const bool multiple = !entry.empty() && entry.back() == 'x';
    const long number =
        parse_integer(option, multiple ? entry.substr(0, entry.size() - 1) : entry, 1);
    grids.push_back(multiple ? number * sm_count : number);
  }
  return grids;
}

std::vector<double> read_lengths_us(const Options& options) {
  const std::string option = "--kernel-us";
  std::vector<double> lengths;
  for (const std::string& entry : options.list(option)) {
    lengths.push_back(entry == "0" ? 0.0 : parse_positive(option, entry));
    if (lengths.back() > 1000) throw bad_option(option, entry, "lengths of at most 1000 us");
  }
  return lengths;
}

Document body(int argc, char** argv) {
  const Options options(argc, argv,
                        with_round_options({{"--chain", "256"},
                                            {"--kernel-us", "0,1,2,5,10,20"},
                                            {"--grids", "1,1x,8x"},
                                            {"--block", "128"},
                                            {"--argument-bytes", "8,1024"}},
                                           "100", "200", "5", "30"));
  const Rounds rounds = read_rounds(options);
  const std::vector<long> chains = options.integers("--chain", 2);
  const std::vector<double> lengths_us = read_lengths_us(options);
  const auto block = static_cast<unsigned>(options.integer("--block", 1));
  const std::vector<long> argument_bytes = options.integers("--argument-bytes", 8);
  for (const long bytes : argument_bytes) {
    if (bytes != 8 && bytes != 1024) {
      throw bad_option("--argument-bytes", std::to_string(bytes), "entries out of 8,1024");
    }
  }
  read_grids(options, 1);  // refuses a bad list before the GPU is asked for anything

  const Device device = open_device();
  if (device.properties.major < 9) {
    throw Failure("This GPU has compute capability " + std::to_string(device.properties.major) +
                  "." + std::to_string(device.properties.minor) +
                  "; programmatic dependent launch needs 9.0 or newer.");
  }
  const std::vector<long> grids = read_grids(options, device.properties.multiProcessorCount);
  const cudaStream_t stream = open_stream();
  const ClockRate clock(stream);
  const double cycles_per_us = clock.cycles_per_us();
  Gate gate;

  Document document{
      "handoff", device.as_json(),
      parameters(rounds,
                 {{"chain", json::array(chains)},
                  {"kernel_us", json::array(lengths_us)},
                  {"grids", json::array(grids)},
                  {"block", block},
                  {"argument_bytes", json::array(argument_bytes)},
                  {"sm_cycles_per_us", cycles_per_us},
                  {"order", "case by case; within a case eager, graph, eager with PDL, graph with "
                            "PDL and bare take turns round by round, so samples pair by index"},
                  {"gpu_us", "two events around the chain behind a gate, divided by its length: "
                             "includes the start of the chain (of the graph) after the first event "
                             "and the end of it before the second"},
                  {"host_us", "steady clock around issuing the chain behind the closed gate"},
                  {"bare", "one kernel doing the work of the chain less one doing it once, divided "
                           "by the difference in units: no hand-over"},
                  {"pdl", "griddepcontrol.launch_dependents first, griddepcontrol.wait directly "
                          "after it, then the work; one kernel for all modes"}})};
  for (const long chain : chains) {
    for (const long bytes : argument_bytes) {
      for (const long grid : grids) {
        for (const double kernel_us : lengths_us) {
          const Case each{chain, kernel_us, static_cast<unsigned>(kernel_us * cycles_per_us + 0.5),
                          static_cast<unsigned>(grid), block};
          if (bytes == 8) {
            measure_case<8>(document, rounds, stream, gate, each);
          } else {
            measure_case<1024>(document, rounds, stream, gate, each);
          }
        }
      }
    }
  }
  const json::Value none = json::object({});
  document.counts.push_back(count_of(none, "sm_cycles_per_us_before", cycles_per_us));
  document.counts.push_back(count_of(none, "sm_cycles_per_us_after", clock.cycles_per_us()));
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  return run("handoff", [&] { return body(argc, argv); });
}
