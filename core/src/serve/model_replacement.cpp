#include "serve/model_replacement.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

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

}  // namespace

config::EngineConfig with_model(config::EngineConfig config, const std::string& path) {
    config = execution::with_weights(std::move(config), path);
    config.model.plugin = "auto";
    config.model.tokenizer.clear();
    return config;
}

// With the plugins that are in the slots now.
Result<NewEngine> ModelReplacement::make(const std::string& path, const host::Registry& registry) try {
    config::EngineConfig config;
    if (!p_.engine.call([&](engine::Engine& now) { config = now.configuration(); }))
        return fail(StatusCode::kUnavailable, "the engine has stopped");
    PB_TRY(NewEngine out, p_.make(with_model(std::move(config), path), registry));
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
    auto made = make(path, registry);
    if (!made) {
        record = p_.engine.refuse_swap(record.to, "load", made.error())->record();
        spdlog::warn("{}", record.text());
        return record;
    }
    auto next = std::make_shared<Serving>(Serving{std::move(made->model), made->engine->facts()});
    for (const host::Identity& part : next->facts.plugins)
        if (part.kind == "model") record.to = {"model", path, part.version, part.sha256, part.build, part.path};
    spdlog::info("swap model: {} is loaded, and takes over when the requests that run have finished", path);
    const uint64_t closed_ns = made->engine->clock().now_ns();
    ClosedGate gate(p_.gate);
    draining();
    const auto done = p_.engine.replace(std::move(made->engine), [&](engine::Engine& engine, uint64_t step) {
        p_.taken_over(engine, next->model);
        record.step = step + 1;
        record.time_ns = engine.clock().now_ns();
        record.pause_ns = record.time_ns - closed_ns;
        engine.take_over(step, record);
    });
    if (!done) return done.failure();
    gate.open_for(next);
    record.state = host::SwapState::kCommitted;
    record.end_step = record.step;
    return record;
}

}  // namespace patchbay::serve
