// The unknown digit of an equation modulo 5.

#include <utility>

#include "tasks/answered.h"
#include "tasks/arithmetic.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

constexpr int32_t kUnknown = 9, kEquals = 10;

/// The index of the first digit at or after `place`, cyclically.
size_t digit_from(const Symbols& source, size_t place) {
  while (source[place] >= arithmetic::kModulus) place = (place + 1) % source.size();
  return place;
}

}  // namespace

TaskInfo solve_equation_task() {
  TaskInfo t = answered_task(11, arithmetic::kModulus);
  t.name = "solve_equation";
  t.description = "x modulo 5 from an equation of + and - in brackets";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.symbol = [](int32_t id) { return arithmetic::character("01234+-()x=_", id); };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    constexpr arithmetic::Signs kSigns = {5, 6, -1, 7, 8};
    Symbols source;
    int32_t x = 0;
    if (length < 3) {
      source.assign(static_cast<size_t>(length), 0);
    } else {
      const int32_t value = arithmetic::draw_expression(length - 2, kSigns, draws, &source);
      const auto from = static_cast<size_t>(draws->below(length - 2));
      x = std::exchange(source[digit_from(source, from)], kUnknown);
      source.push_back(kEquals);
      source.push_back(value);
    }
    write_answered(context, source, {x}, out);
  };
  return t;
}

}  // namespace bamtrain
