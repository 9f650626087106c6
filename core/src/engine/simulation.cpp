#include "engine/simulation.hpp"

#include "base/thread_pool.hpp"
#include "config/engine_config.hpp"
#include "execution/load_model.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

Result<std::unique_ptr<Clock>> clock_for(const config::EngineConfig& c, const host::Registry& registry) {
    ThreadPool pool(1);
    const host::Registry allowed = c.allowed_plugins ? registry.restricted_to(*c.allowed_plugins) : registry;
    PB_TRY(const auto device, allowed.device(c.device.plugin, c.device.settings, {&pool.service(), nullptr, nullptr}));
    PB_TRY(const pb_device_info info, execution::info_of(device));
    if (info.computes) return std::unique_ptr<Clock>(std::make_unique<RealClock>());
    return std::unique_ptr<Clock>(std::make_unique<VirtualClock>());
}

}  // namespace patchbay::engine
