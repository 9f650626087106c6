// Results of a bench as a table and as JSON.
#include <nlohmann/json.hpp>

#include "bench/model_bench.hpp"
#include "bench/times.hpp"

namespace patchbay::bench {
namespace {

using nlohmann::json;

std::string row(const std::string& what, const Speed& s) {
    if (s.limit_seconds > 0)
        return printed("%-34s %10.1f %10.3f %12.1f %8.0f %%  %s\n", what.c_str(), s.tokens_per_second(),
                       s.step_seconds * 1e3, s.tokens / s.limit_seconds, 100 * s.reached(), s.bound_by.c_str());
    return printed("%-34s %10.1f %10.3f\n", what.c_str(), s.tokens_per_second(), s.step_seconds * 1e3);
}

constexpr const char* kNeverAtOnce = "no step decoded all its requests at once, as the first ended before the last "
                                     "prompt was computed (a longer --output gives it one)";

std::string of_case(const Case& c) {
    return "batch " + std::to_string(c.batch) + ", prompt " + std::to_string(c.prompt);
}

json json_of(const Speed& s) {
    return {{"tokens_per_second", s.tokens_per_second()},
            {"step_seconds", s.step_seconds},
            {"limit_tokens_per_second", s.limit_seconds > 0 ? json(s.tokens / s.limit_seconds) : json()},
            {"reached", s.limit_seconds > 0 ? json(s.reached()) : json()},
            {"bound_by", s.bound_by}};
}

json tree_of(const Machine& m) {
    json out = {{"device", m.device}, {"threads", m.threads}, {"limits", json::object()}};
    for (const Limit& l : m.limits) out["limits"][l.name] = {{"value", l.value}, {"unit", l.unit}};
    return out;
}

}  // namespace

std::string table_of(const ModelBench& bench) {
    const engine::EngineFacts& f = bench.facts;
    std::string out = f.device_name + ", " + std::to_string(f.threads) + " threads; " + f.model.architecture + " " +
                      f.model.weight_dtype + ", " + with_prefix(static_cast<double>(f.model.weight_bytes), "B") +
                      " of weights, loaded in " + with_prefix(static_cast<double>(f.load_ns) * 1e-9, "s") + "\n";
    if (bench.memory.now > 0)
        out += "resident: " + with_prefix(static_cast<double>(bench.memory.now), "B") + " after loading, " +
               with_prefix(static_cast<double>(bench.memory.peak), "B") + " at most while loading\n";
    for (const Limit& l : bench.before.limits)
        out += "limit " + l.name + ": " + with_prefix(l.value, l.unit) + " before, " +
               with_prefix(bench.after[l.name], l.unit) + " after\n";
    out += printed("\n%-34s %10s %10s %12s %10s  %s\n", "", "tokens/s", "ms", "limit tok/s", "reached", "bound by");
    for (const CaseResult& c : bench.cases) {
        const size_t steps = c.prefill_steps.size();
        out += row("prefill " + std::to_string(c.asked.prompt) +
                       (steps > 1 ? " in " + std::to_string(steps) + " steps" : ""),
                   c.prefill);
        if (c.decode.tokens > 0)
            out += row("decode, batch " + std::to_string(c.asked.batch) + ", context " +
                           std::to_string(c.asked.prompt + c.asked.output / 2),
                       c.decode);
    }
    for (const CaseResult& c : bench.cases) {
        if (c.decode.tokens == 0) {
            if (c.asked.output > 1) out += "note: no decode row for " + of_case(c.asked) + ": " + kNeverAtOnce + "\n";
            continue;
        }
        if (c.replayed > 0 || c.in_flight > 0) {
            out += printed("decode steps, batch %u: %.0f %% by a graph, %.0f %% in flight\n", c.asked.batch,
                           100 * c.replayed, 100 * c.in_flight);
        }
        if (c.in_flight == 1) continue;
        out += printed("step outside the forward pass and the sampler, batch %u: %.1f µs\n", c.asked.batch,
                       c.overhead_seconds * 1e6);
    }
    return out;
}

std::string json_of(const Machine& machine) { return tree_of(machine).dump(2); }

std::string json_of(const ModelBench& bench) {
    const engine::EngineFacts& f = bench.facts;
    json out = {{"device", f.device_name},
                {"isa", f.isa},
                {"threads", f.threads},
                {"architecture", f.model.architecture},
                {"weight_dtype", f.model.weight_dtype},
                {"kv_dtype", f.kv.dtype},
                {"weight_bytes", f.model.weight_bytes},
                {"load_seconds", static_cast<double>(f.load_ns) * 1e-9},
                {"resident_bytes_loaded", bench.memory.now},
                {"resident_bytes_peak_loading", bench.memory.peak},
                {"machine_before", tree_of(bench.before)},
                {"machine_after", tree_of(bench.after)},
                {"cases", json::array()}};
    for (const CaseResult& c : bench.cases)
        out["cases"].push_back({{"batch", c.asked.batch},
                                {"prompt", c.asked.prompt},
                                {"output", c.asked.output},
                                {"prefill", json_of(c.prefill)},
                                {"prefill_steps", c.prefill_steps},
                                {"decode", c.decode.tokens > 0 ? json_of(c.decode) : json()},
                                {"replayed", c.replayed},
                                {"in_flight", c.in_flight},
                                {"step_overhead_seconds", c.in_flight < 1 ? json(c.overhead_seconds) : json()}});
    return out.dump(2);
}

}  // namespace patchbay::bench
