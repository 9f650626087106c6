// Files: of a readable length, without tabs, and built by something.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "tree.hpp"
#include "paths.hpp"

namespace patchbay::tidy {
namespace {

TEST(Files, AreOfAReadableLengthAndWithoutTabs) {
    constexpr size_t kLongest = 500;
    for (const SourceText& file : sources()) {
        EXPECT_LE(file.lines.size(), kLongest) << file.path << ": what is hiding in it?";
        for (size_t n = 0; n < file.lines.size(); ++n)
            EXPECT_EQ(file.lines[n].find('\t'), std::string::npos) << file.path << ":" << n + 1;
    }
}

TEST(Files, FitAColumnOf120Characters) {
    const std::regex raw("R\"[a-z]*\\(");
    for (const SourceText& file : sources()) {
        if (file.path.ends_with(".h")) continue;  // the contract's comments stand in columns of their own
        for (size_t n = 0; n < file.lines.size(); ++n) {
            const std::string& line = file.lines[n];
            const auto characters =
                std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
            EXPECT_TRUE(characters <= 120 || std::regex_search(line, raw))
                << file.path << ":" << n + 1 << " has " << characters;
        }
    }
}

TEST(Files, HeadersSayWhatTheyAreFor) {
    for (const SourceText& file : sources()) {
        if (!file.path.ends_with(".hpp") && !file.path.ends_with(".h")) continue;
        ASSERT_FALSE(file.lines.empty()) << file.path;
        EXPECT_TRUE(file.lines[0].starts_with("//") || file.lines[0].starts_with("/*"))
            << file.path << ": begin with what it is for";
        EXPECT_FALSE(file.path.ends_with(".hpp") &&
                     std::none_of(file.lines.begin(), file.lines.end(),
                                  [](const std::string& l) { return l == "#pragma once"; }))
            << file.path;
    }
}

// Every source is compiled, or included by one that is.
TEST(Files, NoneIsDead) {
    const std::string commands = read(std::string(kBuildDir) + "/compile_commands.json");
    ASSERT_FALSE(commands.empty());
    std::set<std::string> included;
    const std::regex quoted("#\\s*include\\s+[\"<]([^\">]+)[\">]");
    for (const SourceText& file : sources())
        for (const std::string& line : file.lines)
            if (std::smatch m; std::regex_search(line, m, quoted))
                included.insert(std::filesystem::path(m[1].str()).filename().string());
    for (const SourceText& file : sources()) {
        if (starts_with_any(file.path, {"tests/fuzz/", "tests/sdk/", "tests/abi/"}))
            continue;  // built by scripts of their own
        if (!PATCHBAY_BENCH && file.path.starts_with("tests/bench/")) continue;
        if (!PATCHBAY_CUDA && starts_with_any(file.path, {"kernels/cuda/", "plugins/attention/paged_cuda/",
                                                        "plugins/sampler/standard_cuda/"}))
            continue;
        if (!PATCHBAY_CUBLAS && starts_with_any(file.path, {"plugins/device/cuda/", "tests/unit/cuda/gpu/"})) continue;
        const bool compiled = commands.find("/" + file.path + "\"") != std::string::npos;
        const bool used = included.contains(std::filesystem::path(file.path).filename().string());
        const bool contract = file.path.starts_with("core/include/"); // for authors of plugins
        EXPECT_TRUE(compiled || used || contract) << file.path << ": nothing builds or includes it";
    }
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
    std::vector<std::string> out;
    const std::regex expression(pattern);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), expression); at != std::sregex_iterator(); ++at)
        out.push_back((*at)[1]);
    return out;
}

TEST(Environment, IsReadOnlyWhereThePageSaysSo) {
    const std::string page = read(std::filesystem::path(kSourceDir) / "docs/configuration.md");
    std::set<std::string> variables;
    for (const SourceText& file : sources())
        for (const std::string& line : file.path.starts_with("tests/") ? std::vector<std::string>{} : file.lines)
            for (const std::string& name : matches(line, "\"((?:PATCHBAY|XDG)_[A-Z_]+)\"")) variables.insert(name);
    EXPECT_GE(variables.size(), 5u);
    for (const std::string& name : variables)
        EXPECT_TRUE(page.find("`" + name + "`") != page.npos || page.find("`$" + name + "/") != page.npos) << name;
}

TEST(Packages, ThatAreInstalledAreNamedAmongThirdParties) {
    const std::filesystem::path source = kSourceDir;
    const auto list = matches(read(source / "scripts/install-deps"), "packages=\\(([^)]*)\\)");
    ASSERT_EQ(list.size(), 1u);
    const std::string parties = read(source / "THIRD_PARTY.md");
    const auto packages = matches(list[0], "(\\S+)");
    EXPECT_GT(packages.size(), 10u);
    for (const std::string& package : packages)
        EXPECT_NE(parties.find("`" + package + "`"), std::string::npos) << package << ": what is it for?";
}

// The pins say what models and golden files were made with.
TEST(Packages, ModelsAreOfTheTransformersThatIsPinned) {
    const std::filesystem::path source = kSourceDir;
    const auto pinned = matches(read(source / "scripts/requirements-train.txt"), "transformers==(\\S+)");
    ASSERT_EQ(pinned.size(), 1u);
    size_t seen = 0;
    for (const char* folder : {"models", "tests/golden/models"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
            if (entry.path().extension() != ".json" || entry.path().filename() == "tokenizer.json") continue;
            for (const std::string& version : matches(read(entry.path()), "\"transformers_version\": \"([^\"]*)\"")) {
                EXPECT_EQ(version, pinned[0]) << entry.path();
                seen += 1;
            }
        }
    EXPECT_GT(seen, 10u);
}

}  // namespace
}  // namespace patchbay::tidy
