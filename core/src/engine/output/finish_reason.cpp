#include "engine/request.hpp"

namespace patchbay::engine {

std::string_view name_of(FinishReason reason) {
    switch (reason) {
        case FinishReason::kNone: return "none";
        case FinishReason::kStop: return "stop";
        case FinishReason::kLength: return "length";
        case FinishReason::kAbort: return "abort";
        case FinishReason::kError: return "error";
    }
    return "?";
}

}  // namespace patchbay::engine
