// The one exception of the native programs: a sentence for the user and an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace graphgain {

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& sentence, int code = 1)
      : std::runtime_error(sentence), exit_code(code) {}

  const int exit_code;
};

/// A command line that cannot be understood ends the program with this code.
constexpr int usage_exit_code = 2;

}  // namespace graphgain
