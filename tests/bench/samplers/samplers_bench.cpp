// Rows that a sampler plugin turns into tokens a second and core, by vocabulary and parameters. Logits are those of a
// trained model in shape: a few likely tokens over a broad normal rest.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "host/registry.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "paths.hpp"

namespace {

using namespace patchbay;

std::vector<float> logits_of(size_t vocab) {
    std::vector<float> out(vocab);
    for (uint32_t t = 0; t < vocab; ++t) {
        const PhiloxBlock bits = draw(7, 0, Stream::kTest, t);
        const double normal = std::sqrt(-2 * std::log(uniform(bits[0]))) * std::cos(6.283185307 * uniform(bits[1]));
        out[t] = static_cast<float>(2.5 * normal + (t % 1009 == 0 ? 8 : 0));
    }
    return out;
}

struct Parameters {
    const char* name;
    float temperature;
    int32_t top_k;
    float top_p, min_p;
    float presence;
    int32_t logprobs;
};
constexpr Parameters kParameters[] = {
    {"greedy", 0, 0, 1, 0, 0, -1},           {"temperature_0.8", 0.8f, 0, 1, 0, 0, -1},
    {"top_k_50", 0.8f, 50, 1, 0, 0, -1},     {"top_p_0.95", 0.8f, 0, 0.95f, 0, 0, -1},
    {"min_p_0.05", 0.8f, 0, 1, 0.05f, 0, -1}, {"presence_0.5", 0.8f, 50, 1, 0, 0.5f, -1},
    {"logprobs_5", 0, 0, 1, 0, 0, 5},
};

void sample(benchmark::State& state, const host::Sampler& sampler, const Parameters& p, const std::vector<float>& raw) {
    constexpr uint32_t kRows = 4;
    std::vector<float> all;
    for (uint32_t i = 0; i < kRows; ++i) all.insert(all.end(), raw.begin(), raw.end());
    pb_sampling_params params = plain_params();
    params.top_k = p.top_k;
    params.temperature = p.temperature;
    params.top_p = p.top_p;
    params.min_p = p.min_p;
    params.presence_penalty = p.presence;
    params.logprobs = p.logprobs;
    const std::vector<int32_t> history(512, 11);
    std::vector<pb_sample_row> rows;
    std::vector<int32_t> tokens(kRows), top(kRows * 8);
    std::vector<float> logprobs(kRows), top_logprobs(kRows * 8);
    uint64_t position = 0;
    for (auto _ : state) {
        rows.clear();
        for (uint32_t i = 0; i < kRows; ++i)
            rows.push_back({i, i, position++, &params, history.data(), history.data(), 512, 512, nullptr, nullptr});
        pb_sample_batch b{};
        b.struct_size = sizeof b;
        b.row_count = kRows;
        b.row_stride = sizeof(pb_sample_row);
        b.max_logprobs = 8;
        b.logits = tensor(all.data(), PB_F32, {kRows, static_cast<int64_t>(raw.size())});
        b.rows = rows.data();
        b.tokens = tokens.data();
        b.logprobs = logprobs.data();
        b.top_tokens = top.data();
        b.top_logprobs = top_logprobs.data();
        if (sampler.table->sample(sampler.self(), &b) != PB_OK) state.SkipWithError("the sampler fails");
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kRows);
}

}  // namespace

int main(int argc, char** argv) {
    const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    if (!registry) return std::fprintf(stderr, "%s\n", registry.error().c_str()), 1;
    const auto sampler = registry->sampler("standard", {}, {});
    if (!sampler) return std::fprintf(stderr, "%s\n", sampler.error().c_str()), 1;
    for (const size_t vocab : {32000, 128256})
        for (const Parameters& p : kParameters)
            benchmark::RegisterBenchmark(("standard/" + std::string(p.name) + "/" + std::to_string(vocab)).c_str(),
                                         [&sampler, &p, raw = logits_of(vocab)](benchmark::State& state) {
                                             sample(state, *sampler, p, raw);
                                         });
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
