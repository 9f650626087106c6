#include "experiment/outline.hpp"

#include <algorithm>

#include "base/words.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/counted.hpp"
#include "experiment/repeats_table.hpp"

namespace patchbay::experiment {
namespace {

std::string counted(uint64_t n) { return shown(static_cast<double>(n)); }

struct PlannedLoad { // of the requests of some repeats
    uint64_t requests = 0, prompt_tokens = 0, output_tokens = 0;
    double arrivals_s = 0; // from the first to the last
};

PlannedLoad load_of(const WorkloadSource::Plan& plan, uint32_t outputs) {
    PlannedLoad out;
    for (uint32_t i = 0; i < plan.size(); ++i) {
        out.requests += 1;
        out.prompt_tokens += plan.prompt_tokens(i);
        out.output_tokens += uint64_t{plan.output_tokens(i)} * outputs;
        out.arrivals_s = std::max(out.arrivals_s, static_cast<double>(plan.arrival_ns(i)) * 1e-9);
    }
    return out;
}

// Over the repeats, of one variant.
PlannedLoad load_of(const ExperimentSpec& spec, const Workloads& workloads, size_t variant) {
    PlannedLoad all;
    const uint32_t outputs = spec.variants[variant].workload.sampling.n;
    for (uint32_t r = 0; r < spec.repeats; ++r) {
        const PlannedLoad l = load_of(workloads.of(variant).plan(spec.seed, r), outputs);
        all.requests += l.requests;
        all.prompt_tokens += l.prompt_tokens;
        all.output_tokens += l.output_tokens;
        all.arrivals_s += l.arrivals_s;
    }
    return all;
}

std::string mean_text(uint64_t sum, uint32_t repeats) { // a whole number without ".0"
    std::string out = shown(static_cast<double>(sum) / repeats);
    if (sum % repeats == 0) out.resize(std::min(out.find('.'), out.size()));
    return out;
}

std::string text_of(const PlannedLoad& all, uint32_t repeats) {
    return mean_text(all.requests, repeats) + " requests, " + mean_text(all.prompt_tokens, repeats) +
           " prompt tokens, at most " + mean_text(all.output_tokens, repeats) + " output tokens, arriving over " +
           shown(all.arrivals_s / repeats) + " s (means over the repeats)\n";
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

std::string outline(const ExperimentSpec& spec, const PreparedVariants& prepared, const Workloads& workloads) {
    const size_t variants = prepared.variants.size();
    std::string out = number_of(variants, "variant") + " × " + repeats_text(spec) + " = " +
                      (spec.adaptive ? "at most " : "") + number_of(variants * spec.repeats, "run") + "\n";
    for (size_t v = 0; v < variants; ++v) {
        const PreparedVariant& variant = prepared.variants[v];
        out += "  " + variant.name + ": " + (v == prepared.baseline ? "baseline" : differences_of(variant)) + "; " +
               variant.facts.device_name + (variant.facts.device_computes ? "" : ", computes nothing") + ", " +
               counted(variant.facts.kv.num_blocks) + " KV pages\n";
        for (const SwapTask& swap : variant.swaps) out += "    swap: " + swap.text() + "\n";
    }
    const bool shared = workloads.different().size() == 1;
    double arrivals_s = 0;
    PlannedLoad load;
    for (size_t v = 0; v < variants; ++v) {
        if (v == 0 || !shared) {
            load = load_of(spec, workloads, v);
            out += "a run" + (shared ? "" : " of " + prepared.variants[v].name) + ": " + text_of(load, spec.repeats);
        }
        arrivals_s += load.arrivals_s;
    }
    out += counted_text(spec, workloads) + "\n";
    const bool simulated = std::all_of(prepared.variants.begin(), prepared.variants.end(),
                                       [](const PreparedVariant& v) { return !v.facts.device_computes; });
    if (!simulated)
        out += "all runs: " + shown(arrivals_s) +
               " s at least, by the arrivals alone\n";
    out += "order:";
    constexpr size_t kShown = 12;
    const auto order = run_order(prepared.variants.size(), spec.repeats, spec.seed);
    for (size_t i = 0; i < std::min(order.size(), kShown); ++i)
        out += (i == 0 ? " " : ", ") + prepared.variants[order[i].variant].name;
    return out + (order.size() > kShown ? ", …\n" : "\n");
}

}  // namespace patchbay::experiment
