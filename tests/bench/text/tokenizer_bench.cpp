// Bytes of English prose that a tokenizer encodes, and tokens that it decodes, a second and core. With the folder of
// $PATCHBAY_TEST_DATA the tokenizers and the text there, else the demo model's tokenizer and the project's own papers.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "text/tokenizer.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace {

namespace fs = std::filesystem;
using namespace patchbay::text;

const fs::path kSource = patchbay::kSourceDir;

fs::path test_data() {
    const char* given = std::getenv("PATCHBAY_TEST_DATA");
    return given ? fs::path(given) : kSource / ".." / "shared" / "data";
}

std::string prose() {
    if (const std::string books = patchbay::file_text(test_data() / "text" / "childrens_classics.txt"); !books.empty())
        return books;
    std::string papers;
    for (const auto& entry : fs::directory_iterator(kSource / "docs"))
        if (entry.path().extension() == ".md") papers += patchbay::file_text(entry.path());
    std::string out;
    while (out.size() < 5'000'000) out += papers;
    return out;
}

using Shared = std::shared_ptr<const Tokenizer>;

void encode(benchmark::State& state, const Shared& tokenizer, const std::string& text, size_t at_once) {
    for (auto _ : state)
        for (size_t from = 0; from < text.size(); from += at_once)
            benchmark::DoNotOptimize(tokenizer->encode(std::string_view(text).substr(from, at_once)));
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void decode(benchmark::State& state, const Shared& tokenizer, const std::vector<TokenId>& ids) {
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer->decode(ids));
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * ids.size()));
}

void add(const fs::path& folder, const std::string& text) {
    const auto tokenizer = Tokenizer::load(folder);
    if (!tokenizer) {
        std::fprintf(stderr, "%s\n", tokenizer.error().c_str());
        return;
    }
    const std::string name = folder.filename().string();
    benchmark::RegisterBenchmark((name + "/encode_whole").c_str(), encode, *tokenizer, text, text.size());
    benchmark::RegisterBenchmark((name + "/encode_prompts_of_2000_bytes").c_str(), encode, *tokenizer, text, 2000);
    benchmark::RegisterBenchmark((name + "/decode").c_str(), decode, *tokenizer, (*tokenizer)->encode(text));
    benchmark::RegisterBenchmark((name + "/load").c_str(), [folder](benchmark::State& state) {
        for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(folder));
    });
}

}  // namespace

int main(int argc, char** argv) {
    const std::string text = prose();
    add(kSource / "models" / "demo-target", text);
    for (const char* name : {"gpt2", "qwen2", "llama2", "mistral_v03"})
        if (fs::exists(test_data() / "tokenizers" / name)) add(test_data() / "tokenizers" / name, text);
    for (int i = 1; i < argc; ++i)
        if (argv[i][0] != '-') add(argv[i], text); // other model folders
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
