// The regular expressions of tokenizer files, on PCRE2. They are written for Oniguruma (Ruby syntax, Unicode classes):
// what the two read alike is taken, what PCRE2 would read differently is translated or refused.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace patchbay::text {

struct Span { // bytes of a text
    size_t begin, end;
};

class Regex {
  public:
    enum class Syntax { kPattern, kLiteral };
    static Result<Regex> compile(const std::string& pattern, Syntax);

    struct FreeMatch {
        void operator()(pcre2_real_match_data_8*) const;
    };
    using Scratch = std::unique_ptr<pcre2_real_match_data_8, FreeMatch>; // of one thread
    Scratch scratch() const;

    // Appends all matches from left to right. text: valid UTF-8. A match that exceeds the limits on backtracking ends
    // the search, as if nothing more matched: a hostile pattern costs bounded time.
    void find_all(std::string_view text, const Scratch&, std::vector<Span>& out) const;

  private:
    struct FreeCode {
        void operator()(pcre2_real_code_8*) const;
    };
    explicit Regex(pcre2_real_code_8* code) : code_(code) {}
    std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

}  // namespace patchbay::text
