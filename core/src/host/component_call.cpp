#include "host/component_call.hpp"

#include <spdlog/spdlog.h>

#include <cstdlib>

namespace patchbay::host {

const bool kChecksCalls = [] {
    const char* const set = std::getenv("PATCHBAY_CHECK_CALLS");
    return set && std::string_view(set) == "1";
}();

void end_at_second_call(const char* component, std::string_view call, const CallRecord& first) {
    spdlog::critical("{}: {}() was called while another thread was in {}(): no object may be in two calls at once",
                     component, call, first.call);
    std::abort();
}

}  // namespace patchbay::host
