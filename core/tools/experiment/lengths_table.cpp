#include "experiment/lengths_table.hpp"

namespace patchbay::experiment {

using config::Bounds;
using config::Faults;
using config::Node;
using config::NodeKind;
using config::Table;

namespace {

const Bounds kTokens{.min = 1, .max = kMaxTokens, .unit = "tokens"};

template <class S>
void check_span(const Node& given, const S& s, Faults& faults) {
    if (s.min > s.max)
        faults.add(given.origin, "'max' is " + std::to_string(s.max) + ", less than 'min' of " + std::to_string(s.min));
}

template <class S>
Table<S> span_table() {
    Table<S> t;
    t.key("min", &S::min, kTokens, "least tokens").key("max", &S::max, kTokens, "most tokens");
    return t;
}

EmpiricalLength read_values(const Node& given, Faults& faults) {
    struct Values {
        std::vector<uint32_t> values;
    } v;
    read_alone(Table<Values>().values("empirical", &Values::values, kTokens, "lengths"), given, v, faults);
    if (v.values.empty() && given.items.empty()) faults.add(given.origin, "'empirical' has no lengths");
    if (v.values.empty()) v.values.push_back(1);
    return {v.values};
}

FixedLength read_fixed(const Node& given, Faults& faults) {
    FixedLength l{1};
    read_alone(Table<FixedLength>().key("fixed", &FixedLength::tokens, kTokens, "tokens"), given, l, faults);
    return l;
}

}  // namespace

std::optional<Length> read_length(const Node& given, const std::string& what, Faults& faults) {
    if (given.kind == NodeKind::kScalar) return read_fixed(given, faults);
    if (given.kind == NodeKind::kList) return read_values(given, faults);
    Table<LognormalLength> lognormal = span_table<LognormalLength>();
    lognormal.key("mean", &LognormalLength::mean, Bounds{1, kMaxTokens, "tokens"}, "mean of the distribution")
        .key("cv", &LognormalLength::cv, Bounds{0, 100, ""}, "standard deviation over mean");
    Table<ZipfLength> zipf;
    zipf.key("exponent", &ZipfLength::exponent, Bounds{0, 20, ""}, "P(min + k) is in proportion to (k + 1)^-exponent")
        .key("min", &ZipfLength::min, kTokens, "least tokens")
        .key("max", &ZipfLength::max, Bounds{1, 1 << 20, "tokens"}, "most tokens");
    return choose<Length>(
        given, what,
        {{"fixed", read_fixed},
         table_kind<Length, UniformLength>("uniform", span_table<UniformLength>(), check_span<UniformLength>),
         table_kind<Length, LognormalLength>("lognormal", lognormal, check_span<LognormalLength>),
         table_kind<Length, ZipfLength>("zipf", zipf, check_span<ZipfLength>),
         {"empirical", read_values}},
        faults);
}

}  // namespace patchbay::experiment
