#include <algorithm>
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

constexpr size_t kNameColumns = 13, kValueEnd = 22; // of "name      value  graph"
constexpr double kLongWait = 10, kFullPages = 0.95; // the thresholds of metrics/prometheus/alerts.yaml

class Overview {
  public:
    Overview(const View& view, size_t columns)
        : history_(view.history), now_(view.history.latest()), recent_(view.history.recent()), glyphs_(view.glyphs),
          columns_(block_columns(columns)) {}

    Block requests() const {
        const double waiting = now_.sum("patchbay_requests_waiting"), oldest = now_.sum("patchbay_oldest_wait_seconds");
        const double preempted = recent_.rate("patchbay_preemptions_total");
        Line wait = row("oldest wait", seconds_text(oldest), oldest > kLongWait ? Style::kBad : Style::kPlain);
        wait.add("  preempted ", Style::kFaint);
        wait.add(rate_text(preempted), preempted > 0 ? Style::kWarning : Style::kPlain);
        return {"Requests",
                {graph("running", count_text(now_.sum("patchbay_requests_running")),
                       history_.values("patchbay_requests_running")),
                 graph("waiting", count_text(waiting), history_.values("patchbay_requests_waiting"),
                       waiting > 0 ? Style::kWarning : Style::kStrong),
                 std::move(wait), graph("finished", rate_text(recent_.rate("patchbay_requests_finished_total")),
                                        history_.rates("patchbay_requests_finished_total"))}};
    }

    Block tokens() const {
        const auto scheduled = [&](const char* kind) {
            const Labels labels{{"kind", kind}};
            return graph(kind, rate_text(recent_.rate("patchbay_scheduled_tokens_total", labels)),
                         history_.rates("patchbay_scheduled_tokens_total", labels));
        };
        const double hits = share_of(recent_.increase("patchbay_prefix_hit_tokens_total"),
                                     recent_.increase("patchbay_prefix_query_tokens_total"));
        return {"Tokens",
                {graph("output", rate_text(recent_.rate("patchbay_generation_tokens_total")),
                       history_.rates("patchbay_generation_tokens_total")),
                 scheduled("prefill"), scheduled("decode"),
                 row("prefix cache", share_text(hits)).add("  of prompt tokens hit", Style::kFaint)}};
    }

    Block pages() const {
        const auto of = [&](const char* state) { return now_.sum("patchbay_kv_pages", {{"state", state}}); };
        const double used = of("used"), cached = of("cached"), total = used + cached + of("free");
        const double share = share_of(used, total);
        Line text;
        text.add(share_text(share), share > kFullPages ? Style::kBad : Style::kUsed).add(" used  ");
        text.add(share_text(share_of(cached, total)), Style::kCached).add(" cached  of " + count_text(total));
        Line more;
        more.add("evicted ", Style::kFaint).add(rate_text(recent_.rate("patchbay_kv_evictions_total")));
        more.add("  offloaded ", Style::kFaint)
            .add(rate_text(recent_.rate("patchbay_kv_swapped_pages_total", {{"direction", "out"}})));
        return {"KV pages", {bar(share, share_of(cached, total), columns_, glyphs_), std::move(text), std::move(more)}};
    }

    Block batch() const {
        const double prefill = recent_.increase("patchbay_scheduled_tokens_total", {{"kind", "prefill"}});
        const double all = recent_.increase("patchbay_scheduled_tokens_total");
        const double decode_share = share_of(all - prefill, all);
        Line text;
        text.add(share_text(decode_share), Style::kUsed).add(" decode  ");
        text.add(share_text(share_of(prefill, all)), Style::kCached).add(" prefill");
        Line step;
        step.add(count_text(recent_.mean("patchbay_step_tokens")), Style::kStrong).add(" tokens of ");
        step.add(count_text(recent_.mean("patchbay_step_sequences")), Style::kStrong).add(" sequences a step");
        Line tokens = bar(decode_share, share_of(prefill, all), columns_, glyphs_);
        return {"Batch", {std::move(tokens), std::move(text), std::move(step)}};
    }

    Block latencies() const {
        constexpr size_t kWidth = 8;
        const size_t first = columns_ > kNameColumns + 3 * kWidth ? columns_ - 3 * kWidth : kNameColumns;
        Lines out;
        const auto add = [&](const char* name, const char* metric) {
            Line line(name, Style::kFaint);
            size_t end = first;
            for (const double q : {0.5, 0.9, 0.99})
                line.add_right(metric ? seconds_text(recent_.quantile(metric, q)) : "p" + count_text(q * 100),
                               end += kWidth, metric ? Style::kPlain : Style::kFaint);
            out.push_back(std::move(line));
        };
        add(last_text(recent_.seconds()).c_str(), nullptr);
        add("queue", "patchbay_request_queue_seconds");
        add("first token", "patchbay_time_to_first_token_seconds");
        add("between tokens", "patchbay_inter_token_latency_seconds");
        add("whole request", "patchbay_e2e_request_latency_seconds");
        add("step", "patchbay_step_seconds");
        return {"Latency", std::move(out)};
    }

    Block graphs() const {
        const double all = recent_.increase("patchbay_graph_dispatches_total");
        const double replayed =
            share_of(recent_.increase("patchbay_graph_dispatches_total", {{"mode", "FULL"}}), all);
        const double padding = share_of(recent_.increase("patchbay_graph_tokens_total", {{"kind", "padded"}}),
                                        recent_.increase("patchbay_graph_tokens_total"));
        Line text;
        text.add(share_text(replayed), Style::kUsed).add(" of passes replayed  ");
        text.add(share_text(padding)).add(" padding");
        Line misses;
        for (const auto& [share, reason] : graph_misses(all))
            misses.add(printable(reason) + " ", Style::kFaint).add(share_text(share) + "  ");
        return {"Graphs", {bar(replayed, 0, columns_, glyphs_), std::move(text), std::move(misses)}};
    }

    Block speculation() const {
        if (!now_.has("patchbay_spec_draft_length"))
            return {"Speculation", {Line("no proposer", Style::kFaint)}};
        const double drafted = recent_.increase("patchbay_spec_drafted_tokens_total");
        const double accepted = share_of(recent_.increase("patchbay_spec_accepted_tokens_total"), drafted);
        Line text;
        text.add(share_text(accepted), Style::kUsed).add(" of ");
        text.add(rate_text(recent_.rate("patchbay_spec_drafted_tokens_total"))).add(" drafts accepted");
        Line positions("by position", Style::kFaint);
        for (int i = 1; i <= 5; ++i) {
            const Labels position{{"position", std::to_string(i)}};
            const double share = share_of(recent_.increase("patchbay_spec_accepted_tokens_total", position),
                                          recent_.increase("patchbay_spec_drafted_tokens_total", position));
            if (std::isfinite(share)) positions.add(" " + share_text(share));
        }
        return {"Speculation", {bar(accepted, 0, columns_, glyphs_), std::move(text), std::move(positions)}};
    }

    Block slots() const {
        std::vector<std::vector<std::string>> rows = {{"slot", "plugin", "a step", "faults"}};
        const double steps = recent_.increase("patchbay_steps_total");
        for (const Component& c : components_in_slots(now_)) {
            const double a_step = share_of(recent_.increase("patchbay_plugin_call_seconds_sum", c.labels()), steps);
            rows.push_back({printable(c.kind), printable(c.plugin, 16), seconds_text(a_step),
                            count_text(now_.sum("patchbay_plugin_faults_total", c.labels()))});
        }
        Lines out = table(rows, {2, 3});
        for (size_t i = 1; i < out.size(); ++i)
            if (rows[i][3] != "0") out[i] = Line(out[i].text(), Style::kBad);
        return {"Plugins", std::move(out)};
    }

  private:
    static Line row(const std::string& name, const std::string& value, Style style = Style::kStrong) {
        return Line(name, Style::kFaint).pad_to(kNameColumns).add_right(value, kValueEnd, style);
    }
    Line graph(const std::string& name, const std::string& value, const std::vector<double>& values,
               Style style = Style::kStrong) const {
        const size_t begin = kValueEnd + 2;
        return row(name, value, style).add("  ").add(
            sparkline(values, columns_ > begin ? columns_ - begin : 0, glyphs_));
    }
    std::vector<std::pair<double, std::string>> graph_misses(double all) const {
        std::vector<std::pair<double, std::string>> out;
        const char* const passes = "patchbay_graph_dispatches_total";
        for (const std::string& reason : now_.values_of(passes, "reason", {{"mode", "NONE"}})) {
            const double share = share_of(recent_.increase(passes, {{"mode", "NONE"}, {"reason", reason}}), all);
            if (share > 0) out.emplace_back(share, reason);
        }
        std::ranges::sort(out, std::greater{});
        return out;
    }

    const History& history_;
    const Scrape& now_;
    const Interval recent_;
    const Glyphs& glyphs_;
    const size_t columns_;
};

bool is_simulated(const Scrape& scrape) { return !scrape.values_of("patchbay_steps_total", "time").empty(); }

}  // namespace

Line headline(const View& view, size_t columns) {
    Line out("patchbay top", Style::kTitle);
    const std::string model = field_text(view.status, "/model/name"), state = field_text(view.status, "/state");
    out.add("  ").add(model.empty() ? view.address : model, Style::kStrong);
    if (!state.empty()) out.add("  ").add(state, state == "running" ? Style::kGood : Style::kWarning);
    if (!view.trouble.empty()) return out.add("  ").add(printable_message(view.trouble), Style::kBad).cut_to(columns);
    out.add("  " + count_text(view.history.latest().sum("patchbay_steps_total")) + " steps", Style::kFaint);
    const std::string pid = field_text(view.status, "/pid");
    if (!pid.empty()) out.add("  pid " + pid, Style::kFaint);
    if (is_simulated(view.history.latest())) out.add("  virtual time: rates mean nothing", Style::kWarning);
    return out.cut_to(columns);
}

Lines overview_page(const View& view, PageSize size) {
    const Overview all(view, size.columns);
    const std::vector<Block> blocks = {all.requests(),  all.tokens(), all.pages(),  all.batch(),
                                       all.latencies(), all.slots(),  all.graphs(), all.speculation()};
    return arrange(blocks, size.columns, size.rows, view.glyphs);
}

}  // namespace patchbay::top
