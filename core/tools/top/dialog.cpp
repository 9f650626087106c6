#include "top/dialog.hpp"

#include <sstream>

#include "base/printable.hpp"

namespace patchbay::top {

bool read_settings(const std::string& text, std::vector<std::pair<std::string, std::string>>& out, std::string& wrong) {
    std::istringstream words(text);
    out.clear();
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (equals == 0 || equals == word.npos) {
            wrong = word;
            return false;
        }
        out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return true;
}

Dialog::Dialog(Order::What what, std::vector<SlotChoice> slots) : what_(what), slots_(std::move(slots)) {}

bool Dialog::types_text() const {
    return step_ == Step::kSettings || (step_ == Step::kPlugin && slots_[slot_].plugins.empty());
}

std::vector<std::string> Dialog::choices() const {
    if (step_ == Step::kPlugin) return slots_[slot_].plugins;
    std::vector<std::string> out;
    for (const SlotChoice& slot : slots_) out.push_back(slot.kind);
    return out;
}

Dialog::State Dialog::on_key(Key key) {
    fault_.clear();
    if (key.what == Key::What::kEscape) return State::kCancelled;
    if (key.what == Key::What::kEnter) return advance();
    types_text() ? type(key) : choose(key);
    return State::kOpen;
}

void Dialog::choose(Key key) {
    using enum Key::What;
    const std::vector<std::string> all = choices();
    if (key.what == kLeft || key.what == kUp) chosen_ = (chosen_ + all.size() - 1) % all.size();
    if (key.what == kRight || key.what == kDown || key.what == kTab) chosen_ = (chosen_ + 1) % all.size();
    if (key.what != kCharacter) return;
    for (size_t i = 1; i <= all.size(); ++i) { // the next one that begins with it
        const size_t at = (chosen_ + i) % all.size();
        if (!all[at].starts_with(key.character)) continue;
        chosen_ = at;
        return;
    }
}

void Dialog::type(Key key) {
    if (key.what == Key::What::kCharacter) typed_ += key.character;
    if (key.what == Key::What::kBackspace && !typed_.empty()) typed_.pop_back();
}

bool Dialog::settings_are_sound() {
    std::vector<std::pair<std::string, std::string>> settings;
    std::string wrong;
    if (!read_settings(typed_, settings, wrong)) {
        fault_ = "got '" + wrong + "', expected KEY=VALUE";
        return false;
    }
    if (what_ == Order::What::kSet && settings.empty()) {
        fault_ = "name a setting: KEY=VALUE";
        return false;
    }
    return true;
}

Dialog::State Dialog::advance() {
    if (step_ == Step::kSettings) return settings_are_sound() ? State::kDone : State::kOpen;
    if (step_ == Step::kKind) {
        slot_ = chosen_;
        step_ = what_ == Order::What::kSwap ? Step::kPlugin : Step::kSettings;
    } else {
        plugin_ = types_text() ? typed_ : slots_[slot_].plugins[chosen_];
        if (plugin_.empty()) {
            fault_ = "name a folder with weights";
            return State::kOpen;
        }
        step_ = Step::kSettings;
    }
    chosen_ = 0;
    typed_.clear();
    return State::kOpen;
}

Order Dialog::order() const {
    Order out{what_, slots_[slot_].kind, plugin_, {}};
    std::string wrong;
    read_settings(typed_, out.settings, wrong);
    return out;
}

Line Dialog::line(size_t columns) const {
    Line out(what_ == Order::What::kSwap ? "swap " : "set ", Style::kTitle);
    if (step_ != Step::kKind) out.add(printable(slots_[slot_].kind) + " ", Style::kStrong);
    if (step_ == Step::kPlugin) out.add(printable(slots_[slot_].now) + " to ", Style::kFaint);
    if (step_ == Step::kSettings && !plugin_.empty()) out.add("to " + printable(plugin_) + " ", Style::kStrong);
    if (types_text()) {
        out.add(step_ == Step::kPlugin ? "PATH: " : "KEY=VALUE: ", Style::kFaint).add(typed_).add("_", Style::kChosen);
        return (fault_.empty() ? out : out.add("  " + printable(fault_), Style::kBad)).cut_to(columns);
    }
    const std::vector<std::string> all = choices();
    const size_t used = out.columns();
    size_t first = 0; // such that the chosen one is on the line
    const auto width_to_chosen = [&] {
        size_t width = 0;
        for (size_t i = first; i <= chosen_; ++i) width += columns_of(all[i]) + 1;
        return width;
    };
    while (first < chosen_ && used + width_to_chosen() > columns) ++first;
    for (size_t i = first; i < all.size(); ++i)
        out.add(printable(all[i]), i == chosen_ ? Style::kChosen : Style::kPlain).add(" ");
    return out.cut_to(columns);
}

}  // namespace patchbay::top
