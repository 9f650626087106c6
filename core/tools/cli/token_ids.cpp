#include "cli/token_ids.hpp"

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay::cli {

Result<std::vector<text::TokenId>> read_token_ids(std::string_view list) {
    constexpr std::string_view kSpace = " \t\r\n[]", kBetween = " \t\r\n[],";
    std::vector<text::TokenId> out;
    bool wants_id = true; // after a comma, and at the start
    for (size_t at = list.find_first_not_of(kSpace); at != list.npos; at = list.find_first_not_of(kSpace, at)) {
        if (list[at] == ',') {
            if (wants_id) return invalid("got a comma without a token id before it, expected some such as 15,27,3");
            wants_id = true;
            at += 1;
            continue;
        }
        const std::string_view word = list.substr(at, std::min(list.find_first_of(kBetween, at), list.size()) - at);
        const auto id = parse_number<text::TokenId>(word);
        if (!id || *id < 0) return invalid("got '" + printable(word, 40) + "', expected token ids such as 15,27,3");
        out.push_back(*id);
        wants_id = false;
        at += word.size();
    }
    if (out.empty()) return invalid("no token id, expected some such as 15,27,3");
    if (wants_id) return invalid("got a comma without a token id after it, expected some such as 15,27,3");
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
