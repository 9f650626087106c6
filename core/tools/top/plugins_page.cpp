#include <cmath>

#include "base/printable.hpp"
#include "top/components.hpp"
#include "top/pages.hpp"
#include "top/quantity.hpp"
#include "top/status_fields.hpp"

namespace patchbay::top {
namespace {

using metrics::Interval;
using metrics::Labels;
using metrics::Scrape;
using metrics::share_of;
using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kMaxName = 24;

std::string label_of(const metrics::ScrapedSeries& s, const char* name) {
    const auto at = s.labels.find(name);
    return at == s.labels.end() ? std::string() : at->second;
}

enum class Since { kRecently, kBegin };

Block calls(const std::vector<Component>& components, const Interval& interval, Since since) {
    const char* const metric = "patchbay_plugin_call_seconds";
    const Scrape& now = interval.end();
    Rows rows = {{"slot", "plugin", "call", "calls", "mean", "p50", "p99"}};
    if (since == Since::kRecently) rows[0].push_back("of the time");
    for (const Component& c : components)
        for (const std::string& call : now.values_of("patchbay_plugin_call_seconds_count", "call", c.labels())) {
            Labels which = c.labels();
            which["call"] = call;
            const double count = interval.increase("patchbay_plugin_call_seconds_count", which);
            rows.push_back({printable(c.kind), printable(c.plugin, kMaxName), printable(call),
                            since == Since::kBegin
                                ? count_text(count)
                                : rate_text(interval.rate("patchbay_plugin_call_seconds_count", which)),
                            seconds_text(interval.mean(metric, which)),
                            seconds_text(interval.quantile(metric, 0.5, which)),
                            seconds_text(interval.quantile(metric, 0.99, which))});
            if (since == Since::kRecently)
                rows.back().push_back(share_text(interval.rate("patchbay_plugin_call_seconds_sum", which)));
        }
    const std::string title = since == Since::kBegin ? "" : ", " + last_text(interval.seconds());
    return {"Calls of a step" + title, table(rows, {3, 4, 5, 6, 7})};
}

// What the engine does in place of what failed; docs/metrics.md has the same.
std::string fallback_of(const std::string& kind, const std::string& reason) {
    if (reason == "probation") return "the predecessor took over";
    if (kind == "scheduler") return "the step computed nothing";
    if (kind == "sampler") return reason == "logits" ? "an allowed token was taken" : "the request ended as an error";
    if (kind == "proposer") return "nothing was drafted";
    if (kind == "kv_policy") return "the page unused the longest was evicted";
    return "";
}

Block faults(const Scrape& now, const Labels& wanted) {
    Rows rows = {{"slot", "plugin", "reason", "faults", "fallback"}};
    for (const Component& c : known_components(now)) {
        if (wanted.contains("plugin") && c.labels() != wanted) continue;
        for (const std::string& reason : now.values_of("patchbay_plugin_faults_total", "reason", c.labels())) {
            Labels which = c.labels();
            which["reason"] = reason;
            const double count = now.sum("patchbay_plugin_faults_total", which);
            if (count == 0) continue;
            rows.push_back({printable(c.kind), printable(c.plugin, kMaxName), printable(reason), count_text(count),
                            fallback_of(c.kind, reason)});
        }
    }
    if (rows.size() == 1) return {"Faults", {Line("none", Style::kGood)}};
    Lines out = table(rows, {3});
    for (size_t i = 1; i < out.size(); ++i) out[i] = Line(out[i].text(), Style::kBad);
    return {"Faults", std::move(out)};
}

// Since the engine began: swaps are rare. only: of this slot; empty: of all.
Block swaps(const Scrape& now, const std::string& only) {
    const Scrape nothing;
    const Interval always(nothing, now, 1);
    const char* const all = "patchbay_plugin_swaps_total";
    Rows rows = {{"slot", "committed", "refused", "rolled back", "pause p50", "p99", "failed in phase"}};
    for (const std::string& kind : now.values_of(all, "kind")) {
        const Labels slot{{"kind", kind}};
        if (now.sum(all, slot) == 0 || (!only.empty() && kind != only)) continue;
        const auto count = [&](const char* outcome) {
            return count_text(now.sum(all, {{"kind", kind}, {"outcome", outcome}}));
        };
        const auto pause = [&](double q) {
            return seconds_text(always.quantile("patchbay_plugin_swap_pause_seconds", q, slot));
        };
        std::string phases;
        for (const metrics::ScrapedSeries& s : now.series("patchbay_plugin_swap_failures_total"))
            if (label_of(s, "kind") == kind)
                phases += printable(label_of(s, "phase")) + " " + count_text(s.value) + "  ";
        rows.push_back({printable(kind), count("committed"), count("refused"), count("rolled_back"), pause(0.5),
                        pause(0.99), phases});
    }
    if (rows.size() == 1) return {"Swaps", {Line("none yet", Style::kFaint)}};
    return {"Swaps", table(rows, {1, 2, 3, 4, 5})};
}

// only: of this slot; empty: of all.
Block latest_swaps(const Json& status, const std::string& only) {
    constexpr size_t kMaxShown = 8;
    Lines out;
    const Json::json_pointer last("/swaps/last"), pending("/swaps/pending");
    if (status.contains(pending))
        for (const Json& s : status.at(pending)) {
            if (!only.empty() && field_text(s, "/kind") != only) continue;
            const std::string what = field_text(s, "/kind") + " to " + field_text(s, "/plugin");
            out.emplace_back(what + ": " + field_text(s, "/state"), Style::kWarning);
        }
    if (status.contains(last))
        for (const Json& s : status.at(last)) {
            if (out.size() == kMaxShown) break;
            if (!only.empty() && field_text(s, "/kind") != only) continue;
            const std::string outcome = field_text(s, "/outcome"), reason = field_message(s, "/reason");
            Line line(field_text(s, "/kind") + " " + field_text(s, "/from/plugin") + " to " +
                      field_text(s, "/to/plugin") + ": ");
            line.add(outcome, outcome == "committed" ? Style::kGood : Style::kBad);
            if (field_text(s, "/step") != "0") line.add("  step " + field_text(s, "/step"), Style::kFaint);
            if (!reason.empty()) line.add("  in " + field_text(s, "/phase") + ": " + reason, Style::kFaint);
            out.push_back(std::move(line));
        }
    return {"Latest swaps", std::move(out)};
}

void append(Lines& out, const Block& block, PageSize size, const Glyphs& glyphs) {
    const Lines lines = under_title(block, size.columns, glyphs);
    out.push_back(lines.front());
    if (size.cuts) out.insert(out.end(), lines.begin() + 1, lines.end());
    else out.insert(out.end(), block.lines.begin(), block.lines.end());
    out.emplace_back();
}

}  // namespace

Lines plugins_page(const View& view, PageSize size) {
    const Scrape& now = view.history.latest();
    Lines out;
    for (const Block& block : {calls(components_in_slots(now), view.history.recent(), Since::kRecently),
                               faults(now, {}), swaps(now, "")})
        append(out, block, size, view.glyphs);
    if (const Block block = latest_swaps(view.status, ""); !block.lines.empty()) append(out, block, size, view.glyphs);
    return out.size() > size.rows ? without_empty(out) : out;
}

Lines component_report(const Component& component, const View& view, PageSize size) {
    const Scrape& now = view.history.latest();
    const Scrape nothing;
    Lines out;
    for (const Block& block : {calls({component}, Interval(nothing, now, 1), Since::kBegin),
                               faults(now, component.labels()), swaps(now, component.kind)})
        append(out, block, size, view.glyphs);
    const Block block = latest_swaps(view.status, component.kind);
    if (!block.lines.empty()) append(out, block, size, view.glyphs);
    return out;
}

}  // namespace patchbay::top
