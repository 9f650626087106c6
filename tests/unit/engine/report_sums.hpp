// Sums of step reports' counters, for tests.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/step_report.hpp"

namespace patchbay::engine {

template <class Part>
const Part& part_of(const StepReport& r) {
    if constexpr (std::is_same_v<Part, ScheduledWork>) return r.work;
    else if constexpr (std::is_same_v<Part, KvReport>) return r.kv;
    else if constexpr (std::is_same_v<Part, PreemptionReport>) return r.preemption;
    else if constexpr (std::is_same_v<Part, DraftReport>) return r.drafts;
    else if constexpr (std::is_same_v<Part, GrammarReport>) return r.grammars;
    else return r.calls;
}

template <class Part>
uint64_t sum_over(const std::vector<StepReport>& steps, uint32_t Part::*field) {
    uint64_t out = 0;
    for (const StepReport& r : steps) out += part_of<Part>(r).*field;
    return out;
}

}  // namespace patchbay::engine
