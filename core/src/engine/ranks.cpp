// The engine's other ranks: started before the model is loaded, told every batch, and asked when a step fails.
#include <unistd.h>

#include "config/check_file.hpp"
#include "engine/state.hpp"
#include "parallel/address.hpp"
#include "parallel/world.hpp"

namespace patchbay::engine {

Result<> Engine::State::start_ranks(const config::EngineConfig& c, const host::Registry& registry,
                                    const pb_device_info& device, parallel::World* world) {
    constexpr uint64_t kConnectMs = 4'000, kConnectOwnMs = 60'000; // once all ranks have begun to
    const uint32_t size = c.engine.tensor_parallel_size;
    if (size == 1) return world ? world->check_alone() : parallel::World().check_alone();
    if (facts.simulated) {
        if (!(world ? world->check_alone() : parallel::World().check_alone()))
            return fail("device '" + c.device.plugin + "' computes nothing, so its ranks are all in one process: "
                        "start it without mpirun or srun");
        simulated_ranks = std::make_unique<runner::SimulatedRanks>(size);
        return {};
    }
    parallel::World own;
    const std::string visible_by = device.visible_by;
    PB_TRY(auto hub, (world ? *world : own).ranks(size, c.parallel, visible_by));
    parallel::Begin begin;
    begin.configuration = config::show_yaml(config::document_of(c, registry));
    for (const auto& folder : registry.folders()) begin.plugin_dirs.push_back(folder.string());
    begin.connect_ms = visible_by.empty() ? kConnectMs : kConnectOwnMs; // devices look for every way between them
    PB_TRY(group, parallel::Group::begin(std::move(hub), begin));
    return {};
}

// The runner, as all ranks load theirs.
Result<> Engine::State::load(const config::EngineConfig& c, ModelParts& parts) {
    if (group) PB_CHECK(group->check_equal(parts.facts()));
    runner::Ranks* ranks = simulated_ranks.get();
    if (group) ranks = group.get();
    auto made = load_runner(c, parts, ranks, clock, draft_model ? draft_model->guest() : nullptr);
    if (!made) return fail(group ? group->known_cause(made.error()) : made.error());
    runner = *std::move(made);
    return group ? group->loaded() : Result<>();
}

void Engine::State::describe_ranks() {
    facts.tensor_parallel_size = settings.tensor_parallel_size;
    facts.ranks = {parallel::host_name() + " (pid " + std::to_string(getpid()) + ")"};
    if (!group) return;
    facts.ranks.resize(settings.tensor_parallel_size);
    for (const parallel::RankInfo& rank : group->ranks())
        facts.ranks[rank.rank] = rank.host + " (pid " + std::to_string(rank.pid) + ")";
}

Result<> Engine::State::pass() {
    if (pass_samples()) {
        PB_TRY(on_device, runner->forward(batch, sample_call()));
    } else {
        PB_TRY(logits, runner->forward(batch));
    }
    return {};
}

Result<> Engine::State::forward() {
    if (!group) return pass();
    const auto sent = group->broadcast(batch_rows, kv->copies(), clock);
    if (!sent) return fail(group->cause(sent.error()));
    report.broadcast_bytes = group->latest().bytes;
    report.broadcast_ns = group->latest().ns;
    const auto done = pass();
    return done ? done : Result<>(fail(group->cause(done.error())));
}

}  // namespace patchbay::engine
