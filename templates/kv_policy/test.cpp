// @name@ - which pages it names; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

void tests() {
    KvPolicy policy(kPlugin, 8); // pages 0 to 7, none of them cached
    policy.cached({.page = 3, .used_us = 1000});
    policy.cached({.page = 5, .used_us = 2000});
    expect(policy.choose(1) == std::vector<uint32_t>{3}, "the page unused the longest goes first");
    policy.used(3);
    expect(policy.choose(1) == std::vector<uint32_t>{5}, "a page that a sequence holds is not named");
    policy.cached({.page = 3, .used_us = 1000, .hits = 100});
    expect(policy.choose(2) == std::vector<uint32_t>{5, 3}, "a page that many requests found stays longer");
    policy.removed(5);
    expect(policy.choose(1) == std::vector<uint32_t>{3}, "a page that is gone is forgotten");
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
