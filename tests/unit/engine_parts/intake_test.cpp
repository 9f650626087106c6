// The way in: what a request becomes, and that a refusal leaves nothing.
#include "engine/request/intake.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

#include "engine/sampling/sampler_port.hpp"
#include "unit/engine_parts/commit_neighbours.hpp"

namespace patchbay::engine::testing::intake_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Bench : EndingNeighbours {
    explicit Bench(World w = {}) : EndingNeighbours(std::move(w)) {
        executor.source = execution::TokenSource::kModel;
        clock.advance_ns(1000);
    }
    static Request request(uint32_t prompt_tokens = 6) {
        Request r;
        r.prompt.assign(prompt_tokens, 5);
        return r;
    }
    std::string refused(Request r) {
        const auto added = part.add(std::move(r));
        return added ? "" : added.error();
    }
    Sequence& added(Request r) {
        const auto id = part.add(std::move(r));
        if (!id) throw std::runtime_error(id.error());
        return *sequences.find(*id);
    }

    SamplerPort sampler{kVocab, clock, context, journal};
    FakeSampler& sampling = install<FakeSampler>(sampler.slot(), kFakeSampler);
    StructuredOutput structured_output{nullptr, eos, kVocab, clock, context};
    Intake part{{settings, kVocab, kMaxModelLen, false, false, sequences, siblings, beams, admission, outputs, sampler,
                 executor, token_rules, structured_output, constraints, prompt_logprobs, pooling, clock}};
};

TEST(Intake, ARequestBecomesASequenceThatIsStillToArrive) {
    Bench b;
    Request r = Bench::request();
    r.sampling.logit_bias = {{9, 1.5f}};
    Sequence& s = b.added(r);
    EXPECT_EQ(s.id, 1u);
    EXPECT_EQ(s.place, Place::kPending);
    EXPECT_EQ(s.request->arrival_ns, 1000u) << "now";
    EXPECT_EQ(s.tokens, r.prompt);
    EXPECT_EQ(s.prompt_count, 6u);
    ASSERT_EQ(s.sampling.params.logit_bias_count, 1u);
    EXPECT_EQ(s.sampling.params.logit_bias[0].token, 9);
    EXPECT_EQ(s.output.delta.id, 1u);
    EXPECT_EQ(b.added(Bench::request()).id, 2u);
}

TEST(Intake, FurtherOutputsAreHeldByTheFirst) {
    Bench b;
    Request r = Bench::request();
    r.sampling.n = 3;
    r.sampling.seed = 70;
    r.sampling.presence_penalty = 1;
    Sequence& first = b.added(r);
    const auto all = b.siblings.of(first.id);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(b.siblings.holds(first));
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(all[i]->id, first.id + i);
        EXPECT_EQ(all[i]->group, first.id);
        EXPECT_EQ(all[i]->output.delta.id, first.id);
        EXPECT_EQ(all[i]->output.delta.index, i);
        EXPECT_EQ(all[i]->sampling.seed, 70u + i);
        EXPECT_EQ(all[i]->place, i == 0 ? Place::kPending : Place::kHeld);
        EXPECT_EQ(all[i]->sampling.history_reason, "history");
    }
    EXPECT_EQ(b.added(Bench::request()).id, first.id + 3);
}

TEST(Intake, SeedsFollowFromTheEnginesAndTheSequence) {
    Bench a, again;
    World w;
    w.settings.seed = 1;
    Bench other(std::move(w));
    const uint64_t first = a.added(Bench::request()).sampling.seed;
    EXPECT_EQ(first, again.added(Bench::request()).sampling.seed);
    EXPECT_NE(first, a.added(Bench::request()).sampling.seed);
    EXPECT_NE(first, other.added(Bench::request()).sampling.seed);
}

TEST(Intake, KnowsWhoseNextTokenHangsOnThoseBeforeIt) {
    const std::pair<float SamplingParams::*, float> fields[] = {{&SamplingParams::repetition_penalty, 1.1f},
                                                                {&SamplingParams::presence_penalty, 0.1f},
                                                                {&SamplingParams::frequency_penalty, -0.1f},
                                                                {&SamplingParams::dry_multiplier, 0.5f}};
    Bench b;
    EXPECT_EQ(b.added(Bench::request()).sampling.history_reason, "");
    for (const auto& [field, value] : fields) {
        Request r = Bench::request();
        r.sampling.*field = value;
        EXPECT_EQ(b.added(r).sampling.history_reason, "history");
    }
    Request r = Bench::request();
    r.sampling.mirostat = 2;
    EXPECT_EQ(b.added(r).sampling.history_reason, "history");
}

TEST(Intake, OfBestOfAndBeamsTheCallbackGetsTheBestOnly) {
    Bench b;
    std::vector<uint32_t> given;
    Request r = Bench::request();
    r.sampling.best_of = 2;
    r.on_output = [&](const RequestOutput& o) { given.push_back(o.index); };
    Sequence& best = b.added(r);
    EXPECT_EQ(b.siblings.of(best.id).size(), 2u);
    RequestOutput out{};
    out.finish = FinishReason::kStop;
    for (out.index = 0; out.index < 2; ++out.index) best.request->on_output(out);
    EXPECT_THAT(given, ElementsAre(0));

    given.clear();
    r.sampling.best_of = 0;
    r.sampling.beam_width = 3;
    Sequence& beam = b.added(r);
    EXPECT_FALSE(b.siblings.holds(beam)) << "beams are admitted together";
    EXPECT_EQ(beam.sampling.params.temperature, 0);
    for (out.index = 0; out.index < 3; ++out.index) beam.request->on_output(out);
    EXPECT_THAT(given, ElementsAre(0));
}

TEST(Intake, PrefixesAreSharedByTheSaltAndReadWhereTheyMay) {
    Bench b;
    Request r = Bench::request();
    EXPECT_EQ(b.added(r).kv.salt, kv::BlockKey{});
    r.cache_salt = "a";
    const kv::BlockKey a = b.added(r).kv.salt;
    r.cache_salt = "b";
    EXPECT_NE(a, b.added(r).kv.salt);
    EXPECT_NE(a, kv::BlockKey{});
    r.sampling.skip_reading_prefix_cache = true;
    EXPECT_FALSE(b.added(r).kv.reads_prefixes);
    r.sampling.skip_reading_prefix_cache = false;
    r.sampling.prompt_logprobs = 0;
    EXPECT_FALSE(b.added(r).kv.reads_prefixes);
}

TEST(Intake, PrefixesAreSharedByTheTenantWhereAskedForAlsoWithTheLongestSalt) {
    Bench b;
    const auto salt = [&](uint32_t tenant, size_t length) {
        Request r = Bench::request();
        r.cache_per_tenant = true;
        r.tenant = tenant;
        r.cache_salt.assign(length, 'x');
        return b.added(r).kv.salt;
    };
    EXPECT_NE(salt(1, 0), kv::BlockKey{});
    EXPECT_NE(salt(1, 0), salt(2, 0));
    EXPECT_EQ(salt(1, kLongestSalt), salt(1, kLongestSalt));
    EXPECT_NE(salt(1, kLongestSalt), salt(2, kLongestSalt));
}

TEST(Intake, ARefusalSaysWhyAndLeavesNothing) {
    World w;
    w.settings.enable_chunked_prefill = false;
    w.settings.max_num_seqs = 4;
    Bench b(std::move(w));
    const auto with = [&](auto change) {
        Request r = Bench::request();
        change(r);
        return b.refused(std::move(r));
    };
    EXPECT_EQ(with([](Request& r) { r.prompt.clear(); }), "the prompt is empty");
    EXPECT_EQ(with([](Request& r) { r.prompt.assign(995, 5); }),
              "a prompt of 995 tokens and max_tokens of 16 exceed max_model_len of 1000");
    EXPECT_EQ(with([](Request& r) { r.prompt[3] = -1; }), "prompt token -1, expected 0 to 9999");
    EXPECT_EQ(with([](Request& r) { r.prompt[3] = 10'000; }), "prompt token 10000, expected 0 to 9999");
    EXPECT_EQ(with([](Request& r) { r.cache_salt.assign(5000, 'x'); }),
              "cache_salt has 5000 bytes, expected at most 4096");
    EXPECT_EQ(with([](Request& r) { r.sampling.stop = {"x"}; }), "stop strings need a tokenizer");
    EXPECT_EQ(with([](Request& r) { r.sampling.bad_words = {"x"}; }), "bad_words need a tokenizer");
    EXPECT_EQ(with([](Request& r) { r.sampling.temperature = -1; }), "temperature is -1, expected 0 to 100");
    EXPECT_THAT(with([](Request& r) { r.prompt.assign(66, 5), r.sampling.prompt_logprobs = 0; }),
                HasSubstr("more than the 64 of a step, without enable_chunked_prefill"));
    EXPECT_THAT(with([](Request& r) { r.sampling.beam_width = 5; }), HasSubstr("more than max_num_seqs of 4"));
    EXPECT_TRUE(b.sequences.empty());
    EXPECT_TRUE(b.siblings.all().empty());
    EXPECT_EQ(with([](Request& r) { r.prompt.assign(984, 5); }), "") << "just what fits";
    EXPECT_NE(b.sequences.find(1), nullptr) << "no id was spent";
}

TEST(Intake, AFullQueueRefusesWhatArrivesNowAndChecksTheRestThen) {
    World w;
    w.settings.max_waiting = 2;
    Bench b(std::move(w));
    b.added(Bench::request()); // two have arrived, which no step has put into the queue yet
    b.added(Bench::request());
    const auto refused = b.part.add(Bench::request());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.code(), StatusCode::kExhausted);
    EXPECT_EQ(refused.error(), "the queue is full: max_waiting is 2");
    Request later = Bench::request();
    later.arrival_ns = 5000;
    EXPECT_EQ(b.refused(later), "");
}

TEST(Intake, ARequestThatIsWrongIsTheUsersFaultAndASamplerThatFailsIsNot) {
    Bench b;
    const std::vector<std::function<void(Request&)>> wrong = {
        [](Request& r) { r.prompt.clear(); },
        [](Request& r) { r.prompt[0] = -1; },
        [](Request& r) { r.cache_salt.assign(1 << 20, 's'); },
        [](Request& r) { r.sampling.max_tokens = 0; },
        [](Request& r) { r.sampling.temperature = -1; },
        [](Request& r) { r.sampling.logit_bias = {{-1, 1.0f}}; },
        [](Request& r) { r.sampling.allowed_token_ids.emplace(); },
        [](Request& r) { r.sampling.beam_width = 100'000; }};
    for (size_t i = 0; i < wrong.size(); ++i) {
        Request r = Bench::request();
        wrong[i](r);
        const auto refused = b.part.add(std::move(r));
        ASSERT_FALSE(refused) << i;
        EXPECT_EQ(refused.code(), StatusCode::kInvalid) << refused.error();
    }
    b.sampling.accepted = [](const pb_sampling_params&) { throw std::runtime_error("out of order"); };
    EXPECT_EQ(b.part.add(Bench::request()).code(), StatusCode::kFailed);
}

TEST(Intake, TheSamplerHasAWordWhereAModelComputes) {
    Bench b;
    std::vector<float> seen;
    b.sampling.accepted = [&](const pb_sampling_params& p) {
        seen.push_back(p.temperature);
        if (p.temperature == 0) throw Error(PB_UNSUPPORTED, "not greedy");
    };
    Request r = Bench::request();
    EXPECT_EQ(b.refused(r), "");
    r.sampling.prompt_logprobs = 0; // whose rows are greedy
    const auto refused = b.part.add(r);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_EQ(refused.error(), "sampler 'fake': accepts: not greedy");
    EXPECT_THAT(seen, ElementsAre(1, 1, 0));
    b.executor.source = execution::TokenSource::kMadeUp;
    r = Bench::request();
    r.sampling.temperature = 0;
    EXPECT_EQ(b.refused(r), "") << "no sampler is asked for tokens that are made up";
}

}  // namespace
}  // namespace patchbay::engine::testing::intake_test
