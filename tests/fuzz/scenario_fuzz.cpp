// Untrusted scenario files: each is refused with its faults, or played to an end that is the same each time.
// Whatever they do to it, the engine loses no block, and the schedulers that ship plan nothing that is refused.
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scenario/load.hpp"
#include "scenario/play.hpp"
#include "paths.hpp"

namespace {

using namespace patchbay;

const host::Registry& registry() {
    static const auto all = [] {
        spdlog::set_level(spdlog::level::off);
        return host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    }();
    if (!all || all->names("scheduler").empty()) abort();
    return *all;
}

std::string outcome_of(const scenario::Scenario& s) {
    static host::Prober prober({.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    const auto played = scenario::play(s, registry(), prober);
    if (!played) return played.error().empty() ? __builtin_trap(), "" : played.error();
    if (!played->difference) return "";
    const std::string& what = played->difference->what;
    if (what == "after all have ended" || what == "the engine" || what == "plan_faults") __builtin_trap();
    return played->difference->text();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto root = config::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml",
                                         {.bytes = 1 << 13, .nodes = 2000});
    if (!root) return root.error().empty() ? __builtin_trap(), 0 : 0;
    const scenario::Limits limits{.block_tokens = 1 << 14, .prompt_tokens = 1 << 12, .sequences = 64, .steps = 400,
                                  .swaps = 0 /* no other process */, .grammars = 4, .work = 1 << 13};
    auto loaded = scenario::load(*root, registry(), limits);
    if (!loaded) return loaded.error().empty() ? __builtin_trap(), 0 : 0;
    for (scenario::Step& s : loaded->steps) // what the file expects of its faults is its own affair
        if (auto* expect = std::get_if<scenario::step::Expect>(&s.what))
            std::erase_if(expect->expectations,
                          [](const auto& e) { return e.subject == scenario::Subject::kPlanFaults; });
    loaded->steps.push_back({.what = scenario::step::Expect{{{scenario::Subject::kPlanFaults, uint64_t{0},
                                                              config::Origin::automatic("fuzz")}}},
                             .name = "expect", .origin = config::Origin::automatic("fuzz")});
    const std::string outcome = outcome_of(*loaded);
    if (size % 8 == 0 && outcome_of(*loaded) != outcome) __builtin_trap();
    return 0;
}
