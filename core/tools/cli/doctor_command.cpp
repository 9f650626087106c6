#include "cli/commands.hpp"

#include <iostream>
#include <memory>

#include "cli/plugin_dirs.hpp"
#include "cli/report_command.hpp"
#include "doctor/findings.hpp"

namespace patchbay::cli {
namespace {

struct DoctorOptions {
    std::vector<std::string> plugin_dirs;
    bool json = false;
};

Result<> examine(const DoctorOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    doctor::Surroundings machine = doctor::this_machine();
    machine.in_checkout = in_checkout();
    RealClock clock;
    std::vector<doctor::Finding> all = doctor::check_devices(registry);
    for (const auto& some : {doctor::check_cpu(machine, clock), doctor::check_memory(machine),
                             doctor::check_gpu(machine, registry.names("device")), doctor::check_parallel(machine),
                             doctor::check_tools(machine, report_python()), doctor::check_text(text::unicode_tables()),
                             doctor::check_plugin_folders(registry)})
        all.insert(all.end(), some.begin(), some.end());
    std::cout << (o.json ? doctor::json_of(all) + "\n" : doctor::table_of(all));
    return {};
}

}  // namespace

void add_doctor_command(Commands& commands) {
    CLI::App* app =
        commands.app.add_subcommand("doctor", "Check what this machine offers, what is missing, and how to fix it");
    app->footer("Example:\n  patchbay doctor --json");
    const auto o = std::make_shared<DoctorOptions>();
    add_plugin_dirs(*app, o->plugin_dirs);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {examine, print_error});
}

}  // namespace patchbay::cli
