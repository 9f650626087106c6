#include "config/load.hpp"

#include "unit/config/config_fixture.hpp"
#include "paths.hpp"

namespace patchbay::config::load_test {
namespace {

using Load = ConfigFiles;

TEST_F(Load, a_model_alone_gives_the_defaults) {
    const Loaded l = load("model: model\n");
    EngineConfig expected;
    expected.model.path = (std::filesystem::current_path() / "model").string();
    EXPECT_EQ(l.config, expected);
    EXPECT_TRUE(l.warnings.empty());
    EXPECT_EQ(l.effective.at("engine.block_size")->origin.text(), "default");
    EXPECT_EQ(l.effective.at("model.path")->origin.text(), "a.yaml:1:8");
}

TEST_F(Load, every_key_of_the_engine_arrives) {
    const Loaded l = load(
        "model: {path: model, plugin: llama, tokenizer: none, dtype: bf16, quantization: int4,\n"
        "  quantization_group_size: 128}\n"
        "engine: {max_model_len: 100, max_num_batched_tokens: 200, max_num_seqs: 3, enable_chunked_prefill: false,\n"
        "  long_prefill_token_threshold: 5, block_size: 32, num_blocks: 7, kv_cache_dtype: float32,\n"
        "  kv_cache_dtype_layers: {0-3: int8, 7: fp8_e4m3, last 2: auto},\n"
        "  enable_prefix_caching: false, watermark: 0.1, adaptive_watermark: true,\n"
        "  zero_freed_blocks: true, reserve_full_sequence: true, preemption_mode: auto,\n"
        "  swap_space: 1.5, num_swap_blocks: 6, num_speculative_tokens: 4, max_waiting: 9, seed: 11, threads: "
        "2, thread_pinning: cores, cudagraph_mode: FULL_DECODE_ONLY, cudagraph_capture_sizes: [4, 1],\n"
        "  cudagraph_capture: lazy, cudagraph_memory: 1GiB, async_scheduling: auto}\n"
        "scheduler: {plugin: sjf, ageing: 2.5}\nproposer: ngram\n");
    EngineConfig e;
    e.model = {.path = l.config.model.path, .plugin = "llama", .tokenizer = "none", .dtype = DType::kBf16,
               .quantization = Quantization::kInt4, .quantization_group_size = 128};
    e.engine = {.max_model_len = 100,
                .max_num_batched_tokens = 200,
                .max_num_seqs = 3,
                .enable_chunked_prefill = false,
                .long_prefill_token_threshold = 5,
                .block_size = 32,
                .num_blocks = 7,
                .kv_cache_dtype = KvDType::kF32,
                .kv_cache_dtype_layers = {{"0-3", 0, 4, KvDType::kInt8},
                                          {"7", 7, 1, KvDType::kFp8},
                                          {"last 2", std::nullopt, 2, KvDType::kAuto}},
                .enable_prefix_caching = false,
                .watermark = 0.1,
                .adaptive_watermark = true,
                .zero_freed_blocks = true,
                .reserve_full_sequence = true,
                .preemption_mode = PreemptionMode::kAuto,
                .swap_space = 1.5,
                .num_swap_blocks = 6,
                .num_speculative_tokens = 4,
                .max_waiting = 9,
                .seed = 11,
                .threads = 2,
                .thread_pinning = ThreadPinning::kCores,
                .async_scheduling = AsyncScheduling::kAuto,
                .cudagraph_mode = GraphMode::kFullDecodeOnly,
                .cudagraph_capture_sizes = {4, 1},
                .cudagraph_capture = GraphCapture::kLazy,
                .cudagraph_memory = 1u << 30};
    e.scheduler = {"sjf", {{"ageing", "2.5"}, {"first", "short"}, {"name", "a: b # c"}}};
    e.proposer = PluginChoice{"ngram", {{"n", "3"}}};
    EXPECT_EQ(l.config, e);
    EXPECT_EQ(load("model: model\nengine: {kv_cache_memory: 1GiB}").config.engine.kv_cache_memory, 1u << 30);
}

TEST_F(Load, the_pooler_is_configured_in_the_words_of_vllm) {
    const auto of = [&](const std::string& keys) {
        return load("model: model\npooler_config: {" + keys + "}\n").config;
    };
    EXPECT_EQ(of("pooling_type: MEAN, normalize: false").pooler_config, (PoolerSettings{PoolingType::kMean, false}));
    EXPECT_EQ(of("pooling_type: last").pooler_config, (PoolerSettings{PoolingType::kLast, std::nullopt}));
    EXPECT_EQ(fault_of("model: model\npooler_config: {pooling_type: CLS}\n"),
              "a.yaml:2:31: 'pooling_type' is 'CLS', expected one of auto, LAST, MEAN, last, mean");
}

TEST_F(Load, a_shape_is_flattened_as_config_json_is) {
    const Loaded l = load(
        "model:\n  load_format: dummy\n  shape:\n    architectures: [LlamaForCausalLM]\n    rms_norm_eps: 1.0e-5\n"
        "    rope_scaling: {factor: 32.0}\n    tie_word_embeddings: true\n    bos_token_id: ~\n"
        "    eos_token_id: \"2\"\n    hidden_act: \"silu\"\n    mlp_only_layers: []\n    rope_parameters: {}\n");
    const std::map<std::string, std::string> expected{{"architectures.0", "LlamaForCausalLM"},
                                                      {"rms_norm_eps", "1.0e-5"},
                                                      {"rope_scaling.factor", "32.0"},
                                                      {"tie_word_embeddings", "true"},
                                                      {"bos_token_id", "null"},
                                                      {"eos_token_id", "\"2\""},
                                                      {"hidden_act", "silu"},
                                                      {"mlp_only_layers", "[]"},
                                                      {"rope_parameters", "{}"}};
    EXPECT_EQ(l.config.model.shape, expected);
    const Node again = document_of(l.config, registry());
    EngineConfig read;
    Faults faults;
    engine_config_table(registry()).read(again, read, faults);
    EXPECT_EQ(read.model.shape, expected) << "as experiments keep it";
}

TEST_F(Load, a_misspelt_key_is_a_fault_with_place_and_guess) {
    EXPECT_EQ(fault_of("model: model\nengine:\n  max_num_seq: 8\n"),
              "a.yaml:3:3: unknown key 'max_num_seq' (did you mean 'max_num_seqs'?)");
    EXPECT_EQ(fault_of("model: model\nshedular: fcfs\n"),
              "a.yaml:2:1: unknown key 'shedular' (did you mean 'scheduler'?)");
    EXPECT_EQ(fault_of("model: model\nblock_size: 8\n"),
              "a.yaml:2:1: unknown key 'block_size' (did you mean 'engine.block_size'?)");
    EXPECT_EQ(fault_of("model: {pth: model}\n"), "a.yaml:1:9: unknown key 'pth' (did you mean 'path'?)");
}

TEST_F(Load, a_missing_plugin_is_a_fault_with_a_guess) {
    EXPECT_EQ(fault_of("model: model\nscheduler: fcsf\n"), "a.yaml:2:12: no scheduler 'fcsf' (did you mean 'fcfs'?)");
    EXPECT_EQ(fault_of("model: model\nscheduler: {plugin: fcsf}\n"),
              "a.yaml:2:21: no scheduler 'fcsf' (did you mean 'fcfs'?)");
    EXPECT_EQ(fault_of("model: {path: model, plugin: lama}\n"), "a.yaml:1:30: no model 'lama' (did you mean 'llama'?)");
    EXPECT_EQ(fault_of("model: model\n", {{"sampler.plugin", "standerd", "--sampler"}}),
              "--sampler: no sampler 'standerd' (did you mean 'standard'?)");
}

TEST_F(Load, a_plugins_own_keys_are_checked_against_its_schema) {
    const std::string head = "model: model\nscheduler:\n  plugin: sjf\n";
    EXPECT_EQ(fault_of(head + "  agein: 1\n"),
              "a.yaml:4:3: unknown key 'agein' of scheduler 'sjf' (did you mean 'ageing'?)");
    EXPECT_EQ(fault_of(head + "  ageing: fast\n"), "a.yaml:4:11: 'ageing' is 'fast', expected a number");
    EXPECT_EQ(fault_of(head + "  ageing: -1\n"), "a.yaml:4:11: 'ageing' is -1, expected 0 to 1000000000 tokens/s");
    EXPECT_EQ(fault_of(head + "  ageing: [1]\n"), "a.yaml:4:11: 'ageing' is a list, expected one value");
    EXPECT_EQ(fault_of(head + "  ageing: \"1\"\n"), "a.yaml:4:11: 'ageing' is the string '1', expected a number");
    EXPECT_EQ(fault_of("model: model\nscheduler: {plugin: needy, must: '2'}\n"),
              "a.yaml:2:34: 'must' is the string '2', expected a whole number");
    EXPECT_EQ(fault_of(head + "  first: shrt\n"),
              "a.yaml:4:10: 'first' is 'shrt', expected one of short, long (did you mean 'short'?)");
    EXPECT_EQ(fault_of("model: model\nscheduler: {ageing: 1}\n"),
              "a.yaml:2:13: unknown key 'ageing' of scheduler 'fcfs' (it has none)");
    EXPECT_EQ(fault_of("model: model\nscheduler: needy\n"),
              "a.yaml:2:12: scheduler 'needy' needs 'must': what it cannot guess");
    EXPECT_EQ(fault_of("model: model\nscheduler: [sjf]\n"),
              "a.yaml:2:12: 'scheduler' is a list, expected the name of a plugin or {plugin: NAME, …}");
    EXPECT_EQ(fault_of("model: model\nscheduler: {plugin: [a]}\n"),
              "a.yaml:2:21: 'plugin' is a list, expected the name of a scheduler");
    EXPECT_EQ(fault_of("model: model\nproposer: {n: 2}\n"),
              "a.yaml:2:12: unknown key 'n' of no proposer (set plugin: NAME)");
}

TEST_F(Load, a_model_folder_is_looked_for_beside_the_file_then_in_the_current_directory) {
    make_model("sub/model");
    write("sub/a.yaml", "model: model\n");
    const auto beside = load_engine_config("sub/a.yaml", registry());
    ASSERT_TRUE(beside) << beside.error();
    EXPECT_EQ(beside->config.model.path, (std::filesystem::current_path() / "sub/model").string());
    make_model("only-here");
    write("sub/b.yaml", "model: only-here\n");
    const auto current = load_engine_config("sub/b.yaml", registry());
    ASSERT_TRUE(current) << current.error();
    EXPECT_EQ(current->config.model.path, (std::filesystem::current_path() / "only-here").string());
    write("sub/c.yaml", "model: nowhere\n");
    EXPECT_EQ(load_engine_config("sub/c.yaml", registry()).error(),
              "sub/c.yaml:1:8: model nowhere is not there (looked for sub/nowhere, then in the current directory)");
    EXPECT_EQ(fault_of("model: a.yaml\n"),
              "a.yaml:1:8: model a.yaml is not a folder, expected a Hugging Face model folder or a .gguf file");
    EXPECT_EQ(fault_of("model: {path: /nope}\n"), "a.yaml:1:15: model /nope is not there");
    EXPECT_EQ(fault_of("model: {path: model, tokenizer: /nope}\n"), "a.yaml:1:33: tokenizer /nope is not there");
}

TEST_F(Load, a_plugins_file_is_looked_for_as_a_model_is) {
    write("sub/drafts", "");
    write("here", "");
    const std::string head = "model: model\nengine: {num_speculative_tokens: 1}\nproposer: {plugin: reader, file: ";
    const auto file_of = [&](const std::string& file) {
        return load_engine_config(write("sub/a.yaml", head + file + "}\n"), registry());
    };
    const std::string here = std::filesystem::current_path().string();
    EXPECT_EQ(file_of("drafts")->config.proposer->settings.at("file"), here + "/sub/drafts");
    EXPECT_EQ(file_of("here")->config.proposer->settings.at("file"), here + "/here");
    EXPECT_EQ(file_of(here + "/sub/../here")->config.proposer->settings.at("file"), here + "/here");
    EXPECT_EQ(file_of("''")->config.proposer->settings.at("file"), "");
    EXPECT_EQ(file_of("nowhere").error(),
              "sub/a.yaml:3:34: file nowhere is not there (looked for sub/nowhere, then in the current directory)");
}

TEST_F(Load, settings_of_a_model_may_be_those_of_a_file) {
    for (const char* name : {"sub/a.yaml", "sub/b.yml"}) {
        write(name, "model: ../model\n");
        const auto named = model_settings({{"path", name}, {"dtype", "float32"}});
        ASSERT_TRUE(named) << named.error();
        EXPECT_EQ(named->path, (std::filesystem::current_path() / "model").string());
        EXPECT_EQ(named->dtype, DType::kF32);
    }
    EXPECT_EQ(model_settings({{"path", write("c.yaml", "engine: {seed: 1}\n")}}).error(),
              "c.yaml has no key 'model', which a model's file has");
    EXPECT_EQ(model_settings({{"path", write("d.yaml", "model: [a]\n")}}).error(),
              "d.yaml:1:8: 'model' is a list, expected a map of keys");
}

TEST_F(Load, an_included_files_model_is_relative_to_that_file) {
    make_model("sub/inner");
    write("sub/base.yaml", "model: inner\n");
    EXPECT_EQ(load("include: sub/base.yaml\n").config.model.path,
              (std::filesystem::current_path() / "sub/inner").string());
}

TEST_F(Load, without_a_model_there_is_nothing_to_run) {
    EXPECT_EQ(fault_of("engine: {seed: 1}\n"),
              "a.yaml:1:1: no model is named: set model: FOLDER, or model: {load_format: dummy, shape: {…}}");
    EXPECT_EQ(load_engine_config("", registry()).error(),
              "no model is named: set model: FOLDER, or model: {load_format: dummy, shape: {…}}");
    EXPECT_EQ(
        fault_of("model: {load_format: dummy}\n"),
        "a.yaml:1:22: load_format dummy needs 'shape' (keys of config.json), or 'path' of a folder with config.json");
    EXPECT_EQ(fault_of("model: {path: model, shape: {a: 1}}\n"),
              "a.yaml:1:29: 'shape' is for load_format: dummy, which is not set");
}

TEST_F(Load, allowed_plugins_are_digests_by_library) {
    make_model("m");
    const std::string a(64, 'a'), b(64, 'b');
    EXPECT_FALSE(load("model: m").config.allowed_plugins);
    const Loaded loaded = load("{model: m, allowed_plugins: {a.so: " + a + ", b.so: [" + a + ", " + b + "]}}");
    ASSERT_TRUE(loaded.config.allowed_plugins);
    EXPECT_EQ(loaded.config.allowed_plugins->digests,
              (std::map<std::string, std::vector<std::string>>{{"a.so", {a}}, {"b.so", {a, b}}}));
    const Loaded again = *load_engine_config(document_of(loaded.config, registry()), registry());
    EXPECT_EQ(again.config.allowed_plugins, loaded.config.allowed_plugins); // as ranks get it
    EXPECT_TRUE(load("{model: m, allowed_plugins: {}}").config.allowed_plugins) << "none is allowed";
    EXPECT_THAT(fault_of("{model: m, allowed_plugins: {a.so: 12ab}}"),
                ::testing::HasSubstr("'allowed_plugins.a.so' is '12ab', expected a SHA-256: 64 digits"));
    EXPECT_THAT(fault_of("{model: m, allowed_plugins: [a.so]}"), ::testing::HasSubstr("'allowed_plugins'"));
}

TEST_F(Load, layers_that_make_no_sense_are_faults) {
    const auto fault = [&](const std::string& map) {
        return fault_of("model: model\nengine: {kv_cache_dtype_layers: " + map + "}\n");
    };
    const std::string expected = "' names no layers, expected 7, 0-3 or last 2 (up to 4096)";
    for (const char* layers : {"-1", "3-1", "1-", "a", "last 0", "last", "last x", "5000", "1-99999999999", "1.5"})
        EXPECT_EQ(fault("{" + std::string(layers) + ": int8}"),
                  "a.yaml:2:34: 'kv_cache_dtype_layers': '" + std::string(layers) + expected);
    EXPECT_EQ(fault("{0: int9}"), "a.yaml:2:37: 'kv_cache_dtype_layers': layers 0 have 'int9', expected a type such as "
                                  "bfloat16 or int8 (did you mean 'int8'?)");
    EXPECT_EQ(fault("{0: [int8]}"),
              "a.yaml:2:37: 'kv_cache_dtype_layers': layers 0 have a list, expected a type such as bfloat16 or int8");
    EXPECT_EQ(fault("{0-3: int8, 3-5: fp8}"), "a.yaml:2:45: 'kv_cache_dtype_layers': layers 3-5 and 0-3 overlap");
    EXPECT_EQ(fault("{last 1: int8, last 2: fp8}"),
              "a.yaml:2:48: 'kv_cache_dtype_layers': layers last 2 and last 1 overlap");
    EXPECT_EQ(fault("int8"), "a.yaml:2:33: 'kv_cache_dtype_layers' is 'int8', expected a map of keys");
}

TEST_F(Load, settings_that_contradict_one_another_are_faults) {
    EXPECT_EQ(fault_of("model: model\nengine: {block_size: 24}\n"),
              "a.yaml:2:22: 'block_size' is 24, expected a power of two (16 or 32)");
    EXPECT_EQ(fault_of("model: {path: model, quantization: int4, quantization_group_size: 64}\n"),
              "a.yaml:1:67: 'quantization_group_size' is 64, expected 32 or 128");
    EXPECT_EQ(fault_of("model: {path: model, quantization: int4, quantization_group_size: 0}\n"),
              "a.yaml:1:67: 'quantization_group_size' is 0, expected 32 or 128");
    EXPECT_EQ(fault_of("model: {path: model, quantization: int8, quantization_group_size: 64}\n"),
              "a.yaml:1:67: 'quantization_group_size' is 64, expected 32 or 128, or 0 for all of a row");
    EXPECT_EQ(fault_of("model: model\nengine: {block_size: 512}\n"),
              "a.yaml:2:22: 'block_size' is 512, expected 1 to 256 tokens");
    EXPECT_EQ(fault_of("model: model\nengine: {num_speculative_tokens: 2}\n"),
              "a.yaml:2:34: num_speculative_tokens is 2 without a proposer: set proposer: NAME, or 0");
    EXPECT_EQ(fault_of("model: model\nproposer: ngram\n"),
              "a.yaml:2:11: proposer 'ngram' needs engine.num_speculative_tokens: how many tokens it may draft a step");
    const std::string drafts = "model: model\nproposer: ngram\nengine: {num_speculative_tokens: 2}\nspeculative: ";
    EXPECT_EQ(fault_of(drafts + "{synthetic_acceptance_rates: [0.5, 0.2]}\n"),
              "a.yaml:4:43: synthetic_acceptance_rates are for rejection_sample_method: synthetic, which is not set");
    EXPECT_EQ(fault_of(drafts + "{rejection_sample_method: synthetic, synthetic_acceptance_rates: [0.5]}\n"),
              "a.yaml:4:79: synthetic_acceptance_rates has 1 rates, expected one for each of num_speculative_tokens "
              "(2)");
    for (const char* other : {"rejection_sample_method: rejection", "mode: adaptive"})
        EXPECT_EQ(fault_of(drafts + "{max_paths: 2, " + other + "}\n").find("a.yaml:4:26: max_paths is 2 beside " +
                                                                            std::string(other)),
                  0u)
            << other;
    EXPECT_EQ(fault_of(drafts + "{max_paths: 17}\n"), "a.yaml:4:26: 'max_paths' is 17, expected 1 to 16 paths");
    EXPECT_EQ(fault_of(drafts + "{rejection_sample_method: synthetic, synthetic_acceptance_rates: [0.5, 0.6]}\n"),
              "a.yaml:4:79: synthetic_acceptance_rates grow, but a draft is accepted only if those before it are");
    EXPECT_EQ(fault_of("model: model\nengine: {enable_chunked_prefill: false, max_model_len: 1024}\n"),
              "a.yaml:2:34: without chunked prefill max_num_batched_tokens (512) must reach max_model_len (1024)");
}

TEST_F(Load, settings_that_can_hardly_be_meant_are_warnings) {
    EXPECT_EQ(load("model: model\nengine: {max_num_batched_tokens: 16}\n").warnings,
              std::vector<std::string>{"a.yaml:2:34: max_num_batched_tokens (16) is below max_num_seqs (64): a step "
                                       "never decodes all running sequences"});
    EXPECT_EQ(load("model: model\nengine: {num_blocks: 16, kv_cache_memory: 1MiB}\n").warnings,
              std::vector<std::string>{"a.yaml:2:43: kv_cache_memory has no effect beside num_blocks"});
    EXPECT_EQ(load("model: model\nproposer: ngram\nengine: {num_speculative_tokens: 2}\n"
                   "speculative: {mode: adaptive, rejection_sample_method: standard}\n")
                  .warnings,
              std::vector<std::string>{"a.yaml:4:21: mode: adaptive beside rejection_sample_method: rejection: texts "
                                       "follow from how many drafts there were, and so from times; a seed does not "
                                       "repeat them"});
    EXPECT_EQ(load("model: {path: model, quantization_group_size: 128}\n").warnings,
              std::vector<std::string>{"a.yaml:1:47: quantization_group_size has no effect without quantization: int8 "
                                       "or int4"});
}

TEST_F(Load, settings_without_effect_are_warnings) {
    const auto warnings = [&](const std::string& keys, const std::string& more = "") {
        return load("model: model\nengine: {" + keys + "}\n" + more).warnings;
    };
    using Lines = std::vector<std::string>;
    EXPECT_EQ(warnings("swap_space: 8, num_swap_blocks: 9"),
              (Lines{"a.yaml:2:22: swap_space has no effect with preemption_mode: recompute",
                     "a.yaml:2:42: num_swap_blocks has no effect with preemption_mode: recompute"}));
    EXPECT_EQ(warnings("preemption_mode: auto, swap_space: 8, num_swap_blocks: 9"), Lines{});
    EXPECT_EQ(warnings("long_prefill_token_threshold: 64, enable_chunked_prefill: false, max_model_len: 100"),
              Lines{"a.yaml:2:40: long_prefill_token_threshold has no effect without enable_chunked_prefill"});
    EXPECT_EQ(warnings("cudagraph_capture_sizes: [1], cudagraph_capture: lazy, cudagraph_memory: 1GiB"),
              (Lines{"a.yaml:2:35: cudagraph_capture_sizes has no effect with cudagraph_mode: NONE",
                     "a.yaml:2:59: cudagraph_capture has no effect with cudagraph_mode: NONE",
                     "a.yaml:2:83: cudagraph_memory has no effect with cudagraph_mode: NONE"}));
    EXPECT_EQ(warnings("cudagraph_mode: FULL_DECODE_ONLY, num_speculative_tokens: 3", "proposer: ngram\n"),
              Lines{"a.yaml:2:26: cudagraph_mode: FULL_DECODE_ONLY replays no step that verifies drafts; FULL does"});
    EXPECT_EQ(warnings("kv_cache_memory: 1GiB, gpu_memory_utilization: 0.5"),
              Lines{"a.yaml:2:27: kv_cache_memory has no effect beside gpu_memory_utilization"});
    EXPECT_EQ(warnings("seed: 1", "speculative: {mode: adaptive}\n"),
              Lines{"a.yaml:3:21: mode has no effect without a proposer"});
    EXPECT_EQ(warnings("seed: 1", "speculative: {max_paths: 2}\n"),
              Lines{"a.yaml:3:26: max_paths has no effect without a proposer"});
    EXPECT_EQ(warnings("kv_cache_memory: 256MiB, gpu_memory_utilization: 0.5, swap_space: 4"), Lines{})
        << "as `config show` gives defaults";
    EXPECT_EQ(fault_of("model: model\nengine: {preemption_mode: swap, swap_space: 0}\n"),
              "a.yaml:2:27: preemption_mode: swap needs host memory: set swap_space or num_swap_blocks above 0");
    EXPECT_EQ(warnings("preemption_mode: swap, swap_space: 0, num_swap_blocks: 1"), Lines{});
}

TEST_F(Load, flags_override_the_file_and_are_named_as_origin) {
    const Loaded l =
        load("model: model\nscheduler: {plugin: sjf, ageing: 7}\nengine: {max_num_seqs: 8}\n",
             {{"engine.max_num_seqs", "9", "--max-num-seqs"}, {"scheduler.plugin", "fcfs", "--scheduler"}});
    EXPECT_EQ(l.config.engine.max_num_seqs, 9u);
    EXPECT_EQ(l.effective.at("engine.max_num_seqs")->origin.text(), "command line --max-num-seqs");
    EXPECT_EQ(l.config.scheduler, (PluginChoice{"fcfs", {}}));
    EXPECT_EQ(fault_of("model: model\n", {{"engine.max_num_seqs", "x", "--max-num-seqs"}}),
              "--max-num-seqs: 'max_num_seqs' is 'x', expected a whole number");
    const auto no_file = load_engine_config("", registry(), {{"model.path", "model", "--model"}});
    ASSERT_TRUE(no_file) << no_file.error();
    EXPECT_EQ(no_file->effective.at("model.path")->origin.text(), "command line --model");
    const Loaded braces = load("model: model\n", {{"scheduler", "{plugin: sjf, ageing: 3}", "--set"}});
    EXPECT_EQ(braces.config.scheduler.settings.at("ageing"), "3");
}

TEST_F(Load, a_variant_is_a_patch_of_dotted_paths_over_a_base) {
    const auto base = load_document(write(
        "base.yaml", "model: model\nscheduler: sjf\nengine: {seed: 1, max_num_seqs: 4}\nworkload: {requests: 3}\n"));
    const auto patch = expand_dotted(*parse_yaml("scheduler.ageing: 9\nengine.max_num_seqs: 8\n", "variant"));
    const auto l = load_engine_config(merge(engine_part(base->root), *patch), registry());
    ASSERT_TRUE(l) << l.error();
    EXPECT_EQ(l->config.scheduler.plugin, "sjf");
    EXPECT_EQ(l->config.scheduler.settings.at("ageing"), "9");
    EXPECT_EQ(l->config.engine.max_num_seqs, 8u);
    EXPECT_EQ(l->effective.at("engine.max_num_seqs")->origin.text(), "variant:2:22");
    EXPECT_EQ(l->effective.at("engine.seed")->origin.text(), "base.yaml:3:16");
}

TEST_F(Load, a_kv_policy_is_a_slot_that_may_be_empty) {
    EXPECT_EQ(load("model: model\nkv_policy: none\n").config.kv_policy, std::nullopt);
    const Loaded l = load("model: model\nkv_policy: {plugin: prefix_tree, keep_s: 5}\n");
    EXPECT_EQ(l.config.kv_policy, (PluginChoice{"prefix_tree", {{"keep_s", "5"}}}));
    EXPECT_TRUE(l.warnings.empty());
    EXPECT_EQ(fault_of("model: model\nkv_policy: prefix_trie\n"),
              "a.yaml:2:12: no kv_policy 'prefix_trie' (did you mean 'prefix_tree'?)");
    EXPECT_EQ(load("model: model\nkv_policy: prefix_tree\nengine: {enable_prefix_caching: false}\n").warnings,
              std::vector<std::string>{"a.yaml:2:12: kv_policy 'prefix_tree' has no effect without "
                                       "engine.enable_prefix_caching: no page is cached"});
    write("base.yaml", "model: model\nkv_policy: {plugin: prefix_tree, keep_s: 5}\n");
    EXPECT_EQ(load("include: base.yaml\nkv_policy: none\n").config.kv_policy, std::nullopt);
    EXPECT_EQ(load("include: base.yaml\nkv_policy: {keep_s: 7}\n").config.kv_policy->settings.at("keep_s"), "7");
}

TEST_F(Load, speculation_can_be_switched_off_over_a_base) {
    write("base.yaml", "model: model\nproposer: {plugin: ngram, n: 2}\nengine: {num_speculative_tokens: 3}\n");
    const Loaded l = load("include: base.yaml\nproposer: none\nengine: {num_speculative_tokens: 0}\n");
    EXPECT_EQ(l.config.proposer, std::nullopt);
}

TEST_F(Load, the_files_in_the_tree_are_right) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(kSourceDir) + "/configs/models")) {
        const auto l = load_engine_config(entry.path(), registry());
        ASSERT_TRUE(l) << l.error();
        EXPECT_TRUE(l->config.model.shape.contains("architectures.0")) << entry.path();
    }
    const auto demo = load_engine_config(std::string(kSourceDir) + "/configs/engine/demo.yaml", registry());
    EXPECT_TRUE(demo) << demo.error();
}

}  // namespace
}  // namespace patchbay::config::load_test
