// The scenario files that ship, with bytes changed: every fault is reported, and nothing crashes or hangs.
#include <gtest/gtest.h>

#include <filesystem>

#include "patchbay/sdk/philox.hpp"
#include "scenario/load.hpp"
#include "scenario/play.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::scenario::mutated_files_test {
namespace {

constexpr std::string_view kBytes = "0123456789abcd:{}[],-# \n'\"&*!\\\x01\xff";

// Another digit in place of one, after the description; or up to three bytes, which mostly leave no YAML.
std::string mutate(std::string text, const PhiloxBlock& bits) {
    if (bits[3] % 2 == 0) {
        const size_t begin = text.find("\nsteps:");
        const size_t at = text.find_first_of("0123456789", begin + bits[0] % (text.size() - begin));
        if (at != std::string::npos) text[at] = kBytes[bits[1] % 10];
        return text;
    }
    for (size_t i = 0; i <= bits[3] / 2 % 3; ++i) text[bits[i] % text.size()] = kBytes[bits[i] / 7 % kBytes.size()];
    return text;
}

TEST(MutatedScenarios, AreRefusedOrPlayed) {
    const std::string build = kBuildDir;
    const auto registry = host::Registry::open({build + "/lib/patchbay/plugins"});
    ASSERT_TRUE(registry) << registry.error();
    host::Prober prober({.program = build + "/bin/patchbay-probe"});
    uint64_t file_number = 0;
    size_t refused = 0, played = 0, differed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(kSourceDir) + "/tests/scenarios")) {
        if (entry.path().extension() != ".yaml") continue;
        const std::string text = file_text(entry.path());
        file_number += 1;
        for (uint64_t round = 0; round < 6; ++round) {
            const std::string mutated = mutate(text, draw(file_number, round, Stream::kSample, 0));
            const auto root = config::parse_yaml(mutated, "m.yaml");
            const auto scenario = root ? load(*root, *registry) : Result<Scenario>(fail("no YAML"));
            refused += !scenario;
            if (!scenario) continue;
            const auto outcome = play(*scenario, *registry, prober);
            played += 1;
            if (!outcome) {
                EXPECT_FALSE(outcome.error().empty()) << mutated;
                continue;
            }
            if (!outcome->difference) continue;
            differed += 1;
            EXPECT_NE(outcome->difference->what, "the engine") << outcome->difference->text() << mutated;
            EXPECT_NE(outcome->difference->what, "after all have ended") << outcome->difference->text() << mutated;
        }
    }
    EXPECT_GT(file_number, 60u);
    EXPECT_GT(refused, 100u);
    EXPECT_GT(played, 100u);
    EXPECT_GT(differed, 50u); // most changes of a number matter to what is expected
}

}  // namespace
}  // namespace patchbay::scenario::mutated_files_test
