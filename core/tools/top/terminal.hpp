// The whole screen of a terminal, by ncurses: styled lines out, keys in. While the object lives, standard output
// belongs to it; afterwards the screen is as it was.
#pragma once
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "top/dialog.hpp"
#include "top/pages.hpp"

namespace patchbay::top {

bool locale_is_utf8(); // sets the locale of characters from the environment

class Terminal {
  public:
    // The failure: ncurses does not know what TERM names.
    static Result<std::unique_ptr<Terminal>> open();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    PageSize size() const;
    void paint(const Lines&);     // from the top; what does not fit is left out
    std::optional<Key> read_key(); // does not wait; nullopt: there is none

  private:
    Terminal();
};

}  // namespace patchbay::top
