// @name@ - what it draws, row by row; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

void tests() {
    Sampler sampler(kPlugin, {{"floor", "0.5"}});
    LogitRow row{.logits = {1, 3, 2.9f, -4}};
    row.params.temperature = 0;
    expect(sampler.sample(row) == 1, "temperature 0 takes the likeliest");
    row.allowed = {0b1101};
    expect(sampler.sample(row) == 2, "of those that are allowed");
    row.allowed.clear();
    row.params.temperature = 1;
    bool drawn[4] = {};
    for (row.position = 0; row.position < 200; ++row.position) drawn[sampler.sample(row)] = true;
    expect(drawn[1] && drawn[2], "both that are likely are drawn");
    expect(!drawn[0] && !drawn[3], "none that is less than half as likely as the likeliest is");
    expect(sampler.sample(row) == sampler.sample(row), "the same seed and position give the same token");
    row.params.logprobs = 3; // that of the token, and the two highest
    expect(sampler.sample({row, row}).top_tokens == std::vector<int32_t>{1, 2, 1, 2}, "it reports the likeliest first");
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
