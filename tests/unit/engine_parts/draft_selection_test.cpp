// Which sequences are drafted for, and how many tokens of each.
#include "engine/speculation/draft_selection.hpp"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/loop/aborts.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::draft_selection_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Selecting : QueueNeighbours {
    Selecting() { settings.num_speculative_tokens = 4; }

    // One that runs, with its prompt computed and an output token.
    Sequence& decode(SamplingParams sampling = {}) {
        Sequence& s = run(4, 4, std::move(sampling));
        s.tokens.push_back(7);
        return s;
    }
    std::vector<std::pair<uint64_t, uint32_t>> selected() {
        std::vector<std::pair<uint64_t, uint32_t>> out;
        for (const DraftRow& row : part.select()) out.emplace_back(row.wire.id, row.wire.max_drafts);
        return out;
    }

    config::SpeculationSettings speculation;
    Aborts aborts;
    DraftSelection part{{settings, speculation, kMaxModelLen, sequences, aborts, context, nullptr}};
};

TEST(DraftSelection, IsOfSequencesThatDecodeAsFarAsTheirOutputMayGo) {
    Selecting a;
    SamplingParams four;
    four.max_tokens = 4;
    const Sequence &all = a.decode(), &nearly_done = a.decode(four), &aborted = a.decode();
    a.run(8, 3); // its prompt is unfinished
    a.run(8, 7);
    a.aborts.add(aborted.id);
    SamplingParams of_beam, by_surprisal;
    of_beam.beam_width = 2;
    a.decode(of_beam); // a draft continues one beam, and each step takes up others
    a.decode(by_surprisal).sampling.params.mirostat_tau = 5;
    EXPECT_THAT(a.selected(), ElementsAre(Pair(all.id, 4), Pair(nearly_done.id, 2)));
    EXPECT_EQ(a.report().drafts.length, 4u);
}

TEST(DraftSelection, LeavesOutDraftsThatNoStepHasVerified) {
    Selecting a;
    Sequence& s = a.decode();
    s.tokens.push_back(8);
    s.drafts = 1;
    EXPECT_THAT(a.selected(), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_selection_test
