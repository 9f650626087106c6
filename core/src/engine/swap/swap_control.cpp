#include "engine/swap/swap_control.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "engine/swap/candidate.hpp"
#include "engine/swap/model_swaps.hpp"
#include "engine/swap/together.hpp"
#include "engine/swap/transactions.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {
namespace {

const host::Registry& allowed_of(const config::EngineConfig& c, const host::Registry& all,
                                 std::optional<host::Registry>& keep) {
    if (!c.allowed_plugins) return all;
    return keep.emplace(all.restricted_to(*c.allowed_plugins));
}

runner::BetweenSteps between_steps_of(const SwapRequest& request) {
    if (request.between_steps) return request.between_steps;
    return [](const std::function<void()>& f) {
        f();
        return true;
    };
}

}  // namespace

std::shared_ptr<host::Swap> SwapControl::prepare(const SwapRequest& request, uint64_t transaction) {
    std::optional<host::Registry> keep;
    const host::Registry& registry = allowed_of(p_.config, request.registry, keep);
    const CandidateInputs inputs{request.choice, registry, request.prober, p_.services, transaction};
    SwapPort& slot_port = port(request.slot);
    try {
        if (request.slot != SwapSlot::kModel) return prepare_swap(slot_port, request.slot, inputs);
        return p_.model_swaps.prepare(inputs, between_steps_of(request));
    } catch (const std::exception& e) { // as without memory
        host::Identity to;
        to.kind = name_of(request.slot);
        to.name = request.choice.plugin;
        return slot_port.slot().line().refuse(to, "create", fail(e.what()), transaction);
    }
}

bool SwapControl::needs_new_engine(const SwapRequest& request) {
    std::optional<host::Registry> keep;
    const host::Registry& registry = allowed_of(p_.config, request.registry, keep);
    try {
        return p_.model_swaps.needs_new_engine({request.choice, registry, request.prober, p_.services});
    } catch (const std::exception&) { // which prepare() meets, too, and says
        return false;
    }
}

std::shared_ptr<host::Swap> SwapControl::refuse(const host::Identity& to, const std::string& phase,
                                                const Failure& why) {
    return port(*swap_slot(to.kind)).slot().line().refuse(to, phase, why);
}

void SwapControl::post(const std::shared_ptr<host::Swap>& swap, uint64_t not_before_ns) {
    const auto slot = swap_slot(swap->record().kind);
    port(*slot).slot().line().post(swap, not_before_ns);
}

std::vector<std::shared_ptr<host::Swap>> SwapControl::prepare_together(const std::vector<SwapRequest>& requests) {
    if (requests.size() == 1) return {prepare(requests.front())};
    const uint64_t number = p_.transactions.next_number();
    std::vector<std::shared_ptr<host::Swap>> out;
    std::optional<Failure> failed;
    for (const SwapRequest& r : requests) {
        host::Slot& slot = port(r.slot).slot();
        const auto refused = [&](const std::string& phase, const Failure& why) {
            host::Identity to;
            to.kind = name_of(r.slot);
            to.name = r.choice.plugin;
            return slot.line().refuse(to, phase, why, number);
        };
        const bool twice = std::ranges::count(requests, r.slot, &SwapRequest::slot) > 1;
        if (failed) out.push_back(refused(kTogether, *failed));
        else if (twice)
            out.push_back(refused("find", invalid("this slot is named twice, expected once in a transaction")));
        else out.push_back(prepare(r, number));
        const host::SwapRecord record = out.back()->record();
        if (!failed && record.settled()) failed = failed_by(record);
    }
    if (!failed) return out;
    for (size_t i = 0; i < requests.size(); ++i)
        port(requests[i].slot).slot().line().withdraw(out[i], kTogether, *failed);
    if (const auto model = std::ranges::find(requests, SwapSlot::kModel, &SwapRequest::slot); model != requests.end())
        between_steps_of(*model)([&] { p_.model_swaps.release_unused(); });
    return out;
}

void SwapControl::post_together(const std::vector<std::shared_ptr<host::Swap>>& swaps, uint64_t not_before_ns) {
    if (swaps.size() == 1) return post(swaps.front(), not_before_ns);
    std::vector<Transactions::Member> members;
    for (const auto& swap : swaps) {
        const host::SwapRecord r = swap->record();
        if (r.settled()) return; // all were refused
        members.push_back({&port(*swap_slot(r.kind)), swap});
    }
    if (!members.empty()) p_.transactions.post(std::move(members), not_before_ns);
}

}  // namespace patchbay::engine
