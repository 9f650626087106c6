#include "serve/admin_orders.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/suggest.hpp"

namespace patchbay::serve {
namespace {

std::string text_of(Fields& fields, const std::string& name, const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number() || value.is_boolean()) return value.dump();
    fields.refuse(name, std::string("got ") + value.type_name() + ", expected a string, a number, true or false");
    return {};
}

// `needed`: of the fields kind, plugin and params those that the body must have. Where plugin is not, it is refused.
ReadSwap read_slot(const Json& body, const std::vector<std::string>& needed, const std::string& prefix = {}) {
    const bool names_plugin = std::find(needed.begin(), needed.end(), "plugin") != needed.end();
    std::vector<std::string> known = {"kind", "params"};
    if (names_plugin) known.push_back("plugin");
    Fields fields(body, prefix);
    ReadSwap out;
    std::string kind;
    for (const auto& [name, value] : body.items())
        if (std::find(known.begin(), known.end(), name) == known.end())
            fields.refuse(printable(name), "there is no such field" + did_you_mean(name, known));
    for (const std::string& name : needed)
        if (!fields.has(name.c_str())) fields.refuse(name.c_str(), "is missing");
    fields.read("kind", kind);
    if (names_plugin) fields.read("plugin", out.choice.plugin);
    const auto slot = engine::swap_slot(kind);
    if (!slot)
        fields.refuse("kind", "got '" + printable(kind) + "', expected " + engine::one_of(engine::swap_slots()) +
                                  ", which can be swapped" + did_you_mean(kind, engine::swap_slots()));
    if (const Json* params = fields.object("params"))
        for (const auto& [name, value] : params->items())
            out.choice.settings[name] = text_of(fields, "params." + printable(name), value);
    if (slot) out.slot = *slot;
    out.refusal = fields.refusal();
    return out;
}

}  // namespace

ReadSwaps read_swaps(const Json& body) {
    const std::vector<std::string> needed = {"kind", "plugin"};
    ReadSwaps out;
    const auto list = body.find("swaps");
    if (list == body.end()) {
        out.swaps.push_back(read_slot(body, needed));
        out.refusal = out.swaps.front().refusal;
        return out;
    }
    Fields fields(body);
    for (const auto& [name, value] : body.items())
        if (name != "swaps") fields.refuse(printable(name), "there is no such field beside swaps");
    if (!list->is_array() || list->empty()) fields.refuse("swaps", "expected a list of {kind, plugin, params}");
    for (size_t i = 0; list->is_array() && i < list->size() && !fields.refusal(); ++i) {
        const std::string item = "swaps[" + std::to_string(i) + "]";
        if (!list->at(i).is_object()) {
            fields.refuse(item, "expected an object {kind, plugin, params}");
            continue;
        }
        ReadSwap read = read_slot(list->at(i), needed, item + ".");
        fields.keep(read.refusal);
        if (std::ranges::count(out.swaps, read.slot, &ReadSwap::slot) > 0)
            fields.refuse(item + ".kind", "the slot " + std::string(name_of(read.slot)) + " is named twice");
        out.swaps.push_back(std::move(read));
    }
    out.refusal = fields.refusal();
    return out;
}

std::string work_of(const std::string& path, const std::string& body) {
    const auto json = parse_body(body);
    const bool swaps = path == "/swap";
    if (!json || (!swaps && path != "/set")) return "answered " + printable(path);
    ReadSwaps wanted;
    if (swaps) wanted = read_swaps(*json);
    else wanted.swaps.push_back(read_set(*json));
    std::string out = swaps ? "exchanged" : "set parameters of the";
    for (const ReadSwap& part : wanted.swaps) {
        out += (&part == &wanted.swaps.front() ? " " : " and ") + std::string(name_of(part.slot));
        if (swaps) out += " '" + printable(part.choice.plugin) + "'";
    }
    return out;
}

ReadSwap read_set(const Json& body) { return read_slot(body, {"kind", "params"}); }

}  // namespace patchbay::serve
