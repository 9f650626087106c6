// Lines, cells and numbers of text files that come from anywhere.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::experiment {

// Hands out lines without their ends; the last needs no newline.
class Lines {
  public:
    explicit Lines(std::string_view text) : rest_(text) {}
    std::optional<std::string_view> next();
    size_t number() const { return number_; } // of the line handed out last, from 1

  private:
    std::string_view rest_;
    size_t number_ = 0;
};

bool is_blank(std::string_view line);
std::string in_quotes(std::string_view text); // at most 60 bytes of it
std::vector<std::string_view> split(std::string_view text, char by);

// "2023-11-16 18:15:46.6805900", also with "T", and with "Z" or "+00:00" at the end → ns since 1970.
std::optional<int64_t> timestamp_ns(std::string_view text);
// Seconds from 0 to 10^9 → ns.
std::optional<int64_t> seconds_ns(double seconds);

}  // namespace patchbay::experiment
