#include "service/engine_replacement.hpp"

#include <utility>

namespace patchbay::service {

void EngineReplacement::begin(Engine next, First first) {
    next_ = std::move(next);
    first_ = std::move(first);
}

EngineReplacement::First EngineReplacement::switch_over() {
    replaced_ = std::exchange(current_, next_);
    return std::exchange(first_, nullptr);
}

void EngineReplacement::cancel() {
    next_.reset();
    first_ = nullptr;
}

EngineReplacement::Engine EngineReplacement::release_replaced() { return std::exchange(replaced_, nullptr); }

}  // namespace patchbay::service
