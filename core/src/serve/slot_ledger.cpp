#include "serve/slot_ledger.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace patchbay::serve {
namespace {

using LedgerLine = nlohmann::json;

// "scheduler" and "faulty" of "patchbay: scheduler 'faulty': plan: …"
struct Named {
    std::string kind, name;
};
std::optional<Named> component_in(std::string_view message) {
    constexpr std::string_view kProgram = "patchbay: ";
    if (!message.starts_with(kProgram)) return std::nullopt;
    message.remove_prefix(kProgram.size());
    const size_t quote = message.find(" '"), end = message.find("': ");
    if (quote == message.npos || end == message.npos || end < quote) return std::nullopt;
    return Named{std::string(message.substr(0, quote)), std::string(message.substr(quote + 2, end - quote - 2))};
}

}  // namespace

void SlotLedger::write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    for (size_t done = 0; done < line.size();) {
        const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; // the supervisor has gone
        done += static_cast<size_t>(n);
    }
}

void SlotLedger::first(const std::vector<host::Identity>& slots) {
    for (const host::Identity& slot : slots)
        write(LedgerLine{{"event", "first"}, {"kind", slot.kind}, {"name", slot.name}, {"sha256", slot.sha256}}.dump() +
              "\n");
}

void SlotLedger::begin(std::string_view kind, const config::PluginChoice& to, const std::string& sha256,
                       bool new_engine) {
    const LedgerLine line{{"event", "begin"},   {"kind", kind},           {"name", to.plugin},
                          {"sha256", sha256},   {"settings", to.settings}, {"new_engine", new_engine}};
    write(line.dump() + "\n");
}

void SlotLedger::settled(const host::SwapRecord& r) {
    if (!r.settled()) return;
    write(LedgerLine{{"event", name_of(r.state)}, {"kind", r.kind}, {"name", r.to.name}}.dump() + "\n");
}

void SlotHistory::begin_process() {
    for (auto& [kind, slot] : slots_) slot.pending.clear();
}

void SlotHistory::read(std::string_view line) {
    const LedgerLine given = LedgerLine::parse(line, nullptr, false);
    if (!given.is_object()) return;
    const std::string event = given.value("event", ""), name = given.value("name", "");
    Slot& slot = slots_[given.value("kind", "")];
    const std::string sha256 = given.value("sha256", "");
    if (event == "first") {
        if (slot.held.empty()) slot.held.push_back({name, sha256, std::nullopt});
        else slot.held.back().sha256 = sha256;
    } else if (event == "begin") {
        slot.pending.push_back({name, sha256, Choice{{name, given.value("settings", host::Settings{})},
                                                     given.value("new_engine", false)}});
    } else if (const auto at = std::ranges::find(slot.pending, name, &Occupant::name); at != slot.pending.end()) {
        if (event == name_of(host::SwapState::kCommitted)) slot.held.push_back(*at);
        slot.pending.erase(at);
    }
}

// The one on probation is in the slot; a component of the model's slot is not called as its checkpoint is.
std::optional<SlotHistory::Culprit> SlotHistory::blame(std::string_view message) {
    const auto named = component_in(message);
    if (!named) return std::nullopt;
    const auto at = slots_.find(named->kind);
    if (at == slots_.end() || at->second.held.empty()) return std::nullopt;
    Slot& slot = at->second;
    const bool is_model = named->kind == "model";
    const auto newcomer = std::ranges::find_if(
        slot.pending, [&](const Occupant& o) { return is_model || o.name == named->name; });
    Culprit out{named->kind, named->name, {}, {}};
    if (newcomer != slot.pending.end()) {
        out.sha256 = newcomer->sha256;
    } else {
        out.sha256 = slot.held.back().sha256;
        slot.held.pop_back();
    }
    slot.pending.clear();
    crashed_.insert(out.sha256);
    while (!slot.held.empty() && crashed_.contains(slot.held.back().sha256)) slot.held.pop_back();
    if (!slot.held.empty()) out.predecessor = slot.held.back().name;
    return out;
}

SlotHistory::Choices SlotHistory::choices() const {
    Choices out;
    for (const auto& [kind, slot] : slots_)
        if (!slot.held.empty() && slot.held.back().choice) out.emplace(kind, *slot.held.back().choice);
    return out;
}

}  // namespace patchbay::serve
