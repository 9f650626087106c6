#include "cli/print_table.hpp"

#include <algorithm>
#include <iostream>

#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace patchbay::cli {

void print_table(std::vector<std::vector<std::string>> rows) {
    for (auto& row : rows)
        for (std::string& cell : row) cell = printable(cell, 2000);
    std::vector<size_t> widths;
    for (const auto& row : rows)
        for (size_t i = 0; i < row.size(); ++i) {
            widths.resize(std::max(widths.size(), i + 1));
            widths[i] = std::max(widths[i], count_characters(row[i]));
        }
    for (const auto& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i)
            line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - count_characters(row[i]) + 2, ' ') : "");
        std::cout << line << '\n';
    }
}

}  // namespace patchbay::cli
