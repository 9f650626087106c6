// A sampler on the devices of replays.cpp: mask, bias, penalties and temperature as `standard` has them, without
// truncation. What it needs of the rows goes through the device's memory.
#pragma once
#include <unordered_map>

#include "own_memory.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace replays {

class Sampler {
  public:
    static constexpr const char* kDevice = "replays";
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("fails_at", "-1", -1, 1'000'000, "", "the position whose plan fails; -1: none"),
        patchbay::param::boolean("fails_once", "false", "and never again"),
        patchbay::param::integer("wrong_at", "-1", -1, 1'000'000, "", "the position of a wrong token; -1: none"),
        patchbay::param::integer("wrong_token", "0", -1'000'000, 1'000'000, "", "what it is"),
    };
    explicit Sampler(const patchbay::Context& context)
        : fails_at_(context.get<int64_t>("fails_at")), fails_once_(context.get<bool>("fails_once")),
          wrong_at_(context.get<int64_t>("wrong_at")),
          wrong_token_(context.get<int>("wrong_token")) {}

    void accepts(const pb_sampling_params& p) const {
        if (p.mirostat_tau > 0) throw patchbay::Error(PB_UNSUPPORTED, "it has no mirostat");
    }

    pb_sample_plan plan(patchbay::SampleBatch& batch) {
        inputs_.clear();
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const pb_sample_row& row = batch.row(i);
            if (static_cast<int64_t>(row.position) == fails_at_) {
                if (fails_once_) fails_at_ = -1;
                throw Error(PB_FAILED, "fails on purpose");
            }
            const auto words = row.allowed ? static_cast<uint32_t>((batch.vocab() + 31) / 32) : 0;
            put(Head{row, *row.params, words});
            put(row.params->logit_bias, row.params->logit_bias_count);
            put(row.prompt, row.prompt_count);
            put(row.output, row.output_count);
            put(row.allowed, words);
        }
        return {sizeof(pb_sample_plan), 0, inputs_.data(), inputs_.size(), 0};
    }

    void enqueue(const pb_sample_work& work) {
        replays::enqueue(static_cast<Queue*>(work.queue),
                         [work, at = wrong_at_, token = wrong_token_] { run(work, at, token); });
    }

  private:
    struct Head {
        pb_sample_row row;
        pb_sampling_params params;
        uint32_t mask_words;
    };

    template <class T>
    void put(const T* values, size_t count) {
        const size_t at = inputs_.size(), bytes = count * sizeof(T);
        inputs_.resize(at + (bytes + 7) / 8 * 8);
        if (bytes > 0) std::memcpy(inputs_.data() + at, values, bytes);
    }
    void put(const Head& head) { put(&head, 1); }

    // What plan() wrote, as it lies on the device.
    class Reader {
      public:
        explicit Reader(const void* at) : at_(static_cast<const std::byte*>(at)) {}
        template <class T>
        const T* take(size_t count) {
            const auto* const values = reinterpret_cast<const T*>(at_);
            at_ += (count * sizeof(T) + 7) / 8 * 8;
            return values;
        }

      private:
        const std::byte* at_;
    };

    static void run(const pb_sample_work& work, int64_t wrong_at, int32_t wrong_token) {
        Reader reader(memory().here(work.inputs));
        std::vector<Head> heads(work.row_count);
        std::vector<pb_sample_row> rows;
        for (Head& h : heads) {
            h = *reader.take<Head>(1);
            h.params.logit_bias = reader.take<pb_logit_bias>(h.params.logit_bias_count);
            h.row.params = &h.params;
            h.row.prompt = reader.take<int32_t>(h.row.prompt_count);
            h.row.output = reader.take<int32_t>(h.row.output_count);
            h.row.allowed = h.mask_words ? reader.take<uint32_t>(h.mask_words) : nullptr;
            rows.push_back(h.row);
        }
        pb_sample_batch raw{};
        raw.row_count = work.row_count;
        raw.row_stride = sizeof(pb_sample_row);
        raw.max_logprobs = work.max_logprobs;
        raw.logits = here(work.logits);
        raw.rows = rows.data();
        raw.tokens = memory().here(work.tokens);
        raw.logprobs = memory().here(work.logprobs);
        raw.top_tokens = memory().here(work.top_tokens);
        raw.top_logprobs = memory().here(work.top_logprobs);
        std::fill_n(raw.top_tokens, size_t{work.row_count} * work.max_logprobs, -1);
        patchbay::SampleBatch batch(raw);
        for (uint32_t i = 0; i < work.row_count; ++i) {
            const int32_t token = choose(batch.row(i), batch.logits(i));
            memory().here(work.faults)[i] = token < 0;
            raw.tokens[i] = token < 0 ? patchbay::first_allowed(batch.row(i), batch.logits(i).size()) : token;
            patchbay::write_logprobs(batch, i, raw.tokens[i]);
            if (static_cast<int64_t>(heads[i].row.position) == wrong_at) raw.tokens[i] = wrong_token;
        }
    }

    static int32_t choose(const pb_sample_row& row, std::span<const float> raw) {
        const pb_sampling_params& p = *row.params;
        std::vector<float> logits(raw.begin(), raw.end());
        for (uint32_t i = 0; i < p.logit_bias_count; ++i)
            logits[static_cast<size_t>(p.logit_bias[i].token)] += p.logit_bias[i].bias;
        std::unordered_map<int32_t, uint32_t> counts;
        for (uint32_t i = 0; i < row.prompt_count; ++i) counts.emplace(row.prompt[i], 0);
        for (uint32_t i = 0; i < row.output_count; ++i) counts[row.output[i]] += 1;
        for (const auto& [token, count] : counts) {
            float& x = logits[static_cast<size_t>(token)];
            x = x > 0 ? x / p.repetition_penalty : x * p.repetition_penalty;
            if (count > 0) x -= p.presence_penalty + p.frequency_penalty * static_cast<float>(count);
        }
        const int32_t highest = patchbay::likeliest(logits, row);
        if (highest < 0 || p.temperature == 0) return highest;
        const float max_logit = logits[static_cast<size_t>(highest)];
        int32_t token = -1;
        double best = -INFINITY;
        for (size_t t = 0; t < logits.size(); ++t) {
            if (!(logits[t] > -INFINITY) || !patchbay::allowed(row, t)) continue;
            const float distance = logits[t] == max_logit ? 0 : (logits[t] - max_logit) / p.temperature;
            const double x = distance + patchbay::gumbel(row.seed, row.position, static_cast<uint32_t>(t));
            if (x > best) best = x, token = static_cast<int32_t>(t);
        }
        return token;
    }

    int64_t fails_at_;
    bool fails_once_;
    int64_t wrong_at_;
    int32_t wrong_token_;
    std::vector<std::byte> inputs_;
};

}  // namespace replays
