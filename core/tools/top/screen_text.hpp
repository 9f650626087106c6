// Text in styles, line by line: what the pages of `patchbay top` are made of. A terminal shows the styles, a file or
// pipe gets the text alone.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::top {

enum class Style { kPlain, kFaint, kTitle, kStrong, kGood, kWarning, kBad, kUsed, kCached, kChosen };

struct Piece {
    std::string text; // UTF-8
    Style style = Style::kPlain;
};

size_t columns_of(std::string_view utf8); // that a terminal takes for it

class Line {
  public:
    Line() = default;
    Line(std::string text, Style style = Style::kPlain) { add(std::move(text), style); }

    Line& add(std::string text, Style = Style::kPlain);
    Line& add(const Line&);
    Line& pad_to(size_t columns);
    // The text ends at this column; text that is too long begins where the line ends.
    Line& add_right(const std::string& text, size_t end_column, Style = Style::kPlain);
    Line cut_to(size_t columns) const;
    size_t columns() const;
    std::string text() const; // without spaces at its end
    const std::vector<Piece>& pieces() const { return pieces_; }

  private:
    std::vector<Piece> pieces_;
};

using Lines = std::vector<Line>;

struct Glyphs { // of bars and rules
    std::string full, part, empty, rule;
    std::vector<std::string> heights; // from the lowest
};
const Glyphs& unicode_glyphs();
const Glyphs& ascii_glyphs();

// `used` and then `cached`, both shares of the whole, in so many columns. NaN counts as 0.
Line bar(double used, double cached, size_t columns, const Glyphs&);
// The latest values that fit, each as a height: the greatest is full. NaN: a space.
Line sparkline(std::span<const double> values, size_t columns, const Glyphs&);

struct Block {
    std::string title;
    Lines lines;
};
Lines under_title(const Block&, size_t columns, const Glyphs&);
// Each block under its title: in two columns where the width lets it, else one under the other. Empty lines between
// them go where there are more than `rows`.
Lines arrange(const std::vector<Block>&, size_t columns, size_t rows, const Glyphs&);
Lines without_empty(const Lines&);
// The width of a block where arrange() has so many columns.
size_t block_columns(size_t columns);

// Cells in columns, the first row as a head. Of the columns whose place is in `right` the cells end below each other.
Lines table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right);

}  // namespace patchbay::top
