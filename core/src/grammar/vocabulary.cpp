#include "grammar/vocabulary.hpp"

#include <algorithm>

#include "text/detokenizer.hpp"

namespace patchbay::grammar {

TokenTree::TokenTree(const std::vector<std::string>& bytes_by_id) {
    std::vector<TokenId> order;
    for (size_t i = 0; i < bytes_by_id.size(); ++i)
        if (!bytes_by_id[i].empty()) order.push_back(static_cast<TokenId>(i));
    const auto text = [&](TokenId t) -> const std::string& { return bytes_by_id[static_cast<size_t>(t)]; };
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return text(a) < text(b); });

    std::vector<uint32_t> path; // from the root to the newest node
    const auto add = [&](uint8_t byte) {
        path.push_back(size());
        bytes_.push_back(byte);
        depths_.push_back(static_cast<uint16_t>(path.size() - 1));
        ends_.push_back(0);
        first_.push_back(static_cast<uint32_t>(ids_.size()));
        max_depth_ = std::max(max_depth_, static_cast<uint32_t>(path.size() - 1));
    };
    const auto back_to = [&](size_t depth) {
        for (; path.size() > depth; path.pop_back()) ends_[path.back()] = size();
    };
    add(0);
    std::string_view before;
    for (const TokenId t : order) {
        const std::string_view now = text(t);
        const auto differ = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
        const auto shared = static_cast<size_t>(differ.second - now.begin());
        back_to(shared + 1);
        for (const char c : now.substr(shared)) add(static_cast<uint8_t>(c));
        ids_.push_back(t);
        before = now;
    }
    back_to(0);
    first_.push_back(static_cast<uint32_t>(ids_.size()));
}

Vocabulary::Vocabulary(std::vector<std::string> later, std::vector<std::string> first)
    : later_(std::move(later)), first_(std::move(first)), tree_(later_) {
    if (!first_.empty()) first_tree_ = std::make_unique<const TokenTree>(first_);
}

std::shared_ptr<const Vocabulary> Vocabulary::of(const text::Tokenizer& tokenizer, uint32_t size,
                                                 std::span<const TokenId> end_tokens) {
    std::vector<std::string> later(size), first(size);
    bool differs = false;
    for (uint32_t i = 0; i < std::min(size, tokenizer.vocab_size()); ++i) {
        const auto id = static_cast<TokenId>(i);
        if (tokenizer.is_special(id) || std::ranges::find(end_tokens, id) != end_tokens.end()) continue;
        later[i] = tokenizer.token_bytes(id);
        text::DecodeState state;
        tokenizer.decode_next(state, id, first[i]);
        first[i] += state.bytes;
        for (const auto& held : state.steps) first[i] += held.text;
        differs = differs || first[i] != later[i];
    }
    if (!differs) first.clear();
    return std::make_shared<const Vocabulary>(std::move(later), std::move(first));
}

}  // namespace patchbay::grammar
