// The slots whose component can be exchanged while the engine runs, by the words that YAML, command line and admin
// address use.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::engine {

enum class SwapSlot { kScheduler, kSampler, kProposer, kKvPolicy, kAttention };

inline constexpr std::array<std::string_view, 5> kSwapSlots = {"scheduler", "sampler", "proposer", "kv_policy",
                                                            "attention"};

constexpr std::string_view name_of(SwapSlot slot) { return kSwapSlots[static_cast<size_t>(slot)]; }

inline std::optional<SwapSlot> swap_slot(std::string_view name) { // nullopt: there is no such slot
    for (size_t i = 0; i < kSwapSlots.size(); ++i)
        if (kSwapSlots[i] == name) return static_cast<SwapSlot>(i);
    return std::nullopt;
}

inline std::vector<std::string> swap_slots() { return {kSwapSlots.begin(), kSwapSlots.end()}; }

inline std::string expected_swap_slots() { // "scheduler, sampler, …"
    std::string out;
    for (size_t i = 0; i < kSwapSlots.size(); ++i)
        out += (i == 0 ? "" : i + 1 < kSwapSlots.size() ? ", " : " or ") + std::string(kSwapSlots[i]);
    return out;
}

}  // namespace patchbay::engine
