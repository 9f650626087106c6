#include "execution/load_model.hpp"

#include <spdlog/spdlog.h>


namespace patchbay::execution {

Result<pb_device_info> info_of(const host::Device& device) {
    pb_device_info info = sized<pb_device_info>();
    PB_CHECK(device.checked<&pb_device::info>(&info));
    return info;
}

std::vector<parallel::Fact> ModelParts::facts() const {
    std::vector<parallel::Fact> out = {
        {"model", identity}, {"kv_cache_dtype", runner::text_of(model.kv_dtypes)}, {"isa", device_info.isa}};
    if (!device_info.host_memory) out.push_back({"device", device_info.name}); // a CPU's is what its host calls it
    for (const host::Component* part : {device.component.get(), component.component.get(), attention.component.get()}) {
        const host::Identity id = host::Registry::identity(*part);
        out.push_back({"plugin " + id.kind + " '" + id.name + "'", id.sha256});
    }
    return out;
}

Result<ModelParts> choose_parts(const config::EngineConfig& c, const host::Registry& registry,
                                const host::Services& services) {
    PB_TRY(auto device, registry.device(c.device.plugin, c.device.settings, services));
    PB_TRY(const pb_device_info info, info_of(device));
    const bool real = info.computes != 0;
    PB_TRY(ModelChoice model, choose_model(c, registry, real ? Numbers::kSome : Numbers::kNone));
    if (!model.note.empty()) spdlog::warn("{}: {}", c.model.path, model.note);
    std::string identity = "dummy";
    if (real && c.model.load_format != config::LoadFormat::kDummy) {
        PB_TRY(identity, weights::model_identity(c.model.path));
    }
    PB_TRY(auto component, registry.model(model.plugin, {}, services));
    PB_TRY(auto attention, registry.attention(c.attention.plugin, c.attention.settings, services));
    return ModelParts{info,
                      std::move(model),
                      std::move(identity),
                      std::move(device),
                      std::move(component),
                      std::move(attention)};
}

Result<std::unique_ptr<runner::ModelRunner>> load_runner(const config::EngineConfig& c, ModelParts& parts,
                                                         runner::Ranks* ranks, Clock& clock,
                                                         runner::DraftModel* draft, const host::Component* sampler) {
    runner::RunnerSettings r{c.engine};
    r.model_config = parts.model.config;
    r.weights = parts.model.weights;
    r.kv_dtypes = parts.model.kv_dtypes;
    r.device = c.device.plugin;
    r.ranks = ranks;
    r.sampler = sampler;
    auto runner = runner::ModelRunner::create(std::move(parts.device), std::move(parts.component),
                                              std::move(parts.attention), parts.model.source, r, clock, draft);
    // A model that refuses its configuration names the key; which file that is from is known here.
    const bool of_config = !runner && runner.error().find("': load_config: ") != std::string::npos;
    if (of_config && !c.model.path.empty()) return prefixed(c.model.path, runner.failure());
    return runner;
}

}  // namespace patchbay::execution
