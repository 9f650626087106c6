#include "pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <stdexcept>

namespace patchbay {

struct Pattern::Compiled {
    pcre2_code* code = nullptr;
    pcre2_match_data* match = nullptr;

    int search(std::string_view text, size_t from) const { // groups + 1; below 1: no match
        return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0, match, nullptr);
    }
    const size_t* bounds() const { return pcre2_get_ovector_pointer(match); } // begin and end of each group
    ~Compiled() {
        pcre2_match_data_free(match);
        pcre2_code_free(code);
    }
};

Pattern::Pattern(const std::string& expression) : compiled_(std::make_unique<Compiled>()) {
    int error = 0;
    size_t at = 0;
    compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), 0, &error, &at,
                                    nullptr);
    if (!compiled_->code) throw std::invalid_argument(expression + ": wrong at character " + std::to_string(at));
    pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE); // where it cannot, the same without
    compiled_->match = pcre2_match_data_create_from_pattern(compiled_->code, nullptr);
}

Pattern::~Pattern() = default;

bool Pattern::found_in(std::string_view text) const { return compiled_->search(text, 0) > 0; }

std::vector<std::string> Pattern::groups_in(std::string_view text) const {
    std::vector<std::string> out;
    const int count = compiled_->search(text, 0);
    for (int i = 0; i < count; ++i) {
        const size_t begin = compiled_->bounds()[2 * i], end = compiled_->bounds()[2 * i + 1];
        out.emplace_back(begin == PCRE2_UNSET ? "" : text.substr(begin, end - begin));
    }
    return out;
}

std::vector<std::vector<std::string>> Pattern::all_in(std::string_view text) const {
    std::vector<std::vector<std::string>> out;
    while (!text.empty()) {
        out.push_back(groups_in(text));
        if (out.back().empty()) {
            out.pop_back();
            break;
        }
        const size_t begin = compiled_->bounds()[0], end = compiled_->bounds()[1];
        text.remove_prefix(end > begin ? end : std::min(end + 1, text.size())); // never the same place again
    }
    return out;
}

}  // namespace patchbay
