#include "experiment/outline.hpp"

#include <algorithm>

#include "experiment/conclusion.hpp"
#include "experiment/repeats_table.hpp"

namespace patchbay::experiment {
namespace {

std::string counted(uint64_t n) { return shown(static_cast<double>(n)); }

struct Load { // of the requests of some repeats
    uint64_t requests = 0, prompt_tokens = 0, output_tokens = 0;
    double arrivals_s = 0; // from the first to the last
};

Load load_of(const Workload& workload) {
    Load out;
    for (const PlannedRequest& r : workload.requests) {
        out.requests += 1;
        out.prompt_tokens += r.prompt.size();
        out.output_tokens += uint64_t{r.sampling.max_tokens} * r.sampling.n;
        out.arrivals_s = std::max(out.arrivals_s, static_cast<double>(r.arrival_ns) * 1e-9);
    }
    return out;
}

std::string differences_of(const PreparedVariant& v) {
    std::string out;
    for (const ConfigDifference& d : v.differences)
        if (!d.path.starts_with("automatic.") && !d.path.starts_with("plugins."))
            out += (out.empty() ? "" : ", ") + d.path + " " + (d.baseline.empty() ? "none" : d.baseline) + " → " +
                   (d.value.empty() ? "none" : d.value) + (d.declared ? "" : " (not declared)");
    return out.empty() ? "no difference" : out;
}

}  // namespace

std::string outline(const ExperimentSpec& spec, const PreparedVariants& prepared, const WorkloadSource& source) {
    std::string out = std::to_string(prepared.variants.size()) + " variants × " + repeats_text(spec) + " = " +
                      (spec.adaptive ? "at most " : "") + std::to_string(prepared.variants.size() * spec.repeats) +
                      " runs\n";
    for (size_t v = 0; v < prepared.variants.size(); ++v) {
        const PreparedVariant& variant = prepared.variants[v];
        out += "  " + variant.name + ": " + (v == prepared.baseline ? "baseline" : differences_of(variant)) + "; " +
               variant.facts.device_name + (variant.facts.simulated ? ", computes nothing" : "") + ", " +
               counted(variant.facts.num_blocks) + " KV blocks\n";
        for (const SwapTask& swap : variant.swaps) out += "    swap: " + swap.text() + "\n";
    }
    Load all;
    double arrivals_s = 0;
    for (uint32_t r = 0; r < spec.repeats; ++r) {
        const Load l = load_of(source.repeat(spec.seed, r));
        all.requests += l.requests;
        all.prompt_tokens += l.prompt_tokens;
        all.output_tokens += l.output_tokens;
        arrivals_s += l.arrivals_s;
    }
    const double n = spec.repeats;
    out += "a run: " + shown(static_cast<double>(all.requests) / n) + " requests, " +
           shown(static_cast<double>(all.prompt_tokens) / n) + " prompt tokens, at most " +
           shown(static_cast<double>(all.output_tokens) / n) + " output tokens, arriving over " +
           shown(arrivals_s / n) + " s (means over the repeats)\n";
    const bool simulated = std::all_of(prepared.variants.begin(), prepared.variants.end(),
                                       [](const PreparedVariant& v) { return v.facts.simulated; });
    if (!simulated)
        out += "all runs: " + shown(arrivals_s * static_cast<double>(prepared.variants.size())) +
               " s at least, by the arrivals alone\n";
    out += "order:";
    constexpr size_t kShown = 12;
    const auto order = run_order(prepared.variants.size(), spec.repeats, spec.seed);
    for (size_t i = 0; i < std::min(order.size(), kShown); ++i)
        out += (i == 0 ? " " : ", ") + prepared.variants[order[i].variant].name;
    return out + (order.size() > kShown ? ", …\n" : "\n");
}

}  // namespace patchbay::experiment
