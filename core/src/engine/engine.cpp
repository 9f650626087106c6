#include "engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "engine/engine_control.hpp"
#include "engine/facts.hpp"
#include "engine/impl.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::shared_ptr<grammar::Grammar>> Engine::compile_grammar(const grammar::StructuredOutputs& wanted) {
    return in_one_line(impl_->pipeline->sampling.structured_output.compile(wanted));
}

Result<> Engine::prepare(Request& r) {
    if (r.sampling.structured_outputs) {
        PB_TRY(r.grammar, compile_grammar(*r.sampling.structured_outputs));
    }
    if (forbids_words(r.sampling)) {
        PB_TRY(r.token_rules, in_one_line(impl_->pipeline->sampling.token_rules.read(r.sampling)));
    }
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
EngineControl& Engine::control() { return *impl_->control; }
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

void Engine::observe(StepObserver& observer) { impl_->pipeline->loop.observers().add(observer); }
void Engine::stop_observing(StepObserver& observer) { impl_->pipeline->loop.observers().remove(observer); }
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
    out.report = p.common.context.shown();
    return out;
}

}  // namespace patchbay::engine
