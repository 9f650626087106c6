// Each pattern of tests/slow-tests.txt matches a test of the tree: a reason outlives no test that it was written for.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::slow_tests_test {
namespace {

namespace fs = std::filesystem;

// As ctest lists them, with 0 for each parameter: "Suite.Name", "Prefix/Suite.Name/0".
void add_gtests(std::set<std::string>& names) {
    const Pattern declared(R"(\bTEST(_F|_P)?\(\s*(\w+),\s*(\w+)\))");
    const Pattern instance(R"(INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+))");
    std::multimap<std::string, std::string> with_parameters, instances; // by suite: tests, prefixes
    for (const SourceText& file : sources()) {
        if (!file.path.starts_with("tests/")) continue;
        std::string text;
        for (const std::string& line : file.lines) text += line + "\n";
        for (const auto& groups : declared.all_in(text))
            if (groups[1] == "_P") with_parameters.emplace(groups[2], groups[3]);
            else names.insert(groups[2] + "." + groups[3]);
        for (const auto& groups : instance.all_in(text)) instances.emplace(groups[2], groups[1]);
    }
    for (const auto& [suite, prefix] : instances) {
        const auto [begin, end] = with_parameters.equal_range(suite);
        for (auto at = begin; at != end; ++at) names.insert(prefix + "/" + suite + "." + at->second + "/0");
    }
}

// Of CMake: add_test(NAME Alerts …); sdk.x for sdk.${name}; and of functions around it report_test(Report …).
void add_programs(std::set<std::string>& names) {
    const Pattern added(R"(add_test\(NAME (\S+))"), around(R"(\b\w+_(?:test|check)\((\w+) )");
    const Pattern variable(R"(^([^$]*)\$\{\w+\}(.*)$)");
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(kSourceDir) / "tests")) {
        if (entry.path().filename() != "CMakeLists.txt") continue;
        const std::string text = read(entry.path());
        for (const auto& groups : around.all_in(text)) names.insert(groups[1]);
        for (const auto& groups : added.all_in(text)) {
            const auto parts = variable.groups_in(groups[1]);
            names.insert(parts.empty() ? groups[1] : parts[1] + "x" + parts[2]);
        }
    }
}

TEST(SlowTests, EachPatternMatchesATest) {
    std::set<std::string> names;
    add_gtests(names);
    add_programs(names);
    ASSERT_GT(names.size(), 500u);
    std::istringstream list(read(fs::path(kSourceDir) / "tests/slow-tests.txt"));
    size_t patterns = 0;
    for (std::string line; std::getline(list, line);) {
        if (line.empty() || line.starts_with("#")) continue;
        const std::string pattern = line.substr(0, line.find(' '));
        patterns += 1;
        EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        })) << "tests/slow-tests.txt: '" << pattern << "' matches no test (remove or correct it)";
        EXPECT_NE(line.find_first_not_of(' ', pattern.size()), line.npos) << pattern << ": why?";
    }
    EXPECT_GT(patterns, 10u);
}

}  // namespace
}  // namespace patchbay::tidy::slow_tests_test
