// Panels of codes of 8 or 4 bits: how large they are, and how rows get in and out. The arithmetic is in
// docs/cpu-device.md. For the files of this folder.
#pragma once
#include "cpu/quantised_table.hpp"
#include "kernels/packed_matrix.hpp"

namespace patchbay::kernels {

struct QuantisedLayout { // in panels of kQuantisedColumns
    int64_t rows, cols, group, groups;
    uint32_t bits;
    bool has_offsets;
    int64_t code_bytes, group_bytes; // of a group of a panel: its codes; with scales and offsets

    int64_t panels() const { return (rows + kQuantisedColumns - 1) / kQuantisedColumns; }
    int64_t padded_rows() const { return panels() * kQuantisedColumns; }
    int64_t panel_bytes() const { return groups * group_bytes; }
    uint64_t bytes() const { return uint64_t(panels() * panel_bytes()); }
};
QuantisedLayout quantised_layout(const QuantisedSource&);

struct QuantisedUnits { // powers of two: the value of 1 in a panel's scales, and in its offsets
    float scale = 1, offset = 1;
};
QuantisedUnits quantised_units(const QuantisedSource&); // such that they use the whole range of f16

// `to`: panel p, all of which is written.
void pack_quantised_panel(const QuantisedLayout&, QuantisedUnits, int64_t p, const QuantisedSource&, uint8_t* to);
// out (cols), in the order of the codes, or where `order` says.
void read_quantised_row(const QuantisedLayout&, QuantisedUnits, const uint8_t* panel, int64_t column,
                        const int32_t* order, float* out);

}  // namespace patchbay::kernels
