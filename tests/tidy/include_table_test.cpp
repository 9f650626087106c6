// Holds every #include to the table in docs/source-tree.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::include_table_test {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = kSourceDir;

std::vector<std::string> cells(const std::string& row) {
    std::vector<std::string> out;
    std::stringstream in(row.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
        cell.erase(0, cell.find_first_not_of(' '));
        cell.erase(cell.find_last_not_of(' ') + 1);
        out.push_back(cell);
    }
    return out;
}

// allowed[from][to]: "yes", "no", "own folder" or "tensor".
std::map<std::string, std::map<std::string, std::string>> table() {
    std::map<std::string, std::map<std::string, std::string>> out;
    std::vector<std::string> head;
    std::istringstream in(read(kRoot / "docs/source-tree.md"));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("| from")) head = cells(line);
        else if (!head.empty() && line.starts_with("|---")) continue;
        else if (!head.empty() && line.starts_with("|")) {
            const auto row = cells(line);
            for (size_t i = 1; i < row.size() && i < head.size(); ++i) out[row[0]][head[i]] = row[i];
        } else if (!head.empty()) break;
    }
    return out;
}

const std::vector<std::string> kFolders = {"core/include", "core/src", "core/tools", "kernels",
                                           "metrics",      "plugins",  "tests"};

std::string folder_of(const std::string& path) {
    for (const std::string& f : kFolders)
        if (path.starts_with(f + "/")) return f;
    return "";
}

// The folder that a quoted include of `from` means; "" if it is nothing of ours.
std::string target_of(const std::string& from, const std::string& include) {
    if (fs::exists(kRoot / fs::path(from).parent_path() / include))
        return folder_of(
            fs::relative(fs::weakly_canonical(kRoot / fs::path(from).parent_path() / include), kRoot).string());
    if (include.starts_with("patchbay/")) return "core/include";
    for (const char* base : {"core/src", "core/tools", "kernels/include", "kernels", "metrics/include", "tests"})
        if (fs::exists(kRoot / base / include)) return folder_of(std::string(base) + "/x");
    return "";
}

TEST(IncludeTable, EveryIncludeFollowsIt) {
    const auto allowed = table();
    ASSERT_EQ(allowed.size(), kFolders.size()) << "docs/source-tree.md has no include table that this test can read";
    const Pattern quoted("^\\s*#\\s*include\\s+\"([^\"]+)\"");
    size_t seen = 0;
    for (const SourceText& file : sources()) {
        // Templates become plugins.
        const std::string from = file.path.starts_with("templates/") ? "plugins" : folder_of(file.path);
        for (size_t n = 0; n < file.lines.size(); ++n) {
            const auto groups = quoted.groups_in(file.lines[n]);
            if (groups.empty()) continue;
            const std::string include = groups[1], to = target_of(file.path, include);
            if (to.empty()) continue;
            seen += 1;
            const std::string rule = allowed.at(from).at(to);
            const bool tensor_only = include == "patchbay/abi/tensor.h" || include == "patchbay/sdk/tensor.hpp";
            const bool own = fs::exists(kRoot / fs::path(file.path).parent_path() / include);
            EXPECT_TRUE(rule == "yes" || (rule == "tensor" && tensor_only) || (rule == "own folder" && own))
                << file.path << ":" << n + 1 << ": " << from << " may not include " << include << " (" << to << ")";
        }
    }
    EXPECT_GT(seen, 100u);
}

TEST(IncludeTable, ContractHeadersIncludeOnlyCHeaders) {
    const Pattern any("^\\s*#\\s*include\\s+[<\"]([^>\"]+)[>\"]");
    const std::set<std::string> c_headers = {"stddef.h", "stdint.h"};
    for (const SourceText& file : sources()) {
        if (!file.path.starts_with("core/include/") || !file.path.ends_with(".h")) continue;
        for (const std::string& line : file.lines) {
            const auto groups = any.groups_in(line);
            if (groups.empty()) continue;
            const std::string& include = groups[1];
            EXPECT_TRUE(c_headers.contains(include) || (include.starts_with("patchbay/abi") && include.ends_with(".h")))
                << file.path << ": " << include;
        }
    }
}

TEST(IncludeTable, OnlyTheHostKnowsBoostDll) {
    for (const SourceText& file : sources()) {
        if (file.path.starts_with("core/src/host/") || file.path.starts_with("tests/tidy/")) continue;
        for (const std::string& line : file.lines) EXPECT_EQ(line.find("boost/dll"), std::string::npos) << file.path;
    }
}

}  // namespace
}  // namespace patchbay::tidy::include_table_test
