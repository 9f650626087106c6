// The slots whose component can be exchanged while the engine runs, by the words that YAML, command line and admin
// address use.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::engine {

enum class SwapSlot { kScheduler, kSampler, kProposer, kKvPolicy, kAttention, kModel };

inline constexpr std::array<std::string_view, 6> kSwapSlots = {"scheduler", "sampler", "proposer", "kv_policy",
                                                            "attention", "model"};

constexpr std::string_view name_of(SwapSlot slot) { return kSwapSlots[static_cast<size_t>(slot)]; }

inline std::optional<SwapSlot> swap_slot(std::string_view name) { // nullopt: there is no such slot
    for (size_t i = 0; i < kSwapSlots.size(); ++i)
        if (kSwapSlots[i] == name) return static_cast<SwapSlot>(i);
    return std::nullopt;
}

inline std::vector<std::string> swap_slots() { return {kSwapSlots.begin(), kSwapSlots.end()}; }
inline std::vector<std::string> plugin_slots() { return {kSwapSlots.begin(), kSwapSlots.end() - 1}; } // not the model's

inline std::string one_of(const std::vector<std::string>& slots) { // "scheduler, sampler or proposer"
    std::string out;
    for (size_t i = 0; i < slots.size(); ++i) out += (i == 0 ? "" : i + 1 < slots.size() ? ", " : " or ") + slots[i];
    return out;
}

}  // namespace patchbay::engine
