#include "metrics/scrape.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace patchbay::metrics {
namespace {

// Reads one line from its front.
class SampleLine {
  public:
    explicit SampleLine(std::string_view line) : rest_(line) {}

    std::string name() {
        const size_t end = rest_.find_first_of("{ ");
        return std::string(take(std::min(end, rest_.size())));
    }

    std::optional<Labels> labels() { // {a="b",c="d"}, or nothing
        Labels out;
        if (!skip("{")) return out;
        while (!skip("}")) {
            const size_t equals = rest_.find("=\"");
            if (equals == rest_.npos) return std::nullopt;
            const std::string label(take(equals));
            take(2);
            auto value = text_to_quote();
            if (!value) return std::nullopt;
            out.emplace(label, *std::move(value));
            skip(",");
        }
        return out;
    }

    std::optional<double> value() { // a time stamp may follow
        if (!skip(" ")) return std::nullopt;
        skip("+");
        double out = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
        if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
        if (error != std::errc{}) return std::nullopt;
        return out;
    }

  private:
    std::string_view take(size_t n) {
        const std::string_view out = rest_.substr(0, n);
        rest_.remove_prefix(out.size());
        return out;
    }
    bool skip(std::string_view what) {
        if (!rest_.starts_with(what)) return false;
        take(what.size());
        return true;
    }
    std::optional<std::string> text_to_quote() { // \\, \" and \n stand for themselves
        std::string out;
        while (!rest_.empty()) {
            const char c = take(1)[0];
            if (c == '"') return out;
            if (c != '\\' || rest_.empty()) {
                out += c;
                continue;
            }
            const char escaped = take(1)[0];
            out += escaped == 'n' ? '\n' : escaped;
        }
        return std::nullopt;
    }

    std::string_view rest_;
};

bool has_labels(const ScrapedSeries& series, const Labels& wanted) {
    return std::ranges::all_of(wanted, [&](const auto& label) {
        const auto at = series.labels.find(label.first);
        return at != series.labels.end() && at->second == label.second;
    });
}

// Observations up to each edge.
std::map<double, double> buckets_of(const Scrape& scrape, const std::string& histogram, const Labels& wanted) {
    std::map<double, double> out;
    for (const ScrapedSeries& s : scrape.series(histogram + "_bucket")) {
        const auto le = s.labels.find("le");
        if (le == s.labels.end() || !has_labels(s, wanted)) continue;
        double edge = std::numeric_limits<double>::infinity();
        if (le->second != "+Inf") std::from_chars(le->second.data(), le->second.data() + le->second.size(), edge);
        out[edge] += s.value;
    }
    return out;
}

}  // namespace

Scrape::Scrape(std::string_view text) {
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line[0] == '#') continue;
        SampleLine sample(line);
        std::string name = sample.name();
        auto labels = sample.labels();
        const auto value = labels ? sample.value() : std::nullopt;
        if (!name.empty() && value) series_[std::move(name)].push_back({*std::move(labels), *value});
    }
}

const std::vector<ScrapedSeries>& Scrape::series(const std::string& name) const {
    static const std::vector<ScrapedSeries> kNone;
    const auto at = series_.find(name);
    return at == series_.end() ? kNone : at->second;
}

double Scrape::sum(const std::string& name, const Labels& wanted) const {
    double out = 0;
    for (const ScrapedSeries& s : series(name))
        if (has_labels(s, wanted)) out += s.value;
    return out;
}

std::vector<std::string> Scrape::values_of(const std::string& name, const std::string& label,
                                           const Labels& wanted) const {
    std::vector<std::string> out;
    for (const ScrapedSeries& s : series(name)) {
        const auto at = s.labels.find(label);
        if (at == s.labels.end() || !has_labels(s, wanted)) continue;
        if (std::ranges::find(out, at->second) == out.end()) out.push_back(at->second);
    }
    return out;
}

double Interval::increase(const std::string& counter, const Labels& wanted) const {
    const double before = from_.sum(counter, wanted), now = to_.sum(counter, wanted);
    return now >= before ? now - before : now;
}

double Interval::rate(const std::string& counter, const Labels& wanted) const {
    return seconds_ > 0 ? increase(counter, wanted) / seconds_ : std::numeric_limits<double>::quiet_NaN();
}

double Interval::quantile(const std::string& histogram, double q, const Labels& wanted) const {
    auto buckets = buckets_of(to_, histogram, wanted);
    const auto before = buckets_of(from_, histogram, wanted);
    const bool began_anew = !buckets.empty() && !before.empty() && before.rbegin()->second > buckets.rbegin()->second;
    if (!began_anew)
        for (auto& [edge, count] : buckets)
            if (const auto at = before.find(edge); at != before.end()) count -= at->second;
    const double total = buckets.empty() ? 0 : buckets.rbegin()->second;
    if (!(total > 0)) return std::numeric_limits<double>::quiet_NaN();
    double low = 0, seen = 0;
    for (const auto& [edge, count] : buckets) {
        if (count >= q * total) {
            if (std::isinf(edge)) return low;
            return low + (edge - low) * (count > seen ? (q * total - seen) / (count - seen) : 1);
        }
        low = edge, seen = count;
    }
    return low;
}

double Interval::mean(const std::string& histogram, const Labels& wanted) const {
    return share_of(increase(histogram + "_sum", wanted), increase(histogram + "_count", wanted));
}

double share_of(double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace patchbay::metrics
