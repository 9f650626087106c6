#include "serve/model_replacement.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "config/slots.hpp"
#include "engine/engine_control.hpp"
#include "execution/model_choice.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::serve {
namespace {

// That it computes: a request of its own, which no client sees.
Result<> try_out(engine::Engine& engine) {
    Result<> done;
    engine::Request r;
    r.prompt = {0};
    r.sampling.temperature = 0;
    r.sampling.max_tokens = 2;
    r.sampling.ignore_eos = true;
    r.on_output = [&](const engine::RequestOutput& out) {
        if (out.finish == engine::FinishReason::kError) done = fail(out.error_code, out.stop_reason);
    };
    PB_CHECK(engine.add_request(std::move(r)));
    PB_CHECK(service::run_to_end(engine, {}));
    PB_CHECK(done);
    return engine.reset_prefix_cache();
}

host::Settings changed_settings(const config::PluginChoice& before, const config::PluginChoice& after) {
    host::Settings out;
    for (const auto& [key, value] : after.settings)
        if (const auto old = before.settings.find(key); old == before.settings.end() || old->second != value)
            out.emplace(key, value);
    return out;
}

// What changed in the slots of the other engine since the next one was made: a predecessor came back, or a hot
// parameter got another value. A predecessor may be the same plugin with other settings that only a swap can change.
void follow_slots(engine::Engine& next, const config::EngineConfig& made_of, const config::EngineConfig& now,
                  const host::Registry& registry, host::Prober& prober) {
    for (const std::string& kind : engine::plugin_slots()) {
        const config::SlotInfo* const slot = config::find_slot(kind);
        const config::PluginChoice* const before = slot ? slot->of(made_of) : nullptr;
        const config::PluginChoice* const after = slot ? slot->of(now) : nullptr;
        if (!before || !after || *before == *after) continue;
        const engine::SwapSlot which = *engine::swap_slot(kind);
        if (before->plugin == after->plugin && next.control().configure(which, changed_settings(*before, *after)))
            continue;
        const host::SwapRecord record = next.control().swap({which, *after, registry, prober})->record();
        if (record.settled()) spdlog::warn("the new engine does not follow a change of the old one: {}", record.text());
    }
}

}  // namespace

config::EngineConfig with_model(config::EngineConfig config, const std::string& path) {
    config = execution::with_weights(std::move(config), path);
    config.model.plugin = "auto";
    config.model.tokenizer.clear();
    return config;
}

Result<NewEngine> ModelReplacement::make(const config::EngineConfig& config, const host::Registry& registry) try {
    PB_TRY(NewEngine out, p_.make(config, registry));
    if (const auto tried = try_out(*out.engine); !tried)
        return prefixed("its first request failed", tried.failure());
    for (const std::string& name : p_.gate.serving()->model.names) // under which clients know it
        if (std::ranges::find(out.model.names, name) == out.model.names.end()) out.model.names.push_back(name);
    return out;
} catch (const std::exception& e) { // a path that cannot be looked at; no memory
    return fail(e.what());
}

Result<host::SwapRecord> ModelReplacement::replace(const std::string& path, const host::Registry& registry,
                                                   const std::function<void()>& draining) {
    host::SwapRecord record;
    record.kind = record.to.kind = "model";
    record.to.name = path;
    const JournalState before = p_.journal.state();
    if (const SlotStatus* const slot = before.slot("model")) record.from = slot->identity;
    config::EngineConfig config; // with the plugins that are in the slots now
    if (!p_.engine.call([&](engine::Engine& now) { config = now.control().configuration(); }))
        return fail(StatusCode::kUnavailable, "the engine has stopped");
    auto made = make(with_model(config, path), registry);
    if (!made) {
        record = p_.engine.refuse_swap(record.to, "load", made.failure())->record();
        spdlog::warn("{}", record.text());
        return record;
    }
    auto next = std::make_shared<Serving>(Serving{std::move(made->model), made->engine->facts()});
    for (const host::Identity& part : next->facts.plugins)
        if (part.kind == "model")
            record.to = {"model", path, part.version, part.sha256, part.build, part.path, part.name};
    spdlog::info("swap model: {} is loaded, and takes over when the requests that run have finished", path);
    const uint64_t closed_ns = made->engine->clock().now_ns();
    ClosedGate gate(p_.gate);
    draining();
    const auto first = [&](engine::Engine& engine, engine::Engine& replaced, uint64_t step) {
        p_.taken_over(engine, next->model);
        follow_slots(engine, config, replaced.control().configuration(), registry, prober_);
        record.step = step + 1;
        record.time_ns = engine.clock().now_ns();
        record.pause_ns = record.time_ns - closed_ns;
        engine.control().take_over(step, record);
    };
    const auto done = p_.engine.replace(std::move(made->engine), first);
    if (!done) return done.failure();
    gate.open_for(next);
    record.state = host::SwapState::kCommitted;
    record.end_step = record.step;
    return record;
}

}  // namespace patchbay::serve
