// Words that do not come back: each has a better one. House rules are in CONTRIBUTING.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::words_test {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, const char*> kWords[] = { // pattern, what to say instead
    {R"([Nn]obody)", "no request, no thread, none"},
    {R"(\b[Ee]very ?body\b|Everybody)", "all, each"},
    {R"([Ww]hoever)", "the one that, the caller"},
    {R"([Ss]omebody)", "one, another"},
    {R"(\b[Ww]hom\b|[a-z]Whom[A-Z])", "which"},
    {R"(\b[Tt]old\b|[a-z]Told([A-Z]|\b)|_told\b)", "given, passed, reported"},
    {R"(\b[Tt]ells\b|\bTells[A-Z]|[a-z]Tells)", "says, shows, reports"},
    {R"(\b[Ss]poilt\b|Spoilt)", "poisoned"},
    {R"(\bkMost([A-Z]|\b))", "kMax, and what it bounds"},
    {R"(\b[Bb]ehind\b|Behind|\bbehind_|_behind\b)", "after"},
    {R"(in_turn\b)", "one_by_one, sync_reason"},
    {R"([Yy]ardstick)", "typical, what it is compared with"},
    {R"(\b[Ss]urprises?\b|surprise_|Surprise[A-Z])", "surprisal"},
};

constexpr std::pair<const char*, const char*> kNames[] = { // of variables, parameters and functions
    {R"(\bmost(_of|_)?\b|\bmost_(bytes|steps|tokens|rows|depth|seqs)\b)", "max_, and what it bounds"},
    {R"(\bfallback\b)", "default_value"},
    {R"(\bcoming\b)", "placeholders, next_"},
};

void expect_none(std::span<const std::pair<const char*, const char*>> words, const std::string& path,
                 const std::string& text) {
    for (const auto& [pattern, better] : words) {
        std::istringstream lines(text);
        size_t n = 1;
        const Pattern word(pattern);
        for (std::string line; std::getline(lines, line); ++n)
            EXPECT_FALSE(word.found_in(line)) << path << ":" << n << ": " << line << "\nsay: " << better;
    }
}

TEST(Words, OfTheSourcesAreTheFieldsOwn) {
    size_t files = 0;
    for (const SourceText& file : sources()) {
        if (starts_with_any(file.path, {"tests/abi/kept/", "tests/tidy/words_test.cpp"})) continue; // older headers
        std::string text;
        for (const std::string& line : file.lines) text += line + "\n";
        expect_none(kWords, file.path, text);
        expect_none(kNames, file.path, code_of(file));
        files += 1;
    }
    EXPECT_GT(files, 1000u);
}

TEST(Words, OfThePagesAreTheFieldsOwn) {
    size_t files = 0;
    for (const char* folder : {"docs", "plugins", "experiments", "configs", "metrics", "templates"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(kSourceDir) / folder)) {
            const std::string path = fs::relative(entry.path(), kSourceDir).string();
            if (!path.ends_with(".md") && !path.ends_with(".yaml")) continue;
            if (starts_with_any(path, {"docs/decisions/", "docs/results/"})) continue; // they are history
            expect_none(kWords, path, read(entry.path()));
            files += 1;
        }
    for (const char* page : {"README.md", "CONTRIBUTING.md"})
        expect_none(kWords, page, read(fs::path(kSourceDir) / page));
    EXPECT_GT(files, 60u);
}

}  // namespace
}  // namespace patchbay::tidy::words_test
