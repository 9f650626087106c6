#include "cli/token_ids.hpp"

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay::cli {

Result<std::vector<text::TokenId>> read_token_ids(std::string_view list) {
    constexpr std::string_view kBetween = " \t\r\n,[]";
    std::vector<text::TokenId> out;
    for (size_t at = list.find_first_not_of(kBetween); at != list.npos; at = list.find_first_not_of(kBetween, at)) {
        const std::string_view word = list.substr(at, std::min(list.find_first_of(kBetween, at), list.size()) - at);
        const auto id = parse_number<text::TokenId>(word);
        if (!id || *id < 0) return invalid("got '" + printable(word, 40) + "', expected token ids such as 15,27,3");
        out.push_back(*id);
        at += word.size();
    }
    if (out.empty()) return invalid("no token id, expected some such as 15,27,3");
    return out;
}

CLI::Validator token_ids() {
    return CLI::Validator(
        [](std::string& text) {
            const auto ids = read_token_ids(text);
            return ids ? std::string() : ids.error();
        },
        "");
}

}  // namespace patchbay::cli
