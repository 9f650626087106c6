#include "serve/slot_ledger.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"

namespace patchbay::serve {
namespace {

using LedgerLine = nlohmann::json;

// Of "patchbay: scheduler 'faulty': plan: SIGABRT (abort) in step 3".
std::optional<Culprit> named_in(std::string_view message) {
    constexpr std::string_view kProgram = "patchbay: ";
    if (!message.starts_with(kProgram)) return std::nullopt;
    message.remove_prefix(kProgram.size());
    const size_t quote = message.find(" '"), end = message.find("': ");
    if (quote == message.npos || end == message.npos || end < quote) return std::nullopt;
    Culprit out;
    out.kind = message.substr(0, quote);
    out.name = message.substr(quote + 2, end - quote - 2);
    const std::string_view rest = message.substr(end + 3);
    const size_t colon = rest.find(": ");
    if (colon != rest.npos) out.call = rest.substr(0, colon);
    out.reason = colon == rest.npos ? rest : rest.substr(colon + 2);
    return out;
}

const Culprit* find_in(const std::vector<Culprit>& culprits, const std::string& sha256) {
    const auto at = std::ranges::find(culprits, sha256, &Culprit::sha256);
    return at == culprits.end() ? nullptr : &*at;
}

}  // namespace

std::string Culprit::text() const {
    return kind + " '" + name + "': " + (call.empty() ? "" : call + ": ") + reason;
}

const Culprit* SlotLedger::culprit(const std::string& sha256) const { return find_in(culprits_, sha256); }

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

void SlotLedger::set(std::string_view kind, const config::PluginChoice& now, bool on_probation) {
    const LedgerLine line{{"event", "set"},
                          {"kind", kind},
                          {"name", now.plugin},
                          {"settings", now.settings},
                          {"on_probation", on_probation}};
    write(line.dump() + "\n");
}

void SlotLedger::draining() { write(LedgerLine{{"event", "draining"}}.dump() + "\n"); }

void SlotHistory::begin_process() {
    for (auto& [kind, slot] : slots_) slot.pending.clear();
}

SlotHistory::Occupant* SlotHistory::find(Slot& slot, const std::string& name, bool on_probation) {
    if (on_probation) { // the first one in line
        const auto at = std::ranges::find(slot.pending, name, &Occupant::name);
        return at == slot.pending.end() ? nullptr : &*at;
    }
    return slot.held.empty() || slot.held.back().name != name ? nullptr : &slot.held.back();
}

void SlotHistory::read(std::string_view line) {
    const LedgerLine given = LedgerLine::parse(line, nullptr, false);
    if (!given.is_object()) return;
    const std::string event = given.value("event", ""), name = given.value("name", "");
    if (event == "draining") {
        is_draining_ = true;
        return;
    }
    Slot& slot = slots_[given.value("kind", "")];
    const std::string sha256 = given.value("sha256", "");
    if (event == "first") {
        if (slot.held.empty()) slot.held.push_back({name, sha256, std::nullopt});
        else slot.held.back().sha256 = sha256;
    } else if (event == "begin") {
        slot.pending.push_back({name, sha256, Choice{{name, given.value("settings", host::Settings{})},
                                                     given.value("new_engine", false)}});
    } else if (event == "set") {
        Occupant* const changed = find(slot, name, given.value("on_probation", false));
        if (changed) changed->choice = Choice{{name, given.value("settings", host::Settings{})}};
    } else if (const auto at = std::ranges::find(slot.pending, name, &Occupant::name); at != slot.pending.end()) {
        if (event == name_of(host::SwapState::kCommitted)) slot.held.push_back(*at);
        slot.pending.erase(at);
    }
}

// The one on probation is in the slot; a component of the model's slot is not called as its checkpoint is.
std::optional<Culprit> SlotHistory::blame(std::string_view message) {
    std::optional<Culprit> out = named_in(message);
    if (!out) return std::nullopt;
    const auto at = slots_.find(out->kind);
    if (at == slots_.end() || at->second.held.empty()) return std::nullopt;
    Slot& slot = at->second;
    const bool is_model = out->kind == "model";
    const auto newcomer = std::ranges::find_if(
        slot.pending, [&](const Occupant& o) { return is_model || o.name == out->name; });
    if (newcomer != slot.pending.end()) {
        out->sha256 = newcomer->sha256;
    } else {
        out->sha256 = slot.held.back().sha256;
        slot.held.pop_back();
    }
    slot.pending.clear();
    out->time = utc_now();
    culprits_.push_back(*out);
    while (!slot.held.empty() && find_in(culprits_, slot.held.back().sha256)) slot.held.pop_back();
    if (!slot.held.empty()) out->predecessor = slot.held.back().name;
    return culprits_.back() = *out;
}

SlotHistory::Choices SlotHistory::choices() const {
    Choices out;
    for (const auto& [kind, slot] : slots_)
        if (!slot.held.empty() && slot.held.back().choice) out.emplace(kind, *slot.held.back().choice);
    return out;
}

}  // namespace patchbay::serve
