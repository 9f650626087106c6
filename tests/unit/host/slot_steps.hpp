// What a boundary and the end of a step do with a slot that is alone, for tests of parts that have one.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "host/slot.hpp"

namespace patchbay::host::testing {

// Lets the next in line in, if it is due. Nothing where nothing happened.
inline std::optional<SwapRecord> exchange(
    Slot& slot, uint64_t step, uint32_t probation_steps, const Greet& greet = [](const Component&) {}) {
    if (slot.due() != uint64_t{0}) return std::nullopt;
    slot.take();
    return enter(slot, step, probation_steps, 0, greet);
}

// Puts a component of this name on probation, in a slot for which none is in line.
inline std::shared_ptr<Swap> put_on_probation(
    Slot& slot, std::unique_ptr<Component> next, const std::string& kind, const std::string& name, uint64_t step = 1,
    uint32_t probation_steps = 100, const Greet& greet = [](const Component&) {}) {
    Identity identity;
    identity.kind = kind;
    identity.name = name;
    auto swap = slot.line().prepare(std::move(next), std::move(identity));
    slot.line().post(swap);
    exchange(slot, step, probation_steps, greet);
    return swap;
}

// A step in which the current one did well: the record if that was the last of its probation.
inline std::optional<SwapRecord> pass(Slot& slot, uint64_t step) {
    if (!slot.previous()) return std::nullopt;
    slot.count_step();
    return slot.steps_left() > 0 ? std::nullopt : std::optional(slot.commit(step));
}

}  // namespace patchbay::host::testing
