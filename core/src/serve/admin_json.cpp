#include "serve/admin_json.hpp"

#include <unistd.h>

#include <map>

#include "base/printable.hpp"
#include "host/plugin_list.hpp"

namespace patchbay::serve {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json component_json(const host::Identity& identity) {
    return {{"plugin", identity.name}, {"version", identity.version}, {"sha256", identity.sha256}};
}

// After a swap the journal has the path of the weights as the model's name.
Json slot_json(const SlotStatus& slot) {
    return {{"kind", slot.identity.kind},
            {"plugin", slot.identity.name_in_library()},
            {"version", slot.identity.version},
            {"sha256", slot.identity.sha256},
            {"library", slot.identity.path},
            {"generation", slot.generation},
            {"on_probation", slot.on_probation},
            {"params", slot.params}};
}

Json pages_json(const engine::EngineFacts& facts, const engine::StepReport& last, bool stepped) {
    const uint32_t total = stepped ? last.kv.total_pages : facts.kv.num_blocks;
    return {{"used", last.kv.used_pages},
            {"cached", last.kv.cached_pages},
            {"free", total - last.kv.used_pages - last.kv.cached_pages},
            {"total", total}};
}

struct EffectiveSetting { // what became of one that says "auto", or that could not be had
    std::string key, requested, effective, reason;
};

// Those whose effective value is not the requested one. `swapped`: the weights are others than those of the facts.
// `last`: the report of the latest step; null: there was none.
std::vector<EffectiveSetting> effective_settings(const config::EngineConfig& c, const engine::EngineFacts& facts,
                                                 bool swapped, const JournalState& journal,
                                                 const engine::StepReport* last) {
    std::vector<EffectiveSetting> out;
    const auto differs = [&](const char* key, std::string requested, std::string effective, std::string reason) {
        out.push_back({key, std::move(requested), std::move(effective), std::move(reason)});
    };
    const config::EngineSettings& e = c.engine;
    const SlotStatus* const model = journal.slot("model");
    if (c.model.plugin == "auto")
        differs("model.plugin", "auto", model ? model->identity.name_in_library() : "",
                swapped ? "serves the checkpoint that was swapped in" : "serves " + facts.model.architecture);
    if (c.model.dtype == config::DType::kAuto)
        differs("model.dtype", "auto", facts.model.dtype, "of the checkpoint");
    if (e.max_model_len == 0)
        differs("engine.max_model_len", "0", std::to_string(facts.max_model_len), "what model and KV cache reach");
    if (e.num_blocks == 0)
        differs("engine.num_blocks", "0", std::to_string(facts.kv.num_blocks),
                e.gpu_memory_utilization > 0 ? "by gpu_memory_utilization" : "by kv_cache_memory");
    if (e.kv_cache_dtype == config::KvDType::kAuto)
        differs("engine.kv_cache_dtype", "auto", facts.kv.dtype, "as the weights");
    if (e.threads == 0)
        differs("engine.threads", "0", std::to_string(facts.threads), "the cores that this process may use");
    constexpr std::string_view kOff = "off: ";
    if (e.enable_prefix_caching && facts.kv.prefix_caching.starts_with(kOff))
        differs("engine.enable_prefix_caching", "true", "false", facts.kv.prefix_caching.substr(kOff.size()));
    if (e.async_scheduling != config::AsyncScheduling::kOff && last && !last->sync_reason.empty())
        differs("engine.async_scheduling", e.async_scheduling == config::AsyncScheduling::kOn ? "on" : "auto", "off",
                std::string(last->sync_reason) + ", at the latest step");
    std::vector<std::pair<const char*, std::string>> swappable = {{"scheduler", c.scheduler.plugin},
                                                                  {"sampler", c.sampler.plugin},
                                                                  {"attention", c.attention.plugin}};
    if (c.proposer) swappable.emplace_back("proposer", c.proposer->plugin);
    if (c.kv_policy) swappable.emplace_back("kv_policy", c.kv_policy->plugin);
    for (const auto& [kind, requested] : swappable)
        if (const SlotStatus* slot = journal.slot(kind); slot && slot->identity.name != requested)
            differs(kind, requested, slot->identity.name, "swapped before step " + std::to_string(slot->since_step));
    if (model && model->generation > 1 && model->identity.name != c.model.path)
        differs("model.path", c.model.path, model->identity.name,
                "swapped before step " + std::to_string(model->since_step));
    return out;
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
            {"code", r.phase.empty() ? Json() : Json(name_of(r.code))},
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

// The latest first, as swaps.
Json restarts_json(const std::vector<Culprit>& culprits) {
    Json out = Json::array();
    for (auto c = culprits.rbegin(); c != culprits.rend(); ++c)
        out.push_back({{"time", c->time},
                       {"kind", c->kind},
                       {"plugin", c->name},
                       {"sha256", c->sha256},
                       {"call", text_or_null(c->call)},
                       {"reason", c->reason},
                       {"next", c->predecessor}});
    return out;
}

Json status_json(const StatusInputs& in) {
    const Controlled& c = in.controlled;
    const engine::StepReport& last = in.service.last;
    const bool stepped = in.service.steps > 0;
    const SlotStatus* const model = in.journal.slot("model");
    const ShownModel shown = c.model();
    const bool swapped = model && model->generation > 1 && model->identity.name != shown.path;
    Json slots = Json::array(), configuration = Json::array(), pending = Json::array(), ended = Json::array();
    for (const SlotStatus& slot : in.journal.slots) slots.push_back(slot_json(slot));
    for (const EffectiveSetting& s :
         effective_settings(in.requested, shown.facts, swapped, in.journal, stepped ? &last : nullptr))
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
              {"architecture", swapped ? Json() : Json(shown.facts.model.architecture)},
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
            {"swaps", {{"pending", std::move(pending)}, {"last", std::move(ended)}}},
            {"restarts", restarts_json(in.culprits)}};
}

Json plugins_json(const host::Registry& registry, const SlotLedger* ledger) {
    Json list = Json::array();
    for (host::ListedComponent& l : host::list_components(registry)) {
        const Culprit* const culprit = ledger ? ledger->culprit(l.plugin->sha256) : nullptr;
        if (culprit && l.state == host::Usability::kUsable) {
            l.state = host::Usability::kRefused;
            l.fault = "its library has ended this server before: " + culprit->text();
        }
        list.push_back({{"kind", l.component->kind},
                        {"name", l.component->name},
                        {"version", l.component->version},
                        {"summary", l.component->summary},
                        {"library", l.plugin->library.string()},
                        {"sha256", l.plugin->sha256},
                        {"state", name_of(l.state)},
                        {"reason", text_or_null(l.fault)}});
    }
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
