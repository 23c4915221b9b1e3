#pragma once
// Words, numbers and uuids drawn at random.

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

/// As prompts name it, in the plural.
std::string name_of(DrawnKind kind);
std::string draw_text(DrawnKind kind, Draws* draws);
/// `digits` digits, the first not 0. REQUIRES: 1 <= digits <= 18.
std::string draw_number(int64_t digits, Draws* draws);
/// `count` independent letters from `first` on, of the 26 that there are.
std::string draw_letters(int64_t count, char first, Draws* draws);

/// `count` texts, no two alike and none among `others`.
std::vector<std::string> draw_different(int64_t count, const std::vector<std::string>& others,
                                        const std::function<std::string()>& draw);
/// Every order as likely.
void shuffle(std::vector<std::string>* texts, Draws* draws);

}  // namespace bamtrain
