// Drafts by a second model: the same texts as without it, its KV right wherever the target's is, and what is refused.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/thread_pool.hpp"
#include "engine/speculation/draft_model.hpp"
#include "unit/engine/draft_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::testing::draft_model_test {
namespace {

using ::testing::HasSubstr;

config::EngineConfig drafted(config::EngineConfig c, const std::string& draft = "models/demo-draft", uint32_t k = 4) {
    c.proposer = config::PluginChoice{"draft_model", {{"model", repository(draft)}}};
    c.engine.num_speculative_tokens = k;
    return c;
}

// A dummy model that drafts for itself, or for one of another shape.
config::EngineConfig dummy_drafted(config::EngineConfig c, const std::map<std::string, std::string>& draft,
                                   const std::string& name) {
    c.proposer = config::PluginChoice{
        "draft_model", {{"model", folder_of(draft, name)}, {"load_format", "dummy"}, {"dtype", "float32"}}};
    c.engine.num_speculative_tokens = 4;
    return c;
}

TEST(DraftModel, ChangesNoTextWhateverElseHappens) {
    const auto all = cases(12);
    const Ran without = run(demo(), all);
    const auto check = [&](const config::EngineConfig& c, const std::string& what) {
        return expect_unchanged(c, all, without, what);
    };
    check(drafted(demo()), "all at once");
    auto c = drafted(demo());
    c.engine.max_num_batched_tokens = 13;
    check(c, "chunks");
    c.engine.enable_prefix_caching = false;
    c.engine.max_num_seqs = 2;
    check(c, "two at a time");
    EXPECT_GT(check(drafted(demo(), "models/demo-draft", 15), "long drafts").drafted_at[14], 0u);
    // Six groups of pages a block of 8 tokens: a sequence of 136 tokens takes 102.
    EXPECT_GT(check(short_of_pages(drafted(demo()), 260), "few pages").preemptions, 0u);
    c = short_of_pages(drafted(demo()), 180);
    c.engine.max_num_batched_tokens = 16;
    c.engine.enable_prefix_caching = false;
    EXPECT_GT(check(c, "few pages and chunks").preemptions, 0u);
}

// Every draft of a model for itself is right, if what it computes of a sequence is what the target computes of it.
TEST(DraftModel, OfItselfIsRightInEveryDraft) {
    const auto all = cases(12);
    const auto check = [&](const config::EngineConfig& c, const std::string& what) {
        const Ran r = run(c, all);
        EXPECT_GT(r.drafted, 50u) << what;
        EXPECT_EQ(r.accepted, r.drafted) << what;
        return r;
    };
    const auto itself = [](uint32_t k = 4) {
        auto c = drafted(demo(), "models/demo-target", k);
        c.engine.enable_prefix_caching = false;
        return c;
    };
    check(itself(), "all at once");
    auto c = itself();
    c.engine.max_num_batched_tokens = 7;
    check(c, "chunks");
    // A step that verifies fewer drafts than there are leaves the others after the newest token.
    c = itself(9);
    c.engine.max_num_batched_tokens = 12;
    check(c, "drafts that do not fit the step");
    EXPECT_GT(check(short_of_pages(itself(), 40), "few pages").preemptions, 0u);
    c = itself();
    c.engine.enable_prefix_caching = true;
    c.engine.max_num_seqs = 1; // one after the other: what an earlier one has computed is found
    EXPECT_GT(check(c, "prefixes").cached, 0u);
    c.engine.max_num_seqs = 8; // at once: what another computes in the same step
    EXPECT_GT(check(c, "prefixes of the same step").cached, 0u);
}

TEST(DraftModel, OfItselfIsRightForSeveralOutputsOfAPrompt) {
    const auto texts = [](const config::EngineConfig& c, uint64_t& drafted_tokens, uint64_t& accepted) {
        Harness h(c);
        Request r;
        r.prompt = random_prompt(1, 45, kVocab); // ends inside a block
        r.sampling = seeded(3, 30);
        r.sampling.n = 4;
        std::map<uint32_t, std::vector<TokenId>> out; // by output
        r.on_output = [&](const RequestOutput& o) {
            out[o.index].insert(out[o.index].end(), o.tokens.begin(), o.tokens.end());
        };
        EXPECT_TRUE(h.engine->add_request(std::move(r)));
        h.run_all();
        for (const StepReport& s : h.steps)
            drafted_tokens += s.drafts.drafted_tokens, accepted += s.drafts.accepted_tokens;
        EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
        return out;
    };
    uint64_t drafted_tokens = 0, accepted = 0;
    const auto without = texts(demo(), drafted_tokens, accepted);
    EXPECT_EQ(without.size(), 4u);
    EXPECT_EQ(texts(drafted(demo(), "models/demo-target"), drafted_tokens, accepted), without);
    EXPECT_GT(drafted_tokens, 50u);
    EXPECT_EQ(accepted, drafted_tokens);
}

TEST(DraftModel, OfItselfIsRightWhereWindowsPassPages) {
    for (const char* architecture : {"MistralForCausalLM", "Gemma2ForCausalLM"}) {
        auto c = tiny_model();
        c.model.shape["architectures.0"] = architecture;
        c.model.shape["head_dim"] = "16";
        c.model.shape["num_hidden_layers"] = "3";
        c.model.shape["sliding_window"] = "16";
        const auto all = cases(9, 300);
        const Ran without = run(c, all);
        for (const uint32_t budget : {512u, 32u, 6u}) {
            auto changed = dummy_drafted(c, c.model.shape, architecture);
            changed.engine.max_num_batched_tokens = budget;
            const Ran with = run(changed, all);
            const std::string what = std::string(architecture) + ", chunks of " + std::to_string(budget);
            expect_same_texts(with, without, what);
            EXPECT_GT(with.drafted, 50u) << what;
            EXPECT_EQ(with.accepted, with.drafted) << what;
        }
    }
}

// What a step drafts is what the draft model alone would say next, with the same seed: by engines of it alone.
TEST(DraftModel, DraftsWhatItWouldSayItself) {
    constexpr uint32_t kLength = 30, kDrafts = 4;
    for (const SamplingParams& p : {greedy(kLength), seeded(8, kLength)}) {
        const std::vector<Case> one = {{random_prompt(1, 30, kVocab), p}};
        const Ran with = run(drafted(demo(), "models/demo-draft", kDrafts), one);
        const std::vector<TokenId>& text = with.outputs[0].tokens;
        Harness alone(demo("models/demo-draft"));
        uint64_t drafted_tokens = 0, accepted = 0;
        for (uint32_t made = 1; made < kLength;) {
            const uint32_t max_drafts = std::min(kDrafts, kLength - made - 1);
            uint32_t right = 0;
            if (max_drafts > 0) {
                auto prompt = one[0].prompt;
                prompt.insert(prompt.end(), text.begin(), text.begin() + made);
                SamplingParams ahead = p;
                ahead.max_tokens = max_drafts;
                const auto said = alone.run(alone.add(prompt, ahead)).tokens;
                while (right < max_drafts && said[right] == text[made + right]) right += 1;
            }
            drafted_tokens += max_drafts;
            accepted += right;
            made += right + 1;
        }
        EXPECT_EQ(with.drafted, drafted_tokens);
        EXPECT_EQ(with.accepted, accepted);
    }
}

TEST(DraftModel, IsAcceptedLessTheFurtherItLooks) {
    std::vector<Case> all;
    const auto tokenizer = text::Tokenizer::load(repository("models/demo-target"));
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    for (const char* begin : {"Once upon a time", "\"I will go,\" said", "The Tin Woodman", "Dorothy and Toto"})
        all.push_back({(*tokenizer)->encode(begin), greedy(60)});
    const Ran r = run(drafted(demo()), all);
    for (size_t i = 0; i < 4; ++i) EXPECT_GT(r.accepted_at[i], 0u) << i;
    for (size_t i = 1; i < 4; ++i) EXPECT_LT(r.accepted_at[i], r.accepted_at[i - 1]) << i;
    EXPECT_EQ(r.drafted_at[4], 0u);
    EXPECT_GT(4 * r.accepted_at[0], r.drafted_at[0]) << "fewer than a quarter of the first drafts are right";
}

TEST(DraftModel, ComputesEachTokenOnceAndAWrongDraftAnew) {
    const std::vector<Case> one = {{random_prompt(1, 30, kVocab), greedy(24)}};
    auto c = drafted(demo(), "models/demo-target", 3); // never rejected: 23 tokens after the first in 6 steps
    const Ran r = run(c, one);
    EXPECT_EQ(r.draft_passes, 6u * 3 - 1); // of the last step only 2 can be
    EXPECT_EQ(r.draft_tokens, 30u + 23 - 1); // the last but one is the last to be gone on with
}

TEST(DraftModel, AnswersTheSameHoweverItIsAskedBackAndForth) {
    std::vector<Case> all;
    for (uint64_t i = 0; i < 3; ++i) all.push_back({random_prompt(i, 30, kVocab), greedy(24)});
    auto c = drafted(demo());
    const Ran straight = run(c, all);
    c.proposer->plugin = "asks_back"; // fails where an answer differs
    const Ran back = run(c, all);
    expect_same_texts(back, straight, "asked back");
    EXPECT_GT(back.accepted, 0u);
    c.proposer->settings["model"] = repository("models/demo-target");
    const Ran itself = run(c, all);
    EXPECT_EQ(itself.accepted, itself.drafted);
    EXPECT_GT(itself.drafted, 0u);
}

TEST(DraftModel, StopsWhereStopStringsSay) {
    const auto tokenizer = text::Tokenizer::load(repository("models/demo-target"));
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    std::vector<Case> all;
    for (const char* stop : {" man", "he", "."}) {
        SamplingParams p = greedy(80);
        p.stop = {stop};
        all.push_back({(*tokenizer)->encode("Once upon a time"), p});
    }
    const Ran with = run(drafted(demo()), all);
    expect_same_texts(with, run(demo(), all), "stop strings");
    for (const Output& o : with.outputs) EXPECT_EQ(o.finish, FinishReason::kStop);
}

TEST(DraftModel, KeepsNothingOfRequestsThatAreAborted) {
    Harness h(short_of_pages(drafted(demo()), 300));
    std::vector<RequestId> ids;
    for (const Case& one : cases(6)) ids.push_back(h.add(one.prompt, one.sampling));
    for (size_t i = 0; i < ids.size(); ++i) {
        h.step();
        if (i % 2) h.engine->abort(ids[i]);
    }
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    for (const RequestId id : ids) EXPECT_EQ(h.outputs.at(id).endings, 1u);
}

TEST(DraftModel, EndsAChainThatItDoubts) {
    const auto all = cases(4);
    auto c = drafted(demo());
    const Ran sure = run(c, all);
    c.proposer->settings["min_probability"] = "0.5";
    const Ran doubtful = run(c, all);
    expect_same_texts(doubtful, sure, "min_probability");
    EXPECT_LT(doubtful.drafted, sure.drafted);
    EXPECT_GT(doubtful.accepted * sure.drafted, sure.accepted * doubtful.drafted) << "of fewer drafts a larger share";
}

// With rejection and at temperature 0 the one token has all of the probability that it is drawn with.
TEST(DraftModel, DoubtsDraftsThatAreDrawnAtTemperature0) {
    std::vector<Case> all = cases(4);
    for (Case& one : all) one.sampling = greedy(40);
    auto c = drafted(demo());
    c.speculative.rejection_sample_method = config::Verification::kRejection;
    const Ran sure = run(c, all);
    c.proposer->settings["min_probability"] = "0.5";
    const Ran doubtful = run(c, all);
    expect_same_texts(doubtful, sure, "min_probability");
    EXPECT_LT(doubtful.drafted, sure.drafted);
}

TEST(DraftModel, DraftsNoFurtherThanItReaches) {
    auto c = tiny_model();
    auto shape = c.model.shape;
    shape["max_position_embeddings"] = "60";
    const std::vector<Case> one = {{random_prompt(1, 40), greedy(60)}};
    const Ran with = run(dummy_drafted(c, shape, "short"), one);
    expect_same_texts(with, run(c, one), "short reach");
    // Prompt and first token are 41: drafts for the places 41 to 60.
    EXPECT_GE(with.drafted, 14u);
    EXPECT_LE(with.drafted, 20u);
}

// ---- what is refused ----

TEST(DraftModel, IsRefusedWithAnotherVocabulary) {
    auto shape = tiny_model().model.shape;
    shape["vocab_size"] = "301";
    EXPECT_EQ(refusal(dummy_drafted(tiny_model(), shape, "wider")),
              "the draft model 'llama' has a vocabulary of 301 tokens, expected the model's 300 (take two models of "
              "one family)");
}

TEST(DraftModel, IsRefusedWhereItsLayersKeepStates) {
    auto c = drafted(tiny_model(), "tests/golden/models/bamba");
    c.model.shape["vocab_size"] = "128";
    EXPECT_THAT(refusal(c), HasSubstr("model 'bamba' keeps states: a state cannot go back to before a rejected draft"));
}

TEST(DraftModel, IsRefusedOnSeveralRanks) {
    auto c = drafted(demo());
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                         {"memory_bytes", "100000000"}, {"collective_bandwidth", "1e9"}};
    c.proposer->settings["simulated_acceptance"] = "0.5";
    c.engine.tensor_parallel_size = 2;
    EXPECT_EQ(refusal(c), "proposer 'draft_model': create: models that draft are not split over ranks "
                          "(tensor_parallel_size is 2)");
}

TEST(DraftModel, IsRefusedWhereItIsNot) {
    EXPECT_THAT(refusal(drafted(demo(), "models/missing")), HasSubstr("models/missing"));
    EXPECT_THAT(refusal(drafted(demo(), "models/missing")), HasSubstr("proposer 'draft_model': create: "));
}

TEST(DraftModel, AnswersOnlyItsProposerAndInItsTime) {
    const auto c = demo();
    ThreadPool pool(1);
    DraftModel model({c, registry(), {&pool.service(), nullptr, nullptr}, pool, true, c.model.shape});
    const pb_runner& service = model.service();
    const auto why = [&](auto call) {
        pb_str text{};
        EXPECT_EQ(call(&text), PB_INVALID);
        return std::string(text.data, text.size);
    };
    const std::string path = repository("models/demo-draft");
    const pb_setting settings[] = {{{"path", 4}, {path.data(), path.size()}}, {{"dtyp", 4}, {"auto", 4}}};
    const pb_runner_load wrong{sizeof wrong, 2, settings, -1}, right{sizeof right, 1, settings, -1};
    pb_runner_facts facts = patchbay::sized<pb_runner_facts>();
    const auto load = [&](const pb_runner_load& what) {
        return [&](pb_str* text) { return service.load(service.ctx, &what, &facts, text); };
    };
    EXPECT_THAT(why(load(wrong)), HasSubstr("unknown key 'dtyp'"));
    pb_str text{};
    ASSERT_EQ(load(right)(&text), PB_OK) << std::string(text.data, text.size);
    EXPECT_EQ(facts.vocab_size, kVocab);
    EXPECT_EQ(facts.layer_count, 2u);
    EXPECT_EQ(facts.computes, 1u);
    EXPECT_EQ(why(load(right)), "a model is loaded already, and more than one is not done");
    pb_runner_batch batch = sized<pb_runner_batch>(), without_size{};
    EXPECT_EQ(why([&](pb_str* t) { return service.forward(service.ctx, &batch, t); }),
              "a model is run in propose() only");
    EXPECT_EQ(why([&](pb_str* t) { return service.forward(service.ctx, &without_size, t); }),
              "a struct without its struct_size");
    model.opened().end();
    EXPECT_EQ(why(load(right)), "a model is loaded in create() only");
}

// ---- where nothing is computed ----

config::EngineConfig simulated(double acceptance) {
    auto c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e9"},    {"matmul_f32", "1e9"}, {"memory_read", "1e21"},
                         {"memory_bytes", "100000000"}, {"launch_ns", "1000"}};
    auto shape = c.model.shape;
    shape["num_hidden_layers"] = "1";
    c = dummy_drafted(c, shape, "one_layer");
    c.proposer->settings["dtype"] = "bfloat16";
    c.proposer->settings["simulated_acceptance"] = std::to_string(acceptance);
    return c;
}

// As in simulation_test.cpp a token takes 61,440 FLOP a layer, a row of logits 38,400, a key 256 a layer. A pass of the
// draft model starts 5 + 11 ops of 1,000 ns.
TEST(DraftModel, ChargesItsPassesToTheNanosecond) {
    auto c = simulated(1);
    c.engine.num_speculative_tokens = 1;
    Harness h(c);
    h.add(random_prompt(0, 4), greedy(3));
    const uint64_t begin = h.clock.now_ns();
    const StepReport first = h.step();
    // The prompt by the target, as there; then it and the first token by the draft model, with 15 keys.
    EXPECT_EQ(first.end_ns - begin - 1000, 562'040u + 5 * 61'440 + 38'400 + 15 * 256 + 16'000);
    EXPECT_EQ(first.drafts.pass_ns, 365'440u);
    const StepReport second = h.step(); // two tokens and two rows, 5 + 6 keys; nothing to draft after them
    EXPECT_EQ(second.end_ns - first.end_ns - 1000, 2u * 122'880 + 76'800 + 512 * 11 + 27'000);
    EXPECT_EQ(second.drafts.accepted_tokens, 1u);
    EXPECT_FALSE(h.engine->has_unfinished());
}

TEST(DraftModel, PaysTheHostsOverheadOnceAStep) {
    const auto took = [](const char* overhead) {
        auto c = simulated(1);
        c.device.settings["step_overhead_ns"] = overhead;
        Harness h(c);
        h.add(random_prompt(0, 4), greedy(30));
        h.run_all();
        return std::pair(h.steps.size(), h.steps.back().end_ns - h.steps.front().start_ns);
    };
    const auto [steps, without] = took("0");
    EXPECT_EQ(took("250000"), std::pair(steps, without + steps * 250'000));
}

TEST(DraftModel, IsAcceptedAsOftenAsDeclared) {
    std::vector<Case> all;
    for (uint64_t i = 0; i < 30; ++i) all.push_back({random_prompt(i, 10), seeded(i, 100)});
    const Ran r = run(simulated(0.7), all), again = run(simulated(0.7), all);
    EXPECT_EQ(r.accepted, again.accepted);
    EXPECT_EQ(r.draft_tokens, again.draft_tokens);
    for (size_t i = 0; i < 4; ++i) { // of those whose predecessors were accepted
        const double before = static_cast<double>(i == 0 ? r.drafted_at[0] : r.accepted_at[i - 1]);
        EXPECT_NEAR(static_cast<double>(r.accepted_at[i]) / before, 0.7, 0.07) << i;
    }
    EXPECT_EQ(run(simulated(0), all).accepted, 0u);
    const Ran always = run(simulated(1), all);
    EXPECT_EQ(always.accepted, always.drafted);
}

// What a folder says may stand in a file, as for the target.
TEST(DraftModel, TakesItsShapeFromAFile) {
    auto c = simulated(1);
    c.engine.num_speculative_tokens = 2;
    const std::vector<Case> one = {{random_prompt(1, 10), greedy(12)}};
    const Ran by_folder = run(c, one);
    const std::filesystem::path path = temporary_folder() / "one_layer.yaml";
    std::ofstream out(path);
    out << "model:\n  load_format: dummy\n  dtype: bfloat16\n  shape:\n    architectures: [LlamaForCausalLM]\n";
    for (const auto& [key, value] : c.model.shape)
        if (key != "architectures.0")
            out << "    " << key << ": " << (key == "num_hidden_layers" ? "1" : value) << "\n";
    out.close();
    c.proposer->settings = {{"model", path.string()}, {"simulated_acceptance", "1"}};
    const Ran by_file = run(c, one);
    EXPECT_EQ(by_file.draft_passes, by_folder.draft_passes);
    EXPECT_EQ(by_file.accepted, by_folder.accepted);
    EXPECT_GT(by_file.accepted, 0u);
    std::ofstream(path) << "engine: {}\n";
    EXPECT_THAT(refusal(c), HasSubstr("has no key 'model'"));
}

TEST(DraftModel, NeedsItsAcceptanceDeclaredWhereNothingIsComputed) {
    auto c = simulated(1);
    c.proposer->settings.erase("simulated_acceptance");
    EXPECT_THAT(refusal(c), HasSubstr("device 'sim' computes nothing, so which drafts the model accepts has to be "
                                      "declared (set simulated_acceptance, 0 to 1, or speculative."));
    c = simulated(1);
    c.proposer->settings["min_probability"] = "0.1";
    EXPECT_THAT(refusal(c), HasSubstr("min_probability where the device computes nothing"));
    c = simulated(1);
    c.speculative.max_paths = 2;
    EXPECT_THAT(refusal(c), HasSubstr("max_paths is 2, but on device 'sim', which computes nothing"));
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_model_test
