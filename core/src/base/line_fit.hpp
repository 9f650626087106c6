// A line through points by least squares, where later points may weigh more: means that each point moves.
#pragma once

namespace patchbay {

class LineFit {
  public:
    // share: of the new point in the means, of (0, 1]. The first point's is 1.
    void add(double x, double y, double share) {
        x_ += share * (x - x_);
        y_ += share * (y - y_);
        xx_ += share * (x * x - xx_);
        xy_ += share * (x * y - xy_);
    }
    double mean_x() const { return x_; }
    double mean_y() const { return y_; }
    double variance() const { return xx_ - x_ * x_; }             // of x
    double slope() const { return (xy_ - x_ * y_) / variance(); } // where there is a variance

  private:
    double x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace patchbay
