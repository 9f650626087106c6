#include "engine/speculation/draft_load.hpp"

#include <spdlog/spdlog.h>

#include "base/refusals.hpp"
#include "base/thread_pool.hpp"
#include "config/engine_config.hpp"
#include "config/load.hpp"
#include "execution/model_choice.hpp"
#include "runner/model_facts.hpp"
#include "weights/loader.hpp"

namespace patchbay::engine {

std::map<std::string, std::string> settings_of(const pb_runner_load& what) {
    std::map<std::string, std::string> out;
    for (uint32_t i = 0; i < what.setting_count; ++i)
        out[std::string(what.settings[i].key.data, what.settings[i].key.size)] =
            std::string(what.settings[i].value.data, what.settings[i].value.size);
    return out;
}

DraftLoad::DraftLoad(const Context& context) : context_(context) { form_.computes = context.computes; }

Result<> DraftLoad::check(const pb_runner_load& what) const {
    if (!context_) return invalid("a model is loaded in create() only");
    if (draft_) return unsupported("a model is loaded already, and more than one is not done");
    const config::EngineConfig& c = context_->config;
    if (const uint32_t ranks = c.engine.tensor_parallel_size; ranks > 1)
        return unsupported("models that draft are not split over ranks (tensor_parallel_size is " +
                           std::to_string(ranks) + ")");
    if (form_.computes) return {};
    const bool by_rates = c.speculative.rejection_sample_method == config::Verification::kSynthetic;
    if (!by_rates && !(what.has_simulated_acceptance && what.simulated_acceptance >= 0 &&
                       what.simulated_acceptance <= 1))
        return invalid("device '" + c.device.plugin +
                       "' computes nothing, so which drafts the model accepts has to be declared (set "
                       "simulated_acceptance, 0 to 1, or speculative.rejection_sample_method: synthetic)");
    if (const uint32_t paths = c.speculative.max_paths; paths > 1)
        return unsupported("speculative.max_paths is " + std::to_string(paths) + ", but on device '" +
                           c.device.plugin + "', which computes nothing, a model drafts one path (set 1)");
    return {};
}

Result<> DraftLoad::load(const pb_runner_load& what, pb_runner_facts& facts) {
    constexpr uint64_t kOwnNoise = 0x9E3779B97F4A7C15;
    PB_CHECK(check(what));
    const Context& c = *context_;
    const std::map<std::string, std::string> keys = settings_of(what);
    config::EngineConfig own = c.config;
    PB_TRY(own.model, config::model_settings(keys));
    own.engine.kv_cache_dtype_layers.clear(); // of the model's layers
    const auto numbers = form_.computes ? execution::Numbers::kSome : execution::Numbers::kNone;
    PB_TRY(execution::ModelChoice choice, execution::choose_model(own, c.registry, numbers));
    if (!choice.note.empty()) spdlog::warn("{}: {}", own.model.path, choice.note);
    identity_ = "dummy";
    if (form_.computes && own.model.load_format != config::LoadFormat::kDummy) {
        PB_TRY(identity_, weights::model_identity(own.model.path));
    }
    PB_TRY(host::Model model, c.registry.model(choice.plugin, {}, c.services));
    weights::FlatConfig with_target = choice.config;
    for (const auto& [key, value] : c.target) with_target["target." + key] = value;
    const auto facts_read = runner::read_facts(*model.component, with_target);
    if (!facts_read)
        return own.model.path.empty() ? facts_read.failure() : prefixed(own.model.path, facts_read.failure());
    form_.facts = *facts_read;
    form_.acceptance = what.simulated_acceptance;
    if (c.config.speculative.rejection_sample_method == config::Verification::kRejection) form_.noise = kOwnNoise;
    if (runner::is_head(*model.component)) form_.head_depth = model.call<&pb_draft_head::max_draft_depth>();
    choice.source.read_with(c.pool);
    draft_.emplace(runner::DraftModel{std::move(model), form_.facts, std::move(choice.config),
                                      std::move(choice.source), choice.weights, std::move(choice.kv_dtypes)});
    settings_ = keys;
    facts_ = {sizeof(pb_runner_facts), kDraftModel, form_.facts.vocab_size, form_.facts.hidden_size,
              form_.facts.layer_count, form_.facts.max_position, form_.computes ? 1u : 0u,
              form_.head_depth.value_or(0)};
    copy_out(&facts, facts_);
    return {};
}

}  // namespace patchbay::engine
