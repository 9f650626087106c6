// A call of a plugin of any kind that never returns ends the process, with a message that names the plugin and the
// call.
#include <gmock/gmock.h>
#include <unistd.h>

#include "service/engine_thread.hpp"
#include "swap/checkpoint_fixture.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::hang_test {
namespace {

using namespace testing;

// Seconds: more than any other call takes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kLong = 30;
#else
constexpr uint32_t kLong = 2;
#endif

struct Hanging {
    const char* kind;
    SwapSlot slot;
    config::PluginChoice plugin;
    const char* message;
};

void PrintTo(const Hanging& h, std::ostream* out) { *out << h.kind; }

config::EngineConfig engine_for(const Hanging& h) {
    if (h.slot == SwapSlot::kModel) return demo_engine(demo_path());
    config::EngineConfig c = busy_engine("fcfs", "greedy");
    if (h.slot != SwapSlot::kKvPolicy) return c;
    c.engine.num_blocks = 29; // so that pages are evicted
    c.engine.enable_prefix_caching = true;
    c.kv_policy = config::PluginChoice{"lru", {}};
    return c;
}

void serve(const Hanging& h) {
    dup2(STDERR_FILENO, STDOUT_FILENO); // where the log goes, and death tests do not look
    RealClock clock;
    auto engine = Engine::create(engine_for(h), swap_registry(), clock);
    if (!engine) throw std::runtime_error(engine.error());
    service::EngineThread thread(*std::move(engine), {.max_hang_s = kLong});
    const bool is_model = h.slot == SwapSlot::kModel;
    const host::Registry models = with_models_of("swap_hanging_models");
    const auto swap = thread.swap({h.slot, h.plugin, is_model ? models : swap_registry(), prober()});
    std::vector<std::shared_ptr<service::Stream>> streams;
    for (uint64_t i = 0; i < 8; ++i) {
        Request r;
        r.prompt = random_prompt(i, 40);
        r.sampling = greedy(40);
        if (auto stream = thread.submit(std::move(r))) streams.push_back(*std::move(stream));
    }
    for (const auto& stream : streams)
        while (stream->next()) {
        }
    throw std::runtime_error("it has served: " + swap->record().text());
}

class AnyKind : public ::testing::TestWithParam<Hanging> {};

TEST_P(AnyKind, ThatHangsEndsTheProcessAndIsNamed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(serve(GetParam()), GetParam().message);
}

const Hanging kHanging[] = {
    {"scheduler", SwapSlot::kScheduler, {"faulty", {{"fault", "hangs"}, {"blocks", std::to_string(kBlocks)}}},
     "scheduler 'faulty': plan: did not return within .* s in step"},
    {"sampler", SwapSlot::kSampler, {"faulty", {{"fault", "hangs"}, {"vocab", std::to_string(kVocab)}}},
     "sampler 'faulty': sample: did not return within .* s in step"},
    {"proposer", SwapSlot::kProposer, {"faulty", {{"fault", "hangs"}, {"room", "3"}}},
     "proposer 'faulty': propose: did not return within .* s in step"},
    {"kv_policy", SwapSlot::kKvPolicy, {"faulty", {{"fault", "hangs"}, {"blocks", "29"}}},
     "kv_policy 'faulty': choose: did not return within .* s in step"},
    {"attention", SwapSlot::kAttention, {"faulty", {{"fault", "hangs"}, {"seqs", "3"}}},
     "attention 'faulty': plan: did not return within .* s in step"},
    {"model", SwapSlot::kModel, {demo_path(), {}}, "model 'faulty': forward: did not return within .* s in step"},
};
INSTANTIATE_TEST_SUITE_P(Hangs, AnyKind, ::testing::ValuesIn(kHanging),
                         [](const auto& p) { return std::string(p.param.kind); });

}  // namespace
}  // namespace patchbay::engine::hang_test
