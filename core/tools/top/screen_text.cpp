#include "top/screen_text.hpp"

#include <wchar.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.hpp"

namespace patchbay::top {
namespace {

constexpr size_t kMinForTwo = 76, kGap = 3;

// The character at the front of the text, as far as it is UTF-8, and how many bytes it has.
std::pair<wchar_t, size_t> first_of(std::string_view utf8) {
    const Utf8Step step = utf8_step(utf8);
    if (step.what != Utf8::kCharacter) return {static_cast<wchar_t>(static_cast<unsigned char>(utf8[0])), 1};
    return {static_cast<wchar_t>(code_point(utf8.substr(0, step.bytes))), step.bytes};
}

size_t width_of(wchar_t c) {
    const int width = wcwidth(c); // -1 of what the locale does not know
    return width < 0 ? 1 : static_cast<size_t>(width);
}

std::string repeated(const std::string& glyph, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += glyph;
    return out;
}

Line title_line(const std::string& title, size_t columns, const Glyphs& glyphs) {
    Line out;
    out.add(title, Style::kTitle).add(" ");
    const size_t used = out.columns();
    out.add(repeated(glyphs.rule, columns > used ? columns - used : 0), Style::kFaint);
    return out.cut_to(columns);
}

}  // namespace

size_t columns_of(std::string_view utf8) {
    size_t out = 0;
    while (!utf8.empty()) {
        const auto [c, size] = first_of(utf8);
        out += width_of(c);
        utf8.remove_prefix(size);
    }
    return out;
}

Line& Line::add(std::string text, Style style) {
    if (!text.empty()) pieces_.push_back({std::move(text), style});
    return *this;
}

Line& Line::add(const Line& other) {
    pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
    return *this;
}

Line& Line::pad_to(size_t wanted) {
    const size_t now = columns();
    return wanted > now ? add(std::string(wanted - now, ' ')) : *this;
}

Line& Line::add_right(const std::string& text, size_t end_column, Style style) {
    const size_t width = columns_of(text);
    return pad_to(end_column > width ? end_column - width : 0).add(text, style);
}

Line Line::cut_to(size_t wanted) const {
    Line out;
    size_t left = wanted;
    for (const Piece& piece : pieces_) {
        size_t bytes = 0;
        while (bytes < piece.text.size()) {
            const auto [c, size] = first_of(std::string_view(piece.text).substr(bytes));
            if (width_of(c) > left) {
                out.add(piece.text.substr(0, bytes), piece.style);
                return out;
            }
            left -= width_of(c);
            bytes += size;
        }
        out.add(piece.text, piece.style);
    }
    return out;
}

size_t Line::columns() const {
    size_t out = 0;
    for (const Piece& piece : pieces_) out += columns_of(piece.text);
    return out;
}

std::string Line::text() const {
    std::string out;
    for (const Piece& piece : pieces_) out += piece.text;
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
}

const Glyphs& unicode_glyphs() {
    static const Glyphs out{"█", "▓", "░", "─", {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
    return out;
}

const Glyphs& ascii_glyphs() {
    static const Glyphs out{"#", "=", ".", "-", {"_", ".", "-", "=", "+", "*", "%", "#"}};
    return out;
}

Line bar(double used, double cached, size_t columns, const Glyphs& glyphs) {
    const auto cells = [&](double share) { // what there is shows as one cell at least, what is left free too
        if (!(share > 0)) return size_t{0};
        const double exact = std::min(share, 1.0) * static_cast<double>(columns);
        const auto rounded = static_cast<size_t>(std::lround(exact));
        return share >= 1 ? columns : std::clamp(rounded, size_t{1}, std::max(columns, size_t{2}) - 1);
    };
    const size_t first = std::min(cells(used), columns), second = std::min(cells(cached), columns - first);
    Line out;
    out.add(repeated(glyphs.full, first), Style::kUsed).add(repeated(glyphs.part, second), Style::kCached);
    return out.add(repeated(glyphs.empty, columns - first - second), Style::kFaint);
}

Line sparkline(std::span<const double> values, size_t columns, const Glyphs& glyphs) {
    if (values.size() > columns) values = values.last(columns);
    double highest = 0;
    for (const double v : values)
        if (std::isfinite(v)) highest = std::max(highest, v);
    std::string out;
    for (const double v : values) {
        if (!std::isfinite(v)) {
            out += ' ';
            continue;
        }
        const auto top = static_cast<double>(glyphs.heights.size() - 1);
        out += glyphs.heights[highest > 0 ? static_cast<size_t>(std::lround(std::max(v, 0.0) / highest * top)) : 0];
    }
    return Line(out, Style::kUsed);
}

size_t block_columns(size_t columns) { return columns >= kMinForTwo ? (columns - kGap) / 2 : columns; }

Lines under_title(const Block& block, size_t columns, const Glyphs& glyphs) {
    Lines out = {title_line(block.title, columns, glyphs)};
    for (const Line& line : block.lines) out.push_back(line.cut_to(columns));
    return out;
}

Lines arrange(const std::vector<Block>& blocks, size_t columns, size_t rows, const Glyphs& glyphs) {
    const size_t width = block_columns(columns);
    Lines out;
    for (size_t i = 0; i < blocks.size(); ++i) {
        Lines left = under_title(blocks[i], width, glyphs);
        if (width < columns && i + 1 < blocks.size()) {
            const Lines right = under_title(blocks[++i], width, glyphs);
            left.resize(std::max(left.size(), right.size()));
            for (size_t j = 0; j < right.size(); ++j)
                if (right[j].columns() > 0) left[j].pad_to(width + kGap).add(right[j]);
        }
        out.insert(out.end(), left.begin(), left.end());
        out.emplace_back();
    }
    return out.size() > rows ? without_empty(out) : out;
}

Lines without_empty(const Lines& lines) {
    Lines out;
    std::ranges::copy_if(lines, std::back_inserter(out), [](const Line& line) { return line.columns() > 0; });
    return out;
}

Lines table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right) {
    std::vector<size_t> widths;
    for (const auto& row : rows)
        for (size_t i = 0; i < row.size(); ++i) {
            widths.resize(std::max(widths.size(), i + 1));
            widths[i] = std::max(widths[i], columns_of(row[i]));
        }
    Lines out;
    for (const auto& row : rows) {
        Line line;
        size_t begin = 0;
        for (size_t i = 0; i < row.size(); ++i) {
            const Style style = out.empty() ? Style::kFaint : Style::kPlain;
            line.pad_to(begin);
            if (std::ranges::find(right, i) != right.end()) line.add_right(row[i], begin + widths[i], style);
            else line.add(row[i], style);
            begin += widths[i] + 2;
        }
        out.push_back(std::move(line));
    }
    return out;
}

}  // namespace patchbay::top
