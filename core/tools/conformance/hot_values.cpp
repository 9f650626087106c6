#include "conformance/hot_values.hpp"

#include "base/numbers.hpp"
#include "host/schema.hpp"

namespace patchbay::conformance {
namespace {

// Near the first value, so that what costs time or memory stays affordable.
std::vector<std::string> candidates(const host::ParamManifest& p, const std::string& first) {
    if (p.type == "bool") return {"true", "false"};
    if (p.type == "enum") return p.choices;
    if (p.type == "string") return {};
    const double x = parse_number<double>(first).value_or(0);
    std::vector<std::string> out = {number_text(x + 1), number_text(x - 1)};
    if (p.type == "float") out.insert(out.end(), {number_text(x / 2), number_text(x + 0.125), number_text(x - 0.125)});
    return out;
}

}  // namespace

std::vector<HotValue> hot_values(Subject& subject) {
    std::vector<HotValue> out;
    const auto component = subject.make();
    if (!component) return out;
    const host::Settings settings = (*component)->settings();
    for (const host::ParamManifest& p : host::describe(subject.type()).params) {
        if (!p.hot) continue;
        const std::string& first = settings.at(p.name);
        for (const std::string& other : candidates(p, first)) {
            if (other == first || host::check_value(p, other)) continue;
            out.push_back({p.name, first, other});
            break;
        }
    }
    return out;
}

}  // namespace patchbay::conformance
