#include "experiment/spec_load.hpp"

#include <algorithm>

#include "base/suggest.hpp"
#include "base/words.hpp"
#include "config/load.hpp"
#include "experiment/counting_table.hpp"
#include "experiment/one_of_table.hpp"
#include "experiment/repeats_table.hpp"
#include "experiment/path_key.hpp"
#include "experiment/run_metrics.hpp"
#include "experiment/shares.hpp"
#include "experiment/variants_table.hpp"
#include "experiment/workload_table.hpp"

namespace patchbay::experiment {
namespace {

Table<Slo> slo_table() {
    Table<Slo> slo;
    const Bounds ms{.min = 0, .max = 1e9, .unit = "ms"};
    slo.key("ttft_ms", &Slo::ttft_ms, ms, "time to first token at most")
        .key("tpot_ms", &Slo::tpot_ms, ms, "time per output token after the first at most")
        .key("e2e_ms", &Slo::e2e_ms, ms, "time from arrival to the last token at most");
    return slo;
}

struct GivenCapacity {
    Slo slo;
    std::string share = "90%", precision = "5%";
    std::vector<double> rates;
};

Table<GivenCapacity> capacity_table() {
    Table<GivenCapacity> t;
    t.section("slo", &GivenCapacity::slo, slo_table(), "the objective; default: the experiment's")
        .key("share", &GivenCapacity::share, "of the requests that must keep it, as 90%")
        .values("rates", &GivenCapacity::rates, Bounds{1e-6, 1e6, "1/s"},
                "lowest and highest rate of the search: [1, 64]")
        .key("precision", &GivenCapacity::precision, "the search ends once the rate is known this well, as 5%");
    return t;
}

// objective: of the experiment, which holds where the search has none of its own.
std::optional<CapacitySearch> read_capacity(const Node& given, const Slo& objective, Faults& faults) {
    if (!config::is_section(given, "'capacity'", faults)) return std::nullopt;
    GivenCapacity read;
    capacity_table().read(given, read, faults);
    const auto place = [&](const char* key) { return given.find(key) ? given.find(key)->origin : given.origin; };
    CapacitySearch out;
    out.slo = read.slo.any() ? read.slo : objective;
    if (!out.slo.any()) faults.add(given.origin, "'capacity' needs an objective: give 'slo' in it, or in the file");
    const auto share = share_of(read.share), precision = share_of(read.precision);
    if (!share || *share <= 0 || *share > 1)
        faults.add(place("share"), "'share' is '" + config::printable(read.share) + "', expected a share such as 90%");
    if (!precision || *precision < 0.001 || *precision > 1)
        faults.add(place("precision"), "'precision' is '" + config::printable(read.precision) +
                                           "', expected a share from 0.1% to 100%");
    if (read.rates.size() != 2 || read.rates.front() >= read.rates.back())
        faults.add(place("rates"), "'rates' are not the lowest and the highest rate of the search, such as [1, 64]");
    else {
        out.lowest = read.rates.front();
        out.highest = read.rates.back();
    }
    out.share = share.value_or(out.share);
    out.precision = precision.value_or(out.precision);
    return out;
}

// A swap that no request of the workload would bring about.
void check_swaps(const std::vector<TimedSwap>& swaps, const WorkloadSpec& w, Faults& faults) {
    const bool follow = std::holds_alternative<ClosedLoop>(w.arrivals) || w.sessions.turns.has_value();
    for (const TimedSwap& s : swaps) {
        if (!s.request) continue;
        if (follow) // their number is known only as they come
            faults.add(s.origin, "'request' is of requests with planned arrivals, and these follow one another; "
                                 "say when with 't'");
        if (w.requests && *s.request > *w.requests)
            faults.add(s.origin, "'request' is " + std::to_string(*s.request) + ", the workload has " +
                                     std::to_string(*w.requests) + " requests");
    }
}

std::string unknown_metric(const std::string& name, const std::vector<std::string>& names) {
    const std::string meant = did_you_mean(name, names);
    return "unknown metric '" + config::printable(name) + "' in 'primary'" +
           (meant.empty() ? ", expected some of " + joined(names) + ", or plugin.KIND.NAME" : meant);
}

std::vector<std::string> read_primary(const Node& given, Faults& faults) {
    std::vector<std::string> names, out;
    for (const MetricInfo& info : metric_infos()) names.push_back(info.name);
    if (given.kind != NodeKind::kList || given.items.empty()) {
        faults.add(given.origin, "'primary' is " + given.describe() + ", expected a list of metrics: " + joined(names));
        return out;
    }
    for (const Node& item : given.items) {
        if (!metric_named(item.text) && !is_plugin_metric(item.text))
            faults.add(item.origin, unknown_metric(item.text, names));
        else if (std::find(out.begin(), out.end(), item.text) != out.end())
            faults.add(item.origin, "'" + item.text + "' is twice in 'primary'");
        else
            out.push_back(item.text);
    }
    return out;
}

// Metrics that nothing measures without an objective.
void check_primary(const ExperimentSpec& spec, const Node& document, Faults& faults) {
    for (const std::string& name : spec.primary)
        if (name.starts_with("goodput") && !spec.slo.any())
            faults.add(document.find("primary")->origin, "'" + name + "' needs an 'slo'");
}

void check_capacity(const ExperimentSpec& spec, const Node& document, Faults& faults) {
    for (const std::string& name : spec.primary)
        if (name == "capacity" && !spec.capacity)
            faults.add(document.find("primary")->origin,
                       "'capacity' needs the key 'capacity', which says how to search");
}

// Searches come after the runs that decide how many repeats there are.
void check_adaptive(const ExperimentSpec& spec, const Node& document, Faults& faults) {
    if (spec.adaptive && std::ranges::find(spec.primary, "capacity") != spec.primary.end())
        faults.add(document.find("repeats")->origin,
                   "'repeats: auto' follows from the first runs, before capacities are searched: give a number of "
                   "repeats, or name 'primary' metrics without 'capacity'");
}

// What has to hold of the workload of each variant.
void check_workloads(const ExperimentSpec& spec, const Node& document, Faults& faults) {
    bool drawn = false, without_rate = false;
    check_swaps(spec.workload.at, spec.workload, faults);
    for (const VariantSpec& v : spec.variants) {
        check_swaps(v.at, v.workload, faults);
        drawn |= std::holds_alternative<DrawnWindows>(v.workload.windows);
        const auto* const burst = std::get_if<BurstArrivals>(&v.workload.arrivals);
        const auto* const trace = std::get_if<TraceArrivals>(&v.workload.arrivals);
        without_rate |= std::holds_alternative<ClosedLoop>(v.workload.arrivals) ||
                        std::holds_alternative<AllAtOnce>(v.workload.arrivals) || (burst && burst->every_s == 0) ||
                        (trace && trace->rate == 0 && trace->time_scale == 0);
    }
    if (spec.adaptive && drawn)
        faults.add(document.find("repeats")->origin,
                   "'repeats: auto' needs repeats that share no rows of a trace: windows are drawn");
    if (spec.capacity && without_rate)
        faults.add(document.find("capacity")->origin,
                   "'capacity' varies the rate of arrivals, and these have none: all_at_once, closed_loop, or all of "
                   "them at one time");
}

void keep(Table<ExperimentSpec>& table, std::string name, std::string description) { // read later, with all at hand
    read_key(table,
             {.name = std::move(name), .description = std::move(description), .json_schema = R"({"type": "object"})"},
             [](const Node&, ExperimentSpec&, Faults&) {});
}

Table<QualityCheck> quality_table() {
    using Q = QualityCheck;
    Table<Q> t;
    path_key(t, &Q::text, "file whose beginning is scored", "text");
    t.key("tokens", &Q::tokens, Bounds{2, 1 << 22, "tokens"}, "of the text")
        .key("window", &Q::window, Bounds{2, 1 << 20, "tokens"}, "tokens of each window; windows are independent")
        .key("prompts", &Q::prompts, Bounds{0, 1e5, "prompts"}, "beginnings of windows that are continued greedily")
        .key("output_tokens", &Q::output_tokens, Bounds{1, 1 << 20, "tokens"}, "of each continuation");
    return t;
}

// What is counted, and what else is measured.
void add_other(Table<ExperimentSpec>& t) {
    using S = ExperimentSpec;
    read_key(t, {.name = "by",
                 .description = "classes of requests with numbers of their own: some of tenant, priority, "
                                "prompt_length, class",
                 .json_schema = R"({"type": ["string", "array", "object"]})"},
             [](const Node& given, S& out, Faults& faults) { out.by = read_by(given, faults); });
    read_key(t, {.name = "window",
                 .description = "auto: the middle 80 % of steady arrivals; whole; or from, until: of the time of "
                                "arrivals, as 10% or 5s; other requests are not counted",
                 .json_schema = R"({"type": ["string", "object"]})"},
             read_window);
    Table<Disturbance> disturbance;
    disturbance
        .key("limit", &Disturbance::limit, Bounds{0, 1, ""},
             "share of the machine's CPU time that others may take of a run; 1: any")
        .key("repeat", &Disturbance::repeat, "a run of which others took more takes place once more");
    t.section("disturbance", &S::disturbance, disturbance, "of runs, by other processes or the host");
    read_key(t, {.name = "quality",
                 .description = "text, tokens, window, prompts, output_tokens: what variants make of a text",
                 .json_schema = R"({"type": "object"})"},
             [](const Node& given, S& out, Faults& faults) {
                 if (!config::is_section(given, "'quality'", faults)) return;
                 quality_table().read(given, out.quality.emplace(), faults);
             });
    keep(t, "capacity", "slo, share, rates, precision: finds the highest rate that keeps an objective");
}

Table<ExperimentSpec> top_level_table() {
    using S = ExperimentSpec;
    Table<S> t;
    t.key("name", &S::name, "names the folder of results; default: the file's")
        .key("question", &S::question, "what the experiment is to answer");
    keep(t, "variants", "name → keys that differ: of the engine, workload, warmup, simulation");
    keep(t, "factors", "dotted path → list of values; the variants are all combinations");
    t.key("baseline", &S::baseline_name, "the variant that others are compared with; default: the first");
    read_key(t, repeats_key(), read_repeats);
    t.key("seed", &S::seed, "of all draws: workload, order of runs, sampling");
    read_key(t, {.name = "workload",
                 .type = config::ValueType::kMap,
                 .description = "what is asked of the engine",
                 .children = workload_table().keys()},
             [](const Node& given, S& out, Faults& faults) {
                 if (!config::is_section(given, "'workload'", faults)) return;
                 workload_table().read(given, out.workload, faults);
                 finish_workload(given, out.workload, faults);
             })
        .required();
    t.section("warmup", &S::warmup, warmup_table(), "before each run");
    t.section("simulation", &S::jitter, jitter_table(), "noise of simulated runs");
    Table<Watchdog> watchdog;
    watchdog.key("call_s", &Watchdog::call_s, Bounds{0, 1e6, "s"},
                 "a run ends when a plugin's call has not returned after this time; 0: never");
    t.section("watchdog", &S::watchdog, watchdog, "of plugins that hang");
    t.section("slo", &S::slo, slo_table(), "what a request must keep to count as good");
    add_other(t);
    read_key(t, {.name = "primary",
                 .description = "metrics that get verdicts; default: goodput_share or output_throughput, ttft_p50, "
                                "ttft_p99, tpot_p50, tpot_p99, e2e_p50",
                 .json_schema = R"({"type": "array", "items": {"type": "string"}})"},
             [](const Node& given, S& out, Faults& faults) { out.primary = read_primary(given, faults); });
    t.key("results", &S::results, "folder of results; default: results/<name>-<time>");
    t.leave(config::engine_keys());
    return t;
}

}  // namespace

const std::vector<config::KeyInfo>& experiment_keys() {
    static const std::vector<config::KeyInfo> keys = top_level_table().keys();
    return keys;
}

Result<ExperimentSpec> spec_from(const Node& document, const std::string& name) {
    Faults faults;
    ExperimentSpec spec;
    spec.name = name;
    spec.document = document;
    top_level_table().read(document, spec, faults);
    const Node *variants = document.find("variants"), *factors = document.find("factors");
    if (variants && factors) faults.add(factors->origin, "'factors' and 'variants' exclude each other");
    else if (variants) spec.variants = read_variants(*variants, faults);
    else if (factors) spec.variants = read_factors(*factors, faults);
    else spec.variants.push_back({.name = "base", .patch = Node::map()});
    if (const Node* capacity = document.find("capacity")) spec.capacity = read_capacity(*capacity, spec.slo, faults);
    check_capacity(spec, document, faults);
    check_primary(spec, document, faults);
    if (!document.find("primary")) {
        if (spec.capacity) spec.primary.emplace_back("capacity");
        for (const size_t m : default_primary(spec.slo)) spec.primary.push_back(metric_infos()[m].name);
    }
    check_adaptive(spec, document, faults);
    if (spec.variants.size() > kMaxVariants)
        faults.add(variants->origin, "more than " + std::to_string(kMaxVariants) + " variants");
    std::vector<std::string> names;
    for (const VariantSpec& v : spec.variants) names.push_back(v.name);
    const std::string& baseline = spec.baseline_name;
    if (const auto at = std::ranges::find(names, baseline); at != names.end())
        spec.baseline = static_cast<size_t>(at - names.begin());
    else if (!baseline.empty())
        faults.add(document.find("baseline")->origin, "no variant '" + config::printable(baseline) + "'" +
                                                          did_you_mean(baseline, names) + ", there are " +
                                                          joined(names));
    complete_variants(document, spec, faults);
    check_workloads(spec, document, faults);
    if (faults.any()) return faults.failure();
    return spec;
}

Result<ExperimentSpec> load_spec(const std::filesystem::path& file) {
    PB_TRY(const config::Document document, config::load_document(file));
    return spec_from(document.root, name_of_file(file));
}

bool is_experiment(const Node& document) {
    return document.find("workload") || document.find("variants") || document.find("factors");
}

void check_inputs(const Node& document, Faults& faults) {
    const auto check = [&](const Node* path) {
        std::error_code error;
        if (path && path->kind == NodeKind::kScalar && !path->text.empty() &&
            !std::filesystem::exists(beside_or_here(*path, path->text), error))
            faults.add(path->origin, "there is no file '" + config::printable(path->text) +
                                         "', neither beside this file nor in the current folder");
    };
    const auto check_prompts = [&](const Node& keys) {
        if (const Node* const prompts = keys.at("workload.prompts"))
            for (const Entry& kind : prompts->entries) check(kind.value.find("path"));
    };
    check(document.at("quality.text"));
    check_prompts(document);
    for (const VariantSpec& v : readable_variants(document)) check_prompts(v.patch);
}

std::string name_of_file(const std::filesystem::path& file) {
    const std::filesystem::path full = std::filesystem::absolute(file);
    const std::string stem = full.stem().string();
    return stem == "experiment" && full.has_parent_path() ? full.parent_path().filename().string() : stem;
}

}  // namespace patchbay::experiment
