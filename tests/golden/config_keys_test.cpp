// Changed keys of config.json against what transformers makes of them: each case gives the logits of transformers 5,
// or is refused with a reason. tests/random/config_keys.py makes the cases; README.md says how.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <fstream>

#include "golden_model.hpp"

namespace patchbay::golden::config_keys_test {
namespace {

std::string cases_folder() {
    const char* const given = std::getenv("PATCHBAY_CONFIG_CASES");
    return given ? given : kGolden + "config_keys";
}

struct Kept { // what transformers computed for one base, by number
    std::vector<float> all;
    size_t each = 0;

    std::vector<float> at(size_t i) const {
        const auto from = all.begin() + static_cast<ptrdiff_t>(i * each);
        return {from, from + static_cast<ptrdiff_t>(each)};
    }
};

// patch: [path, value], or [path] of a key that is removed.
json changed(json config, const json& patch) {
    for (const json& step : patch) {
        const json::json_pointer at(step[0].get<std::string>());
        if (step.size() > 1) config[at] = step[1];
        else config[at.parent_pointer()].erase(at.back());
    }
    return config;
}

// The rows that are kept, or why there are none.
Result<std::vector<float>> computed(const json& base, const json& patch, const json& rows) {
    const json config = changed(base["config"], patch);
    try {
        Golden golden({base["model"].get<std::string>(), "reference", "plain", PB_F32},
                      must(weights::flatten_json(config.dump(), "config.json")));
        const auto prompt = base["prompt"].get<std::vector<int32_t>>();
        if (prompt.size() > golden.positions())
            return fail("the model serves " + std::to_string(golden.positions()) + " tokens");
        const std::vector<float> all = golden.logits(prompt);
        const size_t vocab = all.size() / prompt.size();
        std::vector<float> out;
        for (const size_t row : rows) {
            const auto from = all.begin() + static_cast<ptrdiff_t>(row * vocab);
            out.insert(out.end(), from, from + static_cast<ptrdiff_t>(vocab));
        }
        return out;
    } catch (const std::runtime_error& refused) {
        return fail(refused.what());
    }
}

struct Tally {
    size_t cases = 0, equal = 0, refused = 0, unanswered = 0;
};

// So many cases of each base give transformers' logits, of those that the repository keeps: equal.json.
json equal_before() {
    std::ifstream in(cases_folder() + "/equal.json");
    return in ? json::parse(in) : json::object();
}

// answer: of transformers 5, or of 4.57 where 5 has none.
void check_case(const json& base, const json& one, const json& rows, const Kept& kept, Tally& tally) {
    tally.cases += 1;
    const json answer = one.contains("v5") ? one["v5"] : one.value("v4", json());
    const Result<std::vector<float>> got = computed(base, one["patch"], rows);
    if (!got) {
        EXPECT_GT(got.error().size(), 10u);
        EXPECT_FALSE(one["patch"].empty()) << base["name"] << " as it is: " << got.error();
        tally.refused += 1;
    } else if (!answer.is_number()) {
        tally.unanswered += 1; // transformers does not compute it
    } else {
        tally.equal += 1;
        EXPECT_LE(worst_of(*got, kept.at(answer.get<size_t>())), 1e-4) << base["name"] << " " << one["patch"].dump();
    }
}

TEST(ConfigKeys, ChangedInAnyWayGiveWhatTransformersGivesOrARefusal) {
    std::ifstream in(cases_folder() + "/cases.json");
    ASSERT_TRUE(in) << cases_folder();
    spdlog::set_level(spdlog::level::off); // thousands of keys are warned about
    const json all = json::parse(in);
    Tally tally;
    const auto file = must(weights::Checkpoint::open(cases_folder()));
    const json before = equal_before();
    json now;
    for (const json& base : all["bases"]) {
        const auto name = base["name"].get<std::string>();
        const auto view = must(file->tensor(name));
        const Kept kept{numbers(view), static_cast<size_t>(view.shape[1])};
        const size_t equal = tally.equal;
        for (const json& one : base["cases"]) check_case(base, one, all["rows"], kept, tally);
        now[name] = tally.equal - equal;
        EXPECT_GE(now[name].get<double>(), 0.9 * before.value(name, 1.0)) << name << ": too many cases are refused";
    }
    if (before != now) printf("equal.json of these cases: %s\n", now.dump().c_str());
    RecordProperty("cases", static_cast<int>(tally.cases));
    printf("%zu cases: %zu equal, %zu refused, %zu that transformers does not compute\n", tally.cases, tally.equal,
           tally.refused, tally.unanswered);
    EXPECT_GT(tally.equal, tally.cases / 3);
}

}  // namespace
}  // namespace patchbay::golden::config_keys_test
