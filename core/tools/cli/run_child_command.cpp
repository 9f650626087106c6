#include "cli/commands.hpp"

#include "cli/interruption.hpp"
#include "cli/run_control.hpp"
#include "experiment/run_child.hpp"

namespace patchbay::cli {

void add_run_child_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("run-child", "A run that another patchbay started")->group("");
    app->callback([&commands] {
        commands.chosen = [] {
            catch_interrupts();
            return experiment::serve_run(interrupted, make_run_control);
        };
    });
}

}  // namespace patchbay::cli
