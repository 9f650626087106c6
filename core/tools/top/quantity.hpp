// Numbers as a glance takes them in: three digits or so, with a unit. NaN: "-".
#pragma once
#include <string>

namespace patchbay::top {

std::string seconds_text(double seconds); // "870 us", "12.3 ms", "1.25 s"
std::string last_text(double seconds);    // "last 10 s"
std::string share_text(double share);     // 0.934 is "93 %"
std::string count_text(double count);     // "12", "12.4", "13.5 k", "2.1 M"
std::string rate_text(double a_second);   // "12.4/s"

}  // namespace patchbay::top
