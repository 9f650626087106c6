#include "engine/loop/passes.hpp"

#include <algorithm>
#include <utility>

#include "engine/loop/in_flight.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/loop/step_summary.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/step_report.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

bool Passes::host_samples() const {
    return p_.executor.tokens() == execution::TokenSource::kModel && !p_.sampler.is_on_device();
}

Result<> Passes::submit(std::span<Placed> placed, const Way& way) {
    PB_CHECK(timer_.run(Phase::kBuild, [&] { p_.batches.build(placed); }));
    return timer_.run(Phase::kRun, [&]() -> Result<> {
        execution::StepInput in = p_.batches.input();
        in.overlaps = way.overlaps;
        in.is_redone_if_it_fails = way.is_redone_if_it_fails;
        if (p_.sampler.samples_in_pass() && p_.batches.rows().count() > 0) in.sampler = &p_.sampler.slot().current();
        InFlightStep step{.begin_ns = p_.clock.now_ns(),
                          .tokens = p_.batches.tokens(),
                          .items = {placed.begin(), placed.end()},
                          .held = {}};
        PB_CHECK(p_.executor.submit(in));
        p_.kv.copies().clear();
        p_.summary.note_pass();
        step.host_pages = p_.context.report.preemption.pages_to_host + p_.context.report.preemption.pages_to_device;
        p_.in_flight.push(std::move(step));
        return {};
    });
}

Result<> Passes::collect() {
    InFlightStep& step = p_.in_flight.oldest();
    if (step.is_poisoned) {
        compute_anew(step);
        return {};
    }
    collected_ += 1;
    const std::span<Placed> items = p_.in_flight.take_back_placeholders(step);
    execution::StepOutput output;
    PB_CHECK(timer_.run(Phase::kRun, [&]() -> Result<> {
        PB_TRY(output, p_.executor.wait(p_.batches.paths(items)));
        return {};
    }));
    const uint64_t now = p_.clock.now_ns(); // the device began with it when the one before it was done
    p_.preemption.note_step(step.tokens, step.host_pages, now - std::max(step.begin_ns, latest_collect_ns_));
    latest_collect_ns_ = now;
    p_.verification.begin(items);
    PB_CHECK(timer_.run(Phase::kSample, [&] { return p_.sampler.sample(p_.batches.rows(), output, samples_); }));
    p_.verification.accept_by_rates(samples_);
    PB_CHECK(timer_.run(Phase::kCommit, [&] { p_.commit.commit(items, samples_, output.hidden); }));
    PB_CHECK(timer_.run(Phase::kPublish, [&] { p_.commit.publish(items); }));
    p_.in_flight.drop_oldest();
    return {};
}

void Passes::give_up() {
    p_.executor.cancel();
    while (p_.in_flight.any()) compute_anew(p_.in_flight.oldest());
}

// An invalid token went into it, so its fault and its results are of no use: a failing request fails alone. The
// others compute anew; what may hold half a step (KV, states, named blocks) is given up.
void Passes::compute_anew(InFlightStep& step) {
    p_.executor.cancel();
    for (const Placed& item : step.items) p_.preemption.forget_writes(*item.sequence); // before any gives pages back
    for (auto item = step.items.rbegin(); item != step.items.rend(); ++item) // each goes before all that wait
        if (item->sequence->place == Place::kRunning) // beams leave together
            p_.preemption.compute_anew(*item->sequence);
    for (const kv::BlockTable& table : step.held) p_.kv.prefixes().forget(table); // of sequences that have ended since
    p_.in_flight.drop_oldest();
}

}  // namespace patchbay::engine
