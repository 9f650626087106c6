// patchbay report: the page of plots and tables from a stored experiment. patchbay run makes it at its end.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/command.hpp"

namespace patchbay::cli {

void add_report_command(Commands&);

// Makes report.html beside the database with scripts/report and returns its path. Needs Python with matplotlib: that of
// $PATCHBAY_PYTHON, else of .venv in the checkout, else python3. What the script says goes to standard error.
Result<std::filesystem::path> make_report(const std::filesystem::path& database);

// Runs a file of scripts/report with the same Python; fails as it does.
Result<> run_report_script(const std::string& file, const std::vector<std::string>& arguments);

// Of a build tree the checkout, of an installed program its share folder; empty where neither has scripts/report.
std::filesystem::path support_folder();
bool in_checkout(); // which has scripts/install-deps: an installed program has none

std::string in_shell_quotes(const std::string& word);

// The Python that makes reports: PATCHBAY_PYTHON, scripts' own environment, or python3.
std::string report_python();

}  // namespace patchbay::cli
