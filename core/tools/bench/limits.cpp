#include "bench/limits.hpp"

#include <algorithm>
#include <charconv>

#include "base/clock.hpp"
#include "base/cores.hpp"
#include "base/refusals.hpp"
#include "base/thread_pool.hpp"
#include "bench/times.hpp"

namespace patchbay::bench {
namespace {

std::string text_of(const char* from, size_t size) { return {from, std::find(from, from + size, '\0')}; }

constexpr std::string_view kMemoryRead = "memory_read";

// "memory_read_16MiB": 16777216; of other names 0.
double bytes_of(std::string_view name) {
    if (!name.starts_with(kMemoryRead) || name.size() <= kMemoryRead.size() + 1) return 0;
    name.remove_prefix(kMemoryRead.size() + 1);
    uint32_t count = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), count);
    const std::string_view unit(end, static_cast<size_t>(name.data() + name.size() - end));
    if (error != std::errc{}) return 0;
    return count * (unit == "KiB" ? 0x1p10 : unit == "MiB" ? 0x1p20 : 0);
}

}  // namespace

double Machine::operator[](const std::string& name) const {
    const auto at = std::find_if(limits.begin(), limits.end(), [&](const Limit& l) { return l.name == name; });
    return at == limits.end() ? 0 : at->value;
}

Machine::Read Machine::read_of(double bytes) const {
    constexpr double kMemoryBytes = 0x1p30; // as many as memory_read is measured with
    const double memory = (*this)[std::string(kMemoryRead)];
    if (memory <= 0) return {0, std::string(kMemoryRead)};
    struct Point {
        double bytes, seconds;
        std::string limit;
    };
    std::vector<Point> points{{0, 0, ""}, {kMemoryBytes, kMemoryBytes / memory, std::string(kMemoryRead)}};
    for (const Limit& limit : limits)
        if (const double held = bytes_of(limit.name); held > 0 && limit.value > 0)
            points.push_back({held, held / limit.value, limit.name});
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
    if (bytes >= kMemoryBytes) return {bytes / memory, std::string(kMemoryRead)};
    const auto after = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.bytes >= bytes; });
    if (after == points.begin()) return {0, std::string(kMemoryRead)}; // nothing is read
    const Point& before = *std::prev(after);
    const double share = (bytes - before.bytes) / (after->bytes - before.bytes);
    return {before.seconds + share * (after->seconds - before.seconds), after->limit};
}

Result<Machine> measure_machine(const host::Registry& registry, const config::PluginChoice& choice, uint32_t threads) {
    RealClock clock;
    ThreadPool pool(threads ? threads : usable_cores());
    const pb_clock clock_of_plugins = clock_service(clock);
    PB_TRY(const auto device,
           registry.device(choice.plugin, choice.settings, {&pool.service(), &clock_of_plugins, nullptr}));
    pb_device_info info = sized<pb_device_info>();
    PB_CHECK(device.checked<&pb_device::info>(&info));
    if (!device.extension<pb_device_limits>())
        return unsupported("device '" + choice.plugin + "' cannot measure what it does at best");
    pb_limit limits[32];
    auto count = static_cast<uint32_t>(std::size(limits));
    PB_CHECK(device.checked<&pb_device_limits::measure>(limits, uint32_t{sizeof(pb_limit)}, &count));
    Machine machine{text_of(info.name, sizeof info.name), pool.threads(), {}};
    for (uint32_t i = 0; i < std::min<size_t>(count, std::size(limits)); ++i)
        machine.limits.push_back({text_of(limits[i].name, sizeof limits[i].name),
                                  text_of(limits[i].unit, sizeof limits[i].unit), limits[i].value});
    return machine;
}

std::string with_prefix(double value, const std::string& unit) {
    static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    while (value >= 1000 && i + 1 < std::size(kPrefixes)) value /= 1000, i += 1;
    return printed("%.*f %s%s", value < 10 ? 2 : value < 100 ? 1 : 0, value, kPrefixes[i], unit.c_str());
}

std::string table_of(const Machine& machine) {
    std::string out = machine.device + ", " + std::to_string(machine.threads) + " threads\n";
    for (const Limit& limit : machine.limits)
        out += printed("  %-14s %16s\n", limit.name.c_str(), with_prefix(limit.value, limit.unit).c_str());
    return out;
}

}  // namespace patchbay::bench
