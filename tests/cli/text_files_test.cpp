// Runs tests/cli/*.test. In such a file
//   # …            is a comment
//   $ command      is run by sh in an empty folder; PATH has the built programs, $SRC is the source tree
//   ? 2            is its exit code (0 where nothing is said)
//   anything else  is a line that it prints, standard error included: "…" in it stands for any text, a line that is
//                  only "…" for any number of lines
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.hpp"

namespace {

namespace fs = std::filesystem;
const std::string kAny = "…";

struct Step {
    std::string command;
    std::vector<std::string> expected;
    int code = 0;
    size_t line = 0;
};

std::vector<Step> parse(const fs::path& file) {
    std::ifstream in(file);
    std::vector<Step> steps;
    size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        number += 1;
        if (line.starts_with("# ") || line == "#" || (line.empty() && (steps.empty() || steps.back().expected.empty())))
            continue;
        if (line.starts_with("$ ")) steps.push_back({line.substr(2), {}, 0, number});
        else if (steps.empty()) ADD_FAILURE() << file << ":" << number << ": text before the first command";
        else if (line.starts_with("? ")) steps.back().code = std::stoi(line.substr(2));
        else steps.back().expected.push_back(line);
    }
    for (Step& s : steps)
        while (!s.expected.empty() && s.expected.back().empty()) s.expected.pop_back();
    return steps;
}

bool line_matches(const std::string& got, const std::string& pattern) {
    size_t at = 0, from = 0;
    while (true) {
        const size_t any = pattern.find(kAny, from);
        const std::string piece = pattern.substr(from, any == std::string::npos ? std::string::npos : any - from);
        if (any == std::string::npos)
            return from == 0 ? got == piece : got.size() >= at + piece.size() && got.ends_with(piece);
        const size_t found = got.find(piece, at);
        if (found == std::string::npos || (from == 0 && found != 0)) return false;
        at = found + piece.size();
        from = any + kAny.size();
    }
}

bool lines_match(const std::vector<std::string>& got, size_t g, const std::vector<std::string>& expected, size_t e) {
    if (e == expected.size()) return g == got.size();
    if (expected[e] == kAny) {
        for (size_t skip = g; skip <= got.size(); ++skip)
            if (lines_match(got, skip, expected, e + 1)) return true;
        return false;
    }
    return g < got.size() && line_matches(got[g], expected[e]) && lines_match(got, g + 1, expected, e + 1);
}

struct Ran {
    std::vector<std::string> lines;
    int code;
};

Ran run(const std::string& command, const fs::path& folder) {
    const fs::path script = folder / ".command";
    std::ofstream(script) << command << "\n";
    const std::string shell = "cd '" + folder.string() +
                              "' && PATH=\"" + patchbay::kBuildDir + "/bin:$PATH\" SRC='" + patchbay::kSourceDir +
                              "' PATCHBAY_CACHE='" +
                              folder.string() + "/.cache' sh .command 2>&1 </dev/null";
    FILE* pipe = popen(shell.c_str(), "r");
    std::string text;
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
    const int status = pclose(pipe);
    Ran ran{{}, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) ran.lines.push_back(line);
    return ran;
}

class CommandLine : public ::testing::TestWithParam<std::string> {};

TEST_P(CommandLine, PrintsWhatTheFileSays) {
    const fs::path file = fs::path(patchbay::kSourceDir) / "tests/cli" / (GetParam() + ".test");
    std::string name = (fs::temp_directory_path() / "patchbay-cli-XXXXXX").string();
    const std::vector<Step> steps = parse(file);
    ASSERT_FALSE(steps.empty());
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    for (const Step& step : steps) {
        const Ran ran = run(step.command, name);
        std::ostringstream got;
        for (const std::string& line : ran.lines) got << "  " << line << "\n";
        EXPECT_EQ(ran.code, step.code) << file.filename() << ":" << step.line << ": $ " << step.command << "\n"
                                       << got.str();
        EXPECT_TRUE(lines_match(ran.lines, 0, step.expected, 0))
            << file.filename() << ":" << step.line << ": $ " << step.command << "\nit printed:\n"
            << got.str();
    }
    fs::remove_all(name);
}

std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(fs::path(patchbay::kSourceDir) / "tests/cli"))
        if (entry.path().extension() == ".test") out.push_back(entry.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

INSTANTIATE_TEST_SUITE_P(Files, CommandLine, ::testing::ValuesIn(files()), [](const auto& test) { return test.param; });

}  // namespace
