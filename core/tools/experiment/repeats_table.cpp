#include "experiment/repeats_table.hpp"

#include "base/words.hpp"
#include "experiment/one_of_table.hpp"
#include "experiment/shares.hpp"

namespace patchbay::experiment {
namespace {

constexpr uint32_t kMaxRepeats = 1000;

struct Auto {
    std::string effect = "5%";
    uint32_t first = 10, at_most = 50;
};

Table<Auto> auto_table() {
    Table<Auto> t;
    t.key("effect", &Auto::effect, "the difference that is to be seen, as 5%")
        .key("first", &Auto::first, Bounds{5, kMaxRepeats, "repeats"}, "runs of each variant before it is decided")
        .key("at_most", &Auto::at_most, Bounds{5, kMaxRepeats, "repeats"},
             "runs of each variant, whatever could be seen");
    return t;
}

void read_auto(const Node& given, ExperimentSpec& spec, Faults& faults) {
    Auto read;
    auto_table().read(given, read, faults);
    const auto share = share_of(read.effect);
    const Node* const effect = given.find("effect");
    if (!share || *share < 1e-4 || *share > 10)
        faults.add(effect ? effect->origin : given.origin,
                   "'effect' is '" + config::printable(read.effect) + "', expected a share such as 5%, at least 0.01%");
    if (read.first > read.at_most)
        faults.add(given.origin, "'first' is " + std::to_string(read.first) + ", more than 'at_most', which is " +
                                     std::to_string(read.at_most));
    spec.repeats = read.at_most;
    spec.adaptive = AdaptiveRepeats{share.value_or(0.05), read.first};
}

}  // namespace

config::KeyInfo repeats_key() {
    return {.name = "repeats",
            .description = "runs of each variant, each with another workload; auto: as many as a difference takes",
            .default_value = std::to_string(ExperimentSpec().repeats),
            .json_schema = R"({"oneOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, {"const": "auto"}, )"
                           R"({"type": "object", "properties": {"auto": {"type": "object"}}}]})"};
}

void read_repeats(const Node& given, ExperimentSpec& spec, Faults& faults) {
    using S = ExperimentSpec;
    if (given.kind == NodeKind::kScalar && given.text == "auto")
        return read_auto(Node::map(given.origin), spec, faults);
    if (given.kind != NodeKind::kMap)
        return read_alone(Table<S>().key("repeats", &S::repeats, Bounds{1, kMaxRepeats, "repeats"}, ""), given, spec,
                          faults);
    Table<S>().leave({"auto"}).read(given, spec, faults); // anything else is an unknown key
    const Node* const settings = given.find("auto");
    if (!settings) faults.add(given.origin, "'repeats' is a map without 'auto'");
    else if (config::is_section(*settings, "'auto'", faults)) read_auto(*settings, spec, faults);
}

std::string repeats_text(const ExperimentSpec& spec) {
    const std::string max_repeats = number_of(spec.repeats, "repeat");
    return spec.adaptive ? std::to_string(spec.adaptive->first) + " to " + max_repeats : max_repeats;
}

}  // namespace patchbay::experiment
