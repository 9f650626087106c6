// Dates as Python's datetime.now().strftime() gives them. Used by strftime_now().
#pragma once
#include <cstdint>
#include <string>

namespace patchbay::text::chat {

// unix_us: microseconds since 1970. In local time; without a name or an offset of its zone, as datetime.now() has none.
std::string local_date(uint64_t unix_us, const std::string& format);

}  // namespace patchbay::text::chat
