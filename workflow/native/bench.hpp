// What the microbenchmarks share: the device, the clock, rounds until the stopping criterion is
// met, and the one JSON document on standard output.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "options.hpp"
#include "stopping.hpp"

namespace graphgain {

struct Device {
  cudaDeviceProp properties{};
  int driver_version = 0;
  int runtime_version = 0;

  json::Value as_json() const {
    return json::object(
        {{"name", properties.name},
         {"compute_capability",
          std::to_string(properties.major) + "." + std::to_string(properties.minor)},
         {"sm_count", properties.multiProcessorCount},
         {"l2_bytes", properties.l2CacheSize},
         {"driver_version", version(driver_version)},
         {"runtime_version", version(runtime_version)}});
  }

 private:
  static std::string version(int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  }
};

/// The first visible device, made current (CUDA_VISIBLE_DEVICES chooses).
inline Device open_device() {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "looking for a GPU");
  if (devices == 0) throw Failure("CUDA finds no GPU (cudaGetDeviceCount gives 0).");
  check(cudaSetDevice(0), "opening the first GPU");
  Device device;
  check(cudaGetDeviceProperties(&device.properties, 0), "reading the GPU's properties");
  check(cudaDriverGetVersion(&device.driver_version), "reading the driver's version");
  check(cudaRuntimeGetVersion(&device.runtime_version), "reading the runtime's version");
  return device;
}

inline cudaStream_t open_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

/// Captures what `issue()` puts on `stream`; the caller owns the graph.
template <class Issue>
cudaGraph_t capture(cudaStream_t stream, Issue issue) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  issue();
  check(cudaStreamEndCapture(stream, &graph), "ending a capture");
  return graph;
}

inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiating a graph");
  return executable;
}

using Clock = std::chrono::steady_clock;

inline double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Host microseconds that `work()` takes.
template <class Work>
double elapsed_us(Work work) {
  const auto start = Clock::now();
  work();
  return us_since(start);
}

/// One measured number a round: what it is, and by what the round's total was divided.
struct Quantity {
  json::Value axes;
  std::string metric;
  std::string per;
  long count;
};

/// One way of doing the work. `round` does it once and returns one sample per quantity, divided.
struct Variant {
  std::vector<Quantity> quantities;
  std::function<std::vector<double>()> round;
};

struct Rounds {
  StoppingRule rule;
  long warmup = 20;
};

/// A program's `own` options and those about rounds, with their defaults.
inline Options::Defaults with_round_options(Options::Defaults own,
                                            const std::string& rounds = "180",
                                            const std::string& max_rounds = "540",
                                            const std::string& warmup = "20",
                                            const std::string& time_limit_s = "15") {
  own.insert({{"--rounds", rounds},
              {"--max-rounds", max_rounds},
              {"--warmup", warmup},
              {"--max-noise", "0.005"},
              {"--time-limit-s", time_limit_s}});
  return own;
}

inline Rounds read_rounds(const Options& options) {
  Rounds rounds;
  rounds.rule.min_samples = options.integer("--rounds", fewest_samples);
  rounds.rule.max_samples = options.integer("--max-rounds", rounds.rule.min_samples);
  rounds.rule.max_noise = options.positive("--max-noise");
  rounds.rule.time_limit_s = options.positive("--time-limit-s");
  rounds.warmup = options.integer("--warmup", 0);
  return rounds;
}

/// The round parameters, followed by a program's `own`.
inline json::Value parameters(const Rounds& rounds, const json::Members& own) {
  json::Members all{{"rounds", rounds.rule.min_samples},
                    {"max_rounds", rounds.rule.max_samples},
                    {"warmup", rounds.warmup},
                    {"max_noise", rounds.rule.max_noise},
                    {"time_limit_s", rounds.rule.time_limit_s}};
  all.insert(all.end(), own.begin(), own.end());
  return json::object(all);
}

/// Runs the variants one after the other, round by round, until every quantity has a verdict, and
/// returns one rendered series a quantity. The rounds are common, so samples of one call pair by
/// index. A verdict stands once reached; samples that come later are kept and count in the noise.
inline std::vector<json::Value> measure(const Rounds& rounds,
                                        const std::vector<Variant>& variants) {
  struct Series {
    StoppingCriterion criterion;
    Verdict verdict = Verdict::undecided;
    std::vector<double> samples;
  };
  std::vector<Series> all;
  for (const Variant& variant : variants) {
    for (std::size_t i = 0; i < variant.quantities.size(); ++i) {
      all.push_back({StoppingCriterion(rounds.rule), Verdict::undecided, {}});
    }
  }

  for (long i = 0; i < rounds.warmup; ++i) {
    for (const Variant& variant : variants) variant.round();
  }
  const auto start = Clock::now();
  for (bool undecided = true; undecided;) {
    auto series = all.begin();
    for (const Variant& variant : variants) {
      for (const double sample : variant.round()) {
        series->samples.push_back(sample);
        series->criterion.add(sample);
        ++series;
      }
    }
    undecided = false;
    const double elapsed_s = us_since(start) / 1e6;
    for (Series& each : all) {
      if (each.verdict == Verdict::undecided) each.verdict = each.criterion.judge(elapsed_s);
      undecided |= each.verdict == Verdict::undecided;
    }
  }

  std::vector<json::Value> rendered;
  auto series = all.begin();
  for (const Variant& variant : variants) {
    for (const Quantity& quantity : variant.quantities) {
      rendered.push_back(json::object({{"axes", quantity.axes},
                                       {"metric", quantity.metric},
                                       {"per", quantity.per},
                                       {"count", quantity.count},
                                       {"warmup", rounds.warmup},
                                       {"stop", name(series->verdict)},
                                       {"noise", series->criterion.noise()},
                                       {"samples", json::array(series->samples)}}));
      ++series;
    }
  }
  return rendered;
}

template <class Number>
json::Value count_of(const json::Value& axes, const char* metric, Number value) {
  return json::object({{"axes", axes}, {"metric", metric}, {"value", value}});
}

/// The parts of a document that a program fills.
struct Document {
  std::string benchmark;
  json::Value device;
  json::Value parameters;
  std::vector<json::Value> series{};
  std::vector<json::Value> counts{};
  std::vector<json::Value> kernels{};

  void add(std::vector<json::Value> more) {
    series.insert(series.end(), more.begin(), more.end());
  }

  std::string text() const {
    return json::object({{"benchmark", benchmark},
                         {"device", device},
                         {"parameters", parameters},
                         {"series", json::array(series, ",\n")},
                         {"counts", json::array(counts, ",\n")},
                         {"kernels", json::array(kernels, ",\n")}})
               .text +
           "\n";
  }
};

/// `main` of a benchmark: prints the document that `body()` returns, or else an error sentence.
template <class Body>
int run(const char* program, Body body) {
  try {
    const std::string text = body().text();
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      throw Failure("The document could not be written to standard output.");
    }
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", program, failure.what());
    return failure.exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: Unexpected error: %s.\n", program, error.what());
    return 1;
  }
}

}  // namespace graphgain
