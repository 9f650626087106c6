// A proposer that knows what comes, and says it among other things: of `paths` chains one is right, which one follows
// from the place, and the others leave it somewhere. Or it writes parents that are none.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "patchbay/sdk/proposer.hpp"

namespace {

class Knows {
  public:
    static constexpr const char* kParents[] = {"sound", "forward", "self", "below", "above", nullptr};
    static constexpr pb_param kParams[] = {
        patchbay::param::text("texts", "", "prompts with their outputs, as tokens; a semicolon between them"),
        patchbay::param::integer("paths", "1", 1, 16, nullptr, "proposed, as far as there is room"),
        patchbay::param::integer("right", "-1", -1, 15, nullptr, "path that is right; -1: each in turn, by the place"),
        patchbay::param::integer("leaves", "0", 0, 64, nullptr, "drafts that all paths begin with, if `right` is set"),
        patchbay::param::choice("parents", "sound", kParents, "of the last draft")};

    explicit Knows(const patchbay::Context& context)
        : paths_(context.get<uint32_t>("paths")), leaves_(context.get<uint32_t>("leaves")),
          right_(context.get<int32_t>("right")), parents_(context.get<std::string>("parents")) {
        std::istringstream texts(context.get<std::string>("texts"));
        for (std::string text; std::getline(texts, text, ';');) {
            std::istringstream tokens(text);
            texts_.emplace_back();
            for (int32_t token = 0; tokens >> token;) texts_.back().push_back(token);
        }
    }

    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const auto tokens = batch.tokens(i);
            for (const std::vector<int32_t>& text : texts_) {
                if (text.size() <= tokens.size() || !std::equal(tokens.begin(), tokens.end(), text.begin())) continue;
                add_paths(batch, i, std::span(text).subspan(tokens.size()), tokens.size());
                break;
            }
            if (parents_ == "sound" || batch.raw.counts[i] < 2 || !batch.raw.parents) continue;
            const auto last = static_cast<int32_t>(batch.raw.counts[i]) - 1;
            batch.raw.parents[size_t{i} * batch.raw.max_drafts + static_cast<size_t>(last)] =
                parents_ == "forward" ? last + 1 : parents_ == "self" ? last : parents_ == "below" ? -2 : 1 << 30;
        }
    }

  private:
    void add_paths(patchbay::ProposeBatch& batch, uint32_t i, std::span<const int32_t> next, size_t place) const {
        const size_t depth = std::min<size_t>(batch.row(i).max_drafts, next.size());
        if (depth == 0) return;
        const size_t right = right_ < 0 ? place % paths_ : static_cast<size_t>(right_);
        const size_t leaves = right_ < 0 ? place / paths_ % depth : std::min<size_t>(leaves_, depth - 1);
        for (uint32_t p = 0; p < paths_; ++p) {
            std::vector<int32_t> path(next.begin(), next.begin() + static_cast<ptrdiff_t>(depth));
            if (p != right)
                for (size_t k = leaves; k < depth; ++k)
                    path[k] = (path[k] + static_cast<int32_t>(p + k) + 1) % 256;
            batch.add_path(i, path);
        }
    }

    uint32_t paths_, leaves_;
    int32_t right_;
    std::string parents_;
    std::vector<std::vector<int32_t>> texts_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Knows>(
    {.name = "knows", .version = "1.0.0", .summary = "what comes, among other paths"}))
