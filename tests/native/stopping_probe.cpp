// Feeds samples from standard input to the stopping criterion, one simulated second apart, and
// prints the verdict, at how many samples it fell, and the noise then.
// Usage: stopping_probe MIN_SAMPLES MAX_SAMPLES MAX_NOISE TIME_LIMIT_S < samples
#include <cstdio>
#include <cstdlib>

#include "stopping.hpp"

int main(int, char** argv) {
  graphgain::StoppingRule rule;
  rule.min_samples = std::atol(argv[1]);
  rule.max_samples = std::atol(argv[2]);
  rule.max_noise = std::atof(argv[3]);
  rule.time_limit_s = std::atof(argv[4]);
  graphgain::StoppingCriterion criterion(rule);
  graphgain::Verdict verdict = graphgain::Verdict::undecided;
  long count = 0;
  double sample = 0;
  while (verdict == graphgain::Verdict::undecided && std::scanf("%lf", &sample) == 1) {
    criterion.add(sample);
    verdict = criterion.judge(static_cast<double>(++count));
  }
  std::printf("%s %ld %.17g\n", graphgain::name(verdict), count, criterion.noise());
}
