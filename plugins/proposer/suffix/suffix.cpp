// suffix - drafts what most often followed the last tokens, in the sequence itself and in past outputs.
#include <algorithm>
#include <unordered_map>

#include "patchbay/sdk/proposer.hpp"
#include "suffix_tree.hpp"

namespace {

using patchbay::suffix::Guess;
using patchbay::suffix::SuffixTree;

class Suffix {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("suffix_decoding_max_tree_depth", "24", 2, 256, "tokens",
                                 "longest run that is kept count of: match and guess together"),
        patchbay::param::integer("suffix_decoding_max_cached_requests", "0", 0, 1e6, "requests",
                                 "past requests whose outputs are looked at too; 0: none"),
        patchbay::param::integer("max_cached_tokens", "1000000", 1, 1e9, "tokens",
                                 "of those outputs; the oldest are forgotten"),
        patchbay::param::integer("max_tree_nodes", "16777216", 1, 1e9, "nodes",
                                 "of the trees of all sequences that run, likewise of past outputs; 100 bytes each"),
        patchbay::param::real("suffix_decoding_max_spec_factor", "1", 0, 256, nullptr,
                              "tokens guessed at most, for each token of the match; one always"),
        patchbay::param::real("suffix_decoding_min_token_prob", "0.1", 0, 1, nullptr,
                              "probability, by counts, that a chain of guesses has to keep")};

    explicit Suffix(const patchbay::Context& context)
        : depth_(context.get<uint32_t>("suffix_decoding_max_tree_depth")),
          max_cached_requests_(context.get<uint32_t>("suffix_decoding_max_cached_requests")),
          max_cached_tokens_(context.get<uint64_t>("max_cached_tokens")),
          max_nodes_(context.get<uint64_t>("max_tree_nodes")),
          spec_factor_(context.get<double>("suffix_decoding_max_spec_factor")),
          min_probability_(context.get<double>("suffix_decoding_min_token_prob")), past_(depth_),
          metrics_(context.host()) {}

    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const std::span<const int32_t> tokens = batch.tokens(i);
            const patchbay::suffix::Limits limits{batch.row(i).max_drafts, spec_factor_, min_probability_};
            if (tokens.empty() || limits.max_tokens == 0) continue;
            const SuffixTree& own = follow(batch.row(i).id, tokens);
            const SuffixTree* from = &own;
            Guess guess = own.guess(tokens, limits);
            if (past_.texts() > 0) {
                Guess other = past_.guess(tokens, limits);
                if (other.score > guess.score) {
                    guess = std::move(other);
                    from = &past_;
                    metrics_.add("suffix_past_request_drafts");
                }
            }
            metrics_.add("suffix_lookups");
            if (guess.tokens.empty()) continue;
            metrics_.add("suffix_matches");
            metrics_.add("suffix_match_tokens", guess.match);
            batch.propose(i, guess.tokens);
            for (const auto& branch : from->branches(tokens, guess, limits, batch.max_paths(i) - 1))
                batch.add_path(i, branch);
        }
    }

    void finished(uint64_t id) {
        const auto at = sequences_.find(id);
        if (at == sequences_.end()) return;
        const std::span<const int32_t> text = at->second.tree.latest();
        if (max_cached_requests_ > 0 && text.size() > at->second.prompt) remember(text.subspan(at->second.prompt));
        nodes_ -= at->second.tree.nodes();
        sequences_.erase(at);
    }

  private:
    struct Sequence {
        SuffixTree tree;
        size_t prompt; // its tokens: all but the first output
    };

    // Its tree, updated with its new tokens; without free nodes, as far as it was before.
    const SuffixTree& follow(uint64_t id, std::span<const int32_t> tokens) {
        const auto [at, is_new] = sequences_.try_emplace(id, Sequence{SuffixTree(depth_), tokens.size() - 1});
        SuffixTree& tree = at->second.tree;
        if (is_new) tree.begin_text();
        const std::span<const int32_t> known = tree.latest();
        if (known.size() > tokens.size() || (!known.empty() && known.back() != tokens[known.size() - 1])) {
            nodes_ -= tree.nodes();
            at->second = {SuffixTree(depth_), tokens.size() - 1}; // another sequence with that id
            tree.begin_text();
        }
        for (const int32_t token : tokens.subspan(tree.latest().size())) {
            if (nodes_ >= max_nodes_) break;
            const size_t before = tree.nodes();
            tree.append(token);
            nodes_ += tree.nodes() - before;
        }
        return tree;
    }

    void remember(std::span<const int32_t> output) {
        if (output.size() > max_cached_tokens_) output = output.last(max_cached_tokens_);
        past_.begin_text();
        for (const int32_t token : output) past_.append(token);
        while (past_.texts() > 1 && (past_.texts() > max_cached_requests_ || past_.tokens() > max_cached_tokens_ ||
                                     past_.nodes() > max_nodes_))
            past_.forget_oldest();
        metrics_.set("suffix_cached_tokens", static_cast<double>(past_.tokens()));
    }

    uint32_t depth_, max_cached_requests_;
    uint64_t max_cached_tokens_, max_nodes_;
    uint64_t nodes_ = 0; // of sequences_
    double spec_factor_, min_probability_;
    std::unordered_map<uint64_t, Sequence> sequences_;
    SuffixTree past_; // one text for each output
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Suffix>(
    {.name = "suffix", .version = "1.0.0", .summary = "a suffix tree: what most often followed the last tokens"}))
