#include "communicator.hpp"

#include "patchbay/plugin.hpp"

#ifndef PATCHBAY_GLOO // one rank only
namespace patchbay {

struct Communicator::Links {};

Communicator::Communicator(const pb_group& group) : rank_(group.rank), size_(group.size) {
    throw Error(PB_UNSUPPORTED, "this plugin was built without Gloo, so it cannot be one of " +
                                    std::to_string(group.size) + " ranks (install libgloo-dev and build again)");
}
Communicator::~Communicator() = default;
void Communicator::connect(const pb_group&) {}
void Communicator::all_reduce(float*, int64_t) {}
void Communicator::all_gather(float*, const float*, int64_t, int64_t) {}
void Communicator::abort() noexcept {}

}  // namespace patchbay
#else
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace patchbay {
namespace {

using Buffer = gloo::transport::UnboundBuffer;

constexpr uint64_t kMaxAddress = 1 << 16;
// The host watches the ranks and calls abort(), so a wait needs no time limit. (Gloo adds this to a clock's time.)
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

constexpr const char* kGivenUp = "given up, since another rank is gone";

// Keys and values that the ranks share.
class Store {
  public:
    explicit Store(const pb_group& group) : group_(group) {}

    void set(const std::string& key, const std::vector<char>& data) const {
        check(group_.set(group_.ctx, name(key).c_str(), data.data(), data.size()), key);
    }
    std::vector<char> get(const std::string& key) const { // waits until it is set
        std::vector<char> out(kMaxAddress);
        uint64_t bytes = out.size();
        check(group_.get(group_.ctx, name(key).c_str(), out.data(), &bytes), key);
        out.resize(bytes);
        return out;
    }
    void wait_for_all(const std::string& stage) const {
        set(stage + std::to_string(group_.rank), {'1'});
        for (uint32_t r = 0; r < group_.size; ++r) get(stage + std::to_string(r));
    }

  private:
    static std::string name(const std::string& key) { return "gloo/" + key; }
    static void check(pb_status status, const std::string& key) {
        if (status != PB_OK) throw Error(PB_FAILED, "the ranks' store has no '" + key + "': another rank is gone");
    }
    const pb_group& group_;
};

// A connection to each other rank. Gloo's own rendezvous cannot be aborted: it waits for five times its time limit for
// a lost rank.
class Mesh : public gloo::Context {
  public:
    using gloo::Context::Context;

    void listen(std::shared_ptr<gloo::transport::Device> device) {
        device_ = std::move(device);
        transportContext_ = device_->createContext(rank, size);
        transportContext_->setTimeout(getTimeout());
        for (int r = 0; r < size; ++r)
            if (r != rank) transportContext_->createPair(r);
    }
    void connect(const Store& store, const std::atomic<bool>& aborted) {
        const auto key = [](int from, int to) { return "address/" + std::to_string(from) + "/" + std::to_string(to); };
        for (int r = 0; r < size; ++r)
            if (r != rank) store.set(key(rank, r), getPair(r)->address().bytes());
        for (int r = 0; r < size && !aborted; ++r)
            if (r != rank) getPair(r)->connect(store.get(key(r, rank)));
    }
    void close() { // [any] ends waits for a connection; of pairs that were not made: nothing
        for (int r = 0; transportContext_ && r < size; ++r)
            if (const auto& pair = getPair(r); r != rank && pair) pair->close();
    }
};

}  // namespace

struct Communicator::Links {
    std::shared_ptr<Mesh> context; // with all its pairs, once it is constructed
    std::mutex mutex; // guards what abort() uses: the buffers
    std::atomic<bool> connected{false}, aborted{false};
    std::vector<float> values; // (size, count): each rank's share of the exchange
    std::unique_ptr<Buffer> to, from;

    ~Links() { // before the buffers go, which Gloo's thread may be telling that a connection is lost
        if (context) context->close();
    }

    void grow(size_t count) {
        if (count <= values.size()) return;
        const std::lock_guard lock(mutex);
        to.reset();
        from.reset();
        values.resize(count);
        to = context->createUnboundBuffer(values.data(), values.size() * sizeof(float));
        from = context->createUnboundBuffer(values.data(), values.size() * sizeof(float));
    }

    // Row r of values becomes rank r's row, sent from this rank's; rows of `count` values.
    void exchange(size_t count) {
        const auto check = [&](bool done) {
            if (!done || aborted) throw Error(PB_FAILED, kGivenUp);
        };
        check(true);
        const auto bytes = count * sizeof(float), own = static_cast<size_t>(context->rank) * bytes;
        const int ranks = context->size;
        try {
            for (int step = 1; step < ranks; ++step) {
                const int peer = (context->rank + step) % ranks;
                from->recv(peer, 0, static_cast<size_t>(peer) * bytes, bytes);
                to->send(peer, 0, own, bytes);
            }
            for (int step = 1; step < ranks; ++step) {
                check(from->waitRecv(kForever));
                check(to->waitSend(kForever));
            }
        } catch (const gloo::Exception& error) { // its text names source files of Gloo
            if (aborted) throw Error(PB_FAILED, kGivenUp);
            throw Error(PB_FAILED, std::string("lost the connection to another rank: ") + error.what());
        }
    }
};

Communicator::Communicator(const pb_group& group)
    : rank_(group.rank), size_(group.size), links_(std::make_unique<Links>()) {
    try {
        gloo::transport::tcp::attr address;
        address.hostname = group.address;
        links_->context = std::make_shared<Mesh>(static_cast<int>(rank_), static_cast<int>(size_));
        links_->context->setTimeout(std::chrono::milliseconds(group.timeout_ms));
        links_->context->listen(gloo::transport::tcp::CreateDevice(address));
    } catch (const std::exception& error) {
        throw Error(PB_FAILED, std::string("cannot listen at ") + group.address + ": " + error.what());
    }
}

void Communicator::connect(const pb_group& group) {
    const Store store(group);
    store.wait_for_all("ready/"); // so that connecting takes no longer than the network does
    try {
        links_->context->connect(store, links_->aborted);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        if (links_->aborted) throw Error(PB_FAILED, kGivenUp);
        throw Error(PB_FAILED, std::string("cannot reach the other ranks from ") + group.address + ": " + error.what());
    }
    if (links_->aborted) throw Error(PB_FAILED, kGivenUp);
    links_->connected = true;
    links_->context->setTimeout(kForever);
    store.wait_for_all("connected/"); // a rank that fails next must not look like a failed connection
}

Communicator::~Communicator() = default;

void Communicator::all_reduce(float* x, int64_t count) {
    const auto n = static_cast<size_t>(count);
    links_->grow(n * size_);
    float* const values = links_->values.data();
    std::memcpy(values + rank_ * n, x, n * sizeof(float));
    links_->exchange(n);
    std::memcpy(x, values, n * sizeof(float));
    for (uint32_t r = 1; r < size_; ++r) {
        const float* const theirs = values + r * n;
        for (size_t i = 0; i < n; ++i) x[i] += theirs[i];
    }
}

void Communicator::all_gather(float* out, const float* x, int64_t rows, int64_t n) {
    const auto count = static_cast<size_t>(rows * n), width = static_cast<size_t>(n);
    links_->grow(count * size_);
    float* const values = links_->values.data();
    std::memcpy(values + rank_ * count, x, count * sizeof(float));
    links_->exchange(count);
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
        for (size_t r = 0; r < size_; ++r)
            std::memcpy(out + (row * size_ + r) * width, values + r * count + row * width, width * sizeof(float));
}

void Communicator::abort() noexcept {
    links_->aborted = true;
    if (!links_->connected) links_->context->close();
    const std::lock_guard lock(links_->mutex);
    for (Buffer* buffer : {links_->to.get(), links_->from.get()}) {
        if (!buffer) continue;
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
    }
}

}  // namespace patchbay
#endif
