#include "serve/admin_json.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "host/plugin_list.hpp"
#include "serve/effective_settings.hpp"

namespace patchbay::serve {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json component_json(const host::Identity& identity) {
    return {{"plugin", identity.name}, {"version", identity.version}, {"sha256", identity.sha256}};
}

Json slot_json(const SlotStatus& slot) {
    return {{"kind", slot.identity.kind},
            {"plugin", slot.identity.name},
            {"version", slot.identity.version},
            {"sha256", slot.identity.sha256},
            {"library", slot.identity.path},
            {"generation", slot.generation},
            {"on_probation", slot.on_probation}};
}

Json pages_json(const engine::EngineFacts& facts, const engine::StepReport& last, bool stepped) {
    const uint32_t total = stepped ? last.total_pages : facts.num_blocks;
    return {{"used", last.used_pages},
            {"cached", last.cached_pages},
            {"free", total - last.used_pages - last.cached_pages},
            {"total", total}};
}

// "scheduler/fcfs" of each component that a name stands for, and which one it is.
std::map<std::string, std::string> known(const host::Registry& registry) {
    std::map<std::string, std::string> out;
    for (const host::Manifest& m : registry.manifests())
        for (const host::ComponentManifest& c : m.components)
            out.try_emplace(c.kind + "/" + c.name, m.library.string() + " " + m.sha256);
    return out;
}

std::string text_of(Fields& fields, const std::string& name, const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number() || value.is_boolean()) return value.dump();
    fields.refuse(name, std::string("got ") + value.type_name() + ", expected a string, a number, true or false");
    return {};
}

}  // namespace

Json swap_json(const host::SwapRecord& r) {
    return {{"kind", r.kind},
            {"from", component_json(r.from)},
            {"to", component_json(r.to)},
            {"outcome", name_of(r.state)},
            {"phase", text_or_null(r.phase)},
            {"reason", text_or_null(r.reason)},
            {"step", r.step},
            {"end_step", r.end_step},
            {"pause_us", static_cast<double>(r.pause_ns) * 1e-3},
            {"transaction", r.transaction > 0 ? Json(r.transaction) : Json()}};
}

// All of a transaction have one outcome.
Json swaps_json(const std::vector<host::SwapRecord>& together) {
    if (together.size() == 1) return swap_json(together.front());
    Json swaps = Json::array();
    for (const host::SwapRecord& r : together) swaps.push_back(swap_json(r));
    return {{"transaction", together.front().transaction},
            {"outcome", name_of(together.front().state)},
            {"swaps", std::move(swaps)}};
}

Json status_json(const StatusInputs& in) {
    const Controlled& c = in.controlled;
    const engine::StepReport& last = in.service.last;
    const bool stepped = in.service.steps > 0;
    const SlotStatus* const model = in.journal.slot("model");
    const bool swapped = model && model->generation > 1;
    Json slots = Json::array(), configuration = Json::array(), pending = Json::array(), ended = Json::array();
    for (const SlotStatus& slot : in.journal.slots) slots.push_back(slot_json(slot));
    for (const EffectiveSetting& s :
         effective_settings(in.requested, c.facts, in.journal, stepped ? &last : nullptr))
        configuration.push_back(
            {{"key", s.key}, {"requested", s.requested}, {"effective", s.effective}, {"reason", s.reason}});
    for (const PendingSwap& p : in.pending)
        pending.push_back({{"kind", p.kind}, {"plugin", p.plugin}, {"state", p.state}});
    for (const host::SwapRecord& r : in.journal.swaps) ended.push_back(swap_json(r));
    Json builds = Json::array();
    for (const NewBuild& b : in.new_builds)
        builds.push_back({{"kind", b.kind}, {"plugin", b.plugin}, {"sha256", b.sha256}, {"library", b.library}});
    return {{"state", name_of(in.service.state)},
            {"reason", text_or_null(in.service.reason)},
            {"version", c.version},
            {"pid", getpid()},
            {"model",
             {{"name", c.model.names.front()},
              {"path", swapped ? model->identity.name : c.model.root},
              {"identity", swapped ? Json() : Json(c.facts.model_identity)},
              {"architecture", c.facts.architecture},
              {"max_model_len", c.facts.max_model_len}}},
            {"slots", std::move(slots)},
            {"configuration", std::move(configuration)},
            {"queues",
             {{"running", last.running_requests}, {"waiting", last.waiting_requests}, {"inbox", in.service.inbox}}},
            {"pages", pages_json(c.facts, last, stepped)},
            {"new_builds", std::move(builds)},
            {"steps", in.service.steps},
            {"swaps", {{"pending", std::move(pending)}, {"last", std::move(ended)}}}};
}

Json plugins_json(const host::Registry& registry) {
    Json list = Json::array();
    for (const host::ListedComponent& l : host::list_components(registry))
        list.push_back({{"kind", l.component->kind},
                        {"name", l.component->name},
                        {"version", l.component->version},
                        {"summary", l.component->summary},
                        {"library", l.plugin->library.string()},
                        {"sha256", l.plugin->sha256},
                        {"state", name_of(l.state)},
                        {"reason", text_or_null(l.fault)}});
    return {{"plugins", std::move(list)}, {"left_out", registry.remarks()}};
}

Json reload_json(const host::Registry& before, const host::Registry& after) {
    const auto old = known(before), now = known(after);
    Json added = Json::array(), changed = Json::array(), removed = Json::array();
    for (const auto& [name, which] : now)
        if (const auto was = old.find(name); was == old.end()) added.push_back(name);
        else if (was->second != which) changed.push_back(name);
    for (const auto& [name, which] : old)
        if (!now.contains(name)) removed.push_back(name);
    return {{"added", std::move(added)},
            {"changed", std::move(changed)},
            {"removed", std::move(removed)},
            {"left_out", after.remarks()}};
}

namespace {

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

ReadSwap read_set(const Json& body) { return read_slot(body, {"kind", "params"}); }

}  // namespace patchbay::serve
