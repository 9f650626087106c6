#include "engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "config/slots.hpp"
#include "engine/facts.hpp"
#include "engine/impl.hpp"
#include "engine/swap/swap_control.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

std::string_view name_of(Phase phase) {
    static constexpr std::string_view kNames[kPhaseCount] = {"admit", "plan",   "apply",  "build",
                                                             "run",   "sample", "commit", "publish"};
    return kNames[static_cast<size_t>(phase)];
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<> Engine::compile_grammar(const grammar::StructuredOutputs& wanted) {
    StructuredOutput& grammars = impl_->pipeline->sampling.structured_output;
    PB_CHECK(in_one_line(grammars.compile(wanted)));
    return {};
}
Result<RequestId> Engine::add_request(Request request) {
    return in_one_line(impl_->pipeline->intake.add(std::move(request)));
}

void Engine::abort(RequestId id) {
    Pipeline& p = *impl_->pipeline;
    p.output.lifecycle.abort(id);
    if (p.output.lifecycle.in_step() || has_unfinished()) return;
    if (const auto done = p.batches.copies.flush(); !done) // the next step makes them
        spdlog::warn("what an aborted request leaves in the KV cache is not overwritten yet: {}", done.error());
}

bool Engine::has_unfinished() const { return impl_->pipeline->loop.has_unfinished(); }
Result<> Engine::check() const { return impl_->executor->check(); }
Result<StepReport> Engine::step() { return impl_->pipeline->loop.step(); }
const EngineFacts& Engine::facts() const { return impl_->facts; }
const std::shared_ptr<const text::Tokenizer>& Engine::tokenizer() const { return impl_->tokenizer; }
Clock& Engine::clock() { return impl_->clock; }
SwapControl& Engine::swaps() { return *impl_->swaps; }
const kv::KvCache& Engine::kv() const { return *impl_->pipeline->cache.kv; }

const kv::BlockTable* Engine::table_of(RequestId id) const {
    return impl_->pipeline->sequences.all.table_of(id);
}

Result<> Engine::reset_prefix_cache() {
    Pipeline& p = *impl_->pipeline;
    PB_CHECK(p.cache.kv->prefixes().reset());
    p.kv_events.flush();
    return has_unfinished() ? Result<>() : p.batches.copies.flush();
}

void Engine::on_kv_events(std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)> listener) {
    impl_->pipeline->kv_events.listen(std::move(listener));
}

void Engine::observe(StepObserver& observer) { impl_->pipeline->loop.add(observer); }
void Engine::stop_observing(StepObserver& observer) { impl_->pipeline->loop.remove(observer); }
StepFiles& Engine::files() { return impl_->pipeline->files; }

View Engine::view() const {
    Pipeline& p = *impl_->pipeline;
    p.scheduling.hints.update();
    View out;
    const uint32_t block_size = p.cache.kv->shape().block_size();
    out.waiting = p.sequences.all.waiting_records(impl_->clock.now_ns(), block_size);
    out.running = p.sequences.all.running_records(block_size);
    for (const StepPlan::Preemption& item : p.scheduling.scheduler.latest().preemptions)
        out.preempted.push_back(item.id);
    out.free_pages = p.cache.kv->pool().free();
    out.cached_pages = p.cache.kv->pool().cached();
    out.total_pages = p.cache.kv->pool().total();
    out.free_swap_pages = p.cache.kv->swap().space().free();
    out.total_swap_pages = p.cache.kv->swap().space().total();
    out.report = p.common.context.report;
    return out;
}

config::EngineConfig Engine::configuration() const {
    config::EngineConfig out = impl_->config;
    for (const std::string& kind : plugin_slots()) {
        const host::Slot& slot = impl_->pipeline->port(*swap_slot(kind)).slot();
        const config::SlotInfo* const key = config::find_slot(kind);
        if (!slot.filled() || !key) continue;
        const config::PluginChoice now{slot.current().type().name, slot.current().settings()};
        if (key->choice) out.*(key->choice) = now;
        else out.*(key->optional_choice) = now;
    }
    return out;
}

void Engine::take_over(uint64_t step, host::SwapRecord record) {
    Pipeline& p = *impl_->pipeline;
    p.common.context.step = step;
    for (const auto state : {host::SwapState::kOnProbation, host::SwapState::kCommitted}) {
        record.state = state;
        record.end_step = record.settled() ? record.step : 0;
        p.common.journal.note(record);
        p.swaps.model.slot().line().report(record);
    }
}

void Engine::end_swaps_of(Engine& other) {
    constexpr const char* kPhase = "post";
    const Failure why = unavailable("the engine was replaced by one of another model");
    const uint64_t step = other.impl_->pipeline->common.context.step;
    for (const std::string& kind : plugin_slots()) {
        host::Slot& slot = other.impl_->pipeline->port(*swap_slot(kind)).slot();
        host::SwapLine& reports = impl_->pipeline->port(*swap_slot(kind)).slot().line();
        for (const host::SwapRecord& r : slot.line().take_reports()) reports.report(r);
        if (slot.candidate()) reports.report(slot.turn_away(step, kPhase, why));
        else if (slot.previous()) reports.report(slot.commit(step));
        while (slot.line().due()) {
            slot.take();
            reports.report(slot.turn_away(step, kPhase, why));
        }
    }
}

std::shared_ptr<host::Swap> Engine::swap(const SwapRequest& request) {
    auto swap = swaps().prepare(request);
    swaps().post(swap);
    return swap;
}

std::vector<std::shared_ptr<host::Swap>> Engine::swap_together(const std::vector<SwapRequest>& requests) {
    auto ordered = swaps().prepare_together(requests);
    swaps().post_together(ordered);
    return ordered;
}

Result<> Engine::configure(SwapSlot which, const host::Settings& changes) {
    host::Slot& slot = impl_->pipeline->port(which).slot();
    if (!slot.filled()) return fail(StatusCode::kInvalid, "the engine has no " + std::string(name_of(which)));
    return slot.current().configure(changes);
}

host::Settings Engine::settings(SwapSlot which) const {
    host::Slot& slot = impl_->pipeline->port(which).slot();
    return slot.filled() ? slot.current().settings() : host::Settings{};
}

}  // namespace patchbay::engine
