// The square root of a binary number, rounded down.

#include "tasks/answered.h"
#include "tasks/binary_number.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo compute_sqrt_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "compute_sqrt";
  t.description = "the square root, rounded down, of a number in binary, highest digit first";
  t.most_length = 4096;  // a root takes quadratic time
  t.most_inputs = [](int64_t length) { return length + (length + 1) / 2; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const binary::Number a = binary::draw_positive(length, draws), root = binary::square_root(a);
    write_answered(context, Symbols(a.rbegin(), a.rend()), Symbols(root.rbegin(), root.rend()),
                   out);
  };
  return t;
}

}  // namespace bamtrain
