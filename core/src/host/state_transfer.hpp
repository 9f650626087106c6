// What a component knows goes over to its successor: saved by one, loaded by the other.
#pragma once
#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "host/component.hpp"

namespace patchbay::host {

// What becomes of a swap whose newcomer cannot read what its predecessor would save.
enum class UnreadState { kStartsEmpty, kRefuses };

constexpr size_t kMaxState = 1 << 20; // bytes

// Between two steps. bytes: empty, with room for what is saved. A failure has a phase, "save" or "load", and leaves
// `from` as it was.
Result<> transfer_state(const Component& from, Component& to, UnreadState, std::string& bytes, std::string& phase);

}  // namespace patchbay::host
