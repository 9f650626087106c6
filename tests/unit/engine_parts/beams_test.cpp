// Beams of a search without a model: their seats, their pages, and how a search ends.
#include "engine/groups/beams.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "text/tokenizer_json.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/engine_parts/page_memory.hpp"
#include "unit/text/spaced_words.hpp"

namespace patchbay::engine::testing::beams_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;

constexpr uint32_t kVocab = QueueNeighbours::kVocab;

SamplingParams search(uint32_t width, uint32_t max_tokens = 8) {
    SamplingParams p;
    p.beam_width = p.n = width;
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    return p;
}

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}) : QueueNeighbours(std::move(w)) {}

    // A search whose first beam waits.
    std::vector<Sequence*> add(uint32_t prompt_tokens, const SamplingParams& p) {
        std::vector<Sequence*> all = {&wait(prompt_tokens, p)};
        for (uint32_t i = 1; i < p.beam_width; ++i) {
            auto made = sequence(next_id++, prompt_tokens, p);
            made->tokens = all[0]->tokens;
            made->group = all[0]->id;
            made->index = i;
            made->place = Place::kHeld;
            all.push_back(&sequences.add(std::move(made)));
        }
        beams.add(all);
        return all;
    }
    std::vector<Sequence*> seat(Sequence& first) {
        admission.leave(first);
        sequences.run(first);
        return beams.seat(first);
    }
    // Computes all of a beam's tokens that are not, as placement would.
    void compute(Sequence& s, PageMemory* memory = nullptr) {
        const uint32_t begin = s.computed;
        if (!kv.tables().grow(s.kv.table, s.confirmed())) throw std::runtime_error("too few pages");
        kv.tables().copy_on_write(s.kv.table, begin);
        for (const kv::PageCopy& c : kv.copies().copies())
            if (memory) memory->copy(c);
        kv.copies().clear();
        for (uint32_t i = begin; memory && i < s.confirmed(); ++i)
            memory->write(s.kv.table, 0, i, content_of(std::span(s.tokens).first(i + 1)));
    }
    // The beam's row is back, with these candidates, highest first.
    std::optional<BeamSearches::Fault> take(Sequence& s, const std::vector<std::pair<TokenId, float>>& highest) {
        StepSamples samples;
        const auto wanted = static_cast<uint32_t>(s.sampling.params.logprobs);
        samples.clear(1, wanted);
        for (size_t i = 0; i < highest.size() && i < wanted; ++i) {
            samples.top_tokens[i] = highest[i].first;
            samples.top_logprobs[i] = highest[i].second;
        }
        return beams.take({&s, s.confirmed() - s.computed, s.confirmed(), 1}, samples, "sampler 'fake'");
    }
    Result<> audit() {
        std::vector<const kv::BlockTable*> tables;
        for (const auto& [id, s] : sequences.all()) tables.push_back(&s->kv.table);
        return kv.audit(tables);
    }
    static std::vector<TokenId> output_of(const Sequence& s) {
        return {s.tokens.begin() + s.prompt_count, s.tokens.end()};
    }
};

TEST(BeamSearches, TakeSeatsForAllTheirBeamsOrNone) {
    World w;
    w.settings.max_num_seqs = 4;
    Bench b(std::move(w));
    const auto all = b.add(4, search(3));
    Sequence &first = b.run(4, 4), &second = b.run(4, 4);
    EXPECT_FALSE(b.beams.room().has_room(*all[0]));
    EXPECT_TRUE(b.beams.room().has_room(first)) << "for a sequence of its own there are two seats";
    b.admission.leave(second);
    EXPECT_TRUE(b.beams.room().has_room(*all[0]));
    const auto unannounced = b.seat(*all[0]);
    EXPECT_THAT(unannounced, ElementsAre(all[1], all[2])) << "the scheduler knows the first one already";
    EXPECT_EQ(b.sequences.running().size(), 4u);
    EXPECT_FALSE(all[0]->idle);
    EXPECT_TRUE(all[1]->idle && all[2]->idle) << "they have nothing to compute until the first one is done";
    EXPECT_TRUE(b.beams.any_running());
}

TEST(BeamSearches, TheFirstStepMakesBeamsOfTheBestTokensWhichShareItsPages) {
    Bench b;
    const auto all = b.add(6, search(2));
    b.seat(*all[0]);
    b.compute(*all[0]);
    EXPECT_FALSE(b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}}));
    EXPECT_THAT(Bench::output_of(*all[0]), ElementsAre(50));
    EXPECT_THAT(Bench::output_of(*all[1]), ElementsAre(60));
    for (const Sequence* s : all) {
        EXPECT_FALSE(s->idle);
        EXPECT_EQ(s->computed, 6u);
    }
    EXPECT_EQ(all[0]->kv.table.pages, all[1]->kv.table.pages);
    EXPECT_EQ(b.kv.pool().used(), 2u);
    EXPECT_EQ(b.report().work.forked, 1u);
    EXPECT_TRUE(b.audit());
}

TEST(BeamSearches, OneThatIsDoneIsIdleUntilTheOthersAre) {
    Bench b;
    const auto all = b.add(6, search(2));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}});
    for (Sequence* s : all) b.compute(*s);
    b.take(*all[0], {{51, -5.0f}, {52, -6.0f}, {53, -7.0f}, {54, -8.0f}});
    EXPECT_TRUE(all[0]->idle);
    EXPECT_FALSE(all[1]->idle);
    EXPECT_THAT(Bench::output_of(*all[0]), ElementsAre(50)) << "nothing is chosen yet";
    const auto kept = all[1]->kv.table.pages[0];
    b.take(*all[1], {{61, -0.1f}, {62, -0.2f}, {63, -9.0f}, {64, -9.5f}});
    EXPECT_THAT(Bench::output_of(*all[0]), ElementsAre(60, 61)) << "both go on from the second beam";
    EXPECT_THAT(Bench::output_of(*all[1]), ElementsAre(60, 62));
    EXPECT_EQ(all[0]->kv.table.pages[0], kept);
    EXPECT_EQ(all[1]->kv.table.pages[0], kept);
    EXPECT_TRUE(b.audit()) << "pages of the beam that ended came back";
    EXPECT_EQ(b.kv.pool().used(), 2u);
}

TEST(BeamSearches, APreemptionIsOfAllBeamsOnceAStep) {
    Bench b;
    const auto all = b.add(6, search(2));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}});
    EXPECT_FALSE(b.beams.preempted_now(*all[1]));
    EXPECT_EQ(b.beams.preempt(*all[1]), all[0]);
    EXPECT_EQ(b.beams.preempt(*all[0]), nullptr) << "the plan names several of them";
    EXPECT_TRUE(b.beams.preempted_now(*all[0]));
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_EQ(b.report().preemption.preemptions, 2u);
    EXPECT_EQ(b.report().preemption.preempted_tokens, 12u);
    EXPECT_THAT(b.sequences.running(), IsEmpty());
    b.context.step += 1;
    EXPECT_FALSE(b.beams.preempted_now(*all[0]));
}

TEST(BeamSearches, ThatComeBackShareWhatTheyHaveInCommonWithTheFirst) {
    Bench b;
    const auto all = b.add(6, search(2));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}});
    b.beams.preempt(*all[0]);
    b.context.step += 1;
    b.admission.put_first(*all[0]);
    EXPECT_EQ(b.beams.needed_from(*all[0]), 6u) << "the prompt, from which the other forks";
    b.seat(*all[0]);
    b.compute(*all[0]);
    EXPECT_FALSE(b.take(*all[0], {{51, -0.5f}, {52, -1.0f}, {53, -2.0f}, {54, -3.0f}}));
    EXPECT_FALSE(all[1]->idle);
    EXPECT_EQ(all[1]->computed, 6u);
    EXPECT_EQ(b.beams.needed_from(*all[0]), UINT32_MAX);
    b.compute(*all[1]);
    EXPECT_FALSE(b.take(*all[1], {{61, -0.5f}, {62, -1.0f}, {63, -2.0f}, {64, -3.0f}}));
    EXPECT_THAT(Bench::output_of(*all[0]), ElementsAre(50, 51));
    EXPECT_TRUE(b.audit());
}

TEST(BeamSearches, RoomForThoseThatComeBackCountsTheirOwnPages) {
    World w;
    w.blocks = 7;
    Bench b(std::move(w));
    const auto all = b.add(4, search(3));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}, {90, -4.0f}, {95, -5.0f}});
    b.beams.preempt(*all[0]);
    b.admission.put_first(*all[0]);
    EXPECT_TRUE(b.beams.room().has_room(*all[0]));
    b.run(24, 24);
    EXPECT_FALSE(b.beams.room().has_room(*all[0])) << "one page is free, and each of three beams writes into its own";
}

TEST(BeamSearches, EndWithTheirBestSequencesAsOutputs) {
    Bench b;
    const auto all = b.add(6, search(2, 2));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}});
    for (Sequence* s : all) b.compute(*s);
    b.take(*all[0], {{51, -2.0f}, {52, -3.0f}, {53, -4.0f}, {54, -5.0f}});
    const auto over = b.take(*all[1], {{61, -0.25f}, {62, -2.0f}, {63, -3.0f}, {64, -4.0f}});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->why, "");
    const auto endings = b.beams.end(*all[1], *over);
    ASSERT_EQ(endings.size(), 2u);
    EXPECT_EQ(endings[0].reason, FinishReason::kLength);
    EXPECT_THAT(all[0]->output.delta.tokens, ElementsAre(60, 61));
    EXPECT_DOUBLE_EQ(*all[0]->output.delta.beam_score, -1.25 / 2) << "by token";
    EXPECT_DOUBLE_EQ(all[0]->output.sums.logprob, -1.25);
    EXPECT_THAT(all[1]->output.delta.tokens, ElementsAre(50, 51));
}

// As outputs that are sampled do.
TEST(BeamSearches, NameNoStopTokenThatIsTheTokenizersOwnEnd) {
    World w;
    w.tokenizer = *text::tokenizer_from_json(nlohmann::json::parse(text::kSpacedWords),
                                             nlohmann::json{{"eos_token", "<s>"}}, "test");
    Bench b(std::move(w));
    b.eos = {text::kBegin, text::kUnknown};
    SamplingParams p = search(2);
    p.ignore_eos = false;
    p.stop_token_ids = {text::kBegin};
    const auto all = b.add(6, p);
    b.seat(*all[0]);
    b.compute(*all[0]);
    const auto over = b.take(*all[0], {{text::kBegin, -0.5f}, {text::kUnknown, -1.0f}, {60, -7.0f}, {61, -8.0f},
                                       {62, -9.0f}, {63, -9.5f}});
    ASSERT_TRUE(over);
    ASSERT_EQ(b.beams.end(*all[0], *over).size(), 2u);
    EXPECT_THAT(all[0]->output.delta.tokens, ElementsAre(text::kBegin));
    EXPECT_EQ(all[0]->output.delta.stop_token, std::nullopt);
    EXPECT_EQ(all[1]->output.delta.stop_token, text::kUnknown) << "another end token of the model";
}

TEST(BeamSearches, ARowWithoutCandidatesEndsTheWholeSearch) {
    const std::vector<std::vector<std::pair<TokenId, float>>> bad = {
        {}, {{static_cast<TokenId>(kVocab), -1.0f}}, {{5, std::numeric_limits<float>::quiet_NaN()}}};
    for (const auto& candidates : bad) {
        Bench b;
        const auto all = b.add(6, search(2));
        b.seat(*all[0]);
        b.compute(*all[0]);
        const auto fault = b.take(*all[0], candidates);
        ASSERT_TRUE(fault);
        EXPECT_EQ(fault->why, "sampler 'fake' gave no log-probabilities");
        EXPECT_EQ(b.report().calls.sampler_faults, 1u);
        EXPECT_EQ(b.report().calls.sampler_breaches, 1u);
        for (const auto& e : b.beams.end(*all[0], *fault)) {
            EXPECT_EQ(e.reason, FinishReason::kError);
            EXPECT_EQ(e.code, StatusCode::kFailed);
        }
    }
}

TEST(BeamSearches, ASharedPageIsChargedToAllThatWriteToItButOne) {
    Bench b;
    const auto all = b.add(6, search(3));
    b.seat(*all[0]);
    b.compute(*all[0]);
    b.take(*all[0], {{50, -0.5f}, {60, -1.0f}, {70, -2.0f}, {80, -3.0f}, {90, -4.0f}, {95, -5.0f}});
    std::vector<pb_sequence> records;
    for (const Sequence* s : b.sequences.running()) records.push_back(record_of(*s, {}, 4));
    b.beams.room().charge_copies(records);
    uint32_t room = 0;
    for (size_t i = 0; i < 3; ++i) room += records[i].tokens_until_next_page;
    EXPECT_EQ(room, 2u) << "the last of them finds the page its own";
}

TEST(BeamSearches, RefuseWhatTheyCannotServe) {
    Bench b;
    const auto refused = [&](auto change) {
        Request r;
        r.prompt.assign(6, 5);
        r.sampling = search(2);
        change(r);
        const auto checked = b.beams.check(r);
        return checked ? std::string() : checked.error();
    };
    EXPECT_EQ(refused([](Request&) {}), "");
    EXPECT_EQ(refused([](Request& r) { r.sampling.top_k = 5; }),
              "top_k with beam_width, whose candidates are those of the raw logits");
    EXPECT_THAT(refused([](Request& r) { r.sampling.repetition_detection.max_pattern_size = 2; }),
                HasSubstr("repetition_detection with beam_width"));
    EXPECT_THAT(refused([](Request& r) { r.sampling.logprobs = 5000; }), HasSubstr("beam_width is 2 with logprobs of"));
    EXPECT_THAT(refused([](Request& r) { r.sampling.beam_width = 129; }), HasSubstr("expected 0 to 128"));
    EXPECT_EQ(refused([](Request& r) { r.sampling.n = 3; }), "beam_width is 2, less than n of 3");
    EXPECT_THAT(refused([](Request& r) { r.sampling.beam_width = 9; }), HasSubstr("more than max_num_seqs of 8"));
    EXPECT_EQ(refused([](Request& r) { r.sampling.max_tokens = 22; }), "") << "one page of the prompt, 2 x 6 others";
    EXPECT_THAT(refused([](Request& r) { r.sampling.max_tokens = 40; }), HasSubstr("may take 23 blocks"));
    World w;
    w.groups.push_back({kv::GroupKind::kRecurrent, 0});
    Bench states(std::move(w));
    Request r;
    r.prompt.assign(6, 5);
    r.sampling = search(2);
    EXPECT_THAT(states.beams.check(r).error(), HasSubstr("states, which cannot be shared"));
}

// Each beam finds its own tokens in its pages, whichever beams go on and whenever all are preempted.
TEST(BeamSearches, EachBeamFindsItsOwnTokensOverRandomSearches) {
    std::mt19937 draw(9);
    uint64_t forks = 0, preemptions = 0;
    for (int trial = 0; trial < 120; ++trial) {
        World w;
        w.blocks = 40;
        Bench b(std::move(w));
        PageMemory memory(40, 0, 4);
        const uint32_t width = 2 + draw() % 3;
        const auto all = b.add(1 + draw() % 12, search(width, 12));
        b.seat(*all[0]);
        bool over = false;
        for (int step = 0; !over; ++step) {
            ASSERT_LT(step, 200);
            b.context.step += 1;
            std::vector<Sequence*> due;
            for (Sequence* s : all)
                if (!s->idle) due.push_back(s);
            ASSERT_FALSE(due.empty());
            for (Sequence* s : due) b.compute(*s, &memory);
            for (Sequence* s : due) {
                for (uint32_t i = 0; i < s->confirmed(); ++i)
                    ASSERT_EQ(memory.read(s->kv.table, 0, i), content_of(std::span(s->tokens).first(i + 1)))
                        << "trial " << trial << ", step " << step << ", token " << i;
                std::set<TokenId> tokens;
                while (tokens.size() < 8) tokens.insert(static_cast<TokenId>(100 + draw() % 50));
                std::vector<std::pair<TokenId, float>> candidates;
                float logprob = 0;
                for (const TokenId t : tokens)
                    candidates.emplace_back(t, logprob -= 0.01f * static_cast<float>(1 + draw() % 100));
                over = over || b.take(*s, candidates).has_value();
            }
            const auto sound = b.audit();
            ASSERT_TRUE(sound) << sound.error();
            if (!over && draw() % 8 == 0) {
                preemptions += 1;
                Sequence* first = b.beams.preempt(*all[draw() % width]);
                b.admission.put_first(*first);
                b.seat(*first);
            }
        }
        forks += b.report().work.forked;
        for (Sequence* s : all) b.kv.tables().release(s->kv.table);
        ASSERT_EQ(b.kv.pool().used(), 0u);
    }
    EXPECT_GT(forks, 500u);
    EXPECT_GT(preemptions, 50u);
}

}  // namespace
}  // namespace patchbay::engine::testing::beams_test
