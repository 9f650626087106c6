#include "execution/start_ranks.hpp"

#include <unistd.h>

#include "config/load.hpp"
#include "config/show.hpp"
#include "parallel/address.hpp"

namespace patchbay::execution {

Result<OtherRanks> start_ranks(const config::EngineConfig& c, const host::Registry& registry,
                               const pb_device_info& device, parallel::World* world) {
    OtherRanks out;
    constexpr uint64_t kConnectMs = 4'000, kConnectOwnMs = 60'000; // once all ranks have begun to
    const uint32_t size = c.engine.tensor_parallel_size;
    const auto alone = [&] { return world ? world->check_alone() : parallel::World().check_alone(); };
    if (size == 1) {
        PB_CHECK(alone());
        return out;
    }
    if (!device.computes) {
        if (!alone())
            return fail(StatusCode::kInvalid,
                        "device '" + c.device.plugin + "' computes nothing, so its ranks are all in one process: "
                        "start it without mpirun or srun");
        out.simulated = std::make_unique<runner::SimulatedRanks>(size);
        return out;
    }
    parallel::World own;
    const std::string visible_by = device.visible_by;
    PB_TRY(auto hub, (world ? *world : own).ranks(size, c.parallel, visible_by));
    parallel::Begin begin;
    begin.configuration = config::show_yaml(config::document_of(c, registry));
    for (const auto& folder : registry.folders()) begin.plugin_dirs.push_back(folder.string());
    begin.connect_ms = visible_by.empty() ? kConnectMs : kConnectOwnMs; // devices look for every way between them
    PB_TRY(out.group, parallel::Group::begin(std::move(hub), begin));
    return out;
}

std::vector<std::string> OtherRanks::names(uint32_t count) const {
    std::vector<std::string> out = {parallel::host_name() + " (pid " + std::to_string(getpid()) + ")"};
    if (!group) return out;
    out.resize(count);
    for (const parallel::RankInfo& rank : group->ranks())
        out[rank.rank] = rank.host + " (pid " + std::to_string(rank.pid) + ")";
    return out;
}

}  // namespace patchbay::execution
