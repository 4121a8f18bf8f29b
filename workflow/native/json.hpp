// JSON text from values. A Value is already rendered, so composing values is joining strings.
#pragma once

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "failure.hpp"

namespace graphgain::json {

/// `text` as a JSON string with its quotes; bytes above 0x7f pass through as UTF-8.
inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[7];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

struct Value {
  std::string text;

  Value(const std::string& string) : text(quoted(string)) {}
  Value(const char* string) : text(quoted(string)) {}
  Value(bool truth) : text(truth ? "true" : "false") {}

  /// Integers exactly, floating point with six significant digits.
  /// Throws Failure for NaN and the infinities, which JSON cannot hold.
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Value(Number number) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(number)) throw Failure("A measured value is not a finite number.");
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.6g", static_cast<double>(number));
      text = digits;
    } else {
      text = std::to_string(number);
    }
  }

  struct Rendered {};
  Value(Rendered, std::string rendered) : text(std::move(rendered)) {}
};

using Members = std::vector<std::pair<std::string, Value>>;

inline Value object(const Members& members) {
  std::string out = "{";
  for (const auto& [name, value] : members) {
    if (out.size() > 1) out += ", ";
    out += quoted(name) + ": " + value.text;
  }
  return {Value::Rendered{}, out + "}"};
}

template <class Items>
Value array(const Items& items, const char* separator = ", ") {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += separator;
    out += Value(item).text;
  }
  return {Value::Rendered{}, out + "]"};
}

}  // namespace graphgain::json
