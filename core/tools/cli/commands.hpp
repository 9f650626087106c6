// The subcommands of patchbay, each in the file of its name.
#pragma once
#include <optional>

#include "cli/command.hpp"

namespace patchbay::cli {

// patchbay status, swap, set, reload, drain: control of a running engine over its admin address.
void add_admin_commands(Commands&);
// patchbay bench: the machine, how near a model comes to it, and what the host costs.
void add_bench_command(Commands&);
// patchbay bench scheduler, kv: what the host costs, without a model.
void add_host_benches(Commands&, CLI::App* bench);
// patchbay bench kv-quality. Part of the command bench.
void add_kv_quality_bench(Commands&, CLI::App* bench);
// patchbay bench spec: what a proposer is worth for a model and a workload.
void add_spec_bench(Commands&, CLI::App* bench);
// patchbay chat: a conversation with a model at the terminal.
void add_chat_command(Commands&);
// patchbay config check | show | schema: what a file means before anything runs.
void add_config_command(Commands&);
// patchbay doctor: what this machine offers, what is missing, and what mends it.
void add_doctor_command(Commands&);
// patchbay generate: text from prompts, streamed.
void add_generate_command(Commands&);
// patchbay models [ARCHITECTURE]: what can be served, and what each key of config.json does.
void add_models_command(Commands&);
// patchbay plugin: what is installed, its parameters, whether it keeps the contract.
void add_plugin_command(Commands&);
// patchbay run-child: a run in a process of its own, started by patchbay run.
void add_run_child_command(Commands&);
// patchbay run: an experiment from its YAML to a table and a report.
void add_run_command(Commands&);
// patchbay runs: stored experiments: list, show, compare, export, remove.
void add_runs_command(Commands&);
// patchbay scenario: play files that drive a scheduler without a model.
void add_scenario_command(Commands&);
// patchbay serve: OpenAI's API over HTTP.
void add_serve_command(Commands&);
// patchbay tokenize, detokenize: token ids of a text, text of ids, without a model.
void add_tokenize_commands(Commands&);
// patchbay top: what a running engine does, in the terminal.
void add_top_command(Commands&);
// patchbay worker: a rank that rank 0 starts.
void add_worker_command(Commands&);
// patchbay workload: what a recorded trace contains.
void add_workload_command(Commands&);

// Where mpirun or srun started this process as a rank other than rank 0: its exit code. None: it is no such rank.
// parallel: called by one that is.
std::optional<int> run_as_rank(const std::function<Result<config::ParallelSettings>()>& parallel);

}  // namespace patchbay::cli
