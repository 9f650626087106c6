#include "experiment/arrivals_table.hpp"

namespace patchbay::experiment {

namespace {

const Bounds kRate{.min = 1e-6, .max = 1e6, .unit = "requests per second"};
const Bounds kPeriod{.min = 1e-3, .max = 1e7, .unit = "s"};
const Bounds kSeconds{.min = 0, .max = 1e6, .unit = "s"};

// key: as it was written, for errors.
FixedTime read_fixed(const Node& given, const std::string& key, Faults& faults) {
    FixedTime t;
    read_alone(Table<FixedTime>().key(key, &FixedTime::seconds, kSeconds, "seconds"), given, t, faults);
    return t;
}

template <class A>
Table<A> rate_table() {
    return Table<A>().key("rate", &A::rate, kRate, "requests per second").required();
}

}  // namespace

std::optional<Arrivals> read_arrivals(const Node& given, Faults& faults) {
    Table<GammaArrivals> gamma = rate_table<GammaArrivals>();
    gamma.key("cv", &GammaArrivals::cv, Bounds{1e-2, 100, ""},
              "standard deviation of the gaps over their mean; above 1: bursty");
    Table<BurstArrivals> burst;
    burst.key("size", &BurstArrivals::size, Bounds{1, kMaxRequests, "requests"}, "requests that come together")
        .required();
    burst.key("every_s", &BurstArrivals::every_s, Bounds{0, 1e6, "s"}, "from burst to burst").required();
    Table<TraceArrivals> trace;
    trace.key("time_scale", &TraceArrivals::time_scale, Bounds{0, 1e6, ""}, "times of the trace are multiplied by it")
        .key("rate", &TraceArrivals::rate, Bounds{0, 1e6, "requests per second"},
             "times are scaled so that this is the mean rate of each window; 0: by time_scale");
    Table<RampArrivals> ramp;
    ramp.key("from", &RampArrivals::from, kRate, "rate at the start").required();
    ramp.key("to", &RampArrivals::to, kRate, "rate at the end, and after it").required();
    ramp.key("over_s", &RampArrivals::over_s, kPeriod, "how long the rate changes").required();
    Table<OnOffArrivals> on_off;
    on_off.key("rate", &OnOffArrivals::rate, kRate, "while it is on").required();
    on_off.key("on_s", &OnOffArrivals::on_s, kPeriod, "how long it is on").required();
    on_off.key("off_s", &OnOffArrivals::off_s, kPeriod, "how long it is off, before it is on again").required();
    on_off.key("off_rate", &OnOffArrivals::off_rate, Bounds{0, 1e6, "requests per second"}, "while it is off");
    Table<DiurnalArrivals> diurnal;
    diurnal.key("mean_rate", &DiurnalArrivals::mean_rate, kRate, "mean over a period").required();
    diurnal.key("amplitude", &DiurnalArrivals::amplitude, Bounds{0, 1, ""}, "of the rate, as a share of its mean")
        .key("period_s", &DiurnalArrivals::period_s, kPeriod, "from peak to peak")
        .key("phase", &DiurnalArrivals::phase, Bounds{0, 1, "periods"}, "0: the rate begins at its mean and rises");
    Table<ClosedLoop> loop;
    loop.key("users", &ClosedLoop::users, Bounds{1, kMaxRequests, "users"}, "each has one request at a time")
        .required();
    duration_key(loop, "think_s", &ClosedLoop::think, "from the end of a request to the user's next one");
    return choose<Arrivals>(
        given, "'arrivals'",
        {table_kind<Arrivals>("all_at_once", Table<AllAtOnce>()),
         table_kind<Arrivals>("deterministic", rate_table<DeterministicArrivals>()),
         table_kind<Arrivals>("poisson", rate_table<PoissonArrivals>()), table_kind<Arrivals>("gamma", gamma),
         table_kind<Arrivals>("burst", burst), table_kind<Arrivals>("ramp", ramp),
         table_kind<Arrivals>("on_off", on_off), table_kind<Arrivals>("diurnal", diurnal),
         table_kind<Arrivals>("closed_loop", loop), table_kind<Arrivals>("trace", trace)},
        faults);
}

std::optional<Duration> read_duration(const Node& given, const std::string& key, Faults& faults) {
    if (given.kind == NodeKind::kScalar) return read_fixed(given, key, faults);
    Table<ExponentialTime> exponential;
    exponential.key("mean", &ExponentialTime::mean, kSeconds, "mean").required();
    Table<UniformTime> uniform;
    uniform.key("min", &UniformTime::min, kSeconds, "least").key("max", &UniformTime::max, kSeconds, "most");
    Table<LognormalTime> lognormal;
    lognormal.key("mean", &LognormalTime::mean, kSeconds, "mean").required();
    lognormal.key("cv", &LognormalTime::cv, Bounds{0, 100, ""}, "standard deviation over mean");
    const auto check = [](const Node& at, const UniformTime& t, Faults& found) {
        if (t.min > t.max) found.add(at.origin, "'max' is less than 'min'");
    };
    return choose<Duration>(given, "'" + key + "'",
                            {{"fixed", [](const Node& of, Faults& to) { return read_fixed(of, "fixed", to); }},
                             table_kind<Duration>("exponential", exponential),
                             table_kind<Duration, UniformTime>("uniform", uniform, check),
                             table_kind<Duration>("lognormal", lognormal)},
                            faults);
}

std::optional<Windows> read_windows(const Node& given, Faults& faults) {
    Table<DrawnWindows> drawn;
    drawn.key("overlap", &DrawnWindows::overlap, Bounds{0, 0.99, ""},
              "share of its rows that a window may have in common with another");
    return choose<Windows>(given, "'windows'",
                           {table_kind<Windows>("disjoint", Table<DisjointWindows>()),
                            table_kind<Windows>("drawn", drawn), table_kind<Windows>("same", Table<SameWindow>())},
                           faults);
}

}  // namespace patchbay::experiment
