// The workloads of an experiment: one for all variants, or, where variants change keys of it, one for each of these.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/workload.hpp"

namespace patchbay::experiment {

class Workloads {
  public:
    static Result<Workloads> open(const ExperimentSpec&, const std::shared_ptr<const text::Tokenizer>&, WorkloadLimits);

    const WorkloadSource& of(size_t variant) const { return sources_[source_of_[variant]]; }
    const std::vector<WorkloadSource>& different() const { return sources_; }
    std::vector<WindowPlan> shared_windows() const; // of those whose repeats share rows of a trace
    std::vector<std::string> notices() const;
    std::vector<InputFile> files() const; // that were read, each once

  private:
    std::vector<WorkloadSource> sources_;
    std::vector<size_t> source_of_; // by variant
};

}  // namespace patchbay::experiment
