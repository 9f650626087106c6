#include "experiment/capacity_table.hpp"

#include "experiment/shares.hpp"

namespace patchbay::experiment {

using config::Bounds;
using config::Faults;
using config::Node;
using config::Table;

namespace {

struct Given {
    Slo slo;
    std::string share = "90%", precision = "5%";
    std::vector<double> rates;
};

Table<Given> given_table() {
    Table<Given> t;
    t.section("slo", &Given::slo, slo_table(), "the objective; default: the experiment's")
        .key("share", &Given::share, "of the requests that must keep it, as 90%")
        .values("rates", &Given::rates, Bounds{1e-6, 1e6, "1/s"}, "lowest and highest rate of the search: [1, 64]")
        .key("precision", &Given::precision, "the search ends once the rate is known this well, as 5%");
    return t;
}

}  // namespace

Table<Slo> slo_table() {
    Table<Slo> slo;
    const Bounds ms{.min = 0, .max = 1e9, .unit = "ms"};
    slo.key("ttft_ms", &Slo::ttft_ms, ms, "time to first token at most")
        .key("tpot_ms", &Slo::tpot_ms, ms, "time per output token after the first at most")
        .key("e2e_ms", &Slo::e2e_ms, ms, "time from arrival to the last token at most");
    return slo;
}

std::optional<CapacitySearch> read_capacity(const Node& given, const Slo& objective, Faults& faults) {
    if (!config::is_section(given, "'capacity'", faults)) return std::nullopt;
    Given read;
    given_table().read(given, read, faults);
    const auto place = [&](const char* key) { return given.find(key) ? given.find(key)->origin : given.origin; };
    CapacitySearch out;
    out.slo = read.slo.any() ? read.slo : objective;
    if (!out.slo.any()) faults.add(given.origin, "'capacity' needs an objective: give 'slo' in it, or in the file");
    const auto share = share_of(read.share), precision = share_of(read.precision);
    if (!share || *share <= 0 || *share > 1)
        faults.add(place("share"), "'share' is '" + config::printable(read.share) + "', expected a share such as 90%");
    if (!precision || *precision < 0.001 || *precision > 1)
        faults.add(place("precision"), "'precision' is '" + config::printable(read.precision) +
                                           "', expected a share from 0.1% to 100%");
    if (read.rates.size() != 2 || read.rates.front() >= read.rates.back())
        faults.add(place("rates"), "'rates' are not the lowest and the highest rate of the search, such as [1, 64]");
    else {
        out.lowest = read.rates.front();
        out.highest = read.rates.back();
    }
    out.share = share.value_or(out.share);
    out.precision = precision.value_or(out.precision);
    return out;
}

}  // namespace patchbay::experiment
