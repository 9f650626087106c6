#include "execution/rank_swaps.hpp"

#include <exception>
#include <utility>

#include "base/refusals.hpp"
#include "execution/model_choice.hpp"
#include "host/library.hpp"
#include "parallel/group.hpp"

namespace patchbay::execution {

using parallel::RankSwap;

RankSwaps::RankSwaps(const Parts& parts)
    : p_(parts), first_attention_(p_.runner.attention().component()), first_model_(p_.runner.model().component()),
      thread_([this] { prepare_all(); }) {}

RankSwaps::~RankSwaps() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
    p_.runner.attention().end();
    for (auto& [number, model] : models_)
        if (model.weights) p_.runner.model_swap().release(*model.weights);
}

Result<> RankSwaps::perform(std::string_view message) {
    PB_TRY(RankSwap swap, parallel::read_swap(message));
    switch (swap.verb) {
        case RankSwap::Verb::kPrepare: {
            const std::lock_guard lock(mutex_);
            if (swap.slot == RankSwap::Slot::kModel) loading_[swap.candidate] = false;
            to_prepare_.push_back(std::move(swap));
            changed_.notify_one();
            return {};
        }
        case RankSwap::Verb::kUse:
            answer(swap, use(swap));
            return {};
        case RankSwap::Verb::kForget:
            p_.runner.attention().forget();
            return {};
        case RankSwap::Verb::kDrop:
            drop(swap);
            return {};
    }
    return {};
}

// A fault of the connection shows at the next message.
void RankSwaps::answer(const RankSwap& swap, const Result<>& done) {
    (void)p_.spoke.set(parallel::swap_key(swap.number, p_.rank), parallel::answer_to_swap(done));
}

void RankSwaps::prepare_all() {
    while (true) {
        RankSwap swap;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || !to_prepare_.empty(); });
            if (stopping_) return;
            swap = std::move(to_prepare_.front());
            to_prepare_.pop_front();
        }
        answer(swap, prepare(swap));
    }
}

Result<> RankSwaps::prepare(const RankSwap& swap) {
    try {
        return swap.slot == RankSwap::Slot::kModel ? prepare_model(swap) : prepare_attention(swap);
    } catch (const std::exception& e) { // as without memory
        const std::lock_guard lock(mutex_);
        if (swap.slot == RankSwap::Slot::kModel) loading_.erase(swap.candidate);
        return fail(e.what());
    }
}

Result<std::unique_ptr<host::Component>> RankSwaps::make(const RankSwap& swap, const char* kind) const {
    PB_TRY(auto library, host::Library::open(swap.library, swap.sha256));
    const pb_component* const type = library->find(kind, swap.plugin);
    if (!type) return not_found(swap.library + " has no " + kind + " '" + swap.plugin + "'");
    host::Settings settings;
    for (const auto& [key, value] : swap.settings) settings[key] = value;
    return host::Component::create(std::move(library), *type, settings, p_.services);
}

Result<> RankSwaps::prepare_attention(const RankSwap& swap) {
    PB_TRY(auto made, make(swap, "attention"));
    PB_CHECK(p_.runner.attention().check(*made));
    const std::lock_guard lock(mutex_);
    attentions_[swap.candidate] = std::move(made);
    return {};
}

Result<> RankSwaps::prepare_model(const RankSwap& swap) {
    bool refused = false; // once: that ends the loading, and then gives back what was loaded
    auto loaded = load(swap, [&](const std::function<void()>& f) {
        const std::lock_guard held(device_);
        if (!refused) {
            const std::lock_guard lock(mutex_);
            refused = stopping_ || loading_.at(swap.candidate);
            if (refused) return false;
        }
        f();
        return true;
    });
    const std::lock_guard held(device_);
    const std::lock_guard lock(mutex_);
    const bool dropped = loading_.extract(swap.candidate).mapped();
    if (!loaded) return loaded.failure();
    if (dropped) p_.runner.model_swap().release(*loaded->weights);
    else models_[swap.candidate] = *std::move(loaded);
    return {};
}

Result<RankSwaps::Model> RankSwaps::load(const RankSwap& swap, const runner::BetweenSteps& between_steps) {
    config::EngineConfig wanted = with_weights(p_.config, swap.weights);
    wanted.model.plugin = swap.plugin;
    PB_TRY(const ModelChoice choice, choose_model(wanted, p_.registry, Numbers::kSome));
    PB_TRY(const std::string identity, weights::model_identity(swap.weights));
    if (identity != swap.identity)
        return invalid(swap.weights + " is " + identity + " there, " + swap.identity + " on rank 0");
    PB_TRY(auto made, make(swap, "model"));
    const runner::ModelSwap& models = p_.runner.model_swap();
    PB_TRY(auto loaded, models.load_beside(*made, choice.config, choice.source, choice.weights, between_steps));
    return Model{std::move(made), std::move(loaded)};
}

Result<> RankSwaps::use(const RankSwap& swap) {
    return swap.slot == RankSwap::Slot::kModel ? use_model(swap.candidate) : use_attention(swap.candidate);
}

Result<> RankSwaps::use_attention(uint64_t candidate) {
    if (candidate == current_attention_) return {};
    const host::Component* to = &first_attention_;
    if (candidate > 0) {
        const std::lock_guard lock(mutex_);
        const auto at = attentions_.find(candidate);
        if (at == attentions_.end()) return not_found("there is no such candidate");
        to = at->second.get();
    }
    PB_CHECK(p_.runner.attention().use(*to));
    current_attention_ = candidate;
    return {};
}

Result<> RankSwaps::use_model(uint64_t candidate) {
    if (candidate == current_model_) return {};
    const std::lock_guard lock(mutex_);
    const auto at = models_.find(candidate);
    if (at == models_.end() || !at->second.weights) return not_found("there is no such candidate");
    p_.runner.model_swap().use(at->second.component ? *at->second.component : first_model_, *at->second.weights);
    models_[current_model_].weights = std::move(at->second.weights); // of what was in use
    current_model_ = candidate;
    return {};
}

void RankSwaps::drop(const RankSwap& swap) {
    const std::lock_guard lock(mutex_);
    if (swap.slot == RankSwap::Slot::kAttention) {
        if (swap.candidate != current_attention_) attentions_.erase(swap.candidate);
        return;
    }
    if (const auto on_its_way = loading_.find(swap.candidate); on_its_way != loading_.end()) {
        on_its_way->second = true;
        return;
    }
    const auto at = models_.find(swap.candidate);
    if (at == models_.end() || !at->second.weights) return;
    p_.runner.model_swap().release(*at->second.weights);
    models_.erase(at);
}

}  // namespace patchbay::execution
