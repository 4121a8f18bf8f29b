// Command line options: every one has a default, an unknown one is an error.
#pragma once

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "failure.hpp"

namespace graphgain {

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

inline Failure bad_option(const std::string& name, const std::string& value,
                          const std::string& wanted) {
  return Failure("Option " + name + " needs " + wanted + ", got '" + value + "'.",
                 usage_exit_code);
}

/// `text` as a whole number not below `least`; `name` is the option to blame.
inline long parse_integer(const std::string& name, const std::string& text, long least) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || value < least) {
    throw bad_option(name, text, "a whole number of at least " + std::to_string(least));
  }
  return value;
}

inline double parse_positive(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0) {
    throw bad_option(name, text, "a number above zero");
  }
  return value;
}

class Options {
 public:
  using Defaults = std::map<std::string, std::string>;

  /// Reads `--name value` pairs over `defaults`; throws Failure for anything else.
  Options(int argc, char** argv, Defaults defaults) : values_(std::move(defaults)) {
    for (int i = 1; i < argc; i += 2) {
      const auto found = values_.find(argv[i]);
      if (found == values_.end()) {
        throw Failure("Unknown option '" + std::string(argv[i]) + "'. Known options and defaults:" +
                          listed() + ".",
                      usage_exit_code);
      }
      if (i + 1 == argc) {
        throw Failure("Option " + found->first + " needs a value.", usage_exit_code);
      }
      found->second = argv[i + 1];
    }
  }

  const std::string& text(const std::string& name) const { return values_.at(name); }

  std::vector<std::string> list(const std::string& name) const { return split(text(name), ','); }

  long integer(const std::string& name, long least) const {
    return parse_integer(name, text(name), least);
  }

  double positive(const std::string& name) const { return parse_positive(name, text(name)); }

  std::vector<long> integers(const std::string& name, long least) const {
    std::vector<long> numbers;
    for (const std::string& part : list(name)) numbers.push_back(parse_integer(name, part, least));
    return numbers;
  }

 private:
  std::string listed() const {
    std::string out;
    for (const auto& [name, value] : values_) out += " " + name + " " + value;
    return out;
  }

  Defaults values_;
};

}  // namespace graphgain
