// Stop strings over streamed text: they may lie across tokens. Text that could still become one is held back.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::engine {

class StopMatcher {
  public:
    enum class Keep { kBefore, kIncluding }; // of the text, when a stop string matches

    StopMatcher(const std::vector<std::string>& stops, Keep keep); // none of them empty

    // Adds text; returns what may be shown now. After a match everything is ignored. may_end: whether a stop string
    // may end in this text; one that begins in it may end later in any case. Takes a few operations for each byte and
    // stop string, whatever was held back.
    std::string add(std::string_view text, bool may_end = true);
    std::string flush();                              // what was held back, when the output ends without a match
    const std::string& matched() const { return matched_; } // empty: none yet

  private:
    struct Stop { // Knuth, Morris and Pratt 1977
        explicit Stop(const std::string& text);
        uint32_t after(uint32_t begun, char next) const;

        std::string text;
        std::vector<uint32_t> borders; // of its first n bytes: how many of the last ones are also its first ones
    };
    void match(std::string_view text, bool may_end);

    std::shared_ptr<const std::vector<Stop>> stops_; // copies of an output share them
    std::vector<uint32_t> begun_;                    // by stop: as many of its first bytes end the text
    Keep keep_;
    std::string held_, matched_;
};

}  // namespace patchbay::engine
