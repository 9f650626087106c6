#include "experiment/notices.hpp"

#include <algorithm>

#include "base/words.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

// "3 prompts (by 120 tokens)"
std::string cut_text(uint32_t count, const char* what, uint64_t tokens) {
    return count == 0 ? ""
                      : std::to_string(count) + " " + what + (count == 1 ? "" : "s") + " (by " +
                            std::to_string(tokens) + " tokens)";
}

}  // namespace

std::string interruption_notice(const std::vector<RunSummary>& runs, uint32_t repeats,
                                const PreparedVariants& prepared) {
    const auto in_plan = [](const RunSummary& r) { return !r.superseded && !r.rate; };
    const auto finished = std::ranges::count_if(
        runs, [&](const RunSummary& r) { return in_plan(r) && r.end != RunEnd::kInterrupted; });
    const auto count = std::ranges::count_if(runs, [&](const RunSummary& r) { return in_plan(r) && r.counts(); });
    return "the experiment was interrupted: results are partial, of " +
           std::to_string(prepared.variants.size() * repeats) + " planned runs " + std::to_string(finished) +
           " finished and " + std::to_string(count) + " count";
}

std::string simulation_notice(const PreparedVariants& prepared) {
    std::vector<std::string> simulated, measured, hardware;
    for (const PreparedVariant& e : prepared.variants) {
        (e.facts.device_computes ? measured : simulated).push_back(e.name);
        if (!e.facts.device_computes && std::ranges::find(hardware, e.facts.device_name) == hardware.end())
            hardware.push_back(e.facts.device_name);
    }
    if (simulated.empty()) return "";
    return "nothing was computed" + (measured.empty() ? "" : " by " + joined(simulated)) +
           ": times are what the model of the device charges (" + joined(hardware) + "), and tokens are made up" +
           (measured.empty() ? "" : "; times of " + joined(measured) +
                                        " were measured, so a difference from these is also the error of that model");
}

std::string synthetic_notice(const PreparedVariants& prepared) {
    std::vector<std::string> names;
    for (const PreparedVariant& e : prepared.variants)
        if (e.facts.synthetic_acceptance) names.push_back(e.name);
    if (names.empty()) return "";
    return "drafts of " + joined(names) +
           " are accepted by synthetic_acceptance_rates: their texts are not the model's";
}

std::string oracle_notice(const ExperimentSpec& spec, const PreparedVariants& prepared) {
    std::vector<std::string> names;
    for (size_t v = 0; v < prepared.variants.size(); ++v) {
        const WorkloadSpec& workload = spec.variants[v].workload;
        const config::Node* const predictor = prepared.variants[v].loaded.effective.at("scheduler.predictor");
        const bool asks = predictor && predictor->text == "oracle";
        if (asks && (workload.max_tokens || !workload.ignore_eos)) names.push_back(prepared.variants[v].name);
    }
    if (names.empty()) return "";
    return "'predictor: oracle' of " + joined(names) +
           " had no lengths of outputs: with 'max_tokens' or 'ignore_eos: false' in the workload the scheduler gets "
           "none";
}

std::string window_notice(const Workloads& source, const ExperimentSpec& spec) {
    uint32_t independent = spec.repeats;
    for (const WindowPlan& w : source.shared_windows()) independent = std::min(independent, w.independent);
    if (independent == spec.repeats) return "";
    return "repeats share rows of the trace: of " + std::to_string(spec.repeats) + " windows at most " +
           std::to_string(independent) +
           " have none in common. Intervals and verdicts are those of as many repeats as have none in common among "
           "those with a value";
}

std::string prompts_notice(const Workloads& source, uint32_t repeats) {
    uint32_t prompts = 0;
    for (const WorkloadSource& one : source.different()) prompts = std::max(prompts, one.shared_prompts(repeats));
    if (prompts == 0) return "";
    return "all repeats use the same " + std::to_string(prompts) +
           " prompts: the intervals cover the other random draws and machine noise, but not variation between prompts";
}

std::string jitter_notice(const ExperimentSpec& spec, const PreparedVariants& prepared) {
    const bool simulated = std::any_of(prepared.variants.begin(), prepared.variants.end(),
                                       [](const PreparedVariant& e) { return !e.facts.device_computes; });
    const auto noisy = std::ranges::find_if(spec.variants, [](const VariantSpec& v) { return v.jitter.any(); });
    if (noisy == spec.variants.end() || !simulated) return "";
    return "noise was added to simulated steps: step_jitter " + shown(noisy->jitter.step_jitter) + ", run_jitter " +
           shown(noisy->jitter.run_jitter);
}

std::string clipping_notice(const Workloads& workloads, const ExperimentSpec& spec, uint32_t repeats) {
    Clipping all;
    const bool shared = workloads.different().size() == 1;
    for (const WorkloadSource& source : workloads.different())
        for (uint32_t r = 0; r < repeats; ++r) {
            const Clipping c = source.plan(spec.seed, r).clipped();
            all.prompts += c.prompts;
            all.outputs += c.outputs;
            all.histories += c.histories;
            all.prompt_tokens += c.prompt_tokens;
            all.output_tokens += c.output_tokens;
        }
    const std::string lost =
        all.histories == 0 ? ""
                           : std::to_string(all.histories) + " turns begin without what was said before them, which is "
                             "longer than the model holds or the file allows";
    if (all.prompts + all.outputs == 0) return lost;
    return (lost.empty() ? "" : lost + "; ") +
           "the workload was cut to what the model holds or the file allows" +
           (shared ? ", the same for every variant: " : ": ") +
           cut_text(all.prompts, "prompt", all.prompt_tokens) + (all.prompts && all.outputs ? " and " : "") +
           cut_text(all.outputs, "output", all.output_tokens) + " over all repeats";
}

}  // namespace patchbay::experiment
