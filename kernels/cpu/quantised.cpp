// linear() of quantised weights: which kernel computes it, and how its work is dealt out.
#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu/dealing.hpp"
#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kTileRows = 5; // from so many rows on tiles are the faster ones
constexpr int64_t kFewVnniRows = 4, kFewAvx2Rows = 1; // up to so many a weight is better not unpacked

int64_t whole_lines(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

#if defined(__x86_64__)
// Asked once: where a hypervisor answers, it takes as long as a small product.
bool has_byte_tiles() {
    static const bool has = [] {
        constexpr unsigned int kInt8 = 1u << 25; // of leaf 7, edx
        unsigned int a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kInt8) && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vnni");
    }();
    return has;
}
#endif

}  // namespace

const QuantisedTable& quantised_table(Isa isa, int64_t rows, uint32_t bits, int64_t group) {
#if defined(__x86_64__)
    const bool whole = group > kMaxGroup;
    if (isa == Isa::Amx && rows >= kTileRows && has_byte_tiles())
        return whole                           ? kAmxWholeQuantised
               : rows <= kAmxFewQuantised.side ? kAmxFewQuantised
                                               : kAmxQuantised;
    if (isa >= Isa::Avx512 && __builtin_cpu_supports("avx512vnni"))
        return rows <= kFewVnniRows                       ? kVnniQuantised
               : whole                                    ? kVnniWholeQuantised
               : bits == kTallBits && group >= kTallGroup ? kVnniTallQuantised
                                                          : kVnniManyQuantised;
    if (isa >= Isa::Avx2)
        return rows <= kFewAvx2Rows ? kAvx2Quantised : whole ? kAvx2WholeQuantised : kAvx2ManyQuantised;
#endif
    (void)isa, (void)rows, (void)bits, (void)group;
    return kPlainQuantised;
}

// x becomes codes once; then each task works through panels of its own with all rows.
void linear_quantised(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const QuantisedMatrix& w) {
    const QuantisedLayout& l = w.layout();
    const int64_t rows = x.shape[0], panels = l.panels();
    const QuantisedTable& table = quantised_table(machine.isa, rows, l.bits, l.group);
    QuantisedRows to{};
    to.rows = rows;
    to.side = table.filled ? table.side : ceil_div(rows, ceil_div(rows, table.side)); // blocks about as high
    to.groups = l.groups;
    to.group = l.group;
    to.steps = ceil_div(to.groups * to.group, kQuantisedStep);
    const int64_t blocks = ceil_div(rows, to.side), values = blocks * to.groups * to.side;

    const int64_t weights = l.rows * l.cols;
    const int64_t tasks = std::min(panels, rows > 4 * table.side
                                               ? wanted_tasks(machine.workers, kManyRows, rows * weights)
                                               : wanted_tasks(machine.workers, kFewRows, weights));
    const int64_t task_bytes = table.scratch_bytes ? whole_lines(table.scratch_bytes(to, l.bits)) : 0;
    const int64_t value_bytes = whole_lines(values * int64_t(sizeof(float)));
    Scratch own;
    Scratch& scratch = machine.scratch ? *machine.scratch : own;
    auto* memory = static_cast<uint8_t*>(scratch.at_least(
        uint64_t(tasks * task_bytes + blocks * to.steps * to.side * kQuantisedStep + 3 * value_bytes)));
    uint8_t* const task_scratch = memory;
    memory += tasks * task_bytes;
    to.code_sums = reinterpret_cast<int32_t*>(memory);
    to.scales = reinterpret_cast<float*>(memory + value_bytes);
    to.sums = reinterpret_cast<float*>(memory + 2 * value_bytes);
    to.codes = reinterpret_cast<int8_t*>(memory + 3 * value_bytes);

    const auto* const from = static_cast<const float*>(x.data);
    split_rows(machine.workers, blocks, to.side * l.cols, [&](int64_t begin, int64_t end) {
        table.quantise({.x = from,
                        .x_stride = x.strides[0],
                        .first = begin * to.side,
                        .end = std::min(end * to.side, rows),
                        .cols = l.cols,
                        .order = w.order(),
                        .scale_unit = w.units().scale,
                        .offset_unit = w.units().offset,
                        .to = to});
    });
    run_tasks(machine.workers, tasks, [&](int64_t i) {
        const int64_t first = panels * i / tasks, column = first * kQuantisedColumns;
        table.linear({.x = to,
                      .panels = w.panel(first),
                      .panel_count = panels * (i + 1) / tasks - first,
                      .panel_bytes = l.panel_bytes(),
                      .bits = l.bits,
                      .has_offsets = l.has_offsets,
                      .bias = w.bias() ? w.bias() + column : nullptr,
                      .out = static_cast<float*>(out.data) + column,
                      .out_stride = out.strides[0],
                      .width = l.rows - column,
                      .scratch = task_scratch + i * task_bytes});
    });
}

}  // namespace patchbay::kernels
