#include "experiment/workloads.hpp"

#include <algorithm>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::experiment {
namespace {

// How many requests have arrived is known beforehand only where none waits for another one.
Result<> check_swaps(const std::vector<TimedSwap>& swaps, const WorkloadSource& source, uint64_t seed) {
    const auto counts = std::ranges::find_if(swaps, [](const TimedSwap& s) { return s.request.has_value(); });
    if (counts == swaps.end()) return {};
    const WorkloadSource::Plan plan = source.plan(seed, 0);
    for (uint32_t i = 0; i < plan.size(); ++i)
        if (plan.follows(i))
            return invalid(counts->origin.text() + ": 'request' is of requests with planned arrivals, and request " +
                           std::to_string(i + 1) + " follows an earlier one; say when with 't'");
    return {};
}

}  // namespace

Result<Workloads> Workloads::open(const ExperimentSpec& spec, const std::shared_ptr<const text::Tokenizer>& tokenizer,
                                  WorkloadLimits limits) {
    Workloads out;
    for (size_t v = 0; v < spec.variants.size(); ++v) {
        const VariantSpec& variant = spec.variants[v];
        if (variant.workload_of < v) {
            out.source_of_.push_back(out.source_of_[variant.workload_of]);
            continue;
        }
        PB_TRY(WorkloadSource source,
               WorkloadSource::open(variant.workload, tokenizer, limits, spec.repeats, spec.seed));
        for (const InputFile& file : source.files())
            for (const InputFile& before : out.files())
                if (file.path == before.path && file.sha256 != before.sha256)
                    return fail(file.path + " changed while it was read");
        out.source_of_.push_back(out.sources_.size());
        out.sources_.push_back(std::move(source));
    }
    for (size_t v = 0; v < spec.variants.size(); ++v)
        for (const auto* swaps : {&spec.workload.at, &spec.variants[v].at})
            PB_CHECK(check_swaps(*swaps, out.sources_[out.source_of_[v]], spec.seed));
    return out;
}

std::vector<WindowPlan> Workloads::shared_windows() const {
    std::vector<WindowPlan> out;
    for (const WorkloadSource& s : sources_)
        if (auto of_one = s.shared_windows()) out.push_back(*std::move(of_one));
    return out;
}

std::vector<InputFile> Workloads::files() const {
    std::vector<InputFile> out;
    for (const WorkloadSource& s : sources_)
        for (const InputFile& file : s.files())
            if (std::ranges::find(out, file.path, &InputFile::path) == out.end()) out.push_back(file);
    return out;
}

std::vector<std::string> Workloads::notices() const {
    std::vector<std::string> out;
    for (const WorkloadSource& s : sources_)
        for (const std::string& notice : s.notices())
            if (std::ranges::find(out, notice) == out.end()) out.push_back(notice);
    return out;
}

}  // namespace patchbay::experiment
