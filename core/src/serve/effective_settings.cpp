#include "serve/effective_settings.hpp"

namespace patchbay::serve {
namespace {

using config::AsyncScheduling;

}  // namespace

std::string model_plugin(const engine::EngineFacts& facts) {
    for (const host::Identity& p : facts.plugins)
        if (p.kind == "model") return p.name;
    return {};
}

std::vector<EffectiveSetting> effective_settings(const config::EngineConfig& c, const engine::EngineFacts& facts,
                                                 const JournalState& journal, const engine::StepReport* last) {
    std::vector<EffectiveSetting> out;
    const auto differs = [&](const char* key, std::string requested, std::string effective, std::string reason) {
        out.push_back({key, std::move(requested), std::move(effective), std::move(reason)});
    };
    const config::EngineSettings& e = c.engine;
    if (c.model.plugin == "auto")
        differs("model.plugin", "auto", model_plugin(facts), "serves " + facts.model.architecture);
    if (c.model.dtype == config::DType::kAuto)
        differs("model.dtype", "auto", facts.model.weight_dtype, "of the checkpoint");
    if (e.max_model_len == 0)
        differs("engine.max_model_len", "0", std::to_string(facts.max_model_len), "what model and KV cache reach");
    if (e.num_blocks == 0)
        differs("engine.num_blocks", "0", std::to_string(facts.kv.num_blocks),
                e.gpu_memory_utilization > 0 ? "by gpu_memory_utilization" : "by kv_cache_memory");
    if (e.kv_cache_dtype == config::KvDType::kAuto)
        differs("engine.kv_cache_dtype", "auto", facts.kv.dtype, "as the weights");
    if (e.threads == 0)
        differs("engine.threads", "0", std::to_string(facts.threads), "the cores that this process may use");
    constexpr std::string_view kOff = "off: ";
    if (e.enable_prefix_caching && facts.kv.prefix_caching.starts_with(kOff))
        differs("engine.enable_prefix_caching", "true", "false", facts.kv.prefix_caching.substr(kOff.size()));
    if (e.async_scheduling != AsyncScheduling::kOff && last && !last->sync_reason.empty())
        differs("engine.async_scheduling", e.async_scheduling == AsyncScheduling::kOn ? "on" : "auto", "off",
                std::string(last->sync_reason) + ", at the latest step");
    std::vector<std::pair<const char*, std::string>> swappable = {{"scheduler", c.scheduler.plugin},
                                                                  {"sampler", c.sampler.plugin},
                                                                  {"attention", c.attention.plugin}};
    if (c.proposer) swappable.emplace_back("proposer", c.proposer->plugin);
    if (c.kv_policy) swappable.emplace_back("kv_policy", c.kv_policy->plugin);
    for (const auto& [kind, requested] : swappable)
        if (const SlotStatus* slot = journal.slot(kind); slot && slot->identity.name != requested)
            differs(kind, requested, slot->identity.name, "swapped before step " + std::to_string(slot->since_step));
    const SlotStatus* const model = journal.slot("model");
    if (model && model->generation > 1 && model->identity.name != c.model.path)
        differs("model.path", c.model.path, model->identity.name,
                "swapped before step " + std::to_string(model->since_step));
    return out;
}

}  // namespace patchbay::serve
