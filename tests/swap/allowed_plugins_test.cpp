// Libraries whose digests are not allowed are refused before they are mapped: as the engine starts, and as slots are
// swapped.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/private_copy.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "paths.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::allowed_plugins_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kBuilt = fs::path(kBuildDir) / "tests/swap_plugins";
const std::string kZeros(64, '0');

class AllowedPlugins : public ::testing::Test {
  protected:
    AllowedPlugins() : folder_(fs::path(::testing::TempDir()) / ("allowed_" + std::to_string(getpid()))) {
        fs::create_directories(folder_);
        setenv("PATCHBAY_TEST_MARK", mark().c_str(), 1);
        for (const host::Manifest& m : swap_registry().manifests())
            allowed_.digests[m.library.filename().string()].push_back(m.sha256);
    }
    ~AllowedPlugins() override {
        unsetenv("PATCHBAY_TEST_MARK");
        fs::remove_all(folder_);
    }
    std::string mark() const { return (folder_ / "mark").string(); }
    bool was_mapped() const { return fs::exists(mark()); }
    std::string digest() const { return allowed_.digests.at("leaves_mark.so").front(); }
    config::EngineConfig config(const std::string& scheduler) const {
        config::EngineConfig c = busy_engine(scheduler);
        c.allowed_plugins = allowed_;
        return c;
    }
    Result<std::unique_ptr<Engine>> start(const std::string& scheduler) {
        return Engine::create(config(scheduler), swap_registry(), clock_);
    }

    const fs::path folder_;
    host::AllowedPlugins allowed_;
    TickingClock clock_;
};

TEST_F(AllowedPlugins, AreLoadedWhenTheEngineStarts) {
    const auto engine = start("leaves_mark");
    EXPECT_TRUE(engine) << engine.error();
    EXPECT_TRUE(was_mapped()); // so the tests below would see it
}

TEST_F(AllowedPlugins, AnotherDigestIsRefusedAtStartBeforeTheFileIsMapped) {
    const std::string got = digest();
    allowed_.digests["leaves_mark.so"] = {kZeros};
    const auto engine = start("leaves_mark");
    ASSERT_FALSE(engine);
    EXPECT_THAT(engine.error(), HasSubstr("leaves_mark.so: its SHA-256 is " + got + ", expected " + kZeros +
                                          " by allowed_plugins"));
    EXPECT_FALSE(was_mapped());
}

TEST_F(AllowedPlugins, OneThatIsNotNamedIsRefusedAtStart) {
    allowed_.digests.erase("leaves_mark.so");
    const auto engine = start("leaves_mark");
    ASSERT_FALSE(engine);
    EXPECT_THAT(engine.error(), HasSubstr("and allowed_plugins does not name leaves_mark.so"));
    EXPECT_FALSE(was_mapped());
}

TEST_F(AllowedPlugins, AnotherDigestIsRefusedInASwapBeforeItIsProbedOrMapped) {
    for (const bool allowed : {false, true}) {
        const std::string got = digest();
        if (!allowed) allowed_.digests["leaves_mark.so"] = {kZeros, kZeros};
        Swapping s(config("fcfs"));
        s.add_requests();
        s.step();
        const auto swap = s.swap(SwapSlot::kScheduler, {"leaves_mark", {}});
        EXPECT_EQ(was_mapped(), allowed);
        EXPECT_EQ(s.run(), undisturbed());
        if (allowed) {
            EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
            continue;
        }
        EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase find: "));
        EXPECT_THAT(swap->record().text(), HasSubstr("its SHA-256 is " + got + ", expected " + kZeros + " or "));
        allowed_.digests["leaves_mark.so"] = {got};
    }
}

// The manifest is believed in nothing that the bytes do not confirm, not even by the probe.
TEST_F(AllowedPlugins, AManifestThatNamesAnAllowedDigestDoesNotHelpOtherBytes) {
    for (const char* file : {"leaves_mark.so", "leaves_mark.plugin.json"})
        fs::copy_file(kBuilt / file, folder_ / file);
    std::ofstream(folder_ / "leaves_mark.so", std::ios::app) << "other";
    const auto other = host::Registry::open({folder_});
    ASSERT_TRUE(other) << other.error();
    host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    Swapping s(config("fcfs"));
    const auto swap = s.engine->control().swap({SwapSlot::kScheduler, {"leaves_mark", {}}, *other, prober});
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase probe: file.sha256: "));
    EXPECT_FALSE(was_mapped());
}

}  // namespace
}  // namespace patchbay::engine::allowed_plugins_test
