// When a series of samples is enough. The model is nvbench's "stdrel" criterion: stop when the
// relative standard deviation is small, or when it has stopped changing (a noisy quantity that is
// stably noisy is finished, but not good), or at a limit. Which of these it was is always recorded.
// Differences from nvbench: the minimum is a number of samples only (no minimum time), and there is
// a maximum number of samples.
#pragma once

#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>

namespace graphgain {

struct StoppingRule {
  long min_samples = 180;
  long max_samples = 540;
  double max_noise = 0.005;  // relative standard deviation
  double time_limit_s = 15;
};

enum class Verdict { undecided, converged, stably_noisy, round_limit, time_limit };

inline const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::converged: return "converged";
    case Verdict::stably_noisy: return "stably_noisy";
    case Verdict::round_limit: return "round_limit";
    case Verdict::time_limit: return "time_limit";
    case Verdict::undecided: break;
  }
  return "undecided";
}

/// Noise is defined from this many samples on; no series is shorter, not even at the time limit.
constexpr long fewest_samples = 5;

class StoppingCriterion {
 public:
  explicit StoppingCriterion(const StoppingRule& rule) : rule_(rule) {}

  void add(double sample) {
    // Welford's update of the mean and the sum of squared deviations.
    ++samples_;
    const double delta = sample - mean_;
    mean_ += delta / static_cast<double>(samples_);
    squares_ += delta * (sample - mean_);
    if (samples_ < fewest_samples) return;
    noise_history_.push_back(noise());
    if (noise_history_.size() > history_length) noise_history_.pop_front();
  }

  /// Standard deviation (n - 1) over mean; infinite before two samples or at mean zero.
  double noise() const {
    if (samples_ < 2 || mean_ == 0) return std::numeric_limits<double>::infinity();
    return std::sqrt(squares_ / static_cast<double>(samples_ - 1)) / std::fabs(mean_);
  }

  /// The verdict after the samples so far, `elapsed_s` seconds after the first round began.
  Verdict judge(double elapsed_s) const {
    if (samples_ < fewest_samples) return Verdict::undecided;
    if (samples_ >= rule_.min_samples) {
      if (noise() < rule_.max_noise) return Verdict::converged;
      if (stably_noisy()) return Verdict::stably_noisy;
      if (samples_ >= rule_.max_samples) return Verdict::round_limit;
    }
    return elapsed_s >= rule_.time_limit_s ? Verdict::time_limit : Verdict::undecided;
  }

 private:
  static constexpr std::size_t history_length = 512;
  static constexpr std::size_t history_needed = 64;
  static constexpr long check_every = 16;
  static constexpr double stable_within = 0.05;  // of the mean noise

  bool stably_noisy() const {
    if (noise_history_.size() <= history_needed || samples_ % check_every != 0) return false;
    const auto count = static_cast<double>(noise_history_.size());
    double mean = 0;
    for (const double noise : noise_history_) mean += noise / count;
    double squares = 0;
    for (const double noise : noise_history_) squares += (noise - mean) * (noise - mean);
    return std::sqrt(squares / (count - 1)) < stable_within * mean;
  }

  StoppingRule rule_;
  long samples_ = 0;
  double mean_ = 0;
  double squares_ = 0;
  std::deque<double> noise_history_;
};

}  // namespace graphgain
