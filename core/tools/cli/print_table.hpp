// Tables on standard output, as several subcommands print them.
#pragma once
#include <string>
#include <vector>

namespace patchbay::cli {

// Rows of cells, each column as wide as its widest cell. The cells may hold untrusted bytes.
void print_table(std::vector<std::vector<std::string>> rows);

}  // namespace patchbay::cli
