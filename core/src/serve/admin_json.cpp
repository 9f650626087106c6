#include "serve/admin_json.hpp"

#include <unistd.h>

#include <map>

#include "base/printable.hpp"
#include "host/plugin_list.hpp"
#include "serve/effective_settings.hpp"

namespace patchbay::serve {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json component_json(const host::Identity& identity) {
    return {{"plugin", identity.name}, {"version", identity.version}, {"sha256", identity.sha256}};
}

// After a swap the journal has the path of the weights as the model's name.
Json slot_json(const SlotStatus& slot, const engine::EngineFacts& facts) {
    const bool is_model = slot.identity.kind == "model";
    return {{"kind", slot.identity.kind},
            {"plugin", is_model ? model_plugin(facts) : slot.identity.name},
            {"version", slot.identity.version},
            {"sha256", slot.identity.sha256},
            {"library", slot.identity.path},
            {"generation", slot.generation},
            {"on_probation", slot.on_probation}};
}

Json pages_json(const engine::EngineFacts& facts, const engine::StepReport& last, bool stepped) {
    const uint32_t total = stepped ? last.kv.total_pages : facts.kv.num_blocks;
    return {{"used", last.kv.used_pages},
            {"cached", last.kv.cached_pages},
            {"free", total - last.kv.used_pages - last.kv.cached_pages},
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
    const ShownModel shown = c.model();
    const bool swapped = model && model->generation > 1 && model->identity.name != shown.path;
    Json slots = Json::array(), configuration = Json::array(), pending = Json::array(), ended = Json::array();
    for (const SlotStatus& slot : in.journal.slots) slots.push_back(slot_json(slot, shown.facts));
    for (const EffectiveSetting& s :
         effective_settings(in.requested, shown.facts, in.journal, stepped ? &last : nullptr))
        configuration.push_back(
            {{"key", s.key}, {"requested", s.requested}, {"effective", s.effective}, {"reason", s.reason}});
    for (const PendingSwap& p : in.pending) {
        const SlotStatus* const slot = in.journal.slot(p.kind);
        const bool in_it = slot && slot->on_probation && slot->identity.name == p.plugin;
        const std::string from = in_it ? slot->predecessor : slot ? slot->identity.name : "";
        pending.push_back({{"kind", p.kind}, {"from", text_or_null(from)}, {"plugin", p.plugin}, {"state", p.state}});
    }
    for (const host::SwapRecord& r : in.journal.swaps) ended.push_back(swap_json(r));
    Json builds = Json::array();
    for (const NewBuild& b : in.new_builds)
        builds.push_back({{"kind", b.kind}, {"plugin", b.plugin}, {"sha256", b.sha256}, {"library", b.library}});
    return {{"state", name_of(in.service.state)},
            {"reason", text_or_null(in.service.reason)},
            {"version", c.version},
            {"pid", getpid()},
            {"task", c.task},
            {"model",
             {{"name", shown.name},
              {"path", swapped ? model->identity.name : shown.path},
              {"identity", swapped ? Json() : Json(shown.facts.model.identity)},
              {"architecture", shown.facts.model.architecture},
              {"max_model_len", shown.facts.max_model_len}}},
            {"slots", std::move(slots)},
            {"configuration", std::move(configuration)},
            {"queues",
             {{"running", last.queues.running_requests},
              {"waiting", last.queues.waiting_requests},
              {"inbox", in.service.inbox}}},
            {"pages", pages_json(shown.facts, last, stepped)},
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

}  // namespace patchbay::serve
