#include "experiment/workload_table.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "base/suggest.hpp"
#include "experiment/sampling_table.hpp"
#include "experiment/timed_swaps.hpp"

namespace patchbay::experiment {
namespace {

using config::Bounds;
using config::Entry;
using config::Faults;
using config::Node;
using config::NodeKind;
using config::Table;

constexpr double kMaxRequests = 4e6, kMaxTokens = 1 << 26;
const Bounds kTokens{.min = 1, .max = kMaxTokens, .unit = "tokens"};
const Bounds kTokensOrNone{.min = 0, .max = kMaxTokens, .unit = "tokens"};
const Bounds kRate{.min = 1e-6, .max = 1e6, .unit = "requests per second"};

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

// ---- a value that is one of several kinds: {kind: …}, or just the kind's name ----
template <class V>
struct Kind {
    std::string name;
    std::function<V(const Node&, Faults&)> read;
};

template <class V>
std::optional<V> choose(const Node& given, const std::string& what, const std::vector<Kind<V>>& kinds, Faults& faults) {
    std::vector<std::string> names;
    for (const Kind<V>& k : kinds) names.push_back(k.name);
    const auto kind_named = [&](const std::string& name, const config::Origin& at) -> const Kind<V>* {
        for (const Kind<V>& k : kinds)
            if (k.name == name) return &k;
        faults.add(at, "unknown '" + config::printable(name) + "' in " + what + did_you_mean(name, names) +
                           ", expected one of " + joined(names));
        return nullptr;
    };
    if (given.kind == NodeKind::kScalar) {
        const Kind<V>* kind = kind_named(given.text, given.origin);
        return kind ? std::optional<V>(kind->read(Node::map(given.origin), faults)) : std::nullopt;
    }
    if (given.kind != NodeKind::kMap || given.entries.size() != 1) {
        faults.add(given.origin, what + " is " + given.describe() + ", expected exactly one of " + joined(names));
        return std::nullopt;
    }
    const Entry& only = given.entries.front();
    const Kind<V>* kind = kind_named(only.key, only.key_origin);
    return kind ? std::optional<V>(kind->read(only.value, faults)) : std::nullopt;
}

// A kind whose settings are a map with a table. `check` may add faults about how they fit together.
template <class V, class S>
Kind<V> table_kind(std::string name, Table<S> table, std::function<void(const Node&, const S&, Faults&)> check = {}) {
    auto shared = std::make_shared<const Table<S>>(std::move(table));
    return {name, [name, shared, check](const Node& given, Faults& faults) -> V {
                S settings;
                if (!config::is_section(given, "'" + name + "'", faults)) return settings;
                shared->read(given, settings, faults);
                if (check) check(given, settings, faults);
                return settings;
            }};
}

// A file beside the one that names it, if there is one, else in the current folder.
template <class T>
void path_key(Table<T>& table, std::filesystem::path T::*field, std::string description) {
    config::KeyInfo info{.name = "path", .type = config::ValueType::kString, .description = std::move(description)};
    table.custom(info, [field, info](const Node* given, T& out, Faults& faults) {
        if (!given) return Node{};
        if (const auto text = config::read_string(*given, info, faults)) {
            out.*field = *text;
            if (given->origin.kind == config::Origin::Kind::kFile && given->origin.name) {
                const auto beside =
                    (std::filesystem::path(*given->origin.name).parent_path() / *text).lexically_normal();
                std::error_code error;
                if (std::filesystem::exists(beside, error)) out.*field = beside;
            }
        }
        return *given;
    }).required();
}

// ---- lengths ----
template <class S>
void check_span(const Node& given, const S& s, Faults& faults) {
    if (s.min > s.max)
        faults.add(given.origin, "'max' is " + std::to_string(s.max) + ", less than 'min' of " + std::to_string(s.min));
}

template <class S>
Table<S> span_table() {
    Table<S> t;
    t.key("min", &S::min, kTokens, "least tokens").key("max", &S::max, kTokens, "most tokens");
    return t;
}

EmpiricalLength read_values(const Node& given, Faults& faults) {
    struct Values {
        std::vector<uint32_t> values;
    } v;
    Node map = Node::map(given.origin);
    map.set("empirical", given);
    Table<Values>().values("empirical", &Values::values, kTokens, "lengths").read(map, v, faults);
    if (v.values.empty() && given.items.empty()) faults.add(given.origin, "'empirical' has no lengths");
    if (v.values.empty()) v.values.push_back(1);
    return {v.values};
}

FixedLength read_fixed(const Node& given, Faults& faults) {
    FixedLength l{1};
    Node map = Node::map(given.origin);
    map.set("fixed", given);
    Table<FixedLength>().key("fixed", &FixedLength::tokens, kTokens, "tokens").read(map, l, faults);
    return l;
}

std::optional<Length> read_length(const Node& given, const std::string& what, Faults& faults) {
    if (given.kind == NodeKind::kScalar) return read_fixed(given, faults);
    if (given.kind == NodeKind::kList) return read_values(given, faults);
    Table<LognormalLength> lognormal = span_table<LognormalLength>();
    lognormal.key("mean", &LognormalLength::mean, Bounds{1, kMaxTokens, "tokens"}, "mean of the distribution")
        .key("cv", &LognormalLength::cv, Bounds{0, 100, ""}, "standard deviation over mean");
    Table<ZipfLength> zipf;
    zipf.key("exponent", &ZipfLength::exponent, Bounds{0, 20, ""}, "P(min + k) is in proportion to (k + 1)^-exponent")
        .key("min", &ZipfLength::min, kTokens, "least tokens")
        .key("max", &ZipfLength::max, Bounds{1, 1 << 20, "tokens"}, "most tokens");
    return choose<Length>(
        given, what,
        {{"fixed", read_fixed},
         table_kind<Length, UniformLength>("uniform", span_table<UniformLength>(), check_span<UniformLength>),
         table_kind<Length, LognormalLength>("lognormal", lognormal, check_span<LognormalLength>),
         table_kind<Length, ZipfLength>("zipf", zipf, check_span<ZipfLength>),
         {"empirical", read_values}},
        faults);
}

template <class T, class L> // L: Length or std::optional<Length>
void length_key(Table<T>& table, std::string name, L T::*field, std::string description) {
    config::KeyInfo info{.name = std::move(name),
                         .description = std::move(description),
                         .unit = "tokens",
                         .json_schema = R"({"type": ["integer", "array", "object"]})"};
    table.custom(info, [field, info](const Node* given, T& out, Faults& faults) {
        if (!given) return Node{};
        if (auto length = read_length(*given, "'" + info.name + "'", faults)) out.*field = *std::move(length);
        return *given;
    });
}

// ---- prompts, arrivals, workload ----
std::optional<Prompts> read_prompts(const Node& given, Faults& faults) {
    Table<JsonlPrompts> jsonl;
    path_key(jsonl, &JsonlPrompts::path, "file with a JSON object a line");
    jsonl.key("field", &JsonlPrompts::field, "dotted path to the text, such as turns.0")
        .word("order", &JsonlPrompts::order, {{"shuffled", Order::kShuffled}, {"file", Order::kFile}},
              "drawn anew each repeat, or as in the file");
    Table<TextPrompts> text;
    path_key(text, &TextPrompts::path, "text that prompts are cut from, at random places");
    length_key(text, "tokens", &TextPrompts::tokens, "length of a prompt");
    Table<SyntheticPrompts> synthetic;
    length_key(synthetic, "tokens", &SyntheticPrompts::tokens, "length of a prompt of random tokens");
    Table<TracePrompts> trace;
    path_key(trace, &TracePrompts::path, "CSV with TIMESTAMP,ContextTokens,GeneratedTokens");
    trace.key("skip", &TracePrompts::skip, Bounds{0, kMaxRequests, "rows"}, "rows left out at the start");
    return choose<Prompts>(given, "'prompts'",
                           {table_kind<Prompts>("jsonl", jsonl), table_kind<Prompts>("text", text),
                            table_kind<Prompts>("synthetic", synthetic), table_kind<Prompts>("trace", trace)},
                           faults);
}

std::optional<Arrivals> read_arrivals(const Node& given, Faults& faults) {
    Table<DeterministicArrivals> deterministic;
    deterministic.key("rate", &DeterministicArrivals::rate, kRate, "requests per second").required();
    Table<PoissonArrivals> poisson;
    poisson.key("rate", &PoissonArrivals::rate, kRate, "requests per second").required();
    Table<GammaArrivals> gamma;
    gamma.key("rate", &GammaArrivals::rate, kRate, "requests per second").required();
    gamma.key("cv", &GammaArrivals::cv, Bounds{1e-2, 100, ""},
              "standard deviation of the gaps over their mean; above 1: bursty");
    Table<BurstArrivals> burst;
    burst.key("size", &BurstArrivals::size, Bounds{1, kMaxRequests, "requests"}, "requests that come together")
        .required();
    burst.key("every_s", &BurstArrivals::every_s, Bounds{0, 1e6, "s"}, "from burst to burst").required();
    Table<TraceArrivals> trace;
    trace.key("time_scale", &TraceArrivals::time_scale, Bounds{0, 1e6, ""}, "times of the trace are multiplied by it");
    return choose<Arrivals>(
        given, "'arrivals'",
        {table_kind<Arrivals>("all_at_once", Table<AllAtOnce>()), table_kind<Arrivals>("deterministic", deterministic),
         table_kind<Arrivals>("poisson", poisson), table_kind<Arrivals>("gamma", gamma),
         table_kind<Arrivals>("burst", burst), table_kind<Arrivals>("trace", trace)},
        faults);
}

std::optional<Windows> read_windows(const Node& given, Faults& faults) {
    Table<DrawnWindows> drawn;
    drawn.key("overlap", &DrawnWindows::overlap, Bounds{0, 0.99, ""},
              "share of its rows that a window may have in common with another");
    return choose<Windows>(given, "'windows'",
                           {table_kind<Windows>("disjoint", Table<DisjointWindows>()),
                            table_kind<Windows>("drawn", drawn), table_kind<Windows>("same", Table<SameWindow>())},
                           faults);
}

// A key that a function reads, which returns nothing where it found a fault.
template <class T, class V>
void read_key(Table<T>& table, std::string name, V T::*field, std::optional<V> (*read)(const Node&, Faults&),
              std::string description) {
    config::KeyInfo info{
        .name = std::move(name), .description = std::move(description), .json_schema = R"({"type": ["string", "object"]})"};
    table.custom(info, [field, read](const Node* given, T& out, Faults& faults) {
        if (!given) return Node{};
        if (auto value = read(*given, faults)) out.*field = *std::move(value);
        return *given;
    });
}

Table<Deadlines> deadline_table() {
    Table<Deadlines> t;
    t.key("min_s", &Deadlines::min_s, Bounds{0, 1e6, "s"}, "after the arrival at the earliest")
        .key("max_s", &Deadlines::max_s, Bounds{0, 1e6, "s"}, "at the latest; drawn evenly; 0: there is none");
    return t;
}

}  // namespace

Table<WorkloadSpec> workload_table() {
    using W = WorkloadSpec;
    Table<W> t;
    t.key("requests", &W::requests, Bounds{1, kMaxRequests, "requests"},
          "a run; default: all prompts of the file, of a trace what there is for each repeat");
    read_key(t, "prompts", &W::prompts, read_prompts, "one of jsonl, text, synthetic, trace");
    t.required();
    length_key(t, "output_tokens", &W::output_tokens, "output lengths; default: the trace's");
    t.key("ignore_eos", &W::ignore_eos, "outputs have exactly their length; false: at most")
        .key("max_prompt_tokens", &W::max_prompt_tokens, kTokensOrNone,
             "longer prompts are cut; 0: no limit but the model's")
        .key("max_output_tokens", &W::max_output_tokens, kTokensOrNone,
             "longer outputs are cut; 0: no limit but the model's");
    read_key(t, "arrivals", &W::arrivals, read_arrivals,
             "when requests come: one of all_at_once, deterministic, poisson, gamma, burst, trace");
    read_key(t, "windows", &W::windows, read_windows,
             "rows of the trace that each repeat has: one of disjoint (default), drawn, same");
    t.values("tenants", &W::tenants, Bounds{0, 1e9, ""}, "shares of the requests that tenants 1, 2, … send")
        .values("priorities", &W::priorities, Bounds{0, 1e9, ""}, "shares of the requests with priority 0, 1, …")
        .section("deadline", &W::deadline, deadline_table(), "by when a request is to have ended");
    t.section("sampling", &W::sampling, sampling_table(), "how tokens are sampled; each request has a seed of its own");
    t.custom({.name = "at",
              .description = "{request: N, swap: {…}}, or a list of such: swaps in mid-run, in every variant",
              .json_schema = R"({"type": ["array", "object"]})"},
             [](const Node* given, W& out, Faults& faults) {
                 if (!given) return Node{};
                 out.at = read_timed_swaps(*given, faults);
                 return *given;
             });
    return t;
}

void finish_workload(const Node& given, WorkloadSpec& w, Faults& faults) {
    const bool trace = std::holds_alternative<TracePrompts>(w.prompts),
               jsonl = std::holds_alternative<JsonlPrompts>(w.prompts);
    if (trace && !given.find("arrivals")) w.arrivals = TraceArrivals{};
    for (const char* key : {"tenants", "priorities"}) {
        const auto& shares = std::string_view(key) == "tenants" ? w.tenants : w.priorities;
        if (!shares.empty() && std::accumulate(shares.begin(), shares.end(), 0.0) <= 0)
            faults.add(given.find(key)->origin, "'" + std::string(key) + "' has no share above 0");
    }
    if (w.deadline.min_s > w.deadline.max_s)
        faults.add(given.find("deadline")->origin, "'deadline' ends before it begins: min_s is more than max_s");
    if (!given.find("prompts")) return; // said already
    if (!trace && std::holds_alternative<TraceArrivals>(w.arrivals))
        faults.add(given.find("arrivals")->origin, "arrivals from a trace need prompts from a trace");
    if (!trace && given.find("windows"))
        faults.add(given.find("windows")->origin, "windows are of a trace, and the prompts are from none");
    if (!trace && !given.find("output_tokens"))
        faults.add(given.origin, "'output_tokens' is missing in 'workload': how long outputs are");
    if (!trace && !jsonl && !given.find("requests"))
        faults.add(given.origin, "'requests' is missing in 'workload': how many there are");
}

}  // namespace patchbay::experiment
