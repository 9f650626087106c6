// How large classes are: docs/decisions/0080 names each with more than 25 members, with their number and a reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::classes_test {
namespace {

constexpr size_t kManyMembers = 25;

bool is_member(std::string declaration) {
    static const Pattern begin("^(?:\\s*(?:public|private|protected):)*\\s*");
    static const Pattern other("^(?:using|friend|class|struct|enum|union|typedef|static_assert|static constexpr|$)");
    declaration.erase(0, begin.groups_in(declaration)[0].size());
    return !other.found_in(declaration);
}

// Whether the brace at `close` ends a function's body: what comes before its first brace has parentheses, all of them
// closed, and no further initializer or body follows.
bool ends_function(const std::string& declaration, const std::string& code, size_t close) {
    const auto opened = std::count(declaration.begin(), declaration.end(), '(');
    if (opened == 0 || opened != std::count(declaration.begin(), declaration.end(), ')')) return false;
    const size_t next = code.find_first_not_of(" \n", close + 1);
    return next == code.npos || (code[next] != ',' && code[next] != '{' && code[next] != ';');
}

// Fields and functions that are declared between the braces of which the first is at `open`. Types, constants and
// friends are none.
size_t members_after(const std::string& code, size_t open) {
    std::string declaration;
    size_t count = 0;
    for (size_t at = open + 1, depth = 1; at < code.size(); ++at) {
        const char c = code[at];
        if (c == '{') depth += 1;
        else if (c == '}' && --depth == 0) break;
        const bool ended = depth == 1 && (c == ';' || (c == '}' && ends_function(declaration, code, at)));
        if (ended) {
            count += is_member(declaration);
            declaration.clear();
        } else if (depth == 1 && c != '}') declaration += c;
    }
    return count;
}

struct Class {
    std::string name, path;
    size_t members;
};

std::vector<Class> classes() {
    const Pattern head(R"(\b(?:class|struct)\s+([A-Za-z_][\w:]*)(?:\s+final)?(?:\s*:[^;{()]*)?\s*\{)");
    std::vector<Class> out;
    for (const SourceText& file : sources()) {
        if (!starts_with_any(file.path, {"core/", "plugins/", "metrics/"}) || file.path.ends_with(".h")) continue;
        const std::string code = code_of(file);
        size_t from = 0;
        for (const auto& groups : head.all_in(code)) {
            const size_t open = code.find(groups[0], from) + groups[0].size() - 1;
            out.push_back({groups[1], file.path, members_after(code, open)});
            from = open;
        }
    }
    return out;
}

// By name, as the rows "| `Name` | 27 | why |" of the page say.
std::map<std::string, size_t> named_by(const std::string& page) {
    const Pattern row(R"(\n\| `(\w+)` \| (\d+) \| [^|\n]+ \|)");
    std::map<std::string, size_t> out;
    for (const auto& groups : row.all_in(page))
        EXPECT_TRUE(out.emplace(groups[1], std::stoul(groups[2])).second) << groups[1] << " has two rows";
    return out;
}

// A class of one reason to exist may be long, and then the page says why.
TEST(Classes, ThatAreLargeAreOnThePageWithTheirNumberAndTheReason) {
    const std::filesystem::path decisions = std::filesystem::path(kSourceDir) / "docs/decisions";
    const auto named = named_by(read(decisions / "0080-how-large-a-class-may-be.md"));
    const std::vector<Class> all = classes();
    EXPECT_GT(all.size(), 1000u) << "classes are not found any more";
    std::map<std::string, size_t> large;
    for (const Class& c : all) {
        if (c.members <= kManyMembers) continue;
        EXPECT_TRUE(large.emplace(c.name, c.members).second) << "two large classes are called " << c.name;
        const auto row = named.find(c.name);
        if (row == named.end())
            ADD_FAILURE() << c.path << ": " << c.name << " has " << c.members
                          << " members: has it a part with a name of its own? Else say why in docs/decisions/0080";
        else EXPECT_EQ(row->second, c.members) << c.path << ": docs/decisions/0080 has the left number of " << c.name;
    }
    for (const auto& [name, members] : named)
        EXPECT_TRUE(large.contains(name)) << "docs/decisions/0080 names " << name << " with " << members
                                          << " members, which has no more than " << kManyMembers;
}

TEST(Classes, MembersAreFieldsAndFunctions) {
    const SourceText file{"x.hpp",
                          {"class A final : public B {", "  public:", "    A() : b_{\"};\"}, i_(1) {}",
                           "    int f() const { return {}; }",
                           "    void g(D = {}); // h();",
                           "  private:", "    struct C { int d, e; };", "    using D = int;",
                           "    std::vector<int> b_{1, 2};", "    int i_ = 0;", "};"}};
    const std::string code = code_of(file);
    EXPECT_EQ(members_after(code, code.find('{')), 5u) << code;
}

}  // namespace
}  // namespace patchbay::tidy::classes_test
