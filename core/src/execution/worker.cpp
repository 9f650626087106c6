#include "execution/worker.hpp"

#include <filesystem>

#include "base/plugin_call.hpp"
#include "base/thread_pool.hpp"
#include "config/load.hpp"
#include "execution/load_model.hpp"
#include "execution/rank_swaps.hpp"
#include "host/registry.hpp"
#include "parallel/bytes.hpp"
#include "parallel/group.hpp"
#include "parallel/launch.hpp"
#include "parallel/session.hpp"
#include "parallel/store_limits.hpp"

namespace patchbay::execution {
namespace {

using parallel::Message;
using parallel::MessageType;

// The other side of parallel::Group.
class SpokeRanks final : public runner::Ranks {
  public:
    SpokeRanks(parallel::Spoke& spoke, uint32_t rank, uint32_t size, uint64_t connect_ms)
        : spoke_(spoke),
          wire_{sizeof(pb_group), rank, size, static_cast<uint32_t>(connect_ms), spoke.address().c_str(), this, set,
                get} {}

    const pb_group& wire() const override { return wire_; }
    void watch(std::function<void()> disconnect) override { spoke_.watch(std::move(disconnect)); }
    Result<uint32_t> agree_blocks(uint32_t here) override {
        parallel::ByteWriter out;
        out.put(here);
        PB_CHECK(spoke_.post(MessageType::kReply, out.bytes()));
        PB_TRY(const std::string agreed, go());
        parallel::ByteReader in(agreed);
        const auto blocks = in.get<uint32_t>();
        PB_CHECK(in.done("the number of KV blocks"));
        return blocks;
    }
    Result<> check() const override { return spoke_.check(); }
    // Waits for rank 0's word to go on.
    Result<std::string> go() {
        PB_TRY(Message m, spoke_.next());
        if (m.type == MessageType::kGo) return std::move(m.bytes);
        ended_ = m.type == MessageType::kEnd || m.type == MessageType::kQuit;
        return fail("rank 0 does not go on");
    }
    bool ended() const { return ended_; } // by its word
    // Reads rank 0's word to connect anew, which a step is given up for.
    Result<> begin_connection(std::string_view message) {
        parallel::ByteReader in(message);
        connection_ = in.get<uint64_t>();
        return in.done("the number of a connection");
    }

  private:
    static pb_status set(void* ctx, const char* key, const void* value, uint64_t bytes) {
        const SpokeRanks& self = *static_cast<SpokeRanks*>(ctx);
        if (!parallel::may_be_stored(key, bytes)) return PB_INVALID;
        const auto done = self.spoke_.set(parallel::device_key(self.connection_, key),
                                          {static_cast<const char*>(value), static_cast<size_t>(bytes)});
        return done ? PB_OK : PB_FAILED;
    }
    static pb_status get(void* ctx, const char* key, void* out, uint64_t* bytes) {
        const SpokeRanks& self = *static_cast<SpokeRanks*>(ctx);
        if (!parallel::is_device_key(key)) return PB_INVALID;
        const auto value = self.spoke_.get(parallel::device_key(self.connection_, key));
        if (!value) return PB_FAILED;
        if (value->size() > *bytes) return PB_INVALID;
        value->copy(static_cast<char*>(out), value->size());
        *bytes = value->size();
        return PB_OK;
    }

    parallel::Spoke& spoke_;
    pb_group wire_;
    uint64_t connection_ = 0; // of the devices
    bool ended_ = false;
};

// The work for one engine.
class Session {
  public:
    Session(parallel::Spoke& spoke, uint32_t rank, uint32_t size) : spoke_(spoke), rank_(rank), size_(size) {}

    // Until rank 0 ends it, of which ended() speaks, or a fault.
    Result<> run(std::string_view begin) {
        PB_TRY(const parallel::Begin b, parallel::read_begin(begin));
        PB_TRY(const auto document, config::parse_yaml(b.configuration, "rank 0's configuration"));
        const std::vector<std::filesystem::path> dirs(b.plugin_dirs.begin(), b.plugin_dirs.end());
        PB_TRY(auto registry, host::Registry::open(dirs));
        PB_TRY(const auto loaded, config::load_engine_config(document, registry));
        const config::EngineConfig& c = loaded.config;
        if (c.allowed_plugins) registry = registry.restricted_to(*c.allowed_plugins);

        RealClock clock;
        ThreadPool pool(choose_threads(c.engine, parallel::ranks_on_these_cores(size_)));
        const pb_clock clock_of_plugins = clock_service(clock);
        const host::Services services{&pool.service(), &clock_of_plugins, nullptr};
        SpokeRanks ranks(spoke_, rank_, size_, b.connect_ms);
        const auto done = [&]() -> Result<> {
            PB_TRY(ModelParts parts, choose_parts(c, registry, services));
            PB_CHECK(spoke_.post(MessageType::kReply, parallel::bytes_of(parts.facts())));
            PB_TRY(const std::string ignored, ranks.go());
            parts.model.source.read_with(pool);
            PB_TRY(const auto runner, load_runner(c, parts, &ranks, clock));
            PB_CHECK(spoke_.post(MessageType::kReply, ""));
            RankSwaps swaps({spoke_, rank_, c, registry, services, *runner});
            return steps(ranks, *runner, swaps, c.engine);
        }();
        ended_ = ended_ || ranks.ended();
        return done;
    }
    bool ended() const { return ended_; }

  private:
    Result<> steps(SpokeRanks& ranks, runner::ModelRunner& runner, RankSwaps& swaps,
                   const config::EngineSettings& settings) {
        const pb_model_facts& facts = runner.model().facts();
        const parallel::StepLimits limits{facts.vocab_size, facts.max_position, runner.kv().pages().count(),
                                          runner.kv().batch_form(), runner.kv().host_pages().slots(),
                                          settings.zero_freed_blocks};
        parallel::StepRows rows;
        runner::Batch batch;
        bool failed = false; // in the latest step; rank 0 may not know it yet
        for (;;) {
            PB_TRY(const Message m, spoke_.next());
            ended_ = m.type == MessageType::kEnd || m.type == MessageType::kQuit;
            if (ended_) return {};
            const std::lock_guard held(swaps.device());
            if (m.type == MessageType::kSwap) {
                PB_CHECK(swaps.perform(m.bytes));
                continue;
            }
            if (m.type == MessageType::kReconnect) {
                PB_CHECK(ranks.begin_connection(m.bytes));
                PB_CHECK(runner.reconnect());
                PB_CHECK(spoke_.post(MessageType::kReply, ""));
                failed = false;
                continue;
            }
            if (m.type != MessageType::kStep) return fail("rank 0 sent something else than a step");
            if (failed) continue; // what it would exchange is of no use
            parallel::ByteReader in(m.bytes);
            const auto number = in.get<uint64_t>();
            current_call().step = number;
            const std::string step = in.text();
            PB_CHECK(in.done("a step"));
            PB_CHECK(parallel::read_step(step, rows));
            PB_CHECK(parallel::check_step(rows.rows(), rows.copies(), limits));
            batch.clear(runner.kv().batch_form());
            for (const kv::PageCopy& page : rows.copies()) batch.copy(page);
            for (const runner::BatchRow& row : rows.rows()) batch.add(row);
            batch.finish();
            const auto logits = runner.passes().forward(batch); // which rank 0 has too
            parallel::ByteWriter out;
            out.put(number);
            if (!logits) out.put(logits.failure());
            failed = !logits;
            PB_CHECK(spoke_.post(failed ? MessageType::kStepFailed : MessageType::kStepDone, out.bytes()));
        }
    }

    parallel::Spoke& spoke_;
    const uint32_t rank_, size_;
    bool ended_ = false;
};

}  // namespace

Result<> serve_rank(parallel::Spoke& spoke, uint32_t rank, uint32_t size) {
    for (;;) {
        PB_TRY(Message m, spoke.next());
        if (m.type == MessageType::kQuit) return {};
        if (m.type != MessageType::kBegin) continue;
        Session session(spoke, rank, size);
        const auto done = session.run(m.bytes);
        if (!session.ended()) {
            if (!done) {
                parallel::ByteWriter why;
                why.put(done.failure());
                PB_CHECK(spoke.post(MessageType::kFailed, why.bytes()));
            }
            while (m.type != MessageType::kEnd) {
                PB_TRY(m, spoke.next());
                if (m.type == MessageType::kQuit) return {};
            }
        }
        PB_CHECK(spoke.post(MessageType::kEnded, ""));
    }
}

}  // namespace patchbay::execution
