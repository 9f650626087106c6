// Words that do not come back: each has a better one. House rules are in CONTRIBUTING.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, const char*> kWords[] = { // pattern, what to say instead
    {R"(\b[Nn]obody\b)", "no request, no thread, none"},
    {R"(\b[Ee]very ?body\b)", "all, each"},
    {R"(\b[Ww]hoever\b)", "the one that, the caller"},
    {R"(\b[Ss]omebody\b)", "one, another"},
    {R"(\b[Ww]hom\b)", "which"},
    {R"(\b[Tt]old\b)", "given, passed, reported"},
    {R"(\b[Tt]ells\b)", "says, shows, reports"},
    {R"(\bspoilt\b)", "poisoned"},
    {R"(\bkMost[A-Z])", "kMax"},
    {R"(\bmost_(bytes|steps|tokens|rows|depth|seqs)\b)", "max_"},
};

void expect_none(const std::string& path, const std::string& text) {
    for (const auto& [pattern, better] : kWords) {
        std::istringstream lines(text);
        size_t n = 1;
        const Pattern word(pattern);
        for (std::string line; std::getline(lines, line); ++n)
            EXPECT_FALSE(word.found_in(line)) << path << ":" << n << ": " << line << "\nsay: " << better;
    }
}

TEST(Words, OfTheProductAreTheFieldsOwn) {
    size_t files = 0;
    for (const SourceText& file : sources()) {
        if (!starts_with_any(file.path, {"core/", "plugins/", "kernels/", "metrics/", "templates/"})) continue;
        std::string text;
        for (const std::string& line : file.lines) text += line + "\n";
        expect_none(file.path, text);
        files += 1;
    }
    EXPECT_GT(files, 300u);
}

TEST(Words, OfThePagesAreTheFieldsOwn) {
    size_t files = 0;
    for (const char* folder : {"docs", "plugins", "experiments", "configs", "metrics", "templates"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(kSourceDir) / folder)) {
            const std::string path = fs::relative(entry.path(), kSourceDir).string();
            if (!path.ends_with(".md") && !path.ends_with(".yaml")) continue;
            if (starts_with_any(path, {"docs/decisions/", "docs/results/"})) continue; // they are history
            expect_none(path, read(entry.path()));
            files += 1;
        }
    for (const char* page : {"README.md", "CONTRIBUTING.md"}) expect_none(page, read(fs::path(kSourceDir) / page));
    EXPECT_GT(files, 60u);
}

}  // namespace
}  // namespace patchbay::tidy
