#pragma once
// The key of maps: their colours and numbers beside them.

#include <string>

#include "inspect/map_figure.h"

namespace bamtrain {

/// The bar of maps whose full colour is `most`. With a second scale, `shared`, on which full colour
/// is the largest of several groups of maps, it has the numbers of both, and the page's switch
/// (colour_switch) shows one.
std::string colour_bar(MapColours colours, double most, double shared);

/// The factor of a map's opacity that turns the scale of `most` into that of `shared`.
double shared_opacity(MapColours colours, double most, double shared);

/// A check box that shows the groups' own scales; it stands before them, in the same element.
/// `name`: its identifier on the page.
std::string colour_switch(const std::string& name);

/// Style of these.
std::string colour_bar_style();

}  // namespace bamtrain
