#include "experiment/workload_table.hpp"

#include <numeric>

#include "experiment/arrivals_table.hpp"
#include "experiment/path_key.hpp"
#include "experiment/sampling_table.hpp"
#include "experiment/timed_swaps.hpp"

namespace patchbay::experiment {
namespace {

// ---- lengths: 128, [16, 64], {lognormal: {…}} ----
const Bounds kTokens{.min = 1, .max = kMaxTokens, .unit = "tokens"};

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

// key: as it was written, for errors.
EmpiricalLength read_lengths(const Node& given, const std::string& key, Faults& faults) {
    struct Values {
        std::vector<uint32_t> values;
    } v;
    read_alone(Table<Values>().values(key, &Values::values, kTokens, "lengths"), given, v, faults);
    if (v.values.empty() && given.items.empty()) faults.add(given.origin, "'" + key + "' has no lengths");
    if (v.values.empty()) v.values.push_back(1);
    return {v.values};
}

FixedLength read_fixed_length(const Node& given, const std::string& key, Faults& faults) {
    FixedLength l{1};
    read_alone(Table<FixedLength>().key(key, &FixedLength::tokens, kTokens, "tokens"), given, l, faults);
    return l;
}

std::optional<Length> read_length(const Node& given, const std::string& key, Faults& faults) {
    if (given.kind == NodeKind::kScalar) return read_fixed_length(given, key, faults);
    if (given.kind == NodeKind::kList) return read_lengths(given, key, faults);
    Table<LognormalLength> lognormal = span_table<LognormalLength>();
    lognormal.key("mean", &LognormalLength::mean, Bounds{1, kMaxTokens, "tokens"}, "mean of the distribution")
        .key("cv", &LognormalLength::cv, Bounds{0, 100, ""}, "standard deviation over mean");
    Table<ZipfLength> zipf;
    zipf.key("exponent", &ZipfLength::exponent, Bounds{0, 20, ""}, "P(min + k) is in proportion to (k + 1)^-exponent")
        .key("min", &ZipfLength::min, kTokens, "least tokens")
        .key("max", &ZipfLength::max, Bounds{1, 1 << 20, "tokens"}, "most tokens");
    return choose<Length>(
        given, "'" + key + "'",
        {{"fixed", [](const Node& of, Faults& to) { return read_fixed_length(of, "fixed", to); }},
         table_kind<Length, UniformLength>("uniform", span_table<UniformLength>(), check_span<UniformLength>),
         table_kind<Length, LognormalLength>("lognormal", lognormal, check_span<LognormalLength>),
         table_kind<Length, ZipfLength>("zipf", zipf, check_span<ZipfLength>),
         {"empirical", [](const Node& of, Faults& to) { return read_lengths(of, "empirical", to); }}},
        faults);
}

template <class T, class L> // L: Length or std::optional<Length>
void length_key(Table<T>& table, std::string name, L T::*field, std::string description) {
    config::KeyInfo info{.name = std::move(name),
                         .description = std::move(description),
                         .unit = "tokens",
                         .json_schema = R"({"type": ["integer", "array", "object"]})"};
    value_key(table, info, field, [key = info.name](const Node& given, Faults& faults) {
        return read_length(given, key, faults);
    });
}

// ---- prompts ----
const Bounds kTokensOrNone{.min = 0, .max = kMaxTokens, .unit = "tokens"};

Table<TraceOptions> trace_table() {
    using O = TraceOptions;
    std::vector<config::Word<TraceFormat>> formats;
    for (const auto& [name, format] : trace_formats()) formats.push_back({name, format});
    Table<O> t;
    t.word("format", &O::format, std::move(formats), "of the file; auto: seen by its first line")
        .key("skip", &O::skip, Bounds{0, kMaxRequests, "rows"}, "rows left out at the start")
        .key("from_s", &O::from_s, Bounds{0, 1e9, "s"}, "rows before this time of the file are left out")
        .key("until_s", &O::until_s, Bounds{0, 1e9, "s"}, "rows from this time of the file on are left out; 0: none")
        .key("block_tokens", &O::block_tokens, Bounds{1, 1 << 20, "tokens"}, "of a block of a Mooncake trace")
        .key("length_scale", &O::length_scale, Bounds{1e-6, 1e3, ""}, "factor that all lengths are multiplied by");
    return t;
}

TracePrompts read_trace_prompts(const Node& given, Faults& faults) {
    TracePrompts out;
    if (!config::is_section(given, "'trace'", faults)) return out;
    Table<TracePrompts> path;
    path_key(path, &TracePrompts::path, "a recorded trace");
    Table<TraceOptions> options = trace_table();
    for (const config::KeyInfo& key : options.keys()) path.leave({key.name});
    options.leave({"path"});
    path.read(given, out, faults);
    options.read(given, out.options, faults);
    if (out.options.until_s > 0 && out.options.until_s <= out.options.from_s)
        faults.add(given.origin, "'until_s' is not after 'from_s'");
    return out;
}

std::optional<Prompts> read_prompts(const Node& given, Faults& faults) {
    Table<JsonlPrompts> jsonl;
    path_key(jsonl, &JsonlPrompts::path, "file with a JSON object a line");
    jsonl.key("field", &JsonlPrompts::field, "dotted path to the text, such as turns.0")
        .word("order", &JsonlPrompts::order, {{"shuffled", Order::kShuffled}, {"file", Order::kFile}},
              "drawn again for each repeat, or as in the file");
    Table<TextPrompts> text;
    path_key(text, &TextPrompts::path, "text that prompts are cut from, at random places");
    length_key(text, "tokens", &TextPrompts::tokens, "length of a prompt");
    Table<SyntheticPrompts> synthetic;
    length_key(synthetic, "tokens", &SyntheticPrompts::tokens, "length of a prompt of random tokens");
    return choose<Prompts>(given, "'prompts'",
                           {table_kind<Prompts>("jsonl", jsonl), table_kind<Prompts>("text", text),
                            table_kind<Prompts>("synthetic", synthetic),
                            {"trace", [](const Node& of, Faults& f) { return Prompts(read_trace_prompts(of, f)); }}},
                           faults);
}

Table<SharedPrefixes> prefixes_table() {
    using S = SharedPrefixes;
    Table<S> t;
    t.key("number", &S::number, Bounds{0, 1 << 20, "prefixes"}, "of different ones; 0: none");
    length_key(t, "tokens", &S::tokens, "length of each prefix, which comes before the prompt");
    t.key("exponent", &S::exponent, Bounds{0, 20, ""}, "prefix k is as likely as k^-exponent (Zipf); 0: all alike")
        .key("share", &S::share, Bounds{0, 1, ""}, "of the sessions that have a prefix");
    return t;
}

Table<Sessions> sessions_table() {
    using S = Sessions;
    Table<S> t;
    length_key(t, "turns", &S::turns, "requests of a session; default: 1, of a trace what it has");
    duration_key(t, "think_s", &S::think, "from the end of a turn to the next one");
    t.word("history", &S::history, {{"generated", History::kGenerated}, {"recorded", History::kRecorded}},
           "what a turn continues: the outputs of the model, or those of the trace (else random tokens)");
    return t;
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
    const auto kind_key = [&](const char* name, auto W::*field, const auto& read, const char* text) -> Table<W>& {
        config::KeyInfo info{.name = name, .description = text, .json_schema = R"({"type": ["string", "object"]})"};
        return value_key(t, std::move(info), field, read);
    };
    t.key("requests", &W::requests, Bounds{1, kMaxRequests, "requests"},
          "a run; default: all prompts of the file, of a trace what there is for each repeat");
    kind_key("prompts", &W::prompts, read_prompts, "one of jsonl, text, synthetic, trace").required();
    length_key(t, "output_tokens", &W::output_tokens, "output lengths; default: the trace's");
    t.key("ignore_eos", &W::ignore_eos, "outputs have exactly their length; false: at most")
        .key("max_prompt_tokens", &W::max_prompt_tokens, kTokensOrNone,
             "longer prompts are cut; 0: no limit but the model's")
        .key("max_output_tokens", &W::max_output_tokens, kTokensOrNone,
             "longer outputs are cut; 0: no limit but the model's");
    length_key(t, "max_tokens", &W::max_tokens,
               "that requests declare; outputs end at their length. Default: that length");
    kind_key("arrivals", &W::arrivals, read_arrivals,
             "when requests come: one of all_at_once, deterministic, poisson, gamma, burst, ramp, on_off, diurnal, "
             "closed_loop, trace");
    kind_key("windows", &W::windows, read_windows,
             "rows of the trace that each repeat has: one of disjoint (default), drawn, same");
    t.values("tenants", &W::tenants, Bounds{0, 1e9, ""}, "shares of the requests that tenants 1, 2, … send")
        .values("priorities", &W::priorities, Bounds{0, 1e9, ""}, "shares of the requests with priority 0, 1, …")
        .section("shared_prefixes", &W::shared_prefixes, prefixes_table(), "what prompts begin with")
        .section("sessions", &W::sessions, sessions_table(), "requests that follow one another in a conversation")
        .section("deadline", &W::deadline, deadline_table(), "by when a request is to have ended");
    t.section("sampling", &W::sampling, sampling_table(), "how tokens are sampled; each request has a seed of its own");
    read_key(t, {.name = "at",
                 .description = "{request: N, swap: {…}}, or a list of such: swaps during a run, in every variant",
                 .json_schema = R"({"type": ["array", "object"]})"},
             [](const Node& given, W& out, Faults& faults) { out.at = read_timed_swaps(given, faults); });
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
    if (trace && w.shared_prefixes.number > 0)
        faults.add(given.find("shared_prefixes")->origin, "the prompts of a trace have prefixes of their own");
    if (trace && w.sessions.turns)
        faults.add(given.find("sessions")->origin, "'turns' are drawn, and a trace has its own");
    if (!trace && given.find("windows"))
        faults.add(given.find("windows")->origin, "windows are of a trace, and the prompts are from none");
    if (!trace && !given.find("output_tokens"))
        faults.add(given.origin, "'output_tokens' is missing in 'workload': how long outputs are");
    if (!trace && !jsonl && !given.find("requests"))
        faults.add(given.origin, "'requests' is missing in 'workload': how many there are");
}

}  // namespace patchbay::experiment
