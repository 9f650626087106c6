// Calls that have one home, or none.
#include <gtest/gtest.h>

#include <algorithm>

#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::calls_test {
namespace {

struct Ban {
    const char* expression;
    const char* why;
    std::vector<std::string> homes; // where it may stand
};

TEST(BannedCalls, StandOnlyAtHome) {
    const std::vector<Ban> bans = {
        {R"(sleep_for|sleep_until|\busleep\(|\bnanosleep\()",
         "wait for a condition; the clock alone sleeps",
         {"core/src/base/clock.cpp"}},
        {R"((system|steady|high_resolution)_clock)",
         "time is a service: base/clock.hpp",
         {"core/src/base/clock.cpp", "core/src/base/thread_pool.cpp", "tests/bench/"}},
        {R"(\bstd::rand\b|\bsrand\(|\brand\(\)|random_device)", "draws are Philox, of a seed", {}},
        {R"(\bdlopen\(|\bdlsym\()",
         "plugins are loaded by core/src/host",
         {"core/src/host/", "core/tools/doctor/surroundings.cpp", "core/include/patchbay/testing/plugin.hpp"}},
        {R"(#pragma omp|\bomp_)", "one thread pool, the host's", {}},
        {R"(using namespace std;)", "names say where they come from", {}},
        {R"(/home/[a-z]+/|/root/)", "a path of one machine", {}},
    };
    for (const Ban& ban : bans) {
        const Pattern expression(ban.expression);
        for (const SourceText& file : sources()) {
            if (file.path.starts_with("tests/tidy/") || starts_with_any(file.path, ban.homes)) continue;
            for (size_t n = 0; n < file.lines.size(); ++n) {
                const std::string code = file.lines[n].substr(0, file.lines[n].find("//"));
                EXPECT_FALSE(expression.found_in(code)) << file.path << ":" << n + 1 << ": " << ban.why;
            }
        }
    }
}

// A failure that is passed on keeps its code: by prefixed(), as it is, or with its code() beside the new text.
TEST(BannedCalls, NoFailureIsMadeOfTheTextOfAnotherAlone) {
    const Pattern begin(R"(\b(fail|invalid|unsupported|not_found|unavailable|broken)\()");
    for (const SourceText& file : sources()) {
        if (!starts_with_any(file.path, {"core/", "plugins/", "metrics/"})) continue;
        for (size_t n = 0; n < file.lines.size(); ++n) {
            if (!begin.found_in(file.lines[n])) continue;
            std::string statement = file.lines[n];
            for (size_t m = n + 1; m < file.lines.size() && statement.find(';') == statement.npos; ++m)
                statement += file.lines[m];
            statement.erase(0, statement.find(" return ") == statement.npos ? 0 : statement.find(" return "));
            const bool has_text = statement.find(".error()") != statement.npos;
            const bool has_code = statement.find(".code()") != statement.npos ||
                                  statement.find("StatusCode::") != statement.npos ||
                                  statement.find("fail(code, ") != statement.npos;
            EXPECT_FALSE(has_text && !has_code) << file.path << ":" << n + 1 << ": " << statement;
        }
    }
}

TEST(BannedCalls, StandardOutputIsForTheProgramsThatPrint) {
    const Pattern expression(R"(std::cout|\bprintf\(|\bputs\()");
    for (const SourceText& file : sources()) {
        if (starts_with_any(file.path, {"core/tools/cli/", "tests/", "core/tools/probe/"})) continue;
        for (size_t n = 0; n < file.lines.size(); ++n)
            EXPECT_FALSE(expression.found_in(file.lines[n])) << file.path << ":" << n + 1;
    }
}

}  // namespace
}  // namespace patchbay::tidy::calls_test
