// Workloads of tests: a tokenizer of bytes, files of a folder, and what most of them begin with.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/workload.hpp"

namespace patchbay::experiment {

struct Folder { // removed at the end
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "patchbay-workload-XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path file(const std::string& name, const std::string& text) const {
        std::ofstream(path / name, std::ios::binary) << text;
        return path / name;
    }
};

class ByteTokenizer final : public text::Tokenizer { // one id a byte; id 0 is special
  public:
    std::vector<text::TokenId> encode(std::string_view s) const override { return {s.begin(), s.end()}; }
    std::string_view token_bytes(text::TokenId t) const override {
        static const std::string all = [] {
            std::string bytes(128, '\0');
            std::iota(bytes.begin(), bytes.end(), '\0');
            return bytes;
        }();
        return std::string_view(all).substr(static_cast<size_t>(t), 1);
    }
    bool is_special(text::TokenId t) const override { return t == 0; }
    uint32_t vocab_size() const override { return 128; }
    std::optional<text::TokenId> eos() const override { return 0; }
    std::optional<text::TokenId> id_of(std::string_view) const override { return std::nullopt; }
};

inline std::shared_ptr<const text::Tokenizer> byte_tokenizer() { return std::make_shared<const ByteTokenizer>(); }

inline Workload workload_of(const WorkloadSpec& spec, uint64_t seed = 1, uint32_t repeat = 0,
                            WorkloadLimits limits = {1000, 128}) {
    auto source = WorkloadSource::open(spec, byte_tokenizer(), limits);
    EXPECT_TRUE(source) << source.error();
    return source->repeat(seed, repeat);
}

inline WorkloadSpec synthetic(uint32_t requests, Length prompt, Length output) {
    WorkloadSpec spec;
    spec.requests = requests;
    spec.prompts = SyntheticPrompts{std::move(prompt)};
    spec.output_tokens = std::move(output);
    return spec;
}

using Ids = std::vector<text::TokenId>;

inline Ids head(const Ids& ids, size_t n) { return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)}; }

inline WorkloadSpec of_trace(const Folder& f, const std::string& text, TraceOptions options = {}) {
    WorkloadSpec spec;
    spec.prompts = TracePrompts{f.file("trace", text), options};
    spec.arrivals = TraceArrivals{};
    return spec;
}

}  // namespace patchbay::experiment
