// Drafts by an EAGLE head, from the target's hidden states: the same texts as without it, drafts that hang on nothing
// but the sequence, and what is refused.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "unit/engine/draft_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::testing::eagle_test {
namespace {

using ::testing::HasSubstr;

config::EngineConfig drafted(config::EngineConfig c, uint32_t k = 4) {
    c.proposer = config::PluginChoice{"eagle", {{"model", repository("models/demo-eagle")}}};
    c.engine.num_speculative_tokens = k;
    return c;
}

// Of tiny_model(), with keys changed; a head of dummy weights.
config::EngineConfig dummy_drafted(config::EngineConfig c, const std::string& name,
                                   const std::map<std::string, std::string>& changed = {}) {
    auto shape = tiny_model().model.shape;
    shape["num_hidden_layers"] = "1";
    for (const auto& [key, value] : changed) shape[key] = value;
    c.proposer = config::PluginChoice{
        "eagle", {{"model", folder_of(shape, name)}, {"load_format", "dummy"}, {"dtype", "float32"}}};
    c.engine.num_speculative_tokens = 4;
    return c;
}

TEST(Eagle, ChangesNoTextWhateverElseHappens) {
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
    EXPECT_GT(check(drafted(demo(), 15), "long drafts").drafted_at[14], 0u);
    EXPECT_GT(check(short_of_pages(drafted(demo()), 40), "few pages").preemptions, 0u);
    c = drafted(demo());
    c.engine.max_num_seqs = 1; // one after the other: prefixes are found
    EXPECT_GT(check(c, "prefixes").cached, 0u);
}

// What it computes for a sequence is the same in any batch, and however the prompt was cut.
TEST(Eagle, DraftsByTheSequenceAlone) {
    std::vector<Case> all;
    for (uint64_t i = 0; i < 6; ++i)
        all.push_back({random_prompt(i, 21 + 7 * static_cast<uint32_t>(i), kVocab),
                       i % 2 ? seeded(i, 24) : greedy(24)});
    auto c = drafted(demo());
    c.engine.enable_prefix_caching = false;
    const Ran together = run(c, all);
    ASSERT_GT(together.accepted, 0u);
    const auto check = [&](const config::EngineConfig& changed, const std::string& what) {
        const Ran r = run(changed, all);
        EXPECT_EQ(r.drafted_at, together.drafted_at) << what;
        EXPECT_EQ(r.accepted_at, together.accepted_at) << what;
    };
    auto changed = c;
    changed.engine.max_num_seqs = 1;
    check(changed, "alone");
    changed.engine.max_num_batched_tokens = 13; // leaves no prompt a last chunk of one token, which drafts would follow
    check(changed, "alone and in chunks");
    changed = c;
    changed.engine.max_num_batched_tokens = 37;
    changed.engine.max_num_seqs = 4;
    check(changed, "four at a time, in chunks");
    changed.engine.threads = 2;
    check(changed, "two threads");
}

// A head that ends where it began would be right by chance only: the trained one is right for a good part.
TEST(Eagle, IsRightAboutTextAsItWasTrainedToBe) {
    std::vector<Case> all;
    const auto tokenizer = text::Tokenizer::load(repository("models/demo-target"));
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    for (const char* begin : {"Once upon a time", "\"I will go,\" said", "The Tin Woodman", "Dorothy and Toto"})
        all.push_back({(*tokenizer)->encode(begin), greedy(60)});
    const Ran r = run(drafted(demo()), all);
    EXPECT_GT(3 * r.accepted_at[0], r.drafted_at[0]) << "fewer than a third of the first drafts are right";
    for (size_t i = 1; i < 4; ++i) EXPECT_LE(r.accepted_at[i], r.accepted_at[i - 1]) << i;
    EXPECT_GT(r.accepted_at[2], 0u);
}

TEST(Eagle, ChangesNoneOfSeveralOutputsOfAPrompt) {
    const auto texts = [](const config::EngineConfig& c, uint64_t& accepted) {
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
        for (const StepReport& s : h.steps) accepted += s.drafts.accepted_tokens;
        EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
        return out;
    };
    uint64_t none = 0, accepted = 0;
    const auto without = texts(demo(), none);
    EXPECT_EQ(without.size(), 4u);
    EXPECT_EQ(texts(drafted(demo()), accepted), without);
    EXPECT_GT(accepted, 0u);
}

TEST(Eagle, ComputesEachTokenOnceWhereItDraftsOne) {
    const std::vector<Case> one = {{random_prompt(1, 30, kVocab), greedy(24)}};
    const Ran r = run(drafted(demo(), 1), one); // one draft a step: no pass goes on from the head's own hidden state
    EXPECT_LE(r.draft_tokens, 30u + 24 - 1);
    EXPECT_GE(r.draft_tokens, 30u + 24 - 1 - 2); // no step continues from what the last step computes
}

TEST(Eagle, EndsAChainThatItDoubts) {
    auto c = drafted(demo());
    const auto all = cases(4);
    const Ran sure = run(c, all);
    c.proposer->settings["min_probability"] = "0.3";
    const Ran doubtful = run(c, all);
    expect_same_texts(doubtful, sure, "min_probability");
    EXPECT_LT(doubtful.drafted, sure.drafted);
    EXPECT_GT(doubtful.accepted * sure.drafted, sure.accepted * doubtful.drafted) << "of fewer drafts a larger share";
}

TEST(Eagle, KeepsNothingOfRequestsThatAreAborted) {
    Harness h(short_of_pages(drafted(demo()), 200));
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

TEST(Eagle, DraftsNoFurtherThanItReaches) {
    const auto c = tiny_model();
    const std::vector<Case> one = {{random_prompt(1, 40), greedy(60)}};
    const Ran with = run(dummy_drafted(c, "eagle_short", {{"max_position_embeddings", "60"}}), one);
    expect_same_texts(with, run(c, one), "short reach");
    EXPECT_GE(with.drafted, 14u);
}

TEST(Eagle, OnADeviceThatComputesNothingIsAcceptedAsItIsSaid) {
    auto c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e21"},
                         {"memory_bytes", "100000000"}, {"launch_ns", "1000"}};
    c = dummy_drafted(c, "eagle_sim");
    c.proposer->settings.erase("dtype");
    EXPECT_THAT(refusal(c), HasSubstr("which drafts the model accepts has to be declared"));
    std::vector<Case> all;
    for (uint64_t i = 0; i < 4; ++i) all.push_back({random_prompt(i, 30), greedy(40)});
    for (const char* share : {"0", "1"}) {
        c.proposer->settings["simulated_acceptance"] = share;
        const Ran r = run(c, all);
        EXPECT_GT(r.drafted, 0u);
        EXPECT_EQ(r.accepted, share == std::string("1") ? r.drafted : 0u);
    }
}

// ---- what is refused ----

TEST(Eagle, IsRefusedWhereTheTargetGivesNoHiddenStates) {
    auto c = tiny_model();
    c.model.shape["architectures.0"] = "Gemma2ForCausalLM";
    EXPECT_EQ(refusal(dummy_drafted(c, "eagle_gemma")),
              "head 'eagle' reads hidden states, which model 'gemma' does not give (use a separate draft model)");
}

TEST(Eagle, IsRefusedBesideAModelOfAnotherWidth) {
    EXPECT_EQ(refusal(dummy_drafted(tiny_model(), "eagle_wide", {{"hidden_size", "128"}})),
              "head 'eagle' is of a model with hidden_size 128, and model 'llama' has 64 (take the head that was "
              "trained for it)");
    EXPECT_THAT(refusal(dummy_drafted(tiny_model(), "eagle_words", {{"vocab_size", "301"}})),
                HasSubstr("has a vocabulary of 301 tokens, expected the model's 300"));
}

TEST(Eagle, IsRefusedAsAnEagle3Head) {
    EXPECT_THAT(refusal(dummy_drafted(tiny_model(), "eagle_3", {{"draft_vocab_size", "100"}})),
                HasSubstr("draft_vocab_size is 100, less than vocab_size: that is an EAGLE-3 head"));
}

TEST(Eagle, IsRefusedByItself) {
    auto c = tiny_model();
    c.model.plugin = "eagle";
    EXPECT_THAT(refusal(c), HasSubstr("model 'eagle' is a draft head and cannot generate text by itself"));
}

TEST(Eagle, IsRefusedWhereItIsNotOrIsNotWhole) {
    auto c = drafted(demo());
    c.proposer->settings["model"] = repository("models/missing");
    EXPECT_THAT(refusal(c), HasSubstr("models/missing"));
    c.proposer->settings["model"] = repository("models/demo-draft"); // a model, but no head
    EXPECT_NE(refusal(c), "");

    const std::filesystem::path folder = temporary_folder() / "eagle_cut";
    std::filesystem::create_directories(folder);
    const std::filesystem::path whole = repository("models/demo-eagle");
    std::filesystem::copy_file(whole / "config.json", folder / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    c.proposer->settings["model"] = folder.string();
    for (const uintmax_t bytes : {0u, 7u, 100u, 5000u}) {
        std::filesystem::copy_file(whole / "model.safetensors", folder / "model.safetensors",
                                   std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(folder / "model.safetensors", bytes);
        EXPECT_THAT(refusal(c), HasSubstr("model.safetensors")) << bytes;
    }
}

}  // namespace
}  // namespace patchbay::engine::testing::eagle_test
