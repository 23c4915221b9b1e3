#include "tasks/binary_number.h"

#include <algorithm>

namespace bamtrain::binary {

namespace {

bool less(const Number& a, const Number& b) {  // REQUIRES: equal sizes
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

/// a -= b. REQUIRES: equal sizes, b <= a.
void subtract(Number* a, const Number& b) {
  int32_t borrow = 0;
  for (size_t i = 0; i < a->size(); ++i) {
    const int32_t digit = (*a)[i] - b[i] - borrow;
    borrow = digit < 0 ? 1 : 0;
    (*a)[i] = digit + 2 * borrow;
  }
}

}  // namespace

Number draw_positive(int64_t digits, Draws* draws) {
  while (true) {
    Number a = draws->symbols(digits, 0, 1);
    if (std::find(a.begin(), a.end(), 1) != a.end()) return a;
  }
}

Number sum(const Number& a, const Number& b) {
  Number s;
  int32_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    carry += (i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0);
    s.push_back(carry % 2);
    carry /= 2;
  }
  s.push_back(carry);
  return s;
}

Number product(const Number& a, const Number& b) {
  Number columns(a.size() + b.size(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0) continue;
    for (size_t j = 0; j < b.size(); ++j) columns[i + j] += b[j];
  }
  int32_t carry = 0;
  for (int32_t& digit : columns) {
    carry += digit;
    digit = carry % 2;
    carry /= 2;
  }
  return columns;
}

/// Digit by digit, from the highest. With r = a - root^2 of the digits so far, two more digits make
/// r = 4 r + digits. The root's next digit is 1 if 4 root + 1 fits into r.
Number square_root(const Number& a) {
  const size_t places = (a.size() + 1) / 2, width = a.size() + 3;
  Number root(width, 0), rest(width, 0), trial(width, 0);
  const auto shift = [](Number* n, int32_t low) {
    n->insert(n->begin(), low);
    n->pop_back();
  };
  for (size_t pair = places; pair-- > 0;) {
    shift(&rest, 2 * pair + 1 < a.size() ? a[2 * pair + 1] : 0);
    shift(&rest, a[2 * pair]);
    trial = root;
    shift(&trial, 0);
    shift(&trial, 1);
    const bool fits = !less(rest, trial);
    if (fits) subtract(&rest, trial);
    shift(&root, fits ? 1 : 0);
  }
  root.resize(places);
  return root;
}

Number trimmed(Number a) {
  while (a.size() > 1 && a.back() == 0) a.pop_back();
  return a;
}

}  // namespace bamtrain::binary
