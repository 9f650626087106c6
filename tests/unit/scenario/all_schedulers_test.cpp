// Every scheduler that is installed, under loads that press it: what has been added ends in bounded steps.
#include <gmock/gmock.h>

#include "patchbay/sdk/philox.hpp"
#include "scenario/load.hpp"
#include "scenario/play.hpp"
#include "paths.hpp"

namespace patchbay::scenario::all_schedulers_test {
namespace {

const host::Registry& registry() {
    static const auto all = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    return *all;
}

class Load {
  public:
    explicit Load(uint64_t seed) : seed_(seed) {}
    uint32_t below(uint32_t n) { return draw(seed_, count_++, Stream::kSample, 0)[0] % n; }

    // Requests of all kinds; a third share a prefix, a third come later, some are aborted.
    std::string steps(uint32_t requests) {
        std::string out = "steps:\n  - add:\n", aborted;
        for (uint32_t i = 0; i < requests; ++i) {
            const std::string id = "r" + std::to_string(i), length = std::to_string(1 + below(60));
            const std::string prompt = below(3) == 0 ? "{repeat: [7, " + length + "]}" : length;
            out += "      - {id: " + id + ", prompt: " + prompt + ", max_tokens: " + std::to_string(1 + below(30)) +
                   ", priority: " + std::to_string(below(5)) + ", tenant: " + std::to_string(below(3)) +
                   ", arrival_ms: " + std::to_string(below(3) == 0 ? 1 + below(60) : 0) +
                   ", deadline_ms: " + std::to_string(below(2) * (1 + below(500))) +
                   ", expected_output_tokens: " + std::to_string(below(2) * below(40)) + "}\n";
            if (below(8) == 0) aborted += (aborted.empty() ? "" : ", ") + id;
        }
        return out + "  - run: 20\n  - abort: [" + aborted + "]\n  - drain: 3000\n  - expect: {plan_faults: 0}\n";
    }

  private:
    uint64_t seed_, count_ = 0;
};

struct Engine {
    const char *name, *keys;
};
void PrintTo(const Engine& e, std::ostream* out) { *out << e.name; }
constexpr Engine kEngines[] = {
    {"room_for_all", "{block_size: 16, num_blocks: 400}"},
    {"little_memory", "{block_size: 4, num_blocks: 30, max_num_batched_tokens: 40, max_num_seqs: 8}"},
    {"one_seat", "{block_size: 4, num_blocks: 40, max_num_seqs: 1, max_num_batched_tokens: 16}"},
    {"few_seats", "{block_size: 16, num_blocks: 30, max_num_seqs: 3, long_prefill_token_threshold: 8}"},
    {"whole_prompts", "{block_size: 4, num_blocks: 30, enable_chunked_prefill: false, max_num_batched_tokens: 120}"},
    {"in_flight", "{block_size: 4, num_blocks: 30, async_scheduling: on, max_num_seqs: 6}"},
    {"watermark", "{block_size: 4, num_blocks: 60, watermark: 0.3, max_num_seqs: 5, max_num_batched_tokens: 8}"},
};

class EveryScheduler : public ::testing::TestWithParam<Engine> {};

TEST_P(EveryScheduler, LetsNoRequestStarve) {
    host::Prober prober({.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    ASSERT_GE(registry().names("scheduler").size(), 11u);
    for (const std::string& policy : registry().names("scheduler"))
        for (uint64_t seed = 1; seed <= 4; ++seed) {
            const std::string yaml =
                "policy: " + policy + "\nengine: " + GetParam().keys + "\n" + Load(seed).steps(40);
            const auto root = config::parse_yaml(yaml, policy + " " + std::to_string(seed));
            ASSERT_TRUE(root) << root.error();
            const auto scenario = load(*root, registry());
            ASSERT_TRUE(scenario) << scenario.error();
            const auto played = play(*scenario, registry(), prober);
            ASSERT_TRUE(played) << played.error();
            EXPECT_GT(played->engine_steps, 20u);
            EXPECT_FALSE(played->difference) << played->difference->text() << "\n" << yaml;
        }
}

INSTANTIATE_TEST_SUITE_P(Scenario, EveryScheduler, ::testing::ValuesIn(kEngines),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace patchbay::scenario::all_schedulers_test
