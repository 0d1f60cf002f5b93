// Numbers as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace chexnet {

// A size: "1.5 GiB".
std::string readable_bytes(double bytes);
// A time: "1h02m", "3m07s", "12s".
std::string readable_s(double seconds);
// "1 rank", "3 ranks"; `what` is one of them.
std::string counted(int64_t count, const std::string& what);
// The shortest text that reads back as the same number.
std::string number_text(float value);
std::string number_text(double value);
// `value` with `digits` after the point.
std::string fixed(double value, int digits);

}  // namespace chexnet
