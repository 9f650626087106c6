// Plugins that were built with other headers than the host: shorter structs, longer ones, those of the first revision.
// They load, pass their kind's checks, and compute what they compute when they are built with the headers of today.
#include <gmock/gmock.h>

#include <set>

#include "conformance/run.hpp"
#include "host/plugin_list.hpp"
#include "host/registry.hpp"
#include "paths.hpp"
#include "sizes.h"
#include "unit/engine/engine_fixture.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::growth_test {
namespace {

using namespace engine::testing;
using engine::TokenId;

struct Build {
    std::string kind, language, headers; // "scheduler", "c", "short"
    Build with(const std::string& others) const { return {kind, language, others}; }
    std::string name() const { return kind + "-" + language + "-" + headers; }
    host::fs::path path() const { return host::fs::path(kBuildDir) / "tests/growth" / (name() + ".so"); }
    std::string component() const { return "kept_" + language; }
};

void PrintTo(const Build& b, std::ostream* out) { *out << b.name(); }

std::vector<Build> builds() {
    std::vector<Build> out;
    for (const char* kind : host::kKinds) {
        for (const char* headers : {"kept", "short", "long"}) out.push_back({kind, "c", headers});
        for (const char* headers : {"kept", "long"}) out.push_back({kind, "sdk", headers});
    }
    return out;
}

struct Checked {
    std::optional<host::Manifest> manifest;
    std::set<std::string> passed, skipped, failed; // by name; of the failed, why
};

Checked check(const Build& build) {
    Checked out;
    std::string name;
    conformance::Listener listener;
    listener.begin = [&](const std::string&, const std::string& check) { name = check; };
    listener.end = [&](const conformance::Outcome& outcome) {
        using What = conformance::Outcome::What;
        if (outcome.what == What::kFailed) out.failed.insert(name + ": " + outcome.reason);
        else (outcome.what == What::kOk ? out.passed : out.skipped).insert(name);
    };
    out.manifest = conformance::run_all(build.path(), std::nullopt, listener);
    return out;
}

config::EngineConfig config_of(const Build& build) {
    config::EngineConfig c = tiny_model();
    const std::string name = build.component();
    c.engine.num_blocks = 40; // not enough for all at once
    c.engine.max_num_batched_tokens = 48;
    if (build.kind == "scheduler") c.scheduler.plugin = name;
    if (build.kind == "sampler") c.sampler.plugin = name;
    if (build.kind == "kv_policy") {
        c.kv_policy = config::PluginChoice{name, {}};
        c.engine.enable_prefix_caching = true;
    }
    if (build.kind == "attention") c.attention.plugin = name;
    if (build.kind == "device") c.device.plugin = name;
    if (build.kind == "model") {
        c.model.plugin = name;
        c.model.shape["architectures.0"] = "KeptForCausalLM";
    }
    if (build.kind == "proposer") {
        c.proposer = config::PluginChoice{name, {}};
        c.engine.num_speculative_tokens = 3;
    }
    return c;
}

// What an engine makes of six prompts with that plugin, installed as `patchbay plugin test` does it.
std::vector<std::vector<TokenId>> texts_of(const Build& build) {
    const host::Folder folder;
    const host::fs::path library = folder / (build.name() + ".so");
    host::write(library, host::bytes_of(build.path()));
    if (const auto done = host::write_manifest(host::manifest_of(library), host::manifest_path(library)); !done)
        throw std::runtime_error(done.error());
    const auto plugins =
        must(host::Registry::open({folder.path(), host::fs::path(kBuildDir) / "lib/patchbay/plugins"}));
    Harness h(config_of(build), plugins);
    for (uint32_t i = 0; i < 6; ++i) h.add(random_prompt(i, 20 + 13 * i), greedy(24));
    std::vector<std::vector<TokenId>> out;
    for (const auto& [id, output] : h.run_all()) out.push_back(output.tokens);
    return out;
}

// Checks of what the contract has had since the day of the kept headers: their plugins lack it.
void drop_later(Checked& checked) {
    for (const char* later : {"device.silu", "device.gelu_erf", "device.gelu_erf_mul", "device.sigmoid_mul",
                              "device.swiglu_oai"})
        checked.skipped.erase(later), checked.passed.erase(later);
}

class Growth : public ::testing::TestWithParam<Build> {};

TEST_P(Growth, LoadsAndPassesEveryCheckThatTodaysBuildPasses) {
    Checked today = check(GetParam().with("today")), its = check(GetParam());
    drop_later(today);
    drop_later(its);
    EXPECT_THAT(its.failed, ::testing::IsEmpty());
    EXPECT_TRUE(its.manifest);
    EXPECT_THAT(today.failed, ::testing::IsEmpty());
    EXPECT_EQ(its.passed, today.passed);
    EXPECT_EQ(its.skipped, today.skipped);
}

TEST_P(Growth, GivesTheTextsOfTodaysBuild) {
    const auto today = texts_of(GetParam().with("today"));
    ASSERT_EQ(today.size(), 6u);
    for (const auto& text : today) EXPECT_EQ(text.size(), 24u);
    EXPECT_EQ(texts_of(GetParam()), today);
}

INSTANTIATE_TEST_SUITE_P(Kept, Growth, ::testing::ValuesIn(builds()), [](const auto& test) {
    return test.param.kind + "_" + test.param.language + "_" + test.param.headers;
});

// Otherwise the tests above compare a build with itself.
TEST(ChangedHeaders, HaveStructsOfOtherSizes) {
    size_t shorter = 0, longer = 0;
    for (; sizes_kept_of_short[shorter].name; ++shorter)
        EXPECT_LT(sizes_short_of_short[shorter].size, sizes_kept_of_short[shorter].size)
            << sizes_kept_of_short[shorter].name << ": FEWER in tests/abi/change-headers must be more for it";
    for (; sizes_kept_of_long[longer].name; ++longer)
        EXPECT_GT(sizes_long_of_long[longer].size, sizes_kept_of_long[longer].size) << sizes_kept_of_long[longer].name;
    EXPECT_GT(shorter, 30u);
    EXPECT_GT(longer, shorter);
}

}  // namespace
}  // namespace patchbay::growth_test
