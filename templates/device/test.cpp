// @name@ - what it changes of the device that computes; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

void tests() {
    Device cpu(Plugin(PATCHBAY_SHIPPED_PLUGINS "/device-cpu.so"));
    Device device(kPlugin, "cpu", cpu, {{"memory_mib", "1"}});
    expect(device.info().memory_total == 1 << 20, "it has as much memory as it is given");
    expect(std::string(device.info().compatible_with) == "cpu", "attention and samplers of the inner device serve it");
    const auto half = device.alloc(512 << 10);
    try {
        (void)device.alloc(768 << 10);
        expect(false, "what does not fit is refused");
    } catch (const patchbay::Error& e) {
        expect(e.code == PB_EXHAUSTED, "a refusal says PB_EXHAUSTED");
    }
    (void)device.alloc(256 << 10); // and freed at once
    (void)device.alloc(512 << 10);
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
