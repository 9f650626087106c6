// Another component in the slot of the scheduler or the sampler: the part beside the steps, and the boundary between
// two of them. What a slot itself does is in host/slot.hpp.
#include <spdlog/spdlog.h>

#include "engine/state.hpp"
#include "host/library.hpp"

namespace patchbay::engine {
namespace {

const char* kind_of(SwapSlot slot) { return slot == SwapSlot::kScheduler ? "scheduler" : "sampler"; }

// Logged where nobody may be listening any more.
void log(const host::SwapRecord& r) {
    const bool well = r.state == host::SwapState::kOnProbation || r.state == host::SwapState::kCommitted;
    const uint64_t step = r.end_step ? r.end_step : r.step; // it ends later where it begins now
    spdlog::log(well ? spdlog::level::info : spdlog::level::warn, "{} (step {})", r.text(), step);
}

}  // namespace

std::shared_ptr<host::Swap> Engine::prepare_swap(const SwapRequest& request) {
    State& s = *state_;
    const std::string kind = kind_of(request.slot), &name = request.choice.plugin;
    host::Slot& slot = request.slot == SwapSlot::kScheduler ? s.scheduler : s.sampler;
    host::Identity to;
    to.kind = kind;
    to.name = name;
    const auto found = request.registry.find(kind, name);
    if (!found) return slot.refuse(to, "find", found.error());
    if (s.facts.simulated && request.slot == SwapSlot::kSampler)
        return slot.refuse(to, "find", "no sampler is called where the device computes nothing");
    const host::Manifest& plugin = *request.registry.plugin_of(**found);
    to.version = (*found)->version;
    to.sha256 = plugin.sha256;
    to.build = plugin.build;
    to.path = plugin.library.string();
    if (const auto faults = host::check_settings(**found, request.choice.settings); !faults.empty())
        return slot.refuse(to, "create", faults[0].text);
    if (const auto passed = request.prober.try_out(plugin, {kind, name, request.choice.settings}); !passed)
        return slot.refuse(to, "probe", passed.error());
    auto library = host::Library::open(plugin.library, plugin.sha256);
    if (!library) return slot.refuse(to, "create", library.error());
    const pb_component* type = (*library)->find(kind, name);
    if (!type) return slot.refuse(to, "create", "its manifest promises what its library does not hold");
    auto component = host::Component::create(*std::move(library), *type, request.choice.settings, s.services);
    if (!component) return slot.refuse(to, "create", component.error());
    if (const auto fits = request.slot == SwapSlot::kSampler ? s.runner->check_sampler(**component) : Result<>(); !fits)
        return slot.refuse(to, "create", fits.error());
    if (const auto fits = request.slot == SwapSlot::kSampler ? s.check_speculation(**component) : Result<>(); !fits)
        return slot.refuse(to, "create", fits.error());
    return slot.prepare(*std::move(component), to);
}

void Engine::post_swap(const std::shared_ptr<host::Swap>& swap, uint64_t not_before_ns) {
    host::Slot& slot = swap->record().kind == "scheduler" ? state_->scheduler : state_->sampler;
    slot.post(swap, not_before_ns);
}

std::shared_ptr<host::Swap> Engine::swap(const SwapRequest& request) {
    auto swap = prepare_swap(request);
    post_swap(swap);
    return swap;
}

void Engine::State::note_slot(const std::string& kind, const host::Identity& identity) {
    for (host::Identity& p : facts.plugins)
        if (p.kind == kind) p = identity;
}

void Engine::State::resync(const host::Component& c) {
    if (host::table_of<pb_scheduler>(c).resync) {
        pb_scheduler_in in = scheduler_view();
        in.now_us = clock.now_ns() / 1000;
        const auto all = waiting.records(); // also who is not shown for a time
        in.waiting = all.data();
        in.waiting_count = static_cast<uint32_t>(all.size());
        host::call<&pb_scheduler::resync>(c, &in);
    }
}

void Engine::State::swap_at_boundary() {
    for (host::Slot* slot : {&scheduler, &sampler}) {
        for (host::SwapRecord& r : slot->take_refusals()) report.swaps.push_back(std::move(r));
        auto record = slot->exchange(step, swap_settings.probation_steps, [&](const host::Component& c) {
            if (slot == &scheduler) resync(c);
        });
        if (!record) continue;
        log(*record);
        if (record->state == host::SwapState::kOnProbation) note_slot(record->kind, record->to);
        const bool entered = record->state == host::SwapState::kOnProbation;
        report.swaps.push_back(*std::move(record));
        if (entered && slot == &sampler) turn_away_sampler();
    }
}

// If there is a request that it cannot serve.
void Engine::State::turn_away_sampler() {
    for (const auto& [id, s] : sequences) {
        Result<> served = check_statistics(s->request.sampling);
        if (served) served = check_accepted(s->params);
        if (served && s->request.sampling.prompt_logprobs) served = check_accepted(s->prompt_params);
        if (served) continue;
        roll_back(sampler, "accepts", served.error());
        return;
    }
}

bool Engine::State::roll_back(host::Slot& slot, const std::string& phase, const std::string& reason) {
    if (!slot.previous()) return false;
    host::SwapRecord record = slot.roll_back(step, phase, reason);
    if (&slot == &scheduler) resync(slot.current());
    log(record);
    note_slot(record.kind, record.from);
    report.swaps.push_back(std::move(record));
    return true;
}

void Engine::State::end_probation_step() {
    const struct {
        host::Slot& slot;
        bool called;
        uint64_t call_ns;
        const char* call;
    } each[] = {{scheduler, !scheduled.empty(), report.plan_ns, "plan"},
                {sampler, !scheduled.empty() && !sample_rows.empty(), report.sample_ns, "sample"}};
    const uint64_t most_ns = uint64_t{swap_settings.max_call_ms} * 1'000'000;
    for (const auto& e : each) {
        if (!e.slot.previous()) continue;
        if (most_ns > 0 && e.call_ns > most_ns) {
            roll_back(e.slot, "time", std::string(e.call) + " took " + std::to_string(e.call_ns / 1'000'000) +
                                          " ms, more than max_call_ms of " + std::to_string(swap_settings.max_call_ms));
        } else if (auto record = e.called ? e.slot.pass(step) : std::nullopt) {
            log(*record);
            report.swaps.push_back(*std::move(record));
        }
    }
}

}  // namespace patchbay::engine
