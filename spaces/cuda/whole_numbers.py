"""C functions of whole numbers: floored quotients, minimum, maximum, bounded entries of tables.

Entries are bounded so that no read is outside of an array.
"""

HELPERS = """\
template <class I> TW_INLINE I tw_quotient(I x, int d) { return x / d - (x % d < 0); }
template <class A, class B> TW_INLINE auto tw_least(A a, B b) -> decltype(a + b) {
  return a < b ? a : b;
}
template <class A, class B> TW_INLINE auto tw_most(A a, B b) -> decltype(a + b) {
  return a > b ? a : b;
}
template <class T> TW_INLINE int tw_entry(const T *place, int below) {
  const T i = tw::load_global(place);
  return i < 0 ? 0 : i < below ? (int)i : below - 1;
}
"""
