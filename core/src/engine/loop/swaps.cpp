#include "engine/loop/swaps.hpp"

#include <type_traits>
#include <utility>

namespace patchbay::engine {

template <class Port>
void Swaps::exchange(Port& port) {
    constexpr bool is_scheduler = std::is_same_v<Port, SchedulerPort>;
    for (host::SwapRecord& r : port.slot().take_refusals()) p_.journal.note_refusal(std::move(r));
    auto record = port.slot().exchange(p_.context.step, p_.settings.probation_steps, [&](const host::Component& c) {
        if constexpr (is_scheduler) port.resync(c);
        else static_cast<void>(c);
    });
    if (!record) return;
    const bool entered = record->state == host::SwapState::kOnProbation;
    p_.journal.note(*std::move(record));
    if (entered && !is_scheduler) refuse_sampler_that_cannot_serve();
}

void Swaps::at_boundary() {
    exchange(p_.scheduler);
    exchange(p_.sampler);
}

// If there is a request that it cannot serve, its predecessor is back.
void Swaps::refuse_sampler_that_cannot_serve() {
    for (const auto& [id, s] : p_.sequences.all()) {
        Result<> served = p_.sampler.serves(s->request.sampling);
        if (served) served = p_.sampler.accepts(s->params);
        const pb_sampling_params* const of_prompt = p_.prompt_logprobs.params_of(*s);
        if (served && of_prompt) served = p_.sampler.accepts(*of_prompt);
        if (served) continue;
        p_.sampler.roll_back("accepts", served.error());
        return;
    }
}

template <class Port>
void Swaps::end_step(Port& port, bool called, uint64_t call_ns, const char* call) {
    if (!port.slot().previous()) return;
    const uint64_t max_ns = uint64_t{p_.settings.max_call_ms} * 1'000'000;
    if (max_ns > 0 && call_ns > max_ns) {
        port.roll_back("time", std::string(call) + " took " + std::to_string(call_ns / 1'000'000) +
                                   " ms, more than max_call_ms of " + std::to_string(p_.settings.max_call_ms));
    } else if (auto record = called ? port.slot().pass(p_.context.step) : std::nullopt) {
        p_.journal.note(*std::move(record));
    }
}

void Swaps::end_step(bool planned, bool sampled) {
    end_step(p_.scheduler, planned, p_.context.report.plan_ns, "plan");
    end_step(p_.sampler, sampled, p_.context.report.sample_ns, "sample");
}

}  // namespace patchbay::engine
