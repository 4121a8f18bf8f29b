// link:
// Host cost of launching an empty kernel, the least any launch can cost: through the driver, the
// runtime, cuLaunchKernelEx with and without the programmatic (PDL) attribute, and as a graph; by
// number of arguments; by graph length; and how many launches can be outstanding before the host
// blocks. A round issues without waiting, and only the issuing is inside the clock.

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "gate.hpp"

using namespace graphgain;

namespace {

constexpr unsigned block_size = 32;

__global__ void empty() {}

/// The kernel of the argument sweep: `empty` with as many 8-byte arguments.
template <class... Arguments>
__global__ void empty_with(Arguments...) {}

template <std::size_t>
using Word = unsigned long long;

template <std::size_t... Indices>
CUfunction function_with(std::index_sequence<Indices...>) {
  return function_of(empty_with<Word<Indices>...>);
}

constexpr long most_arguments = 64;

CUfunction function_with_arguments(long count) {
  switch (count) {
    case 0: return function_with(std::make_index_sequence<0>{});
    case 1: return function_with(std::make_index_sequence<1>{});
    case 2: return function_with(std::make_index_sequence<2>{});
    case 4: return function_with(std::make_index_sequence<4>{});
    case 8: return function_with(std::make_index_sequence<8>{});
    case 16: return function_with(std::make_index_sequence<16>{});
    case 32: return function_with(std::make_index_sequence<32>{});
    case 64: return function_with(std::make_index_sequence<64>{});
    default: throw Failure("There is no kernel with " + std::to_string(count) + " arguments.");
  }
}

/// A variant whose round times `count` calls of `launch` (any status type) on the host.
template <class Launch>
Variant timed_launches(cudaStream_t stream, const json::Value& axes, long count, Launch launch) {
  return {{{axes, "host_us", "launch", count}},
          [stream, count, launch]() mutable {
            decltype(launch()) worst{};  // zero is success
            const double us = elapsed_us([&] {
              for (long i = 0; i < count; ++i) worst = std::max(worst, launch());
            });
            check(worst, "launching empty kernels");
            check(cudaStreamSynchronize(stream), "waiting for empty kernels");
            return std::vector<double>{us / static_cast<double>(count)};
          }};
}

/// The ways to launch one empty kernel, by name.
struct Launches {
  cudaStream_t stream;
  CUfunction function = function_of(empty);
  decltype(Driver::launch_kernel) launch_kernel = driver().launch_kernel;
  decltype(Driver::launch_kernel_ex) launch_kernel_ex = driver().launch_kernel_ex;

  auto through_driver() const {
    return [*this] {
      return launch_kernel(function, 1, 1, 1, block_size, 1, 1, 0, stream, nullptr, nullptr);
    };
  }

  auto through_driver_with(CUfunction other, void** arguments) const {
    return [*this, other, arguments] {
      return launch_kernel(other, 1, 1, 1, block_size, 1, 1, 0, stream, arguments, nullptr);
    };
  }

  auto through_runtime() const {
    return [stream = stream] {
      empty<<<1, block_size, 0, stream>>>();
      return cudaSuccess;  // asked for once a round, as the clock should not hold the asking
    };
  }

  auto through_launch_ex(bool programmatic) const {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = block_size;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.numAttrs = programmatic ? 1 : 0;
    return [*this, config, attribute = programmatic_attribute()]() mutable {
      config.attrs = &attribute;
      return launch_kernel_ex(&config, function, nullptr, nullptr);
    };
  }

  cudaGraph_t captured(long length) const {
    return capture(stream, [&] {
      for (long i = 0; i < length; ++i) empty<<<1, block_size, 0, stream>>>();
    });
  }
};

Variant one_path(const Launches& launches, const std::string& path, long count) {
  const json::Value axes = json::object({{"path", path}});
  const cudaStream_t stream = launches.stream;
  if (path == "driver") return timed_launches(stream, axes, count, launches.through_driver());
  if (path == "launch_ex") {
    return timed_launches(stream, axes, count, launches.through_launch_ex(false));
  }
  if (path == "launch_ex_pdl") {
    return timed_launches(stream, axes, count, launches.through_launch_ex(true));
  }
  if (path == "runtime") {
    Variant variant = timed_launches(stream, axes, count, launches.through_runtime());
    variant.round = [round = variant.round] {
      std::vector<double> samples = round();
      check(cudaGetLastError(), "launching empty kernels with <<<>>>");
      return samples;
    };
    return variant;
  }
  const cudaGraphExec_t graph = instantiate(launches.captured(count));
  return {{{axes, "host_us", "launch", count}}, [stream, count, graph] {
            cudaError_t status{};
            const double us = elapsed_us([&] { status = cudaGraphLaunch(graph, stream); });
            check(status, "launching a graph");
            check(cudaStreamSynchronize(stream), "waiting for a graph");
            return std::vector<double>{us / static_cast<double>(count)};
          }};
}

/// All that is asked about a graph of `length` empty kernels, one measurement after the other.
std::vector<json::Value> one_graph_length(const Launches& launches, Gate& gate,
                                          const Rounds& rounds, const Rounds& few, long length) {
  const json::Value axes = json::object({{"path", "graph"}, {"graph_length", length}});
  const auto nodes = static_cast<double>(length);
  const cudaStream_t stream = launches.stream;
  const cudaGraph_t graph = launches.captured(length);

  const Variant instantiation{{{axes, "instantiate_us", "graph", 1}}, [&] {
    cudaGraphExec_t executable = nullptr;
    const double us = elapsed_us([&] { executable = instantiate(graph); });
    check(cudaGraphExecDestroy(executable), "destroying an instantiated graph");
    return std::vector<double>{us};
  }};
  std::vector<json::Value> series = measure(few, {instantiation});

  const cudaGraphExec_t executable = instantiate(graph);
  const Variant host{
      {{axes, "host_us", "graph", 1}, {axes, "host_us", "launch", length}}, [&] {
        cudaError_t status{};
        const double us = elapsed_us([&] { status = cudaGraphLaunch(executable, stream); });
        check(status, "launching a graph");
        check(cudaStreamSynchronize(stream), "waiting for a graph");
        return std::vector<double>{us, us / nodes};
      }};
  for (json::Value& each : measure(rounds, {host})) series.push_back(std::move(each));

  GatedTimer timer(gate, stream);
  const Variant gpu{{{axes, "gpu_us", "node", length}}, [&] {
    const double us = timer.gpu_us(
        [&] { check(cudaGraphLaunch(executable, stream), "launching a graph"); }, "a graph");
    return std::vector<double>{us / nodes};
  }};
  for (json::Value& each : measure(rounds, {gpu})) series.push_back(std::move(each));

  check(cudaGraphExecDestroy(executable), "destroying an instantiated graph");
  check(cudaGraphDestroy(graph), "destroying a graph");
  return series;
}

/// Refuses a list option with an entry that this program does not know.
void expect_known(const Options& options, const std::string& name, const std::string& known) {
  const std::vector<std::string> all = split(known, ',');
  for (const std::string& each : options.list(name)) {
    if (std::find(all.begin(), all.end(), each) == all.end()) {
      throw bad_option(name, each, "entries out of " + known);
    }
  }
}

struct Outstanding {
  long launches;  // that returned while the gate held the stream; the gate itself is not counted
  bool blocked;   // false: the limit was reached, so `launches` is a lower bound
};

/// Launches behind a closed gate until one does not return within `stall_ms`. A second thread sees
/// that the count of returned launches has stopped growing and opens the gate.
template <class Launch>
Outstanding outstanding_launches(Gate& gate, cudaStream_t stream, long limit, double stall_ms,
                                 Launch launch) {
  check(launch(), "launching an empty kernel");  // a first launch behind the gate might load it
  check(cudaStreamSynchronize(stream), "waiting for an empty kernel");

  std::atomic<long> returned{0};
  std::atomic<bool> opened{false};
  std::atomic<bool> done{false};
  double last_us = 0;
  decltype(launch()) status{};

  gate.close(stream);
  std::thread watchdog([&] {
    long seen = 0;
    auto since = Clock::now();
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const long now = returned;
      if (now != seen) {
        seen = now;
        since = Clock::now();
      } else if (us_since(since) > 1e3 * stall_ms) {
        opened = true;
        gate.open();
        return;
      }
    }
  });
  // No exception may pass a running thread, so a bad status ends the loop and is looked at below.
  while (returned < limit && !opened && status == decltype(status){}) {
    last_us = elapsed_us([&] { status = launch(); });
    ++returned;
  }
  done = true;
  watchdog.join();
  gate.open();
  check(status, "launching empty kernels behind the gate");
  check(cudaStreamSynchronize(stream), "waiting for the kernels behind the gate");
  gate.expect_held("empty kernels");

  if (!opened) return {returned, false};
  if (last_us < 1e3 * stall_ms / 2) {
    throw Failure("The back-pressure probe saw no launch for " + std::to_string(stall_ms) +
                  " ms although none was blocked (the machine paused it): raise --stall-ms.");
  }
  return {returned - 1, true};
}

Document body(int argc, char** argv) {
  const std::string known_paths = "driver,runtime,launch_ex,launch_ex_pdl,graph";
  const std::string known_arguments = "0,1,2,4,8,16,32,64";
  const Options options(argc, argv,
                        with_round_options({{"--launches", "512"},
                                            {"--paths", known_paths},
                                            {"--argument-counts", known_arguments},
                                            {"--graph-lengths",
                                             "1,2,4,8,16,32,64,128,256,512,1024,2048,4096"},
                                            {"--instantiate-rounds", "20"},
                                            {"--outstanding-repeats", "5"},
                                            {"--outstanding-limit", "16384"},
                                            {"--stall-ms", "100"}}));
  expect_known(options, "--paths", known_paths);
  expect_known(options, "--argument-counts", known_arguments);
  const Rounds rounds = read_rounds(options);
  const long launches_per_round = options.integer("--launches", 1);
  const std::vector<std::string> paths = options.list("--paths");
  const std::vector<long> argument_sweep = options.integers("--argument-counts", 0);
  const std::vector<long> graph_lengths = options.integers("--graph-lengths", 1);
  const long outstanding_repeats = options.integer("--outstanding-repeats", 1);
  const long outstanding_limit = options.integer("--outstanding-limit", 1);
  const double stall_ms = options.positive("--stall-ms");
  Rounds few = rounds;  // instantiating a long graph takes milliseconds
  few.rule.min_samples = options.integer("--instantiate-rounds", fewest_samples);
  few.rule.max_samples = few.rule.min_samples;
  few.warmup = std::min(rounds.warmup, 2L);

  const Device device = open_device();
  const Launches launches{open_stream()};
  Gate gate;

  Document document{
      "launch_floor", device.as_json(),
      parameters(rounds, {{"launches", launches_per_round},
                          {"grid", 1},
                          {"block", block_size},
                          {"paths", json::array(paths)},
                          {"argument_counts", json::array(argument_sweep)},
                          {"argument_bytes_each", 8},
                          {"graph_lengths", json::array(graph_lengths)},
                          {"instantiate_rounds", few.rule.min_samples},
                          {"instantiate_warmup", few.warmup},
                          {"outstanding_repeats", outstanding_repeats},
                          {"outstanding_limit", outstanding_limit},
                          {"stall_ms", stall_ms},
                          {"order", "one series after the other, as listed"},
                          {"host_us", "steady clock around the issuing, idle stream before, "
                                      "synchronisation after and outside the clock"},
                          {"gpu_us", "between two events around the graph launch, all queued "
                                     "behind a closed gate, nothing subtracted"},
                          {"outstanding_launches", "launches that returned while a gate kernel "
                                                   "held the stream, gate not counted"}})};

  for (const std::string& path : paths) {
    document.add(measure(rounds, {one_path(launches, path, launches_per_round)}));
  }

  std::array<Word<0>, most_arguments> values{};
  std::array<void*, most_arguments> arguments{};
  for (std::size_t i = 0; i < values.size(); ++i) arguments[i] = &values[i];
  for (const long count : argument_sweep) {
    const auto launch =
        launches.through_driver_with(function_with_arguments(count), arguments.data());
    const json::Value axes = json::object({{"path", "driver"}, {"arguments", count}});
    document.add(
        measure(rounds, {timed_launches(launches.stream, axes, launches_per_round, launch)}));
  }

  for (const long length : graph_lengths) {
    document.add(one_graph_length(launches, gate, rounds, few, length));
  }

  const auto probe = [&](const char* path, long argument_count, auto launch) {
    for (long repeat = 0; repeat < outstanding_repeats; ++repeat) {
      const Outstanding found =
          outstanding_launches(gate, launches.stream, outstanding_limit, stall_ms, launch);
      document.counts.push_back(count_of(
          json::object({{"path", path}, {"arguments", argument_count}, {"repeat", repeat}}),
          found.blocked ? "outstanding_launches" : "outstanding_launches_at_least",
          found.launches));
    }
  };
  probe("driver", 0, launches.through_driver());
  probe("driver", most_arguments,
        launches.through_driver_with(function_with_arguments(most_arguments), arguments.data()));
  probe("launch_ex_pdl", 0, launches.through_launch_ex(true));
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  return run("launch_floor", [&] { return body(argc, argv); });
}
