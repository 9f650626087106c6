// Regular expressions for tests, by PCRE2: std::regex takes seconds to compile, and longer to search the whole tree.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

class Pattern {
  public:
    explicit Pattern(const std::string& expression); // throws std::invalid_argument
    ~Pattern();

    bool found_in(std::string_view text) const;
    // Of the first match: [0] the whole of it, then its groups. Empty: there is none.
    std::vector<std::string> groups_in(std::string_view text) const;
    // Of all matches, one after the other.
    std::vector<std::vector<std::string>> all_in(std::string_view text) const;

  private:
    struct Compiled;
    std::unique_ptr<Compiled> compiled_;
};

}  // namespace patchbay
