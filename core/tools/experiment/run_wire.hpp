// What a run in a process of its own and its parent say to each other: one job down; up what happens, as frames of a
// length, a kind and a value. Both ends are the same program.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/trace/step_file_paths.hpp"
#include "experiment/archive.hpp"
#include "experiment/matrix.hpp"
#include "experiment/one_run.hpp"
#include "experiment/record.hpp"

namespace patchbay::experiment {

// Where they talk, and where the child leaves its last words if it is ended: a line that names component and call.
inline constexpr int kRunFd = 3, kLastWordsFd = 4;

struct Job {
    bool trial = false;           // only makes the engine, and says what it is
    bool quality = false;         // or: only scores a text
    std::string spec_yaml, name;  // of the experiment
    std::vector<std::string> plugin_dirs;
    uint64_t variant = 0;
    uint32_t repeat = 0, attempt = 0;
    std::optional<double> rate;
    bool simulated = false;       // known since the trial
    bool with_text = false;       // prompts may be texts
    std::vector<std::string> inputs; // SHA-256 of each file that the workload was read from
    uint32_t max_model_len = 0, vocab_size = 0; // of what all variants take
    bool wants_metrics = false;
    bool is_steady = false;       // what the rule for windows says
    std::vector<config::Origin> swaps; // where they stand in the file
    engine::StepFilePaths files;
    ControlChoice control{};
};

enum class Word : uint8_t { kJob, kEngine, kRequest, kOutput, kStep, kRows, kProgress,
                             kAdd, kSet, kDone,    kTried,  kScored, kFailed };

struct Frame {
    Word word;
    std::string_view body;
};

std::string framed(Word, std::string_view body);
template <class... T>
std::string frame_of(Word word, const T&... values) {
    Packer p;
    p(values...);
    return framed(word, p.take());
}
template <class... T>
bool unpack(std::string_view body, T&... values) {
    Unpacker u(body);
    u(values...);
    return u.done();
}

// Cuts what was read into frames.
class Frames {
  public:
    void add(std::string_view bytes);
    std::optional<Frame> next(); // its body lives until the next add()
    bool broken() const { return broken_; } // a length that cannot be

  private:
    std::string bytes_;
    size_t at_ = 0;
    bool broken_ = false;
};

// The child's end. [any thread]
class FrameWriter {
  public:
    explicit FrameWriter(int fd) : fd_(fd) {}
    template <class... T>
    void add(Word word, const T&... values) { // kept until flush()
        const std::string frame = frame_of(word, values...);
        const std::lock_guard lock(mutex_);
        bytes_ += frame;
    }
    void flush(); // ends the process if the parent is gone

  private:
    const int fd_;
    std::mutex mutex_;
    std::string bytes_;
};

bool write_all(int fd, std::string_view bytes); // of a socket; false: the other end is gone

void fields(auto& a, config::Origin& o) {
    std::string name = o.name ? *o.name : "";
    a(o.kind, name, o.line, o.column);
    o.name = std::make_shared<const std::string>(std::move(name));
}
void fields(auto& a, Job& j) {
    a(j.trial, j.quality, j.spec_yaml, j.name, j.plugin_dirs, j.variant, j.repeat, j.attempt, j.rate, j.simulated,
      j.with_text, j.inputs, j.max_model_len, j.vocab_size, j.wants_metrics, j.is_steady, j.swaps, j.files.trace,
      j.files.decisions, j.files.kv_events, j.control.address, j.control.token_file);
}
void fields(auto& a, host::Identity& i) {
    a(i.kind, i.name, i.version, i.sha256, i.build, i.path, i.component);
}
void fields(auto& a, host::SwapRecord& s) {
    a(s.kind, s.transaction, s.from, s.to, s.state, s.phase, s.reason, s.code, s.step, s.time_ns, s.pause_ns,
      s.end_step, s.after_calls);
}
void fields(auto& a, runner::CallTimes& t) {
    a(t.model_forward, t.attention_plan, t.attention_append, t.attention_run, t.device_begin, t.device_launch,
      t.device_end, t.sampler);
}
void fields(auto& a, engine::LogitsStatistics& s) {
    a(s.entropy, s.max_logit, s.first_share);
}
void fields(auto& a, engine::RequestOutput& o) { // without what only people read
    a(o.id, o.index, o.tokens, o.finish, o.time_ns, o.logits, o.cached_tokens, o.preemptions, o.first_scheduled_ns);
}
void fields(auto& a, engine::ModelFacts& f) { // without its work
    a(f.architecture, f.identity, f.weight_dtype, f.dtype, f.vocab_size, f.hidden_size, f.position_length,
      f.weight_bytes);
}
void fields(auto& a, engine::KvFacts& f) {
    a(f.num_blocks, f.block_size, f.groups, f.state_groups, f.windows, f.bytes, f.page_bytes, f.swap_pages, f.padding,
      f.prefix_caching, f.dtype, f.layout, f.watermark);
}
void fields(auto& a, engine::GraphFacts& f) {
    a(f.count, f.bytes, f.capture_ns);
}
void fields(auto& a, engine::DraftFacts& f) {
    a(f.model, f.weight_bytes);
}
void fields(auto& a, engine::EngineFacts& f) {
    a(f.model, f.kv, f.graphs, f.draft, f.max_model_len, f.threads, f.device_name, f.isa, f.load_ns, f.plugins,
      f.ranks, f.tensor_parallel_size, f.synthetic_acceptance, f.device_computes);
}
void fields(auto& a, LoadedParts& p) {
    a(p.facts, p.brought_in);
}
void fields(auto& a, engine::ScheduledWork& w) {
    a(w.scheduled_seqs, w.scheduled_tokens, w.prefill_tokens, w.decode_tokens, w.sampled_tokens, w.admitted,
      w.finished, w.trimmed, w.forked);
}
void fields(auto& a, engine::QueueReport& q) {
    a(q.running_requests, q.waiting_requests, q.waiting_tokens, q.oldest_wait_ns);
}
void fields(auto& a, engine::KvReport& k) {
    a(k.total_pages, k.used_pages, k.cached_pages, k.group_pages, k.token_slots, k.empty_slots,
      k.prefix_query_tokens, k.prefix_hit_tokens, k.evicted_pages, k.chosen_evictions, k.copied_pages,
      k.residencies_ns, k.watermark);
}
void fields(auto& a, engine::PreemptionReport& p) {
    a(p.preemptions, p.preempted_for_memory, p.preempted_tokens, p.swapped_out, p.swapped_in, p.pages_to_host,
      p.pages_to_device, p.swap_fallbacks, p.swap_pages, p.used_swap_pages, p.host_page_ns, p.token_ns);
}
void fields(auto& a, engine::DraftReport& d) {
    a(d.verified_sequences, d.drafted_tokens, d.accepted_tokens, d.drafted_at, d.accepted_at, d.branches,
      d.dropped_branches, d.branch_tokens, d.length, d.passes, d.pass_tokens, d.propose_ns, d.pass_ns);
}
void fields(auto& a, engine::GrammarReport& g) {
    a(g.masks, g.cut_drafts, g.mask_ns, g.compiled, g.cached, g.refused, g.compile_ns);
}
void fields(auto& a, engine::CallReport& c) {
    a(c.plan_ns, c.sample_ns, c.propose_ns, c.kv_update_ns, c.kv_choose_ns, c.forward, c.plan_faults,
      c.sampler_faults, c.proposer_faults, c.kv_policy_faults, c.plan_breaches, c.sampler_breaches,
      c.proposer_breaches, c.kv_policy_breaches);
}
void fields(auto& a, engine::GraphReport& g) {
    a(g.replayed, g.miss, g.size, g.padded_tokens, g.capture_ns, g.captured, g.bytes);
}
void fields(auto& a, engine::StepReport& r) {
    a(r.step, r.start_ns, r.end_ns, r.phase_ns, r.sync_reason, r.broadcast_bytes, r.broadcast_ns, r.work,
      r.queues, r.kv, r.preemption, r.drafts, r.grammars, r.calls, r.graph, r.swaps);
}
void fields(auto& a, RequestRecord& r) {
    a(r.arrival_ns, r.first_scheduled_ns, r.finish_ns, r.token_ns, r.output, r.others, r.prompt_tokens,
      r.cached_tokens, r.preemptions, r.deadline_ns, r.tenant, r.priority, r.label, r.finish, r.error);
}
void fields(auto& a, NumberedRequest& r) {
    a(r.number, r.request);
}
void fields(auto& a, Rows& r) {
    a(r.steps, r.requests);
}
void fields(auto& a, CpuUse& c) {
    a(c.steal, c.others, c.load_average, c.mhz);
}
void fields(auto& a, SwapOutcome& s) {
    a(s.record, s.task);
}
void fields(auto& a, NamedNumber& n) {
    a(n.name, n.value);
}
void fields(auto& a, RunRecord& r) {
    a(r.variant, r.repeat, r.position, r.attempt, r.rate, r.cpu_use, r.started, r.duration_ns, r.end, r.faults,
      r.requests, r.steps, r.swaps, r.numbers);
}

}  // namespace patchbay::experiment
