// Errors on standard error, as every subcommand prints them: nothing in them moves a terminal's cursor, and none fills
// the screen.
#pragma once
#include <spdlog/formatter.h>

#include <memory>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::cli {

// "patchbay run: text" in one line, whatever the text holds; without a head, the text alone.
void print_error(std::string_view head, std::string_view text);
// Of text that may be faults of a configuration, each in a line that begins with its place. What else may fail there
// goes through in_one_line() first.
void print_faults(std::string_view head, std::string_view text);

using PrintText = void(std::string_view head, std::string_view text);
// Of a subcommand that has ended: kOk, or kFailed once its error is printed.
int exit_code(std::string_view head, const Result<>& done, PrintText* print = print_faults);

// "warning: text" in one line, whatever the text holds.
std::unique_ptr<spdlog::formatter> log_formatter();

}  // namespace patchbay::cli
