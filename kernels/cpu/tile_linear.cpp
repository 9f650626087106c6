#include "cpu/tile_linear.hpp"

#include <atomic>

#include "cpu/dealing.hpp"

namespace patchbay::kernels {
namespace {

constexpr uint64_t kLine = 64;    // bytes
constexpr int64_t kMaxKept = 16; // blocks of rows

// One multiplication of rows that are rounded. Each task takes a block of rows, which stays in its cache, past a range
// of panels; the tasks of one range come one after the other, so that threads which work on them read the panels at
// about one time.
class TileLinear {
  public:
    TileLinear(const Machine& machine, const TileTable& tiles, int64_t rows, const PackedMatrix& w, TileGate gate = {})
        : machine_(machine), tiles_(tiles), w_(w), rows_(rows), gate_(gate) {
        const int64_t cols = w.cols();
        depth_ = ceil_div(cols, tiles.depth) * tiles.depth;
        panels_ = gate.kind != TileGateKind::kNone ? gate.up_panels : w.layout().panels();
        const int64_t fewest_blocks = ceil_div(rows, tiles.near_rows(depth_));
        block_ = ceil_div(ceil_div(rows, fewest_blocks), tiles.side) * tiles.side;
        row_blocks_ = ceil_div(rows, block_);
        const bool many = rows > 2 * tiles.side;
        kept_ = many && row_blocks_ <= std::min<int64_t>(machine.workers.threads, kMaxKept) &&
                depth_ <= tiles.near_depth;
        const int64_t weights = w.rows() * w.cols();
        const int64_t wanted = many ? wanted_tasks(machine.workers, kept_ ? kKeptRows : kManyRows, rows * weights)
                                    : wanted_tasks(machine.workers, kFewRows, weights);
        ranges_ = std::clamp<int64_t>(ceil_div(wanted, row_blocks_), 1, panels_);
        TilePart part{};
        part.rows = block_, part.depth = depth_, part.panel = panel_shape(w);
        part.panel_count = ceil_div(panels_, ranges_), part.gate = gate;
        task_bytes_ = uint64_t(tiles.sums_floats(part)) * sizeof(float);
        task_bytes_ = (task_bytes_ + kLine - 1) / kLine * kLine;
    }

    uint64_t sums_bytes() const { return task_bytes_ * uint64_t(kept_ ? workers() : tasks()); }
    uint64_t x_bytes() const { return uint64_t(rows_ * depth_) * sizeof(uint16_t); }

    void round(uint16_t* to, const pb_tensor& x) const {
        const int64_t cols = w_.cols();
        split_rows(machine_.workers, ceil_div(rows_, tiles_.side), tiles_.side * cols, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin * tiles_.side; r < std::min(end * tiles_.side, rows_); r += tiles_.side)
                tiles_.round_rows(to + r * depth_, row_of(x, r), x.strides[0],
                                  std::min<int64_t>(tiles_.side, rows_ - r), cols);
        });
    }

    // out: with a gate none.
    void run(const uint16_t* x, uint8_t* sums, const pb_tensor* out) const {
        const auto part_of = [&](int64_t i, int64_t place) {
            const int64_t range = i / row_blocks_, top = i % row_blocks_ * block_;
            const int64_t first = panels_ * range / ranges_, column = first * w_.layout().columns;
            TilePart part{.x = x + top * depth_,
                          .rows = std::min(block_, rows_ - top),
                          .depth = depth_,
                          .panels = w_.panel(first),
                          .panel = panel_shape(w_),
                          .panel_count = panels_ * (range + 1) / ranges_ - first,
                          .bias = w_.bias() ? w_.bias() + column : nullptr,
                          .out = out ? row_of(*out, top) + column : nullptr,
                          .out_stride = out ? out->strides[0] : 0,
                          .width = w_.rows() - column,
                          .next = after(i),
                          .sums = reinterpret_cast<float*>(sums + uint64_t(place) * task_bytes_),
                          .gate = gate_};
            part.gate.out += top * gate_.depth;
            part.gate.step = first;
            tiles_.linear(part);
        };
        if (kept_) run_kept(part_of);
        else run_tasks(machine_.workers, tasks(), [&](int64_t i) { part_of(i, i); });
    }

  private:
    // Each thread stays with its block of rows, whose ranges of panels it claims one after the other, and helps with
    // another when that is done.
    template <class Part>
    void run_kept(Part&& part_of) const {
        std::atomic<int64_t> next_range[kMaxKept] = {};
        run_tasks(machine_.workers, workers(), [&](int64_t worker) {
            for (int64_t b = 0; b < row_blocks_; ++b) {
                const int64_t block = (worker + b) % row_blocks_;
                for (int64_t r; (r = next_range[block].fetch_add(1, std::memory_order_relaxed)) < ranges_;)
                    part_of(r * row_blocks_ + block, worker);
            }
        });
    }

    int64_t workers() const { return std::min<int64_t>(machine_.workers.threads, tasks()); }
    int64_t tasks() const { return row_blocks_ * ranges_; }
    const uint8_t* first_panel(int64_t task) const { return w_.panel(panels_ * (task / row_blocks_) / ranges_); }

    // The panel of the task that the thread takes next while all are equally fast, where a task has little else to ask
    // for or begins in no cache: where rows are kept, and of few rows, which wait for the weights.
    const uint8_t* after(int64_t task) const {
        const int64_t next = task + machine_.workers.threads;
        if (next >= tasks()) return nullptr;
        return kept_ || (rows_ <= tiles_.side && panels_ <= 2 * ranges_) ? first_panel(next) : nullptr;
    }

    const Machine& machine_;
    const TileTable& tiles_;
    const PackedMatrix& w_;
    int64_t rows_, depth_, panels_ /* that are dealt out: of gates */, block_, row_blocks_, ranges_;
    bool kept_; // see run_kept()
    TileGate gate_;
    uint64_t task_bytes_;
};

}  // namespace

void linear_tiles(const Machine& machine, const TileTable& tiles, const pb_tensor& out, const pb_tensor& x,
                  const PackedMatrix& w) {
    const TileLinear linear(machine, tiles, x.shape[0], w);
    Scratch own;
    Scratch& scratch = machine.scratch ? *machine.scratch : own;
    auto* const sums = static_cast<uint8_t*>(scratch.at_least(linear.sums_bytes() + linear.x_bytes()));
    auto* const rounded = reinterpret_cast<uint16_t*>(sums + linear.sums_bytes());
    linear.round(rounded, x);
    linear.run(rounded, sums, &out);
}

void gated_mlp_tiles(const Machine& machine, const TileTable& tiles, const pb_tensor& out, const pb_tensor& x,
                     const PackedMatrix& gate_up, const PackedMatrix& down, TileGateKind kind) {
    const int64_t rows = x.shape[0];
    TileGate gate{kind, gate_up.layout().panels() / 2, nullptr, down.cols(), 0};
    const TileLinear second(machine, tiles, rows, down);
    const uint64_t first_sums = TileLinear(machine, tiles, rows, gate_up, gate).sums_bytes();
    const uint64_t sums_bytes = std::max(first_sums, second.sums_bytes());
    Scratch own;
    Scratch& scratch = machine.scratch ? *machine.scratch : own;
    const uint64_t between_bytes = (second.x_bytes() + kLine - 1) / kLine * kLine;
    const uint64_t x_bytes = TileLinear(machine, tiles, rows, gate_up).x_bytes();
    auto* const sums = static_cast<uint8_t*>(scratch.at_least(sums_bytes + between_bytes + x_bytes));
    gate.out = reinterpret_cast<uint16_t*>(sums + sums_bytes);
    auto* const rounded = reinterpret_cast<uint16_t*>(sums + sums_bytes + between_bytes);
    const TileLinear first(machine, tiles, rows, gate_up, gate);
    first.round(rounded, x);
    first.run(rounded, sums, nullptr);
    second.run(gate.out, sums, &out);
}

}  // namespace patchbay::kernels
