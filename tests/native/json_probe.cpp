// Prints one JSON document made of awkward values; with the argument "nan" it must fail instead.
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "json.hpp"

using namespace graphgain;

int main(int argc, char** argv) {
  const bool broken = argc > 1 && std::strcmp(argv[1], "nan") == 0;
  try {
    const double number = broken ? std::numeric_limits<double>::quiet_NaN() : 1234567.0;
    const json::Value document =
        json::object({{"text", "void k<\"a\\b\">\n\t\x01(\xc2\xb5s)"},
                      {"number", number},
                      {"small", 1.0 / 3},
                      {"integer", 9007199254740993LL},
                      {"truth", true},
                      {"empty", json::array(std::vector<double>{})},
                      {"list", json::array(std::vector<const char*>{"a", "b"})},
                      {"nested", json::object({})}});
    std::puts(document.text.c_str());
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return failure.exit_code;
  }
}
