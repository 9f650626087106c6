#include "text/unigram.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "text/characters.hpp"

namespace patchbay::text {
namespace {

constexpr int32_t kNowhere = -1, kUnknown = -1;

template <class Sum>
struct Step { // the best way that ends at a position
    Sum sum = 0;
    int32_t from = kNowhere;
    int32_t piece = kUnknown;
};

}  // namespace

Unigram::Unigram(Parts parts) : unk_(parts.unk), bytes_(parts.bytes), unk_score_(parts.unk_score), sums_(parts.sums) {
    std::vector<std::pair<std::string, int32_t>> places;
    for (const Piece& piece : parts.pieces) {
        places.emplace_back(piece.text, static_cast<int32_t>(ids_.size()));
        scores_.push_back(piece.score);
        ids_.push_back(piece.id);
    }
    trie_ = PieceTrie(std::move(places));
    std::vector<TokenId> way;
    for (const Piece& piece : parts.pieces) {
        way.clear();
        encode(piece.text, way);
        if (way.size() == 1 && way[0] == piece.id) words_.add(piece.text, piece.id);
    }
}

void Unigram::encode(std::string_view word, std::vector<TokenId>& out) const {
    constexpr size_t kMaxWordBytes = 16u << 20; // bytes: bounds the memory for one word
    if (const auto whole = words_.find(word)) return out.push_back(*whole);
    while (!word.empty()) {
        size_t end = std::min(word.size(), kMaxWordBytes);
        while (end < word.size() && continues_character(word[end])) --end;
        if (sums_ == Sums::kFloat)
            best_way<float>(word.substr(0, end), out);
        else
            best_way<double>(word.substr(0, end), out);
        word.remove_prefix(end);
    }
}

template <class Sum>
void Unigram::best_way(std::string_view word, std::vector<TokenId>& out) const {
    std::vector<Step<Sum>> steps(word.size() + 1);
    const auto offer = [&steps](size_t end, auto sum, size_t from, int32_t piece) {
        auto& at = steps[end];
        if (at.from == kNowhere || sum > at.sum) at = {static_cast<Sum>(sum), static_cast<int32_t>(from), piece};
    };
    for (size_t from = 0; from < word.size();) {
        const Sum so_far = steps[from].sum;
        const size_t character = from + character_length(word[from]);
        bool spelled = false; // the character alone
        uint32_t node = 0;
        for (size_t end = from; end < word.size();) {
            node = trie_.child(node, word[end++]);
            if (node == 0) break;
            const int32_t piece = trie_.value(node);
            if (piece == PieceTrie::kNone) continue;
            offer(end, scores_[static_cast<size_t>(piece)] + so_far, from, piece);
            spelled |= end == character;
        }
        if (!spelled) offer(character, static_cast<Sum>(unk_score_) + so_far, from, kUnknown);
        from = character;
    }
    std::vector<size_t> ends;
    for (size_t end = word.size(); end > 0; end = static_cast<size_t>(steps[end].from)) ends.push_back(end);
    std::reverse(ends.begin(), ends.end());
    size_t begin = 0, run = 0; // run: where the unknown characters before `begin` start
    for (const size_t end : ends) {
        if (steps[end].piece != kUnknown) {
            append_unknown(word.substr(run, begin - run), out);
            out.push_back(ids_[static_cast<size_t>(steps[end].piece)]);
            run = end;
        }
        begin = end;
    }
    append_unknown(word.substr(run), out);
}

void Unigram::append_unknown(std::string_view run, std::vector<TokenId>& out) const {
    if (run.empty()) return;
    const auto token = [&](char byte) { return (*bytes_)[static_cast<unsigned char>(byte)]; };
    if (bytes_ && std::all_of(run.begin(), run.end(), [&](char c) { return token(c) != kNoToken; }))
        for (const char c : run) out.push_back(token(c));
    else
        out.push_back(unk_);
}

}  // namespace patchbay::text
