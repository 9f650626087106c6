#include "top/terminal.hpp"

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <langinfo.h>
#include <ncurses.h>

#include <clocale>
#include <cstdlib>
#include <cstring>

namespace patchbay::top {
namespace {

enum Pair : short { kDefault, kCyan, kGreen, kYellow, kRed, kBlue };

attr_t attributes_of(Style style) {
    const auto pair = [](Pair p) { return static_cast<attr_t>(COLOR_PAIR(p)); };
    switch (style) {
        case Style::kPlain: return A_NORMAL;
        case Style::kFaint: return A_DIM;
        case Style::kTitle: return A_BOLD | pair(kCyan);
        case Style::kStrong: return A_BOLD;
        case Style::kGood: return pair(kGreen);
        case Style::kWarning: return pair(kYellow);
        case Style::kBad: return A_BOLD | pair(kRed);
        case Style::kUsed: return pair(kCyan);
        case Style::kCached: return pair(kBlue);
        case Style::kChosen: return A_REVERSE;
    }
    return A_NORMAL;
}

void use_colours() {
    if (std::getenv("NO_COLOR") || !has_colors()) return;
    start_color();
    use_default_colors();
    constexpr short kTerminals = -1;
    init_pair(kCyan, COLOR_CYAN, kTerminals);
    init_pair(kGreen, COLOR_GREEN, kTerminals);
    init_pair(kYellow, COLOR_YELLOW, kTerminals);
    init_pair(kRed, COLOR_RED, kTerminals);
    init_pair(kBlue, COLOR_BLUE, kTerminals);
}

Key key_of(int code) {
    using What = Key::What;
    switch (code) {
        case '\n': case '\r': case KEY_ENTER: return {What::kEnter};
        case 27: return {What::kEscape};
        case KEY_BACKSPACE: case 127: case '\b': return {What::kBackspace};
        case '\t': return {What::kTab};
        case KEY_LEFT: return {What::kLeft};
        case KEY_RIGHT: return {What::kRight};
        case KEY_UP: return {What::kUp};
        case KEY_DOWN: return {What::kDown};
        default: break;
    }
    if (code >= ' ' && code < 127) return {What::kCharacter, static_cast<char>(code)};
    return {};
}

}  // namespace

bool locale_is_utf8() {
    std::setlocale(LC_CTYPE, "");
    return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

Result<std::unique_ptr<Terminal>> Terminal::open() {
    if (!newterm(nullptr, stdout, stdin)) {
        const char* const name = std::getenv("TERM");
        return fail(StatusCode::kUnsupported, std::string("TERM is '") + (name ? name : "") +
                                                  "', which ncurses does not know (--once prints without it)");
    }
    return std::unique_ptr<Terminal>(new Terminal());
}

Terminal::Terminal() {
    constexpr int kEscapeMs = 50; // after which Esc is no longer the beginning of another key
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(kEscapeMs);
    curs_set(0);
    use_colours();
}

Terminal::~Terminal() { endwin(); }

PageSize Terminal::size() const {
    return {static_cast<size_t>(std::max(getmaxx(stdscr), 1)), static_cast<size_t>(std::max(getmaxy(stdscr), 1))};
}

void Terminal::paint(const Lines& lines) {
    const PageSize now = size();
    werase(stdscr);
    for (size_t y = 0; y < std::min(lines.size(), now.rows); ++y) {
        wmove(stdscr, static_cast<int>(y), 0);
        const Line line = lines[y].cut_to(now.columns);
        for (const Piece& piece : line.pieces()) {
            wattrset(stdscr, static_cast<int>(attributes_of(piece.style)));
            waddnstr(stdscr, piece.text.c_str(), static_cast<int>(piece.text.size()));
        }
    }
    wattrset(stdscr, A_NORMAL);
    wrefresh(stdscr);
}

std::optional<Key> Terminal::read_key() {
    const int code = wgetch(stdscr);
    if (code == ERR) return std::nullopt;
    return key_of(code);
}

}  // namespace patchbay::top
