// Steps in flight: the next step is planned and given to the device while it still computes the one before. Until that
// one is back its sequences count as having its tokens, which are placeholders; a token for a sequence that has ended
// meanwhile is surplus and dropped.
#include <algorithm>
#include <utility>

#include "engine/state.hpp"

namespace patchbay::engine {

std::string_view why_in_turn(const config::EngineConfig& c, const runner::ModelRunner& runner) {
    if (c.engine.async_scheduling == config::AsyncScheduling::kOff) return "off";
    if (!runner.can_submit()) return "device"; // host and device are the same cores, say
    if (c.proposer) return "proposer";         // drafts follow from tokens that the host sees
    if (runner.device_info().computes && c.engine.tensor_parallel_size > 1) return "ranks"; // rank 0 alone samples
    return "";
}

std::string_view Engine::State::why_now() const {
    if (scheduler.previous() || sampler.previous()) return "probation"; // whoever fails leaves its step to another
    // What goes on, and with whose KV, is known when all beams are back.
    const auto is_beam = [](const Sequence* s) { return s->beams != nullptr; };
    if (!beams.empty() && std::ranges::any_of(running, is_beam)) return "beam_search";
    if (!facts.simulated && !runner::runs_on_device(sampler.current()))
        return "host_sampler"; // the next token is known when its logits are back
    return "";
}

// The planned step goes to the device, behind the one that it still computes.
Result<> Engine::State::take_off() {
    const auto submit = [&]() -> Result<> {
        if (!pass_samples()) return runner->submit(batch, nullptr);
        const runner::SampleCall call = sample_call();
        return runner->submit(batch, &call);
    };
    launched.begin_ns = clock.now_ns();
    PB_CHECK(submit());
    note_forward();
    launched.up = true;
    launched.tokens = batch.tokens();
    launched.host_pages = report.pages_to_host + report.pages_to_device;
    launched.items = scheduled;
    for (Scheduled& item : launched.items) {
        Sequence& s = *item.sequence;
        s.in_flight += item.tokens;
        // What ends for its length with this token is not planned again.
        const bool last = s.beams || s.outputs() + s.coming + 1 >= s.request.sampling.max_tokens ||
                          s.tokens.size() + s.coming + 1 >= facts.max_model_len;
        item.coming = item.rows > 0 && !last;
        s.coming += item.coming;
        s.coming_row = item.first_row;
    }
    return {};
}

// The step that flies comes back: its tokens are appended and handed out.
Result<> Engine::State::land() {
    if (!flying.up) return {};
    if (flying.spoilt) {
        compute_anew();
        return {};
    }
    landed = true;
    runner::SampledRows rows;
    const auto wait = [&]() -> Result<> {
        PB_TRY(rows, runner->wait());
        return {};
    };
    PB_CHECK(in_phase(Phase::kRun, wait));
    const uint64_t now = clock.now_ns(); // the device began with it when the one before it was done
    note_token_cost(flying.tokens, flying.host_pages, now - std::max(flying.begin_ns, last_landing_ns));
    last_landing_ns = now;
    std::swap(scheduled, flying.items);
    for (const Scheduled& item : scheduled) {
        item.sequence->in_flight -= item.tokens;
        item.sequence->coming -= item.coming;
    }
    PB_CHECK(in_phase(Phase::kSample, [&] { facts.simulated ? make_tokens() : take(rows); }));
    PB_CHECK(in_phase(Phase::kCommit, [&] { commit(); }));
    PB_CHECK(in_phase(Phase::kPublish, [&] { publish(); }));
    std::swap(scheduled, flying.items);
    clear(flying);
    return {};
}

// A token that is none went into the step that flies, so its fault and its results are nobody's: a failing request
// fails alone. The others compute anew; what may hold half a step (KV, states, named blocks) is given up.
void Engine::State::compute_anew() {
    runner->abandon();
    for (const Scheduled& item : flying.items) {
        Sequence& s = *item.sequence;
        s.in_flight = s.coming = 0;
        kv->forget(s.table);
        report.preempted_tokens += std::exchange(s.computed, 0); // nothing of it is worth a place in host memory
        preempt(s, PB_PREEMPT_RECOMPUTE);
    }
    for (const kv::BlockTable& table : flying.held) kv->forget(table); // of those who have ended since
    clear(flying);
}

// A step with another one in flight. Its report has what it planned, and the tokens of the one that came back.
Result<> Engine::State::overlapped_step() {
    if (flying.spoilt) PB_CHECK(land());
    if (const std::string_view why = why_now(); !why.empty()) {
        PB_CHECK(land());
        return step_in_turn(why);
    }
    const auto looks_back = [](const Scheduled& item) { return item.coming > 0 && item.sequence->needs_history(); };
    std::string_view waited = "";
    if (flying.up && std::any_of(flying.items.begin(), flying.items.end(), looks_back)) {
        const auto structured = [](const Scheduled& item) { return item.coming > 0 && item.sequence->matcher; };
        waited = std::any_of(flying.items.begin(), flying.items.end(), structured) ? "structured_output" : "history";
        PB_CHECK(land());
    }
    PB_CHECK(in_phase(Phase::kAdmit, [&] { admit(); }));
    PB_CHECK(in_phase(Phase::kPlan, [&] { return plan(); }));
    if (flying.up && plan_out.preempt_count > 0) { // what is taken away must be back first, and may have ended
        PB_CHECK(land());
        PB_CHECK(in_phase(Phase::kPlan, [&] { return plan(); }));
        waited = "preemption";
    }
    PB_CHECK(in_phase(Phase::kApply, [&] { apply(); }));
    tell_script();
    report.in_turn = waited;
    if (!scheduled.empty()) {
        PB_CHECK(in_phase(Phase::kBuild, [&] { build(); }));
        PB_CHECK(in_phase(Phase::kRun, [&] { return take_off(); }));
    }
    PB_CHECK(land());
    flying = std::exchange(launched, {});
    return {};
}

void Engine::State::clear(Flight& flight) {
    for (kv::BlockTable& table : flight.held) kv->release(table);
    flight = {};
}

// A sequence ends whose placeholder is on the device: its blocks come back when that step does.
void Engine::State::leave_flight(Sequence& s) {
    Flight& flight = launched.up ? launched : flying;
    std::erase_if(flight.items, [&](const Scheduled& item) { return item.sequence == &s; });
    flight.held.push_back(std::exchange(s.table, {}));
    s.in_flight = s.coming = 0;
}

}  // namespace patchbay::engine
