// The weights of a running engine are exchanged: every request finishes, and each token comes from one checkpoint or
// the other, with all that is before it computed by the same one.
#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "paths.hpp"
#include "service/engine_thread.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr SwapSlot kModel = SwapSlot::kModel;
const std::string kModels = kSourceDir + std::string("/models/");

// The demo model, as further training might have left it: a bit of its numbers is another.
class OtherCheckpoint {
  public:
    OtherCheckpoint() : folder_(fs::path(::testing::TempDir()) / ("model_swap_" + std::to_string(getpid()))) {
        fs::create_directories(folder_);
        fs::copy(kModels + "demo-target", path(), fs::copy_options::recursive);
        for (const auto& file : fs::directory_iterator(path()))
            if (file.path().extension() == ".safetensors") change(file.path());
    }
    ~OtherCheckpoint() { fs::remove_all(folder_); }
    std::string path() const { return (folder_ / "other").string(); }

  private:
    static void change(const fs::path& file) {
        std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
        uint64_t header = 0;
        f.read(reinterpret_cast<char*>(&header), sizeof header);
        const auto size = static_cast<int64_t>(fs::file_size(file));
        for (int64_t at = static_cast<int64_t>(sizeof header + header); at < size; at += 512) {
            f.seekg(at);
            const int byte = f.get();
            f.seekp(at);
            f.put(static_cast<char>(byte ^ 0x40)); // of a bf16 its highest bit but one of the mantissa
        }
    }
    const fs::path folder_;
};

config::EngineConfig demo(const std::string& path) {
    config::EngineConfig c = tiny_model();
    c.model = {};
    c.model.path = path;
    c.engine.enable_prefix_caching = true;
    c.engine.max_num_seqs = 3;
    c.engine.max_num_batched_tokens = 48;
    c.sampler.plugin = "greedy";
    c.swap.probation_steps = 2;
    return c;
}

// What an engine with this checkpoint goes on with after these tokens.
std::vector<TokenId> continued(const std::string& path, std::vector<TokenId> prompt, uint32_t tokens) {
    Swapping s(demo(path));
    Request r;
    r.prompt = std::move(prompt);
    r.sampling = greedy(tokens);
    r.on_output = [&](const RequestOutput& out) {
        s.texts[0].insert(s.texts[0].end(), out.tokens.begin(), out.tokens.end());
    };
    EXPECT_TRUE(s.engine->add_request(std::move(r)));
    s.run();
    return s.texts[0];
}

struct Asked {
    std::vector<TokenId> prompt;
    uint32_t tokens;
};

std::map<RequestId, Asked> ask(Swapping& s, uint64_t seed, size_t count) {
    std::map<RequestId, Asked> out;
    for (uint64_t i = 0; i < count; ++i) {
        Request r;
        const Asked asked{random_prompt(seed + i, static_cast<uint32_t>(20 + i * 7)), static_cast<uint32_t>(20 + i)};
        r.prompt = asked.prompt;
        r.sampling = greedy(asked.tokens);
        r.on_output = [&s](const RequestOutput& o) {
            s.texts[o.id].insert(s.texts[o.id].end(), o.tokens.begin(), o.tokens.end());
            s.endings[o.id] += o.finish != FinishReason::kNone;
            EXPECT_NE(o.finish, FinishReason::kError) << o.stop_reason;
        };
        out[*s.engine->add_request(std::move(r))] = asked;
    }
    return out;
}

TEST(ModelSwap, EveryTokenIsOfOneCheckpointOrTheOther) {
    const OtherCheckpoint other;
    Swapping s(demo(kModels + "demo-target"));
    const std::string before = s.engine->facts().model_identity;
    auto asked = ask(s, 1, 5);
    for (int i = 0; i < 12; ++i) s.step();
    const Texts then = s.texts;
    ASSERT_GT(then.size(), 1u);
    const auto swap = s.swap(kModel, {other.path(), {}});
    s.step();
    EXPECT_TRUE(s.engine->audit());
    const auto later = ask(s, 1, 2); // prompts that the first model has cached
    asked.insert(later.begin(), later.end());
    s.run([&] { EXPECT_TRUE(s.engine->audit()); });
    EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    EXPECT_NE(s.engine->facts().model_identity, before);
    size_t changed = 0;
    for (const auto& [id, what] : asked) {
        const auto& text = s.texts.at(id);
        const std::vector<TokenId> first = then.contains(id) ? then.at(id) : std::vector<TokenId>{};
        ASSERT_GE(text.size(), first.size());
        EXPECT_TRUE(std::equal(first.begin(), first.end(), text.begin())) << "what was said stays said";
        std::vector<TokenId> so_far = what.prompt;
        so_far.insert(so_far.end(), first.begin(), first.end());
        const std::vector<TokenId> rest(text.begin() + static_cast<ptrdiff_t>(first.size()), text.end());
        const auto left = what.tokens - static_cast<uint32_t>(first.size());
        if (left == 0) continue;
        EXPECT_EQ(rest, continued(other.path(), so_far, left)) << id;
        changed += rest != continued(kModels + "demo-target", so_far, left);
    }
    EXPECT_GT(changed, 0u) << "the two checkpoints say the same";
}

TEST(ModelSwap, ThereAndBackAgainManyTimesLosesNoRequest) {
    const OtherCheckpoint other;
    Swapping s(demo(kModels + "demo-target"));
    ask(s, 1, 5);
    size_t n = 0;
    s.run([&] {
        if (n < 8) s.swap(kModel, {n % 2 == 0 ? other.path() : kModels + "demo-target", {}});
        n += 1;
    });
    for (const auto& [id, count] : s.endings) EXPECT_EQ(count, 1u);
    for (const host::SwapRecord& r : records(s.steps))
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
}

TEST(ModelSwap, IsRefusedToAModelThatKeepsOtherKv) {
    Swapping s(demo(kModels + "demo-target"));
    const auto swap = s.swap(kModel, {kModels + "demo-draft", {}});
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase load: it has a layer_count of"));
    const auto nothing = s.swap(kModel, {"/nowhere", {}});
    EXPECT_THAT(nothing->record().text(), HasSubstr("refused in phase find: there is no such folder or file"));
}

const host::Registry& with_faulty_model() { // which comes first, and so serves the demo models
    static const auto all = host::Registry::open({std::string(kBuildDir) + "/tests/swap_faulty_models"});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

TEST(ModelSwap, OneThatFailsOnProbationIsRolledBackAndNoRequestIsLost) {
    for (const bool with_scheduler : {false, true}) {
        config::EngineConfig c = demo(kModels + "demo-target");
        c.swap.probation_steps = 6;
        Swapping whole(c);
        ask(whole, 1, 5);
        whole.run();
        Swapping s(c);
        ask(s, 1, 5);
        for (int i = 0; i < 4; ++i) s.step();
        const std::string before = s.engine->facts().model_identity;
        std::vector<SwapRequest> requests = {
            {kModel, {kModels + "demo-target", {}}, with_faulty_model(), prober()}};
        if (with_scheduler) requests.push_back({SwapSlot::kScheduler, {"sjf", {}}, swap_registry(), prober()});
        const auto swaps = s.engine->swap_together(requests);
        EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), whole.texts); // of the same weights
        const host::SwapRecord r = swaps[0]->record();
        EXPECT_EQ(r.state, SwapState::kRolledBack) << r.text();
        EXPECT_THAT(r.text(), HasSubstr("rolled back in phase run: "));
        EXPECT_THAT(r.text(), HasSubstr("fails on purpose"));
        EXPECT_EQ(s.engine->facts().model_identity, before);
        if (with_scheduler) {
            EXPECT_EQ(swaps[1]->record().phase, "together");
        }
        EXPECT_EQ(name_in(*s.engine, "scheduler"), "fcfs");
    }
}

// Weights are prepared between its steps, also of an engine that has nothing to compute.
TEST(ModelSwap, OfAnEngineWithAThreadOfItsOwn) {
    const OtherCheckpoint other;
    RealClock clock;
    auto made = Engine::create(demo(kModels + "demo-target"), swap_registry(), clock);
    ASSERT_TRUE(made) << made.error();
    service::EngineThread thread(*std::move(made), {});
    const auto swap = thread.swap({kModel, {other.path(), {}}, swap_registry(), prober()});
    Request r;
    r.prompt = random_prompt(1, 20);
    r.sampling = greedy(12);
    const auto prompt = r.prompt;
    const auto stream = thread.submit(std::move(r));
    ASSERT_TRUE(stream);
    thread.drain();
    EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    std::vector<TokenId> text;
    while (const auto delta = (*stream)->try_next())
        text.insert(text.end(), delta->tokens.begin(), delta->tokens.end());
    EXPECT_EQ(text, continued(other.path(), prompt, 12));
}

}  // namespace
}  // namespace patchbay::engine
