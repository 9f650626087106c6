#include "execution/ranked_exchange.hpp"

#include <utility>

#include "host/registry.hpp"

namespace patchbay::execution {
namespace {

using parallel::RankSwap;

RankSwap message(RankSwap::Slot slot, RankSwap::Verb verb, uint64_t candidate) {
    RankSwap out;
    out.slot = slot;
    out.verb = verb;
    out.candidate = candidate;
    return out;
}

RankSwap prepare(RankSwap::Slot slot, uint64_t candidate, const host::Component& c) {
    const host::Identity id = host::Registry::identity(c);
    RankSwap out = message(slot, RankSwap::Verb::kPrepare, candidate);
    out.plugin = id.name;
    out.library = id.path;
    out.sha256 = id.sha256;
    for (const auto& [key, value] : c.settings()) out.settings[key] = value;
    return out;
}

Result<> on_all(parallel::Group& group, RankSwap swap) {
    const RankSwap::Verb verb = swap.verb;
    PB_TRY(const uint64_t order, group.order(std::move(swap)));
    return group.done(order, verb);
}

}  // namespace

// ---- attention ----

uint64_t RankedAttention::candidate_of(const host::Component& c) {
    const std::lock_guard lock(mutex_);
    const auto at = numbers_.find(&c);
    return at == numbers_.end() ? 0 : at->second;
}

void RankedAttention::drop(const host::Component& c) {
    uint64_t candidate = 0;
    {
        const std::lock_guard lock(mutex_);
        candidate = numbers_.extract(&c).mapped();
    }
    (void)group_.order(message(RankSwap::Slot::kAttention, RankSwap::Verb::kDrop, candidate)); // else they are gone
}

Result<> RankedAttention::check(host::Component& c) {
    PB_CHECK(LocalAttention::check(c));
    uint64_t candidate = 0;
    {
        const std::lock_guard lock(mutex_);
        candidate = numbers_[&c] = ++candidates_;
    }
    c.keep(std::shared_ptr<void>(this, [this, &c](void*) { drop(c); }));
    return on_all(group_, prepare(RankSwap::Slot::kAttention, candidate, c));
}

Result<bool> RankedAttention::use(const host::Component& c) {
    const uint64_t candidate = candidate_of(c);
    const auto use_of = [](uint64_t n) { return message(RankSwap::Slot::kAttention, RankSwap::Verb::kUse, n); };
    const bool goes_back = runner_.attention().keeps(c);
    const Result<> theirs = on_all(group_, use_of(candidate));
    if (!theirs && goes_back) { // what it goes back from is destroyed soon, whatever has become of the other ranks
        (void)LocalAttention::use(c);
        current_ = candidate;
        return theirs.failure();
    }
    const Result<bool> ours = theirs ? LocalAttention::use(c) : Result<bool>(theirs.failure());
    if (ours) {
        current_ = candidate;
        return ours;
    }
    (void)on_all(group_, use_of(current_)); // which is bound still
    (void)group_.order(message(RankSwap::Slot::kAttention, RankSwap::Verb::kForget, 0));
    return ours;
}

void RankedAttention::forget() {
    (void)group_.order(message(RankSwap::Slot::kAttention, RankSwap::Verb::kForget, 0));
    LocalAttention::forget();
}

void RankedAttention::end() { // a candidate that is dropped then is bound nowhere
    forget();
    LocalAttention::end();
}

// ---- model ----

Result<std::unique_ptr<runner::LoadedWeights>> RankedModel::load(const host::Component& c, const ModelChoice& choice,
                                                                 const WeightFiles& files,
                                                                 const runner::BetweenSteps& run) {
    uint64_t candidate = 0;
    {
        const std::lock_guard lock(mutex_);
        candidate = ++candidates_;
    }
    RankSwap swap = prepare(RankSwap::Slot::kModel, candidate, c);
    swap.weights = files.path;
    swap.identity = files.identity;
    PB_TRY(const uint64_t order, group_.order(std::move(swap)));
    const auto drop = [&] {
        (void)group_.order(message(RankSwap::Slot::kModel, RankSwap::Verb::kDrop, candidate));
    };
    auto ours = [&] {
        try {
            return LocalModel::load(c, choice, files, run);
        } catch (...) { // as without memory
            drop();
            (void)group_.done(order, RankSwap::Verb::kPrepare);
            throw;
        }
    }();
    if (!ours) drop(); // the others then load no further
    const Result<> theirs = group_.done(order, RankSwap::Verb::kPrepare);
    if (!ours) return ours;
    if (theirs) {
        const std::lock_guard lock(mutex_);
        numbers_[ours->get()] = candidate;
        return ours;
    }
    drop();
    run([&] { LocalModel::release(**ours); });
    return theirs.failure();
}

Result<> RankedModel::use(const host::Component& c, runner::LoadedWeights& weights) {
    uint64_t candidate = 0;
    {
        const std::lock_guard lock(mutex_);
        candidate = numbers_.at(&weights);
    }
    const auto use_of = [](uint64_t n) { return message(RankSwap::Slot::kModel, RankSwap::Verb::kUse, n); };
    if (const Result<> theirs = on_all(group_, use_of(candidate)); !theirs) {
        (void)on_all(group_, use_of(current_));
        return theirs;
    }
    PB_CHECK(LocalModel::use(c, weights));
    const std::lock_guard lock(mutex_);
    numbers_[&weights] = std::exchange(current_, candidate);
    return {};
}

void RankedModel::release(runner::LoadedWeights& weights) {
    uint64_t candidate = 0;
    {
        const std::lock_guard lock(mutex_);
        candidate = numbers_.extract(&weights).mapped();
    }
    (void)group_.order(message(RankSwap::Slot::kModel, RankSwap::Verb::kDrop, candidate));
    LocalModel::release(weights);
}

}  // namespace patchbay::execution
