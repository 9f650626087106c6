// Runs an automaton over bytes. A configuration is a set of (state, stack) pairs; stacks and configurations are
// interned, so that a known step costs one look-up for each byte. Interned values are kept as long as the machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.hpp"
#include "grammar/mask_budget.hpp"
#include "grammar/stacks.hpp"

namespace patchbay::grammar {

using ConfigId = uint32_t; // 0: dead, no text continues from there
inline constexpr ConfigId kDead = 0;

class Machine {
  public:
    struct Item {
        StateId state;
        StackId stack;
        auto operator<=>(const Item&) const = default;
    };

    // Above which it is exchanged for another one between masks; there is a fault at twice as much.
    static constexpr uint64_t kMaxBytes = 64u << 20;

    explicit Machine(const Automaton&);

    ConfigId of(Item);       // alone
    ConfigId after(StackId); // after the call at the top of the stack (not the bottom) has ended
    ConfigId step(ConfigId c, uint8_t byte) {
        const uint32_t known = next_[size_t{c} * classes_ + automaton_.class_of(byte)];
        return known != kUnknown ? known : compute(c, automaton_.class_of(byte));
    }
    std::span<const Item> kernel(ConfigId c) const { return span(configs_[c].kernel); } // as it was entered
    bool ends(ConfigId c) const { return configs_[c].ends; }                            // the bottom rule may end here
    bool goes_on(ConfigId c) const { return span(configs_[c].active).size() > 0; }      // some byte continues
    Item top(StackId s) const { return {stacks_[s].to, stacks_[s].parent}; }            // where a return leads
    // Of configurations of another machine, in place.
    void adopt(const Machine& other, std::span<ConfigId>);

    uint64_t bytes() const; // that it takes
    MaskBudget& budget() { return budget_; } // with a fault when a configuration or the work exceeds its limit

  private:
    static constexpr uint32_t kUnknown = UINT32_MAX;
    struct Part { // of items_
        uint32_t begin, end;
    };
    struct Config {
        Part kernel, active; // active: items of its closure that some byte continues
        bool ends;
    };
    std::span<const Item> span(Part p) const { return {items_.data() + p.begin, p.end - p.begin}; }
    ConfigId compute(ConfigId, uint32_t byte_class);
    ConfigId intern(std::vector<Item> kernel);
    StackId push(StateId to, StackId parent);

    const Automaton& automaton_;
    uint32_t classes_;
    std::vector<Item> items_;
    std::vector<Config> configs_;
    std::vector<uint32_t> next_; // (configs, classes)
    Stacks stacks_;
    std::unordered_multimap<uint64_t, ConfigId> config_ids_; // by hash of the kernel
    std::vector<ConfigId> after_;                            // by stack
    MaskBudget budget_;
};

}  // namespace patchbay::grammar
