#include "experiment/timed_swaps.hpp"

#include <algorithm>
#include <charconv>

#include "base/suggest.hpp"
#include "config/plugin_slot.hpp"
#include "config/table.hpp"
#include "engine/engine_control.hpp"
#include "engine/swap/together.hpp"
#include "experiment/path_key.hpp"
#include "host/prober.hpp"
#include "host/swap_line.hpp"
#include "weights/loader.hpp"

namespace patchbay::experiment {
namespace {

// "5s", "500ms"; a plain number is seconds.
std::optional<uint64_t> read_duration_ns(const Node& given, Faults& faults) {
    constexpr double kMaxSeconds = 1e6; // seconds
    double value = 0;
    const char *first = given.text.data(), *last = first + given.text.size();
    const auto [end, error] = std::from_chars(first, last, value);
    const std::string_view unit(end, static_cast<size_t>(last - end));
    const double seconds = unit == "ms" ? value * 1e-3 : value;
    const bool known = unit.empty() || unit == "s" || unit == "ms";
    if (given.kind == NodeKind::kScalar && error == std::errc{} && known && seconds >= 0 && seconds <= kMaxSeconds)
        return static_cast<uint64_t>(seconds * 1e9 + 0.5);
    faults.add(given.origin, "'t' is " + given.describe() + ", expected a time such as 5s or 500ms");
    return std::nullopt;
}

struct AtItem { // of `at`
    std::optional<uint32_t> request;
    std::optional<uint64_t> t_ns;
    std::vector<TimedSwap> swaps; // without their time
};

void read_slots(const Node& given, AtItem& out, Faults& faults) {
    if (!config::is_section(given, "'swap'", faults)) return;
    if (given.entries.empty())
        faults.add(given.origin, "'swap' is empty, expected " + engine::one_of(engine::swap_slots()));
    for (const config::Entry& e : given.entries) {
        if (engine::swap_slot(e.key)) {
            out.swaps.push_back({.kind = e.key, .with_previous = !out.swaps.empty(), .choice = e.value});
            continue;
        }
        faults.add(e.key_origin, "'" + config::printable(e.key) + "' cannot be swapped" +
                                     did_you_mean(e.key, engine::swap_slots()) + ", expected " +
                                     engine::one_of(engine::swap_slots()));
    }
}

config::Table<AtItem> item_table() {
    config::Table<AtItem> t;
    t.key("request", &AtItem::request, config::Bounds{0, 4e6, "requests"}, "once so many requests have arrived");
    value_key(t, {.name = "t", .description = "or: so long after the start of the run, as 5s or 500ms",
                  .json_schema = "{}"},
              &AtItem::t_ns, read_duration_ns);
    read_key(t, {.name = "swap",
                 .description = "slot → the plugin that takes it, as in the engine's configuration; model → the folder "
                                "or file of a checkpoint; several succeed or fail together",
                 .json_schema = R"({"type": "object"})"},
             read_slots)
        .required();
    return t;
}

void read_entry(const Node& given, std::vector<TimedSwap>& out, Faults& faults) {
    if (!config::is_section(given, "an item of 'at'", faults)) return;
    AtItem entry;
    item_table().read(given, entry, faults);
    if ((given.find("request") != nullptr) == (given.find("t") != nullptr))
        faults.add(given.origin, "an item of 'at' needs either 'request' or 't': when it happens");
    for (TimedSwap& swap : entry.swaps) {
        swap.origin = given.origin;
        swap.request = entry.request;
        swap.t_ns = entry.t_ns.value_or(0);
        out.push_back(std::move(swap));
    }
}

}  // namespace

std::vector<TimedSwap> read_timed_swaps(const Node& given, Faults& faults) {
    std::vector<TimedSwap> out;
    if (given.kind == NodeKind::kList) {
        for (const Node& item : given.items) read_entry(item, out, faults);
    } else if (given.kind == NodeKind::kMap) {
        read_entry(given, out, faults);
    } else {
        faults.add(given.origin, "'at' is " + given.describe() + ", expected {request: N, swap: {…}} or a list");
    }
    if (out.size() > host::SwapLine::kMaxPendingSwaps)
        faults.add(given.origin, "more than " + std::to_string(host::SwapLine::kMaxPendingSwaps) + " swaps");
    return out;
}

std::string SwapTask::text() const {
    std::string out = timed.kind + " " + choice.plugin, keys;
    for (const auto& [key, value] : choice.settings) keys += (keys.empty() ? "" : ", ") + key + "=" + value;
    if (!keys.empty()) out += " (" + keys + ")";
    if (timed.request) return out + " once " + std::to_string(*timed.request) + " requests have arrived";
    return out + " after " + config::print_float(static_cast<double>(timed.t_ns) / 1e9) + " s";
}

namespace {

config::PluginChoice read_checkpoint(const Node& given, Faults& faults) {
    if (given.kind != NodeKind::kScalar || given.text.empty()) {
        faults.add(given.origin, "'model' is " + given.describe() + ", expected the folder or file of a checkpoint");
        return {};
    }
    return {beside_or_here(given, given.text).lexically_normal().string(), {}};
}

config::PluginChoice read_task(const TimedSwap& t, const host::Registry& registry, Faults& faults) {
    if (t.kind == name_of(engine::SwapSlot::kModel)) return read_checkpoint(t.choice, faults);
    return config::read_choice(t.choice, t.kind, registry, faults);
}

}  // namespace

std::vector<SwapTask> swap_tasks(const std::vector<TimedSwap>& timed, const host::Registry& registry, Faults& faults) {
    std::vector<SwapTask> out;
    for (const TimedSwap& t : timed) out.push_back({t, read_task(t, registry, faults)});
    return out;
}

Result<RunSwaps> RunSwaps::prepare(engine::Engine& engine, const std::vector<SwapTask>& tasks,
                                   const host::Registry& registry, host::Prober& prober) {
    RunSwaps run(engine);
    for (size_t first = 0, next; first < tasks.size(); first = next) {
        std::vector<engine::SwapRequest> requests;
        for (next = first; next < tasks.size() && (next == first || tasks[next].timed.with_previous); ++next)
            requests.push_back({*engine::swap_slot(tasks[next].timed.kind), tasks[next].choice, registry, prober});
        run.swaps_.push_back(engine.control().swaps().prepare_together(requests));
        for (const auto& swap : run.swaps_.back())
            if (const auto r = swap->record(); r.settled() && r.phase != engine::kTogether)
                return fail(r.code, tasks[first].timed.origin.text() + ": " + r.text());
    }
    run.tasks_ = tasks;
    for (const auto& group : run.swaps_)
        for (const auto& swap : group) {
            host::Identity to = swap->record().to;
            if (to.kind == name_of(engine::SwapSlot::kModel)) {
                PB_TRY(const std::string weights, weights::model_identity(to.name));
                run.brought_in_.push_back({"model", to.name, "", weights, "", ""});
            }
            run.brought_in_.push_back(std::move(to));
        }
    return run;
}

// In the order of their times, since each waits for the one before it.
void RunSwaps::post(uint64_t start_ns, const Requests& planned) {
    start_ns_ = start_ns;
    std::vector<std::pair<uint64_t, size_t>> due; // since the start
    size_t first = 0; // of the group's tasks
    for (size_t i = 0; i < swaps_.size(); first += swaps_[i++].size()) {
        const TimedSwap& t = tasks_[first].timed;
        uint64_t when = t.t_ns;
        if (t.request) {
            const size_t n = std::min<size_t>(*t.request, planned.size());
            when = n == 0 ? 0 : planned.arrival_ns(static_cast<uint32_t>(n - 1));
        }
        due.emplace_back(when, i);
    }
    std::sort(due.begin(), due.end());
    for (const auto& [when, i] : due) engine_->control().swaps().post_together(swaps_[i], start_ns + when);
}

void RunSwaps::write(RunRecord& run) const {
    std::vector<std::shared_ptr<host::Swap>> swaps; // of tasks_
    for (const auto& group : swaps_) swaps.insert(swaps.end(), group.begin(), group.end());
    for (size_t i = 0; i < swaps.size(); ++i) {
        SwapOutcome outcome{swaps[i]->record(), tasks_[i].text()};
        host::SwapRecord& r = outcome.record;
        using host::SwapState;
        if (run.end == RunEnd::kComplete && r.state == SwapState::kPosted)
            run.faults.push_back(r.text() + ", but the run ended first");
        if (r.state == SwapState::kRefused || r.state == SwapState::kRolledBack) run.faults.push_back(r.text());
        r.time_ns = r.time_ns > start_ns_ ? r.time_ns - start_ns_ : 0;
        run.swaps.push_back(std::move(outcome));
    }
}

}  // namespace patchbay::experiment
