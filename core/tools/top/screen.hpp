// What `patchbay top` shows and how keys change it: the page, the dialog of an order, its answer. Knows no terminal and
// asks no engine: what keys want of it is taken by the caller.
#pragma once
#include <optional>
#include <string>

#include "top/dialog.hpp"
#include "top/pages.hpp"

namespace patchbay::top {

class Screen {
  public:
    enum class Control { kFull, kWatchOnly }; // watch only: no admin address, so no orders
    explicit Screen(Control control) : control_(control) {}

    struct Wish { // of a key
        bool quit = false;
        std::optional<Order::What> dialog; // open() it when it is known what may take each slot
        std::optional<Order> order;
    };
    Wish on_key(Key);
    void open(Order::What, std::vector<SlotChoice>);
    void show_answer(std::string text, Style); // until the next key

    // A head, the page and two lines at the bottom: just so many rows, or fewer columns and rows as there are.
    Lines lines(const View&, PageSize) const;

  private:
    enum class Page { kOverview, kPlugins };

    Lines body(const View&, PageSize) const;
    Line keys() const;
    void scroll(Key::What);

    const Control control_;
    Page page_ = Page::kOverview;
    mutable size_t first_ = 0; // line of the page, at most as far as the latest painting had use for
    std::optional<Dialog> dialog_;
    Line answer_;
};

}  // namespace patchbay::top
