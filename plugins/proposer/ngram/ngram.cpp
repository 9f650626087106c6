// ngram - prompt lookup: drafts the tokens that followed the last tokens where these occurred before.
#include <algorithm>
#include <vector>

#include "patchbay/sdk/proposer.hpp"

namespace {

class Ngram {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("prompt_lookup_max", "4", 1, 64, "tokens",
                                 "longest run of last tokens that is looked up"),
        patchbay::param::integer("prompt_lookup_min", "2", 1, 64, "tokens", "shortest run that is looked up"),
        patchbay::param::integer("window", "16384", 16, 1e7, "tokens", "how far back to look")};

    explicit Ngram(const patchbay::Context& context)
        : longest_(context.get<uint32_t>("prompt_lookup_max")), shortest_(context.get<uint32_t>("prompt_lookup_min")),
          window_(context.get<uint32_t>("window")), metrics_(context.host()) {
        if (shortest_ > longest_) throw patchbay::Error(PB_INVALID, "prompt_lookup_min is more than prompt_lookup_max");
    }

    void propose(patchbay::ProposeBatch& batch) {
        uint32_t matches = 0;
        for (uint32_t i = 0; i < batch.size(); ++i) {
            auto tokens = batch.tokens(i);
            if (tokens.size() > window_) tokens = tokens.last(window_);
            find_places(tokens, batch.max_paths(i));
            matches += !places_.empty();
            for (const Place& place : places_) batch.add_path(i, continuation(tokens, place, batch.row(i).max_drafts));
        }
        metrics_.add("ngram_lookups", batch.size());
        metrics_.add("ngram_matches", matches);
    }

  private:
    static constexpr size_t kMaxPlaces = 64; // matches that are considered for further paths
    struct Place {
        size_t from_end, length; // of the match
    };

    // What followed there. Where that reaches the last tokens it goes on with itself: a text that repeats itself.
    std::span<const int32_t> continuation(std::span<const int32_t> tokens, const Place& place, uint32_t max_drafts) {
        const auto followed = tokens.last(place.from_end);
        if (followed.size() >= max_drafts) return followed;
        continued_.clear();
        for (uint32_t j = 0; j < max_drafts; ++j) continued_.push_back(followed[j % followed.size()]);
        return continued_;
    }

    // Earlier places that match the last tokens, the longest match first, of equal ones the latest; for one path only
    // the first of them. Matching backwards, the length of the match at every place is the Z-function of the
    // reversed tokens: linear time.
    void find_places(std::span<const int32_t> tokens, uint32_t paths) {
        const size_t n = tokens.size();
        agree_.assign(n, 0);
        places_.clear();
        for (size_t i = 1, left = 0, right = 0; i < n; ++i) { // i: from the end to the end of the earlier place
            size_t k = i < right ? std::min(right - i, agree_[i - left]) : 0;
            while (i + k < n && tokens[n - 1 - k] == tokens[n - 1 - i - k]) ++k;
            if (i + k > right) left = i, right = i + k;
            agree_[i] = k;
            const size_t length = std::min<size_t>(k, longest_);
            if (length >= shortest_) places_.push_back({i, length});
            if (paths == 1 && length == longest_) break;
        }
        const auto kept = static_cast<ptrdiff_t>(std::min(places_.size(), paths == 1 ? 1 : kMaxPlaces));
        std::partial_sort(places_.begin(), places_.begin() + kept, places_.end(), [](const Place& a, const Place& b) {
            return a.length != b.length ? a.length > b.length : a.from_end < b.from_end;
        });
        places_.resize(static_cast<size_t>(kept));
    }

    uint32_t longest_, shortest_, window_;
    patchbay::Metrics metrics_;
    std::vector<size_t> agree_;
    std::vector<Place> places_;
    std::vector<int32_t> continued_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Ngram>(
    {.name = "ngram", .version = "1.0.0", .summary = "prompt lookup: repeats what followed the last tokens before"}))
