#include "config/slots.hpp"

namespace patchbay::config {
namespace {

using C = EngineConfig;

const std::vector<SlotInfo>& all() {
    static const std::vector<SlotInfo> slots = {
        {"scheduler", &C::scheduler, nullptr, "which requests run in a step, with how many tokens"},
        {"sampler", &C::sampler, nullptr, "turns a row of logits into a token"},
        {"attention", &C::attention, nullptr, "KV layout and attention of a layer"},
        {"device", &C::device, nullptr, "memory and the ops that models are written in"},
        {"proposer", nullptr, &C::proposer, "drafts tokens for speculative decoding; none: no speculation"},
        {"kv_policy", nullptr, &C::kv_policy,
         "which cached page is evicted next; none: the one unused the longest, by the host itself"},
    };
    return slots;
}

}  // namespace

const PluginChoice* SlotInfo::of(const EngineConfig& c) const {
    if (choice) return &(c.*choice);
    return c.*optional_choice ? &*(c.*optional_choice) : nullptr;
}

std::span<const SlotInfo> slots() { return all(); }

const SlotInfo* find_slot(std::string_view kind) {
    for (const SlotInfo& slot : all())
        if (slot.kind == kind) return &slot;
    return nullptr;
}

}  // namespace patchbay::config
