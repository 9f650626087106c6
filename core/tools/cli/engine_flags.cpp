#include "cli/engine_flags.hpp"

namespace patchbay::cli {

void add_engine_flags(const KeyFlags& key) {
    key("--model", "model.path", "Hugging Face folder of the model, or a GGUF file");
    key("--dtype", "model.dtype", "weights as float32 or bfloat16 (default: as in the checkpoint)");
    key("--quantization", "model.quantization", "weights as int8, int4 or none (default: as in the checkpoint)");
    key("--quantization-group-size", "model.quantization_group_size",
        "32 or 128 columns share a scale; of int8 also 0: all of a row");
    key("--load-format", "model.load_format", "auto, or dummy for random weights");
    key("--tokenizer", "model.tokenizer", "folder or file of a tokenizer, or none (default: the model's)");
    key("--scheduler", "scheduler.plugin", "scheduler plugin");
    key("--sampler", "sampler.plugin", "sampler plugin");
    key("--attention", "attention.plugin", "attention plugin");
    key("--device", "device.plugin", "device plugin");
    key("--proposer", "proposer.plugin", "proposer plugin, for speculative decoding");
    key("--draft-model", "proposer.model", "model of the proposer draft_model: a folder, a GGUF or a YAML file");
    key("--kv-policy", "kv_policy.plugin", "kv_policy plugin: which cached page is evicted next (default: none)");
    key("--num-speculative-tokens", "engine.num_speculative_tokens", "drafts per sequence and step");
    key("--max-num-seqs", "engine.max_num_seqs", "sequences in a step");
    key("--max-num-batched-tokens", "engine.max_num_batched_tokens", "tokens in a step");
    key("--max-model-len", "engine.max_model_len", "tokens of prompt and output");
    key("--tensor-parallel-size", "engine.tensor_parallel_size", "ranks that compute the model together (default: 1)");
    key("--block-size", "engine.block_size", "tokens in a KV block");
    key("--num-blocks", "engine.num_blocks", "KV blocks (default: from kv_cache_memory)");
    key("--kv-cache-memory", "engine.kv_cache_memory", "bytes for KV, such as 256MiB");
    key("--max-logprobs", "engine.max_logprobs", "--logprobs that may be asked for (default: 100; -1: all tokens)");
    key("--kv-cache-dtype", "engine.kv_cache_dtype", "float32, bfloat16, fp8 or int8 (default: as the weights)");
    key("--enable-prefix-caching", "engine.enable_prefix_caching", "true or false");
    key("--preemption-mode", "engine.preemption_mode", "recompute, swap or auto");
    key("--swap-space", "engine.swap_space", "GiB of host memory for KV that is swapped out");
    key("--pooling-type", "pooler_config.pooling_type", "of embeddings: LAST or MEAN (default: as the model says)");
    key("--engine-seed", "engine.seed", "seed of requests that have none");
    key("--threads", "engine.threads", "threads of the CPU device (default: all cores)");
}

}  // namespace patchbay::cli
