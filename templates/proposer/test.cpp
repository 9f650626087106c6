// @name@ - what it drafts; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

void tests() {
    Proposer proposer(kPlugin, {{"window", "6"}});
    expect(proposer.propose(Tokens{7, 8, 9, 7}, 2) == Tokens{8, 9}, "what followed the newest token before");
    expect(proposer.propose(Tokens{7, 8, 9, 7}, 1) == Tokens{8}, "no more than there is room for");
    expect(proposer.propose(Tokens{1, 2, 3}, 4).empty(), "nothing for a token that is new");
    expect(proposer.propose(Tokens{7, 8, 1, 2, 3, 4, 5, 7}, 4).empty(), "nothing from before the window");
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
