// Every public header compiles by itself, without a warning, for each compiler that is here.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "paths.hpp"

namespace patchbay::headers_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> headers() {  // "abi.h", "sdk/scheduler.hpp"
    const fs::path root = std::string(patchbay::kSourceDir) + "/core/include/patchbay";
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(root))
        if (entry.is_regular_file() && entry.path().extension() != ".txt")
            out.push_back(fs::relative(entry.path(), root));
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> words(const std::string& list) {
    std::vector<std::string> out;
    for (size_t from = 0; from < list.size();) {
        const size_t end = std::min(list.find(':', from), list.size());
        out.push_back(list.substr(from, end - from));
        from = end + 1;
    }
    return out;
}

class Header : public ::testing::TestWithParam<std::string> {
  protected:
    static void expect_compiles(const std::string& compiler, const std::string& language) {
        const std::string include = std::string(" -I'") + patchbay::kSourceDir + "/core/include' -I'" +
                                    patchbay::kBuildDir + "/include'";
        const std::string source = "#include \"patchbay/" + GetParam() + "\"\\nint used;\\n"; // C wants something
        const std::string command = "printf '" + source + "' | '" + compiler + "' " + language +
                                    " -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only" + include + " - 2>&1";
        FILE* pipe = popen(command.c_str(), "r");
        ASSERT_NE(pipe, nullptr);
        std::string said;
        char part[4096];
        for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) said.append(part, n);
        EXPECT_EQ(pclose(pipe), 0) << compiler << " " << language << ":\n" << said;
    }
};

TEST_P(Header, CompilesAlone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a compiler does it, whatever this program was built with";
#endif
    const bool is_c = GetParam().ends_with(".h");
    EXPECT_FALSE(words(CXX_COMPILERS).empty());
    for (const std::string& compiler : words(CXX_COMPILERS)) expect_compiles(compiler, "-x c++ -std=c++20");
    if (!is_c) return;
    EXPECT_FALSE(words(C_COMPILERS).empty());
    for (const std::string& compiler : words(C_COMPILERS)) expect_compiles(compiler, "-x c -std=c11");
}

INSTANTIATE_TEST_SUITE_P(Public, Header, ::testing::ValuesIn(headers()), [](const auto& test) {
    std::string name = test.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
});

}  // namespace
}  // namespace patchbay::headers_test
