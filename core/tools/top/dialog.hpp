// One line at the bottom of the screen in which an order is put together: which slot, which plugin, which settings.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "top/screen_text.hpp"

namespace patchbay::top {

struct Key {
    enum class What { kCharacter, kEnter, kEscape, kBackspace, kTab, kLeft, kRight, kUp, kDown, kOther };
    What what = What::kOther;
    char character = 0; // printable ASCII
};

struct Order {
    enum class What { kSwap, kSet };
    What what = What::kSwap;
    std::string kind, plugin; // plugin: of a swap; of the model, a path
    std::vector<std::pair<std::string, std::string>> settings;
};

struct SlotChoice {
    std::string kind, now; // now: what is in it
    std::vector<std::string> plugins; // that may take it; empty: a path is typed
};

class Dialog {
  public:
    enum class State { kOpen, kCancelled, kDone };

    Dialog(Order::What, std::vector<SlotChoice>); // at least one slot
    State on_key(Key);
    Order order() const; // when it is done
    Line line(size_t columns) const;

  private:
    enum class Step { kKind, kPlugin, kSettings };

    bool types_text() const;
    std::vector<std::string> choices() const;
    void choose(Key);
    void type(Key);
    State advance();
    bool settings_are_sound();

    const Order::What what_;
    const std::vector<SlotChoice> slots_;
    Step step_ = Step::kKind;
    size_t chosen_ = 0, slot_ = 0;
    std::string plugin_, typed_, fault_;
};

// "a=1 b=2" as settings. False: a word is no KEY=VALUE, and which.
bool read_settings(const std::string& text, std::vector<std::pair<std::string, std::string>>& out, std::string& wrong);

}  // namespace patchbay::top
