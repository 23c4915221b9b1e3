#pragma once
// A list of types: each kind of mechanism has one, in one header. Enums, registries and the choice
// of a template at run time come from it.

namespace bamtrain {

template <class... T>
struct TypeList {};

/// f.template operator()<T>() for the type at `index`; on the host.
template <class... T, class F>
void with_type(TypeList<T...>, int index, const F& f) {
  int n = 0;
  (void)((n++ == index && (f.template operator()<T>(), true)) || ...);
}

}  // namespace bamtrain
