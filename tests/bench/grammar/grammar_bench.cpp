// What a grammar costs over a vocabulary of 128,000 tokens: to compile, and a mask and an advance a token of a text
// that has its form.
#include "bench/grammar_bench.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>

namespace {

using namespace patchbay;
using grammar::Vocabulary;

void compile(benchmark::State& state, const bench::GrammarCase& one) {
    for (auto _ : state) benchmark::DoNotOptimize(grammar::compile(one.asked));
}

void read_text(benchmark::State& state, const bench::GrammarCase& one,
               const std::shared_ptr<const Vocabulary>& vocabulary) {
    auto automaton = grammar::compile(one.asked);
    if (!automaton) return state.SkipWithError(automaton.error().c_str());
    const auto g = std::make_shared<grammar::Grammar>(*std::move(automaton), vocabulary);
    const auto tokens = bench::longest_tokens(*vocabulary, one.text);
    std::vector<uint32_t> mask(vocabulary->words());
    for (auto _ : state) {
        grammar::Matcher matcher(g);
        for (const text::TokenId t : tokens)
            if (!matcher.allow(mask) || !*matcher.advance(t)) return state.SkipWithError("a token is not allowed");
        benchmark::DoNotOptimize(mask.data());
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * tokens.size()));
}

}  // namespace

int main(int argc, char** argv) {
    const auto vocabulary = bench::made_vocabulary(128'000);
    for (const bench::GrammarCase& one : bench::grammar_cases()) {
        benchmark::RegisterBenchmark(("compile/" + one.name).c_str(), compile, one);
        benchmark::RegisterBenchmark(("mask_and_advance/" + one.name).c_str(), read_text, one, vocabulary);
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
