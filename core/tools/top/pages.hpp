// The pages of `patchbay top`: pure functions of what is known of an engine.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "top/components.hpp"
#include "top/history.hpp"
#include "top/screen_text.hpp"

namespace patchbay::top {

using Json = nlohmann::ordered_json;

struct View {
    const History& history;
    const Json& status;       // what GET /status answered; null: only metrics are known
    std::string address;
    std::string trouble;      // why there is nothing new; empty: there is
    const Glyphs& glyphs;
};
struct PageSize {
    size_t columns, rows;     // rows: a page that is longer leaves its empty lines out
    bool cuts = true;         // the plugins' lines to the columns; else a reason may be longer
};

Line headline(const View&, size_t columns);
Lines overview_page(const View&, PageSize);
// Of each plugin in a slot: time in its calls, faults by reason; swaps by outcome and phase, their pause.
Lines plugins_page(const View&, PageSize);
// The same of one component since the engine began, with the swaps of its slot.
Lines component_report(const Component&, const View&, PageSize);

}  // namespace patchbay::top
