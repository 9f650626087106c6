#include "top/screen.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace patchbay::top {

Screen::Wish Screen::on_key(Key key) {
    Wish out;
    answer_ = {};
    if (dialog_) {
        const Dialog::State state = dialog_->on_key(key);
        if (state == Dialog::State::kOpen) return out;
        if (state == Dialog::State::kDone) {
            out.order = dialog_->order();
            show_answer("waiting for the engine", Style::kFaint);
        }
        dialog_.reset();
        return out;
    }
    if (key.what == Key::What::kUp || key.what == Key::What::kDown) scroll(key.what);
    if (key.what == Key::What::kTab) page_ = page_ == Page::kOverview ? Page::kPlugins : Page::kOverview, first_ = 0;
    if (key.what != Key::What::kCharacter) return out;
    switch (key.character) {
        case 'q': out.quit = true; break;
        case '1': page_ = Page::kOverview, first_ = 0; break;
        case '2': page_ = Page::kPlugins, first_ = 0; break;
        case 's': out.dialog = Order::What::kSwap; break;
        case 'e': out.dialog = Order::What::kSet; break;
        default: break;
    }
    if (out.dialog && control_ == Control::kWatchOnly) {
        out.dialog.reset();
        show_answer("swap and set need the admin address (--admin)", Style::kWarning);
    }
    return out;
}

void Screen::scroll(Key::What what) {
    if (what == Key::What::kDown) first_ += 1;
    else if (first_ > 0) first_ -= 1;
}

void Screen::open(Order::What what, std::vector<SlotChoice> slots) {
    if (slots.empty()) return show_answer("the engine names no slot that can be swapped", Style::kWarning);
    answer_ = {};
    dialog_.emplace(what, std::move(slots));
}

void Screen::show_answer(std::string text, Style style) { answer_ = Line(printable_message(text), style); }

Lines Screen::body(const View& view, PageSize size) const {
    return page_ == Page::kOverview ? overview_page(view, size) : plugins_page(view, size);
}

Line Screen::keys() const {
    Line out;
    const auto add = [&](const char* key, const char* what, bool chosen = false) {
        out.add(key, Style::kStrong).add(" ").add(what, chosen ? Style::kChosen : Style::kFaint).add("  ");
    };
    if (dialog_) {
        add("Enter", "take it");
        add("Esc", "leave it");
        return out;
    }
    add("1", "overview", page_ == Page::kOverview);
    add("2", "plugins", page_ == Page::kPlugins);
    if (control_ == Control::kFull) add("s", "swap"), add("e", "set");
    add("q", "quit");
    return out;
}

Lines Screen::lines(const View& view, PageSize size) const {
    constexpr size_t kAround = 3; // the head, the dialog or answer, the keys
    const size_t rows = size.rows > kAround ? size.rows - kAround : 0;
    const Lines page = body(view, {size.columns, rows});
    first_ = std::min(first_, page.size() > rows ? page.size() - rows : 0);
    Lines out = {headline(view, size.columns)};
    for (size_t i = first_; i < page.size() && out.size() <= rows; ++i) out.push_back(page[i].cut_to(size.columns));
    out.resize(rows + 1);
    if (size.rows > 1) out.push_back(dialog_ ? dialog_->line(size.columns) : answer_.cut_to(size.columns));
    if (size.rows > 2) out.push_back(keys().cut_to(size.columns));
    return out;
}

}  // namespace patchbay::top
