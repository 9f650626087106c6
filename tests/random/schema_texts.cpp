// For json_schemas.py: reads JSON Schemas, one JSON string a line, and prints for each, as a line of JSON, why it is
// refused, or texts that are drawn at random under it, and what compiling it and its masks cost.
//   schema_texts [TEXTS] < schemas.jsonl
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "bench/grammar_bench.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace {

using namespace patchbay;
using nlohmann::json;

constexpr size_t kMaxTokens = 400; // of a text

double cpu_ms() { // of this thread: other programs do not lengthen it
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double median_mask_us(const std::shared_ptr<grammar::Grammar>& g, const std::string& text, Clock& clock) {
    std::vector<double> times;
    std::vector<uint32_t> mask(g->vocabulary().words());
    for (int round = 0; round < 2; ++round) { // what the first computes is kept
        grammar::Matcher matcher(g);
        times.clear();
        for (const text::TokenId t : bench::longest_tokens(g->vocabulary(), text)) {
            const uint64_t start = clock.now_ns();
            if (!matcher.allow(mask)) return -1;
            times.push_back(static_cast<double>(clock.now_ns() - start) * 1e-3);
            const auto advanced = matcher.advance(t);
            if (!advanced || !*advanced) return -1;
        }
    }
    if (times.empty()) return -1;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

json look_at(const std::string& schema, size_t texts, Clock& clock) {
    static const auto large = bench::made_vocabulary(128'000);
    const auto asked = grammar::testing::json(schema);
    const uint64_t start = clock.now_ns();
    const double cpu = cpu_ms();
    auto automaton = grammar::compile(asked);
    json out{{"compile_ms", static_cast<double>(clock.now_ns() - start) * 1e-6}, {"compile_cpu_ms", cpu_ms() - cpu}};
    if (!automaton) {
        out["refused"] = automaton.error();
        return out;
    }
    out["texts"] = json::array();
    if (texts == 0) return out;
    const auto over_small = std::make_shared<grammar::Grammar>(*automaton, grammar::testing::small());
    const auto over_large = std::make_shared<grammar::Grammar>(*std::move(automaton), large);
    for (size_t i = 0; i < texts; ++i) {
        const auto drawn = grammar::testing::draw(over_small, i + 1, kMaxTokens);
        if (!drawn.complete) continue;
        out["texts"].push_back(drawn.text);
        if (i == 0) out["mask_us"] = median_mask_us(over_large, drawn.text, clock);
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    const size_t texts = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
    RealClock clock;
    for (std::string line; std::getline(std::cin, line);) {
        const json schema = json::parse(line, nullptr, false);
        if (!schema.is_string()) {
            std::cerr << "schema_texts: a line is no JSON string: " << line.substr(0, 80) << "\n";
            return 2;
        }
        const json found = look_at(schema.get<std::string>(), texts, clock);
        std::cout << found.dump(-1, ' ', true, json::error_handler_t::replace) << "\n";
    }
}
