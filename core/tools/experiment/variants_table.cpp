#include "experiment/variants_table.hpp"

#include <algorithm>
#include <string_view>

#include "config/load.hpp"
#include "experiment/matrix.hpp"
#include "experiment/one_of_table.hpp"
#include "experiment/spec_load.hpp"
#include "experiment/timed_swaps.hpp"
#include "experiment/workload_table.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kOwnSections[] = {"workload", "warmup", "simulation"}; // that a variant may change

bool is_own_section(std::string_view key) { return std::ranges::find(kOwnSections, key) != std::end(kOwnSections); }

// The engine's sections, and those of the experiment that a variant may change.
const std::vector<config::KeyInfo>& varying_keys() {
    static const std::vector<config::KeyInfo> keys = [] {
        std::vector<config::KeyInfo> out = config::engine_sections();
        for (const config::KeyInfo& k : experiment_keys())
            if (is_own_section(k.name)) out.push_back(k);
        return out;
    }();
    return keys;
}

// What decides how variants are compared is the same for all, and what nothing reads makes no difference.
bool may_vary(const Entry& e, Faults& faults) {
    const std::string key = e.key.substr(0, e.key.find('.'));
    const auto is_it = [&](const config::KeyInfo& k) { return k.name == key; };
    if (key.empty() || std::ranges::any_of(varying_keys(), is_it)) return true; // an empty one is no dotted path
    if (std::ranges::any_of(experiment_keys(), is_it)) {
        faults.add(e.key_origin, "'" + key + "' is shared by all variants and cannot be varied");
        return false;
    }
    Node unknown = Node::map();
    unknown.entries.push_back({key, e.key_origin, {}});
    config::check_unknown_keys(unknown, varying_keys(), {}, faults);
    return false;
}

// Keys whose value is one of several kinds: another kind takes the place of the one that the file has.
bool is_choice(std::string_view key) {
    constexpr std::string_view kChoices[] = {"prompts", "arrivals", "windows", "output_tokens", "max_tokens",
                                             "tokens",  "turns",    "think_s"};
    return std::ranges::find(kChoices, key) != std::end(kChoices);
}

Node laid_over(const Node* base, const Node& over, std::string_view key) {
    const bool both_maps = base && base->kind == NodeKind::kMap && over.kind == NodeKind::kMap;
    if (base && base->kind == NodeKind::kMap && over.kind == NodeKind::kNull) return *base; // as config::merge()
    const auto is_other_kind = [&] { return over.entries.size() == 1 && !base->find(over.entries.front().key); };
    if (!both_maps || (is_choice(key) && is_other_kind())) return over;
    Node out = *base;
    for (const Entry& e : over.entries) out.set(e.key, laid_over(base->find(e.key), e.value, e.key));
    return out;
}

// Two trees that read the same, whatever the order of their keys.
bool same(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
        a.entries.size() != b.entries.size())
        return false;
    for (size_t i = 0; i < a.items.size(); ++i)
        if (!same(a.items[i], b.items[i])) return false;
    return std::ranges::all_of(a.entries, [&](const Entry& e) {
        const Node* const other = b.find(e.key);
        return other && same(e.value, *other);
    });
}

Node without_arrivals(Node workload) {
    std::erase_if(workload.entries, [](const Entry& e) { return e.key == "arrivals" || e.key == "at"; });
    return workload;
}

}  // namespace

Table<Warmup> warmup_table() {
    Table<Warmup> t;
    t.key("requests", &Warmup::requests, Bounds{0, 1e5, "requests"}, "served and discarded before each run");
    return t;
}

Table<Jitter> jitter_table() {
    Table<Jitter> t;
    t.key("step_jitter", &Jitter::step_jitter, Bounds{0, 10, ""},
          "a simulated step takes exp(|x|) times as long, x normal with this standard deviation")
        .key("run_jitter", &Jitter::run_jitter, Bounds{0, 10, ""}, "the same, drawn once for all steps of a run");
    return t;
}

std::vector<VariantSpec> read_variants(const Node& variants, Faults& faults) {
    std::vector<VariantSpec> out;
    if (variants.kind != NodeKind::kMap || variants.entries.empty()) {
        faults.add(variants.origin,
                   "'variants' is " + variants.describe() + ", expected a map from names to keys that differ");
        return out;
    }
    for (const Entry& e : variants.entries) {
        VariantSpec v{.name = e.key, .patch = Node::map(e.value.origin)};
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
                       "variant '" + e.key + "' is " + e.value.describe() + ", expected a map of keys that differ");
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

std::vector<VariantSpec> readable_variants(const Node& document) {
    Faults ignored;
    if (const Node* const variants = document.find("variants")) return read_variants(*variants, ignored);
    if (const Node* const factors = document.find("factors")) return read_factors(*factors, ignored);
    return {};
}

namespace {

// Faults of what variants share would be said again for each that changes a part of it.
bool shared_is_faulty(const Node& document) {
    Faults faults;
    WorkloadSpec workload;
    Warmup warmup;
    Jitter jitter;
    const auto read = [&](const char* section, auto table, auto& out) {
        const Node* const given = document.find(section);
        if (given && given->kind == NodeKind::kMap) table.read(*given, out, faults);
        return given;
    };
    const Node* const given = read("workload", workload_table(), workload);
    if (!given || given->kind != NodeKind::kMap) return true;
    finish_workload(*given, workload, faults);
    read("warmup", warmup_table(), warmup);
    read("simulation", jitter_table(), jitter);
    return faults.any();
}

}  // namespace

void complete_variants(const Node& document, ExperimentSpec& spec, Faults& faults) {
    const auto given_to = [&](const VariantSpec& v, const char* section) {
        const Node *base = document.find(section), *over = v.patch.find(section);
        return over ? laid_over(base, *over, section) : base ? *base : Node{};
    };
    const auto varied = [&](const VariantSpec& v, const char* section) -> bool {
        const Node* const over = v.patch.find(section);
        return over && config::is_section(*over, "'" + std::string(section) + "'", faults);
    };
    const bool read = !shared_is_faulty(document);
    for (VariantSpec& v : spec.variants) {
        v.workload = spec.workload;
        v.warmup = spec.warmup;
        v.jitter = spec.jitter;
        v.workload_given = given_to(v, "workload");
        if (!read) continue;
        if (varied(v, "workload")) {
            v.workload = {};
            workload_table().read(v.workload_given, v.workload, faults);
            finish_workload(v.workload_given, v.workload, faults);
        }
        if (varied(v, "warmup")) {
            v.warmup = {};
            warmup_table().read(given_to(v, "warmup"), v.warmup, faults);
        }
        if (varied(v, "simulation")) {
            v.jitter = {};
            jitter_table().read(given_to(v, "simulation"), v.jitter, faults);
        }
    }
    for (size_t v = 0; v < spec.variants.size(); ++v) {
        size_t& first = spec.variants[v].workload_of;
        while (first < v && !same(spec.variants[first].workload_given, spec.variants[v].workload_given)) first += 1;
    }
    if (spec.baseline >= spec.variants.size()) return; // a fault that was found before
    const Node base = without_arrivals(spec.variants[spec.baseline].workload_given);
    for (VariantSpec& v : spec.variants) v.same_requests = same(without_arrivals(v.workload_given), base);
}

}  // namespace patchbay::experiment
