// `patchbay top`: a live view of a running engine in a terminal, or as plain text. Used by the command of that name.
#pragma once
#include <chrono>
#include <iosfwd>

#include "base/result.hpp"
#include "top/engine_link.hpp"

namespace patchbay::top {

struct TopOptions {
    Source source;
    std::chrono::milliseconds interval{1000};
    enum class Output { kLive, kPlain, kOnce } output = Output::kLive; // plain: both pages again and again
};

// out: for plain text. Ends at the key q, at SIGINT or SIGTERM. The failure: the engine cannot be reached at first; of
// one look, ever.
Result<> run_top(const TopOptions&, std::ostream& out);

}  // namespace patchbay::top
