#include "cli/live_plugin.hpp"

#include <algorithm>
#include <iostream>
#include <vector>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "top/engine_link.hpp"
#include "top/pages.hpp"
#include "top/terminal.hpp"

namespace patchbay::cli {
namespace {

using top::Component;

bool is_named(const Component& c, const std::string& name) {
    return c.plugin == name || c.kind + "/" + c.plugin == name;
}

std::string place_of(const Component& c, const metrics::Scrape& scrape) {
    for (const Component& now : top::components_in_slots(scrape))
        if (now.kind == c.kind && now.plugin == c.plugin) return "in the slot";
        else if (now.kind == c.kind) return "was in the slot, which has " + now.plugin;
    return "was in the slot";
}

}  // namespace

Result<> print_live_component(const serve::AdminAddress& address, const std::string& name) {
    PB_TRY(top::Sample sample, top::take_sample({address}));
    top::History history;
    history.add(sample.at_seconds, std::move(sample.scrape));
    const auto& glyphs = top::locale_is_utf8() ? top::unicode_glyphs() : top::ascii_glyphs();
    const top::View view{history, sample.status, address.text(), "", glyphs};
    constexpr top::PageSize kWide{100, 1000, false};
    std::vector<std::string> names;
    bool found = false;
    for (const Component& c : top::known_components(history.latest())) {
        names.push_back(c.plugin);
        if (!is_named(c, name)) continue;
        found = true;
        std::cout << "\nin the engine on " << printable_message(address.text()) << ": " << printable(c.kind) << ' '
                  << printable(c.plugin) << " " << printable(place_of(c, history.latest())) << "\n\n";
        for (const top::Line& line : top::component_report(c, view, kWide)) std::cout << line.text() << '\n';
    }
    if (found) return {};
    return fail(StatusCode::kNotFound, "the engine on " + address.text() + " has had no component '" + name +
                                           "' in a slot" + did_you_mean(name, names));
}

}  // namespace patchbay::cli
