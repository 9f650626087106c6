// patchbay/testing/expect.hpp - for tests without a framework: what does not hold ends the program with 1.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace patchbay::testing {

inline void expect(bool holds, const std::string& what, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) { // of the caller
    if (holds) return;
    std::fprintf(stderr, "%s:%d: expected: %s\n", file, line, what.c_str());
    std::exit(1);
}

// Calls tests(), which may throw; for `int main() { return patchbay::testing::run(tests); }`.
template <class F>
int run(F&& tests) {
    try {
        tests();
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}

}  // namespace patchbay::testing
