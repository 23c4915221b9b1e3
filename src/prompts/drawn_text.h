#pragma once
// Random words, numbers and UUIDs.

#include <functional>
#include <string>
#include <vector>

#include "tasks/draws.h"

namespace bamtrain {

enum class DrawnKind {
  numbers,  // 7 digits, the first not 0
  words,    // adjective-noun
  uuids,    // version 4
};

/// The kind's name in prompts, plural.
std::string name_of(DrawnKind kind);
std::string draw_text(DrawnKind kind, Draws* draws);
/// `digits` digits, the first not 0. REQUIRES: 1 <= digits <= 18.
std::string draw_number(int64_t digits, Draws* draws);
/// `count` independent letters out of the 26 from `first` on.
std::string draw_letters(int64_t count, char first, Draws* draws);

/// `count` distinct texts, none of them in `others`.
std::vector<std::string> draw_different(int64_t count, const std::vector<std::string>& others,
                                        const std::function<std::string()>& draw);
/// Every order is equally likely.
void shuffle(std::vector<std::string>* texts, Draws* draws);

}  // namespace bamtrain
