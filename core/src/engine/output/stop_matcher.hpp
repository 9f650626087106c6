// Stop strings over streamed text: they may lie across tokens. Text that could still become one is held back.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::engine {

class StopMatcher {
  public:
    enum class Keep { kBefore, kIncluding }; // of the text, when a stop string matches

    StopMatcher(std::vector<std::string> stops, Keep keep) : stops_(std::move(stops)), keep_(keep) {}

    // Adds text; returns what may be shown now. After a match everything is ignored. may_end: whether a stop string
    // may end in this text; one that begins in it may end later in any case.
    std::string add(std::string_view text, bool may_end = true);
    std::string flush();                              // what was held back, when the output ends without a match
    const std::string& matched() const { return matched_; } // empty: none yet

  private:
    std::vector<std::string> stops_;
    Keep keep_;
    std::string held_, matched_;
    size_t too_early_ = 0; // bytes of held_ in which no stop string may end
};

}  // namespace patchbay::engine
