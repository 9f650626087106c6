#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "doctor/findings.hpp"

namespace patchbay::doctor {
namespace {

const char* word_of(State state) {
    switch (state) {
        case State::kGood: return "ok";
        case State::kNote: return "note";
        case State::kAbsent: break;
    }
    return "absent";
}

}  // namespace

std::string table_of(const std::vector<Finding>& findings) {
    std::string out, area;
    for (const Finding& f : findings) {
        if (f.area != area) out += (area.empty() ? "" : "\n") + f.area + "\n";
        area = f.area;
        char head[64];
        std::snprintf(head, sizeof head, "  %-7s %-18s ", word_of(f.state), printable(f.name, 40).c_str());
        out += head + printable_message(f.found) + "\n";
        if (!f.remedy.empty()) out += std::string(29, ' ') + "→ " + f.remedy + "\n";
    }
    return out;
}

std::string json_of(const std::vector<Finding>& findings) {
    nlohmann::json out = nlohmann::json::array();
    for (const Finding& f : findings)
        out.push_back({{"area", f.area}, {"name", f.name}, {"state", word_of(f.state)}, {"found", f.found},
                       {"remedy", f.remedy}});
    return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace patchbay::doctor
