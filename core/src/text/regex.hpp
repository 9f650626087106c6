// The regular expressions of tokenizer files, on PCRE2. They are written for Oniguruma (Ruby syntax, Unicode classes):
// syntax with the same description in both is taken; what PCRE2 would read differently is translated or refused.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace patchbay::text {

struct Span { // bytes of a text
    size_t begin, end;
};

class Regex {
  public:
    static Result<Regex> compile(const std::string& pattern);

    struct FreeMatch {
        void operator()(pcre2_real_match_data_8*) const;
    };
    struct FreeContext {
        void operator()(pcre2_real_match_context_8*) const;
    };
    struct Scratch { // of one thread
        std::unique_ptr<pcre2_real_match_data_8, FreeMatch> data;
        std::unique_ptr<pcre2_real_match_context_8, FreeContext> limits;
    };
    Scratch scratch() const;

    // Appends all matches from left to right. text: valid UTF-8. A search that exceeds its budget ends as if
    // nothing more matched: a hostile pattern costs bounded time, which depends on pattern and text alone.
    void find_all(std::string_view text, const Scratch&, std::vector<Span>& out) const;

  private:
    class Search;
    struct FreeCode {
        void operator()(pcre2_real_code_8*) const;
    };
    Regex() = default;
    std::unique_ptr<pcre2_real_code_8, FreeCode> code_, metered_;
};

}  // namespace patchbay::text
