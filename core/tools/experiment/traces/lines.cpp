#include "experiment/traces/lines.hpp"

#include <chrono>
#include <cmath>

#include "base/numbers.hpp"

namespace patchbay::experiment {

std::optional<std::string_view> Lines::next() {
    if (rest_.empty()) return std::nullopt;
    const size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    number_ += 1;
    return line;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

std::string in_quotes(std::string_view text) {
    constexpr size_t kMaxShown = 60;
    return "'" + std::string(text.substr(0, kMaxShown)) + (text.size() > kMaxShown ? "…'" : "'");
}

std::vector<std::string_view> split(std::string_view text, char by) {
    std::vector<std::string_view> parts;
    for (size_t end; (end = text.find(by)) != text.npos; text.remove_prefix(end + 1))
        parts.push_back(text.substr(0, end));
    parts.push_back(text);
    return parts;
}

std::optional<int64_t> timestamp_ns(std::string_view text) {
    using namespace std::chrono;
    if (text.ends_with('Z')) text.remove_suffix(1);
    else if (text.ends_with("+00:00")) text.remove_suffix(6);
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':' || text[16] != ':')
        return std::nullopt;
    const auto y = parse_number<uint32_t>(text.substr(0, 4)), mo = parse_number<uint32_t>(text.substr(5, 2)),
               d = parse_number<uint32_t>(text.substr(8, 2)), h = parse_number<uint32_t>(text.substr(11, 2)),
               mi = parse_number<uint32_t>(text.substr(14, 2)), s = parse_number<uint32_t>(text.substr(17, 2));
    if (!y || !mo || !d || !h || !mi || !s || *h > 23 || *mi > 59 || *s > 60 || *y < 1970 || *y > 2200)
        return std::nullopt;
    const year_month_day date{year(static_cast<int>(*y)), month(*mo), day(*d)};
    if (!date.ok()) return std::nullopt;
    int64_t fraction = 0;
    if (text.size() > 19) {
        const std::string_view digits = text.substr(20);
        if (text[19] != '.' || digits.empty() || digits.size() > 9) return std::nullopt;
        const auto value = parse_number<uint32_t>(digits);
        if (!value) return std::nullopt;
        fraction = *value;
        for (size_t i = digits.size(); i < 9; ++i) fraction *= 10;
    }
    const auto since = sys_days(date).time_since_epoch() + hours(*h) + minutes(*mi) + seconds(*s);
    return duration_cast<nanoseconds>(since).count() + fraction;
}

std::optional<int64_t> seconds_ns(double seconds) {
    if (!(seconds >= 0 && seconds <= 1e9)) return std::nullopt; // NaN too
    return std::llround(seconds * 1e9);
}

}  // namespace patchbay::experiment
