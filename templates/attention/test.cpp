// @name@ - what it computes, in small; built and run by CMake.
#include <cmath>

#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

bool near(float a, float b) { return std::fabs(a - b) < 1e-5f; }

void tests() {
    Attention attention(kPlugin); // 2 heads over 1 head of keys and values, of 8 elements: one sequence that grows
    const std::vector<float> query(16, 0), key(8, 1), first(8, 3), second(8, 5);
    expect(near(attention.attend(query, key, first)[0], 3), "a token that is alone gets its own value");
    expect(near(attention.attend(query, key, second)[15], 4), "keys of one score are weighted alike, for each head");

    pb_attention_spec spec = small_attention();
    spec.sliding_window = 1;
    Attention narrow(kPlugin, spec);
    (void)narrow.attend(query, key, first);
    expect(near(narrow.attend(query, key, second)[0], 5), "with a window of one token a token sees itself alone");

    spec.head_dim = 100'000;
    try {
        Attention refused(kPlugin, spec);
        expect(false, "heads of 100,000 elements are refused");
    } catch (const patchbay::Error& e) {
        expect(e.code == PB_UNSUPPORTED, "a refusal says PB_UNSUPPORTED");
    }
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
