#include "cli/report_command.hpp"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "base/refusals.hpp"
#include "cli/run_program.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

std::string python_for(const fs::path& support) {
    if (const char* chosen = std::getenv("PATCHBAY_PYTHON"); chosen && *chosen) return chosen;
    const fs::path own = support / ".venv" / "bin" / "python3";
    std::error_code error;
    return fs::exists(own, error) ? own.string() : "python3";
}

Result<> print_report(const std::string& given) {
    std::error_code error;
    const fs::path database = fs::is_directory(given, error) ? fs::path(given) / "results.sqlite" : fs::path(given);
    if (!fs::exists(database, error))
        return not_found(database.string() + " is not there; expected a folder of results, or its results.sqlite");
    PB_TRY(const fs::path report, make_report(database));
    std::cout << "report: " << report.string() << '\n';
    return {};
}

}  // namespace

fs::path support_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
        for (const fs::path& candidate : {folder, folder / "share" / "patchbay"})
            if (fs::exists(candidate / "scripts" / "report", error)) return candidate;
    return {};
}

bool in_checkout() {
    std::error_code error;
    return fs::exists(support_folder() / "scripts" / "install-deps", error);
}

std::string in_shell_quotes(const std::string& word) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:";
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

std::string report_python() { return python_for(support_folder()); }

Result<> run_report_script(const std::string& file, const std::vector<std::string>& arguments) {
    const fs::path support = support_folder();
    if (support.empty()) return not_found("scripts/report is nowhere above the program: is it installed as a whole?");
    const std::string python = python_for(support);
    std::vector<std::string> words{python, "-B", (support / "scripts" / "report" / file).string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const int status = run_program(words);
    if (status == 127) return fail("cannot start '" + python + "': the report needs Python with matplotlib");
    if (status != 0) return fail("scripts/report ended with status " + std::to_string(status));
    return {};
}

Result<fs::path> make_report(const fs::path& database) {
    const fs::path report = database.parent_path() / "report.html";
    PB_CHECK(run_report_script("__main__.py", {database.string(), "--out", report.string()}));
    return report;
}

void add_report_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("report", "Make report.html again from stored results");
    app->footer(
        "Examples:\n"
        "  patchbay report results/quickstart-20260101-120000\n"
        "  patchbay report old/results.sqlite\n"
        "Needs Python with matplotlib: that of PATCHBAY_PYTHON, else of the checkout's .venv, which\n"
        "scripts/install-deps makes, else python3.");
    auto given = std::make_shared<std::string>();
    app->add_option("RESULTS", *given, "folder of results, or its results.sqlite")->required();
    set_action(commands, app, given, {print_report, print_error});
}

}  // namespace patchbay::cli
