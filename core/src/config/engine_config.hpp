// All settings of an engine, typed, with their defaults. Filled by config/load.hpp; see
// docs/configuration.md.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/allowed_plugins.hpp"

namespace patchbay::config {

struct PluginChoice { // `scheduler: fcfs` or `scheduler: {plugin: fcfs, key: value}`
    std::string plugin;
    std::map<std::string, std::string> settings; // the plugin's own keys, as YAML text, checked against its schema

    bool operator==(const PluginChoice&) const = default;
};

enum class ThreadPinning { kNone, kCores };
enum class LoadFormat { kAuto, kDummy };
enum class DType { kAuto, kF32, kBf16 };
enum class KvDType { kAuto, kF32, kBf16, kFp8, kInt8 };
enum class GraphMode { kNone, kFullDecodeOnly, kFull };
enum class GraphCapture { kEager, kLazy };   // at load, or when a size is met for the first time
enum class AsyncScheduling { kOff, kAuto, kOn }; // auto: where the parts can; on: else refused
enum class PreemptionMode { kRecompute, kSwap, kAuto }; // auto: what the measured costs say
enum class Launcher { kAuto, kLocal, kMpirun, kSrun };
enum class Quantization { kAuto, kNone, kInt8, kInt4 };

struct ModelSettings {                       // `model:` a path, or a map of these
    std::string path;                        // a Hugging Face folder, or a GGUF file
    std::string plugin = "auto";             // model component; auto: by `architectures` of config.json
    std::string tokenizer;                   // folder or file of a tokenizer; empty: the model's; "none": ids only
    LoadFormat load_format = LoadFormat::kAuto;
    DType dtype = DType::kAuto;              // of weights; auto: the checkpoint's
    Quantization quantization = Quantization::kAuto; // of linears; auto: as the checkpoint has them
    std::optional<uint32_t> quantization_group_size{}; // columns that share a scale: 32 or 128; of int8 also 0, all of
                                             // a row; none: 128 for int8, 32 for int4
    std::map<std::string, std::string> shape; // load_format dummy: config.json keys given in YAML, flattened

    bool operator==(const ModelSettings&) const = default;
};

struct KvDTypeOfLayers {
    std::string layers;                      // as they were named: "0-3"
    std::optional<uint32_t> first;           // none: the last `count`
    uint32_t count = 0;
    KvDType dtype = KvDType::kAuto;

    bool operator==(const KvDTypeOfLayers&) const = default;
};

struct EngineSettings {                      // `engine:`; names and meanings follow vLLM's
    uint32_t max_model_len = 0;              // tokens; 0: what the model reaches
    uint32_t max_num_batched_tokens = 512;
    uint32_t max_num_seqs = 64;
    bool enable_chunked_prefill = true;
    uint32_t long_prefill_token_threshold = 0; // 0: none
    uint32_t block_size = 16;                // tokens a KV block
    uint32_t num_blocks = 0;                 // 0: from kv_cache_memory
    uint64_t kv_cache_memory = 256ull << 20; // bytes
    double gpu_memory_utilization = 0;       // share of the device's memory; 0: kv_cache_memory says
    KvDType kv_cache_dtype = KvDType::kAuto; // auto: f32 for f32 weights, bf16 for bf16
    std::vector<KvDTypeOfLayers> kv_cache_dtype_layers; // in its place
    bool enable_prefix_caching = true;
    double watermark = 0.01;                 // share of blocks kept free when admitting
    bool adaptive_watermark = false;         // raised after preemptions, lowered in calm
    bool zero_freed_blocks = false;          // when no request holds them and no lookup finds them any more
    bool reserve_full_sequence = false;      // admit only what finds pages for all its tokens
    PreemptionMode preemption_mode = PreemptionMode::kRecompute;
    double swap_space = 4;                   // GiB of host memory a rank, where preemption_mode may swap
    uint32_t num_swap_blocks = 0;            // 0: from swap_space
    uint32_t num_speculative_tokens = 0;     // 0: no speculation; needs a proposer
    uint32_t tensor_parallel_size = 1;       // ranks: processes that compute one model together
    int32_t max_logprobs = 100;              // −1: the whole vocabulary
    uint32_t max_waiting = 0;                // requests; 0: no limit
    uint64_t seed = 0;
    uint32_t threads = 0;                    // 0: the cores this process may use
    ThreadPinning thread_pinning = ThreadPinning::kNone;
    AsyncScheduling async_scheduling = AsyncScheduling::kOff;
    GraphMode cudagraph_mode = GraphMode::kNone;
    std::vector<uint32_t> cudagraph_capture_sizes; // tokens; empty: vLLM's
    GraphCapture cudagraph_capture = GraphCapture::kEager;
    uint64_t cudagraph_memory = 0;           // bytes of all graphs; 0: no limit

    bool operator==(const EngineSettings&) const = default;
};

enum class Verification { kMatch, kRejection, kSynthetic }; // how drafts become output

enum class DraftMode { kFixed, kAdaptive };  // how many tokens are drafted a step

struct SpeculationSettings {                 // `speculative:`; docs/speculation.md
    DraftMode mode = DraftMode::kFixed;
    Verification rejection_sample_method = Verification::kMatch;
    std::vector<double> synthetic_acceptance_rates; // by place in the chain, of all drafts there
    uint32_t max_paths = 1;                  // of a sequence's tree of drafts; 1: chains

    bool operator==(const SpeculationSettings&) const = default;
};

enum class PoolingType { kAuto, kLast, kMean }; // auto: as the model's folder says, else the last token

struct PoolerSettings {                      // `pooler_config:`; of embeddings, docs/serving.md
    PoolingType pooling_type = PoolingType::kAuto;
    std::optional<bool> normalize;           // to length 1; none: as the model's folder says, else yes

    bool operator==(const PoolerSettings&) const = default;
};

enum class WatchMode { kOff, kAnnounce, kAdopt }; // of plugin folders, while a server runs

struct SwapSettings {                        // `swap:`; docs/hot-swap.md
    uint32_t probation_steps = 16;           // in which the predecessor can come back
    uint32_t max_call_ms = 1000;             // a call that takes longer brings it back; 0: no bound
    uint32_t max_hang_s = 300;               // a call that takes longer ends a server's process; 0: none does
    WatchMode watch = WatchMode::kOff;       // what becomes of a new build of a plugin in use

    bool operator==(const SwapSettings&) const = default;
};

struct ParallelSettings {                    // `parallel:`; of engines of several ranks
    Launcher launcher = Launcher::kAuto;     // what started the ranks; auto: as the environment says, else started here
    uint32_t join_timeout_ms = 60'000;       // until all ranks are there
    uint32_t heartbeat_timeout_ms = 3'000;   // of silence, after which a rank counts as hung
    uint32_t step_timeout_ms = 600'000;      // that a rank may compute on one step
    uint32_t load_timeout_ms = 1'800'000;    // that a rank may take for one part of loading a model

    bool operator==(const ParallelSettings&) const = default;
};

struct EngineConfig {
    ModelSettings model;
    EngineSettings engine;
    SpeculationSettings speculative;
    PoolerSettings pooler_config;
    SwapSettings swap;
    ParallelSettings parallel;
    PluginChoice scheduler{"fcfs", {}};
    PluginChoice sampler{"standard", {}};
    PluginChoice attention{"paged", {}};
    PluginChoice device{"cpu", {}};
    std::optional<PluginChoice> proposer;    // none: no speculation
    std::optional<PluginChoice> kv_policy;   // none: the page unused the longest is evicted first
    std::optional<host::AllowedPlugins> allowed_plugins; // none: any

    bool operator==(const EngineConfig&) const = default;
};

}  // namespace patchbay::config
