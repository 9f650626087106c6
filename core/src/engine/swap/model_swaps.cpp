#include "engine/swap/model_swaps.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "engine/engine.hpp"
#include "engine/facts.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/placement/recomputation.hpp"
#include "engine/swap/swap_journal.hpp"
#include "execution/executor.hpp"
#include "execution/model_choice.hpp"
#include "execution/model_exchange.hpp"
#include "weights/loader.hpp"

namespace patchbay::engine {

ModelSwaps::ModelSwaps(const Parts& parts)
    : p_(parts), exchange_(parts.executor.model()), slot_("model", host::UnreadState::kStartsEmpty, parts.clock) {
    if (!exchange_) return;
    auto first = exchange_->give();
    host::Identity identity = host::Registry::identity(*first);
    if (!parts.config.model.path.empty()) identity.component = std::exchange(identity.name, parts.config.model.path);
    slot_.install(std::move(first), std::move(identity));
}

ModelSwaps::~ModelSwaps() {
    if (!exchange_) return;
    if (other_.weights) exchange_->release(*other_.weights);
    for (auto& [component, loaded] : waiting_) exchange_->release(*loaded.weights);
}

Result<> ModelSwaps::takes_swaps() const {
    if (!exchange_) return unsupported("what computes the steps has no model to exchange");
    if (p_.executor.tokens() != execution::TokenSource::kModel)
        return unsupported("the device computes nothing, so no weights are loaded");
    return {};
}

ModelSwaps::Opened ModelSwaps::open(const CandidateInputs& in, host::Identity& to) {
    const auto refuse = [](const std::string& phase, const Failure& why) {
        return Opened{{nullptr, phase, why}, std::nullopt, {}};
    };
    if (const auto taken = takes_swaps(); !taken) return refuse("find", taken.failure());
    const config::EngineConfig wanted = execution::with_weights(p_.config, in.choice.plugin);
    std::error_code unreadable;
    if (!std::filesystem::exists(wanted.model.path, unreadable))
        return refuse("find", unreadable ? fail(code_of_open(unreadable.value()), unreadable.message())
                                         : not_found("there is no such folder or file"));
    auto model = execution::choose_model(wanted, in.registry, execution::Numbers::kSome);
    if (!model) return refuse("find", model.failure());
    auto identity = weights::model_identity(wanted.model.path);
    if (!identity) return refuse("find", identity.failure());
    to.component = model->plugin;
    auto component = find_and_construct(*this, {{model->plugin, {}}, in.registry, in.prober, in.services}, to);
    return {std::move(component), *std::move(model), *std::move(identity)};
}

bool ModelSwaps::needs_new_engine(const CandidateInputs& in) {
    host::Identity to;
    to.kind = "model";
    const Opened opened = open(in, to);
    if (!opened.component) return false;
    const auto fits = exchange_->check(*opened.component.made, *opened.choice);
    return !fits && fits.code() == StatusCode::kUnsupported;
}

std::shared_ptr<host::Swap> ModelSwaps::prepare(const CandidateInputs& in, const runner::BetweenSteps& run) {
    host::Identity to;
    to.kind = "model";
    to.name = in.choice.plugin;
    const auto refuse = [&](const std::string& phase, const Failure& why) {
        return slot_.line().refuse(to, phase, why, in.transaction);
    };
    Opened opened = open(in, to);
    if (!opened.component) return refuse(opened.component.phase, opened.component.why);
    auto component = std::move(opened.component.made);
    const auto alive = std::make_shared<int>();
    run([&] { release_unused(); }); // which may be the room that these need
    auto loaded = exchange_->load(*component, *opened.choice, {in.choice.plugin, opened.identity}, run);
    if (!loaded) return refuse("load", loaded.failure());
    component->keep(alive);
    {
        const std::lock_guard lock(mutex_);
        waiting_.insert_or_assign(
            component.get(),
            Loaded{*std::move(loaded), opened.identity, execution::dtype_word(opened.choice->weights.dtype),
                   execution::position_length(opened.choice->config, p_.config.engine.max_model_len), alive});
    }
    return slot_.line().prepare(std::move(component), to, in.transaction);
}

void ModelSwaps::release_unused() {
    const std::lock_guard lock(mutex_);
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        if (!at->second.component.expired()) {
            ++at;
            continue;
        }
        exchange_->release(*at->second.weights);
        at = waiting_.erase(at);
    }
}

// `with` are then the weights that were in use.
Result<> ModelSwaps::exchange(const host::Component& to, Loaded& with) {
    ModelFacts now = p_.facts.model;
    now.weight_dtype = with.weights->form;
    now.weight_bytes = with.weights->bytes;
    now.work = with.weights->work;
    PB_CHECK(exchange_->use(to, *with.weights));
    std::swap(now.identity, with.identity);
    std::swap(now.dtype, with.dtype);
    std::swap(now.position_length, with.position_length);
    p_.facts.model = std::move(now);
    p_.recomputation.recompute_all();
    return {};
}

void ModelSwaps::enter() {
    {
        const std::lock_guard lock(mutex_);
        other_ = std::move(waiting_.extract(&slot_.current()).mapped());
    }
    used_ = exchange(slot_.current(), other_);
}

void ModelSwaps::commit() {
    exchange_->release(*other_.weights);
    other_ = {};
    release_unused();
}

bool ModelSwaps::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    if (used_)
        if (const auto back = exchange(*slot_.previous(), other_); !back) spdlog::error("model: {}", back.error());
    commit();
    p_.journal.note(slot_.roll_back(p_.context.step, phase, why));
    return true;
}

SwapPort::StepCall ModelSwaps::call_of(const StepUse& use) {
    return {"forward", use.planned, p_.context.report.calls.forward.model_forward};
}

}  // namespace patchbay::engine
