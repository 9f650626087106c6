// What docs/engine-behaviour.md names as proof is there: scenarios by their file, tests by suite and name.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::promises_test {
namespace {

std::set<std::string> tests_of_the_tree() {
    const Pattern declared(R"(^TEST(_F|_P)?\((\w+),\s*(\w+)\))");
    std::set<std::string> out;
    for (const SourceText& file : sources())
        if (file.path.starts_with("tests/"))
            for (const std::string& line : file.lines)
                if (line.starts_with("TEST"))
                    if (const auto groups = declared.groups_in(line); !groups.empty())
                        out.insert(groups[2] + "." + groups[3]);
    return out;
}

TEST(Promises, NameScenariosAndTestsThatExist) {
    const std::filesystem::path root = kSourceDir;
    const std::set<std::string> tests = tests_of_the_tree();
    ASSERT_GT(tests.size(), 500u);
    std::stringstream page(read(root / "docs/engine-behaviour.md"));
    const Pattern quoted("`([^`]+)`");
    size_t rows = 0;
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| ") || line.starts_with("| behaviour |")) continue;
        const size_t column = line.rfind(" | ");
        ASSERT_NE(column, std::string::npos) << line;
        const std::string proofs = line.substr(column);
        rows += 1;
        size_t named = 0;
        for (const auto& groups : quoted.all_in(proofs)) {
            const std::string& name = groups[1];
            named += 1;
            if (name.find('.') != std::string::npos) EXPECT_TRUE(tests.contains(name)) << "no test " << name;
            else EXPECT_TRUE(exists(root / "tests/scenarios" / (name + ".yaml"))) << "no scenario " << name;
        }
        EXPECT_GT(named, 0u) << line;
    }
    EXPECT_GT(rows, 50u);
}

}  // namespace
}  // namespace patchbay::tidy::promises_test
