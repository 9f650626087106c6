#include "experiment/spec_load.hpp"

#include <algorithm>

#include "base/suggest.hpp"
#include "config/load.hpp"
#include "experiment/matrix.hpp"
#include "experiment/repeats_table.hpp"
#include "experiment/run_metrics.hpp"
#include "experiment/timed_swaps.hpp"
#include "experiment/workload_table.hpp"

namespace patchbay::experiment {
namespace {

using config::Bounds;
using config::Entry;
using config::Faults;
using config::Node;
using config::NodeKind;
using config::Table;

constexpr size_t kMaxVariants = 256;

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

// ---- variants ----
// Only the engine's configuration can differ between variants: what they are asked is the same.
bool may_vary(const Entry& e, Faults& faults) {
    const std::string key = e.key.substr(0, e.key.find('.'));
    for (const config::KeyInfo& k : experiment_keys())
        if (k.name == key) {
            faults.add(e.key_origin, "'" + key + "' is shared by all variants and cannot be varied");
            return false;
        }
    return true;
}

std::vector<VariantSpec> read_variants(const Node& variants, Faults& faults) {
    std::vector<VariantSpec> out;
    if (variants.kind != NodeKind::kMap || variants.entries.empty()) {
        faults.add(variants.origin,
                   "'variants' is " + variants.describe() + ", expected a map from names to keys of the engine");
        return out;
    }
    for (const Entry& e : variants.entries) {
        VariantSpec v{.name = e.key, .patch = Node::map(e.value.origin), .at = {}, .at_given = {}};
        if (e.value.kind == NodeKind::kMap) {
            Node keys = e.value;
            if (const Node* at = e.value.find("at")) { // no key of the engine's
                v.at = read_timed_swaps(*at, faults);
                v.at_given = *at;
                std::erase_if(keys.entries, [](const Entry& key) { return key.key == "at"; });
            }
            for (const Entry& patched : keys.entries) may_vary(patched, faults);
            auto patch = config::expand_dotted(keys);
            if (patch) v.patch = *std::move(patch);
            else faults.add(e.value.origin, patch.error());
        } else if (e.value.kind != NodeKind::kNull) {
            faults.add(e.value.origin,
                       "variant '" + e.key + "' is " + e.value.describe() + ", expected a map of keys of the engine");
        }
        out.push_back(std::move(v));
    }
    return out;
}

std::vector<VariantSpec> read_factors(const Node& factors, Faults& faults) {
    std::vector<Factor> table;
    size_t product = 1;
    if (factors.kind != NodeKind::kMap || factors.entries.empty()) {
        faults.add(factors.origin,
                   "'factors' is " + factors.describe() + ", expected a map from dotted paths to lists of values");
        return {};
    }
    for (const Entry& e : factors.entries) {
        if (!may_vary(e, faults)) return {};
        if (e.value.kind != NodeKind::kList || e.value.items.empty()) {
            faults.add(e.value.origin,
                       "factor '" + e.key + "' is " + e.value.describe() + ", expected a list of values");
            return {};
        }
        table.push_back({e.key, e.value.items});
        product *= e.value.items.size();
        if (product > kMaxVariants) {
            faults.add(factors.origin, "the factors make more than " + std::to_string(kMaxVariants) + " variants");
            return {};
        }
    }
    auto expanded = expand(table);
    if (expanded) return *std::move(expanded);
    faults.add(factors.origin, expanded.error());
    return {};
}

// A swap that no request of the workload would bring about.
void check_swaps(const ExperimentSpec& spec, Faults& faults) {
    const WorkloadSpec& w = spec.workload;
    const auto refuse_requests = [&](const std::vector<TimedSwap>& swaps) { // whose number is known only as they come
        for (const TimedSwap& s : swaps)
            if (s.request)
                faults.add(s.origin, "'request' is of requests with planned arrivals, and these follow one another; "
                                     "say when with 't'");
    };
    if (std::holds_alternative<ClosedLoop>(w.arrivals) || w.sessions.turns) {
        refuse_requests(w.at);
        for (const VariantSpec& v : spec.variants) refuse_requests(v.at);
    }
    if (!spec.workload.requests) return;
    const auto check = [&](const std::vector<TimedSwap>& swaps) {
        for (const TimedSwap& s : swaps)
            if (s.request && *s.request > *spec.workload.requests)
                faults.add(s.origin, "'request' is " + std::to_string(*s.request) + ", the workload has " +
                                         std::to_string(*spec.workload.requests) + " requests");
    };
    check(spec.workload.at);
    for (const VariantSpec& v : spec.variants) check(v.at);
}

std::vector<std::string> read_primary(const Node& given, Faults& faults) {
    std::vector<std::string> names, out;
    for (const MetricInfo& info : metric_infos()) names.push_back(info.name);
    if (given.kind != NodeKind::kList || given.items.empty()) {
        faults.add(given.origin, "'primary' is " + given.describe() + ", expected a list of metrics: " + joined(names));
        return out;
    }
    for (const Node& item : given.items) {
        if (!metric_named(item.text))
            faults.add(item.origin, "unknown metric '" + config::printable(item.text) + "' in 'primary'" +
                                        did_you_mean(item.text, names) + ", expected some of " + joined(names));
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

struct Warmup {
    uint32_t requests = 0;
};

struct TopLevel { // keys that the specification keeps in another form
    ExperimentSpec spec;
    std::string baseline, results;
    Warmup warmup;
    Jitter jitter;
    Watchdog watchdog;
};

template <class V>
void keep(Table<V>& table, std::string name, std::string description) { // read later, with the rest at hand
    table.custom({.name = std::move(name), .description = std::move(description), .json_schema = R"({"type": "object"})"},
                 [](const Node* given, V&, Faults&) { return given ? *given : Node{}; });
}

Table<TopLevel> top_level_table() {
    Table<TopLevel> t;
    const auto spec_key = [&](const char* name, auto ExperimentSpec::*field, Bounds bounds, const char* description) {
        Table<ExperimentSpec> inner;
        inner.key(name, field, bounds, description);
        const config::KeyInfo info = inner.keys().front();
        t.custom(info, [inner, name](const Node* given, TopLevel& out, Faults& faults) {
            Node map = Node::map();
            if (given) map.set(name, *given);
            return *inner.read(map, out.spec, faults).find(name);
        });
    };
    spec_key("name", &ExperimentSpec::name, {}, "names the folder of results; default: the file's");
    spec_key("question", &ExperimentSpec::question, {}, "what the experiment is to answer");
    keep(t, "variants", "name → keys of the engine that differ");
    keep(t, "factors", "dotted path → list of values; the variants are all combinations");
    t.key("baseline", &TopLevel::baseline, "the variant that others are compared with; default: the first");
    t.custom(repeats_key(), [](const Node* given, TopLevel& out, Faults& faults) {
        return read_repeats(given, out.spec, faults);
    });
    spec_key("seed", &ExperimentSpec::seed, {}, "of all draws: workload, order of runs, sampling");
    t.custom({.name = "workload",
              .type = config::ValueType::kMap,
              .description = "what is asked of the engine",
              .children = workload_table().keys()},
             [](const Node* given, TopLevel& out, Faults& faults) {
                 if (!given || !config::is_section(*given, "'workload'", faults)) return Node{};
                 Node effective = workload_table().read(*given, out.spec.workload, faults);
                 finish_workload(*given, out.spec.workload, faults);
                 return effective;
             })
        .required();
    Table<Warmup> warmup;
    warmup.key("requests", &Warmup::requests, Bounds{0, 1e5, "requests"}, "served and discarded before each run");
    t.section("warmup", &TopLevel::warmup, warmup, "before each run");
    Table<Jitter> jitter;
    jitter
        .key("step_jitter", &Jitter::step_jitter, Bounds{0, 10, ""},
             "a simulated step takes exp(|x|) times as long, x normal with this standard deviation")
        .key("run_jitter", &Jitter::run_jitter, Bounds{0, 10, ""}, "the same, drawn once for all steps of a run");
    t.section("simulation", &TopLevel::jitter, jitter, "noise of simulated runs");
    Table<Watchdog> watchdog;
    watchdog.key("call_s", &Watchdog::call_s, Bounds{0, 1e6, "s"},
                 "a run ends when a plugin's call has not returned after this time; 0: never");
    t.section("watchdog", &TopLevel::watchdog, watchdog, "of plugins that hang");
    Table<Slo> slo;
    const Bounds ms{.min = 0, .max = 1e9, .unit = "ms"};
    slo.key("ttft_ms", &Slo::ttft_ms, ms, "time to first token at most")
        .key("tpot_ms", &Slo::tpot_ms, ms, "time per output token after the first at most")
        .key("e2e_ms", &Slo::e2e_ms, ms, "time from arrival to the last token at most");
    t.custom({.name = "slo",
              .type = config::ValueType::kMap,
              .description = "what a request must keep to count as good",
              .children = slo.keys()},
             [slo](const Node* given, TopLevel& out, Faults& faults) {
                 if (!given || !config::is_section(*given, "'slo'", faults)) return Node{};
                 return slo.read(*given, out.spec.slo, faults);
             });
    t.custom({.name = "primary",
              .description = "metrics that get verdicts; default: goodput_share or output_throughput, ttft_p50, "
                              "ttft_p99, "
                         "tpot_p50, tpot_p99, e2e_p50",
              .json_schema = R"({"type": "array", "items": {"type": "string"}})"},
             [](const Node* given, TopLevel& out, Faults& faults) {
                 if (!given) return Node{};
                 out.spec.primary = read_primary(*given, faults);
                 return *given;
             });
    t.key("results", &TopLevel::results, "folder of results; default: results/<name>-<time>");
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
    TopLevel top;
    top.spec.name = name;
    top_level_table().read(document, top, faults);
    ExperimentSpec& spec = top.spec;
    spec.document = document;
    spec.warmup_requests = top.warmup.requests;
    spec.jitter = top.jitter;
    spec.watchdog = top.watchdog;
    spec.results = top.results;
    const Node *variants = document.find("variants"), *factors = document.find("factors");
    if (variants && factors) faults.add(factors->origin, "'factors' and 'variants' exclude each other");
    else if (variants) spec.variants = read_variants(*variants, faults);
    else if (factors) spec.variants = read_factors(*factors, faults);
    else spec.variants.push_back({.name = "base", .patch = Node::map(), .at = {}, .at_given = {}});
    check_swaps(spec, faults);
    check_primary(spec, document, faults);
    if (spec.adaptive && std::holds_alternative<DrawnWindows>(spec.workload.windows))
        faults.add(document.find("repeats")->origin,
                   "'repeats: auto' needs repeats that share no rows of a trace: windows are drawn");
    if (!document.find("primary"))
        for (const size_t m : default_primary(spec.slo)) spec.primary.push_back(metric_infos()[m].name);
    if (spec.variants.size() > kMaxVariants)
        faults.add(variants->origin, "more than " + std::to_string(kMaxVariants) + " variants");
    std::vector<std::string> names;
    for (const VariantSpec& v : spec.variants) names.push_back(v.name);
    if (const auto at = std::find(names.begin(), names.end(), top.baseline); at != names.end())
        spec.baseline = static_cast<size_t>(at - names.begin());
    else if (!top.baseline.empty())
        faults.add(document.find("baseline")->origin, "no variant '" + config::printable(top.baseline) + "'" +
                                                          did_you_mean(top.baseline, names) + ", there are " +
                                                          joined(names));
    if (faults.any()) return faults.failure();
    return std::move(spec);
}

Result<ExperimentSpec> load_spec(const std::filesystem::path& file) {
    PB_TRY(const config::Document document, config::load_document(file));
    return spec_from(document.root, name_of_file(file));
}

std::string name_of_file(const std::filesystem::path& file) {
    const std::filesystem::path full = std::filesystem::absolute(file);
    const std::string stem = full.stem().string();
    return stem == "experiment" && full.has_parent_path() ? full.parent_path().filename().string() : stem;
}

}  // namespace patchbay::experiment
