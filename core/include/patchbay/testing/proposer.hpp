// patchbay/testing/proposer.hpp - a proposer that gets the tokens of sequences and drafts what follows. One that drafts
// with a model needs an engine: `patchbay plugin test` brings a small one.
#pragma once
#include <vector>

#include "patchbay/sdk/proposer.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

using Tokens = std::vector<int32_t>;

class Proposer : public Subject {
  public:
    explicit Proposer(const Plugin& plugin, const Settings& settings = {}, std::string_view name = {})
        : Subject(plugin, PB_PROPOSER, settings, name) {}

    // The chain for each sequence, of at most max_drafts tokens; ids are 1, 2, …
    std::vector<Tokens> propose(const std::vector<Tokens>& sequences, uint32_t max_drafts) {
        std::vector<pb_propose_row> rows;
        for (const Tokens& t : sequences)
            rows.push_back({rows.size() + 1, t.data(), static_cast<uint32_t>(t.size()), max_drafts, 1, 0});
        Tokens drafts(sequences.size() * max_drafts, -1);
        std::vector<uint32_t> counts(sequences.size());
        auto batch = sized<pb_propose_batch>();
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.row_stride = sizeof(pb_propose_row);
        batch.max_drafts = max_drafts;
        batch.rows = rows.data();
        batch.drafts = drafts.data();
        batch.counts = counts.data();
        component.check(component.table<pb_proposer>().propose(component.self(), &batch));
        std::vector<Tokens> out;
        for (size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] > max_drafts)
                throw Error(PB_FAILED, "it counts " + std::to_string(counts[i]) + " drafts, expected at most " +
                                           std::to_string(max_drafts));
            const auto first = drafts.begin() + static_cast<ptrdiff_t>(i * max_drafts);
            out.emplace_back(first, first + counts[i]);
        }
        return out;
    }
    Tokens propose(const Tokens& sequence, uint32_t max_drafts) {
        return propose(std::vector<Tokens>{sequence}, max_drafts)[0];
    }
};

}  // namespace patchbay::testing
