// What the kernel reports under /proc and /sys.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/cores.hpp"
#include "doctor/findings.hpp"
#include "kernels/host_memory.hpp"
#include "kernels/memory_nodes.hpp"

namespace patchbay::doctor {
namespace {

std::string first_line(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// What follows `key` and white space on the line that begins with it; empty: there is none.
std::string text_in(const std::filesystem::path& file, const std::string& key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key)) return line.substr(std::min(line.find_first_not_of(" \t", key.size()), line.size()));
    return "";
}

// 0: there is none.
double number_in(const std::filesystem::path& file, const std::string& key) {
    return std::strtod(text_in(file, key).c_str(), nullptr);
}

std::string one_decimal(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

std::string gib(uint64_t bytes) { return one_decimal(static_cast<double>(bytes) / (1 << 30)) + " GiB"; }

std::string nodes_text(const std::filesystem::path& root) {
    const std::string there = first_line(root / "sys/devices/system/node/has_memory");
    const uint64_t usable = kernels::memory_nodes(root);
    if (there.empty()) return "the kernel reports none";
    if (std::popcount(kernels::nodes_in(there.c_str())) < 2) return "one";
    std::string some;
    for (int node = 0; node < 64; ++node)
        if (usable >> node & 1) some += (some.empty() ? "" : ",") + std::to_string(node);
    const bool all = usable == kernels::nodes_in(there.c_str());
    return "memory on nodes " + there + (all ? "" : ", for this process: " + some) +
           (std::popcount(usable) > 1 ? ": weights and KV lie on all in turn" : "");
}

// "/dev/nvidia2"; empty: there is none.
std::string first_card(const std::filesystem::path& root) {
    std::string first;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root / "dev", error)) {
        const std::string name = entry.path().filename().string(), begins = "nvidia";
        const bool card = name.starts_with(begins) && name.size() > begins.size() &&
                          name.find_first_not_of("0123456789", begins.size()) == name.npos;
        if (card && (first.empty() || name < first)) first = name;
    }
    return first.empty() ? "" : "/dev/" + first;
}

constexpr const char* kToolkit = "install NVIDIA's CUDA Toolkit, 12.0 or later";

std::string remedy_of_no_cuda(const Surroundings& machine) {
    const std::string toolkit = machine.in_path("nvcc") ? "" : std::string(kToolkit) + ", with nvcc in PATH; then ";
    return toolkit + (machine.in_checkout ? "scripts/install-deps --cuda, then run cmake and build again (docs/cuda.md)"
                                          : "build Patchbay from its source (docs/cuda.md)");
}

struct CpuTimes { // of all cores, in ticks
    double total = 0, idle = 0, steal = 0;
};

CpuTimes cpu_times(const std::filesystem::path& root) {
    std::istringstream in(first_line(root / "proc/stat"));
    std::string word;
    in >> word; // user nice system idle iowait irq softirq steal; guests are in user
    CpuTimes out;
    double ticks = 0;
    for (int field = 0; field < 8 && in >> ticks; ++field) {
        out.total += ticks;
        if (field == 3 || field == 4) out.idle += ticks;
        if (field == 7) out.steal += ticks;
    }
    return out;
}

}  // namespace

std::vector<Finding> check_cpu(const Surroundings& machine, Clock& clock) {
    std::vector<Finding> out;
    const auto online = first_line(machine.root / "sys/devices/system/cpu/online");
    const std::string allowed = text_in(machine.root / "proc/self/status", "Cpus_allowed_list:");
    const bool all = allowed.empty() || allowed == online;
    out.push_back({"cpu", "cores", all ? State::kGood : State::kNote,
                   (online.empty() ? "unknown" : "online: " + online) + (all ? "" : ", for this process: " + allowed),
                   all ? "" : "its affinity (taskset, --cpuset-cpus) keeps it from the others; threads: 0 starts "
                              "no thread for them"});
    if (const auto quota = core_quota(machine.root))
        out.push_back({"cpu", "limit", State::kNote,
                       "the control group leaves the time of " + one_decimal(*quota) + " cores",
                       "measure without it (docker --cpus): a thread that has used up its share stands still"});

    const auto governor = first_line(machine.root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (governor.empty() || governor == "performance")
        out.push_back({"cpu", "frequency", State::kGood,
                       governor.empty() ? "set by the platform, no governor to choose" : "governor performance", ""});
    else
        out.push_back({"cpu", "frequency", State::kNote, "governor " + governor + ": speeds vary with load",
                       "cpupower frequency-set -g performance"});

    const CpuTimes before = cpu_times(machine.root);
    clock.wait_until_ns(clock.now_ns() + 1'000'000'000);
    const CpuTimes after = cpu_times(machine.root);
    const double ticks = after.total - before.total;
    if (ticks <= 0) {
        out.push_back({"cpu", "noise", State::kNote, "unknown: /proc/stat stands still", ""});
        return out;
    }
    const double steal = (after.steal - before.steal) / ticks, busy = 1 - (after.idle - before.idle) / ticks - steal;
    constexpr double kQuiet = 0.05, kNoSteal = 0.01;
    out.push_back({"cpu", "steal", steal <= kNoSteal ? State::kGood : State::kNote,
                   percent(steal) + " of the time went to other virtual machines",
                   steal <= kNoSteal ? "" : "compare ratios within one run only, or use a dedicated machine"});
    out.push_back({"cpu", "other work", busy <= kQuiet ? State::kGood : State::kNote,
                   percent(busy) + " of the cores was busy with other processes",
                   busy <= kQuiet ? "" : "top, and stop what is not needed before measuring"});
    return out;
}

std::vector<Finding> check_memory(const Surroundings& machine) {
    std::vector<Finding> out;
    const auto meminfo = machine.root / "proc/meminfo";
    const kernels::HostMemory memory = kernels::host_memory(machine.root);
    const double swapped = 1024 * (number_in(meminfo, "SwapTotal:") - number_in(meminfo, "SwapFree:"));
    const bool enough = memory.available >= memory.total / 4;
    out.push_back({"memory", "size", enough ? State::kGood : State::kNote,
                   gib(memory.available) + " free of " + gib(memory.total) +
                       (memory.limited ? ", as much as the control group leaves" : ""),
                   enough ? "" : "a model and its KV must fit what is free: kv_cache_memory, or a smaller model"});
    if (swapped > 0)
        out.push_back({"memory", "swap", State::kNote, gib(static_cast<uint64_t>(swapped)) + " is swapped out",
                       "swapoff -a && swapon -a"});

    out.push_back({"memory", "nodes", State::kGood, nodes_text(machine.root), ""});

    const auto huge = first_line(machine.root / "sys/kernel/mm/transparent_hugepage/enabled");
    if (huge.find("[always]") != huge.npos || huge.find("[madvise]") != huge.npos)
        out.push_back({"memory", "huge pages", State::kGood, "transparent huge pages: " + huge, ""});
    else
        out.push_back({"memory", "huge pages", State::kNote,
                       "transparent huge pages: " + (huge.empty() ? "not in this kernel" : huge),
                       huge.empty() ? "" : "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
    return out;
}

std::vector<Finding> check_gpu(const Surroundings& machine, const std::vector<std::string>& devices) {
    const std::string card = first_card(machine.root);
    const std::string driver = first_line(machine.root / "proc/driver/nvidia/version");
    const bool made = std::find(devices.begin(), devices.end(), "cuda") != devices.end();
    std::vector<Finding> out;
    if (!card.empty())
        out.push_back({"gpu", "card", State::kGood, "an NVIDIA GPU is at " + card, ""});
    else
        out.push_back({"gpu", "card", State::kAbsent, "no NVIDIA GPU (/dev/nvidia0, 1, …)",
                       "if the machine has one: install its driver; in a container: --gpus all"});
    if (!card.empty() && !made)
        out.push_back({"gpu", "device cuda", State::kAbsent, "this build has none", remedy_of_no_cuda(machine)});
    if (!driver.empty()) out.push_back({"gpu", "driver", State::kGood, driver, ""});
    else if (!card.empty())
        out.push_back({"gpu", "driver", State::kAbsent, "the driver does not answer", "nvidia-smi"});
    if (made) return out; // with the libraries that it was linked with, which other programs need not find
    struct Library {
        const char* name;
        std::vector<std::string> files; // any of them
        const char* remedy;
    };
    const Library libraries[] = {{"CUDA runtime", {"libcudart.so.13", "libcudart.so.12"}, kToolkit},
                                 {"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, kToolkit},
                                 {"NCCL", {"libnccl.so.2"}, "install NVIDIA's NCCL"}};
    for (const Library& l : libraries) {
        const auto found = std::find_if(l.files.begin(), l.files.end(), machine.can_load);
        if (found != l.files.end()) out.push_back({"gpu", l.name, State::kGood, *found + " loads", ""});
        else
            out.push_back({"gpu", l.name, State::kAbsent, l.files[0] + " does not load", card.empty() ? "" : l.remedy});
    }
    return out;
}

std::vector<Finding> check_tools(const Surroundings& machine, const std::string& report_python) {
    std::vector<Finding> out;
    const auto need = [&](const char* name, std::initializer_list<const char*> programs, const char* remedy) {
        for (const char* program : programs)
            if (machine.in_path(program)) {
                out.push_back({"tools", name, State::kGood, program, ""});
                return;
            }
        out.push_back({"tools", name, State::kAbsent, "none in PATH, which building a plugin needs", remedy});
    };
    need("compiler", {"g++", "clang++"}, "apt install g++");
    need("CMake", {"cmake"}, "apt install cmake");
    const bool plots = machine.runs({report_python, "-c", "import matplotlib"});
    const std::string install = machine.in_checkout ? "scripts/install-deps" : "apt install python3-matplotlib";
    out.push_back({"tools", "report Python", plots ? State::kGood : State::kAbsent,
                   plots ? report_python : report_python + " has no matplotlib, which `patchbay report` needs",
                   plots ? "" : install + ", or set PATCHBAY_PYTHON to a Python that has it"});
    return out;
}

std::vector<Finding> check_text(const std::vector<text::UnicodeTables>& libraries) {
    constexpr int kTrainers = 16; // Hugging Face tokenizers 0.23, tiktoken 0.14
    std::vector<Finding> out;
    for (const text::UnicodeTables& one : libraries) {
        const bool old = one.major < kTrainers;
        const std::string knows =
            one.library + " knows Unicode " + std::to_string(one.major) + "." + std::to_string(one.minor);
        out.push_back({"text", one.library.substr(0, one.library.find(' ')), old ? State::kNote : State::kGood,
                       knows + (old ? ", tokenizers that vocabularies are made with " + std::to_string(kTrainers) +
                                          ": letters that are newer may be split otherwise"
                                    : ""),
                       ""});
    }
    return out;
}

std::vector<Finding> check_parallel(const Surroundings& machine) {
    const bool there = machine.in_path("mpirun");
    return {{"parallel", "MPI", there ? State::kGood : State::kAbsent, there ? "mpirun is there" : "no mpirun in PATH",
             there ? "" : "apt install openmpi-bin"}};
}

}  // namespace patchbay::doctor
