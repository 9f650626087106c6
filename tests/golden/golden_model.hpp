// A small model of tests/golden on a real device: its logits, alone or in a batch, and its greedy ids.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/thread_pool.hpp"
#include "host/library.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "runner/model_runner.hpp"
#include "weights/loader.hpp"
#include "weights/stored_head.hpp"
#include "must.hpp"
#include "paths.hpp"

namespace patchbay::golden {

using json = nlohmann::json;
inline const std::string kGolden = std::string(kSourceDir) + "/tests/golden/";

struct Setting {
    std::string name, attention, isa;
    pb_dtype kv;
    std::optional<weights::WeightForm> weights = std::nullopt; // none: as real as they are
    std::string device = "cpu";
    enum class Form { kFolder, kGguf } form = Form::kFolder;
    std::string model() const {
        return kGolden + (form == Form::kGguf ? "gguf/" + name + ".gguf" : "models/" + name);
    }
    host::Settings device_settings() const {
        return device == "cpu" ? host::Settings{{"isa", isa}} : host::Settings{{"activation_dtype", "f32"}};
    }

    // Of models whose frequencies depend on it: the longest sequence that transformers' were made for.
    uint32_t max_length() const { return name == "llama_dynamic" || name == "phi3_longrope_long" ? 64 : 0; }

    // All but bf16 weights at the best level, where linears may round activations, and bf16 KV.
    bool computes_in_f32() const { return kv == PB_F32 && (name != "llama_bf16" || isa != "auto"); }
};

inline const host::Registry& plugins() {
    static const host::Registry all = must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
    return all;
}

// As Registry's, of libraries that stay open: thousands of runners are made, and opening reads and hashes a file.
template <class Table>
host::Typed<Table> component(std::string_view kind, const std::string& name, const host::Settings& settings,
                             const host::Services& services) {
    static std::map<std::string, std::shared_ptr<host::Library>> opened;
    const host::Manifest& plugin = *plugins().plugin_of(*must(plugins().find(kind, name)));
    std::shared_ptr<host::Library>& library = opened[plugin.library.string()];
    if (!library) library = must(host::Library::open(plugin.library, plugin.sha256));
    const pb_component& type = *library->find(kind, name);
    host::Typed<Table> out;
    out.component = must(host::Component::create(library, type, settings, services));
    out.table = static_cast<const Table*>(type.vtable);
    return out;
}

class Golden {
  public:
    explicit Golden(const Setting& s) : Golden(s, must(weights::read_model_config(s.model()))) {}
    // With another config.json than the folder's.
    Golden(const Setting& s, weights::FlatConfig config) : pool_(2) {
        const host::Services services{&pool_.service(), nullptr, nullptr};
        const auto source = must(weights::WeightSource::from_folder(s.model()));
        must(weights::settle_head(config, source));
        runner::RunnerSettings r;
        r.model_config = std::move(config);
        r.weights = s.weights.value_or(weights::WeightForm{must(source.native_dtype(r.model_config))});
        r.kv_dtypes.default_dtype = s.kv;
        r.block_size = kBlock;
        r.num_blocks = kBlocks;
        r.device = s.device;
        r.max_model_len = s.max_length();
        r.max_num_seqs = r.max_num_batched_tokens = 0; // of a batch: not known
        const auto plugin = must(plugins().model_for(r.model_config["architectures.0"]));
        runner_ = must(runner::ModelRunner::create(
            component<pb_device>("device", s.device, s.device_settings(), services),
            component<pb_model>("model", plugin, {}, services),
            component<pb_attention>("attention", s.attention, {}, services), source, r, clock_));
    }

    uint32_t positions() const { return runner_->model().facts().max_position; } // that it serves

    // Logits of each of the tokens, computed in one step.
    std::vector<float> logits(const std::vector<int32_t>& tokens) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->kv().grouping().groups);
        kv::BlockTable table;
        return step(cache, table, tokens, 0, static_cast<uint32_t>(tokens.size()));
    }

    // The same for several prompts in one batch, one after another; cut: the first prompt computes so many tokens in a
    // step before.
    std::vector<float> logits_together(const std::vector<std::vector<int32_t>>& prompts, uint32_t cut) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->kv().grouping().groups);
        std::vector<kv::BlockTable> tables(prompts.size());
        for (size_t i = 0; i < prompts.size(); ++i)
            EXPECT_TRUE(cache.tables().grow(tables[i], static_cast<uint32_t>(prompts[i].size())));
        runner::Batch batch;
        batch.clear(runner_->kv().batch_form());
        batch.add({std::span(prompts[0]).first(cut), 0, cut, tables[0]});
        batch.finish();
        const auto first = must(runner_->passes().forward(batch));
        std::vector<float> out(first.begin(), first.end());
        batch.clear(runner_->kv().batch_form());
        for (size_t i = 0; i < prompts.size(); ++i) {
            const uint32_t done = i == 0 ? cut : 0;
            const auto rest = std::span(prompts[i]).subspan(done);
            batch.add({rest, done, static_cast<uint32_t>(rest.size()), tables[i]});
        }
        batch.finish();
        const auto second = must(runner_->passes().forward(batch));
        out.insert(out.end(), second.begin(), second.end());
        return out;
    }

    // The prompt in one step, then one token in each step, like an engine. fed: those that go on in place of its own.
    std::vector<int32_t> greedy(const std::vector<int32_t>& prompt, size_t count,
                                const std::vector<int32_t>* fed = nullptr) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->kv().grouping().groups);
        kv::BlockTable table;
        std::vector<int32_t> next = prompt, out;
        uint32_t computed = 0;
        while (out.size() < count) {
            const auto row = step(cache, table, next, computed, 1);
            computed += static_cast<uint32_t>(next.size());
            out.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
            next = {fed ? fed->at(out.size() - 1) : out.back()};
        }
        return out;
    }

  private:
    static constexpr uint32_t kBlocks = 32, kBlock = 16;

    // Computes the tokens after `computed` others; logits of the last `rows`.
    std::vector<float> step(kv::KvCache& cache, kv::BlockTable& table, const std::vector<int32_t>& tokens,
                            uint32_t computed, uint32_t rows) {
        cache.tables().free_outside_window(table, computed);
        EXPECT_TRUE(cache.tables().grow(table, computed + static_cast<uint32_t>(tokens.size())));
        runner::Batch batch;
        batch.clear(runner_->kv().batch_form());
        batch.add({tokens, computed, rows, table});
        batch.finish();
        const auto out = must(runner_->passes().forward(batch));
        return {out.begin(), out.end()};
    }

    ThreadPool pool_;
    VirtualClock clock_;
    std::unique_ptr<runner::ModelRunner> runner_;
};

inline std::vector<float> numbers(const weights::TensorView& view) { // f32
    std::vector<float> out(view.bytes / sizeof(float));
    std::memcpy(out.data(), view.data, view.bytes);
    return out;
}

// The largest difference, divided by the range of the expected values.
inline double worst_of(const std::vector<float>& got, const std::vector<float>& expected) {
    if (got.size() != expected.size()) return INFINITY;
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    double worst = 0;
    for (size_t k = 0; k < got.size(); ++k)
        worst = std::max<double>(worst, std::isnan(got[k]) ? INFINITY : std::abs(got[k] - expected[k]));
    return worst / (*high - *low);
}

}  // namespace patchbay::golden
