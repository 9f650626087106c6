// Files: without tabs, of lines that fit, and built by something. Of long ones it asks for a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::files_test {
namespace {

TEST(Files, HaveNoTabs) {
    for (const SourceText& file : sources())
        for (size_t n = 0; n < file.lines.size(); ++n)
            EXPECT_EQ(file.lines[n].find('\t'), std::string::npos) << file.path << ":" << n + 1;
}

// A function that begins in the first column: where it begins, and how many lines it has.
std::vector<std::pair<size_t, size_t>> functions(const SourceText& file) {
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t n = 0; n < file.lines.size(); ++n) {
        const std::string& line = file.lines[n];
        const bool begins = !line.empty() && line[0] != ' ' && line[0] != '/' && line.ends_with("{");
        if (!begins || line.find('(') == line.npos) continue;
        const auto end = std::find(file.lines.begin() + static_cast<ptrdiff_t>(n), file.lines.end(), "}");
        out.emplace_back(n + 1, end - file.lines.begin() - static_cast<ptrdiff_t>(n) + 1);
    }
    return out;
}

// Warnings, in the output: a long file with one reason to exist is better than two halves of one.
TEST(Files, ThatAreLongAreAskedForAReasonToSplitThem) {
    constexpr size_t kLongFile = 400, kLongFunction = 60;
    size_t bodies = 0;
    for (const SourceText& file : sources()) {
        if (file.lines.size() > kLongFile)
            std::cout << "warning: " << file.path << " has " << file.lines.size()
                      << " lines: has it a second reason to exist, to split it by?\n";
        for (const auto& [line, length] : functions(file)) {
            bodies += 1;
            if (length > kLongFunction)
                std::cout << "warning: " << file.path << ":" << line << ": a function of " << length
                          << " lines: has it a part with a name of its own?\n";
        }
    }
    EXPECT_GT(bodies, 1000u) << "functions are not found any more";
}

TEST(Files, FitAColumnOf120Characters) {
    const Pattern raw("R\"[a-z]*\\(");
    for (const SourceText& file : sources()) {
        if (file.path.ends_with(".h")) continue;  // the contract's comments stand in columns of their own
        for (size_t n = 0; n < file.lines.size(); ++n) {
            const std::string& line = file.lines[n];
            const auto characters =
                std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
            EXPECT_TRUE(characters <= 120 || raw.found_in(line))
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

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
    std::vector<std::string> out;
    for (const auto& groups : Pattern(pattern).all_in(text)) out.push_back(groups[1]);
    return out;
}

// What the build compiles: its commands, and the files that several sources are compiled by at once.
std::string compiled_sources() {
    std::string text = read(std::string(kBuildDir) + "/compile_commands.json");
    for (const std::string& joined : matches(text, "\"file\": \"([^\"]*/together/[^\"]*)\"")) {
        const std::string below = joined.substr(std::string(kBuildDir).size()); // /core/src/together/…
        const std::string root = below.substr(0, below.starts_with("/tests/") ? 7 : below.find("/together/") + 1);
        for (const std::string& source : matches(read(joined), "#include \"([^\"]*)\"")) text += root + source + "\"";
    }
    return text;
}

// Clang 14, which builds what fuzzes, cannot compile the views of GCC 12's library.
TEST(Files, AreReadByTheCompilerThatFuzzes) {
    const Pattern views("#\\s*include\\s+<ranges>|\\bstd::views::");
    for (const SourceText& file : sources())
        for (size_t n = 0; n < file.lines.size(); ++n)
            EXPECT_FALSE(views.found_in(file.lines[n]) && !file.path.starts_with("tests/tidy/"))
                << file.path << ":" << n + 1;
}

// Every source is compiled, or included by one that is.
TEST(Files, NoneIsDead) {
    const std::string commands = compiled_sources();
    ASSERT_FALSE(commands.empty());
    std::set<std::string> included;
    const Pattern quoted("#\\s*include\\s+[\"<]([^\">]+)[\">]");
    for (const SourceText& file : sources())
        for (const std::string& line : file.lines)
            if (const auto groups = quoted.groups_in(line); !groups.empty())
                included.insert(std::filesystem::path(groups[1]).filename().string());
    for (const SourceText& file : sources()) {
        if (starts_with_any(file.path, {"tests/fuzz/", "tests/sdk/", "tests/abi/", "templates/"}))
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

TEST(Environment, IsReadOnlyWhereThePageSaysSo) {
    const std::string page = read(std::filesystem::path(kSourceDir) / "docs/configuration.md");
    std::set<std::string> variables;
    const Pattern variable("\"((?:PATCHBAY|XDG)_[A-Z_]+)\"");
    for (const SourceText& file : sources())
        for (const std::string& line : file.path.starts_with("tests/") ? std::vector<std::string>{} : file.lines)
            for (const auto& groups : variable.all_in(line)) variables.insert(groups[1]);
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

// From the step itself to the end of its last part.
TEST(Files, TheStepLoopFitsOneScreen) {
    bool found = false;
    for (const SourceText& file : sources()) {
        if (file.path != "core/src/engine/loop/step_loop.cpp") continue;
        found = true;
        const auto bodies = functions(file);
        ASSERT_GE(bodies.size(), 4u);
        EXPECT_LT(bodies.back().first + bodies.back().second - bodies.front().first, 80u)
            << "what belongs to one part of a step goes to that part";
    }
    EXPECT_TRUE(found);
}

// More than one screen, one picture and no table belong on other pages.
TEST(Pages, ArchitectureFitsOneScreen) {
    const std::string page = read(std::filesystem::path(kSourceDir) / "docs/architecture.md");
    EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 50);
    EXPECT_EQ(matches(page, "(```mermaid)").size(), 1u);
    EXPECT_EQ(page.find("|---"), std::string::npos) << "a table: docs/source-tree.md has those of folders";
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
}  // namespace patchbay::tidy::files_test
